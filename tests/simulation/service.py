"""The whole service from a seed, in virtual time: its writer, journal, books, scheduler and local place as they are.

Clocks, disk, processes and callers are made up (`world`). Each course is some thousand steps: calls, time that passes,
turns, orders, kills at every touch of the world, a disk that fails before or after a commit, clocks that jump by years,
stand or are slow. Then the faults stop, and what was acknowledged is held against what happened: each job is there,
each run was executed once, each end is the true one, nothing runs on, and the journal replays to the same decisions.

    python tests/simulation/service.py [--steps 1000000] [--seed N (that course alone)]
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import sqlite3
import sys
import tempfile
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any

from invariants.books import check_books
from simulation.world import YEAR_MS, Killed, SimulatedMachine, SimulatedOrders, World

from fairlead.config import default_text, load_text
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import RetrySpec
from fairlead.journal.reader import Reader
from fairlead.journal.replay import replay
from fairlead.journal.verify import verify
from fairlead.local import changes, holding, requests
from fairlead.local.callers import Caller
from fairlead.local.history_records import JobSpec
from fairlead.local.job_states import State
from fairlead.local.place import LocalPlace
from fairlead.runtime import Refusal, Runtime, Turn
from fairlead.runtime.configurations import configure
from fairlead.scheduler import Scheduler

STEPS = 4_000
"""Of one course, before the faults stop."""
JOBS_AT_ONCE = 40
ANN = Caller("ann", 1000, is_admin=True)


class Broken(AssertionError):
    """A promise was broken."""


class Course:
    """One service, and what it promised."""

    def __init__(self, seed: int, directory: Path, counts: Counter[str]) -> None:
        self.dice = random.Random(seed)
        self.world = World(self.dice)
        self.directory, self.counts = directory, counts
        self.runtime: Runtime | None = None
        self.wanted: dict[str, tuple[int, JobSpec]] = {}
        """By request: the exit status, and what is submitted."""
        self.keys: dict[str, str] = {}
        """By request that was acknowledged: the key."""
        self.asked: list[tuple[str, str, Future[Any]]] = []
        self.cancelled: set[str] = set()
        self.steps = 0

    def go(self, steps: int) -> None:
        """All of it. Raises `Broken`, or what should have been caught."""
        while self.steps < steps:
            self.steps += 1
            try:
                self.step()
            except Killed:
                self.die()
        self.settle()

    # --- one step ---

    def step(self) -> None:
        """Something happens."""
        world, dice = self.world, self.dice
        world.kills = world.faults = True
        if self.runtime is None:
            self.start()
            return
        drawn = dice.random()
        if drawn < 0.20:
            self.submit()
        elif drawn < 0.30:
            self.order()
        elif drawn < 0.55:
            world.pass_ms(dice.choice([0, 1, 20, 300, 2_000, 60_000]))
        elif drawn < 0.56:
            self.disturb_the_clock()
        elif drawn < 0.57:
            world.disk_fails_until_ms = world.steady_ms + dice.choice([1, 500, 10_000])
        elif drawn < 0.575:
            raise Killed("between two steps")
        elif drawn < 0.75:
            self.orders.step()
        else:
            self.turn()

    def start(self) -> None:
        """A service on what the one before left."""
        world = self.world

        def make_orders(*given: Any) -> SimulatedOrders:
            self.orders = SimulatedOrders(*given)
            self.orders.world = world
            return self.orders

        (self.directory / "runs").mkdir(exist_ok=True)
        self.local = LocalPlace(
            lambda tell: SimulatedMachine(world, self.remember(tell)),  # type: ignore[arg-type, return-value]
            self.directory / "runs",
            as_submitter=False,
            make_orders=make_orders,
        )
        self.runtime = Runtime(self.directory / "journal.db", self.local, make_clock=world.clock, may_copy=False)
        self.break_the_disk(self.runtime)
        if self.runtime.journal.last_seq < self.confirmed:
            raise Broken(f"{self.confirmed} records were confirmed, {self.runtime.journal.last_seq} are there")

        def prepare(turn: Turn) -> None:
            if turn.books.configurations.current is None:
                configure(turn, load_text(default_text()), who="", source="built-in")
            self.local.register_node(turn, "machine", Resources({"vcore": 8_000, "memory": 2**36}))

        self.local.open(self.runtime, prepare)
        self.counts["starts"] += 1

    confirmed = 0

    def remember(self, tell: Any) -> Any:
        self.world.tell = tell
        return tell

    def break_the_disk(self, runtime: Runtime) -> None:
        """Its commits fail at times, before or after they are durable; or it is killed there."""
        journal, world = runtime.journal, self.world
        plain = journal.commit

        def commit() -> int:
            if world.steady_ms < world.disk_fails_until_ms and journal.pending:
                self.counts["commits that failed"] += 1
                raise sqlite3.OperationalError("disk I/O error")
            if world.kills and self.dice.random() < 0.01:
                if self.dice.random() < 0.5:
                    plain()
                raise Killed("at a commit")
            self.confirmed = plain()
            return self.confirmed

        journal.commit = commit  # type: ignore[method-assign]

    def die(self) -> None:
        """As by `kill -9`: what was not committed is gone, with all that the service had in mind."""
        runtime, self.runtime = self.runtime, None
        self.counts["kills"] += 1
        self.world.tell, self.world.later = None, []
        self.asked = []
        if runtime is not None:
            runtime.journal._pending.clear()
            runtime.journal.close()

    def turn(self) -> None:
        assert self.runtime is not None
        self.runtime.step(0)
        still = []
        for request, what, future in self.asked:
            if not future.done():
                still.append((request, what, future))
            elif future.exception() is not None:
                if not isinstance(future.exception(), Refusal):
                    raise Broken(f"{what} of {request}: {future.exception()!r}")
                self.counts["refusals"] += 1
            elif what == "submit":
                self.keys[request] = future.result().keys[0]
            elif what == "cancel":
                self.cancelled.add(request)
        self.asked = still

    # --- callers ---

    def submit(self) -> None:
        """A new job, or one that was not acknowledged again."""
        assert self.runtime is not None
        open_requests = [name for name in self.wanted if name not in self.keys]
        if open_requests and self.dice.random() < 0.7:
            name = self.dice.choice(open_requests)
        elif self.local.jobs.live_count < JOBS_AT_ONCE and len(open_requests) < 5:
            name = f"r{len(self.wanted)}"
            status = self.dice.choice([0, 0, 0, 3])
            spec = JobSpec(
                key="",
                user="ann",
                uid=1000,
                command=("run", str(self.dice.choice([1, 50, 900, 20_000])), str(status)),
                queue=self.dice.choice(["root.batch", "root.default"]),
                resources=Resources({"vcore": self.dice.choice([500, 1000, 4000])}),
                priority=self.dice.randint(0, 2),
                name=name,
                hold=self.dice.random() < 0.05,
                retry=RetrySpec(limit=2) if self.dice.random() < 0.2 else None,
            )
            self.wanted[name] = status, spec
        else:
            return
        spec = self.wanted[name][1]
        future = self.runtime.do(
            lambda turn: requests.submit(self.local.jobs, turn, ANN, [spec], request=name, digest=name)
        )
        self.asked.append((name, "submit", future))

    def order(self) -> None:
        """Something is wanted of a job that lives."""
        assert self.runtime is not None
        jobs = self.local.jobs
        live = [(name, key) for name, key in self.keys.items() if (job := jobs.get(key)) is not None and not job.ended]
        if not live:
            return
        name, key = self.dice.choice(live)
        what = self.dice.choice(["cancel", "hold", "release", "release", "suspend", "resume", "resume", "requeue"])
        acts = {
            "cancel": lambda turn: requests.cancel(jobs, turn, ANN, key),
            "hold": lambda turn: holding.hold(jobs, turn, ANN, key),
            "release": lambda turn: holding.release(jobs, turn, ANN, key),
            "suspend": lambda turn: changes.suspend(jobs, turn, ANN, key, on=True),
            "resume": lambda turn: changes.suspend(jobs, turn, ANN, key, on=False),
            "requeue": lambda turn: requests.requeue(jobs, turn, ANN, key),
        }
        self.asked.append((name, what, self.runtime.do(acts[what])))

    def disturb_the_clock(self) -> None:
        world = self.world
        world.wall_rate = self.dice.choice([1.0, 1.0, 0.0, 0.5])
        world.wall_ms += self.dice.choice([0, 0, -1000, 1000, -3_600_000, 10 * YEAR_MS, -10 * YEAR_MS])
        world.wall_ms = max(world.wall_ms, YEAR_MS)

    # --- the end ---

    def settle(self) -> None:
        """No more faults: everything that was acknowledged comes to its true end."""
        world = self.world
        world.disk_fails_until_ms = 0
        world.wall_rate = 1.0
        for _ in range(50_000):
            world.kills = world.faults = False
            if self.runtime is None:
                self.start()
            world.kills = world.faults = False
            while self.orders.step():
                pass
            self.turn()
            for name, key in self.keys.items():
                if self.local.jobs.get(key) is None:
                    raise Broken(f"{name} was acknowledged as {key} and is not there")
            # What was entered and not acknowledged (a kill between the two) lives as well.
            for job in self.local.jobs.live():
                if job.state is State.WAITING and holding.conditions_now(self.books.scheduler, job).held_by:
                    self.runtime.do(lambda turn, key=job.key: holding.release(self.local.jobs, turn, ANN, key))
                if job.state is State.SUSPENDED:
                    self.runtime.do(
                        lambda turn, key=job.key: changes.suspend(self.local.jobs, turn, ANN, key, on=False)
                    )
            if not self.local.jobs.live_count:
                break
            world.pass_ms(max(50, min(self.runtime.wait_ms(), 5_000)))
        else:
            raise Broken(f"not settled: {[(j.key, j.state.value) for j in self.local.jobs.live()]}")
        while self.orders.step():
            pass
        self.judge()
        self.counts["jobs"] += len(self.keys)
        self.counts["runs"] += len(world.runs)
        self.runtime.journal.close()
        self.check_journal()

    @property
    def books(self) -> Any:
        assert self.runtime is not None
        return self.runtime.books

    def judge(self) -> None:
        """What the book says, against what happened."""
        if twice := [key for key, times in self.world.executed.items() if times != 1]:
            raise Broken(f"executed more than once: {twice}")
        if left := [key for key, run in self.world.runs.items() if run.ended is None]:
            raise Broken(f"still there: {left}")
        names = Counter(job.spec.name for job in self.local.jobs)
        if doubled := [name for name, count in names.items() if count > 1]:
            raise Broken(f"entered twice: {doubled}")
        for name, key in self.keys.items():
            job = self.local.jobs.get(key)
            assert job is not None
            last = self.world.runs.get(f"{key}-{job.attempt}")
            if job.state is State.LOST:
                raise Broken(f"{name} is lost: {job}")
            if job.state in (State.SUCCEEDED, State.FAILED):
                true = last.ended.exit_code if last is not None and last.ended is not None else None
                if job.exit_code != true or true != self.wanted[name][0]:
                    raise Broken(f"{name} ended with {true}, wanted {self.wanted[name][0]}: {job}")
        check_books(self.books.scheduler)

    def check_journal(self) -> None:
        """It is whole, and gives the same decisions again."""
        path = self.directory / "journal.db"
        if not (found := verify(path)).ok:
            raise Broken(f"the journal is damaged: {found.problems}")
        with Reader(path) as reader:
            again = replay(reader, lambda state: Scheduler.load(dict(state)) if state else Scheduler())
        if not again.ok:
            raise Broken(f"replay differs: {again.difference}")


def run(first: int, steps: int, each: int = STEPS, processes: int = 1) -> tuple[Counter[str], list[str]]:
    """So many steps in courses from this seed on; what came up, and what broke a promise."""
    seeds = range(first, first + -(-steps // each))
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with ExitStack() as stack:
        quiet = {"initializer": logging.disable, "initargs": (logging.CRITICAL,)}
        apart = stack.enter_context(ProcessPoolExecutor(processes, **quiet)) if processes > 1 else None
        for came_up, failure in (apart.map if apart is not None else map)(take, seeds, repeat(each)):
            counts += came_up
            failures += [failure] if failure else []
    return counts, failures


def take(seed: int, steps: int) -> tuple[Counter[str], str]:
    """One course: what came up, and what broke a promise ("": nothing)."""
    counts: Counter[str] = Counter()
    failure = ""
    with tempfile.TemporaryDirectory(prefix="fl-sim") as directory:
        course = Course(seed, Path(directory), counts)
        try:
            course.go(steps)
        except Exception as fault:
            failure = f"make simulate-service SEED={seed}: step {course.steps}: {type(fault).__name__}: {fault}"
            if course.runtime is not None:
                course.runtime.journal.close()
        counts["steps"] += course.steps
    return counts, failure


def main() -> int:
    """The exit status: 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this course alone, with the log")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL if given.seed is None else logging.NOTSET)
    alone = given.seed is not None
    counts, failures = run(given.seed, STEPS) if alone else run(given.first, given.steps, processes=os.cpu_count() or 1)
    last = given.first + -(-given.steps // STEPS) - 1
    which = f"seeds {given.first} to {last}" if given.seed is None else f"seed {given.seed}"
    print(f"{which}, {len(failures)} failures: " + ", ".join(f"{n:,} {what}" for what, n in sorted(counts.items())))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
