from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fairlead.core.model.conditions import Awaited, Conditions, Dependency
from fairlead.core.model.constraints import Constraints
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_GANG_COMES_AGAIN,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RetrySpec,
)
from fairlead.insight import futures
from fairlead.insight.forecast import Forecast, Share, forecast, kind_of, shifts, unknown, waiting
from fairlead.insight.runtimes import KEPT, Kind, Runtimes
from fairlead.insight.scorecard import Scorecard
from fairlead.insight.suppositions import Supposition
from fairlead.insight.whatif import suppose
from fairlead.scheduler import Scheduler

MINUTE = 60_000
KIND = Kind("ann", "train", "root.a")


def lab(*limits_ms: int | None) -> Scheduler:
    """One place; the first work runs and the others wait."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"gpu": 1}))), 0)
    for number, limit_ms in enumerate(limits_ms):
        key = f"w{number}"
        s.handle(AddApplication(ApplicationSpec(id=key, queue="root.a", user="ann", tags={"name": "train"})), 0)
        ask = AskSpec(application=key, key=key, resources=Resources({"gpu": 1}), time_limit_ms=limit_ms)
        s.handle(AddAsks((ask,)), 0)
        s.schedule(0)
    return s


def known(run_ms: int, count: int = KEPT) -> Runtimes:
    """So many ends that what is guessed without any hardly counts."""
    runtimes = Runtimes()
    for _ in range(count):
        runtimes.learn(KIND, run_ms)
    return runtimes


def test_who_waits_starts_when_those_ahead_have_ended() -> None:
    """With run times that are known to the millisecond, the start is."""
    told = forecast(lab(None, None, None), known(10 * MINUTE), draws=3)
    first, second = (told.expected(("default", key, key)) for key in ("w1", "w2"))
    assert (first.earliest_ms, first.median_ms, first.latest_ms) == (10 * MINUTE,) * 3
    assert (second.median_ms, second.ahead, second.never) == (20 * MINUTE, 1, 0.0)


def test_a_future_with_too_much_in_it_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not seen by then starts later; it is not said that it never does."""
    monkeypatch.setattr(futures, "EVENTS_MAX", 1)
    told = forecast(lab(None, None, None), known(10 * MINUTE), draws=3)
    first, second = (told.expected(("default", key, key)) for key in ("w1", "w2"))
    assert (first.median_ms, first.broken_off) == (10 * MINUTE, 0)
    assert (second.earliest_ms, second.median_ms, second.broken_off, second.never) == (10 * MINUTE, None, 3, 0.0)


@pytest.mark.parametrize(
    "leaf",
    [
        QueueSpec(name="a", properties={"application.unschedasks.backoff": "1"}),
        QueueSpec(name="a", guaranteed=Limits({"gpu": 8})),
    ],
    ids=["rests", "tries to preempt"],
)
def test_what_is_tried_over_and_over_costs_no_future(leaf: QueueSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """It rests, or tries in vain, thousands of times until there is room: the longer that lasts, the fewer of them are
    played.
    """
    monkeypatch.setattr(futures, "EVENTS_MAX", 500)
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf,))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    for number in range(2):
        s.handle(AddNode(NodeSpec(id=f"n{number}", capacity=Resources({"gpu": 3}))), 0)
    # Two of three places are taken on each node, and what waits wants two on one.
    for key, count in (("runs", 2), ("rests", 2)):
        s.handle(AddApplication(ApplicationSpec(id=key, queue="root.a", user="ann", tags={"name": "train"})), 0)
        two = AskSpec(application=key, key="", resources=Resources({"gpu": 2}))
        s.handle(AddAsks(tuple(replace(two, key=f"{key}-{number}") for number in range(count))), 0)
        s.schedule(0)
    told = forecast(s, known(20 * 60 * MINUTE), draws=1)
    assert told.expected(("default", "rests", "rests-1")).median_ms == 20 * 60 * MINUTE


