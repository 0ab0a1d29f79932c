"""Held asks: what is kept out of the line, who waits for which application, and what is written down of it."""

from __future__ import annotations

import json

from invariants.admission import check_held_asks

from fairlead.core.books.applications import Application
from fairlead.core.books.held_asks import HeldAsks
from fairlead.core.model.conditions import MET, Conditions, Dependency
from fairlead.core.model.events import AddApplication
from fairlead.core.model.reasons import AttemptHeldBack, BeginsAt, EnoughAtOnce, OnHold
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, PartitionSpec, QueueSpec, RetrySpec
from fairlead.scheduler import Scheduler


def spec(key: str, attempt: int = 1) -> AskSpec:
    retry = RetrySpec(limit=3) if attempt > 1 else None
    return AskSpec(application="a", key=key, resources=Resources({"vcore": 1}), attempt=attempt, retry=retry)


def waits_for(*applications: str) -> Conditions:
    return Conditions(after=tuple(Dependency(application=each) for each in applications))


def test_who_waits_for_an_application_is_known() -> None:
    """Until it is taken out, its conditions change, or what it waits for can never be."""
    held = HeldAsks()
    held.add("a", spec("1"), waits_for("x", "y"))
    held.add("b", spec("2"), waits_for("x"))
    assert [(app, one.spec.key) for app, one in held.awaiting("x")] == [("a", "1"), ("b", "2")]
    held.take("a", "1")
    assert (held.awaiting("y"), [app for app, _ in held.awaiting("x")]) == ([], ["b"])
    one = held.get("b", "2")
    assert one is not None
    held.change("b", one, Conditions(after=(Dependency(application="x", never="failed"),)))
    assert held.awaiting("x") == []
    check_held_asks(held)


def application(at_once: int = 0) -> Application:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    scheduler = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    scheduler.handle(AddApplication(ApplicationSpec(id="a", queue="root.a", at_once=at_once)), 0)
    return scheduler.cluster.partitions["default"].applications["a"]


def test_the_next_time_is_known() -> None:
    """Of those that wait for a time that is to come, and for nothing else."""
    held = HeldAsks()
    held.add("a", spec("1"), Conditions(begin_ms=20))
    held.add("a", spec("2"), Conditions(begin_ms=10))
    held.add("a", spec("3"), Conditions(begin_ms=5, held_by="ann"))
    held.add("a", spec("4"), MET)
    assert (held.next_due_ms("a", 4), held.next_due_ms("a", 10), held.next_due_ms("a", 20)) == (10, 20, None)
    held.drop("a")
    assert (bool(held), held.next_due_ms("a", 0)) == (False, None)


def test_those_whose_time_has_come_are_taken_in_the_order_in_which_they_were_held() -> None:
    """Each once, and none whose conditions are others by now."""
    held = HeldAsks()
    for key, begin_ms in (("1", 30), ("2", 10), ("3", 20), ("4", 10), ("5", 10)):
        held.add("a", spec(key), Conditions(begin_ms=begin_ms))
    later, back = held.get("a", "4"), held.get("a", "5")
    assert later is not None
    assert back is not None
    held.change("a", later, Conditions(begin_ms=50))
    held.change("a", back, Conditions(held_by="ann", begin_ms=10))
    held.change("a", back, Conditions(begin_ms=10))
    assert [one.spec.key for one in held.take_due("a", 20)] == ["2", "3", "5"]
    assert held.take_due("a", 20) == []
    assert held.next_due_ms("a", 20) == 30


def test_times_that_change_again_and_again_leave_nothing_behind() -> None:
    held = HeldAsks()
    held.add("a", spec("1"), Conditions(begin_ms=5))
    [one] = held.of("a")
    for begin_ms in range(1_000, 2_000):
        held.change("a", one, Conditions(begin_ms=begin_ms))
    assert len(held._due["a"]) < 20
    assert held.next_due_ms("a", 0) == 1_999


