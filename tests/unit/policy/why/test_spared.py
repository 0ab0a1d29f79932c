"""Spared: of each thing that keeps an ask from having work stopped, or spares work, a cluster in which it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.constraints import Constraints, Requirement, Taint, Toleration
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, MoveApplication, SetWindow, UpdateNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, LimitSpec, NodeSpec, QueueSpec, WindowSpec
from fairlead.policy.why.spared import Keeps, NothingStopped, Spares, why_nothing_stops

Made = Callable[[], PriorityCluster]


def asked(c: PriorityCluster, key: str = "urgent", app: str = "") -> NothingStopped:
    """Of an ask that waits, at rest."""
    c.run()
    part = c.s.cluster.partitions["default"]
    found = why_nothing_stops(part, part.applications[app or key].asks[key])
    assert found is not None
    return found


def filled(*queues: QueueSpec, rule: str = "priority", queue: str = "root.a", **more: object) -> PriorityCluster:
    """Four cores, on which low work of one core each runs."""
    c = PriorityCluster(*queues, rule=rule, **more)  # type: ignore[arg-type]
    for i in range(4):
        c.fill(f"low{i}", 1, 1, queue)
    return c


# -- what keeps the ask from it -----------------------------------------------------------------------------------


def test_preemption_is_off() -> None:
    c = filled(enabled=False)
    c.submit("urgent", 1, 9)
    assert asked(c).because is Keeps.OFF


def test_it_says_never() -> None:
    c = filled()
    c.submit("urgent", 1, 9, allow_preempt_other=False)
    assert asked(c).because is Keeps.NEVER


def test_it_is_idle_work() -> None:
    c = filled()
    c.submit("urgent", 1, 9, idle=True)
    assert asked(c).because is Keeps.IDLE


def test_a_limit_is_in_its_way() -> None:
    c = filled(limits=(LimitSpec(limit="ann", users=("ann",), max_resources=cores(1)),))
    c.submit("first", 1, 9, user="ann")
    c.run()
    c.gone("low0")
    c.run()
    c.submit("urgent", 1, 9, user="ann")
    assert asked(c).because is Keeps.LIMIT


def test_what_its_limit_leaves_is_promised() -> None:
    c = filled(limits=(LimitSpec(limit="ann", users=("ann",), max_resources=cores(3)),))
    c.submit("first", 2, 9, user="ann")
    c.run()
    c.submit("urgent", 2, 9, user="ann")
    assert asked(c).because is Keeps.LIMIT


def gang(c: PriorityCluster, size: int, whole: int, priority: int = 9) -> None:
    """A gang of that many members of a core, which says how many cores it needs as a whole."""
    spec = ApplicationSpec(id="gang", queue="root.a", placeholder_ask=Resources({"vcore": whole * 1000}))
    c.handle(AddApplication(spec))
    one = Resources({"vcore": 1000})
    asks = (
        AskSpec(application="gang", key=f"p{i}", resources=one, priority=priority, placeholder=True, task_group="g")
        for i in range(size)
    )
    c.handle(AddAsks(tuple(asks)))


def test_its_gang_cannot_be_whole() -> None:
    """Two cores may go, and it needs three."""
    c = PriorityCluster()
    for i, priority in enumerate((1, 1, 20, 20)):
        c.fill(f"work{i}", 1, priority)
    gang(c, 3, 3)
    assert asked(c, "p0", "gang").because is Keeps.GANG


def test_by_guarantee_its_queue_has_none() -> None:
    c = filled(rule="guarantee")
    c.submit("urgent", 1, 9, "root.b")
    assert asked(c).because is Keeps.NO_GUARANTEE


def at_once(name: str, count: int = 0, **more: str) -> QueueSpec:
    """A queue with a guarantee, which has work stopped without delay."""
    properties = {"preemption.delay": "1ms", **{name.replace("_", "."): value for name, value in more.items()}}
    return QueueSpec(name=name, guaranteed=cores(count) if count else None, properties=properties)


def test_by_guarantee_its_queue_would_be_above_its_own() -> None:
    c = filled(at_once("a"), at_once("b", 1), rule="guarantee")
    c.submit("urgent", 2, 9, "root.b")
    assert asked(c).because is Keeps.BEYOND_GUARANTEE


def test_by_guarantee_it_has_not_waited_long_enough() -> None:
    c = filled(QueueSpec(name="a"), QueueSpec(name="b", guaranteed=cores(2)), rule="guarantee")
    c.submit("urgent", 1, 9, "root.b")
    submitted_ms = c.now_ms
    found = asked(c)
    assert (found.because, found.until_ms) == (Keeps.DELAY, submitted_ms + 30_000)
    c.run(30_000)
    assert len(c.evictions()) == 1


def test_by_guarantee_it_has_tried_before_and_came_to_a_queue_with_a_delay() -> None:
    queues = at_once("a"), at_once("b", 1), QueueSpec(name="c", guaranteed=cores(4))
    c = filled(*queues, rule="guarantee")
    c.submit("urgent", 2, 9, "root.b")
    submitted_ms = c.now_ms
    assert asked(c).because is Keeps.BEYOND_GUARANTEE
    c.handle(MoveApplication("urgent", "root.c"))
    found = asked(c)
    assert (found.because, found.until_ms) == (Keeps.DELAY, submitted_ms + 30_000)


# -- what spares work ---------------------------------------------------------------------------------------------


def test_work_that_was_told_and_work_of_the_same_priority() -> None:
    c = PriorityCluster()
    c.fill("low", 1, 1)
    c.fill("same", 3, 9)
    c.submit("first", 1, 9)
    c.run()
    c.submit("urgent", 1, 9)
    found = asked(c)
    assert (found.running, found.spared) == (2, {Spares.TOLD: 1, Spares.PRIORITY: 1})


@pytest.mark.parametrize("policy", ["disabled", "fence"])
def test_work_that_a_queue_keeps_to_itself(policy: str) -> None:
    properties = {"preemption.policy": policy}
    kept, own = ({}, properties) if policy == "fence" else (properties, {})
    c = filled(QueueSpec(name="a", properties=own), QueueSpec(name="b", properties=kept), queue="root.b")
    c.submit("urgent", 1, 9, "root.a")
    assert asked(c).spared == {Spares.CLOSED: 4}


def test_work_within_the_guarantee_of_its_queue() -> None:
    c = filled(QueueSpec(name="a", guaranteed=cores(4)), QueueSpec(name="b"), rule="both")
    c.submit("urgent", 1, 9, "root.b")
    assert asked(c).spared == {Spares.GUARANTEED: 4}


def test_work_within_the_guarantee_of_its_own_queue_which_the_ask_would_be_above() -> None:
    """What can go together with it counts: with both of them gone it would be within the guarantee."""
    c = PriorityCluster(QueueSpec(name="a", guaranteed=cores(1)), QueueSpec(name="b"), rule="both")
    c.fill("low", 2, 1)
    c.fill("high", 2, 20, "root.b")
    c.submit("urgent", 2, 9)
    assert asked(c).spared == {Spares.PRIORITY: 1, Spares.GUARANTEED: 1}
    c = PriorityCluster(QueueSpec(name="a", guaranteed=cores(3)), nodes={"n1": 2, "n2": 2}, rule="both")
    c.fill("low", 2, 1)
    c.fill("other", 2, 1)
    c.submit("urgent", 2, 9)
    assert asked(c).spared == {Spares.GUARANTEED: 2}, "they are on two nodes"
    c = PriorityCluster(QueueSpec(name="a", guaranteed=cores(3)), rule="both")
    c.fill("low", 2, 1)
    c.fill("other", 2, 1)
    c.submit("urgent", 2, 9)
    c.run()
    assert len(c.evictions()) == 2


def test_by_guarantee_work_of_its_own_queue_and_of_one_that_is_not_above_its_guarantee() -> None:
    c = PriorityCluster(at_once("a", 4), at_once("b", 2), at_once("c"), rule="guarantee")
    for key, queue in (("own", "a"), ("within", "b"), ("more", "b"), ("important", "c")):
        c.fill(key, 1, 30 if key == "important" else 1, f"root.{queue}")
    c.submit("urgent", 1, 9)
    c.run(20_000)
    assert asked(c).spared == {Spares.PRIORITY: 1, Spares.OWN_QUEUE: 1, Spares.GUARANTEED: 2}


def test_by_guarantee_work_that_is_more_than_its_queue_may_take_back() -> None:
    c = PriorityCluster(QueueSpec(name="a"), at_once("b", 2), rule="guarantee")
    c.fill("large", 3)
    c.fill("small", 1)
    c.submit("urgent", 2, 0, "root.b")
    assert asked(c).spared == {Spares.LARGE: 1}


def test_by_guarantee_work_without_which_its_queue_would_be_below_its_guarantee() -> None:
    """The queue is above it now."""
    c = PriorityCluster(at_once("a", 3), at_once("b", 2), rule="guarantee")
    c.fill("large", 2)
    c.fill("other", 2)
    c.submit("urgent", 2, 0, "root.b")
    assert asked(c).spared == {Spares.GUARANTEED: 2}


def test_work_that_started_while_it_waited() -> None:
    """It is no victim until something happens."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 1})
    c.fill("big", 4, 20)
    c.submit("low", 1)
    c.submit("urgent", 2, 9)
    assert asked(c).spared == {Spares.PRIORITY: 1}, "n2 is too small for it: what runs there does not count"
    c = PriorityCluster()
    c.fill("big", 2, 20)
    c.submit("urgent", 3, 9)
    c.submit("low", 2)
    assert asked(c).spared == {Spares.PRIORITY: 1, Spares.YOUNG: 1}


