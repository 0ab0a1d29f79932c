"""What a simulated service touches: clocks, a disk that fails at times, and processes, all drawn from a seed.

The processes live on when the service is killed, as real ones under their supervisors do. Nothing here waits: time is
a number that is moved. The service is killed by `Killed`, at the moments at which it touches the world.
"""

from __future__ import annotations

import errno
import queue
import random
from collections.abc import Callable
from dataclasses import dataclass

from fairlead.local.gpus import Gpu
from fairlead.local.orders import Orders
from fairlead.local.runs import RunReport, RunSpec
from fairlead.runtime import Clock

YEAR_MS = 365 * 86_400_000


class Killed(BaseException):
    """The service was killed here."""


@dataclass(slots=True)
class Run:
    """A run of the machine, and what is true of it."""

    spec: RunSpec
    began_ms: int
    ends_ms: int
    exit_code: int
    pid: int
    told_to_stop_ms: int | None = None
    ended: RunReport | None = None
    suspended: bool = False
    is_forgotten: bool = False


class World:
    """Clocks, disk and processes."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.steady_ms = 1_000
        self.wall_ms = 50 * YEAR_MS
        self.wall_rate = 1.0
        self.disk_fails_until_ms = 0
        self.kills = False
        """Whether the service may be killed at any touch."""
        self.faults = True
        self.runs: dict[str, Run] = {}
        self.executed: dict[str, int] = {}
        """How often each run was executed: once, or something is wrong."""
        self.tell: Callable[[RunReport], None] | None = None
        """Where ends are told; None: no service lives."""
        self.later: list[tuple[int, Callable[[], None]]] = []
        """What a service that lives does later; it dies with it."""

    # --- time ---

    def clock(self, not_before_ms: int) -> Clock:
        return Clock(not_before_ms, wall=lambda: int(self.wall_ms), steady=lambda: self.steady_ms)

    def pass_ms(self, milliseconds: int) -> None:
        """Time goes on; what ends in it ends."""
        self.steady_ms += milliseconds
        self.wall_ms += int(milliseconds * self.wall_rate)
        for key, run in list(self.runs.items()):
            if run.ended is None and not run.suspended and run.ends_ms <= self.steady_ms:
                self._end(key, run)
        due = [act for at_ms, act in self.later if at_ms <= self.steady_ms]
        self.later = [each for each in self.later if each[0] > self.steady_ms]
        for act in due:
            act()

    def touch(self, what: str) -> None:
        """The service does something to the world: it may be killed right here, or refused."""
        if self.kills and self.dice.random() < 0.02:
            raise Killed(what)
        if self.faults and what != "report" and self.dice.random() < 0.01:
            number = self.dice.choice([errno.ENOSPC, errno.EIO, errno.EMFILE, errno.ENOMEM, errno.EROFS])
            raise OSError(number, f"{what} was refused")

    # --- processes ---

    def begin(self, spec: RunSpec) -> Run:
        """Execute it."""
        self.executed[spec.key] = self.executed.get(spec.key, 0) + 1
        _, pause, status = spec.command
        run = Run(spec, self.steady_ms, self.steady_ms + int(pause), int(status), 1000 + len(self.runs))
        self.runs[spec.key] = run
        return run

    def _end(self, key: str, run: Run) -> None:
        stopped = run.told_to_stop_ms is not None and run.told_to_stop_ms <= run.ends_ms
        run.ended = RunReport(
            key=key,
            pid=run.pid,
            started_at_ms=int(self.wall_ms),
            ended_at_ms=int(self.wall_ms),
            exit_code=None if stopped else run.exit_code,
            signal=15 if stopped else None,
            stopped=stopped,
        )
        if self.tell is not None:
            self.tell(run.ended)


class SimulatedMachine:
    """The machine of `fairlead.local`, without processes."""

    def __init__(self, world: World, tell: Callable[[RunReport], None]) -> None:
        self.world = world
        self.gpus: tuple[Gpu, ...] = ()

    def start(self, spec: RunSpec) -> RunReport:
        self.world.touch("start")
        run = self.world.runs.get(spec.key) or self.world.begin(spec)
        self.world.touch("report")
        return self._now(spec.key, run)

    def stop(self, key: str, grace_ms: int | None = None) -> None:
        self.world.touch("stop")
        run = self.world.runs[key]
        if run.ended is None:
            run.suspended = False
            run.told_to_stop_ms = run.told_to_stop_ms or self.world.steady_ms
            run.ends_ms = min(max(run.ends_ms, self.world.steady_ms), self.world.steady_ms + min(grace_ms or 0, 500))

    def go_on(self, key: str, time_limit_ms: int | None, *, suspended: bool = False) -> None:
        del time_limit_ms
        self.world.touch("go on")
        if (run := self.world.runs.get(key)) is not None and run.told_to_stop_ms is None:
            run.suspended = suspended

    def adopt(self) -> list[RunReport]:
        return [self._now(key, run) for key, run in sorted(self.world.runs.items()) if not run.is_forgotten]

    def report(self, key: str) -> RunReport | None:
        run = self.world.runs.get(key)
        return self._now(key, run) if run is not None else None

    def forget(self, key: str) -> None:
        self.world.touch("forget")
        self.world.runs[key].is_forgotten = True

    def purge(self, key: str) -> None:
        self.world.touch("purge")

    def close(self) -> None:
        pass

    @staticmethod
    def _now(key: str, run: Run) -> RunReport:
        return run.ended or RunReport(key=key, pid=run.pid, started_at_ms=run.began_ms)


class SimulatedOrders(Orders):
    """Orders as they are, but for the thread and its timers: `step` carries out what is due."""

    world: World

    def _begin(self) -> None:
        pass

    def step(self) -> bool:
        """Carry one out; False: none is due."""
        try:
            order = self._due.get_nowait()
        except queue.Empty:
            return False
        if order is not None:
            self._carry_out(order)
        return True

    def _after(self, pause: float, again: Callable[[], None]) -> None:
        self.world.later.append((self.world.steady_ms + int(pause * 1000), again))

    def close(self) -> None:
        pass