def test_an_attempt_that_succeeds_since_time_went_on_is_made_when_it_is_due() -> None:
    """The first of those every 15 seconds after what runs has run as long as it may; another one tries in vain."""
    queues = (
        QueueSpec(name="a", guaranteed=Limits({"gpu": 1}), properties={"preemption.delay": "1s"}),
        QueueSpec(name="b", properties={"preemption.min.runtime": "100s"}),
        QueueSpec(name="c", guaranteed=Limits({"gpu": 2}), properties={"preemption.delay": "900ms"}),
        QueueSpec(name="d", guaranteed=Limits({"gpu": 1})),
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"gpu": 2}))), 0)
    for key, gpus in (("b", 1), ("d", 1), ("c", 2), ("a", 1)):
        s.handle(AddApplication(ApplicationSpec(id=key, queue=f"root.{key}", user="ann", tags={"name": "train"})), 0)
        s.handle(AddAsks((AskSpec(application=key, key=key, resources=Resources({"gpu": gpus})),)), 0)
        s.schedule(0)
    assert forecast(s, known(60 * MINUTE), draws=1).starts["default", "a", "a"] == (106_000,)


def test_a_time_limit_ends_it_at_the_latest() -> None:
    """Whatever was learned."""
    told = forecast(lab(2 * MINUTE, None), known(10 * MINUTE), draws=3)
    assert told.expected(("default", "w1", "w1")).latest_ms == 2 * MINUTE


def test_what_runs_for_long_has_less_to_go() -> None:
    """The time that it has run already counts."""
    s = lab(None, None)
    s.schedule(4 * MINUTE)
    assert forecast(s, known(10 * MINUTE), draws=3).expected(("default", "w1", "w1")).median_ms == 10 * MINUTE


def test_the_same_state_and_seed_give_the_same_forecast() -> None:
    """And another seed another one."""
    s, runtimes = lab(None, None, None), Runtimes()
    first = forecast(s, runtimes, seed=1)
    assert forecast(s, runtimes, seed=1) == first
    assert forecast(s, runtimes, seed=1, fork=True) == first
    assert forecast(s, runtimes, seed=2).starts != first.starts


def test_it_says_what_it_rests_on() -> None:
    """Without experience it says so."""
    told = " ".join(forecast(lab(None, None), Runtimes(), draws=1).assumptions)
    assert "no experience (1)" in told
    assert "less than 10 minutes" in told
    assert "user and name (1)" in " ".join(forecast(lab(None, None), known(1), draws=1).assumptions)


def test_it_says_that_devices_stay_where_they_are() -> None:
    """Else it would seem certain that what waits for one never starts."""
    s = lab(None, None)
    assert not any("devices" in each for each in forecast(s, Runtimes(), draws=1).assumptions)
    ask = AskSpec(application="w1", key="late", resources=Resources({"gpu": 1}), where=Constraints(devices="1 gpu"))
    s.handle(AddAsks((ask,)), 0)
    assert any("devices stay" in each for each in forecast(s, Runtimes(), draws=1).assumptions)


def test_one_is_said_as_one() -> None:
    """One end, and one that runs: no `1 ends`."""
    runtimes = Runtimes()
    runtimes.learn(Kind("ann", "", "root.a"), MINUTE)
    told = " ".join(forecast(lab(MINUTE, None), runtimes, draws=1).assumptions)
    assert "drawn from 1 end, mostly" in told
    assert "1 of 1 running has a time limit, which ends it at the latest" in told


def test_asking_changes_nothing() -> None:
    """Futures are played on copies."""
    s = lab(None, None, None)
    before = s.dump()
    forecast(s, known(MINUTE), draws=2)
    assert s.dump() == before


def test_what_can_never_start_is_never_expected() -> None:
    """More than every node has."""
    s = lab(None)
    s.handle(AddApplication(ApplicationSpec(id="huge", queue="root.a")), 0)
    s.handle(AddAsks((AskSpec(application="huge", key="huge", resources=Resources({"gpu": 9})),)), 0)
    told = forecast(s, known(MINUTE), draws=2).expected(("default", "huge", "huge"))
    assert (told.median_ms, told.latest_ms, told.never) == (None, None, 1.0)


