"""What is drawn for a future: run times, and the work that comes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace as replace_kind
from random import Random
from statistics import fmean, stdev

import pytest

from fairlead.core.model.events import AddApplication, AddAsks, AddNode
from fairlead.core.model.reasons import NoNodes
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.insight import runtimes as runtimes_module
from fairlead.insight.arrivals import Arrival, Arrivals
from fairlead.insight.forecast import forecast
from fairlead.insight.runtimes import ENOUGH, Gangs, Kind, Runtimes
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


def known(run_ms: int, count: int = ENOUGH) -> Runtimes:
    runtimes = Runtimes()
    for _ in range(count):
        runtimes.learn(KIND, run_ms)
    return runtimes


def test_names_without_end_take_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ended last is remembered, and so is what all of it has in common."""
    monkeypatch.setattr(runtimes_module, "KINDS", 100)
    runtimes = known(9 * MINUTE)
    for number in range(1000):
        runtimes.learn(Kind("ann", f"name-{number}", "root.a", application=f"app-{number}"), MINUTE)
        runtimes.learn(Kind("bob", "train", "root.b"), MINUTE)
    assert len(runtimes._samples) == 100
    assert runtimes.basis(Kind("bob", "train", "root.b")) == "user, name, limit and size"
    assert runtimes.basis(KIND) == "user, limit and size", "its name was not seen for long, its user was"


def test_the_most_particular_experience_counts() -> None:
    """Down to all work there is, and then to none."""
    runtimes = Runtimes()
    assert runtimes.basis(KIND) == "no experience"
    other = {"limit_ms": MINUTE}
    learned = (
        (Kind("bob", "x", "root.b", **other), "all work"),
        (Kind("bob", "x", "root.a", **other), "queue"),
        (Kind("ann", "x", "root.a", **other), "user"),
        (Kind("bob", "x", "root.a"), "limit and size in the queue"),
        (Kind("ann", "x", "root.a"), "user, limit and size"),
        (Kind("bob", "train", "root.a", **other), "name in the queue"),
        (Kind("ann", "train", "root.a", **other), "user and name"),
        (KIND, "user, name, limit and size"),
    )
    for kind, level in learned:
        for _ in range(ENOUGH):
            runtimes.learn(kind, 9)
        assert runtimes.basis(KIND) == level
    part = replace_kind(KIND, application="12")
    for _ in range(ENOUGH):
        runtimes.learn(part, 9)
    assert runtimes.basis(part) == "its own array"


def test_of_a_limit_that_was_never_seen_the_usual_part_is_taken() -> None:
    """The same user needs a half of each limit."""
    runtimes = Runtimes()
    for hours in range(1, 60):
        runtimes.learn(Kind("ann", "", "root.a", limit_ms=hours * 60 * MINUTE), hours * 30 * MINUTE)
    kind, chance = Kind("ann", "", "root.a", limit_ms=90 * 60 * MINUTE), Random(1)
    drawn = [runtimes.draw(kind, chance, limit_ms=kind.limit_ms) for _ in range(100)]
    assert sum(run_ms == 45 * 60 * MINUTE for run_ms in drawn) > 80


def test_few_ends_that_are_alike_lean_on_those_that_are_less_so() -> None:
    """Four of them decide half of the draws, many nearly all."""
    runtimes, chance = Runtimes(), Random(1)
    for _ in range(200):
        runtimes.learn(Kind("bob", "", "root.a"), 100)
    for count, least, most in ((4, 0.35, 0.75), (60, 0.85, 1.0)):
        for _ in range(count):
            runtimes.learn(KIND, 7)
        part = sum(runtimes.draw(KIND, chance) == 7 for _ in range(400)) / 400
        assert least < part <= most