def test_priorities_that_change_again_and_again_do_not_make_it_long() -> None:
    """Of those that wait for their turn; each is there as it is now."""
    held = HeldAsks()
    for key in ("1", "2"):
        held.add("a", spec(key), MET)
    one, two = held.of("a")
    held.await_turn("a", two)
    for priority in range(2_000):
        one.change_priority(-priority)
        held.await_turn("a", one)
    assert len(held._turns["a"]) < 20
    order = []
    while (first := held.next_in_turn("a", 0)) is not None:
        order.append(first.spec.key)
        held.take("a", first.spec.key)
    assert order == ["2", "1"]
    check_held_asks(held)


def test_whose_turn_it_is() -> None:
    """What is tried again, then a higher priority, then what was held earlier; what changed since has its new turn."""
    held = HeldAsks()
    for key, attempt in (("1", 1), ("2", 1), ("3", 1), ("4#2", 2), ("5", 1)):
        held.add("a", spec(key, attempt), MET)
        held.await_turn("a", held.of("a")[-1])
    third, last = held.get("a", "3"), held.get("a", "5")
    assert third is not None
    assert last is not None
    third.change_priority(7)
    held.await_turn("a", third)
    held.change("a", last, Conditions(held_by="ann"))
    order = []
    while (found := held.next_in_turn("a", 0)) is not None:
        order.append(found.spec.key)
        held.take("a", found.spec.key)
    assert (order, held.has("a")) == (["4#2", "3", "1", "2"], True)


def test_an_attempt_in_its_back_off_says_so() -> None:
    """Unless somebody put it on hold meanwhile; when that is over it waits for its turn."""
    held, app = HeldAsks(), application(at_once=3)
    held.add("a", spec("1#2", attempt=2), Conditions(begin_ms=20))
    held.add("a", spec("2"), Conditions(begin_ms=20))
    attempt, plain = held.of("a")
    assert attempt.reason(app, 19) == AttemptHeldBack("1#2", 2, 4, 20)
    assert plain.reason(app, 19) == BeginsAt(20)
    assert attempt.reason(app, 20) == plain.reason(app, 20) == EnoughAtOnce("a", 0, 0, 3)
    held.change("a", attempt, Conditions(begin_ms=20, held_by="ann"))
    assert attempt.reason(app, 20) == OnHold("ann")


def test_it_comes_back_as_it_was_written_down() -> None:
    """With who waits for what."""
    held = HeldAsks()
    held.add("a", spec("1"), waits_for("x"))
    held.add("a", spec("2"), Conditions(held_by="ann", begin_ms=7))
    held.add("a", spec("3"), MET)
    rows = json.loads(json.dumps(held.dump()))
    again = HeldAsks.load(rows, 5)
    assert again.dump() == held.dump()
    assert [one.spec.key for _, one in again.awaiting("x")] == ["1"]
    third = again.next_in_turn("a", 5)
    assert third is not None
    assert third.spec.key == "3"
    check_held_asks(again)


def test_what_is_put_ahead_has_the_first_turns() -> None:
    """In its order, before all others of that priority."""
    held = HeldAsks()
    held.add("a", spec("1"), MET)
    held.await_turn("a", held.of("a")[0])
    held.add_ahead("a", [spec("2"), spec("3")])
    order = []
    while (found := held.next_in_turn("a", 0)) is not None:
        order.append(found.spec.key)
        held.take("a", found.spec.key)
    assert order == ["2", "3", "1"]


def test_what_waits_for_something_else_from_now_on_is_found_there() -> None:
    held = HeldAsks()
    held.add("a", spec("1"), waits_for("x"))
    [one] = held.of("a")
    held.change("a", one, waits_for("y"))
    assert (held.awaiting("x"), [each.spec.key for _, each in held.awaiting("y")]) == ([], ["1"])
    check_held_asks(held)
