"""The life of one run, from the claim to the result.

Decides when the tree is asked to end, when it is killed, and what is reported. Never decides what to execute or within
which bounds: both stand in `spec`. Invariants: the command is executed only by the process that made the claim; the
result is written only when nothing of the tree is left; time periods are measured with a clock that nobody can set.

Signals are blocked and taken one by one at one place, so there is no code that can be interrupted by another.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
from typing import Any

from . import cgroups, child, claims, kernel, run_files, tree
from .ends import Ends
from .limit_signal import LimitSignal
from .sealed import Damaged

WAKE = signal.SIGURG
"""Sent by the machine with a `stop` or `course` file. Without effect on a supervisor that is not yet ready for it."""
TAKEN = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, WAKE}
BLOCKED = TAKEN | {signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM}

LEFTOVERS_S = 1.0
"""What is still there when the command itself has ended gets SIGTERM and this long, or less if its grace is shorter."""
FIRST_LOOK_S = 0.02
RELAXED_LOOK_S = 5.0
WATCHFUL_LOOK_S = 0.25
KILL_PATIENCE_S = 30.0
MOST_FAILURES = 1000
AGAIN_S = 0.2
"""What the kernel cannot say or do just now (no memory, no file descriptor left) is tried again, so often, so soon."""
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 1.0
"""Between two tries to write the result."""

CLAIMED_BY_ANOTHER = 3
NOT_BEGUN = 4


class Supervision:
    """One run that this process has claimed."""

    def __init__(
        self,
        directory: str,
        spec: run_files.Record,
        command: int,
        fault: int,
        streams: Ends,
        *,
        keeps_orphans: bool = True,
    ) -> None:
        self.directory = directory
        self.streams = streams
        self.keeps_orphans = keeps_orphans
        self.begun = False
        self.no_room: OSError | None = None
        """What kept its files from being made; its bounds are another matter."""
        self.spec = spec
        self.plan: cgroups.Plan = spec["groups"]
        self.me = os.getpid()
        self.command = command
        self.fault = fault
        self.status: int | None = None
        self.began = time.monotonic()
        self.grace_s: float = spec["run"]["grace_ms"] / 1000
        self.limit_ms: int | None = spec["run"]["time_limit_ms"]
        self.limit_signal = LimitSignal(spec["run"].get("limit_signal"), self.began)
        self.suspended_at: float | None = None
        self.suspended_s = 0.0
        self.kill_at: float | None = None
        self.asked = False
        """Everything of the tree was sent SIGTERM."""
        self.hung_up: set[int] = set()
        """What was sent SIGHUP after that."""
        self.peak = 0
        self.over_before = False
        self.next_look = self.began + FIRST_LOOK_S
        self.look_every = FIRST_LOOK_S
        self.outcome: dict[str, Any] = {"stopped": False, "timed_out": False, "oom": False, "note": ""}

    def until_the_end(self) -> None:
        """Wait until nothing of the tree is left, and see to it that this comes, even if something fails at times."""
        for _ in range(MOST_FAILURES):
            try:
                self.watch_to_the_end()
                return
            except OSError:
                time.sleep(AGAIN_S)
        self.watch_to_the_end()

    def watch_to_the_end(self) -> None:
        """As `until_the_end`; raises OSError, and goes on where it was when it is called again."""
        self.read_wishes()
        if self.kill_at is not None and not self.asked:
            self.ask_to_end(self.kill_at - time.monotonic())
        while self.reap():
            now = time.monotonic()
            if self.status is not None and self.kill_at is None:
                self.ask_to_end(min(self.grace_s, LEFTOVERS_S))
            limit = self.time_limit()
            if (due := self.limit_signal.due(limit)) is not None and now >= due:
                self.limit_signal.send(self.me, self.command, self.plan)
            if limit is not None and now >= limit:
                self.limit_ms = None
                self.outcome["timed_out"] = True
                self.ask_to_end(self.grace_s)
            if self.kill_at is not None and now >= self.kill_at:
                self.kill()
                break
            if now >= self.next_look:
                self.look()
                continue
            self.wait(now)
        if cgroups.members(self.plan):
            self.kill()
        if not self.keeps_orphans:
            tree.end_orphans(self.spec["marker"], self.plan)

    def wait(self, now: float) -> None:
        """Sleep until a signal comes or something is due."""
        moments = (limit := self.time_limit(), self.limit_signal.due(limit), self.kill_at)
        due = [self.next_look, *(each for each in moments if each is not None)]
        info = signal.sigtimedwait(TAKEN, max(0.0, min(due) - now))
        if info is None or info.si_signo == signal.SIGCHLD:
            return
        if info.si_signo == WAKE:
            self.read_wishes()
        else:
            self.outcome["stopped"] = True
            self.ask_to_end(self.grace_s)

    def time_limit(self) -> float | None:
        """When its time is over, what it was suspended not counted; None: never, or not as long as it is suspended.

        What was told to stop has the rest of its grace period: it does not run out of time any more.
        """
        if self.limit_ms is None or self.status is not None or self.suspended_at is not None or self.outcome["stopped"]:
            return None
        return self.began + self.suspended_s + self.limit_ms / 1000

    def reap(self) -> bool:
        """Collect the children that have ended. False: there are none left, neither living nor dead."""
        while True:
            try:
                pid, status, _ = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.command:
                self.status = status

    def read_wishes(self) -> None:
        """Obey the files `course` and `stop`, as far as they are there.

        A later wish to stop can shorten the grace period, not lengthen it.
        """
        course = self.read(run_files.COURSE, None)
        if course is not None and self.kill_at is None and self.status is None:
            self.limit_ms = course["time_limit_ms"]
            self.suspend() if course["suspended"] else self.resume()
        wish = self.read(run_files.STOP, {"grace_ms": self.spec["run"]["grace_ms"]})
        if wish is not None and self.status is None:
            self.outcome["stopped"] = True
            self.ask_to_end(wish["grace_ms"] / 1000)

    def read(self, name: str, otherwise: run_files.Record | None) -> run_files.Record | None:
        """A wish of the machine; `otherwise`: what one that is damaged is taken for."""
        try:
            return run_files.read(self.directory, name)
        except Damaged:
            return otherwise

    def suspend(self) -> None:
        """Let the tree stand still until it is resumed, or asked to end."""
        if self.suspended_at is None:
            tree.suspend(self.me, self.plan)
            self.suspended_at = time.monotonic()

    def resume(self) -> None:
        """Let it go on."""
        if self.suspended_at is not None:
            self.suspended_s += time.monotonic() - self.suspended_at
            self.suspended_at = None
            tree.resume(self.me, self.plan)

    def ask_to_end(self, grace_s: float) -> None:
        """SIGTERM to the tree now, SIGKILL after the grace period. What stands still goes on, so that it can obey."""
        kill_at = time.monotonic() + grace_s
        self.kill_at = kill_at if self.kill_at is None else min(kill_at, self.kill_at)
        self.resume()
        if not self.asked:
            tree.ask_to_end(self.me, self.plan)
            self.asked = True
            self.look_every = FIRST_LOOK_S
            self.next_look = time.monotonic() + self.look_every

    def kill(self) -> None:
        """Kill the tree to the last process. Gives up, and says so, only on what the kernel does not let die."""
        deadline = time.monotonic() + KILL_PATIENCE_S
        pause = 0.001
        while True:
            with contextlib.suppress(OSError):  # Tried again.
                tree.kill(self.me, self.plan)
                if not self.reap() and not cgroups.members(self.plan):
                    return
            if time.monotonic() > deadline:
                left = sorted({*tree.below(self.me), *cgroups.members(self.plan)})
                self.outcome["note"] = f"{len(left)} of its processes could not be killed: {left[:10]}"
                return
            signal.sigtimedwait({signal.SIGCHLD}, pause)
            pause = min(pause * 2, 0.1)

    def look(self) -> None:
        """Measure the memory; where no control group bounds it, end what takes more than it asked for. What was told to
        end and has a terminal is hung up on, once nothing is left that heeds SIGTERM.
        """
        self.peak = tree.peak_memory(self.me, self.plan, self.peak)
        most = RELAXED_LOOK_S
        if self.asked and self.spec["run"]["terminal"]:
            most = WATCHFUL_LOOK_S
            tree.hang_up(self.me, self.hung_up)
        limit = self.spec["memory_watch"]
        if limit:
            most = WATCHFUL_LOOK_S
            used = tree.exceeds_memory(self.me, limit)
            if used is not None and self.over_before:
                self.outcome["oom"] = True
                shown = f"{used >> 20}Mi of memory, more than its {limit >> 20}Mi"
                self.outcome["note"] = f"it used {shown}, and was killed"
                self.kill_at = time.monotonic()
            self.over_before = used is not None
        self.look_every = min(self.look_every * 1.5, most)
        self.next_look = time.monotonic() + self.look_every

    def result(self) -> run_files.Record:
        """How it ended, for the result file."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        counted = cgroups.cpu_ms(self.plan)
        cpu_ms = int((used.ru_utime + used.ru_stime) * 1000) if counted is None else counted
        if cgroups.killed_for_memory(self.plan):
            self.outcome["oom"] = True
            limit = self.spec["run"]["memory"]
            whom = "it" if _status(self.status)["signal"] == signal.SIGKILL else "processes of it"
            self.outcome["note"] = f"it reached its memory bound of {limit >> 20}Mi and the kernel killed {whom}"
        if not self.begun:
            return {**self.outcome, "begun": False}
        lost = self.streams.finish()
        if lost and not self.outcome["note"]:
            self.outcome["note"] = f"the last {lost} bytes of its output are missing: the disk was full"
        return {
            **self.outcome,
            **_status(self.status),
            **self.fault_of_child(),
            "cpu_ms": cpu_ms,
            "peak_memory_bytes": max(self.peak, used.ru_maxrss * 1024),
        }

    def fault_of_child(self) -> dict[str, Any]:
        """What kept the child from becoming the command; empty if it did."""
        try:
            fault = os.read(self.fault, 65536)
        except BlockingIOError:
            return {}
        if not fault:
            return {}
        status, sentence = json.loads(fault)
        return {"exit_code": status, "signal": None, "error": sentence}