def test_work_that_has_not_run_long_enough() -> None:
    c = filled(QueueSpec(name="a", properties={"preemption.min.runtime": "1m"}))
    c.submit("urgent", 2, 9)
    first_ms = min(a.allocated_ms or 0 for a in c.s.cluster.partitions["default"].nodes.nodes["n1"].allocations)
    found = asked(c)
    assert (found.spared, found.until_ms) == ({Spares.RUNTIME: 4}, first_ms + 60_000)
    c.run(first_ms + 60_000 - c.now_ms - 1)
    assert asked(c).spared == {Spares.RUNTIME: 3}, "one may go by now, and two have to"


def test_work_of_a_queue_that_lost_enough() -> None:
    c = filled(QueueSpec(name="a", properties={"preemption.evictions.max": "1"}))
    c.submit("first", 1, 9)
    c.run()
    stopped_ms, told = c.now_ms, c.evictions()[0].key
    c.gone(told)
    c.run()
    c.submit("urgent", 1, 9)
    found = asked(c)
    assert (found.spared, found.until_ms) == ({Spares.PRIORITY: 1, Spares.EVICTIONS: 3}, stopped_ms + 3_600_000)


def test_work_that_leaves_too_late() -> None:
    """It has a minute of grace; a window begins in half a minute, and the ask would be over by then, not later."""
    c = PriorityCluster()
    c.fill("low", 4, 1, grace_ms=60_000)
    c.handle(SetWindow(WindowSpec(name="w", starts_ms=c.now_ms + 30_000, length_ms=60_000)))
    c.submit("urgent", 4, 9, time_limit_ms=20_000)
    assert asked(c).spared == {Spares.WINDOW: 1}


