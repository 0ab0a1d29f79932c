"""Runs that stand still and go on: with control groups and without, and what their end is then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.real

LOOP = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done"
COUNTS = f"trap 'echo saved; exit 7' TERM; {LOOP}"
BELOW = f"sh -c '{LOOP}' & wait"
"""What counts is a child of the command."""


def counted(bench: Bench) -> int:
    """How far it has counted."""
    return len(bench.output("a").splitlines())


def stands_still(bench: Bench) -> int:
    """Wait until it counts no more; how far it came."""

    def unchanged() -> bool:
        before = counted(bench)
        time.sleep(0.2)
        return counted(bench) == before

    bench.until(unchanged)
    return counted(bench)


@pytest.mark.parametrize("script", [COUNTS, BELOW])
def test_all_its_processes_stand_still_and_go_on(each_bench: Bench, script: str) -> None:
    """Also after the service that said so was replaced."""
    each_bench.start("a", "/bin/sh", "-c", script)
    each_bench.says("a", "3")
    each_bench.machine.go_on(each_bench.key("a"), None, suspended=True)
    before = stands_still(each_bench)
    each_bench.machine.close()
    each_bench.open().adopt()
    assert counted(each_bench) == before
    each_bench.machine.go_on(each_bench.key("a"), None)
    each_bench.until(lambda: counted(each_bench) > before + 3)
    each_bench.machine.stop(each_bench.key("a"), 0)
    assert each_bench.end("a").stopped


def test_what_stands_still_can_obey_when_it_is_to_end(each_bench: Bench) -> None:
    """It is woken first, so that it ends in its own way."""
    each_bench.start("a", "/bin/sh", "-c", COUNTS)
    each_bench.says("a", "3")
    each_bench.machine.go_on(each_bench.key("a"), None, suspended=True)
    stands_still(each_bench)
    each_bench.machine.stop(each_bench.key("a"))
    report = each_bench.end("a")
    assert (report.exit_code, report.stopped) == (7, True)
    assert "saved" in each_bench.output("a")


def test_its_time_stands_still_too(each_bench: Bench) -> None:
    """And is over when it has run for so long."""
    began = time.monotonic()
    each_bench.start("a", "/bin/sh", "-c", COUNTS, time_limit_ms=900)
    each_bench.says("a", "3")
    each_bench.machine.go_on(each_bench.key("a"), 900, suspended=True)
    stands_still(each_bench)
    time.sleep(1.2)
    assert each_bench.ended("a") is None
    each_bench.machine.go_on(each_bench.key("a"), 900)
    report = each_bench.end("a")
    assert (report.timed_out, time.monotonic() - began > 2) == (True, True)


def test_the_time_limit_of_what_runs_can_be_changed(each_bench: Bench) -> None:
    """It counts from the start."""
    each_bench.start("a", "/bin/sh", "-c", COUNTS, time_limit_ms=60_000)
    each_bench.says("a", "3")
    each_bench.machine.go_on(each_bench.key("a"), 300)
    assert each_bench.end("a").timed_out


def test_nothing_happens_to_what_is_over_or_unknown(bench: Bench) -> None:
    """An order may come late."""
    bench.run("a", "/bin/true")
    bench.machine.go_on(bench.key("a"), None, suspended=True)
    bench.machine.go_on(bench.key("never"), None, suspended=True)
    assert bench.machine.report(bench.key("never")) is None