def test_whose_start_an_event_moves() -> None:
    """The end of what runs brings everybody forward."""
    s = lab(None, None, None)
    moved = shifts(s, (Release("w0", "w0"),), known(10 * MINUTE), draws=3)
    assert moved.unseen == 0
    assert {(m.key, m.before_ms, m.after_ms) for m in moved.found} == {
        ("w1", 10 * MINUTE, 0),
        ("w2", 20 * MINUTE, 10 * MINUTE),
    }


@pytest.mark.parametrize("key", ["w1", ""], ids=["it", "all of its application"])
def test_what_is_withdrawn_has_no_start_that_moves(key: str) -> None:
    """Only what comes behind it has: it is not said that it is expected later, or never."""
    moved = shifts(lab(None, None, None), (Release("w1", key),), known(10 * MINUTE), draws=3)
    assert [(m.key, m.before_ms, m.after_ms) for m in moved.found] == [("w2", 20 * MINUTE, 10 * MINUTE)]
    assert moved.unseen == 0


def two_partitions() -> tuple[Scheduler, Configure]:
    """In each something runs, and something waits; and a queue file without the second one."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    both = [PartitionSpec(name=name, root=root) for name in ("default", "other")]
    s = Scheduler(ClusterSpec(partitions=tuple(both)))
    for name in ("default", "other"):
        s.handle(AddNode(NodeSpec(id=f"n-{name}", partition=name, capacity=Resources({"gpu": 1}))), 0)
        for key in ("runs", "waits"):
            s.handle(AddApplication(ApplicationSpec(id=key, queue="root.a", user="ann", partition=name)), 0)
            s.handle(AddAsks((AskSpec(application=key, key=key, resources=Resources({"gpu": 1})),), name), 0)
        s.schedule(0)
    return s, Configure(ClusterSpec(partitions=tuple(both[:1])))


def test_what_runs_in_a_partition_that_would_be_gone_ends_with_it() -> None:
    """The answer says who would not start any more; it breaks on nothing that would have ended there."""
    s, without = two_partitions()
    moved = shifts(s, (without,), known(10 * MINUTE), draws=3)
    assert [(m.partition, m.key, m.after_ms) for m in moved.found] == [("other", "waits", None)]


def test_a_queue_file_without_a_partition_is_not_refused_for_what_it_ends() -> None:
    """What runs and what waits there would be gone, and that is said."""
    s, without = two_partitions()
    answer = suppose(s, Supposition((without,), (), "the queue file takes effect"), fork=False)
    assert answer.refused == []
    gone = [(job.partition, job.key, job.user, job.node) for job in answer.ends.jobs]
    assert gone == [("other", "runs", "ann", "n-other"), ("other", "waits", "ann", "")]


def test_where_nothing_has_ended_yet_the_times_are_said_to_be_guessed() -> None:
    """As `when` says it; and nothing is said of times that were not asked for."""
    withdrawn = Supposition((Release("w1", "w1", Cause.STOPPED_BY_RM),), (), "w1 is cancelled")
    there = ((Runtimes(), False), (known(10 * MINUTE, 1), True), (None, True))
    for runtimes, is_known in there:
        answer = suppose(lab(None, None, None), withdrawn, runtimes=runtimes, fork=False)
        assert answer.known is is_known


def test_what_is_not_submitted_yet_is_foreseen_behind_what_waits() -> None:
    """By the futures in which it comes now; those without it know nothing of it."""
    s = lab(None, None)
    new = ("default", "new", "new")
    ask = AskSpec(application="new", key="new", resources=Resources({"gpu": 1}))
    events = (AddApplication(ApplicationSpec(id="new", queue="root.a")), AddAsks((ask,)))
    told = forecast(s, known(10 * MINUTE), draws=2, wanted=[new], events=events)
    assert (told.expected(new).median_ms, told.expected(("default", "w1", "w1")).median_ms) == (
        20 * MINUTE,
        10 * MINUTE,
    )
    assert told.about[new].queue == "root.a"
    assert "new" not in s.cluster.partitions["default"].applications


def test_names_of_what_waits() -> None:
    """In the order of arrival; kinds are by user, name and queue."""
    s = lab(None, None, None)
    assert [name[2] for name in waiting(s)] == ["w1", "w2"]
    assert kind_of(s.cluster.partitions["default"].applications["w1"].asks["w1"]) == KIND


def looks(count: int, futures: int = 99) -> Share:
    """Each future may be looked at so often; nothing is left after so many futures."""

    def share(number: int, draws: int) -> Callable[[], bool] | None:
        left = iter(range(count))
        return (lambda: next(left, None) is None) if number < futures else None

    return share


def test_where_time_is_short_it_says_later_than() -> None:
    """What was seen before a future was broken off is as it is; of the rest only that it is later."""
    s, runtimes = lab(None, None, None, None), known(10 * MINUTE)
    names = [("default", key, key) for key in ("w1", "w2", "w3")]
    whole = forecast(s, runtimes, draws=1)
    broken = (forecast(s, runtimes, draws=1, share=looks(count)) for count in range(20))
    told = next(each for each in broken if each.starts[names[1]] != (None,))
    assert told.seen_ms == (20 * MINUTE,)
    assert [told.expected(name) for name in names[:2]] == [whole.expected(name) for name in names[:2]]
    last = told.expected(names[2])
    assert (last.earliest_ms, last.median_ms, last.latest_ms) == (20 * MINUTE, None, None)
    assert (last.broken_off, last.ahead, last.never) == (1, 2, 0.0)
    card = Scorecard()
    assert card.promise(0, last) == last
    assert not card.is_promised(names[2])
    card.promise(0, told.expected(names[1]))
    assert card.is_promised(names[1])


def test_a_forecast_ends_with_its_time() -> None:
    """One future is begun, however little time there is; the others only while there is some."""
    s, runtimes = lab(None, None, None), Runtimes()
    none = forecast(s, runtimes, draws=9, share=looks(0, futures=0))
    assert (none.draws, none.seen_ms) == (1, (0,))
    assert none.expected(("default", "w2", "w2")).earliest_ms == 0
    assert forecast(s, runtimes, draws=9, share=looks(5, futures=4)).draws == 4


def test_what_is_said_of_broken_futures_holds_in_whole_ones() -> None:
    """The same futures, each broken off at another place: no bound is beyond what those show."""
    s, runtimes = lab(*[None] * 8), Runtimes()
    whole = forecast(s, runtimes, draws=7)
    unknown = 0
    for first in range(9):
        told = forecast(s, runtimes, draws=7, share=lambda n, draws, first=first: looks((first + 3 * n) % 9)(n, draws))  # type: ignore[misc]
        assert told.draws == 7
        for name in whole.starts:
            is_, says = whole.expected(name), told.expected(name)
            assert is_.earliest_ms is not None
            assert says.earliest_ms is not None
            assert says.earliest_ms <= is_.earliest_ms
            assert says.median_ms in (None, is_.median_ms)
            assert says.latest_ms in (None, is_.latest_ms)
            if not says.broken_off:
                assert says == is_
            unknown += says.median_ms is None
    assert unknown > 10


def test_what_is_not_seen_in_time_is_not_said_to_move() -> None:
    """With less and less time: whatever is said to move does so as far with all the time there is."""
    s, runtimes = lab(*[None] * 8), known(10 * MINUTE)
    end = (Release("w0", "w0"),)
    whole = shifts(s, end, runtimes, draws=3)
    assert len(whole.found) == 7
    seen = []
    for count in range(20):
        told = shifts(s, end, runtimes, draws=3, spending=lambda count=count: looks(count))  # type: ignore[misc]
        assert set(told.found) <= set(whole.found)
        assert len(told.found) + told.unseen == 7
        seen.append(len(told.found))
    assert seen[0] == 0
    assert seen[-1] == 7
    assert seen == sorted(seen)
    assert len(set(seen)) > 4


def test_only_futures_that_were_played_both_ways_are_compared() -> None:
    """The second forecast has time for one future: the middle of five without the change says nothing about it."""
    s, runtimes = lab(*[None] * 4), Runtimes()
    times = iter([looks(99), looks(99, futures=1)])
    told = shifts(s, (), runtimes, draws=5, spending=lambda: next(times))
    assert (told.found, told.unseen) == ((), 0), "nothing happens, so nothing moves"


def test_without_history_there_are_bounds_and_no_middle() -> None:
    """By the time limits, where all that is before it declares one."""
    told = forecast(lab(2 * MINUTE, 5 * MINUTE), Runtimes(), draws=2)
    found = unknown(told, ("default", "w1", "w1"))
    assert told.ends == 0
    assert (found.known, found.median_ms, found.earliest_ms, found.latest_ms) == (False, None, 0, 2 * MINUTE)
    open_ended = forecast(lab(None, None), Runtimes(), draws=2)
    assert unknown(open_ended, ("default", "w1", "w1")).latest_ms is None
    behind = forecast(lab(2 * MINUTE, None, MINUTE), Runtimes(), draws=2)
    bounds = [unknown(behind, ("default", key, key)).latest_ms for key in ("w1", "w2")]
    assert bounds == [2 * MINUTE, None], "what it comes behind may run for ever, though its own start has a bound"


def test_what_enters_the_line_later_may_come_first_and_run_for_ever() -> None:
    """It declares no limit, so that what may come behind it has no bound; what is on hold enters not by itself."""
    for conditions, bound_ms in ((Conditions(begin_ms=1), None), (Conditions(held_by="ann"), 2 * MINUTE)):
        s = lab(2 * MINUTE, 5 * MINUTE)
        s.handle(AddApplication(ApplicationSpec(id="later", queue="root.a", user="ann")), 0)
        ask = AskSpec(
            application="later", key="later", resources=Resources({"gpu": 1}), priority=9, conditions=conditions
        )
        s.handle(AddAsks((ask,)), 0)
        told = forecast(s, Runtimes(), draws=2)
        assert unknown(told, ("default", "w1", "w1")).latest_ms == bound_ms


def test_a_gang_is_played_on_when_its_placeholders_stand() -> None:
    """Its work takes as long as such work takes; the gang starts when all of it stands."""
    s = lab()
    s.handle(AddNode(NodeSpec(id="m", capacity=Resources({"gpu": 1}))), 0)
    both = Resources({"gpu": 2})
    for app in ("g", "h"):
        s.handle(AddApplication(ApplicationSpec(id=app, queue="root.a", user="ann", placeholder_ask=both)), 0)
        s.handle(
            AddAsks(
                tuple(
                    AskSpec(
                        application=app,
                        key=f"{app}{n}",
                        resources=Resources({"gpu": 1}),
                        placeholder=True,
                        task_group="all",
                        tags={"name": "train"},
                    )
                    for n in range(2)
                )
            ),
            0,
        )
        s.schedule(0)
    told = forecast(s, known(10 * MINUTE), draws=2)
    assert [told.expected(("default", "h", key)).median_ms for key in ("h0", "h1")] == [10 * MINUTE] * 2


@pytest.mark.parametrize(
    ("more", "idle"),
    [({}, False), ({"retry": RetrySpec(limit=3)}, False), ({}, True), ({"node": "n"}, False)],
    ids=["owner", "retry", "idle", "ran before"],
)
def test_what_is_stopped_for_others_comes_back_in_a_future(more: dict[str, Any], idle: bool) -> None:
    """It begins anew and takes its time, before work that is less important: by its retry, or as its owner wishes.
    Where it ran before the scheduler did, it is not there again at once.
    """
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    preemption = PreemptionSpec(enabled=True, rule="priority")
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=preemption),)))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"gpu": 1}))), 0)

    def comes(key: str, priority: int, **more: Any) -> None:
        s.handle(AddApplication(ApplicationSpec(id=key, queue="root.a", user="ann", tags={"name": "train"})), 0)
        ask = AskSpec(application=key, key=key, resources=Resources({"gpu": 1}), priority=priority, **more)
        s.handle(AddAsks((ask,)), 0)
        s.schedule(0)

    comes("first", 1, idle=idle, **more)
    comes("last", 0, idle=idle)
    comes("urgent", 9)
    told = forecast(s, known(10 * MINUTE), draws=1)
    assert told.expected(("default", "urgent", "urgent")).median_ms == 0
    assert told.expected(("default", "last", "last")).median_ms == 20 * MINUTE
    assert "what is stopped for others begins anew" in " ".join(told.assumptions)


@pytest.mark.parametrize(
    ("starts", "says"),
    [
        ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 5, 9)),
        ((1, 2, 3, 4, 5, 6, 7, 8, 9, 10), (1.1, 5.5, 9.9)),
        ((3, 1, 2), (1, 2, 3)),
        ((7,), (7, 7, 7)),
        ((1, 2, 3, 4, 5, 6, 7, 8, 9, None), (1.1, 5.5, None)),
        ((1, 2, 3, 4, None, None, None, None, None), (1, None, None)),
    ],
    ids=str,
)
def test_few_futures_lean_to_neither_side(starts: tuple[int | None, ...], says: tuple[float | None, ...]) -> None:
    """Of ten the middle is between the fifth and the sixth, and the ends are near the first and the last."""
    name = ("default", "a", "a")
    times = tuple(start if start is None else start * MINUTE for start in starts)
    told = Forecast(0, len(times), {name: times}, ()).expected(name)
    wanted = tuple(part if part is None else part * MINUTE for part in says)
    assert (told.earliest_ms, told.median_ms, told.latest_ms) == wanted


def test_a_placeholder_that_is_stopped_comes_back_in_a_future() -> None:
    """Its gang stands whole once there is room for all of it again; the forecast is of the placeholder that was."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule="priority")),)))
    for node in "nm":
        s.handle(AddNode(NodeSpec(id=node, capacity=Resources({"gpu": 1}))), 0)

    def comes(app: str, at_ms: int, count: int = 1, **more: Any) -> None:
        size = Resources({"gpu": count if more.get("placeholder") else 0})
        spec = ApplicationSpec(id=app, queue="root.a", user="ann", tags={"name": "train"}, placeholder_ask=size)
        s.handle(AddApplication(spec), at_ms)
        one = AskSpec(application=app, key="", resources=Resources({"gpu": 1}), **more)
        s.handle(AddAsks(tuple(replace(one, key=f"{app}{n}") for n in range(count))), at_ms)
        s.schedule(at_ms)

    comes("ends-at-10", 0, priority=5)
    comes("ends-at-16", 6 * MINUTE, priority=5)
    comes("gang", 6 * MINUTE, 2, placeholder=True, task_group="all")
    comes("urgent", 6 * MINUTE, priority=9, conditions=Conditions(begin_ms=12 * MINUTE))
    told = forecast(s, known(10 * MINUTE), draws=1)
    assert [told.expected(("default", "gang", key)).median_ms for key in ("gang0", "gang1")] == [22 * MINUTE] * 2
    urgent = ("default", "urgent", "urgent0")
    assert (told.expected(urgent).begin_ms, unknown(told, urgent).earliest_ms) == (12 * MINUTE, 12 * MINUTE)


