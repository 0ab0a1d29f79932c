"""Tuning: the values of named settings of a queue file that make one figure best, under conditions.

Decides which values are tried (all, or some drawn from a seed), on how much of the work (little first; the better third
goes on to more), what the neighbours of the best are, and whether it is better on work that it was not chosen by. Never
changes a file. Invariant: the last third of the work decides nothing but whether the answer holds; what breaks a
condition is never recommended.

The search is successive halving and then a walk to better neighbours. It is written here because it needs 100 lines and
values that are few and ordered; general optimisers (Optuna) bring a database layer along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import prod
from pathlib import Path
from random import Random
from typing import Any

from fairlead.core.model.quantities import people_call
from fairlead.sim.goals import Bound, Figures, Goal, of_every_queue
from fairlead.sim.settings import Choice, Setting, SettingError, chosen, leaves_of, objection
from fairlead.sim.spread import FEWEST, difference, is_sure
from fairlead.sim.trials import Trial
from fairlead.sim.verdicts import counted

KEPT = 3
"""One in so many goes on to the next round."""
LEAST_KEPT = 3
TRAINING = 2 / 3
"""The part of the work by which is chosen."""
PERIODS_LEAST = 3
Simulate = Callable[[str, list[Trial]], list[dict[str, Any]]]
"""Runs trials (with a word about them) and gives their outcomes; fewer after Ctrl-C."""


class Interrupted(Exception):
    """Ctrl-C: nothing is recommended."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is wanted."""

    settings: tuple[Setting, ...]
    goal: Goal
    no_worse: float
    """By how much the mean wait of any queue may get longer, as a part."""
    bounds: tuple[Bound, ...] = ()
    tries: int = 24
    """Different files that are simulated in the first round, and again as many neighbours at most."""
    seed: int = 1
    period_ms: int = 0
    period: str = "week"
    """What `period_ms` is called."""


@dataclass(slots=True)
class Candidate:
    """One choice of values, and what came of it on the most work that it was tried on."""

    number: int
    choice: dict[Setting, str]
    text: str
    figures: Figures = field(default_factory=dict)
    periods: int = 0
    """On so many periods of work it was tried."""
    breach: float = 0.0
    """How far beyond the conditions it is; 0: it keeps them."""


@dataclass(frozen=True, slots=True)
class Found:
    """What came out."""

    best: Candidate | None
    """None: nothing that was tried is better and keeps the conditions."""
    base: Candidate
    tried: int
    refused: int
    """So many files were not tried because the checks refuse them."""
    periods: int
    """Of work that nothing was chosen by."""
    held_out: dict[str, Any] | None = None
    """How the best differs from the file as it is in each of these (`spread.difference`), in units of the figure."""
    broken: tuple[str, ...] = ()
    """Conditions that it breaks there."""
    is_sure: bool = False
    before: float | None = None
    after: float | None = None
    """The means of the figure over these periods."""
    nearest: Candidate | None = None
    """Where there is no best: of those that are better, the one that is least against the conditions."""
    against: tuple[str, ...] = ()
    """The conditions that it breaks."""


