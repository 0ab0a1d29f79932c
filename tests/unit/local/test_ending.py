"""How runs are ended: to the last process, in time, and with the truth about it. Each test is done on both rungs."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from fairlead.local.means import Means
from fairlead.local.supervisor import kernel

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.real

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
DETACHED = "import os, sys, time\nos.fork() and os._exit(0)\nos.setsid()\nos.fork() and os._exit(0)\n"
"""Leaves its session and its parent, as a daemon does."""
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


def test_stop_asks_first(each_bench: Bench) -> None:
    """Work that obeys SIGTERM ends in its own way, with its own exit status, long before the grace is over."""
    each_bench.start("a", "/bin/sh", "-c", "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.02; done")
    each_bench.says("a", "ready")
    each_bench.machine.stop(each_bench.key("a"))
    report = each_bench.end("a")
    assert (report.exit_code, report.signal, report.stopped) == (7, None, True)
    assert "saved" in each_bench.output("a")


def test_stop_kills_after_the_grace(each_bench: Bench) -> None:
    """Work that ignores SIGTERM is killed when the grace is over, and not before."""
    each_bench.start("a", "/bin/sh", "-c", STUBBORN)
    each_bench.says("a", "ready")
    asked = time.monotonic()
    each_bench.machine.stop(each_bench.key("a"), grace_ms=300)
    report = each_bench.end("a")
    assert 0.3 <= time.monotonic() - asked < 5
    assert (report.exit_code, report.signal, report.stopped) == (None, 9, True)


def test_the_grace_is_that_of_the_run(each_bench: Bench) -> None:
    """A stop that names no grace uses the one of the specification."""
    each_bench.start("a", "/bin/sh", "-c", STUBBORN, grace_ms=100)
    each_bench.says("a", "ready")
    each_bench.machine.stop(each_bench.key("a"))
    assert each_bench.end("a").signal == 9


def test_a_second_stop_shortens_the_grace(each_bench: Bench) -> None:
    """Who loses patience can kill at once; who then offers more time changes nothing."""
    each_bench.start("a", "/bin/sh", "-c", STUBBORN)
    each_bench.says("a", "ready")
    for grace_ms in (60_000, 0, 60_000):
        each_bench.machine.stop(each_bench.key("a"), grace_ms=grace_ms)
    assert each_bench.end("a").signal == 9


def test_stop_returns_at_once(bench: Bench) -> None:
    """The caller does not wait for the grace."""
    bench.start("a", "/bin/sh", "-c", STUBBORN)
    before = time.monotonic()
    bench.machine.stop(bench.key("a"), grace_ms=60_000)
    assert time.monotonic() - before < 1
    bench.machine.stop(bench.key("a"), grace_ms=0)


def test_stop_of_what_has_ended_changes_nothing(bench: Bench) -> None:
    """An ended run keeps its report."""
    end = bench.shell("a", "exit 4")
    bench.machine.stop(bench.key("a"))
    assert bench.machine.report(bench.key("a")) == end


def test_stop_right_after_start(each_bench: Bench) -> None:
    """A stop that comes while the supervisor is not yet ready is obeyed: the job ends or never begins."""
    for number in range(5):
        each_bench.machine.start(each_bench.spec(f"a{number}", "sleep", "60"))
        time.sleep(number * 0.008)
        each_bench.machine.stop(each_bench.key(f"a{number}"))
    for number in range(5):
        report = each_bench.end(f"a{number}")
        assert report.stopped
        assert report.signal == 15 if report.started_at_ms is not None else report.signal is None
        assert not report.error


def test_suspended_work_can_be_stopped(each_bench: Bench) -> None:
    """Work that was suspended is woken to hear SIGTERM."""
    each_bench.start("a", "/bin/sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done")
    each_bench.says("a", "ready")
    pid = each_bench.begins[each_bench.key("a")].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    each_bench.machine.stop(each_bench.key("a"))
    assert each_bench.end("a").exit_code == 7


def test_every_process_is_asked(each_bench: Bench) -> None:
    """SIGTERM reaches a child in another session too, so that it can save its work.

    By a plain write: a signal that comes while `print` still writes finds it busy, and Python raises.
    """
    child = DETACHED + (
        "import signal\ndef save(*_):\n    os.write(1, b'saved'); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    each_bench.start("a", "/bin/sh", "-c", f'"{sys.executable}" -c "$0"; {STUBBORN.replace("echo ready", ":")}', child)
    each_bench.says("a", "ready")
    each_bench.machine.stop(each_bench.key("a"), grace_ms=3_000)
    each_bench.end("a")
    assert "saved" in each_bench.output("a")


@pytest.mark.parametrize("deaf", [False, True])
def test_nothing_is_left_when_the_command_ends(each_bench: Bench, deaf: bool) -> None:
    """A run ends with its command: what it left in the background, even in a session of its own, is ended too."""
    child = (DEAF if deaf else "") + DETACHED + "print('ready', flush=True)\ntime.sleep(60)"
    ready = each_bench.directory.parent / "ready"
    script = (
        f'setsid sleep 60 & "{sys.executable}" -c "$0" > "$1"; while ! grep -q ready "$1"; do sleep 0.02; done; exit 3'
    )
    report = each_bench.run("a", "/bin/sh", "-c", script, child, str(ready), grace_ms=200)
    assert report.exit_code == 3
    assert not report.note
    assert each_bench.processes() == []


def test_a_stopped_tree_is_gone_when_the_end_is_told(each_bench: Bench) -> None:
    """Deaf children in sessions of their own, children of dead parents: all gone at the moment of the report."""
    child = DEAF + DETACHED + "os.fork()\nos.fork()\nprint('ready', flush=True)\ntime.sleep(60)"
    each_bench.start("a", "/bin/sh", "-c", f'"{sys.executable}" -c "$0" & {STUBBORN}', child)
    each_bench.until(lambda: each_bench.output("a").count("ready") == 5)
    assert len(each_bench.processes()) >= 5
    each_bench.machine.stop(each_bench.key("a"), grace_ms=50)
    assert each_bench.end("a").signal == 9
    assert each_bench.processes() == []


def test_a_tree_that_grows_while_it_is_killed(each_bench: Bench) -> None:
    """Processes that replace themselves faster than they can be listed are caught all the same."""
    runner = DEAF + (
        "import os, time\nprint('ready', flush=True)\n"
        "while True:\n    if os.fork():\n        os._exit(0)\n    os.setsid()\n    time.sleep(0.0005)"
    )
    each_bench.start("a", "/bin/sh", "-c", f'for i in 1 2 3; do "{sys.executable}" -c "$0"; done; {STUBBORN}', runner)
    each_bench.until(lambda: each_bench.output("a").count("ready") == 4)
    each_bench.machine.stop(each_bench.key("a"), grace_ms=0)
    assert not each_bench.end("a").note
    assert each_bench.processes() == []


# --- time ---


def test_the_time_limit_ends_it(each_bench: Bench) -> None:
    """When the time limit is over the job is asked to end; it is reported as timed out, not as stopped."""
    report = each_bench.run("a", "sleep", "60", time_limit_ms=200)
    assert (report.signal, report.timed_out, report.stopped) == (15, True, False)
    assert report.started_at_ms is not None
    assert report.ended_at_ms is not None
    assert report.ended_at_ms - report.started_at_ms >= 195


def test_what_was_told_to_stop_has_not_run_out_of_time(each_bench: Bench) -> None:
    """Its limit passes within its grace period: it was stopped before, and for another reason."""
    each_bench.start("a", "/bin/sh", "-c", STUBBORN, time_limit_ms=1_500)
    each_bench.says("a", "ready")
    each_bench.machine.stop(each_bench.key("a"), grace_ms=2_500)
    report = each_bench.end("a")
    assert (report.signal, report.stopped, report.timed_out) == (9, True, False)


def test_the_time_limit_kills_after_the_grace(each_bench: Bench) -> None:
    """Work that ignores the request is killed after its grace. It has its time to get so far, on a busy machine too."""
    report = each_bench.shell("a", STUBBORN, time_limit_ms=2_000, grace_ms=100)
    assert (report.signal, report.timed_out) == (9, True)


def test_a_time_limit_that_is_not_reached_is_not_mentioned(bench: Bench) -> None:
    """Work that ends in time has not timed out."""
    report = bench.run("a", "true", time_limit_ms=60_000)
    assert (report.exit_code, report.timed_out) == (0, False)


# --- bounds ---


def test_too_much_memory(each_bench: Bench) -> None:
    """Work that takes more memory than it asked for is killed, by the kernel or by the watch, and told so."""
    code = "import time\nx = bytearray(120_000_000)\ntime.sleep(20)"
    report = each_bench.run("a", sys.executable, "-c", code, memory=60_000_000)
    assert report.oom
    assert report.signal == 9
    assert "57Mi" in report.note


def test_where_the_kernel_killed_but_a_part_of_the_work_that_is_said(bench: Bench) -> None:
    """The command went on, and may have ended well."""
    if not any(each.name == "memory limit" and each.enforced for each in bench.machine.capabilities()):
        pytest.skip("no control group bounds memory here: the watch ends all of it")
    code = "bytearray(80_000_000)"
    report = bench.run("a", "/bin/sh", "-c", f'"{sys.executable}" -c "{code}"; exit 0', memory=60_000_000)
    assert (report.exit_code, report.oom) == (0, True)
    assert report.note.endswith("the kernel killed processes of it")


def test_shared_memory_counts_once(each_bench: Bench) -> None:
    """Five processes that share 60 MB are 60 MB, not 300: they stay within 150 MB."""
    code = "import os, time\nx = b'x' * 60_000_000\nany(not os.fork() for _ in range(4))\ntime.sleep(0.8)"
    report = each_bench.run("a", sys.executable, "-c", code, memory=150_000_000)
    assert (report.exit_code, report.oom) == (0, False)
    assert report.peak_memory_bytes < 150_000_000


def test_memory_within_the_request_is_left_alone(each_bench: Bench) -> None:
    """Work that keeps to its request ends normally."""
    report = each_bench.run("a", sys.executable, "-c", "x = bytearray(40_000_000)", memory=100_000_000)
    assert (report.exit_code, report.oom, report.note) == (0, False, "")


def test_cpu_is_bounded(bench: Bench) -> None:
    """Where the controller is there, work that asked for a fifth of a core gets no more, however it tries."""
    if not _enforced(bench, "cpu limit"):
        pytest.skip("this machine cannot limit CPU time")
    code = "import time\nend = time.monotonic() + 0.8\nwhile time.monotonic() < end: pass"
    assert bench.run("a", sys.executable, "-c", code, vcore=200).cpu_ms < 400


def test_cores_are_bound_where_nothing_better_is_there(bench: Bench) -> None:
    """Without a controller, work that asked for one core sees one, and two such runs see different ones."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is only one core")
    bench.open(means=Means())
    show = "import os, time; print(sorted(os.sched_getaffinity(0)), 'ready', flush=True); time.sleep(60)"
    for name in "ab":
        bench.start(name, sys.executable, "-c", show, vcore=900)
        bench.says(name, "ready")
    first, second = bench.output("a"), bench.output("b")
    assert first.count(",") == second.count(",") == 0
    assert first != second


