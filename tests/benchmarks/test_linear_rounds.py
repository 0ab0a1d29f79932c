"""How often twice the input takes as much is told right on a processor that is not always equally fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, cycle

import pytest
from benchmarks.linear import MOST
from benchmarks.linear_rounds import Measure, growth

SLOW = 2.0
"""A processor that others use half of takes so many times as long."""


def at_paces(paces: Iterator[float]) -> Callable[[float], Measure]:
    """What takes so many seconds on a quick processor; `paces`: how slow it is, measure by measure."""
    return lambda seconds: lambda: seconds * next(paces)


def in_turns(measures: int) -> Iterator[float]:
    """Quick for so many measures, then slow for as many."""
    return cycle([1.0] * measures + [SLOW] * measures)


@pytest.mark.parametrize("measures", [3, 7, 12])
@pytest.mark.parametrize(("exponent", "times"), [(1, 2), (2, 4)])
def test_quick_and_slow_moments_do_not_count(measures: int, exponent: int, times: int) -> None:
    """The least of seven tries of one size, and then of the other, said one or four instead of two."""
    work = at_paces(in_turns(measures))
    found = growth(work(1.0), work(2.0**exponent))
    assert found.times == pytest.approx(times)
    assert (found.times <= MOST) == (times <= MOST)


def test_a_processor_that_gets_slower_and_slower_counts_for_both_sizes() -> None:
    """Each is measured first in every other round."""
    work = at_paces(1 + 0.2 * n for n in count())
    assert growth(work(1.0), work(2.0)).times == pytest.approx(2.0, rel=0.2)


def test_what_is_there_in_any_case_hides_no_growth() -> None:
    """Four times what is beyond it."""
    assert growth(lambda: 1.1, lambda: 1.4, lambda: 1.0).times == pytest.approx(4.0)


def test_what_takes_next_to_nothing_does_not_grow() -> None:
    """Neither does what takes less than what is there in any case."""
    assert growth(lambda: 0.0001, lambda: 0.0009).times < 0.1
    assert growth(lambda: 0.5, lambda: 0.5, lambda: 1.0).times == 0.0


def test_what_is_in_doubt_is_measured_more_often() -> None:
    """And no round is left out: where most say that it grows, it grows."""
    asked = []

    def twice() -> float:
        asked.append(1)
        return 5.0 if len(asked) % 5 else 1.0

    assert growth(lambda: 1.0, twice).times == 5.0
    assert len(asked) == 15
