"""The table of exit statuses in `docs/command-line.md`, row by row."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "command-line.md"
ROWS = {int(number) for number in re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.M)}
COMMAND = [sys.executable, "-m", "fairlead.cli.main"]


def done(_tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    return ["config", "default"]


def failed(tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    (tmp / "q.yaml").write_text("partitions: 3\n")
    return ["config", "check", str(tmp / "q.yaml")]


def file_that_is_missing(tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    return ["sim", "run", "--workload", str(tmp / "none.csv"), "--nodes", "1x cpu=1"]


def scenarios_that_are_none(tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    (tmp / "s.jsonl").write_text("{}\n")
    return ["scenario", "check", str(tmp / "s.jsonl")]


def journal_that_is_missing(tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    return ["journal", "verify", str(tmp / "none")]


def wrong_option(_tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    return ["ls", "--nope"]


def wrong_context(_tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    return ["ls", "--context", "none"]


def wrong_file_of_jobs(tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    (tmp / "jobs.jsonl").write_text("{}\n")
    return ["submit", "--file", str(tmp / "jobs.jsonl")]


def unreachable(_tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    return ["ls", "--socket", "/nowhere"]


def refused(_tmp: Path, _service: Any, _refuse: Any) -> list[str]:
    return ["show", "17"]


def service_failed(_tmp: Path, service: Any, refuse: Any) -> list[str]:
    service.on("GET", "/nodes", refuse(503, "the disk is full", "unavailable"))
    return ["nodes"]


def no_service(_tmp: Path, service: Any, _refuse: Any) -> list[str]:
    service.on("GET", "/nodes", {"nodes": [], "next": 3})
    return ["nodes"]


def timed_out(_tmp: Path, service: Any, _refuse: Any) -> list[str]:
    service.add("1", "timed_out", reason={"code": "time-limit", "sentence": "its time was over"})
    return ["wait", "1"]


CASES = [
    (0, done),
    (1, failed),
    (1, file_that_is_missing),
    (1, scenarios_that_are_none),
    (1, journal_that_is_missing),
    (2, wrong_option),
    (2, wrong_context),
    (2, wrong_file_of_jobs),
    (3, unreachable),
    (4, refused),
    (5, service_failed),
    (5, no_service),
    (124, timed_out),
]


@pytest.mark.parametrize(("status", "case"), CASES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_command_leaves_as_the_table_says(
    status: int, case: Any, run: Callable[..., Any], service: Any, refuse: Any, tmp_path: Path
) -> None:
    """With one sentence on standard error, if it failed."""
    result = run(*case(tmp_path, service, refuse))
    assert result.exit_code == status, result.output
    assert bool(result.stderr) == (status != 0)


def test_ctrl_c_leaves_with_130(service: Any, socket_path: str) -> None:
    """In the middle of waiting, without a word."""
    service.add("1", "running", started_at_ms=1)
    environ = os.environ | {"FAIRLEAD_SOCKET": socket_path}
    with subprocess.Popen([*COMMAND, "wait", "1"], stderr=subprocess.PIPE, env=environ) as waiting:
        while len(service.requests) < 2:
            assert waiting.poll() is None
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=50)
    assert (waiting.returncode, said.strip()) == (130, b"")


def test_every_row_of_the_table_is_tested() -> None:
    """And there is a row for every status."""
    assert {status for status, _ in CASES} | {130} == ROWS
