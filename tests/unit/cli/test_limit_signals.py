"""A signal before a job's time limit: how it is typed, and what lines for other schedulers become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def taking(service: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A service that takes every job; commands run in an empty directory."""
    service.on("POST", "/jobs", lambda _: {"jobs": [service.add("1", time_limit_ms=7_200_000)]})
    monkeypatch.chdir(tmp_path)
    return service


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ("#SBATCH --signal=B:USR1@300", "B:SIGUSR1@300"),
        ("#SBATCH --signal=RB:10", "B:SIGUSR1@60"),
        ("#SBATCH --signal=R:SIGTERM@90", "SIGTERM@90"),
        ("#FAIRLEAD --signal usr2@1h30m", "SIGUSR2@5400"),
        ("#BSUB -wa URG -wt 2", "A:SIGURG@120"),
    ],
)
def test_a_signal_before_the_time_limit(taking: Any, run: Run, line: str, sent: str) -> None:
    """It was named as without counterpart."""
    Path("job.sh").write_text(f"#!/bin/sh\n{line}\ntrue\n")
    result = run("submit", "--time-limit", "2h", "job.sh")
    assert (result.stderr, result.exit_code) == ("", 0)
    [request] = taking.sent("POST", "/jobs")
    assert request["jobs"][0]["limit_signal"] == sent


@pytest.mark.parametrize("text", ["USR9@60", "USR1@soon", "USR1@1.5s", "USR1@0"])
def test_a_signal_that_makes_no_sense_is_refused(taking: Any, run: Run, text: str) -> None:
    """With what to write."""
    result = run("submit", "--time-limit", "2h", "--signal", text, "--", "true")
    assert (result.exit_code, "--signal: " in result.stderr, "write" in result.stderr) == (2, True, True)


def test_it_is_shown_in_words(service: Any, run: Run) -> None:
    """Where a job has one."""
    service.add("1", time_limit_ms=3_600_000, limit_signal="B:SIGUSR1@300")
    service.add("2", time_limit_ms=3_600_000)
    assert "SIGUSR1 5m before its time limit, to its first process alone" in run("show", "1").stdout
    assert "before its time limit" not in run("show", "2").stdout


@pytest.mark.parametrize("words", [("submit",), ("submit", "--time-limit", "2h")])
def test_what_has_no_time_limit_is_told_that_it_never_comes(taking: Any, run: Run, words: tuple[str, ...]) -> None:
    """Such a script runs in Slurm; it was refused."""
    limit = 7_200_000 if "2h" in words else None
    taking.on("POST", "/jobs", lambda _: {"jobs": [taking.add("1", time_limit_ms=limit)]})
    Path("job.sh").write_text("#!/bin/sh\n#SBATCH --signal=USR1@60\ntrue\n")
    said = "fairlead: 1 has no time limit, so the signal before that never comes; say --time-limit as well\n"
    result = run(*words, "job.sh")
    assert (result.exit_code, result.stderr) == (0, "" if limit else said)


def test_what_gets_it_as_it_begins_is_told_so(taking: Any, run: Run) -> None:
    """It was refused, and such a script runs in Slurm."""
    taking.on("POST", "/jobs", lambda _: {"jobs": [taking.add("1", time_limit_ms=300_000)]})
    Path("job.sh").write_text("#!/bin/sh\n#SBATCH --signal=B:USR1@600 --time=5\ntrue\n")
    result = run("submit", "job.sh")
    said = "fairlead: 1 gets its signal as it begins: its time limit is shorter than the time before\n"
    assert (result.exit_code, result.stderr) == (0, said)
