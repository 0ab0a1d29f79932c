"""A machine that has no room just when a supervisor begins: the run is not executed, and may be started again.

On a small file system of its own (tmpfs), which only root can mount; else they are skipped.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead.local import deliveries, launch
from fairlead.local.deliveries import Deliveries, Delivery
from fairlead.local.machine import Machine
from fairlead.local.orders import Orders
from fairlead.local.runs import RunReport, RunSpec
from fairlead.local.supervisor import run_files
from fairlead.local.supervisor.claims import kept_from

if TYPE_CHECKING:
    from conftest import Bench

pytestmark = pytest.mark.real

PAGE = 4096
FOR_A_CLAIM = 3 * PAGE
"""Room for the claim and the names of files, none for what is reserved behind it."""


class Disk:
    """A small disk that gets full at the very moment when a supervisor sets out."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.left: int | None = None
        """So many bytes are left over for the next supervisor; None: all."""

    def fill(self) -> None:
        if self.left is None:
            return
        with (self.directory / "filler").open("wb", buffering=0) as out:
            try:
                while out.write(b"x" * PAGE):
                    pass
            except OSError:
                out.truncate(max(0, out.tell() - self.left))

    def clear(self) -> None:
        self.left = None
        (self.directory / "filler").unlink()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    there = tmp_path / "disk"
    there.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", there], check=False).returncode:
        pytest.skip("only root can mount a small disk")
    made, start = Disk(there), launch.start_supervisor

    def start_on_full_disk(directory: Path) -> tuple[int, int]:
        made.fill()
        return start(directory)

    monkeypatch.setattr(launch, "start_supervisor", start_on_full_disk)
    try:
        yield made
    finally:
        subprocess.run(["umount", "-l", there], check=True)


@pytest.fixture
def bench(disk: Disk, bench: Bench) -> Bench:
    bench.directory = disk.directory / "runs"
    return bench


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 50
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def told_first(bench: Bench) -> RunReport:
    bench.wait(lambda: bench.ends)
    return bench.ends[0]


@pytest.mark.parametrize("left", [0, FOR_A_CLAIM])
def test_a_disk_that_gets_full_while_a_supervisor_sets_out_fails_no_run(bench: Bench, disk: Disk, left: int) -> None:
    """Neither before the claim nor behind it: the run is told as one that can be started again, and then it runs."""
    disk.left = left
    name = "a"
    bench.machine.start(bench.spec(name, "/bin/sh", "-c", "echo it ran"))
    told = told_first(bench)
    assert (told.not_now, told.never_executed, told.error) == (errno.ENOSPC, True, "No space left on device")
    assert not run_files.exists(str(bench.directory / bench.key(name)), run_files.CLAIM)
    bench.ends.clear()
    disk.clear()
    assert bench.run(name, "/bin/sh", "-c", "echo it ran").exit_code == 0
    assert bench.machine.stdout_path(bench.key(name)).read_text() == "it ran\n"


def test_what_was_told_to_stop_meanwhile_is_over(bench: Bench, disk: Disk) -> None:
    """It is not started again when there is room."""
    disk.left = FOR_A_CLAIM
    bench.machine.start(bench.spec("a", "/bin/true"))
    told_first(bench)
    disk.clear()
    bench.machine.stop(bench.key("a"))
    report = bench.machine.start(bench.spec("a", "/bin/true"))
    assert (report.stopped, report.started_at_ms) == (True, None)


def test_the_orders_start_it_again(disk: Disk, tmp_path: Path) -> None:
    """As soon as there is room, and once."""
    ledger, reports = tmp_path / "ledger", list[RunReport]()
    giving: list[Orders] = []

    def hear(report: RunReport) -> None:
        reports.append(report)
        if report.not_now:
            giving[0].start_again(report.key, OSError(report.not_now, report.error))
            if disk.left is not None:
                disk.clear()

    machine = Machine(disk.directory / "runs", on_end=hear)
    giving.append(Orders(machine, lambda _: None))
    disk.left = 0
    giving[0].start(RunSpec(key="1-1", command=("/bin/sh", "-c", f"echo ran >> {ledger}"), cwd="/"))
    wait_for(lambda: any(each.is_over for each in reports))
    assert [(each.not_now, each.exit_code) for each in reports] == [(errno.ENOSPC, None), (0, 0)]
    assert ledger.read_text() == "ran\n"
    giving[0].close()
    machine.close()


