"""Faults that a further reading along one theme found: what stops work, for whom, and what becomes of it meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import SOON, cluster, cores, guaranteed, over_time, started, stopped, submit

from fairlead.core.model.constraints import HOSTNAME, NO_EXECUTE, Constraints, Requirement, Taint
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    Cause,
    DrainNode,
    LabelNode,
    Leaving,
    Nominated,
    Release,
    RemoveNode,
)
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler

ON_N1 = Constraints(selector=(Requirement(HOSTNAME, "In", ("n1",)),))


def gone(s: Scheduler, key: str, now: int) -> None:
    s.handle(Release(key, key, Cause.PREEMPTED_BY_SCHEDULER), now)


# -- a drained node -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
@pytest.mark.parametrize("idle", [False, True])
def test_on_a_drained_node_work_is_stopped_for_what_requires_that_node(rule: str, idle: bool) -> None:
    """It would start there if there were room."""
    s = cluster(nodes={"n1": 4, "n2": 4}, rule=rule)
    submit(s, "v", 4, queue="root.b", node="n1", idle=idle)
    s.handle(DrainNode("n1"), 0)
    submit(s, "daemon", 1, 1, priority=9, tags={TAG_REQUIRED_NODE: "n1"})
    assert stopped(s.schedule(1)) == ["v"]
    check_books(s)
    assert Scheduler.load(s.dump()).schedule(2) == s.schedule(2)
    gone(s, "v", 3)
    assert "daemon@n1" in started(s.schedule(3))
    check_books(s)


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_what_requires_a_node_keeps_the_room_that_is_made_for_it_there_when_that_is_drained(rule: str) -> None:
    s = cluster(nodes={"n1": 4}, rule=rule)
    submit(s, "v", 4, queue="root.b", node="n1")
    submit(s, "daemon", 1, 1, priority=9, tags={TAG_REQUIRED_NODE: "n1"})
    assert stopped(s.schedule(1)) == ["v"]
    s.handle(DrainNode("n1"), 2)
    assert stopped(s.schedule(2)) == []
    check_books(s)
    gone(s, "v", 3)
    assert started(s.schedule(3)) == ["daemon@n1"]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_what_requires_a_drained_node_is_nominated_there_by_report(rule: str) -> None:
    s = cluster(nodes={"n1": 4}, rule=rule)
    submit(s, "v", 4, queue="root.b", node="n1")
    s.handle(DrainNode("n1"), 0)
    submit(s, "daemon", 1, 1, priority=9, tags={TAG_REQUIRED_NODE: "n1"})
    assert stopped(s.handle(Nominated("daemon", "daemon", "n1"), 1)) == ["v"]
    check_books(s)


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
def test_what_requires_a_drained_node_gives_up_a_placeholder_elsewhere_for_it(rule: str) -> None:
    s = cluster(nodes={"n1": 4, "n2": 4}, rule=rule)
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a")), 0)
    of_gang: dict[str, Any] = {"application": "g", "resources": cores(1), "task_group": "t"}
    s.handle(AddAsks((AskSpec(key="p", placeholder=True, node="n2", **of_gang),)), 0)
    s.handle(DrainNode("n1"), 0)
    s.handle(AddAsks((AskSpec(key="real", tags={TAG_REQUIRED_NODE: "n1"}, **of_gang),)), 1)
    assert stopped(s.schedule(1)) == ["p"]
    check_books(s)
    assert started(s.handle(Release("g", "p", Cause.PLACEHOLDER_REPLACED), 2)) == ["real@n1"]
    check_books(s)


# -- so many evictions within the hour ------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
def test_of_idle_work_of_another_group_that_may_lose_only_so_much_that_goes_which_makes_room(rule: str) -> None:
    group = {"resource.group": "true"}
    lender = guaranteed("g", 8, parent=True, properties=group, queues=(QueueSpec(name="a"),))
    once = QueueSpec(name="b", properties={"preemption.evictions.max": "1"})
    borrower = QueueSpec(name="h", parent=True, properties=group, queues=(once,))
    s = cluster(lender, borrower, nodes={"n1": 4, "n2": 4}, rule=rule)
    submit(s, "large", 4, 0, "root.h.b", node="n2", idle=True)
    submit(s, "small", 2, 1, "root.h.b", node="n1", idle=True)
    submit(s, "newest", 2, 2, "root.h.b", node="n1", idle=True)
    submit(s, "w", 4, 3, "root.g.a")
    assert stopped(over_time(s, 3, 2_000)) == ["large"]
    check_books(s)
    submit(s, "w2", 4, 2_001, "root.g.a")
    assert stopped(over_time(s, 2_001, 9_000)) == []


# -- what is kept is lost -------------------------------------------------------------------------------------------


def test_work_that_was_stopped_for_a_node_that_is_lost_may_be_late_without_more_being_stopped() -> None:
    s = cluster(
        guaranteed("a", 8, properties=SOON), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4, "n3": 4}, rule="guarantee"
    )
    for number in (1, 2, 3):
        submit(s, f"v{number}", 4, queue="root.b", node=f"n{number}")
    submit(s, "w", 4)
    assert stopped(over_time(s, 0, 49_999)) == ["v1"]
    s.handle(DrainNode("n1"), 50_000)
    assert stopped(over_time(s, 50_000, 80_000)) == ["v2"]
    check_books(s)
    again = Scheduler.load(s.dump())
    assert stopped(over_time(s, 80_000, 130_000)) == []
    assert stopped(over_time(again, 80_000, 130_000)) == []
    check_books(s)


@pytest.mark.parametrize("restarts", [False, True])
def test_an_ask_whose_swap_comes_to_nothing_may_have_others_stopped_again(restarts: bool) -> None:
    """Work was stopped for it before it found a placeholder; of that it has nothing any more."""
    s = cluster(
        guaranteed("a", 8, properties=SOON), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4, "n3": 4}, rule="guarantee"
    )
    for number in (1, 3):
        submit(s, f"v{number}", 4, queue="root.b", node=f"n{number}")
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a")), 0)
    of_gang: dict[str, Any] = {"application": "g", "resources": cores(4), "task_group": "t"}
    s.handle(DrainNode("n2"), 0)
    s.handle(AddAsks((AskSpec(key="real", **of_gang),)), 0)
    assert stopped(over_time(s, 0, 2_000)) == ["v1"]
    s.handle(AddAsks((AskSpec(key="p", placeholder=True, node="n2", **of_gang),)), 2_001)
    assert stopped(s.schedule(2_001)) == ["p"]
    check_books(s)
    if restarts:
        s = Scheduler.load(s.dump())
    s.handle(RemoveNode("n2"), 2_002)
    s.handle(DrainNode("n1"), 2_002)
    check_books(s)
    assert stopped(over_time(s, 2_002, 30_000)) == ["v3"]
    assert stopped(over_time(s, 30_001, 95_000)) == []
    check_books(s)


# -- what does not count for a guarantee ----------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["guarantee", "both"])
@pytest.mark.parametrize("how", ["withdrawn", "overdue"])
def test_what_goes_for_whatever_reason_does_not_count_as_staying_for_the_guarantee_of_its_queue(
    rule: str, how: str
) -> None:
    s = cluster(guaranteed("a", 4, properties=SOON), guaranteed("b", 2), nodes={"n1": 4}, rule=rule)
    submit(s, "goes", 2, queue="root.b", node="n1")
    submit(s, "stays", 2, queue="root.b", node="n1")
    s.handle(Leaving("goes", "goes", Cause.STOPPED_BY_RM if how == "withdrawn" else Cause.PREEMPTED_BY_SCHEDULER), 0)
    later = 0 if how == "withdrawn" else 100_000
    s.schedule(later)
    submit(s, "w", 2, later)
    check_books(s)
    assert stopped(over_time(Scheduler.load(s.dump()), later, later + 30_000)) == []
    assert stopped(over_time(s, later, later + 30_000)) == []


@pytest.mark.parametrize("rule", ["guarantee", "both"])
def test_idle_work_does_not_make_other_work_of_its_group_one_that_is_above_a_guarantee(rule: str) -> None:
    group = {"resource.group": "true"}
    theirs = guaranteed("h", 4, parent=True, properties=group, queues=(QueueSpec(name="b"),))
    s = cluster(guaranteed("a", 4, properties=SOON), theirs, nodes={"n1": 4, "n2": 4}, rule=rule)
    submit(s, "idle", 4, queue="root.h.b", node="n2", idle=True)
    submit(s, "promised", 4, queue="root.h.b", node="n1")
    submit(s, "w", 4, 1, where=ON_N1)
    assert stopped(over_time(s, 1, 30_000)) == []


def test_by_guarantee_idle_work_of_its_group_does_not_use_up_what_an_ask_is_guaranteed() -> None:
    group = {"resource.group": "true"}
    mine = guaranteed("h", 4, parent=True, properties=group | SOON, queues=(QueueSpec(name="b"),))
    s = cluster(mine, QueueSpec(name="a"), nodes={"n1": 4, "n2": 4}, rule="guarantee")
    submit(s, "idle", 4, queue="root.h.b", node="n2", idle=True)
    submit(s, "other", 4, queue="root.a", node="n1")
    submit(s, "w", 4, 1, "root.h.b", where=ON_N1)
    assert stopped(over_time(s, 1, 30_000)) == ["other"]


# -- bounds on what may be lost -------------------------------------------------------------------------------------


def test_one_larger_work_goes_where_lower_smaller_work_uses_up_what_a_guarantee_leaves() -> None:
    s = cluster(QueueSpec(name="a"), guaranteed("b", 2), nodes={"n1": 3, "n2": 2}, rule="both")
    submit(s, "small", 1, queue="root.b", node="n1")
    submit(s, "large", 2, queue="root.b", node="n1", priority=1)
    submit(s, "elsewhere", 1, queue="root.b", node="n2", priority=9)
    submit(s, "w", 2, 1, priority=5)
    assert stopped(s.schedule(1)) == ["large"]
    check_books(s)


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
def test_one_larger_work_goes_where_its_queue_may_lose_only_one(rule: str) -> None:
    once = QueueSpec(name="b", properties={"preemption.evictions.max": "1"})
    s = cluster(guaranteed("a", 2, properties=SOON), once, nodes={"n1": 4}, rule=rule)
    submit(s, "large", 2, 0, queue="root.b", node="n1", priority=2)
    submit(s, "mid", 1, 1, queue="root.b", node="n1", priority=1)
    submit(s, "small", 1, 2, queue="root.b", node="n1")
    submit(s, "w", 2, 3, priority=5)
    assert stopped(over_time(s, 3, 2_000)) == ["large"]
    check_books(s)


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
def test_work_that_is_reported_on_a_node_with_a_taint_is_told_to_go_as_if_the_taint_came_later(rule: str) -> None:
    sick = LabelNode("n1", {}, (Taint("sick", "", NO_EXECUTE),))
    first, later = cluster(nodes={"n1": 4}, rule=rule), cluster(nodes={"n1": 4}, rule=rule)
    submit(first, "v", 2, node="n1")
    assert stopped(first.handle(sick, 0)) == ["v"]
    later.handle(sick, 0)
    later.handle(AddApplication(ApplicationSpec(id="v", queue="root.a")), 0)
    spec = AskSpec(application="v", key="v", resources=cores(2), node="n1")
    assert stopped(later.handle(AddAsks((spec,)), 0)) == ["v"]
    assert stopped(later.handle(AddAsks((spec,)), 0)) == []
    check_books(later)