def _status(status: int | None) -> dict[str, Any]:
    if status is None:
        return {"exit_code": None, "signal": None}
    code = os.waitstatus_to_exitcode(status)
    return {"exit_code": code, "signal": None} if code >= 0 else {"exit_code": None, "signal": -code}


def main(arguments: list[str]) -> int:
    """Supervise the run of one directory. Messages on standard error reach the machine if it still lives."""
    directory = os.path.abspath(arguments[0])
    keeps_orphans = _detach()
    spec, why = None, ""
    try:
        spec = run_files.read(directory, run_files.SPEC)
    except (Damaged, OSError) as problem:
        why = f": {problem}"
    if spec is None:
        print(f"there is no readable {run_files.SPEC} in {directory}{why}", file=sys.stderr)
        return NOT_BEGUN
    try:
        return _claim_and_supervise(directory, spec, keeps_orphans)
    except OSError as problem:
        if claims.give_back(directory, problem):
            return NOT_BEGUN
        sentence = f"the run's files cannot be written: {problem}"
        if not claims.is_ours(directory):
            print(sentence, file=sys.stderr)
            return NOT_BEGUN
        # The claim may not outlive a power cut, so nothing was begun; nothing else ever will begin it either.
        return _deliver(directory, {"begun": False, "error": sentence, "exit_code": child.NOT_EXECUTABLE})