def test_a_supervisor_that_is_killed_before_it_begins_fails_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that kills them, for want of memory, would else fail all that waits, job after job."""
    start, ends = launch.start_supervisor, list[RunReport]()
    machine = Machine(tmp_path / "runs", on_end=ends.append)
    run = RunSpec(key="1-1", command=("/bin/true",), cwd="/")
    with monkeypatch.context() as patched:
        patched.setattr(launch, "start_supervisor", lambda directory: killed(start(directory)))
        machine.start(run)
        wait_for(lambda: bool(ends))
    assert (ends[0].not_now, ends[0].never_executed) == (errno.EAGAIN, True)
    machine.start(run)
    wait_for(lambda: len(ends) > 1)
    assert ends[1].exit_code == 0
    machine.close()


def test_what_is_given_up_has_failed_for_that_reason_after_a_restart_too(tmp_path: Path) -> None:
    """It is not taken for one that somebody stopped, is not executed later, and its files can go."""
    why = "could not be started: it was killed 30 times"
    machine = Machine(tmp_path / "runs", on_end=lambda _: None)
    machine.give_up("1-1", why)
    machine.close()
    again = Machine(tmp_path / "runs", on_end=lambda _: None)
    [report] = again.adopt()
    assert (report.error, report.exit_code, report.stopped, report.started_at_ms) == (why, 126, False, None)
    assert again.start(RunSpec(key="1-1", command=("/bin/true",), cwd="/")).error == why
    again.forget("1-1")
    again.purge("1-1")
    assert again.report("1-1") is None
    again.close()


def test_a_message_that_cannot_begin_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not keep other messages from being sent for ever."""
    monkeypatch.setattr(deliveries, "LOOK_AGAIN_S", 0.05)
    monkeypatch.setattr(deliveries, "TRIES", 3)
    start, told, tried = launch.start_supervisor, list[str](), list[Path]()

    def start_and_kill(directory: Path) -> tuple[int, int]:
        tried.append(directory)
        return killed(start(directory))

    monkeypatch.setattr(launch, "start_supervisor", start_and_kill)
    machine = Machine(tmp_path / "runs", on_end=lambda _: None)
    sending = Deliveries(machine, lambda _, wrong: told.append(wrong))
    message = {"to": "true", "kind": "command", "sentence": "it ended"}
    sending.send(Delivery(run="1-1.n0", facts={}, uid=os.geteuid(), gids=(0,), **message))
    wait_for(lambda: bool(told))
    assert told == ["it could not be started, 3 times"]
    assert len(tried) == 3
    wait_for(lambda: machine.report("1-1.n0") is None)
    sending.close()
    machine.close()


def killed(started: tuple[int, int]) -> tuple[int, int]:
    """Before it has even read which run it is for."""
    os.kill(started[0], signal.SIGKILL)
    return started


def test_a_message_is_sent_when_there_is_room(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a run like any other."""
    monkeypatch.setattr(deliveries, "LOOK_AGAIN_S", 0.3)
    sent, told = tmp_path / "sent", list[str]()
    ends: list[RunReport] = []

    def hear(report: RunReport) -> None:
        ends.append(report)
        if report.not_now:
            disk.clear()

    machine = Machine(disk.directory / "runs", on_end=hear)
    sending = Deliveries(machine, lambda _, wrong: told.append(wrong))
    disk.left = FOR_A_CLAIM
    message = {"to": f"echo sent >> {sent}", "kind": "command", "sentence": "it ended"}
    sending.send(Delivery(run="1-1.n0", facts={}, uid=os.geteuid(), gids=(0,), **message))
    wait_for(lambda: bool(told) and len(ends) > 1)
    assert (told, sent.read_text()) == ([""], "sent\n")
    assert [each.not_now for each in ends] == [errno.ENOSPC, 0]
    sending.close()
    machine.close()


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("", errno.EAGAIN),
        ("OSError: [Errno 24] Too many open files: '/usr/lib/python3'", errno.EMFILE),
        ("[Errno 28] No space left on device", errno.ENOSPC),
        ("its supervisor failed: PermissionError: [Errno 13] Permission denied", None),
        ("there is no readable spec in /x", None),
        ("python3: can't open file '/x/supervisor/__main__.py': [Errno 2] No such file or directory", errno.EAGAIN),
        ("its supervisor failed: ModuleNotFoundError: No module named 'supervisor.run'", errno.EAGAIN),
    ],
)
def test_what_passes_is_told_by_the_number_of_the_error(words: str, number: int | None) -> None:
    """In whatever words; what does not pass fails the run."""
    found = kept_from(words)
    assert (found.errno if found else None) == number
