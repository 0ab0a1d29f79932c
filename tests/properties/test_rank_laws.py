"""The laws of rank, watched in random courses under each rule of preemption; what each law says: `rank_courses`."""

from __future__ import annotations

from collections import Counter

import pytest
from portions import in_portions, share
from properties.rank_courses import STEPS_OF_ONE, RankCourse, main, rules_of_configuration

QUICK = share(10)
"""So many courses of each rule are taken by default; with `--steps N` as many as that many steps are."""


ONCE_BROKEN = {
    "priority": (
        *(76, 157, 166, 221, 262, 365, 388, 395, 665, 738, 844, 897, 1482, 1501, 1585, 1856),
        *(1887, 2574, 3297, 3719, 3731, 5882, 9751, 14133, 18104, 309650),
    ),
    "guarantee": (
        *(6, 421, 537, 608, 666, 721, 784, 785, 939, 1208, 1307, 1308, 2345, 2673, 3011, 3242, 3347, 3559),
        *(3707, 4536, 7557, 8116, 9218, 9557, 13588, 41025, 302106),
    ),
    "both": (
        *(7, 10, 12, 19, 44, 47, 97, 116, 129, 144, 166, 217, 221, 248, 257, 422, 510, 847, 1175, 1312),
        *(1501, 1791, 1818, 1856, 1996, 2499, 2890, 2951, 3134, 3297, 3442, 3517, 3533, 8029, 14133, 62238),
        *(301154, 309682),
    ),
}
"""Courses that broke a law once: each showed a fault of the scheduler, or what a law did not know."""


@pytest.fixture(scope="module")
def rank_courses(pytestconfig: pytest.Config) -> int:
    """How many courses each rule takes."""
    asked: int | None = pytestconfig.getoption("--steps")
    return max(asked // STEPS_OF_ONE, 1) if asked else QUICK


@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("rule", rules_of_configuration())
def test_the_laws_of_rank_hold(rule: str, rank_courses: int) -> None:
    """In every course; enough is started and stopped in them for the laws to mean something."""
    counts: Counter[str] = Counter()
    for number in range(rank_courses):
        course = RankCourse(rule, number).take()
        told = [f"{rule} course {number}, step {b.step}: {b.law}: {b.how}" for b in course.broken.values()]
        assert not told, "\n".join(told)
        counts += course.counts
    assert counts["Allocated"] > 20 * rank_courses, counts
    assert counts["Evict"] > rank_courses / 2, counts


@pytest.mark.parametrize(
    ("rule", "number"), in_portions([(rule, n) for rule, own in ONCE_BROKEN.items() for n in own], 4)
)
def test_what_broke_a_law_once_does_so_no_more(rule: str, number: int) -> None:
    """Far behind the first few courses, and worth a look each time."""
    assert not RankCourse(rule, number).take().broken


def test_the_rules_of_the_configuration_are_found() -> None:
    """A rule that a queue file may name is taken: what asks the configuration for them does not come back empty."""
    assert {"priority", "guarantee"} <= set(rules_of_configuration())


def test_a_count_of_broken_courses_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The command line ends with one line that says how many courses of which rule broke a law."""
    failed = main("guarantee", 0, 2)
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{failed} of 2 courses under guarantee broke a law")
