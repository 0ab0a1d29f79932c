"""Forecasts held against what then happens: `make compare-futures`.

    python tests/reference/compared_futures.py 40 --first 0

The random workloads of `compared_simulators`, of which nothing more comes after some job, with what they have not: some
by guarantee, work that begins later, arrays of which so many run at once, rests, kept turns with backfill, windows. At
some moment after that one future is played with the true run times; each ask that waits then has to start at the
millisecond at which it does when the simulation goes on.

Nothing stops late or fails, since a future takes it that nothing does; all of a gang takes as long, and comes in the
order of its placeholders, since a future does not know which of its work comes to which place.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from reference.compared_simulators import LEAVES, World, file_of, ours_of, world

from fairlead.config import load_text
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.decisions import Allocated, Decision
from fairlead.core.model.events import SetWindow
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec, WindowSpec
from fairlead.insight import futures
from fairlead.insight.forecast import waiting
from fairlead.insight.futures import play_on
from fairlead.insight.runtimes import WORK
from fairlead.insight.trial import Name, on_a_copy
from fairlead.sim.engine import Engine
from fairlead.sim.jobs import Job

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.sim.attempts import Gang

OF_LEAVES: dict[str, tuple[str, ...]] = {
    "application.unschedasks.backoff": ("1", "3"),
    "application.unschedasks.backoff.delay": ("5s", "45s"),
    "application.sort.policy": ("fair",),
    "wait.max": ("10s", "60s", "200s"),
    "backfill": ("easy",),
    "preemption.delay": ("1s", "20s"),
}


PATIENT = 1_000
"""So many attempts in vain are played in a future, so that none is late."""


def base(key: str) -> str:
    """What a task was called before it came back, or a placeholder stood for it."""
    return key.partition("#")[0].removesuffix(WORK).rstrip("~")


class Asked(Engine):
    """A simulation that is asked once, after the last job has come, when all that waits will start."""

    def __init__(self, *what: Any, chance: random.Random) -> None:
        self.chance, self.likely = chance, chance.choice([0.1, 0.3, 1.0])
        self.told: dict[Name, int] | None = None
        self.names: tuple[Name, ...] = ()
        self.gangs: frozenset[str] = frozenset()
        """Those that were not whole when it was asked."""
        self.started: dict[Name, int] = {}
        self.whole: dict[str, int] = {}
        """When each gang was."""
        super().__init__(*what)

    def _turn(self, at_ms: int) -> None:
        super()._turn(at_ms)
        if self.told is None and self._jobs.next_ms is None and self.waiting and self.chance.random() < self.likely:
            self.names, self.gangs = waiting(self.scheduler), frozenset(self._gangs)
            self.told = on_a_copy(self.scheduler, self._future(), fork=False).starts

    def _future(self) -> Any:
        attempts = (*self.running.items(), *self.waiting.items())
        takes = {(app, base(key)): attempt.run_ms for (app, key), attempt in attempts}

        def draw(ask: Ask, elapsed_ms: int) -> int:
            del elapsed_ms
            return takes[ask.app.id, base(ask.key)]

        return partial(play_on, draw=draw, wanted=self.names)

    def _open(self, gang: Gang) -> None:
        if self.told is not None:
            self.whole.setdefault(gang.application, self.now_ms)
        stand = list(self.scheduler.cluster.partitions[DEFAULT_PARTITION].applications[gang.application].asks)
        order = [base(key) for key in stand]
        gang.asks = tuple(sorted(gang.asks, key=lambda ask: order.index(ask.key)))
        super()._open(gang)

    def take(self, decisions: list[Decision]) -> None:
        """When each starts after it was asked."""
        for each in decisions if self.told is not None else ():
            if isinstance(each, Allocated):
                self.started.setdefault((DEFAULT_PARTITION, each.application, each.key), self.now_ms)
        super().take(decisions)

    def differ(self) -> list[str]:
        """What started at another time than was told."""
        found = []
        for name in self.names:
            told_ms = (self.told or {}).get(name)
            at_ms = self.whole.get(name[1]) if name[1] in self.gangs else self.started.get(name)
            if told_ms != at_ms:
                found.append(f"{name[2]} starts at {at_ms}, and not at {told_ms}")
        return found


def asked(number: int, *, more: bool) -> Asked:
    """The workload of this number, asked and run to its end."""
    chance = random.Random(f"{number}, {more}")
    made = world(number)
    made.jobs = made.jobs[: chance.randint(1, len(made.jobs))]
    nodes, jobs = ours_of(made)
    simulation = Asked(_file(chance, made, more=more), nodes, [_job(chance, job, more) for job in jobs], chance=chance)
    if more and chance.random() < 0.6:
        simulation.handle(SetWindow(_window(chance, made)))
    simulation.run()
    return simulation


def _file(chance: random.Random, made: World, *, more: bool) -> ClusterSpec:
    plain = json.loads(file_of(made))
    part = plain["partitions"][0]
    if chance.random() < 0.5:
        part["preemption"]["rule"] = "guarantee"
    queues = [part["queues"][0]]
    for queue in queues:
        queues += queue.get("queues", [])
        if more and not queue.get("queues"):
            queue.setdefault("properties", {}).update(
                {name: chance.choice(values) for name, values in OF_LEAVES.items() if chance.random() < 0.3}
            )
    return load_text(json.dumps(plain))


def _job(chance: random.Random, job: Job, more: bool) -> Job:
    app, takes_ms = job.application, job.tasks[0].run_ms
    if more and not job.gang:
        app = replace(app, at_once=chance.choice([0, 0, 0, 1, 2]))
    tasks = []
    for task in job.tasks:
        run_ms = takes_ms if job.gang else task.run_ms
        limit_ms = run_ms + chance.choice([0, 5_000, 60_000]) if chance.random() < 0.5 else None
        ask = replace(task.ask, grace_ms=None, time_limit_ms=limit_ms)
        if more and not job.gang and chance.random() < 0.25:
            ask = replace(ask, conditions=Conditions(begin_ms=job.at_ms + chance.choice([1, 30, 90, 200]) * 1_000))
        tasks.append(replace(task, ask=ask, run_ms=run_ms, exit_code=0))
    return replace(job, application=app, tasks=tuple(tasks))


def _window(chance: random.Random, made: World) -> WindowSpec:
    return WindowSpec(
        name="w",
        starts_ms=made.jobs[-1].at_ms + chance.randint(-50, 300) * 1_000,
        length_ms=chance.choice([5_000, 30_000, 120_000]),
        nodes=() if chance.random() < 0.4 else (chance.choice(list(made.nodes)),),
        queues=() if chance.random() < 0.5 else (chance.choice(LEAVES),),
        stop_running=chance.random() < 0.4,
    )


@dataclass
class Tally:
    """What was compared."""

    workloads: int = 0
    asks: int = 0
    gangs: int = 0
    different: list[str] = field(default_factory=list)

    def line(self) -> str:
        """For people."""
        return (
            f"{self.workloads} workloads, {self.asks} asks that waited, {self.gangs} gangs: "
            f"{len(self.different)} different"
        )


def compared(numbers: range, *, more: bool) -> Tally:
    """These workloads; those in which nothing waited are not counted."""
    tally = Tally()
    for number in numbers:
        with patch.object(futures, "VAIN_EXACT", PATIENT):
            simulation = asked(number, more=more)
        tally.workloads += simulation.told is not None
        tally.asks += len(simulation.names)
        tally.gangs += len(simulation.gangs)
        if found := simulation.differ():
            tally.different.append(f"{number}{' with more' if more else ''}: {'; '.join(found[:3])}")
    return tally


def main() -> int:
    """So many workloads, without more and with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", type=int, nargs="?", default=40)
    parser.add_argument("--first", type=int, default=0, help="the number of the first (its thousands: see there)")
    given = parser.parse_args()
    if given.workloads < 1:
        parser.error("there has to be one workload at least")
    is_wrong = False
    for more in (False, True):
        tally = compared(range(given.first, given.first + given.workloads), more=more)
        print(tally.line(), *tally.different, sep="\n")
        is_wrong |= bool(tally.different)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
