"""Answers to why on random states, held against everything that could be otherwise (1,000: `make brute-force`)."""

from __future__ import annotations

import pytest
from portions import in_portions, where_compiled
from properties.brute_force import FIRST, Tally, compared


@where_compiled
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "states"), [("plain", 18), ("mixed", 6)])
def test_what_is_stated_holds_and_nothing_is_missed(kind: str, states: int) -> None:
    """In any dimension, and in pairs where nothing was found."""
    tally = compared(kind, range(FIRST, FIRST + states), 2, Tally())
    print("\n" + "\n".join(tally.lines()))
    assert tally.helped.total() > 3
    assert tally.stated > 10
    assert tally.wrong == 0, "\n".join(tally.lines())


FOUND = {"plain": (30_001, 30_058), "mixed": (30_037, 30_069, 30_072, 30_075, 50_018, 50_041, 60_379, 70_075)}
"""States in which something was missed once: two things at once, a bound between the least and the widest, the taint of
the one node that an ask may use, a taint and a bound on waiting that kept other work from going elsewhere, three
more nodes where two are too few and four let others come first, one of several maximums by itself.
"""


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "number"), in_portions([(kind, number) for kind, found in FOUND.items() for number in found], 3)
)
def test_what_was_missed_once_is_found(kind: str, number: int) -> None:
    tally = compared(kind, range(number, number + 1), 2, Tally())
    assert tally.stuck
    assert tally.wrong == 0, "\n".join(tally.lines())