def _detach() -> bool:
    """Become independent of whoever started this process. True: orphans of the job come back to it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.close(int(name))
    os.umask(0o077)
    os.chdir("/")
    return kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)


def _claim_and_supervise(directory: str, spec: run_files.Record, keeps_orphans: bool) -> int:
    gate_out, gate = os.pipe()
    fault, fault_in = os.pipe()
    streams = Ends(directory, spec["run"])
    me = os.getpid()
    command = os.fork()
    if command == 0:
        os.close(gate)
        child.become_command(streams.of_child, spec, me, gate_out, fault_in)
    streams.let_go()
    os.close(gate_out)
    os.close(fault_in)
    if not run_files.claim(directory, claims.record(spec, me, command)):
        os.close(gate)
        os.waitpid(command, 0)
        return CLAIMED_BY_ANOTHER
    os.set_blocking(fault, False)
    work = Supervision(directory, spec, command, fault, streams, keeps_orphans=keeps_orphans)
    outcome: dict[str, Any]
    try:
        _open_gate(work, gate)
        work.until_the_end()
        outcome = work.result()
    except Exception as problem:
        # Whatever went wrong: the job must not go on without anyone who watches it, and the machine must hear of it.
        work.kill()
        note = f"its supervisor failed: {type(problem).__name__}: {problem}"[:2000]
        outcome = {**work.outcome, "lost": True, "note": note}
    cgroups.remove(work.plan)
    if work.no_room is not None and claims.give_back(directory, work.no_room):
        return NOT_BEGUN
    return _deliver(directory, outcome)


def _open_gate(work: Supervision, gate: int) -> None:
    """Let the command begin, if its bounds can be set and nobody has stopped it already."""
    try:
        try:
            run_files.reserve(work.directory)
            if run_files.exists(work.directory, run_files.STOP):
                work.outcome["stopped"] = True
                return
            work.streams.begin()
        except OSError as problem:
            work.no_room = problem
            raise
        cgroups.create(work.plan)
        os.write(gate, b"g")
        work.begun = True
        with contextlib.suppress(OSError):
            os.write(2, b"begun\n")
    except OSError as problem:
        sentence = f"the job's files or bounds could not be made: {problem}"
        work.outcome.update(error=sentence[:1000], exit_code=child.NOT_EXECUTABLE)
    finally:
        os.close(gate)


def _deliver(directory: str, outcome: dict[str, Any]) -> int:
    """Write the result; as long as that fails (a disk that became read-only), try again: nobody else knows it."""
    outcome["ended_at_ms"] = run_files.now_ms()
    pause = FIRST_PAUSE_S
    while True:
        try:
            run_files.write_reserved(directory, run_files.RESULT, outcome)
            return 0
        except OSError as problem:
            if not os.path.isdir(directory):
                print(f"its result could not be written: {problem}", file=sys.stderr)
                return 1
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