def test_draws_are_beyond_what_has_passed_and_within_the_limit() -> None:
    """Whatever is known."""
    for runtimes in (Runtimes(), known(MINUTE)):
        chance = Random(1)
        for elapsed in (0, 30_000, 90_000):
            drawn = [runtimes.draw(KIND, chance, elapsed, 100_000) for _ in range(50)]
            assert all(elapsed < total <= 100_000 for total in drawn)


def test_what_is_drawn_has_been_seen() -> None:
    """No mean of long and short ones; where much has ended, hardly anything is guessed."""
    runtimes = Runtimes()
    for run_ms in (10, 10, 10, 1000, 1000) * 100:
        runtimes.learn(KIND, run_ms)
    chance = Random(1)
    for elapsed_ms, usual in ((0, {10, 1000}), (10, {1000})):
        drawn = Counter(runtimes.draw(KIND, chance, elapsed_ms) for _ in range(500))
        assert sum(drawn[run_ms] for run_ms in usual) > 480
        assert all(drawn[run_ms] > 100 for run_ms in usual)


def test_one_or_two_ends_are_no_experience() -> None:
    """What is known of others' short work hides no declared limit: half an hour is not three seconds."""
    runtimes, limit_ms = Runtimes(), 30 * MINUTE
    for _ in range(2):
        runtimes.learn(Kind("bob", "", "root.b"), 3_000)
    for elapsed_ms in (0, 20_000):
        drawn = sorted(runtimes.draw(KIND, Random(number), elapsed_ms, limit_ms) for number in range(400))
        assert drawn[200] > 6 * MINUTE, "the half is what is guessed by the limit"
        assert drawn[40] < MINUTE, "and what was seen counts too"


@pytest.mark.thorough
def test_draws_of_one_future_share_what_they_take_for_usual() -> None:
    """Few ends may mislead: the means of futures differ by more than by chance; with many they agree."""

    def spread(ends: int) -> float:
        runtimes, sizes = Runtimes(), Random(7)
        seen = [round(MINUTE * sizes.lognormvariate(0, 1)) for _ in range(ends)]
        for run_ms in seen:
            runtimes.learn(KIND, run_ms)
        futures = []
        for number in range(30):
            chance = Random(number)
            drawn = [runtimes.draw(KIND, chance, limit_ms=10 * MINUTE, future=f"0:{number}") for _ in range(1000)]
            futures.append(fmean(drawn))
        return stdev(futures) / fmean(futures)

    few, many = spread(24), spread(512)
    assert few > 2 * many
    assert many < 0.12


def test_a_future_draws_the_same_whenever_it_is_asked() -> None:
    """By its name alone."""
    runtimes = Runtimes()
    for minutes in range(1, 9):
        runtimes.learn(KIND, minutes * MINUTE)
    first, again, other = (
        [runtimes.draw(KIND, Random(n), future=future) for n in range(40)] for future in ("1:1", "1:1", "1:2")
    )
    assert first == again != other


def test_old_experience_makes_room_for_new() -> None:
    """Only so many are kept."""
    runtimes = known(1, 600)
    for _ in range(512):
        runtimes.learn(KIND, 7)
    chance = Random(1)
    assert {runtimes.draw(KIND, chance) for _ in range(50)} == {7}


# -- what comes ---------------------------------------------------------------------------------------------------

HOUR = 60 * MINUTE


def came(at_ms: int, name: str) -> Arrival:
    ask = AskSpec(application=name, key=name, resources=Resources({"gpu": 1}))
    return Arrival(at_ms, ApplicationSpec(id=name, queue="root.a", user="ann"), (ask,))


