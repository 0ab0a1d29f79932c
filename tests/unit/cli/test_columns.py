"""Which columns `ls` shows, and in which order its rows stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def three(service: Any) -> Any:
    service.add("1", "running", name="b", priority=5, started_at_ms=2000, resources={"cpu": 2, "gpu": 1})
    service.add("10", "waiting", name="c", priority=9, resources={"cpu": 1})
    service.add("9", "succeeded", name="a", priority=9, started_at_ms=2000, ended_at_ms=9000, resources={"cpu": 4})
    return service


def listed(run: Run, *args: str) -> list[list[str]]:
    result = run("ls", *args)
    assert result.exit_code == 0, result.stderr
    return [line.split() for line in result.stdout.splitlines()]


def test_chosen_columns_stand_in_the_order_that_was_typed(three: Any, run: Run) -> None:
    """And no others; a dash is what is empty."""
    assert listed(run, "--columns", "state,key,GPU") == [
        ["STATE", "KEY", "GPU"],
        ["succeeded", "9", "-"],
        ["running", "1", "1"],
        ["waiting", "10", "-"],
    ]


def test_rows_without_a_header_are_for_scripts(three: Any, run: Run) -> None:
    """One column alone."""
    assert listed(run, "--columns", "key", "--no-header") == [["9"], ["1"], ["10"]]


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("key", ["1", "9", "10"]),
        ("-key", ["10", "9", "1"]),
        ("name", ["9", "1", "10"]),
        ("-priority,name", ["9", "10", "1"]),
        ("priority,-cpu", ["1", "9", "10"]),
        ("ended", ["9", "1", "10"]),
        ("-started,key", ["10", "1", "9"]),
    ],
)
def test_rows_are_sorted_by_what_they_mean(three: Any, run: Run, by: str, keys: list[str]) -> None:
    """Numbers as numbers; what has not happened yet comes last."""
    assert [row[0] for row in listed(run, "--sort", by, "--columns", "key", "--no-header")] == keys


def test_the_signal_that_ended_a_job_stands_where_its_exit_status_would(service: Any, run: Run) -> None:
    """A program that crashed looked as if nothing were known; it comes where a shell would have its status."""
    for key, how in (("1", {"exit_code": 3}), ("2", {"signal": 11}), ("3", {"exit_code": 200})):
        service.add(key, "failed", started_at_ms=2000, ended_at_ms=9000, **how)
    rows = listed(run, "--sort", "exit", "--columns", "key,exit", "--no-header")
    assert rows == [["1", "3"], ["2", "SIGSEGV"], ["3", "200"]]


@pytest.mark.parametrize(("option", "typed"), [("--columns", "key,colour"), ("--sort", "-colour")])
def test_a_column_that_there_is_not_is_named_with_those_that_there_are(
    three: Any, run: Run, option: str, typed: str
) -> None:
    """Before the service is asked for anything that would be thrown away."""
    result = run("ls", option, typed)
    assert result.exit_code == 2
    assert f"{option}: there is no column 'colour'" in result.stderr.replace("-colour", "colour")
    assert "submitted" in result.stderr


def test_an_interval_lists_again_until_ctrl_c(three: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time with the moment above, but for what programs read."""
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    result = run("ls", "-i", "7", "--columns", "key", "--no-header")
    assert (result.exit_code, pauses) == (130, [7.0, 7.0])
    assert result.stdout.splitlines()[1:4] == ["9", "1", "10"] == result.stdout.splitlines()[5:]
    pauses.clear()
    assert run("ls", "-i", "7", "-o", "name").stdout.split() == ["1", "9", "10"] * 2


def test_the_time_that_a_job_stood_still_is_not_counted(service: Any, run: Run) -> None:
    """Neither what is over nor what goes on."""
    service.add("1", "suspended", started_at_ms=2000, suspended_at_ms=62_000)
    service.add("2", "succeeded", started_at_ms=2000, ended_at_ms=122_000, suspended_ms=90_000)
    service.add("3", "cancelled", started_at_ms=2000, ended_at_ms=999_000, suspended_at_ms=32_000, suspended_ms=10_000)
    assert dict(listed(run, "--all", "--columns", "key,time", "--no-header")) == {"1": "1m", "2": "30s", "3": "20s"}


def test_limits_and_what_was_used(service: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `squeue -o %l,%L` and `sacct --format=TotalCPU,MaxRSS` show; a job without a limit has the longest."""
    monkeypatch.setattr("fairlead.cli.render.now_ms", lambda: 62_000)
    service.add("1", "running", started_at_ms=2000, time_limit_ms=90_000)
    service.add("2", "running", started_at_ms=2000)
    service.add("3", "waiting", time_limit_ms=3_600_000)
    service.add("4", "suspended", started_at_ms=2000, suspended_at_ms=12_000, time_limit_ms=60_000)
    ended = {"ended_at_ms": 9000, "cpu_ms": 5000, "peak_memory_bytes": 3 * 2**20}
    service.add("5", "succeeded", started_at_ms=2000, time_limit_ms=60_000, **ended)
    service.add("6", "failed", started_at_ms=2000, ended_at_ms=9000, cpu_ms=7000, peak_memory_bytes=2**30)
    rows = listed(run, "--all", "--columns", "key,limit,left,cpu-time,peak", "--no-header", "--sort", "key")
    assert rows == [
        ["1", "1m", "30s", "30s", "-", "-"],
        ["2", "-", "-", "-", "-"],
        ["3", "1h", "-", "-", "-"],
        ["4", "1m", "50s", "-", "-"],
        ["5", "1m", "-", "5.0s", "3Mi"],
        ["6", "-", "-", "7.0s", "1Gi"],
    ]
    for by, first in (("-peak", "6"), ("-cpu-time", "6"), ("left", "1"), ("limit,key", "4")):
        assert listed(run, "--all", "--columns", "key", "--no-header", "--sort", by)[0] == [first]