@pytest.mark.parametrize(("style", "start_ms"), [("Soft", 25 * MINUTE), ("Hard", None)])
def test_a_gang_whose_time_is_over_goes_on_one_by_one_in_a_future(style: str, start_ms: int | None) -> None:
    """After a quarter of an hour one of it starts, and the other when that has ended; what has to be whole fails."""
    s = lab()
    s.handle(AddNode(NodeSpec(id="closed", capacity=Resources({"gpu": 1}), schedulable=False)), 0)
    size = Resources({"gpu": 2})
    spec = ApplicationSpec(id="g", queue="root.a", user="ann", placeholder_ask=size, gang_style=style)
    s.handle(AddApplication(spec), 0)
    one = AskSpec(application="g", key="", resources=Resources({"gpu": 1}), placeholder=True, task_group="all")
    s.handle(AddAsks(tuple(replace(one, key=key, tags={"name": "train"}) for key in ("g0", "g1"))), 0)
    s.schedule(0)
    told = forecast(s, known(10 * MINUTE), draws=1)
    assert told.expected(("default", "g", "g1")).median_ms == start_ms


@pytest.mark.parametrize(("tags", "start_ms"), [({}, None), ({TAG_GANG_COMES_AGAIN: "true"}, 10 * MINUTE)])
def test_a_gang_that_comes_again_does_so_in_a_future(tags: dict[str, str], start_ms: int | None) -> None:
    """Twice its time is over before there is room for all of it."""
    s = lab(None)
    s.handle(AddNode(NodeSpec(id="m", capacity=Resources({"gpu": 1}))), 0)
    spec = ApplicationSpec(
        id="g",
        queue="root.a",
        tags=tags,
        placeholder_ask=Resources({"gpu": 2}),
        gang_style="Hard",
        placeholder_timeout_ms=4 * MINUTE,
    )
    s.handle(AddApplication(spec), 0)
    one = AskSpec(application="g", key="", resources=Resources({"gpu": 1}), placeholder=True, task_group="all")
    s.handle(AddAsks(tuple(replace(one, key=key) for key in ("g0", "g1"))), 0)
    s.schedule(0)
    assert forecast(s, known(10 * MINUTE), draws=1).expected(("default", "g", "g1")).median_ms == start_ms


