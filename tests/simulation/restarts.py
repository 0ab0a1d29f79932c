"""The same orders twice, once with the service killed now and then: after each of them all that users see is the same.

The service is its writer, journal, books and local place as they are; clock and processes are made up (`world`). The
orders are all that a user has, for jobs, arrays and parts of them that wait for each other. Each course also works out
by itself what dependencies are met, and the counts of each array.

    python tests/simulation/restarts.py FIRST LAST STEPS
"""

from __future__ import annotations

import logging
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from invariants.books import check_books
from simulation.world import Run, SimulatedMachine, SimulatedOrders, World

from fairlead.config import load_text
from fairlead.core.model import events
from fairlead.core.model.conditions import Awaited, Dependency
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import RetrySpec
from fairlead.local import changes, dependencies, holding, requests, selection
from fairlead.local.array_changes import change_whole
from fairlead.local.callers import Caller, Rights
from fairlead.local.changes import Change
from fairlead.local.history_records import ArraySpec, JobPressed, JobsCleaned, JobSpec
from fairlead.local.job_states import ON_THE_MACHINE, State
from fairlead.local.place import LocalPlace
from fairlead.local.runs import RunSpec
from fairlead.runtime import Refusal, Runtime, Turn
from fairlead.runtime.configurations import configure
from fairlead.service import views
from fairlead.service.machine import EVERYTHING
from fairlead.service.moment import MachineMoment
from fairlead.service.place import JobFilter

QUEUES = """
partitions:
  - name: default
    preemption: {rule: both}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
          - name: batch
            resources: {guaranteed: {vcore: 2}, max: {vcore: 6}}
            properties: {job.retry.default: "2"}
          - name: apps
            maxapplications: 3
            limits: [{limit: all, users: ["*"], maxresources: {vcore: 3}}]
"""
OTHERS = QUEUES.replace("max: {vcore: 6}", "max: {vcore: 3}").replace("maxapplications: 3", "maxapplications: 1")
ANN, BOB = Caller("ann", 1000, is_admin=False), Caller("bob", 1001, is_admin=False)
ROOT = Caller("root", 0, is_admin=True)
MOST_LIVE = 40
ORDERS = {
    "cancel": State.RUNNING,
    "hold": State.WAITING,
    "release": State.WAITING,
    "suspend": State.RUNNING,
    "resume": State.SUSPENDED,
    "requeue": State.RUNNING,
    "change": State.WAITING,
    "rerun": State.SUCCEEDED,
}
"""Of most jobs that are wanted something of it makes sense: they are in this state."""
SELDOM = ("clean", "drain", "configure", "press")
KILLS = 0.15
"""So often the service is killed after an order, before anything of it was carried out."""


class Differs(AssertionError):
    """Users see something else."""


class Alike(World):
    """Processes whose numbers do not tell in which order they began, and whose ends are told in the order of their
    keys, as a start finds them: after a kill both may be other ones.
    """

    def begin(self, spec: RunSpec) -> Run:
        run = super().begin(spec)
        run.pid = 7
        self.runs = dict(sorted(self.runs.items()))
        return run


