"""Every difference from what was recorded has one named decision as its only cause.

`decided/*.jsonl` holds recordings that we do not follow, each with the decisions in its note; `data/decisions.toml`
names those among the others. With the recorded core's rule in the place of ours, each must agree to the letter.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from invariants.books import check_books
from literal_rules import RULES, literal

from fairlead.sim.compare import check, read_decisions
from fairlead.sim.scenario import Course
from fairlead.sim.steps import Scenario, read_scenarios

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "yunikorn-compatibility.md"
BY_CHANCE = {"headroom-114"}
"""The recorded core itself is random there: no rule makes it certain."""


def scenarios(path: Path) -> list[Scenario]:
    """The scenarios of one file."""
    with path.open("rb") as lines:
        return list(read_scenarios(iter(lines), path.name))


DECIDED = [s for path in sorted((HERE / "decided").glob("*.jsonl")) for s in scenarios(path)]
ACCEPTED = read_decisions(str(HERE / "data" / "decisions.toml")).keys() - BY_CHANCE
AMONG_OTHERS = [s for path in sorted((HERE / "data").glob("*.jsonl")) for s in scenarios(path) if s.name in ACCEPTED]


@pytest.mark.parametrize("scenario", DECIDED, ids=lambda s: s.name)
def test_it_differs_as_decided(scenario: Scenario) -> None:
    """Our rule leads somewhere else; a recording that agrees by now belongs to the others."""
    assert check(scenario).found


@pytest.mark.parametrize("scenario", DECIDED, ids=lambda s: s.name)
@pytest.mark.plain
def test_the_noted_decisions_are_the_only_cause(scenario: Scenario) -> None:
    """With the noted rules as recorded nothing differs, and without any one of them something does."""
    rules = scenario.note.split(" + ")
    with literal(*rules):
        assert not check(scenario).found
    for left_out in rules:
        with literal(*(r for r in rules if r != left_out)):
            assert check(scenario).found, f"{left_out} plays no part"


@pytest.mark.parametrize("scenario", AMONG_OTHERS, ids=lambda s: s.name)
@pytest.mark.plain
def test_the_number_of_victims_is_the_only_cause(scenario: Scenario) -> None:
    """Each accepted deviation comes from taking as few victims as the ask needs."""
    with literal("guarantee: how many victims"):
        assert not check(scenario).found


@pytest.mark.parametrize("scenario", DECIDED, ids=lambda s: s.name)
def test_our_way_keeps_the_books(scenario: Scenario) -> None:
    """After every step of it the books are whole."""
    course = Course(scenario.config)
    for step in scenario.steps:
        course.advance(step)
        check_books(course.scheduler)


def test_every_rule_is_used() -> None:
    """There is a recording for each decision, and nothing is accepted that is not there."""
    assert {rule for s in DECIDED for rule in s.note.split(" + ")} == set(RULES)
    assert {s.name for s in AMONG_OTHERS} == ACCEPTED


def test_the_page_names_every_rule() -> None:
    """Each decision has its row on the page about compatibility."""
    text = PAGE.read_text()
    assert [rule for rule in RULES if f"| {rule}" not in text and f"| by {rule}" not in text] == []