def test_a_gang_whose_time_is_over_as_its_partition_goes_comes_no_more() -> None:
    """Both are said of one moment."""
    there = PartitionSpec(root=QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),)))
    s = Scheduler(ClusterSpec(partitions=(there, replace(there, name="other"))))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"gpu": 1}), partition="other")), 0)
    whole = Resources({"gpu": 2})
    s.handle(
        AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=whole, partition="other", user="ann")), 0
    )
    one = AskSpec(application="g", key="", resources=Resources({"gpu": 1}), placeholder=True, task_group="all")
    s.handle(AddAsks(tuple(replace(one, key=key) for key in ("g0", "g1")), "other"), 0)
    s.schedule(0)
    s.cluster.now_ms = 15 * MINUTE
    gone = (Configure(ClusterSpec(partitions=(there,))),)
    assert forecast(s, Runtimes(), draws=1, events=gone).starts["other", "g", "g1"] == (None,)


@pytest.mark.parametrize(("awaited", "start_ms"), [("ok", None), ("any", MINUTE), ("not-ok", MINUTE)])
def test_what_waits_for_an_array_of_which_a_part_failed_knows_that_it_does_not_end_well(
    awaited: str, start_ms: int | None
) -> None:
    """All that runs ends well in a future, the last part too; the array has not."""
    s = lab(None)
    after = Conditions(after=(Dependency(application="w0", awaited=Awaited(awaited)),))
    s.handle(AddApplication(ApplicationSpec(id="next", queue="root.a", user="ann")), 0)
    ask = AskSpec(application="next", key="next", resources=Resources({"gpu": 1}), conditions=after)
    s.handle(AddAsks((ask,)), 0)
    runtimes = known(MINUTE)
    runtimes.not_well.add("w0")
    assert forecast(s, runtimes, draws=1, fork=False).starts["default", "next", "next"] == (start_ms,)


