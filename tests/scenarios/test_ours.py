"""Scenarios of our own: what has to come out where nothing was recorded, or where peers did better than we did.

Each line of `ours/*.jsonl` is a test of its own; its note says what it is about.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from invariants.books import check_books

from fairlead.sim.compare import check
from fairlead.sim.scenario import Course, run_steps
from fairlead.sim.steps import Scenario, read_scenarios

HERE = Path(__file__).parent / "ours"


def scenarios() -> list[Scenario]:
    """Every scenario of every file, by file."""
    found: list[Scenario] = []
    for path in sorted(HERE.glob("*.jsonl")):
        with path.open("rb") as lines:
            found += read_scenarios(iter(lines), path.name)
    return found


OURS = scenarios()


@pytest.mark.parametrize("scenario", OURS, ids=lambda s: s.name)
def test_it_comes_out_as_expected(scenario: Scenario) -> None:
    """To the letter in what the scenario expects."""
    assert scenario.note, "a scenario of our own says what it is about"
    verdict = check(scenario)
    assert not verdict.found, "\n".join(str(d) for d in verdict.found[:10])


@pytest.mark.parametrize("scenario", OURS, ids=lambda s: s.name)
def test_one_call_for_each_run_gives_the_same(scenario: Scenario) -> None:
    """Placing in one call or in one call each is the same, row by row, and the books are whole after every step."""
    assert run_steps(scenario)["result"] == run_steps(scenario, one_by_one=True)["result"]
    course = Course(scenario.config)
    for step in scenario.steps:
        course.advance(step)
        check_books(course.scheduler)