def test_a_fork_bomb_is_bounded(bench: Bench) -> None:
    """Where the controller is there, a run cannot have more processes than it may."""
    if not _enforced(bench, "process limit"):
        pytest.skip("this machine cannot limit processes")
    code = (
        "import os, time\ncount = 0\ntry:\n    while count < 100:\n        if not os.fork(): time.sleep(60)\n"
        "        count += 1\nexcept BlockingIOError:\n    print(count)"
    )
    bench.run("a", sys.executable, "-c", code, processes=20)
    assert bench.output("a") == "19\n"


def _enforced(bench: Bench, name: str) -> bool:
    return next(each.enforced for each in bench.machine.capabilities() if each.name == name)


def test_work_is_the_first_to_go_when_memory_runs_out(bench: Bench) -> None:
    """The kernel's killer prefers work to the service."""
    bench.shell("a", "cat /proc/self/oom_score_adj")
    assert int(bench.output("a")) == 500


def test_every_capability_says_how(bench: Bench) -> None:
    """Each capability has a name of its own and a sentence, whether it is enforced or not."""
    for machine in (bench.open(), bench.open(means=Means(), gpus=[0])):
        found = machine.capabilities()
        assert [each.name for each in found] == [
            "cpu limit",
            "memory limit",
            "process limit",
            "whole tree killed",
            "gpu visibility",
            "run as submitter",
            "work outlives the service",
        ]
        assert all(len(each.how) > 20 for each in found)
    assert not any(each.enforced for each in found if each.name.endswith("limit"))


