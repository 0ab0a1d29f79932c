"""What a soak is judged by."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.soak_judgement import ENOUGH, Sample, flat, ran_once, waits
from benchmarks.soak_users import ABUSE, QUIET


@pytest.mark.parametrize(
    ("reads", "slow", "good"),
    [(ENOUGH, 2, True), (ENOUGH, 4, False), (50, 4, True), (50, 6, False)],
)
def test_waits_are_judged_by_what_so_many_reads_can_tell(reads: int, slow: int, good: bool) -> None:
    """One read in a hundred may wait where there are many; one in ten of a few."""
    told = [(False, phase, 1.0 if number < slow else 0.01) for phase in (QUIET, ABUSE) for number in range(reads)]
    alike = [(True, phase, 0.001) for phase in (QUIET, ABUSE) for _ in range(reads)]
    assert [each for each, text in waits(told + alike) if "of others" in text] == [good, good]


def test_what_a_server_that_does_nothing_takes_too_is_the_machine() -> None:
    """Slow for both is not the service; and without reads nothing is said to be good."""
    both = [(control, phase, 1.0) for control in (False, True) for phase in (QUIET, ABUSE) for _ in range(ENOUGH)]
    assert all(good for good, _ in waits(both))
    assert not any(good for good, _ in waits([]))


def test_memory_that_grows_is_not_flat() -> None:
    """From the middle to the end; what a start needs first is left out."""
    grown = [Sample(at, 60 if at else 0, 100 + at * 10, 40, 20) for at in range(90)]
    steady = [Sample(at, 60 if at else 0, 100 if at else 900, 40, 20) for at in range(90)]
    assert [good for good, _ in flat(grown, 90)] == [False, True, True]
    assert all(good for good, _ in flat(steady, 90))


def test_each_attempt_runs_once_and_each_job_that_must(tmp_path: Path) -> None:
    """By the ledger that the jobs write themselves."""
    ledger, log = tmp_path / "ledger", tmp_path / "log"
    log.write_text("run 30-1 ended\nrun 3-1 could not be started: no room\n")
    ledger.write_text("1.0\n2.0\n2.1\n")
    assert [good for good, _ in ran_once(ledger, log, ["1", "2"], set())] == [True, True]
    assert [good for good, _ in ran_once(ledger, log, ["1", "3"], {"3"})] == [True, True]
    assert [good for good, _ in ran_once(ledger, log, ["1", "3"], set())] == [True, False, False]
    last = list(ran_once(ledger, log, ["1", "3"], set()))[-1][1]
    assert last == "of 3 the service logged: run 3-1 could not be started: no room"
    ledger.write_text("1.0\n1.0\n")
    assert [good for good, _ in ran_once(ledger, log, ["1"], set())] == [False, True]
