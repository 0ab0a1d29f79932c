"""Forecasts in which everything is known: what waits starts when it was said, to the millisecond.

Some workloads; 40 by `make compare-futures`.
"""

from __future__ import annotations

import pytest
from reference.compared_futures import compared


@pytest.mark.parametrize("more", [False, True], ids=["plain", "more"])
def test_what_waits_starts_when_a_future_with_its_true_run_times_says(more: bool) -> None:
    """By every rule of preemption; with more in it also what begins later, arrays, rests, kept turns, windows."""
    tally = compared(range(7, 12), more=more)
    assert not tally.different, "\n".join(tally.different)
    assert tally.asks > 20


@pytest.mark.thorough
@pytest.mark.parametrize("more", [False, True], ids=["plain", "more"])
@pytest.mark.parametrize("first", [0, 1_000, 24_000, 128_000, 907_000])
def test_so_it_does_in_many(first: int, more: bool) -> None:
    """Zones and least run times; budgets, bounds on evictions and on jobs; retries; all of it with kept turns."""
    tally = compared(range(first, first + 12), more=more)
    assert not tally.different, "\n".join(tally.different)
    assert tally.asks > 100