def test_work_that_has_nothing_of_what_it_needs() -> None:
    c = PriorityCluster()
    c.handle(UpdateNode("n1", Resources({"vcore": 4_000, "gpu": 1})))
    c.fill("high", 3, 20)
    c.handle(AddApplication(ApplicationSpec(id="gpu", queue="root.a")))
    c.handle(AddAsks((AskSpec(application="gpu", key="gpu", resources=Resources({"gpu": 1})),)))
    c.run()
    c.submit("urgent", 2, 9)
    assert asked(c).spared == {Spares.PRIORITY: 1, Spares.OTHER: 1}


def test_under_a_full_queue_what_runs_there_counts_alone() -> None:
    """And what may go but makes no room is the rest."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(2)), QueueSpec(name="b"))
    c.fill("other", 1, queue="root.b")
    c.fill("high", 1, 20)
    c.fill("low", 1, 1)
    c.submit("urgent", 2, 9)
    found = asked(c)
    assert (found.queue, found.running, found.spared) == ("root.a", 2, {Spares.PRIORITY: 1})


def test_what_runs_on_nodes_that_it_does_not_suit_does_not_count() -> None:
    """Neither where its selector rules them out, nor a taint."""
    c = filled()
    c.node("n2", 1, zone="west")
    west = Constraints(selector=(Requirement("zone", values=("west",)),))
    c.fill("high", 1, 20, where=west)
    spec = NodeSpec(id="n3", capacity=Resources({"vcore": 1000}), attributes={"zone": "west"}, taints=(Taint("t"),))
    c.handle(AddNode(spec))
    c.fill("tainted", 1, 1, where=replace(west, tolerations=(Toleration("t"),)))
    c.submit("urgent", 1, 9, where=west)
    found = asked(c)
    assert (found.running, found.spared) == (1, {Spares.PRIORITY: 1})


def test_nothing_is_said_of_what_has_work_stopped_for_it() -> None:
    c = filled()
    c.submit("urgent", 1, 9)
    c.run()
    part = c.s.cluster.partitions["default"]
    assert why_nothing_stops(part, part.applications["urgent"].asks["urgent"]) is None
