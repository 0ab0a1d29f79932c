"""Orders to the machine, carried out one after the other, away from the writer.

Decides when an order is tried again. Never decides which orders are given, and never touches the books: what came of an
order goes back through a call. Invariant: orders for one run are carried out in the order in which they were given, and
a start that was overtaken by a stop is not carried out.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.local.runs import RunReport, RunSpec
from fairlead.local.supervisor.claims import BROKEN_DISK, PASSING

if TYPE_CHECKING:
    from fairlead.local.machine import Machine

log = logging.getLogger("fairlead.local")

TRIES = 30
"""Of a start that fails for what passes; for any other reason it is not tried again. All other orders are tried until
they are carried out."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_STOP_PAUSE_S = 2.0


class Orders:
    """A thread that carries orders out."""

    def __init__(self, machine: Machine, on_report: Callable[[RunReport], None]) -> None:
        """`on_report` is called from the thread with what a start gave: a run that runs, or one that has ended."""
        self._machine, self._on_report = machine, on_report
        self._due: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        """What is tried again, the next first; for the thread alone."""
        self._numbers = itertools.count()
        self.retrying: dict[str, str] = {}
        """Runs whose start is tried again, and why; others may look at it."""
        self._on_their_way: dict[str, tuple[RunSpec, int]] = {}
        """Runs whose supervisor has not begun yet, and how often they were tried."""
        self._courses: dict[str, tuple[int | None, bool]] = {}
        """How runs were last told to go on."""
        self._overtaken: set[str] = set()
        """Runs that were told to stop while their start waits to be tried again."""
        self._begin()

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._work, name="fairlead-orders", daemon=True)
        self._thread.start()

    def start(self, run: RunSpec) -> None:
        """Execute this run."""
        self._due.put(lambda: self._start(run, 1))

    def start_again(self, key: str, failure: OSError) -> None:
        """Its supervisor was there and could not begin: as if the start had failed. Nothing for a run not ordered."""
        self._due.put(lambda: self._could_not_begin(key, failure))

    def tell_again(self, report: RunReport) -> None:
        """What was told of this run could not be entered: it is told once more, when whatever was wrong may be over."""
        self._due.put(lambda: self._after(LONGEST_PAUSE_S, lambda: self._on_report(report)))

    def has_begun(self, key: str) -> None:
        """It is executed, or over: it will not have to be started again."""
        self._on_their_way.pop(key, None)

    def stop(self, key: str, grace_ms: int) -> None:
        """Stop this run; if its start is still waiting to be tried again, it never starts."""
        self._insist(f"run {key} could not be stopped", lambda: self._stop(key, grace_ms))

    def go_on(self, key: str, time_limit_ms: int | None, *, suspended: bool) -> None:
        """Let this run have another time limit, stand still, or go on."""
        self._courses[key] = time_limit_ms, suspended
        self._insist(f"run {key} could not be told how to go on", lambda: self._go_on(key))

    def forget(self, key: str) -> None:
        """Its end is recorded: what was only needed to watch it may go."""
        self._courses.pop(key, None)
        self._insist(f"the files of run {key} could not be cleared up", lambda: self._machine.forget(key))

    def purge(self, key: str) -> None:
        """It has left the books: its output may go too."""
        self._insist(f"the files of run {key} could not be removed", lambda: self._machine.purge(key))

    def close(self) -> None:
        """Carry out what is due, drop what waits to be tried again (it is in the journal), end."""
        self._due.put(None)
        self._thread.join(10)

    def _work(self) -> None:
        while True:
            while self._later and self._later[0][0] <= time.monotonic():
                self._carry_out(heapq.heappop(self._later)[2])
            pause = max(0.0, self._later[0][0] - time.monotonic()) if self._later else None
            with contextlib.suppress(queue.Empty):
                if (order := self._due.get(timeout=pause)) is None:
                    return
                self._carry_out(order)

    @staticmethod
    def _carry_out(order: Callable[[], None]) -> None:
        try:
            order()
        except Exception as fault:
            log.error("an order to the machine failed: %s", fault, exc_info=fault)

    def _insist(self, otherwise: str, order: Callable[[], None], pause: float = FIRST_PAUSE_S) -> None:
        """Carry an order out, again and again as long as the system refuses, or the run has not ended yet (ValueError).

        `otherwise`: for the log, at the first times: the disk that keeps it back may be the one that has the log.
        """

        def carry_out() -> None:
            try:
                order()
            except (OSError, ValueError) as failure:
                level = logging.WARNING if pause < LONGEST_STOP_PAUSE_S else logging.DEBUG
                log.log(level, "%s (%s); tried again in %.1f s", otherwise, failure, pause)
                self._after(pause, lambda: self._insist(otherwise, order, min(2 * pause, LONGEST_STOP_PAUSE_S)))

        self._due.put(carry_out)

    def _after(self, pause: float, again: Callable[[], None]) -> None:
        """Without a thread for each: what waits may be much, and no thread may be left when it is tried again."""
        heapq.heappush(self._later, (time.monotonic() + pause, next(self._numbers), again))

    def _start(self, run: RunSpec, attempt: int) -> None:
        self.retrying.pop(run.key, None)
        if run.key in self._overtaken:
            self._overtaken.discard(run.key)
            return
        self._on_their_way[run.key] = run, attempt
        try:
            report = self._machine.start(run)
        except OSError as failure:
            self._start_failed(run, attempt, failure)
            return
        except Exception as fault:
            log.error("run %s could not be started: %s", run.key, fault, exc_info=fault)
            report = self._known_or_failed(run.key, f"could not be started, a fault in the service: {fault}")
        if (course := self._courses.get(run.key)) is not None:
            # It was told while this start waited to be tried again: there was nothing yet to write it into.
            self.go_on(run.key, course[0], suspended=course[1])
        self._on_report(report)

    def _could_not_begin(self, key: str, failure: OSError) -> None:
        if (found := self._on_their_way.get(key)) is not None:
            self._start_failed(*found, failure)

    def _start_failed(self, run: RunSpec, attempt: int, failure: OSError) -> None:
        if failure.errno in BROKEN_DISK or (failure.errno in PASSING and attempt < TRIES):
            pause = min(FIRST_PAUSE_S * 2 ** min(attempt - 1, 10), LONGEST_PAUSE_S)
            log.warning("run %s could not be started (%s); tried again in %.1f s", run.key, failure, pause)
            self.retrying[run.key] = failure.strerror or str(failure)
            self._after(pause, lambda: self._due.put(lambda: self._start(run, attempt + 1)))
            return
        self._on_report(self._known_or_failed(run.key, f"could not be started: {failure}"))

    def _known_or_failed(self, key: str, why: str) -> RunReport:
        """What the machine knows of a run whose start went wrong; if it never executed it, the run has failed."""
        known = self._machine.report(key)
        if known is not None and known.pid is not None:
            return known
        with contextlib.suppress(OSError):
            return self._machine.give_up(key, why)
        return RunReport(key=key, error=why, exit_code=126, ended_at_ms=time.time_ns() // 1_000_000)

    def _go_on(self, key: str) -> None:
        """As it was told last: an order that was tried again does not undo a later one."""
        if (course := self._courses.get(key)) is not None:
            self._machine.go_on(key, course[0], suspended=course[1])

    def _stop(self, key: str, grace_ms: int) -> None:
        if self.retrying.pop(key, None) is not None:
            self._overtaken.add(key)
        if self._machine.report(key) is None:
            # Nobody ever tried to execute it, and nobody will.
            self._on_report(RunReport(key=key, stopped=True))
            return
        self._machine.stop(key, grace_ms)
        now = self._machine.report(key)
        if now is not None and now.ended_at_ms is not None and now.started_at_ms is None:
            # It was stopped before it was ever executed; the machine tells that to nobody else. The end of what was
            # executed it tells itself, when nothing of it is left.
            self._on_report(now)
