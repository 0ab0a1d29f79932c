"""The pace of a simulation."""

from __future__ import annotations

import pytest

from fairlead.sim import pace as module
from fairlead.sim.pace import Pace
from fairlead.sim.simulate import pace_text


def test_costs_are_told_by_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU time over events, each quarter by itself, and the most that was kept."""
    pace, now_s = Pace(), 0.0
    monkeypatch.setattr(module.time, "process_time", lambda: now_s)
    for number in range(101):
        pace.sample(number * 1000, kept=number % 7)
        now_s += 0.1 if number < 75 else 0.4
    assert pace.figures() == {"events": 100_000, "us_per_event": [100.0, 100.0, 100.0, 400.0], "kept_most": 6}


def test_a_short_run_tells_nothing() -> None:
    """Too few samples are noise."""
    pace = Pace()
    for number in range(10):
        pace.sample(number * 1000, kept=1)
    assert pace.figures() is None


def test_samples_stay_few_however_long_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second one is given up when there are many, and the quarters stay right."""
    pace, now_s = Pace(), 0.0
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
    text = pace_text({"events": 1_573_469, "us_per_event": [70.99, 68.76, 71.6, 69.3], "kept_most": 27_097})
    assert text == (
        "pace: 1,573,469 events; CPU microseconds for one, by quarter of the run: 71.0, 68.8, 71.6, 69.3; "
        "at most 27,097 things kept at once"
    )
