"""`kill -9` and errors at the n-th system call of a supervisor: nothing twice, no orphan, no traceback, an end is told.

Each seed draws a fault, a job, and whether it is stopped; the supervisor runs under strace. Whatever happens the
machine tells the end of the run once. Where the supervisor lives, it is the real end, or it says that the job could not
begin. Where it was killed the run is lost if it had begun, nothing of it is left, and it is not executed again.

    python tests/crashes/supervisors.py [--seeds 1000] [--first 0]
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from crashes.command import again, main
from crashes.tracing import Fault, drawn, strace

from fairlead.local import launch
from fairlead.local.machine import Machine
from fairlead.local.means import Means
from fairlead.local.runs import RunReport, RunSpec
from fairlead.local.supervisor import kernel

PATIENCE_S = 40.0
FIRST_CALLS = 60


class Failed(AssertionError):
    """A promise was broken."""


class Trial:
    """One run under one fault."""

    def __init__(self, directory: Path, seed: int) -> None:
        dice = random.Random(seed)
        self.fault: Fault = drawn(dice, FIRST_CALLS)
        self.key = f"s{seed}"
        self.mark = directory / f"mark-{seed}"
        self.status = dice.choice([0, 0, 7])
        self.stops = dice.random() < 0.3
        pause = 30 if self.stops else dice.choice([0, 0.05, 0.2])
        # What it leaves behind has another session: a tree is found whole all the same.
        self.script = f"echo once >> {self.mark}; setsid sleep {pause} & sleep {pause}; wait; exit {self.status}"
        self.ends: list[RunReport] = []
        self.told = threading.Event()
        self.again = 0
        """How often it was started again, since the machine kept its supervisor from beginning."""
        self.machine = Machine(directory / "runs", on_end=self._end, means=Means(), gpus=())

    def _end(self, report: RunReport) -> None:
        if report.not_now:
            self.again += 1
            report = self.machine.start(self._spec())
            if not report.is_over:
                return
        self.ends.append(report)
        self.told.set()

    def go(self) -> str:
        """What became of it. Raises `Failed`."""
        try:
            self._start(self._spec())
            if self.stops:
                threading.Timer(0.4, self._stop).start()
            if not self.told.wait(PATIENCE_S):
                raise Failed(f"no end was told: {self.machine.report(self.key)}")
            time.sleep(0.02)
            return self._judge()
        finally:
            self.machine.close()

    def _spec(self) -> RunSpec:
        return RunSpec(key=self.key, command=("/bin/sh", "-c", self.script), grace_ms=500)

    def _start(self, spec: RunSpec) -> None:
        traced = strace(self.fault, "-D", "-b", "execve", sys.executable, "-I", "-S", str(launch.PROGRAM))
        plain = os.posix_spawn

        def spawn(path: str, words: list[str], env: dict[str, str], **how: Any) -> int:
            del path
            return plain("/usr/bin/strace", [*traced, words[-1]], env, **how)

        os.posix_spawn = spawn
        try:
            self.machine.start(spec)
        finally:
            os.posix_spawn = plain

    def _stop(self) -> None:
        self.machine.stop(self.key, 500)

    def _judge(self) -> str:
        report = self.ends[0]
        marks = len(self.mark.read_text().splitlines()) if self.mark.exists() else 0
        left = kernel.marked([str(m)]) if (m := self._marker()) else {}
        said = f"{report.error} {report.note}"
        if self.again > 1:
            raise Failed(f"without a fault it could not begin either, {self.again - 1} times")
        if len(self.ends) != 1:
            raise Failed(f"its end was told {len(self.ends)} times")
        if left:
            raise Failed(f"processes are left: {left}")
        if marks > 1:
            raise Failed(f"it ran {marks} times")
        if "Traceback" in said:
            raise Failed(said)
        if report.lost:
            if self.fault.what != "KILL":
                raise Failed(f"lost without a kill: {said}")
            return "lost"
        if report.error:
            return "could not begin" if marks == 0 else self._raise(f"it ran, and is said not to have begun: {said}")
        if report.started_at_ms is None:
            return "stopped before it began" if self.stops and marks == 0 else self._raise(f"never begun: {report}")
        if self.stops and report.signal is not None:
            return "stopped"
        if (self.fault.what, self.fault.call, report.signal, marks) == ("KILL", "dup2", signal.SIGKILL, 0):
            return "killed itself"  # The process of the job alone calls dup2, before its program: that is its own end.
        if marks != 1 or report.exit_code != self.status:
            raise Failed(f"another end than its own ({marks} marks): {report}")
        return "ended after another start" if self.again else "ended"

    def _raise(self, why: str) -> str:
        raise Failed(why)

    def _marker(self) -> str:
        from fairlead.local.runs import directory_of, spec_of

        spec = spec_of(directory_of(self.machine._runs, self.key))
        return str(spec["marker"]) if spec is not None else ""


def run(first: int, seeds: int) -> tuple[Counter[str], list[str]]:
    """What became of them, and what broke a promise."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="fl-crash", dir="/tmp") as directory:
        for seed in range(first, first + seeds):
            trial = Trial(Path(directory), seed)
            try:
                counts[trial.go()] += 1
            except Failed as failure:
                counts["FAILED"] += 1
                failures.append(f"{again('supervisors', seed, 1)}: ({trial.fault}): {failure}")
            for pid in kernel.marked([trial._marker()]).get(trial._marker(), []):
                os.kill(pid, signal.SIGKILL)
    return counts, failures


if __name__ == "__main__":
    sys.exit(main(__doc__, run))
