"""The laws of rank in deep courses (`deep_courses`)."""

from __future__ import annotations

from collections import Counter

import pytest
from portions import share
from properties.deep_courses import DeepCourse
from properties.rank_courses import rules_of_configuration

QUICK = share(4)
ONCE_BROKEN = [
    ("priority", 1087),
    ("priority", 1566),
    ("priority", 1629),
    ("priority", 3023),
    ("priority", 1041),
    ("priority", 1697),
    ("both", 1141),
    ("both", 1566),
    ("both", 1888),
    ("priority", 7201),
    ("both", 7451),
]
"""Courses that broke a law once: each showed a fault of the scheduler, or what a law did not know."""


@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("rule", rules_of_configuration())
def test_the_laws_of_rank_hold_in_deep_courses(rule: str) -> None:
    """Gangs come together in them, and work is stopped."""
    counts: Counter[str] = Counter()
    for number in range(QUICK):
        course = DeepCourse(rule, number).take()
        told = [f"{rule} course {number}, step {b.step}: {b.law}: {b.how}" for b in course.broken.values()]
        assert not told, "\n".join(told)
        counts += course.counts
    assert counts["Allocated"] > 20 * QUICK, counts
    assert counts["Evict"] > QUICK, counts


@pytest.mark.parametrize(("rule", "number"), ONCE_BROKEN)
def test_what_broke_a_law_once_does_so_no_more(rule: str, number: int) -> None:
    assert not DeepCourse(rule, number).take().broken
