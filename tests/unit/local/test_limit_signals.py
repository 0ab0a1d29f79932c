"""The signal before a run's time limit: when it comes, how often, and to which processes."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from fairlead.local.history_records import JobSpec
from fairlead.local.limit_signals import of
from fairlead.local.runs import LimitSignal

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.real

LOOP = "while :; do sleep 0.02; done"
FAMILY = f"trap 'echo parent' USR1; sh -c 'trap \"echo child\" USR1; echo ready; {LOOP}' & {LOOP}"
LIMIT_MS = 60_000


def wanted(to: str, before_ms: int = 1000) -> LimitSignal:
    return LimitSignal(number=signal.SIGUSR1, before_ms=before_ms, to=to)


def begin(bench: Bench, to: str = "all") -> None:
    """A run whose signal is due long after this test, and which is ready for it."""
    bench.start("a", "/bin/sh", "-c", FAMILY, time_limit_ms=LIMIT_MS, limit_signal=wanted(to, LIMIT_MS // 2))
    bench.says("a", "ready")


def make_due(bench: Bench, *, suspended: bool = False) -> None:
    """With this limit the signal was due a moment after the start, and its time is not over for long."""
    bench.machine.go_on(bench.key("a"), LIMIT_MS // 2 + 1, suspended=suspended)


def said(bench: Bench) -> list[str]:
    return sorted(bench.output("a").split())


@pytest.mark.parametrize(("to", "who"), [("first", ["parent"]), ("others", ["child"]), ("all", ["child", "parent"])])
def test_it_follows_the_time_limit_and_goes_to_whom_it_is_for(each_bench: Bench, to: str, who: list[str]) -> None:
    """Nothing comes before."""
    begin(each_bench, to)
    assert said(each_bench) == ["ready"]
    make_due(each_bench)
    each_bench.until(lambda: said(each_bench) == sorted([*who, "ready"]))
    each_bench.machine.stop(each_bench.key("a"), 0)
    each_bench.end("a")
    assert said(each_bench) == sorted([*who, "ready"])


def test_it_comes_once_whatever_becomes_of_service_and_limit(each_bench: Bench) -> None:
    """The run ends by its time limit all the same."""
    begin(each_bench, "first")
    make_due(each_bench)
    each_bench.says("a", "parent")
    each_bench.machine.close()
    each_bench.open().adopt()
    each_bench.machine.go_on(each_bench.key("a"), LIMIT_MS)
    make_due(each_bench)
    each_bench.machine.go_on(each_bench.key("a"), 1)
    assert each_bench.end("a").timed_out
    assert said(each_bench) == ["parent", "ready"]


def test_what_is_suspended_gets_it_when_it_goes_on(each_bench: Bench) -> None:
    """Its time stands still."""
    begin(each_bench, "first")
    make_due(each_bench, suspended=True)
    each_bench.machine.close()
    each_bench.open().adopt()
    assert said(each_bench) == ["ready"]
    make_due(each_bench)
    each_bench.says("a", "parent")
    each_bench.machine.stop(each_bench.key("a"), 0)
    each_bench.end("a")


def test_it_wakes_the_supervisor_in_time(each_bench: Bench) -> None:
    """Nothing else happens meanwhile; a process without a trap ends by it."""
    report = each_bench.run("a", "/bin/sleep", "60", time_limit_ms=LIMIT_MS, limit_signal=wanted("all", LIMIT_MS - 300))
    assert (report.signal, report.timed_out) == (signal.SIGUSR1, False)


def spec(limit_signal: str, *, is_script: bool = False) -> JobSpec:
    return JobSpec(
        key="1", user="ann", uid=1, command=("a",), queue="q", limit_signal=limit_signal, is_script=is_script
    )


def test_the_shell_of_a_script_is_left_out_as_in_slurm() -> None:
    """Unless the job says otherwise; a command is what wants it."""
    found = [of(spec(text, is_script=each)) for text in ("USR1@2", "B:USR1@2", "A:USR1@2") for each in (False, True)]
    assert [each and each.to for each in found] == ["all", "others", "first", "first", "all", "all"]
    assert (of(spec("USR1@2")), of(spec(""))) == (wanted("all", 2000), None)


@pytest.mark.parametrize("to", ["first", "others"])
def test_it_comes_as_a_run_begins_whose_whole_time_is_shorter(each_bench: Bench, to: str) -> None:
    """Not in its first moment: the traps would not be there, and it would end by what it was to save by."""
    each_bench.start("a", "/bin/sh", "-c", FAMILY, time_limit_ms=LIMIT_MS, limit_signal=wanted(to, 10 * LIMIT_MS))
    each_bench.says("a", {"first": "parent", "others": "child"}[to])
    each_bench.machine.stop(each_bench.key("a"), 0)
    assert not each_bench.end("a").timed_out
