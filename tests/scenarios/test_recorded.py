"""Recorded scenarios: what Apache YuniKorn's core did, step by step, and whether we do the same.

Each line of `data/*.jsonl` is a test of its own. Deviations that were decided are in `data/decisions.toml` with their
reason; such a scenario must really differ, so that a decision that is no longer needed does not stay.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from invariants.books import check_books

from fairlead.core.model.reasons import NextInLine
from fairlead.scheduler import Scheduler
from fairlead.sim.compare import check, read_decisions
from fairlead.sim.scenario import Course, run_steps
from fairlead.sim.steps import Scenario, ScheduleStep, read_scenarios

DATA = Path(__file__).parent / "data"
DECISIONS = DATA / "decisions.toml"
DEVIATIONS = read_decisions(str(DECISIONS)) if DECISIONS.exists() else {}
MOST_DEVIATIONS = 0.02
NOT_YET: frozenset[str] = frozenset()
"""Scenarios that say what should come out and does not yet; one that does has to leave this list."""


def scenarios_of(folder: Path) -> list[Scenario]:
    """Every scenario of every file, by file."""
    found: list[Scenario] = []
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as lines:
            found += read_scenarios(iter(lines), path.name)
    return found


RECORDED = scenarios_of(DATA)
TO_BEHAVE = [
    pytest.param(s, id=s.name, marks=pytest.mark.xfail(s.name in NOT_YET, reason="not yet", strict=True))
    for s in RECORDED
]
ACCEPTED = [s for s in RECORDED if s.expect and "rejected" not in s.expect]


@pytest.mark.parametrize("scenario", TO_BEHAVE)
def test_it_behaves_as_recorded(scenario: Scenario) -> None:
    """No difference at the scenario's level, unless a written decision says why."""
    verdict = check(scenario)
    if scenario.name in DEVIATIONS:
        assert verdict.found, f"{scenario.name} behaves as recorded now: take it out of {DECISIONS.name}"
        return
    assert not verdict.found, "\n".join(str(d) for d in verdict.found[:10])


@pytest.mark.parametrize("scenario", RECORDED, ids=lambda s: s.name)
def test_one_call_for_each_run_gives_the_same(scenario: Scenario) -> None:
    """Placing in one call or in one call each is the same, row by row."""
    batch, single = run_steps(scenario), run_steps(scenario, one_by_one=True)
    assert batch["result"] == single["result"]
    assert [t["runs"] for t in batch["timings"]] == [t["runs"] for t in single["timings"]]


@pytest.mark.parametrize("scenario", ACCEPTED, ids=lambda s: s.name)
def test_nothing_that_fits_is_left_waiting(scenario: Scenario) -> None:
    """After every scheduling step that ran dry, each waiting ask has an obstacle, and the books are whole."""
    course = Course(scenario.config)
    for step in scenario.steps:
        course.advance(step)
        check_books(course.scheduler)
        if isinstance(step, ScheduleStep) and course.timings[-1]["runs"] < step.steps:
            assert left_waiting(course.scheduler) == []


def left_waiting(scheduler: Scheduler) -> list[str]:
    """Asks of which the scheduler itself says that they could start now."""
    applications = scheduler.cluster.partitions["default"].applications.values()
    asks = [ask for app in applications for ask in app.waiting_asks()]
    return [a.key for a in asks if isinstance(scheduler.why(a.app.id, a.key), NextInLine)]


def test_there_is_something_to_check() -> None:
    """Every category of this stage is there, and few deviations were decided."""
    count: dict[str, int] = {}
    for s in RECORDED:
        count[s.category] = count.get(s.category, 0) + 1
    assert count == {
        "app_order": 10,
        "backoff": 10,
        "bad_config": 18,
        "batch": 18,
        "churn": 11,
        "classes": 18,
        "documented": 81,
        "extreme_priorities": 10,
        "fences": 5,
        "gang": 20,
        "gang_lives": 10,
        "guarantees": 8,
        "headroom": 18,
        "limits": 13,
        "max_applications": 10,
        "node_sorting": 10,
        "placement": 20,
        "preemption": 16,
        "preemption_tree": 18,
        "preemptors_with_reservations": 4,
        "priorities": 20,
        "priority": 18,
        "promises": 21,
        "queue_fairness": 14,
        "queues": 21,
        "quota_preemption": 7,
        "reconfigure": 9,
        "rank": 25,
        "regressions": 10,
        "required_node": 6,
        "required_node_preemption": 4,
        "required_reservations": 10,
        "reservations": 10,
        "reserved": 9,
        "seeds": 12,
        "templates": 4,
        "user_limits": 10,
    }
    assert len({s.name for s in RECORDED}) == len(RECORDED)
    assert set(DEVIATIONS) | NOT_YET <= {s.name for s in RECORDED}
    assert len(DEVIATIONS) <= MOST_DEVIATIONS * len(RECORDED)