def test_what_comes_is_what_came_at_that_hour() -> None:
    """Three days with work at noon only: it comes at noon again, and at no other time."""
    arrivals = Arrivals()
    for day in range(3):
        for minute in range(10):
            arrivals.learn(came((24 * day + 12) * HOUR + minute * MINUTE, f"w{day}-{minute}"))
    now_ms = 71 * HOUR
    coming = arrivals.future(now_ms, Random(1))
    times = [at_ms for at_ms, _ in coming]
    assert len(times) == 10, "it comes for a day"
    assert {at_ms // HOUR % 24 for at_ms in times} == {12}


def test_little_history_gives_no_arrivals() -> None:
    """Less than two hours."""
    arrivals = Arrivals()
    arrivals.learn(came(0, "a"))
    arrivals.learn(came(HOUR, "b"))
    assert list(arrivals.future(HOUR + 1, Random(1))) == []
    told = " ".join(forecast(lab(None, None), known(1), arrivals=arrivals, draws=1).assumptions)
    assert "nothing new arrives" in told


def test_what_comes_in_a_future_takes_its_place() -> None:
    """Work of a higher priority that comes every ten minutes is served first; the state stays as it is."""
    s = lab(None, None)
    arrivals = Arrivals()
    for number in range(60):
        arrival = came(number * 10 * MINUTE, f"old{number}")
        (ask,) = arrival.asks
        arrivals.learn(replace_kind(arrival, asks=(replace_kind(ask, priority=9),)))
    s.schedule(10 * HOUR)
    before = s.dump()
    plain = forecast(s, known(30 * MINUTE), draws=4).expected(("default", "w1", "w1"))
    told = forecast(s, known(30 * MINUTE), arrivals=arrivals, draws=4, horizon_ms=24 * HOUR)
    found = told.expected(("default", "w1", "w1"))
    assert plain.median_ms is not None
    assert found.median_ms is None or found.median_ms > plain.median_ms
    assert "work comes as in the last 10 hours" in " ".join(told.assumptions)
    assert s.dump() == before


def test_what_comes_again_comes_to_the_partition_that_it_came_to() -> None:
    """The application, and what it asks for."""
    arrival = came(0, "old")
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(name="gpu", root=root),)))
    application = replace_kind(arrival.application, queue="root.a", partition="gpu")
    for event in Arrival(0, application, arrival.asks).again("new"):
        s.handle(event, 0)
    assert s.why("new", "new-0", "gpu") == NoNodes("gpu")


def test_the_work_of_a_gang_is_no_further_attempt() -> None:
    """Its placeholder was given back once, or ran before the scheduler did: the work has its turn like any other."""
    s = lab()
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({"gpu": 1}))), 0)
    ask = AskSpec(application="g", key="g#2", resources=Resources({"gpu": 1}), attempt=2, first_key="g", node="n")
    s.handle(AddAsks((replace_kind(ask, placeholder=True, task_group="all"),)), 0)
    [gang] = Gangs(s).standing()
    assert [(each.key, each.node, each.attempt, each.retried) for each in gang.asks] == [("g#2~work", "", 1, False)]


def test_a_gang_was_whole_where_it_loses_a_part_only_after_that() -> None:
    """In one call its last placeholder starts, and one is told to stop: its owner heard of both, in this order."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule="priority")),)))
    for name in ("n", "m"):
        s.handle(AddNode(NodeSpec(id=name, capacity=Resources({"gpu": 1}))), 0)
    for app, priority, count in (("g", 0, 2), ("urgent", 9, 1)):
        size = Resources({"gpu": count - 1})
        s.handle(AddApplication(ApplicationSpec(id=app, queue="root.a", placeholder_ask=size)), 0)
        one = AskSpec(application=app, key="", resources=Resources({"gpu": 1}), priority=priority)
        one = replace_kind(one, placeholder=app == "g", task_group="all" if app == "g" else "")
        s.handle(AddAsks(tuple(replace_kind(one, key=f"{app}{n}") for n in range(count))), 0)
        decisions = s.schedule(0)
    gangs, app = Gangs(s), s.cluster.partitions["default"].applications["g"]
    assert gangs.complete("default", app) is None
    whole = gangs.complete("default", app, lambda: decisions)
    assert whole is not None
    assert [ask.key for ask in whole.asks] == ["g0~work", "g1~work"]
    assert gangs.has_stood("default", "g")
