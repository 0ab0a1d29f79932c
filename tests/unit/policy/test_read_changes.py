"""Faults that a second reading found, by theme: a change while running, and a restart."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import application, ask, cores, on_nodes, queue_file, restarted, started, stopped

from fairlead.core.model.conditions import Conditions, Dependency, Outcome
from fairlead.core.model.constraints import Requirement
from fairlead.core.model.decisions import AskRejected, ReservationSwitched, Reserved
from fairlead.core.model.events import (
    AddAsks,
    AddNode,
    Cause,
    Configure,
    MoveApplication,
    Release,
    SetBudget,
    SetWindow,
)
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import (
    AskSpec,
    BudgetSpec,
    NodeSpec,
    QueueSpec,
    RuleSpec,
    TemplateSpec,
    WindowSpec,
)
from fairlead.policy.events.held import following
from fairlead.scheduler import Scheduler

LEAVES = (QueueSpec(name="a"), QueueSpec(name="b"))


# -- restarts -------------------------------------------------------------------------------------------------------


def test_what_a_budget_has_left_by_report_gets_less_with_each_that_is_told_to_stop_also_after_a_restart() -> None:
    s = on_nodes(queue_file(rule="priority"), n1=2)
    application(s, "x")
    for key in ("one", "two"):
        ask(s, "x", key, labels={"app": "x"})
    s.schedule(0)
    selector = (Requirement("app", "In", ("x",)),)
    s.handle(SetBudget(BudgetSpec(name="b", selector=selector, max_unavailable=1, left=2)), 1)
    ask(s, "x", "more", 1, 1)
    s.schedule(1)
    again = restarted(s)
    for each in (s, again):
        window = WindowSpec(name="w", starts_ms=2, length_ms=1_000, stop_running=True)
        assert stopped(each.handle(SetWindow(window), 2)) == ["one", "two"]
        assert [budget.left for budget in each.cluster.admission.budgets] == [0]
    assert again.dump() == s.dump()


def test_those_that_wait_for_the_same_application_go_on_in_the_same_order_after_a_restart() -> None:
    s = on_nodes(queue_file(), n1=1)
    for name in ("awaited", "x", "y"):
        application(s, name)
    after = Conditions(after=(Dependency(application="awaited"),))
    ask(s, "x", "x1", conditions=Conditions(held_by="ann"))
    ask(s, "y", "y1", conditions=after)
    ask(s, "x", "x2", conditions=after)
    both = [following(each.cluster.partitions["default"], "awaited", Outcome.OK) for each in (s, restarted(s))]
    assert both[0] == both[1]
    assert [event.key for event in both[0]] == ["x2", "y1"]


def test_a_restart_in_the_middle_of_a_call_changes_no_timer_of_an_attempt_to_preempt() -> None:
    s = on_nodes(queue_file(QueueSpec(name="a", guaranteed=Limits({"vcore": 1_000})), QueueSpec(name="b")), n1=1)
    application(s, "x")
    ask(s, "x", "k")
    again = restarted(s)
    for each in (s, again):
        assert started(each.schedule(0, 1)) == ["k@n1"]
    assert again.dump() == s.dump()


BACKOFF = {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "10h"}


@pytest.mark.parametrize("queues", [("a", "b"), ("a", "a")])
def test_a_restart_changes_no_order_of_timers_that_are_due_at_the_same_time(queues: tuple[str, str]) -> None:
    """For attempts to preempt, set when what came is put in line: in order of arrival of the applications."""
    leaves = (QueueSpec(name=name, guaranteed=Limits({"vcore": 1_000})) for name in "ab")
    s = on_nodes(queue_file(*leaves), n1=1)
    for name, queue in zip("xy", queues, strict=True):
        application(s, name, f"root.{queue}")
    ask(s, "x", "full", 1, node="n1")
    for name in ("y", "x"):
        ask(s, name, name)
    again = restarted(s)
    for each in (s, again):
        each.schedule(0)
    assert again.dump() == s.dump()


def test_nor_of_those_for_what_rests() -> None:
    s = on_nodes(queue_file(*(QueueSpec(name=name, properties=BACKOFF) for name in "ab")), n1=2, n2=2)
    for name, queue in zip("xy", "ab", strict=True):
        application(s, name, f"root.{queue}")
    for name in ("y", "x"):
        ask(s, name, f"{name}1", 3, priority=1)
        s.schedule(0)
    again = restarted(s)
    for each in (s, again):
        for name in ("x", "y"):
            ask(each, name, f"{name}2", 3, 1)
        each.schedule(1)
    assert again.dump() == s.dump()


# -- limits that applications bring for a queue that placement made ---------------------------------------------------


def stated(**vcore: int) -> dict[str, str]:
    """Tags with a quota or a guarantee of a namespace."""
    return {
        f"namespace.resource{what}": json.dumps({"resources": {"vcore": {"value": n}}}) for what, n in vcore.items()
    }


def test_another_guarantee_of_a_dynamic_queue_changes_its_place_among_its_siblings_at_once() -> None:
    made = (RuleSpec(name="provided", create=True),)
    s = on_nodes(queue_file(QueueSpec(name="p", parent=True), rule="priority", rules=made), n1=3)
    application(s, "z", "root.p.z")
    ask(s, "z", "z", node="n1")
    for name, guaranteed in (("a", 2_000), ("b", 4_000)):
        application(s, name, f"root.p.{name}", tags=stated(guaranteed=guaranteed))
        for number in range(3):
            ask(s, name, f"{name}{number}")
    assert started(s.schedule(0)) == ["a0@n1", "b0@n1"]
    application(s, "c", "root.p.a", 1, tags=stated(guaranteed=100_000))
    s.schedule(1)
    s.handle(Release("z", "z", Cause.FINISHED), 2)
    again = restarted(s)
    assert started(s.schedule(2)) == started(again.schedule(2)) == ["a1@n1"]


def test_another_maximum_of_a_dynamic_queue_has_what_waited_too_long_get_its_turn() -> None:
    parent = QueueSpec(name="p", parent=True, child_template=TemplateSpec(properties={"wait.max": "10s"}))
    s = on_nodes(queue_file(parent, rules=(RuleSpec(name="provided", create=True),)), n1=3)
    application(s, "z", "root.p.z")
    ask(s, "z", "z", node="n1")
    application(s, "a", "root.p.a", tags=stated(quota=2_000))
    ask(s, "a", "large", 3)
    assert s.schedule(20_000) == []
    application(s, "c", "root.p.a", 20_000, tags=stated(quota=8_000))
    assert [d.key for d in s.schedule(20_000) if isinstance(d, ReservationSwitched)] == ["large"]
    check_books(s)


# -- a new queue file -------------------------------------------------------------------------------------------------


def resting() -> Scheduler:
    """An application rests because of what fits nowhere; another ask of it would fit."""
    s = on_nodes(queue_file(QueueSpec(name="a", properties=BACKOFF), QueueSpec(name="b")), n1=2, n2=2)
    application(s, "x")
    ask(s, "x", "large", 3, priority=1)
    ask(s, "x", "next")
    assert started(s.schedule(0)) == []
    return s


def test_nothing_rests_in_a_queue_that_has_no_backoff_any_more() -> None:
    s = resting()
    s.handle(Configure(queue_file()), 2)
    assert started(s.schedule(2)) == ["next@n1"]
    check_books(s)


def test_nor_in_one_to_which_it_was_moved() -> None:
    s = resting()
    s.handle(MoveApplication("x", "root.b"), 2)
    assert started(s.schedule(2)) == ["next@n1"]
    check_books(s)


def test_a_partition_that_comes_back_is_counted_for_budgets_from_the_start() -> None:
    selector = (Requirement("app", "In", ("x",)),)
    alone = queue_file(rule="priority", budgets=(BudgetSpec(name="b", selector=selector, max_unavailable=1),))
    both = replace(alone, partitions=(*alone.partitions, replace(alone.partitions[0], name="gpu")))
    s = Scheduler(both)

    def fill(now: int, label: str) -> int:
        """One runs and one is held, both in the other partition; how many may be stopped."""
        s.handle(AddNode(NodeSpec(id="n1", capacity=cores(1), partition="gpu")), now)
        application(s, "x", now=now, partition="gpu")
        of_it: dict[str, Any] = {"application": "x", "resources": cores(1)}
        runs = AskSpec(key="k", labels={"app": "x"}, **of_it)
        held = AskSpec(key="h", labels={"app": label}, conditions=Conditions(held_by="ann"), **of_it)
        s.handle(AddAsks((runs, held), "gpu"), now)
        s.schedule(now)
        return s.cluster.admission.budgets.left(s.cluster.partitions["gpu"])["b"]

    assert fill(0, "x") == 0
    for now, spec in enumerate((alone, both), 1):
        s.handle(Configure(spec), now)
    assert fill(3, "y") == 1


def test_what_is_held_is_told_that_its_partition_is_removed_like_what_waits() -> None:
    alone = queue_file()
    s = Scheduler(replace(alone, partitions=(*alone.partitions, replace(alone.partitions[0], name="gpu"))))
    application(s, "x", partition="gpu")
    held = AskSpec(application="x", key="held", resources=cores(1), conditions=Conditions(held_by="ann"))
    s.handle(AddAsks((held, AskSpec(application="x", key="waits", resources=cores(1))), "gpu"), 0)
    said = s.handle(Configure(alone), 1)
    assert sorted(d.key for d in said if isinstance(d, AskRejected)) == ["held", "waits"]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_no_node_stays_set_aside_when_rank_decides_from_now_on(rule: str) -> None:
    s = on_nodes(queue_file(), n1=4, n2=4, n3=4, n4=4)
    application(s, "x")
    for number in range(1, 5):
        ask(s, "x", f"runs{number}", 3, node=f"n{number}", priority=20)
    ask(s, "x", "low", 4)
    s.schedule(0)
    assert [d.key for d in s.schedule(2_000) if isinstance(d, Reserved)] == ["low"]
    s.handle(Configure(queue_file(rule=rule)), 2_001)
    for number in range(1, 5):
        ask(s, "x", f"high{number}", 1, 2_001, priority=9)
    assert len(started(s.schedule(2_001))) == 4
    check_books(s)


def test_room_that_others_were_stopped_for_is_kept_when_rank_decides_from_now_on() -> None:
    queues = (QueueSpec(name="a", guaranteed=Limits({"vcore": 4_000}), properties={"preemption.delay": "1ms"}),)
    s = on_nodes(queue_file(*queues, QueueSpec(name="b")), n1=4)
    application(s, "y", "root.b")
    for number in range(2):
        ask(s, "y", f"runs{number}", 2)
    s.schedule(0)
    application(s, "x")
    ask(s, "x", "mine", 4)
    assert sorted(stopped(s.schedule(1))) == ["runs0", "runs1"]
    s.handle(Configure(queue_file(*queues, QueueSpec(name="b"), rule="both")), 2)
    check_books(s)
    for number in range(2):
        ask(s, "y", f"later{number}", 2, 3)
        s.handle(Release("y", f"runs{number}", Cause.PREEMPTED_BY_SCHEDULER), 3)
    said = s.schedule(3)
    assert started(said) == ["mine@n1"]
    assert stopped(said) == []


# -- windows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit_ms", [10_000, None])
def test_what_is_under_way_to_the_place_of_a_placeholder_does_not_run_into_a_window_that_came_into_reach(
    limit_ms: int | None,
) -> None:
    s = on_nodes(queue_file(), n1=2)
    application(s, "g")
    ask(s, "g", "p", 2, placeholder=True, task_group="t")
    s.schedule(0)
    ask(s, "g", "real", 2, 1, task_group="t", time_limit_ms=limit_ms)
    assert stopped(s.schedule(1)) == ["p"]
    s.handle(SetWindow(WindowSpec(name="w", starts_ms=20_000, length_ms=1_000)), 2)
    for each in (s, restarted(s)):
        said = each.schedule(15_000)
        said += each.handle(Release("g", "p", Cause.PLACEHOLDER_REPLACED), 15_000)
        assert started([*said, *each.schedule(15_000)]) == []
        check_books(each)
        assert started(each.schedule(21_000)) == ["real@n1"]