@pytest.mark.parametrize(("least", "behind_ms"), [("2", 0), ("1", 10 * MINUTE)])
def test_a_job_that_loses_a_pod_stops_as_a_whole_in_a_future(least: str, behind_ms: int) -> None:
    """What waits has the room of its other pod at once. With as many as it needs it goes on."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule="priority")),)))
    for node in "nm":
        s.handle(AddNode(NodeSpec(id=node, capacity=Resources({"gpu": 1}))), 0)

    def comes(app: str, *keys: str, priority: int, **tags: str) -> None:
        spec = ApplicationSpec(id=app, queue="root.a", user="ann", tags={"name": "train", **tags})
        one = AskSpec(application=app, key="", resources=Resources({"gpu": 1}), priority=priority)
        s.handle(AddApplication(spec), 0)
        s.handle(AddAsks(tuple(replace(one, key=key) for key in keys)), 0)
        s.schedule(0)

    comes("job", "j0", "j1", priority=2, **{TAG_GANG_COMES_AGAIN: least})
    comes("behind", "b", priority=1)
    comes("urgent", "u", priority=9)
    told = forecast(s, known(10 * MINUTE), draws=1)
    assert told.expected(("default", "urgent", "u")).median_ms == 0
    assert told.expected(("default", "behind", "b")).median_ms == behind_ms
