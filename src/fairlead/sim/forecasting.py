"""Forecasts put to the test: a workload is simulated, starts are forecast on the way, and what happens is noted.

Decides when an answer is asked for: when work begins to wait, and at random moments of its wait. The forecast knows
what a service would know then: the state, the run times of what ended and what came. Never looks ahead, but for the run
that knows all run times (`known_ms`), which is what others are measured against. Invariant: the same workload and seed
give the same answers, and the same decisions as without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from fairlead.core.model.decisions import Allocated, Decision
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec
from fairlead.insight.arrivals import Arrival, Arrivals
from fairlead.insight.forecast import DRAWS, Expected, forecast, kind_of
from fairlead.insight.futures import AGAIN, play_on
from fairlead.insight.runtimes import WORK, Runtimes
from fairlead.insight.trial import Name, on_a_copy
from fairlead.sim.attempts import Attempt, Gang, Settings, sized
from fairlead.sim.columns import End
from fairlead.sim.engine import Engine, Id

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.model.specs import AskSpec
    from fairlead.sim.jobs import Job, Workload


@dataclass(slots=True)
class Plan:
    """How much to spend."""

    moments: int = 400
    """At which answers are asked for, at most."""
    draws: int = DRAWS
    every_ms: int = 3_600_000
    """Between two of them in the mean."""
    each: int = 4
    """Answers at a moment, at most."""
    seed: int = 1


class Answer(NamedTuple):
    """What was forecast for one ask."""

    made_ms: int
    plain: Expected
    """As the futures have it."""
    known_ms: int | None
    """When it would start by the true run times, if nothing came."""


class Started(NamedTuple):
    """What began to run."""

    at_ms: int
    name: Name
    queue: str
    wait_ms: int


Record = list[Answer | Started]
"""What happened, in order."""


class ForecastTrial(Engine):
    """A simulation that forecasts on the way and notes what came of it."""

    def __init__(self, spec: ClusterSpec, workload: Workload, plan: Plan | None = None) -> None:
        self.plan = plan or Plan()
        self.record: Record = []
        self.runtimes, self.arrivals = Runtimes(), Arrivals()
        self.made = 0
        self._chance = Random(self.plan.seed)
        self._next_due_ms = 0
        self._fresh: list[Id] = []
        self._since: dict[Id, int] = {}
        super().__init__(spec, workload.nodes, workload.jobs, settings=Settings(digest=False))

    # -- what is noted --------------------------------------------------------------------------------------------

    def _submit(self, job: Job) -> None:
        super()._submit(job)
        ids = [(job.application.id, task.ask.key) for task in job.tasks]
        self._fresh += ids
        self._since |= dict.fromkeys(ids, self.now_ms)
        gang = Gang(job, tuple(task.ask for task in job.tasks)) if job.gang else None
        asks = gang.placeholders if gang is not None else tuple(task.ask for task in job.tasks)
        self.arrivals.learn(Arrival(self.now_ms, sized(job), asks))

    def take(self, decisions: list[Decision]) -> None:
        """As the simulation does; starts are noted."""
        for d in decisions:
            if isinstance(d, Allocated) and (d.application, d.key) in self.waiting:
                self._note((d.application, d.key), (DEFAULT_PARTITION, d.application, d.key))
        super().take(decisions)

    def _note(self, id_: Id, name: Name) -> None:
        since = self._since.pop(id_, None)
        if since is not None:
            self.record.append(Started(self.now_ms, name, self._queue_of.get(id_[0], ""), self.now_ms - since))

    def _open(self, gang: Gang) -> None:
        app = gang.application
        for ask in gang.asks[1:]:
            self._since.pop((app, ask.key), None)
        self._note((app, gang.asks[0].key), (DEFAULT_PARTITION, app, ""))
        super()._open(gang)

    def _wait_again(self, attempt: Attempt, ask: AskSpec, tries: int, told: bool = False) -> None:
        self._since[ask.application, ask.key] = self.now_ms
        super()._wait_again(attempt, ask, tries, told)

    def _leave(self, attempt: Attempt, how: End) -> Id:
        if how is not End.EVICTED and how is not End.LOST:
            app = self.scheduler.cluster.partitions[DEFAULT_PARTITION].applications[attempt.ask.application]
            ask = app.asks[attempt.ask.key]
            self.runtimes.learn(kind_of(ask).of(ask.spec), self.now_ms - attempt.start_ms)
        return super()._leave(attempt, how)

    # -- what is asked --------------------------------------------------------------------------------------------

    def _turn(self, at_ms: int) -> None:
        super()._turn(at_ms)
        if self.made >= self.plan.moments or at_ms < self._next_due_ms:
            self._fresh.clear()
            return
        # Every second time those that came this very moment, else any that wait.
        waits = list(self.waiting) if self.made % 2 else [id_ for id_ in self._fresh if id_ in self.waiting]
        self._fresh.clear()
        if waits:
            self._next_due_ms = at_ms + round(self._chance.expovariate(1 / max(self.plan.every_ms, 1)))
            self._ask(self._chance.sample(waits, min(self.plan.each, len(waits))))

    def _ask(self, ids: Sequence[Id]) -> None:
        names = dict(self._names(ids))
        if not names:
            return
        self.made += 1
        wanted = list(names.values())
        told = forecast(
            self.scheduler, self.runtimes, arrivals=self.arrivals, draws=self.plan.draws, seed=self.made, wanted=wanted
        )
        known = on_a_copy(self.scheduler, partial(play_on, draw=self._true_run_ms, wanted=wanted)).starts
        for scored, name in names.items():
            plain = told.expected(name)
            if plain.median_ms is not None:
                self.record.append(Answer(self.now_ms, replace(plain, name=scored), known.get(name)))

    def _names(self, ids: Sequence[Id]) -> Iterator[tuple[Name, Name]]:
        """How each is scored, and how it is forecast: a gang by a placeholder that waits."""
        applications = self.scheduler.cluster.partitions[DEFAULT_PARTITION].applications
        for app, key in ids:
            asks = applications[app].asks if app in applications else {}
            is_gang = app in self._gangs
            ask = next((a for a in asks.values() if a.pending), None) if is_gang else asks.get(key)
            if ask is not None and ask.pending:
                yield (DEFAULT_PARTITION, app, "" if is_gang else key), (DEFAULT_PARTITION, app, ask.key)

    def _true_run_ms(self, ask: Ask, elapsed_ms: int) -> int:
        id_ = (ask.app.id, ask.key.partition(AGAIN)[0].removesuffix(WORK).rstrip("~"))
        attempt = self.running.get(id_) or self.waiting.get(id_)
        return elapsed_ms if attempt is None else attempt.run_ms
