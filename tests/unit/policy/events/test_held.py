"""Held asks: what is not in line, takes no place, and enters when its conditions are met."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.books.timers import HELD
from fairlead.core.model.conditions import MET, Awaited, BeginsAt, Conditions, Dependency, OnHold, Outcome
from fairlead.core.model.decisions import Allocated, AskRejected, ConditionsChanged, Decision
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Release,
    SetAtOnce,
    SetConditions,
    SetPriority,
    SetQuota,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    QuotaSpec,
)
from fairlead.policy.events import held
from fairlead.scheduler import Scheduler


class Place:
    """One leaf on one node; each ask is an application of its own, called as it."""

    def __init__(self, cores: int = 1, most: int = 0, rule: str = "priority") -> None:
        leaf = QueueSpec(name="a", max_applications=most)
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf,))
        part = PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule))
        self.s = Scheduler(ClusterSpec(partitions=(part,)))
        self.s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": cores}))), 0)

    def ask(self, name: str, now: int = 0, conditions: Conditions | None = None, **fields: Any) -> list[Decision]:
        self.s.handle(AddApplication(ApplicationSpec(id=name, queue="root.a", user="ann")), now)
        given = {"application": name, "key": name, "resources": Resources({"vcore": 1}), "conditions": conditions}
        return self.do(AddAsks((AskSpec(**(given | fields)),)), now)

    def put(self, name: str, conditions: Conditions, now: int = 0, who: str = "ann") -> list[Decision]:
        return self.do(SetConditions(name, name, conditions, who), now)

    def do(self, event: Any, now: int = 0) -> list[Decision]:
        decided = self.s.handle(event, now) + self.s.schedule(now)
        check_books(self.s)
        return decided

    def runs(self, now: int) -> list[str]:
        """What starts by then."""
        return started(self.s.schedule(now))

    @property
    def part(self) -> Any:
        return self.s.cluster.partitions["default"]


def started(decisions: list[Decision]) -> list[str]:
    return [each.key for each in decisions if isinstance(each, Allocated)]


HOLD = Conditions(held_by="ann")


@pytest.mark.parametrize("rule", ["priority", "guarantee"])
def test_what_is_on_hold_starts_when_it_is_released(rule: str) -> None:
    """And not before, however much room there is."""
    p = Place(rule=rule)
    assert started(p.ask("x", conditions=HOLD)) == []
    assert p.runs(10_000) == []
    assert p.s.why("x", "x") == OnHold("ann")
    [changed, *rest] = p.put("x", MET, 10_000)
    assert changed == ConditionsChanged("x", "x", HOLD, MET, "ann")
    assert started(rest) == ["x"]


def test_what_is_to_begin_later_begins_then() -> None:
    """By a timer of the scheduler: nobody has to say so."""
    p = Place()
    p.ask("x", conditions=Conditions(begin_ms=5_000))
    assert (p.s.why("x", "x"), p.s.next_wakeup_ms()) == (BeginsAt(5_000), 5_000)
    assert p.runs(4_999) == []
    assert p.runs(5_000) == ["x"]


def test_a_time_that_has_passed_is_no_condition() -> None:
    """It is in line at once."""
    p = Place()
    assert started(p.ask("x", now=9, conditions=Conditions(begin_ms=9))) == ["x"]


def test_what_waits_in_line_leaves_it_when_it_is_held() -> None:
    """Those behind it go ahead; it keeps its priority, also one that was changed."""
    p = Place()
    p.ask("runs")
    p.ask("x", now=1, priority=1)
    p.ask("y", now=2)
    p.do(SetPriority("x", "x", 7, "ann"), 3)
    p.put("x", HOLD, 4)
    assert started(p.do(Release("runs", "runs", Cause.FINISHED, exit_code=0), 5)) == ["y"]
    p.put("x", MET, 6)
    assert p.part.applications["x"].asks["x"].priority == 7


def test_its_age_is_that_of_its_submission() -> None:
    """Among equals it goes ahead of what was submitted after it, when it is released."""
    p = Place()
    p.ask("runs")
    p.ask("x", now=1, conditions=HOLD)
    p.ask("y", now=2)
    p.put("x", MET, 3)
    assert started(p.do(Release("runs", "runs", Cause.FINISHED, exit_code=0), 5)) == ["x"]


def test_what_is_held_takes_no_place_of_those_that_may_run() -> None:
    """`maxapplications` is about what runs."""
    p = Place(cores=4, most=1)
    p.ask("x", conditions=HOLD)
    p.ask("later", conditions=Conditions(begin_ms=60_000))
    assert started(p.ask("y", now=1)) == ["y"]


def test_the_priority_of_what_is_held_can_be_changed() -> None:
    """It enters with it."""
    p = Place()
    p.ask("x", conditions=HOLD)
    p.do(SetPriority("x", "x", 5, "ann"))
    p.put("x", MET)
    assert p.part.applications["x"].asks["x"].priority == 5


def test_it_can_be_withdrawn() -> None:
    """Its application completes as any other."""
    p = Place()
    p.ask("x", conditions=HOLD)
    p.do(Release("x", "x", Cause.STOPPED_BY_RM), 1)
    assert not p.part.held_asks
    p.runs(60_000)
    assert "x" not in p.part.applications


def test_with_all_of_an_application_its_timer_goes() -> None:
    """Nothing of it is due any longer, while it is kept for what may yet come."""
    p = Place()
    p.ask("x", conditions=Conditions(begin_ms=5_000))
    p.do(Release("x", "", Cause.STOPPED_BY_RM), 1)
    assert "x" in p.part.applications
    assert p.s.cluster.timers.due_ms("default", "x", HELD) is None


def test_it_waits_for_what_becomes_of_others() -> None:
    """Who runs the work says how it ended; what follows is worked out here."""
    p = Place(cores=4)
    p.ask("first")
    p.ask("x", conditions=Conditions(after=(Dependency(application="first", awaited=Awaited.OK),)))
    assert held.following(p.part, "first", Outcome.STARTED) == []
    [event] = held.following(p.part, "first", Outcome.OK)
    assert event == SetConditions("x", "x", MET)
    assert started(p.do(event)) == ["x"]


def test_conditions_can_be_replaced() -> None:
    """Another time, for which the timer is set anew; and back."""
    p = Place()
    p.ask("x", conditions=Conditions(begin_ms=5_000))
    p.put("x", Conditions(begin_ms=9_000))
    assert p.s.next_wakeup_ms() == 9_000
    p.put("x", Conditions(begin_ms=9_000, held_by="ann"))
    assert p.s.next_wakeup_ms() is None
    assert p.runs(20_000) == []


def test_what_is_released_for_a_time_or_an_earlier_one_begins_then() -> None:
    """No timer was set for it before, or one that is too late."""
    p = Place(cores=2)
    p.ask("x", conditions=HOLD)
    p.ask("y", conditions=Conditions(begin_ms=9_000))
    p.put("x", Conditions(begin_ms=5_000))
    p.put("y", Conditions(begin_ms=6_000))
    assert (p.runs(4_999), p.runs(5_000), p.runs(6_000)) == ([], ["x"], ["y"])


def test_of_one_application_each_begins_at_its_time() -> None:
    """One timer for all of them, which is set anew for the next."""
    p = Place(cores=2)
    p.ask("x", conditions=Conditions(begin_ms=5_000))
    later = AskSpec(application="x", key="y", resources=Resources({"vcore": 1}), conditions=Conditions(begin_ms=9_000))
    p.do(AddAsks((later,)))
    assert (p.runs(5_000), p.s.next_wakeup_ms(), p.runs(9_000)) == (["x"], 9_000, ["y"])


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (SetConditions("nothing", "x", HOLD), "nothing waits under nothing/x"),
        (SetConditions("runs", "runs", HOLD), "nothing waits under runs/runs"),
        (SetConditions("gang", "gang", HOLD), "is part of a gang"),
        (AddAsks((AskSpec(application="x", key="x", resources=Resources({"vcore": 1})),)), "x waits already"),
        (
            AddAsks(
                (
                    AskSpec(
                        application="x",
                        key="y",
                        resources=Resources({"vcore": 1}),
                        task_group="g",
                        placeholder=True,
                        conditions=HOLD,
                    ),
                )
            ),
            "a gang waits as a whole",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(event: Any, said: str) -> None:
    """With a reason, and nothing changes."""
    p = Place()
    p.ask("runs")
    p.ask("gang", task_group="g", placeholder=True)
    p.ask("x", conditions=HOLD)
    [refused] = [each for each in p.do(event) if isinstance(each, AskRejected)]
    assert said in refused.reason.sentence()
    assert p.s.why("x", "x") == OnHold("ann")


def test_an_order_that_changes_nothing_says_nothing() -> None:
    """Who waits in line is not on hold."""
    p = Place()
    p.ask("runs")
    p.ask("x")
    assert p.put("x", MET) == []


def test_a_quota_is_asked_again_when_it_enters() -> None:
    """It counts what has been in line alone, so that nobody gets past it by a hold."""
    p = Place(cores=4)
    p.s.handle(SetQuota(QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": 1}))), 0)
    p.ask("x", conditions=HOLD)
    p.ask("y")
    [*_, refused] = [each for each in p.put("x", MET) if isinstance(each, AskRejected)]
    assert refused.reason.code == "quota-exceeded"
    assert not p.part.held_asks


def test_what_is_held_needs_no_room_in_quotas_before_it_enters() -> None:
    """It does not run beside what it waits for."""
    p = Place(cores=4)
    p.s.handle(SetQuota(QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": 1}))), 0)
    assert started(p.ask("x")) == ["x"]
    for name, conditions in (("y", HOLD), ("z", Conditions(after=(Dependency(application="x"),)))):
        assert not [each for each in p.ask(name, conditions=conditions) if isinstance(each, AskRejected)]
    [refused] = [each for each in p.ask("now") if isinstance(each, AskRejected)]
    assert refused.reason.code == "quota-exceeded"
    [unknown] = [each for each in p.ask("w", conditions=HOLD, priority_class="no") if isinstance(each, AskRejected)]
    assert unknown.reason.code == "unknown-priority-class"
    p.do(Release("x", "x", Cause.STOPPED_BY_RM))
    assert started(p.put("y", MET)) == ["y"]


def of_an_array(p: Place, most: int, at_once: int, count: int) -> list[str]:
    """What is refused of an array that is submitted under a quota for so many."""
    p.s.handle(SetQuota(QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": most}))), 0)
    p.s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", user="ann", at_once=at_once)), 0)
    asks = [AskSpec(application="x", key=f"{n}", resources=Resources({"vcore": 1})) for n in range(count)]
    return [each.key for each in p.do(AddAsks(tuple(asks))) if isinstance(each, AskRejected)]


def in_line(p: Place) -> list[str]:
    return list(p.part.applications["x"].asks)


def test_an_array_needs_room_in_quotas_for_as_many_as_are_at_once() -> None:
    p = Place(cores=4)
    assert of_an_array(p, most=2, at_once=2, count=6) == []
    assert in_line(p) == ["0", "1"]
    for n in range(6):
        assert not [e for e in p.do(Release("x", f"{n}", Cause.STOPPED_BY_RM), n) if isinstance(e, AskRejected)]
    assert not p.part.held_asks


@pytest.mark.parametrize("at_once", [4, 0])
def test_so_many_at_once_as_a_quota_has_no_room_for_is_refused(at_once: int) -> None:
    """All that would enter would be refused else."""
    p = Place(cores=4)
    of_an_array(p, most=3, at_once=2, count=6)
    [refused] = p.do(SetAtOnce("x", at_once))
    assert isinstance(refused, AskRejected)
    assert (refused.key, refused.reason.code) == ("", "quota-exceeded")
    assert in_line(p) == ["0", "1"]
    p.do(SetAtOnce("x", 3))
    assert in_line(p) == ["0", "1", "2"]


def test_a_lowered_quota_throws_no_part_of_an_array_out() -> None:
    """They were admitted with those in whose places they enter."""
    p = Place(cores=4)
    of_an_array(p, most=3, at_once=3, count=6)
    p.s.handle(SetQuota(QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": 1}))), 0)
    p.s = Scheduler.load(p.s.dump())
    p.do(Release("x", "0", Cause.STOPPED_BY_RM), 1)
    assert in_line(p) == ["1", "2", "3"]


def test_a_restart_knows_what_is_held() -> None:
    """And goes on with equal decisions."""
    p = Place()
    p.ask("x", conditions=Conditions(begin_ms=5_000))
    p.ask("y", conditions=Conditions(after=(Dependency(application="x"),)))
    again = Scheduler.load(p.s.dump())
    assert again.dump() == p.s.dump()
    assert started(again.schedule(5_000)) == ["x"]
    check_books(again)
