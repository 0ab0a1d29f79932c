"""Jobs and pod groups that all nodes together could not hold: they take no room, and are told so."""

from __future__ import annotations

from typing import Any

import pytest
from driven_cluster import binds
from driven_jobs import QUEUES, Jobs, records, suspensions

from fairlead.kubernetes.acts import Explain
from fairlead.kubernetes.bodies import unscheduled
from fairlead.kubernetes.kinds import JOBS, NODES
from fairlead.kubernetes.reflector import Deleted
from fairlead.kubernetes.translate import identity
from fairlead.kubernetes.workload_sizes import Parts
from fairlead.service.kubernetes.pods import ClusterMoment

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


def test_a_job_that_all_nodes_could_not_hold_takes_no_room_and_is_let_go_once_they_could() -> None:
    """What comes behind it starts; told at the job and to whoever asks, with what is there as it is now."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    cluster.job("wide", parallelism=5)
    cluster.pod("small", "4")
    acts = cluster.acts()
    assert binds(acts) == {"small": "n1"}
    assert records(acts, "FailedScheduling") == ["its 5 pods need cpu 10 together; all nodes together have cpu 4"]
    cluster.node("n2", "5")
    assert suspensions(cluster.acts()) == {}
    why = ClusterMoment(cluster.driver).why("default/wide")
    assert why.sentence == "its 5 pods need cpu 10 together; all nodes together have cpu 9"
    assert why.state == "waiting"
    cluster.node("n2", "6")
    assert suspensions(cluster.acts()) == {}
    cluster.gone("small")
    assert suspensions(cluster.acts()) == {"wide": False}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "of its 3 pods 3 need cpu 3, pods 1 each; all nodes together could hold at most 2 of them"),
        ({"nodeSelector": {"zone": "b"}}, "could hold none of them"),
        ({"affinity": APART, "cpu": "1"}, "could hold at most 2 of them"),
    ],
)
def test_the_same_of_what_nodes_have_room_for_in_sum_alone(spec: dict[str, Any], said: str) -> None:
    """Three of three cores on two nodes of five; on nodes that it may not use; pods that keep apart."""
    cluster = Jobs(QUEUES)
    for name in ("n1", "n2"):
        cluster.node(name, "5")
    cluster.job("wide", parallelism=3, cpu=spec.pop("cpu", "3"))
    job = cluster.things["jobs", "wide"]
    job["spec"]["template"]["spec"] |= spec
    cluster.put(JOBS, job)
    acts = cluster.acts()
    assert suspensions(acts) == {}
    assert cluster.waiting() == 0
    assert said in records(acts, "FailedScheduling")[-1]
    cluster.node("n3", "5", labels={"zone": "b"})
    cluster.node("n4", "5", labels={"zone": "b"})
    cluster.node("n5", "5", labels={"zone": "b"})
    assert suspensions(cluster.acts()) == {"wide": False}


def test_a_job_that_became_larger_than_all_nodes_waits_for_them_after_its_time() -> None:
    """A node went while it reserved: what it has is given back once, and not taken again."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.node("n2", "2")
    cluster.pod("before", "2", node="n2")
    cluster.job("wide")
    cluster.acts()
    assert cluster.used("n1") == 2_000
    cluster.gone("before")
    cluster.driver.take(Deleted(NODES, "", "n2", "u-n2"), cluster.now)
    cluster.now = 901_000
    assert records(cluster.acts(), "GaveUp")
    cluster.driver.try_again("j-wide", cluster.now)
    cluster.acts()
    assert cluster.used("n1") == cluster.waiting() == 0
    cluster.node("n2", "4")
    assert suspensions(cluster.acts()) == {"wide": False}


def test_a_pod_group_that_all_nodes_could_not_hold_takes_no_room_and_calls_an_autoscaler() -> None:
    """Its pods wait as unschedulable ones, and start together once nodes have come."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.group("g", 3)
    for number in range(3):
        cluster.in_group(f"g-{number}", "g")
    cluster.pod("small", "2")
    acts = cluster.acts()
    assert binds(acts) == {"small": "n1"}
    told = {act.pod.name: act for act in acts if isinstance(act, Explain)}
    assert sorted(told) == ["g-0", "g-1", "g-2"]
    said = unscheduled(told["g-0"], "")["status"]["conditions"][0]
    assert said["reason"] == "Unschedulable"
    assert "its 3 pods need cpu 3 together; all nodes together have cpu 2" in said["message"]
    cluster.node("n2", "3")
    started = binds(cluster.acts()) | binds(cluster.acts())
    assert sorted(started) == ["g-0", "g-1", "g-2"]


@pytest.mark.parametrize("are_gangs", [False, True])
def test_a_node_that_changes_has_alike_work_sized_once(are_gangs: bool) -> None:
    """With 2,000 gangs that wait each change of a node cost 20 ms, though all of them were of one size."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    for number in range(20):
        if are_gangs:
            task_groups = '[{"name": "w", "minMember": 2, "minResource": {"cpu": "2"}}]'
            notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: task_groups}
            cluster.pod(f"m{number}", "2", labels={"applicationId": f"a{number}"}, annotations=notes)
        else:
            cluster.job(f"a{number}")
    cluster.acts()
    workloads, placeholders = cluster.driver.informer.workloads, cluster.driver.informer.placeholders
    asked = list[Parts]()

    def why_too_large(parts: Parts) -> str:
        asked.append(parts)
        return cluster.driver._why_too_large(parts)

    workloads.why_too_large = placeholders.why_too_large = why_too_large
    cluster.node("n1", "2")
    cluster.acts()
    assert asked == []
    cluster.node("n1", "3")
    cluster.acts()
    assert len(asked) == 1
