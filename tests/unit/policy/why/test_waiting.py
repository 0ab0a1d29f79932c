"""Why an ask waits: one reason, the most general first, with its numbers; asking changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.constraints import Constraints, Requirement, Taint
from fairlead.core.model.events import AddApplication, AddAsks, Cause, DrainNode, LabelNode, ReserveAsk
from fairlead.core.model.reason import Reason
from fairlead.core.model.reasons import (
    ApplicationsAtMax,
    NoNodeHasRoom,
    NoNodeSuits,
    QueueFull,
    TooBigForEveryNode,
    WaitingForVictims,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    TAG_FOREIGN,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    PartitionSpec,
    QueueSpec,
    RetrySpec,
)
from fairlead.scheduler import Scheduler

IN_ZONE_B = Constraints(selector=(Requirement("zone", "In", ("b",)),))


def code(c: PriorityCluster, key: str) -> str:
    """Of the reason why it waits; nothing if it does not. What is remembered of it is the same after the question."""
    before = c.s.dump()
    reason = c.s.why(key, key)
    assert c.s.dump() == before
    return reason.code if reason is not None else ""


def waiting(cores_: int = 1, *queues: QueueSpec, **more: Any) -> PriorityCluster:
    """A node of four cores, and an ask `w` that was looked at."""
    c = PriorityCluster(*queues)
    c.submit("w", cores_, **more)
    c.run()
    return c


def test_without_a_node_nothing_else_is_said() -> None:
    c = PriorityCluster(nodes={"n1": 4})
    c.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=c.spec.partitions[0].root),)))
    c.submit("w", 99)
    assert code(c, "w") == "no-nodes"


def test_what_is_larger_than_every_node() -> None:
    c = waiting(5)
    told = c.s.why("w", "w")
    assert isinstance(told, TooBigForEveryNode)
    assert (told.needed, told.largest, told.nodes) == ({"vcore": 5000}, {"vcore": 4000}, 1)


def test_a_full_queue_is_named_with_what_is_left() -> None:
    """Before the nodes, which have room."""
    c = waiting(3, QueueSpec(name="a", max=cores(2)))
    told = c.s.why("w", "w")
    assert isinstance(told, QueueFull)
    assert (told.queue, told.free, told.max) == ("root.a", {"vcore": 2000}, {"vcore": 2000})


def test_as_many_applications_run_as_may() -> None:
    c = PriorityCluster(QueueSpec(name="a", max_applications=1))
    c.fill("one", 1)
    c.submit("w", 1)
    c.run()
    assert c.s.why("w", "w") == ApplicationsAtMax("root.a", 1, 1)


def test_for_what_the_free_room_of_the_closest_node_is_kept() -> None:
    """For what waited too long in another queue: nothing was stopped for it."""
    c = PriorityCluster(QueueSpec(name="a", properties={"wait.max": "10s"}), QueueSpec(name="b"), enabled=False)
    c.fill("runs", 3, queue="root.b")
    c.submit("big", 4)
    c.run(10_000)
    c.submit("w", 1, queue="root.b")
    c.run()
    told = c.s.why("w", "w")
    assert isinstance(told, NoNodeHasRoom)
    assert (told.held, told.held_for) == ({"vcore": 1000}, ("big/big",))
    assert told.sentence() == "needs cpu 1 on one node; n1 has cpu 1 free, cpu 1 kept for big"


def test_the_turn_of_another() -> None:
    c = PriorityCluster()
    c.submit("big", 5, 5)
    c.submit("w", 1, 1)
    c.handle(ReserveAsk("big", "big", True, "ann", "it matters"))
    c.run()
    assert code(c, "w") == "held-for-reservation"


def test_all_nodes_together_have_too_little() -> None:
    c = PriorityCluster()
    c.fill("one", 3)
    c.submit("w", 2)
    c.run()
    assert code(c, "w") == "cluster-full"


def test_what_other_schedulers_use_of_all_nodes_is_not_free() -> None:
    c = PriorityCluster()
    c.fill("one", 1)
    used, tags = Resources({"vcore": 2000}), {TAG_FOREIGN: "default"}
    c.handle(AddAsks((AskSpec(application="", key="theirs", resources=used, tags=tags, node="n1"),)))
    c.submit("w", 4)
    c.run()
    told = c.s.why("w", "w")
    assert told is not None
    assert told.sentence() == "needs cpu 4; all nodes together have cpu 1 free of cpu 4"


def test_each_single_node_has_too_little() -> None:
    c = PriorityCluster(nodes={"n1": 2, "n2": 2})
    c.submit("one", 1)
    c.submit("two", 1)
    c.run()
    c.submit("w", 2)
    c.run()
    assert code(c, "w") == "no-node-has-room"


@pytest.mark.parametrize("labels", [{}, {"zone": "b"}])
def test_the_closest_node_is_one_that_is_large_enough(labels: dict[str, str]) -> None:
    """It named one that lacks less but could never hold it."""
    c = PriorityCluster(nodes={"other": 1})
    c.node("small", 2, **labels)
    c.node("large", 4, **labels)
    c.fill("runs", 4)
    c.submit("w", 3, where=IN_ZONE_B if labels else Constraints())
    c.run()
    told = c.s.why("w", "w")
    assert isinstance(told, NoNodeHasRoom)
    assert told.node == "large"


def test_nodes_that_suit_it_but_are_too_small_are_counted() -> None:
    """It said that the small one, which could never hold it, comes closest."""
    c = PriorityCluster(nodes={"small": 2})
    c.node("large", 4, zone="a")
    c.handle(LabelNode("large", taints=(Taint("kept", "yes"),)))
    c.submit("w", 3)
    c.run()
    told = c.s.why("w", "w")
    assert told == NoNodeSuits({"vcore": 3000}, {"taint": 1, "too-small": 1}, 2)
    said = "needs cpu 3; none of 2 nodes suits it: 1 with a taint that it does not tolerate, 1 too small"
    assert told.sentence() == said


def test_no_node_suits() -> None:
    assert code(waiting(1, where=IN_ZONE_B), "w") == "no-node-suits"


def test_no_node_takes_work() -> None:
    c = PriorityCluster()
    c.handle(DrainNode("n1"))
    c.submit("w", 1)
    c.run()
    assert code(c, "w") == "no-node-has-room"


def test_what_was_told_to_stop_for_it_is_named() -> None:
    c = PriorityCluster()
    c.fill("low", 4, grace_ms=60_000)
    c.submit("w", 4, 9)
    c.run()
    told = c.s.why("w", "w")
    assert isinstance(told, WaitingForVictims)
    assert (told.node, told.victims) == ("n1", ("low",))


def test_an_attempt_that_is_held_back() -> None:
    """It is in no line yet, and known by its key."""
    c = PriorityCluster()
    c.fill("w", 1, retry=RetrySpec(limit=2, backoff_ms=5_000))
    c.gone("w", cause=Cause.INTERRUPTED)
    told = c.s.why("w", "w#2")
    assert told is not None
    assert told.code == "attempt-held-back"


def test_what_may_start_is_next_in_line() -> None:
    """Nobody has looked yet."""
    c = PriorityCluster()
    c.submit("w", 1)
    assert code(c, "w") == "next-in-line"


@pytest.mark.parametrize("key", ["unknown", "runs"])
def test_what_does_not_wait_has_no_reason(key: str) -> None:
    c = PriorityCluster()
    c.fill("runs", 1)
    assert c.s.why(key, key) is None


@pytest.mark.plain
def test_of_a_full_cluster_it_takes_as_many_steps_with_ten_times_the_nodes() -> None:
    """It is asked for all that waits, again and again. Work of other schedulers runs on each node of a cluster."""
    assert steps_of_why(20) == steps_of_why(200)


def steps_of_why(nodes: int) -> int:
    """How many lines run for one answer."""
    c = PriorityCluster(nodes={f"n{i}": 1 for i in range(nodes)})
    for i in range(nodes):
        c.submit(f"r{i}", 1)
        memory, tags = Resources({"memory": 1}), {TAG_FOREIGN: "default"}
        c.handle(AddAsks((AskSpec(application="", key=f"f{i}", resources=memory, node=f"n{i}", tags=tags),)))
    c.submit("w", 1)
    c.run()
    # The first answer: it is kept as long as nothing changes.
    return steps_of(lambda: c.s.why("w", "w"), "cluster-full")


@pytest.mark.plain
def test_of_a_gang_that_is_too_large_its_members_are_counted_once() -> None:
    """Each of ten thousand placeholders is asked for."""
    assert steps_of_the_second_member(5) == steps_of_the_second_member(50)


def steps_of_the_second_member(members: int) -> int:
    """How many lines run for it, once the first one was answered."""
    c = PriorityCluster(nodes=dict.fromkeys((f"n{i}" for i in range(members - 1)), 3))
    whole = Resources({"vcore": 2_000 * members})
    c.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=whole)))
    member = AskSpec(application="g", key="", resources=Resources({"vcore": 2_000}), task_group="t", placeholder=True)
    for i in range(members - 1):
        c.submit(f"r{i}", 2)
    c.run()
    c.handle(AddAsks(tuple(replace(member, key=f"m{i}") for i in range(members))))
    c.s.why("g", "m0")
    return steps_of(lambda: c.s.why("g", "m1"), "task-group-too-large")


def steps_of(ask: Callable[[], Reason | None], code: str) -> int:
    """How many lines run until there is an answer, which has this code."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        told = ask()
    finally:
        sys.settrace(before)
    assert told is not None
    assert told.code == code
    return count