# --- the supervisor itself ---


def test_a_kernel_that_cannot_tell_of_ends_is_asked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without descriptors for processes (before Linux 5.3) ends are found by looking, and stops still arrive."""
    monkeypatch.delattr(os, "pidfd_open")
    assert bench.shell("a", "exit 3").exit_code == 3
    bench.start("b", "sleep", "60")
    bench.machine.stop(bench.key("b"))
    assert bench.end("b").signal == 15


def test_sigterm_to_the_supervisor_stops_the_run(each_bench: Bench) -> None:
    """An operator or a shutdown that ends the supervisor ends the job properly."""
    each_bench.start("a", "/bin/sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done")
    each_bench.says("a", "ready")
    (supervisor,) = each_bench.supervisors()
    os.kill(supervisor, signal.SIGHUP)
    os.kill(supervisor, signal.SIGTERM)
    report = each_bench.end("a")
    assert (report.exit_code, report.stopped) == (7, True)


@pytest.mark.parametrize("deaf", [False, True])
def test_a_killed_supervisor_takes_the_job_with_it(each_bench: Bench, deaf: bool) -> None:
    """Without its supervisor a run is lost; nothing of it goes on unwatched, not even what has detached itself."""
    child = (DEAF if deaf else "") + DETACHED + "print('ready', flush=True)\ntime.sleep(60)"
    each_bench.start("a", "/bin/sh", "-c", f'"{sys.executable}" -c "$0" & {STUBBORN}', child)
    each_bench.until(lambda: each_bench.output("a").count("ready") == 2)
    for supervisor in each_bench.supervisors():
        os.kill(supervisor, signal.SIGKILL)
    report = each_bench.end("a")
    assert (report.lost, report.exit_code, report.signal) == (True, None, None)
    assert "supervisor was killed" in report.note
    assert each_bench.processes() == []
    assert each_bench.machine.report(each_bench.key("a")) == report


def test_a_supervisor_is_small(bench: Bench) -> None:
    """Hundreds of runs are possible: a supervisor holds little memory of its own and does next to nothing."""
    bench.start("a", "sleep", "60")
    (supervisor,) = bench.supervisors()
    own = kernel.shared_memory_once(supervisor)
    assert own is not None
    assert own < 20_000_000
    before = kernel.process(supervisor)
    time.sleep(0.5)
    after = kernel.process(supervisor)
    assert before is not None
    assert after is not None
    assert (after.own_ticks - before.own_ticks) * kernel.TICK_MS <= 50
