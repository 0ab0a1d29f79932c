"""A scheduler that begins with what another one has left, with the real scheduler behind a driver."""

from __future__ import annotations

import pytest
from driven_cluster import Cluster, binds
from driven_jobs import QUEUES

from fairlead.config import load_text
from fairlead.kubernetes.acts import Bind, CreatePlaceholder, DeletePod, Explain
from fairlead.kubernetes.bodies import unscheduled
from fairlead.kubernetes.translate import identity

GANG = '[{"name": "w", "minMember": 2, "minResource": {"cpu": "2"}}]'
SMALLER = QUEUES.replace("vcore: 4", "vcore: 3")


def member(cluster: Cluster, name: str, style: str = "Soft", **notes: str) -> None:
    gang = {identity.TASK_GROUPS: GANG, identity.PARAMETERS: f"gangSchedulingStyle={style}"}
    words = {identity.TASK_GROUP_NAME: "w", **(notes or gang)}
    cluster.pod(name, "2", labels={"applicationId": "job", "queue": "root.a"}, annotations=words)


def gang(size: int, style: str = "Soft") -> Cluster:
    """A gang with nodes for so many of its two members; its placeholders have theirs."""
    cluster = Cluster(QUEUES)
    for number in range(size):
        cluster.node(f"n{number}", "2")
    for number in range(2):
        member(cluster, f"m{number}", style)
    for act in cluster.acts():
        if isinstance(act, CreatePlaceholder):
            member(cluster, act.name, **{identity.PLACEHOLDER: "true"})
    cluster.bind_all(cluster.acts())
    return cluster


def used(cluster: Cluster, queue: str) -> int:
    root = cluster.driver.scheduler.cluster.partitions["default"].root
    return root.children[queue].allocated.get("vcore", 0)


def test_a_gang_that_runs_is_in_its_queue_though_its_maximum_was_lowered_below_it() -> None:
    cluster = gang(2)
    for _ in range(3):
        acts = cluster.acts()
        cluster.bind_all(acts)
        for act in acts:
            if isinstance(act, DeletePod):
                cluster.gone(act.pod.name)
    assert cluster.things["pods", "m0"]["spec"]["nodeName"]
    cluster.restarted(SMALLER)
    assert cluster.acts() == []
    assert used(cluster, "a") == 4000


def test_a_gang_that_its_queue_takes_no_more_keeps_no_room() -> None:
    """Of its placeholders none is made, and those with a node go; with a queue that takes it they are made again."""
    cluster = gang(1)
    cluster.restarted(SMALLER)
    acts = cluster.acts()
    assert not [act for act in acts if isinstance(act, CreatePlaceholder)]
    gone = [act.pod.name for act in acts if isinstance(act, DeletePod)]
    assert len(gone) == 1
    cluster.gone(gone[0])
    assert cluster.acts() == []
    cluster.driver.configure(load_text(QUEUES), cluster.now)
    assert [act.name for act in cluster.acts() if isinstance(act, CreatePlaceholder)] == gone


def test_what_runs_is_in_its_queue_though_an_older_pod_of_its_application_waits() -> None:
    """The older one declares the application, which its queue would not take any more; both are of it."""
    cluster = gang(2)
    for _ in range(3):
        acts = cluster.acts()
        cluster.bind_all([act for act in acts if not isinstance(act, Bind) or act.pod.name != "m0"])
        for act in acts:
            if isinstance(act, DeletePod):
                cluster.gone(act.pod.name)
    cluster.restarted(SMALLER)
    assert used(cluster, "a") == 2000
    assert not [act for act in cluster.acts() if isinstance(act, Bind | CreatePlaceholder)]
    assert list(cluster.driver.informer.waiting) == ["u-m0"]
    cluster.restarted(QUEUES)
    assert binds(cluster.acts()).keys() == {"m0"}


@pytest.mark.parametrize("said", ["m0", "m1"])
def test_a_gang_that_had_to_be_whole_and_has_failed_is_not_tried_again(said: str) -> None:
    """As with YuniKorn, which ends its pods: nothing of it is placed before all were made anew. One of them says it."""
    cluster = gang(1, style="Hard")
    cluster.now = 16 * 60_000
    acts = cluster.acts()
    for act in acts:
        if isinstance(act, DeletePod):
            cluster.gone(act.pod.name)
    told = next(act for act in acts if isinstance(act, Explain) and act.pod.name == said)
    assert told.message == "application job has failed: its gang (Hard) did not get all of its room in time"
    cluster.things["pods", said]["status"] = unscheduled(told, "")["status"]
    for config in (QUEUES, SMALLER):
        cluster.restarted(config)
        cluster.node("n1", "8")
        acts = cluster.acts()
        assert not [act for act in acts if isinstance(act, Bind | CreatePlaceholder)]
        assert {act.pod.name: act.message for act in acts if isinstance(act, Explain)}["m1"] == told.message
    for name in ("m0", "m1"):
        cluster.gone(name)
    cluster.restarted()
    member(cluster, "m0", style="Hard")
    assert len([act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]) == 2
