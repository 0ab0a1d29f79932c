"""A machine with a directory of its own, and the proof that nothing of its runs is left when a test is over."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from invariants.books import check_books
from testbed.paper import Service

from fairlead.local.devices import read_hierarchies
from fairlead.local.machine import Machine
from fairlead.local.means import Means, probe
from fairlead.local.runs import RunReport, RunSpec
from fairlead.local.supervisor import kernel

PATIENCE_S = 20.0
NUMBERS = itertools.count()


def until(what: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """Wait until something is true; that something."""
    deadline = time.monotonic() + patience_s
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service without processes; its books are in order in the end."""
    made = Service(tmp_path)
    try:
        yield made
    finally:
        made.runtime.close()
        made.place.close()
    check_books(made.runtime.books.scheduler)


@functools.cache
def found_means() -> Means:
    """What this machine offers; probed once for all tests."""
    return probe(read_hierarchies())


class Bench:
    """A machine under test: starts runs, keeps what it is told, knows what is left of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.prefix = f"t{os.getpid()}n{next(NUMBERS)}-"
        self.begins: dict[str, RunReport] = {}
        self.ends: list[RunReport] = []
        self._changed = threading.Condition()
        self.machines: list[Machine] = []
        self.closed = False

    def open(self, **options: Any) -> Machine:
        """One more machine on the same directory, as after a restart."""
        options.setdefault("means", found_means())
        machine = Machine(self.directory, on_end=self._on_end, on_begin=self._on_begin, **options)
        self.machines.append(machine)
        return machine

    @property
    def machine(self) -> Machine:
        return self.machines[-1] if self.machines else self.open()

    def _on_begin(self, report: RunReport) -> None:
        with self._changed:
            self.begins[report.key] = report
            self._changed.notify_all()

    def _on_end(self, report: RunReport) -> None:
        with self._changed:
            self.ends.append(report)
            self._changed.notify_all()

    def key(self, name: str) -> str:
        return self.prefix + name

    def spec(self, name: str, *command: str, **more: Any) -> RunSpec:
        return RunSpec(key=self.key(name), command=command, **more)

    def start(self, name: str, *command: str, **more: Any) -> RunReport:
        """Start a run and wait until its command has been let go."""
        report = self.machine.start(self.spec(name, *command, **more))
        if report.ended_at_ms is None:
            self.wait(lambda: self.key(name) in self.begins or self.ended(name))
        return report

    def run(self, name: str, *command: str, **more: Any) -> RunReport:
        """Start a run and wait for its end."""
        report = self.machine.start(self.spec(name, *command, **more))
        return report if report.ended_at_ms is not None else self.end(name)

    def shell(self, name: str, script: str, **more: Any) -> RunReport:
        return self.run(name, "/bin/sh", "-c", script, **more)

    def ended(self, name: str) -> RunReport | None:
        return next((each for each in self.ends if each.key == self.key(name)), None)

    def end(self, name: str) -> RunReport:
        self.wait(lambda: self.ended(name))
        found = self.ended(name)
        assert found is not None
        return found

    def wait(self, what: Callable[[], Any]) -> None:
        with self._changed:
            assert self._changed.wait_for(what, PATIENCE_S), "the machine did not say so in time"

    def until(self, what: Callable[[], Any]) -> Any:
        """Wait until something is true; that something."""
        return until(what)

    def output(self, name: str) -> str:
        """What it has written so far."""
        path = self.machine.stdout_path(self.key(name))
        return path.read_text() if path.exists() else ""

    def says(self, name: str, text: str) -> None:
        """Wait until the job has written this."""
        until(lambda: text in self.output(name))

    def processes(self) -> list[int]:
        """The living processes of this bench's runs, found by the marker that all of them carry."""
        found = []
        for pid in kernel.pids():
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            here = f"\0{kernel.MARKER}={self.prefix}".encode() in b"\0" + environ
            if here and (process := kernel.process(pid)) is not None and process.state not in "ZX":
                found.append(pid)
        return found

    def supervisors(self) -> list[int]:
        """The living supervisors of this bench's runs, found by their command line; a fork of one is none."""
        found = {}
        for pid in kernel.pids():
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            process = kernel.process(pid)
            if str(self.directory).encode() in command and b"supervisor" in command and process is not None:
                found[pid] = process.parent
        return [pid for pid, parent in found.items() if parent not in found]

    def groups(self) -> list[Path]:
        """The control groups that were made for this bench's runs."""
        bases = {place.own for place in read_hierarchies().places.values()}
        return [group for base in sorted(bases) for group in base.glob(f"fairlead-{self.prefix}*")]

    def close(self) -> None:
        """End what still runs, and prove that nothing is left."""
        if self.closed:
            return
        self.closed = True
        for report in self.machine.adopt():
            if report.ended_at_ms is None:
                self.machine.stop(report.key, grace_ms=0)
        until(lambda: all(report.ended_at_ms is not None for report in self.machine.adopt()))
        until(lambda: not self.supervisors())
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        groups = self.groups()
        for machine in self.machines:
            machine.close()
        assert not left
        assert not groups


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "runs")
    yield bench
    bench.close()


@pytest.fixture(params=["best", "bare"])
def each_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Once with all that this machine offers, once without any control group."""
    bench = Bench(tmp_path / "runs")
    bench.open(**({} if request.param == "best" else {"means": Means(root=os.geteuid() == 0)}))
    yield bench
    bench.close()
