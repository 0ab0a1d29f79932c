"""The pace of a simulation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest
from benchmarks import pace as module
from benchmarks.pace import Pace, kept, pace_text, row_of

from fairlead.config import load_text
from fairlead.sim.attempts import Settings
from fairlead.sim.engine import Engine
from fairlead.sim.sources import Source


def nothing() -> None:
    """A yardstick that takes no time."""


def test_costs_are_told_by_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU time over events, each quarter by itself, and the most that was kept."""
    pace, now_s = Pace(nothing), 0.0
    monkeypatch.setattr(module.time, "process_time", lambda: now_s)
    for number in range(101):
        pace.sample(number * 1000, kept=number % 7)
        now_s += 0.1 if number < 75 else 0.4
    assert pace.figures() == {
        "events": 100_000,
        "us_per_event": [100.0, 100.0, 100.0, 400.0],
        "cost_by_quarter": None,
        "growth": None,
        "kept_most": 6,
    }


@pytest.mark.parametrize(("work", "costs", "growth"), [(1, [1.0] * 4, 1.0), (3, [0.667] * 2 + [0.667, 2.0], 3.0)])
def test_what_else_the_machine_does_is_not_growth(
    work: int, costs: list[float], growth: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the last quarter everything takes four times as long, and an event `work` times as much: only that counts."""
    now_s, slow = 0.0, 1

    def measure() -> None:
        nonlocal now_s
        now_s += 0.001 * slow

    monkeypatch.setattr(module.time, "process_time", lambda: now_s)
    pace = Pace(measure)
    for number in range(401):
        slow = 1 if number < 300 else 4
        pace.sample(number * 1000, kept=1)
        now_s += 0.1 * slow * (work if number >= 300 else 1)
    figures = pace.figures()
    assert figures is not None
    assert figures["us_per_event"][:3] == pytest.approx([100.0] * 3, rel=0.01)
    assert figures["us_per_event"][3] == pytest.approx(400.0 * work, rel=0.01)
    assert figures["cost_by_quarter"] == pytest.approx(costs, abs=0.03)
    assert figures["growth"] == pytest.approx(growth, rel=0.03)


def test_a_short_run_tells_nothing() -> None:
    """Too few samples are noise."""
    pace = Pace()
    for number in range(10):
        pace.sample(number * 1000, kept=1)
    assert pace.figures() is None


def test_few_events_tell_nothing() -> None:
    """A quarter of some hundred events costs what those few cost; that it is more than before says nothing."""
    pace = Pace()
    for number in range(200):
        pace.sample(number * 49, kept=1)
    assert pace.figures() is None
    pace.sample(20_000, kept=1)
    assert pace.figures() is not None


def test_samples_stay_few_however_long_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second one is given up when there are many, and the quarters stay right."""
    pace, now_s = Pace(nothing), 0.0
    monkeypatch.setattr(module.time, "process_time", lambda: now_s)
    for number in range(100_000):
        pace.sample(number, kept=1)
        now_s += 0.001
    assert len(pace._events) <= Pace.SAMPLES_MAX
    figures = pace.figures()
    assert figures is not None
    assert figures["us_per_event"] == pytest.approx([1000.0] * 4, rel=0.01)


def test_a_long_run_says_its_pace() -> None:
    """For people, in a line."""
    told = {"events": 1_573_469, "us_per_event": [70.99, 68.76, 71.6, 69.3], "kept_most": 27_097}
    assert pace_text(told | {"cost_by_quarter": None}) == (
        "1,573,469 events; CPU microseconds for one, by quarter of the run: 71.0, 68.8, 71.6, 69.3; "
        "at most 27,097 things kept at once"
    )
    assert "69.3 (without what else the machine did, 1 being the mean: 0.99, 1.00, 1.01, 1.00); at most" in pace_text(
        told | {"cost_by_quarter": [0.99, 1.0, 1.01, 1.0]}
    )


def test_a_workload_is_measured_to_its_end() -> None:
    """All its events count; a few are too few to tell."""
    row, line = row_of(Source(workload="poisson", nodes="4", tasks=30))
    assert (row["name"], row["tasks"]) == ("pace: poisson", 30)
    assert line.startswith("poisson: ")
    assert line.endswith("events are too few to tell")


# -- the engine itself ------------------------------------------------------------------------------------------------


def steady(tasks: int) -> Engine:
    """As much work under way from the first tenth on to the end, and room for what comes."""
    workload = Source(workload="poisson", nodes="8", tasks=tasks, load=0.6).open()
    return Engine(load_text(workload.queues, "queues"), workload.nodes, workload.jobs, settings=Settings())


@contextmanager
def calls_counted(counter: list[int]) -> Iterator[None]:
    """Counts calls of functions, Python's and C's: as much as the work there is, and the same on any machine."""

    def count(_frame: object, event: str, _argument: object) -> None:
        counter[0] += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)


@pytest.mark.thorough
def test_the_work_for_an_event_does_not_grow() -> None:
    """While what waits and runs stays as much, an event late in a long run takes as many calls as an early one."""
    engine, counter, edges = steady(2_000), [0], [(0, 0)]
    with calls_counted(counter):
        for quarter in range(1, 5):
            while engine.tasks < 400 * quarter + 300:
                at_ms = engine._next_ms()
                assert at_ms is not None
                engine._turn(at_ms)
            edges.append((engine.events, counter[0]))
    each = [(calls - c) / (events - e) for (e, c), (events, calls) in pairwise(edges[1:])]
    assert each[-1] < 1.02 * each[0], f"calls for an event by part of the run: {each}"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_time_for_an_event_does_not_grow() -> None:
    """The same by the clock and the yardstick: what is linear in the run inside of one call is not seen above."""
    engine, pace = steady(30_000), Pace()
    while engine.tasks < 30_000:
        for _ in range(256):
            if engine.tasks < 30_000 and (at_ms := engine._next_ms()) is not None:
                engine._turn(at_ms)
        pace.sample(engine.events, kept(engine))
    figures = pace.figures()
    assert figures is not None
    assert figures["growth"] is not None
    assert figures["growth"] < 1.25, figures
