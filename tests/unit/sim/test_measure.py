"""Use over time and waiting times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.sim.measure import UseOverTime, Waits, percentile


@pytest.mark.parametrize(("percent", "expected"), [(50, 2), (75, 3), (76, 4), (99, 4), (100, 4), (0, 1)])
def test_a_percentile_is_a_value_that_occurred(percent: float, expected: int) -> None:
    """Nearest rank: the smallest value that so many do not exceed."""
    assert percentile([1, 2, 3, 4], percent) == expected


def test_a_percentile_of_nothing_is_an_error() -> None:
    """There is no value to give."""
    with pytest.raises(ValueError, match="at least one"):
        percentile([], 50)


def test_waits_are_shown_in_seconds() -> None:
    """Mean, percentiles and the longest."""
    waits = Waits()
    assert waits.figures() is None
    for ms in (4000, 0, 1000, 0):
        waits.add(ms)
    assert waits.figures() == {"count": 4, "mean": 1.25, "p50": 0.0, "p95": 4.0, "p99": 4.0, "max": 4.0}


def test_use_is_weighted_by_time() -> None:
    """Half of the capacity for a quarter of the time is an eighth."""
    use = UseOverTime({"vcore": 1000, "gpu": 0}, 5000)
    use.change((("vcore", 500), ("memory", 7)), 1)
    use.advance(6000)
    use.change((("vcore", 500),), -1)
    use.advance(9000)
    assert use.figures() == {"vcore": {"capacity": 1000, "mean": 0.125, "peak": 0.5}}


def test_use_before_any_time_has_passed_is_none() -> None:
    """No span, no mean."""
    use = UseOverTime({"vcore": 10}, 0)
    use.change((("vcore", 10),), 1)
    assert use.figures()["vcore"] == {"capacity": 10, "mean": 0.0, "peak": 1.0}
    assert use.course("vcore") == []


def test_the_course_shows_when_it_was_full() -> None:
    """First full, then half, then empty: bars fall."""
    use = UseOverTime({"vcore": 2}, 0)
    use.change((("vcore", 2),), 1)
    use.advance(10_000)
    use.change((("vcore", 1),), -1)
    use.advance(20_000)
    use.change((("vcore", 1),), -1)
    use.advance(30_000)
    assert use.course("vcore") == [1.0] * 10 + [0.5] * 10 + [0.0] * 10
    assert use.bars("vcore") == "█" * 10 + "▄" * 10 + " " * 10


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 100)), min_size=1, max_size=30))
def test_the_course_always_adds_up_to_the_exact_integral(stretches: list[tuple[int, int]]) -> None:
    """However often the stretches were merged, no use is lost, and there are never more than 64 of them."""
    use, total, now_ms, level = UseOverTime({"r": 100}, 0), 0, 0, 0
    for lasts, new in stretches:
        use.change((("r", new - level),), 1)
        level = new
        now_ms += lasts
        total += lasts * level
        use.advance(now_ms)
    mean = use.figures()["r"]["mean"]
    assert mean == (round(total / (100 * now_ms), 6) if now_ms else 0.0)
    assert len(use.course("r")) <= 64
    assert all(0 <= share <= 1 for share in use.course("r"))