class Course:
    """One service and its orders; `kills`: whether it is killed now and then."""

    def __init__(self, seed: int, directory: Path, *, kills: bool) -> None:
        self.seed, self.directory = seed, directory
        self.dice, self.fate = random.Random(seed), random.Random(seed)
        self.world = Alike(self.dice)
        self.world.faults = False
        self.kills, self.killed = kills, 0
        self.done: Counter[str] = Counter()
        self.start()

    # --- the service ---

    def start(self) -> None:
        world = self.world

        def make_machine(tell: Any) -> SimulatedMachine:
            world.tell = tell
            return SimulatedMachine(world, tell)

        def make_orders(*given: Any) -> SimulatedOrders:
            self.orders = SimulatedOrders(*given)
            self.orders.world = world
            return self.orders

        (self.directory / "runs").mkdir(exist_ok=True)
        self.local = LocalPlace(
            make_machine,  # type: ignore[arg-type]
            self.directory / "runs",
            as_submitter=False,
            make_orders=make_orders,
        )
        path = self.directory / "journal.db"
        self.runtime = Runtime(path, self.local, make_clock=world.clock, may_copy=False)

        def prepare(turn: Turn) -> None:
            if turn.books.configurations.current is None:
                configure(turn, load_text(QUEUES), who="", source="built-in")
            self.local.register_node(turn, "machine", Resources({"vcore": 8_000}))

        self.local.open(self.runtime, prepare)

    def kill(self) -> None:
        self.killed += 1
        self.world.tell, self.world.later = None, []
        self.close()
        self.start()

    def close(self) -> None:
        self.runtime._snapshots.give_up()
        self.runtime.journal.close()

    def settle(self) -> None:
        """All that is due now is done."""
        while True:
            before = self.runtime.journal.last_seq
            self.runtime.step(0)
            ordered = self.orders.step()
            if not ordered and self.runtime._inbox.is_empty and self.runtime.journal.last_seq == before:
                return

    def do(self, act: Callable[[Turn], Any]) -> Any:
        future = self.runtime.do(act)
        while not future.done():
            self.runtime.step(0)
        return future.result()

    # --- orders ---

    def go(self, steps: int) -> list[tuple[str, Any]]:
        """What was ordered, and what users saw after each. Raises `Differs` where that contradicts itself."""
        self.settle()
        seen = []
        for number in range(steps):
            self.dice.seed(f"{self.seed} {number}")
            said = self.order()
            if self.kills and self.fate.random() < KILLS:
                self.kill()
            self.settle()
            self.check()
            seen.append((said, self.visible()))
        if self.runtime.measures.faults:
            raise Differs("a fault in the program was isolated")
        return seen

    def order(self) -> str:
        """Somebody wants something, or time passes; what it was."""
        dice = self.dice
        if dice.random() < 0.25:
            passed_ms = dice.choice([1, 300, 2_000, 60_000, 300_000])
            self.world.pass_ms(passed_ms)
            return f"{passed_ms} ms"
        what = dice.choice(SELDOM if dice.random() < 0.1 else [*ORDERS]) if dice.random() < 0.6 else "submit"
        caller, key = dice.choice([ANN, BOB, ROOT, ROOT]), self.some_key(ORDERS.get(what))
        try:
            getattr(self, what)(caller, key)
            self.done[what] += 1
        except Refusal as refused:
            return f"{what} {key}: {refused.message}"
        return f"{what} {key}"

    def some_key(self, state: State | None = None) -> str:
        """A job, some parts of an array, or all of it; mostly in this state, where one is."""
        wanted = [job.key for job in self.local.jobs if job.state is state and self.dice.random() < 0.9]
        keys = wanted or [job.key for job in self.local.jobs] or ["1"]
        key = self.dice.choice(keys)
        array, dot, _ = key.partition(".")
        drawn = self.dice.random()
        if not dot or drawn < 0.5:
            return key
        if drawn < 0.8:
            return array
        return f"{array}.{','.join(map(str, sorted(self.local.jobs.arrays[array].parts)[:2]))}"

    def submit(self, caller: Caller, _: str) -> None:
        jobs = self.local.jobs
        if jobs.live_count > MOST_LIVE:
            return
        specs = [self.spec(caller) for _ in range(self.dice.choice([1, 1, 2]))]
        if len(specs) > 1:
            specs[1] = replace(specs[1], after=(*specs[1].after, self.awaits("#0")))
        self.do(lambda turn: requests.submit(jobs, turn, caller, specs))

    def awaits(self, key: str) -> Dependency:
        return Dependency(application=key, awaited=self.dice.choice(list(Awaited)))

    def spec(self, caller: Caller) -> JobSpec:
        dice, known = self.dice, [job.key for job in self.local.jobs][-20:]
        chosen = dice.sample(known, min(len(known), dice.choice([0, 0, 0, 1, 2])))
        array = dice.choice([None, None, None, ArraySpec(indices="1-3"), ArraySpec(indices="0-4:2,7", at_once=2)])
        return JobSpec(
            key="",
            user=caller.user,
            uid=caller.uid,
            groups=caller.groups,
            command=("run", str(dice.choice([1, 900, 20_000, 200_000])), str(dice.choice([0, 0, 0, 3]))),
            queue=dice.choice(["root.default", "root.batch", "root.apps"]),
            resources=Resources({"vcore": dice.choice([500, 1000, 3000])}),
            priority=dice.randint(0, 3),
            hold=dice.random() < 0.1,
            begin_ms=int(self.world.wall_ms) + 100_000 if dice.random() < 0.1 else 0,
            retry=RetrySpec(limit=2, backoff_ms=dice.choice([0, 3000])) if dice.random() < 0.3 else None,
            idle=dice.random() < 0.2,
            after=tuple(self.awaits(dice.choice([key, key.partition(".")[0]])) for key in chosen),
            cancel_never=dice.random() < 0.4,
            array=array,
            grace_ms=dice.choice([0, 500, 30_000]),
        )

    def each(self, caller: Caller, key: str, act: Callable[[Turn, str], Any]) -> None:
        """For each job that the key means, as the routes do it. Raises `Refusal` where it makes sense for none."""

        def acts(turn: Turn) -> None:
            refused = []
            keys = [job.key for job in selection.meant(self.local.jobs, Rights(caller, turn.scheduler), key)]
            for one in keys:
                try:
                    act(turn, one)
                except Refusal as refusal:
                    refused.append(refusal)
            if len(refused) == len(keys):
                raise refused[0]

        self.do(acts)

    def cancel(self, caller: Caller, key: str) -> None:
        now = self.dice.random() < 0.3
        self.each(caller, key, lambda turn, one: requests.cancel(self.local.jobs, turn, caller, one, now=now))

    def hold(self, caller: Caller, key: str) -> None:
        self.each(caller, key, lambda turn, one: holding.hold(self.local.jobs, turn, caller, one))

    def release(self, caller: Caller, key: str) -> None:
        self.each(caller, key, lambda turn, one: holding.release(self.local.jobs, turn, caller, one))

    def suspend(self, caller: Caller, key: str) -> None:
        self.each(caller, key, lambda turn, one: changes.suspend(self.local.jobs, turn, caller, one, on=True))

    def resume(self, caller: Caller, key: str) -> None:
        self.each(caller, key, lambda turn, one: changes.suspend(self.local.jobs, turn, caller, one, on=False))

    def requeue(self, caller: Caller, key: str) -> None:
        hold = self.dice.random() < 0.3
        self.each(caller, key, lambda turn, one: requests.requeue(self.local.jobs, turn, caller, one, hold=hold))

    def rerun(self, caller: Caller, key: str) -> None:
        jobs = self.local.jobs
        again = self.do(lambda turn: requests.rerun(jobs, turn, caller, key, {}))
        self.do(lambda turn: again.step(jobs, turn, 100))

    def change(self, caller: Caller, key: str) -> None:
        dice, jobs = self.dice, self.local.jobs
        wanted = Change(
            priority=dice.choice([None, 0, 5]),
            queue=dice.choice([None, None, "root.batch", "root.apps"]),
            resources=dice.choice([None, {"vcore": 2000}]),
            after=dice.choice([None, None, (), (self.awaits(self.some_key().partition(",")[0]),)]),
            begin_ms=dice.choice([None, 0]),
            cancel_never=dice.choice([None, True, False]),
            at_once=dice.choice([0, 1, 3]) if key in jobs.arrays else None,
        )
        rest, refused = self.do(lambda turn: change_whole(jobs, turn, caller, key, wanted))
        if not refused:
            self.each(caller, key, lambda turn, one: changes.change(jobs, turn, caller, one, rest))

    def clean(self, caller: Caller, _: str) -> None:
        cleaned = JobsCleaned(before_ms=int(self.world.wall_ms) - 60_000, uid=caller.uid, who=caller.user)
        self.do(lambda turn: turn.note(cleaned))

    def drain(self, _: Caller, __: str) -> None:
        drains = self.dice.random() < 0.3
        event = events.DrainNode("machine") if drains else events.UndrainNode("machine")
        self.do(lambda turn: turn.event(event))

    def configure(self, _: Caller, __: str) -> None:
        text = self.dice.choice([QUEUES, OTHERS])
        self.do(lambda turn: configure(turn, load_text(text), who="root", source="file"))

    def press(self, _: Caller, __: str) -> None:
        running = [job.key for job in self.local.jobs.live() if job.state in ON_THE_MACHINE]
        if running:
            pressed = JobPressed(key=self.dice.choice(running), grace_ms=100, sentence="memory is short")
            self.do(lambda turn: turn.note(pressed))

    # --- what is seen ---

    def moment(self) -> MachineMoment:
        return MachineMoment(self.runtime.books.scheduler, self.local.jobs, EVERYTHING, runs_as="", private_names=False)

    def visible(self) -> Any:
        """Every row, detail and reason, and the queues. What happened to a job at the same time is in any order."""
        moment, jobs = self.moment(), self.local.jobs
        rows = {each.key: moment.row(each) for each in moment.found(JobFilter())}
        keys = [*(job.key for job in jobs), *jobs.arrays]
        said = {key: (moment.details(key), moment.why(key)) for key in keys}
        for details, _ in said.values():
            details.history.sort(key=lambda each: (each.at_ms, each.what, each.detail))
        return msgspec.to_builtins((rows, said, views.queue_views(self.runtime.books.scheduler)))

    def check(self) -> None:
        """The books are in order; who waits for what, and how many parts are how, is as it is worked out anew."""
        check_books(self.runtime.books.scheduler)
        held = dependencies.held_asks(self.runtime.books.scheduler)
        for job in self.local.jobs.live():
            found = held.get(job.application, job.ask_key) if job.state is State.WAITING else None
            for each in found.conditions.after if found is not None else ():
                met, may_be = self.is_met(each)
                if met or may_be is bool(each.never) or (each.never and job.spec.cancel_never):
                    raise Differs(f"{job.key} waits for {each}")
        moment = self.moment()
        for listed in moment.found(JobFilter()):
            if (parts := moment.row(listed).parts) is not None:
                states = Counter(part.state for part in listed.jobs)
                counted = (parts.done, parts.cancelled, parts.waiting + parts.held, parts.count)
                true = states[State.SUCCEEDED], states[State.CANCELLED], states[State.WAITING], states.total()
                if counted != true:
                    raise Differs(f"{listed.key} is said to have {parts}, and has {states}")

    def is_met(self, each: Dependency) -> tuple[bool, bool]:
        """Whether it has come about, and whether it may still."""
        found = self.local.jobs.of(each.application)
        ended = all(job.ended for job in found)
        well = all(job.state is State.SUCCEEDED for job in found)
        begun = any(
            job.started_at_ms is not None or any(a.started_at_ms is not None for a in job.past) for job in found
        )
        met = {
            Awaited.STARTED: begun or ended,
            Awaited.OK: ended and well,
            Awaited.ANY: ended,
            Awaited.NOT_OK: ended and not well,
        }[Awaited(each.awaited)]
        return bool(found) and met, bool(found) and (met or not ended)


def compare(seed: int, steps: int) -> tuple[int, Counter[str]]:
    """How often the service was killed, and what was done in the course. Raises `Differs`."""
    seen, killed, done = [], 0, Counter[str]()
    for kills in (False, True):
        with tempfile.TemporaryDirectory(prefix="fl-restarts") as directory:
            course = Course(seed, Path(directory), kills=kills)
            try:
                seen.append(course.go(steps))
            finally:
                course.close()
            killed, done = course.killed, course.done
    for number, (without, with_kills) in enumerate(zip(*seen, strict=True)):
        if without != with_kills:
            raise Differs(f"seed {seed}, step {number}: {without[0]} / {with_kills[0]}: {_where(without, with_kills)}")
    return killed, done


def _where(one: Any, other: Any, path: str = "") -> str:
    """The first place in which two values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        return _where(one.get(keys[0]), other.get(keys[0]), f"{path}.{keys[0]}")
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        at = next(at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
        return _where(one[at], other[at], f"{path}[{at}]")
    return f"{path}: {one!r:.300} / {other!r:.300}"


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    for each_seed in range(*map(int, sys.argv[1:3])):
        print(each_seed, *compare(each_seed, int(sys.argv[3])), flush=True)
