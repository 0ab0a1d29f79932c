"""Room that jobs keep on nodes that change, with the real scheduler behind a driver."""

from __future__ import annotations

from typing import Any

import pytest
from driven_cluster import binds
from driven_jobs import QUEUES, Jobs, at_work, end, records, suspensions

from fairlead.kubernetes.kinds import JOBS, NODES
from fairlead.kubernetes.reflector import Deleted

TAINTS = {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}}
SMALLER = {"status": {"allocatable": {"cpu": "1", "pods": "110"}}}
OTHER_LABELS = {"metadata": {"name": "n1", "uid": "u-n1"}}


@pytest.mark.parametrize("change", [{"spec": {"unschedulable": True}}, TAINTS, SMALLER, OTHER_LABELS])
def test_a_job_looks_elsewhere_when_a_node_would_not_take_what_it_keeps_room_for_there(change: dict[str, Any]) -> None:
    """It was let go, and its pod could not use that room, or was bound to a node on which it had none."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2", labels={"disk": "fast"})
    cluster.job("train")
    job = cluster.things["jobs", "train"]
    job["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
    cluster.put(JOBS, job)
    assert suspensions(cluster.acts()) == {}
    cluster.node("n2", "2", labels={"disk": "fast"})
    cluster.pod("before", "2", node="n2")
    assert (suspensions(cluster.acts()), cluster.used("n1")) == ({}, 2_000)
    cluster.put(NODES, cluster.things["nodes", "n1"] | change)
    assert (suspensions(cluster.acts()), cluster.used("n1")) == ({}, 0)
    cluster.gone("before")
    assert suspensions(cluster.acts()) == {}
    cluster.node("n3", "2", labels={"disk": "fast"})
    acts = cluster.acts()
    assert records(acts, "Admitted") == ["there is room for 2 of its pods on n2, n3"]


@pytest.mark.parametrize("change", [{"spec": {"unschedulable": True}}, TAINTS, SMALLER])
def test_room_for_the_next_pod_is_kept_no_longer_than_its_node_would_take_that_pod(change: dict[str, Any]) -> None:
    """The job goes on: none of its pods has lost anything (where the node was not ready all of it was suspended)."""
    cluster = at_work()
    end(cluster, "train-0")
    assert (binds(cluster.acts()), cluster.used("n0")) == ({}, 2_000)
    cluster.put(NODES, cluster.things["nodes", "n0"] | change)
    assert (suspensions(cluster.acts()), cluster.used("n0")) == ({}, 0)
    cluster.member("train", 7)
    cluster.node("n2", "2")
    assert len(binds(cluster.acts())) == 1


def test_a_node_that_says_the_same_again_moves_nothing() -> None:
    """Each does so every few minutes; where room is kept does not depend on when."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.job("train", 4, "1")
    cluster.acts()
    looked_at: list[str] = []
    cluster.driver.informer.workloads.not_kept = lambda name: looked_at.append(name) or []  # type: ignore[func-returns-value]
    cluster.node("n1", "2")
    cluster.acts()
    assert looked_at == []
    cluster.node("n1", "3")
    cluster.acts()
    assert looked_at == ["n1"]


def test_a_job_that_has_become_larger_than_all_nodes_gives_its_room_back() -> None:
    """It kept what it had of it from others until its time was over, and could not start meanwhile."""
    cluster = Jobs(QUEUES)
    for name in ("n1", "n2", "n3"):
        cluster.node(name, "2")
    cluster.pod("before", "2", node="n3")
    cluster.job("train", 3)
    assert suspensions(cluster.acts()) == {}
    cluster.pod("other", "2")
    assert binds(cluster.acts()) == {}
    cluster.driver.take(Deleted(NODES, "", "n3", "u-n3"), 0)
    acts = cluster.acts()
    assert len(binds(acts)) == 1
    assert records(acts, "FailedScheduling") == ["its 3 pods need cpu 6 together; all nodes together have cpu 4"]
    cluster.bind_all(acts)
    cluster.gone("other")
    cluster.node("n4", "2")
    assert suspensions(cluster.acts()) == {"train": False}