class Tuning:
    """One search."""

    def __init__(self, trial: Trial, plan: Plan, base: str, folder: Path, simulate: Simulate) -> None:
        """`trial`: everything but the queue file; `base` is its text; candidates are written into `folder`."""
        # What comes before an end is played until it is through: what waits at the end is no merit of a file.
        source = trial.source if trial.until_ms is None else replace(trial.source, first_ms=trial.until_ms)
        self.trial = replace(trial, source=source, until_ms=None)
        self.plan, self.text, self.folder, self.simulate = plan, base, folder, simulate
        self.notes: list[str] = []
        """What a reader should know of the work that chose."""
        self._known: dict[tuple[str, ...], Candidate] = {}
        self._refused: dict[tuple[str, ...], str] = {}
        """What the checks have against those that are not tried."""
        self._chance = Random(plan.seed)
        self.base = Candidate(0, {}, base)

    def run(self) -> Found:
        """The best, and whether it holds. Raises `SettingError`, `Interrupted`, and what simulating raises."""
        names = [setting.name.lower() for setting in self.plan.settings]
        for number, setting in enumerate(self.plan.settings):
            if setting.name.lower() in names[:number]:
                raise SettingError(f"{setting.name} is named twice: give all its values at once")
        whole_ms = self._looked_over()
        periods = whole_ms // self.plan.period_ms
        if periods < PERIODS_LEAST:
            said = counted(periods, self.plan.period)
            raise SettingError(f"the work lasts {said}, and {PERIODS_LEAST} are needed: say a shorter time by --by")
        training = max(int(periods * TRAINING), 1)
        survivors = list(self._drawn())
        if not survivors:
            first, why = next(iter(self._refused.items()))
            said = ", ".join(
                f"{setting.name}={value}" for setting, value in zip(self.plan.settings, first, strict=True)
            )
            raise SettingError(f"the checks refuse every file that was to be tried: with {said}, {why}")
        for number, length in enumerate(rounds := list(_lengths(training)), 1):
            self._try(f"round {number} of {len(rounds)}", survivors, length)
            survivors = self._that_go_on(survivors)
        self._walk(training)
        nearest = next(filter(self._is_better, self._tried_on(training)), None)
        if nearest is not None and not nearest.breach:
            return self._held_out(nearest, training)
        against = tuple(self._against(nearest)) if nearest is not None else ()
        counts = (self._tried, len(self._refused), periods - training)
        return Found(None, self.base, *counts, nearest=nearest, against=against)

    @property
    def _tried(self) -> int:
        return sum(each.periods > 0 for each in self._known.values())

    # -- which are tried ------------------------------------------------------------------------------------------

    def _drawn(self) -> Iterator[Candidate]:
        settings = self.plan.settings
        count = prod(len(setting.values) for setting in settings)
        if count <= self.plan.tries:
            every = list(product(*(setting.values for setting in settings)))
        else:
            found: dict[tuple[str, ...], None] = {}
            while len(found) < self.plan.tries:
                found[tuple(self._chance.choice(setting.values) for setting in settings)] = None
            every = list(found)
        for values in every:
            candidate = self._candidate(values)
            if candidate is not None:
                yield candidate

    def _candidate(self, values: Sequence[str]) -> Candidate | None:
        """That with these values; None if the checks refuse it."""
        key = tuple(values)
        if key in self._known or key in self._refused:
            return self._known.get(key)
        choice = dict(zip(self.plan.settings, key, strict=True))
        text = chosen(self.text, choice)
        if against := objection(text, self.text):
            self._refused[key] = against
            return None
        self._known[key] = Candidate(len(self._known) + 1, choice, text)
        return self._known[key]

    def _walk(self, periods: int) -> None:
        """Try the neighbours of the best, then those of what is best then, and so on: one setting one value further.

        Of equal ones the neighbours of each are tried: what is better may lie behind them. So are those that were left
        behind on less work: more work may say otherwise.
        """
        left = self.plan.tries
        while left > 0:
            ordered = self._tried_on(periods)
            best = [each for each in ordered if self._rank(each) == self._rank(ordered[0])]
            near = dict.fromkeys(values for each in best for values in _neighbours(each.choice))
            new = (each for values in near if (each := self._candidate(values)) and each.periods < periods)
            around = list(islice(new, left))
            if not around:
                break
            left -= len(around)
            self._try("neighbours of the best", around, periods)

    def _tried_on(self, periods: int) -> list[Candidate]:
        """Those that were tried on so much of the work, the best first."""
        return self._better([each for each in self._known.values() if each.periods == periods])

    # -- how good they are ----------------------------------------------------------------------------------------

    def _trial(self, candidate: Candidate) -> Trial:
        file = self.folder / f"{candidate.number}.yaml"
        file.write_text(candidate.text, encoding="utf-8")
        return replace(self.trial, name=str(candidate.number), queues=str(file), digest=False)

    def _try(self, about: str, candidates: Sequence[Candidate], periods: int) -> None:
        """Simulate them, and the file as it is if it was not yet, on the first so many periods."""
        source = replace(self.trial.source, first_ms=periods * self.plan.period_ms)
        every = [each for each in (self.base, *candidates) if each.periods != periods]
        trials = [replace(self._trial(each), source=source) for each in every]
        outcomes = self.simulate(
            f"{about}: {counted(len(candidates), 'file')}, {counted(periods, self.plan.period)} of work", trials
        )
        if len(outcomes) < len(every) or any(outcome["interrupted"] for outcome in outcomes):
            raise Interrupted
        self.notes = outcomes[0].get("notes", []) if every[0] is self.base else self.notes
        for each, outcome in zip(every, outcomes, strict=True):
            each.figures, each.periods = outcome["figures"], periods
            each.breach = sum(
                bound.breach(each.figures, self.base.figures) for bound in self._bounds(self.base.figures)
            )

    def _bounds(self, figures: Figures) -> Iterator[Bound]:
        """The conditions; `figures` have every queue that had work."""
        yield from of_every_queue(figures, self.plan.no_worse)
        yield from self.plan.bounds

    def _that_go_on(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The better third, and what is as good as the last of it: little work may not tell any two of them apart."""
        ordered = self._better(candidates)
        kept = ordered[: max(-(-len(ordered) // KEPT), LEAST_KEPT)]
        return [each for each in ordered if self._rank(each) <= self._rank(kept[-1])]

    def _better(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The best first; of equal ones in the order in which they were made."""
        return sorted(candidates, key=lambda each: (self._rank(each), each.number))

    def _rank(self, candidate: Candidate) -> tuple[float, float]:
        """Those that keep the conditions come first, by the goal; then those that break them least."""
        value, goal = self.plan.goal.of(candidate.figures), self.plan.goal
        sign = -1.0 if goal.is_better(1.0, 0.0) else 1.0
        return candidate.breach, float("inf") if value is None else sign * value

    def _is_better(self, candidate: Candidate) -> bool:
        """Whether its figure is better than that of the file as it is, whatever the conditions."""
        new, old = self.plan.goal.of(candidate.figures), self.plan.goal.of(self.base.figures)
        return new is not None and (old is None or self.plan.goal.is_better(new, old))

    def _against(self, candidate: Candidate) -> Iterator[str]:
        """The conditions that it breaks where it was tried, each with what is allowed."""
        for bound in self._bounds(self.base.figures):
            if bound.breach(candidate.figures, self.base.figures) > 0:
                goal = bound.goal
                after, before = (goal.text(goal.of(each.figures)) for each in (candidate, self.base))
                yield f"{goal.said} {before} → {after} (allowed: {bound.part:.0%} worse)"

    # -- whether it holds -----------------------------------------------------------------------------------------

    def _looked_over(self) -> int:
        """From the first job to the last one. Raises `SettingError` for a figure that no simulation can have, and for a
        setting that nothing is counted by.
        """
        workload = self.trial.source.open()
        first = last = None
        asked: set[str] = set()
        for job in workload.jobs:
            first, last = (job.at_ms if first is None else first), job.at_ms
            asked.update(name for task in job.tasks for name, _ in task.ask.resources)
        offered = asked & {name for node in workload.nodes for name, _ in node.capacity}
        for setting in self.plan.settings:
            if setting.resource and setting.resource not in asked:
                known = ", ".join(sorted(asked))
                raise SettingError(f"{setting.name}: no task asks for {setting.resource}; tasks ask for {known}")
        queues = leaves_of(self.text)
        for goal in (self.plan.goal, *(bound.goal for bound in self.plan.bounds)):
            if goal.queue and queues and goal.queue not in queues:
                raise SettingError(f"{goal.said}: the file has no such leaf queue; it has {', '.join(queues)}")
            if goal.resource and goal.resource not in offered:
                known = ", ".join(sorted(map(people_call, offered)))
                raise SettingError(f"{goal.said}: no task asks for it, or no node has it; there is a use of {known}")
        return 0 if first is None or last is None else last - first

    def _held_out(self, best: Candidate, training: int) -> Found:
        trials = [replace(self._trial(each), period_ms=self.plan.period_ms) for each in (self.base, best)]
        outcomes = self.simulate("the work that nothing was chosen by", trials)
        if len(outcomes) < 2 or any(outcome["interrupted"] for outcome in outcomes):
            raise Interrupted
        old, new = (outcome["periods"][training:] for outcome in outcomes)
        goal = self.plan.goal
        pairs = [(goal.of(b), goal.of(a)) for a, b in zip(old, new, strict=False)]
        both = [(b, a) for b, a in pairs if a is not None and b is not None]
        found = difference(pairs)
        means = [sum(each) / len(both) for each in zip(*both, strict=True)] if both else [None, None]
        gets_better = found is not None and goal.is_better(found["mean_s"], 0.0)
        return Found(
            best,
            self.base,
            self._tried,
            len(self._refused),
            len(pairs),
            held_out=found,
            broken=tuple(dict.fromkeys(self._broken(self._bounds(outcomes[0]["figures"]), old, new))),
            is_sure=gets_better and found is not None and found["of"] >= FEWEST and is_sure(found),
            before=means[1],
            after=means[0],
        )

    @staticmethod
    def _broken(bounds: Iterable[Bound], old: Sequence[Figures], new: Sequence[Figures]) -> Iterator[str]:
        """Conditions that do not hold in the mean over these periods."""
        for bound in bounds:
            pairs = [(bound.goal.of(b), bound.goal.of(a)) for a, b in zip(old, new, strict=False)]
            both = [(b, a) for b, a in pairs if a is not None and b is not None]
            if not both:
                continue
            after, before = (sum(each) / len(both) for each in zip(*both, strict=True))
            if bound.breach(_figures(bound.goal, after), _figures(bound.goal, before)) > 0:
                yield f"{bound.goal.said} {bound.goal.text(before)} → {bound.goal.text(after)}"


def _figures(goal: Goal, value: float) -> Figures:
    """Figures that have this one value."""
    found: Any = value
    for name in reversed(goal.path):
        found = {name: found}
    return dict(found)


def _lengths(training: int) -> Iterator[int]:
    """How many periods each round has: a quarter, a half, all."""
    yield from dict.fromkeys((max(training // 4, 1), max(training // 2, 1), training))


def _neighbours(choice: Choice) -> Iterator[tuple[str, ...]]:
    values = list(choice.values())
    for number, setting in enumerate(choice):
        at = setting.values.index(values[number])
        for other in (at - 1, at + 1):
            if 0 <= other < len(setting.values):
                yield (*values[:number], setting.values[other], *values[number + 1 :])
