"""Preemption for asks that may run on one node only: room is made there, whatever queues are entitled to."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books
from priority_clusters import PriorityCluster, on

from fairlead.core.model.constraints import AffinityTerm, Constraints, Requirement
from fairlead.core.model.decisions import Allocated, Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, LabelNode, Release, SetPriority
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.policy.preemption.required_node import would_stop
from fairlead.scheduler import Scheduler


def cluster(*cores: int, enabled: bool = True) -> Scheduler:
    """Nodes n1, n2, … with so many cores, a large one that nobody uses, and the leaves a and b."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"), QueueSpec(name="b")))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(enabled=enabled)),)))
    sizes = {f"n{i}": n for i, n in enumerate(cores, 1)} | {"spare": 100}
    for name, n in sizes.items():
        s.handle(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": n * 1000}))), 0)
    return s


def running(s: Scheduler, key: str, **more: Any) -> None:
    """Work of one core that runs on n1."""
    submit(s, key, node="n1", **more)


def submit(s: Scheduler, key: str, cores: float = 1, queue: str = "b", **more: Any) -> None:
    """One application with one ask of the same name."""
    s.handle(AddApplication(ApplicationSpec(id=key, queue=f"root.{queue}")), 0)
    s.handle(
        AddAsks((AskSpec(application=key, key=key, resources=Resources({"vcore": int(cores * 1000)}), **more),)), 0
    )


def daemon(s: Scheduler, cores: float = 1, node: str = "n1", priority: int = 0) -> None:
    """An ask for one node that may not cause preemption elsewhere."""
    tags = {TAG_REQUIRED_NODE: node}
    submit(s, "daemon", cores, "a", tags=tags, priority=priority, allow_preempt_other=False)


def run(s: Scheduler, calls: int = 2) -> tuple[list[str], list[str]]:
    """Schedule some times (a reservation ends a run): who starts, and who is told to stop."""
    decided = [d for _ in range(calls) for d in s.schedule(0)]
    check_books(s)
    return [d.key for d in decided if isinstance(d, Allocated)], [d.key for d in decided if isinstance(d, Evict)]


def test_room_is_made_on_the_node_and_used() -> None:
    """The newest goes at once, without guarantees and without a delay; then the ask starts."""
    s = cluster(2)
    running(s, "v1")
    running(s, "v2")
    daemon(s)
    assert run(s) == ([], ["v2"])
    s.handle(Release("v2", "v2", Cause.PREEMPTED_BY_SCHEDULER), 0)
    assert run(s) == (["daemon"], [])


def test_it_works_with_preemption_switched_off() -> None:
    """The switch of the partition is for preemption by guarantee."""
    s = cluster(1, enabled=False)
    running(s, "v1")
    daemon(s)
    assert run(s) == ([], ["v1"])


def test_no_more_goes_than_the_free_space_leaves_missing() -> None:
    """One core is free already: one victim is enough for an ask of two."""
    s = cluster(3)
    running(s, "v1")
    running(s, "v2")
    daemon(s, 2)
    assert run(s) == ([], ["v2"])


def test_higher_priority_stays() -> None:
    """Equal priority goes, higher does not; too little left to stop means that nothing is stopped."""
    s = cluster(2)
    running(s, "high", priority=1)
    running(s, "same", priority=0)
    daemon(s, 2)
    assert run(s) == ([], [])
    s = cluster(2)
    running(s, "high", priority=1)
    running(s, "same", priority=0)
    daemon(s, 1)
    assert run(s) == ([], ["same"])


def test_other_work_of_that_node_stays() -> None:
    """What may run nowhere else is no victim."""
    s = cluster(1)
    running(s, "other", tags={TAG_REQUIRED_NODE: "n1"})
    daemon(s, priority=100)
    assert run(s) == ([], [])


def test_the_order_of_victims() -> None:
    """1. agreed, 2. did not agree, 3. originators; within each the lowest priority, then the newest."""
    s = cluster(5)
    running(s, "originator", originator=True, priority=-5)
    running(s, "unwilling", allow_preempt_self=False, priority=-5)
    running(s, "old", priority=-1)
    running(s, "new", priority=-1)
    running(s, "higher")
    daemon(s, 5)
    assert run(s)[1] == ["new", "old", "higher", "unwilling", "originator"]


def test_what_starts_elsewhere_may_let_work_be_stopped() -> None:
    """The daemon has to be in a zone with a friend, and the only one there is in its place. When another friend starts
    in that zone the first may be stopped, though nothing changes on the node. It does not matter that the run in which
    the daemon was looked at last ended with the start of something else, before its turn in the walk.
    """
    s = cluster(3, 1)
    for node in ("n1", "n2"):
        s.handle(LabelNode(node, {"zone": "z"}), 0)
    friend = {"labels": {"is": "friend"}}
    running(s, "v1", **friend)
    running(s, "v2")
    running(s, "high", priority=5)
    near = AffinityTerm((Requirement("is", "In", ("friend",)),), "zone")
    tags = {TAG_REQUIRED_NODE: "n1"}
    submit(s, "daemon", 2, "a", tags=tags, where=Constraints(affinity=(near,)), allow_preempt_other=False)
    assert run(s) == ([], [])
    s.handle(Release("v2", "v2", Cause.FINISHED), 0)
    submit(s, "other", priority=9)
    assert [d.key for d in s.schedule(0, limit=1) if isinstance(d, Allocated)] == ["other"]
    submit(s, "friend", node="n2", **friend)
    assert run(s) == ([], ["v1"])


@pytest.mark.parametrize("key", ["", "p0"])
def test_a_placeholder_that_is_lowered_may_be_stopped(key: str) -> None:
    """An order changes what may be stopped, and nothing else does."""
    s = cluster(1)
    gang = ApplicationSpec(id="gang", queue="root.b", placeholder_ask=Resources({"vcore": 200_000}))
    s.handle(AddApplication(gang), 0)
    more: dict[str, Any] = {"priority": 5, "placeholder": True, "task_group": "t"}
    first = AskSpec(application="gang", key="p0", resources=Resources({"vcore": 1000}), node="n1", **more)
    s.handle(AddAsks((first,)), 0)
    daemon(s)
    assert run(s) == ([], [])
    s.handle(SetPriority("gang", key, -1), 0)
    assert run(s) == ([], ["p0"])


def test_victims_are_told_once() -> None:
    """While they take their time nobody else is stopped."""
    s = cluster(2)
    running(s, "v1")
    running(s, "v2")
    daemon(s)
    assert run(s) == ([], ["v2"])
    assert run(s, 4) == ([], [])


def test_room_that_gathers_for_others_is_taken_before_work_is_stopped() -> None:
    """It would lie idle while work is stopped for the same amount; course 7557 under `guarantee`."""
    waits = QueueSpec(name="b", properties={"wait.max": "1m"})
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"), waits))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 6000}))), 0)
    submit(s, "v1", 4, node="n1")
    submit(s, "late", 3)
    s.schedule(0)
    s.schedule(60_000)
    [late] = [a for app in s.cluster.partitions["default"].applications.values() for a in app.waiting_asks()]
    assert late.held_on is not None, "room gathers for it"
    s.handle(AddApplication(ApplicationSpec(id="d", queue="root.a")), 60_000)
    tags = {TAG_REQUIRED_NODE: "n1"}
    own = AskSpec(application="d", key="d", resources=Resources({"vcore": 2000}), tags=tags, priority=1)
    s.handle(AddAsks((own,)), 60_000)
    decided = [d for _ in range(3) for d in s.schedule(60_000)]
    check_books(s)
    assert [d.key for d in decided if isinstance(d, Allocated)] == ["d"]
    assert not [d for d in decided if isinstance(d, Evict)]


def test_what_has_only_started_is_not_stopped_for_want_of_the_room_of_another_one() -> None:
    """The other one is not started then; course 8116 under `guarantee`. What started before may be stopped."""
    s = cluster(4)
    running(s, "v1", cores=3, priority=-1)
    submit(s, "newcomer", 1)
    daemon(s)
    partition = s.cluster.partitions["default"]
    asks = {a.key: a for app in partition.applications.values() for a in app.asks.values()}
    node = partition.nodes.nodes["n1"]
    assert would_stop(partition, asks["daemon"], node, asks["newcomer"])
    partition.now_ms += 1
    assert not would_stop(partition, asks["daemon"], node, asks["newcomer"])


@pytest.mark.parametrize("policy", ["default", "disabled"])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("priority", [0, 1])
@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
def test_equals_and_what_is_nobodys_victim_make_room_by_guarantee_alone(
    rule: str, priority: int, enabled: bool, policy: str
) -> None:
    """As in YuniKorn; where rank decides the ask stops what any other may: strictly lower, unless that is off."""
    leaves = QueueSpec(name="a", properties={"preemption.policy": policy}), QueueSpec(name="b")
    c = PriorityCluster(*leaves, nodes={"n1": 4}, rule=rule, enabled=enabled)
    c.fill("work", 4)
    c.node("n2", 4)
    c.submit("daemon", 1, priority, "root.b", tags=on("n1"))
    is_stopped = rule == "guarantee" or (priority > 0 and enabled and policy == "default")
    assert c.run()[1] == (["work"] if is_stopped else [])


def test_what_started_in_the_same_call_is_not_stopped_where_room_is_kept_only_after_that() -> None:
    """It would have fitted beside what started; then the turn of higher work came, for which that room gathers. It has
    work stopped as soon as anything but new work has come. Course 29045 under `guarantee`.
    """
    leaves = QueueSpec(name="a"), QueueSpec(name="c", properties={"wait.max": "10s"})
    c = PriorityCluster(*leaves, nodes={"n1": 4}, rule="guarantee")
    c.fill("x", 1, 9)
    c.fill("y", 1, 9)
    c.fill("idle", 2, 0, "root.c", idle=True)
    c.submit("low", 2, -1, "root.c")
    assert c.run()[1] == ["idle"]
    c.submit("high", 2, 5, "root.c")
    c.run(20_000)
    c.submit("daemon", 1, 0, "root.a", tags=on("n1"))
    assert c.run() == ([], [])
    c.finished("x")
    c.gone("idle")
    assert c.run() == (["low@n1"], [])
    assert c.nominated() == {"high": "n1"}
    assert c.run() == ([], [])
    c.submit("other", 1, 0, "root.a")
    assert c.run() == ([], [])
    c.node("n2", 1)
    assert c.run() == (["other@n2"], ["low"])
