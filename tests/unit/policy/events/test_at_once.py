"""At once: an application of which only so many asks are in line or run at a time; the others wait for their turn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import application, ask, cluster, submit

from fairlead.core.model.conditions import MET, Conditions
from fairlead.core.model.decisions import Allocated, AskRejected, AtOnceChanged, Decision
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Release,
    RemoveNode,
    SetAtOnce,
    SetConditions,
    SetPriority,
)
from fairlead.core.model.reasons import EnoughAtOnce
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
    QuotaSpec,
    RetrySpec,
)
from fairlead.scheduler import Scheduler


class Place:
    """One node, and the application `a` with asks `1`, `2`, ..., of which `at_once` may be at a time."""

    restarts = True
    """After each event; what a restart works out anew is then not seen to be missing."""

    def __init__(self, asks: int, at_once: int, cores: int = 100, most: int = 0, **fields: Any) -> None:
        leaf = QueueSpec(name="a", max_applications=most)
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf,))
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
        self.now = 0
        self.do(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": cores}))))
        self.do(AddApplication(ApplicationSpec(id="a", queue="root.a", at_once=at_once)))
        self.first = self.do(AddAsks(tuple(self.ask(str(n), **fields) for n in range(1, asks + 1))))

    @staticmethod
    def ask(key: str, application: str = "a", **fields: Any) -> AskSpec:
        return AskSpec(application=application, key=key, resources=Resources({"vcore": 1}), **fields)

    def do(self, event: Any) -> list[Decision]:
        decided = self.s.handle(event, self.now) + self.s.schedule(self.now)
        check_books(self.s)
        if self.restarts:
            again = Scheduler.load(json.loads(json.dumps(self.s.dump())))
            assert again.dump() == self.s.dump()
            self.s = again  # What is not written down decides nothing.
        return decided

    def end(self, key: str, cause: Cause = Cause.FINISHED, exit_code: int = 0) -> list[str]:
        return started(self.do(Release("a", key, cause, exit_code=exit_code)))

    def why(self, key: str) -> Any:
        return self.s.why("a", key)


def started(decided: list[Decision]) -> list[str]:
    return [each.key for each in decided if isinstance(each, Allocated)]


def test_no_more_run_than_may_and_the_next_starts_when_one_ends() -> None:
    """In order, in the same event."""
    p = Place(5, at_once=2)
    assert started(p.first) == ["1", "2"]
    assert p.why("4") == EnoughAtOnce("a", 2, 0, 2)
    assert p.why("4").sentence() == "is part of a, of which 2 of at most 2 run"
    assert (p.end("2"), p.end("1"), p.end("3"), p.end("4"), p.end("5")) == (["3"], ["4"], ["5"], [], [])


def test_what_is_in_line_counts() -> None:
    """A third one gets no place in line before the second has had its room."""
    p = Place(3, at_once=2, cores=1)
    assert started(p.first) == ["1"]
    assert p.why("3") == EnoughAtOnce("a", 1, 1, 2)
    said = "is part of a, of which at most 2 may run at a time: 1 runs and 1 waits in line"
    assert p.why("3").sentence() == said
    p.do(Release("a", "2"))
    assert p.why("3").code == "cluster-full"


def test_where_none_runs_nothing_is_said_to() -> None:
    """It said "of which 0 of at most 1 run and 1 is in line"."""
    said = "is part of a, of which at most 1 may run at a time: 1 waits in line"
    assert EnoughAtOnce("a", running=0, in_line=1, at_once=1).sentence() == said


def test_withdrawn_ones_are_passed_over() -> None:
    """Whether they wait for their turn, or are in line."""
    p = Place(5, at_once=1)
    p.do(Release("a", "2"))
    p.do(Release("a", "3"))
    assert p.end("1") == ["4"]


def test_a_hold_gives_the_turn_to_another_one() -> None:
    """Who is released waits for a turn."""
    p = Place(4, at_once=1, cores=0, conditions=None)
    p.do(SetConditions("a", "1", Conditions(held_by="ann")))
    assert p.why("2").code == "too-big-for-every-node"
    p.do(SetConditions("a", "1", MET))
    assert isinstance(p.why("1"), EnoughAtOnce)
    p.do(SetConditions("a", "3", Conditions(held_by="ann")))
    p.do(Release("a", "2"))
    assert (p.why("4").code, p.why("1").code, p.why("3").code) == (
        "too-big-for-every-node",
        "enough-at-once",
        "on-hold",
    )


def test_what_is_released_has_its_turn_at_once_where_there_is_one() -> None:
    """Nothing else has to end or come for it."""
    p = Place(2, at_once=2, conditions=Conditions(held_by="ann"))
    assert started(p.do(SetConditions("a", "2", MET))) == ["2"]


def test_those_that_wait_for_a_time_wait_for_their_turn_then() -> None:
    """At that time as many enter as may."""
    p = Place(3, at_once=2, conditions=Conditions(begin_ms=50))
    assert (p.s.last_timer_ms(), p.why("1").code) == (50, "begins-at")
    p.now = 50
    assert started(p.s.schedule(50)) == ["1", "2"]
    check_books(p.s)
    assert isinstance(p.why("3"), EnoughAtOnce)
    assert p.end("1") == ["3"]


@pytest.mark.parametrize("restarts", [True, False])
def test_a_higher_priority_has_its_turn_first(monkeypatch: pytest.MonkeyPatch, restarts: bool) -> None:
    """Also one that was raised while it waited for its turn."""
    monkeypatch.setattr(Place, "restarts", restarts)
    p = Place(4, at_once=1)
    p.do(SetPriority("a", "3", 9, "ann"))
    assert p.end("1") == ["3"]
    assert p.end("3") == ["2"]


def test_what_is_tried_again_counts_while_it_is_in_line_or_runs() -> None:
    """In its back-off another one has its place; then its turn is the next."""
    p = Place(4, at_once=1, retry=RetrySpec(limit=3, backoff_ms=100))
    assert p.end("1", exit_code=3) == ["2"]
    assert p.why("1#2").code == "attempt-held-back"
    p.now = 150
    assert started(p.s.schedule(150)) == []
    assert isinstance(p.why("1#2"), EnoughAtOnce)
    assert p.end("2") == ["1#2"]


def test_tried_again_at_once_it_goes_ahead() -> None:
    """Without a back-off nobody comes between."""
    p = Place(3, at_once=1, retry=RetrySpec(limit=3))
    assert p.end("1", exit_code=3) == ["1#2"]
    assert p.end("1#2") == ["2"]


def test_its_application_keeps_its_place_among_those_that_run() -> None:
    """The next of it goes on, though another application waits for the place."""
    p = Place(2, at_once=1, most=1)
    p.do(AddApplication(ApplicationSpec(id="b", queue="root.a")))
    p.do(AddAsks((p.ask("b1", "b"),)))
    assert p.end("1") == ["2"]
    assert p.end("2") == ["b1"]


def test_the_bound_can_be_changed() -> None:
    """More start at once; with fewer, those in line leave it and what runs goes on."""
    p = Place(6, at_once=1)
    decided = p.do(SetAtOnce("a", 3, "ann", "there is room"))
    assert AtOnceChanged("a", 1, 3, "ann", "there is room") in decided
    assert started(decided) == ["2", "3"]
    p.do(SetAtOnce("a", 2, "ann"))
    assert (p.end("1"), p.end("2")) == ([], ["4"])
    assert started(p.do(SetAtOnce("a", 0, "ann"))) == ["5", "6"]


def test_those_in_line_leave_it_when_fewer_may() -> None:
    """The last first, in their order."""
    p = Place(5, at_once=4, cores=1)
    p.do(SetAtOnce("a", 2, "ann"))
    codes = [p.why(key).code for key in "2345"]
    assert codes == ["cluster-full", "enough-at-once", "enough-at-once", "enough-at-once"]
    assert (p.end("1"), p.end("2"), p.end("3")) == (["2"], ["3"], ["4"])


def test_a_bound_that_makes_no_sense_is_refused() -> None:
    """And one of an application that is not there."""
    p = Place(1, at_once=1)
    for event, said in ((SetAtOnce("x", 2), "there is no application x"), (SetAtOnce("a", -1), "-1 at once cannot be")):
        refused = p.do(event)[0]
        assert isinstance(refused, AskRejected)
        assert said in refused.reason.sentence()


def test_a_lost_node_gives_turns_back() -> None:
    """What ran there is gone, and others wait in line instead."""
    p = Place(3, at_once=2)
    p.do(RemoveNode("n"))
    assert started(p.do(AddNode(NodeSpec(id="m", capacity=Resources({"vcore": 9}))))) == ["3"]


def test_a_further_attempt_that_leaves_the_line_for_its_turn_is_not_asked_about_its_quota() -> None:
    """It was admitted with the first; what is less than before at once changes nothing about that."""
    quota = QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": 3000}))
    s = cluster(nodes={"n1": 3}, quotas=(quota,))
    application(s, "arr", "root.a", at_once=2)
    for key, size in (("p0", 2), ("p1", 1)):
        ask(s, "arr", key, size, retry=RetrySpec(limit=3))
    s.schedule(0)
    s.handle(Release("arr", "p0", Cause.INTERRUPTED), 2)
    s.handle(SetAtOnce("arr", 1), 3)
    submit(s, "other", 2, 4)
    ended = s.handle(Release("arr", "p1", Cause.FINISHED, exit_code=0), 5)
    assert not [each for each in ended if isinstance(each, AskRejected)]
    assert s.cluster.partitions["default"].find_ask("arr", "p0#2") is not None
