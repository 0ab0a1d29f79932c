"""Run times: how long work takes, learned from the ends of earlier work, and what owners of gangs do meanwhile.

Decides which earlier work counts as alike (the same user and name, the same name in the queue, the same user, the same
queue, anything), and draws run times from what that took; decides which gangs stand whole in a possible future, and
which real work comes for them then: one ask for each placeholder, of its size. Never a mean: what is drawn has been
seen. Never places anything. Invariant: the same state and the same seed draw the same times; the work of a gang comes
once.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random  # noqa: TID251 - drawn from a seed that the caller gives
from typing import TYPE_CHECKING

from fairlead.core.model.events import AddAsks

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.model.specs import AskSpec
    from fairlead.scheduler import Scheduler

ENOUGH = 5
"""Ends of alike work that make a guess."""
KEPT = 512
"""Ends of each kind that are remembered, the newest."""
PRIOR_MEDIAN_MS = 600_000
PRIOR_SPREAD = 1.5
"""Where nothing is known: half of all work takes less than ten minutes, and two thirds between 2 and 45 minutes."""
LEAST_MS = 1


@dataclass(frozen=True, slots=True)
class Kind:
    """What work is alike: user, name (empty: none) and queue."""

    user: str
    name: str
    queue: str


LEVELS = ("user and name", "name in the queue", "user", "queue", "all work")
Key = tuple[str, ...]


def _keys(kind: Kind) -> tuple[tuple[str, Key], ...]:
    """From the most particular; those that need a name are left out where there is none."""
    named: tuple[tuple[str, Key], ...] = ()
    if kind.name:
        named = (
            (LEVELS[0], ("user-name", kind.user, kind.name)),
            (LEVELS[1], ("queue-name", kind.queue, kind.name)),
        )
    return (
        *named,
        (LEVELS[2], ("user-queue", kind.user, kind.queue)),
        (LEVELS[3], ("queue", kind.queue)),
        (LEVELS[4], ("all",)),
    )


class Sample:
    """The newest run times of one kind, in order of size."""

    __slots__ = ("_arrived", "_ordered")

    def __init__(self) -> None:
        self._arrived: deque[int] = deque()
        self._ordered: list[int] = []

    def __len__(self) -> int:
        return len(self._ordered)

    def add(self, run_ms: int) -> None:
        """One more; the oldest leaves when there are enough."""
        self._arrived.append(run_ms)
        insort(self._ordered, run_ms)
        if len(self._arrived) > KEPT:
            oldest = self._arrived.popleft()
            del self._ordered[bisect_right(self._ordered, oldest) - 1]

    def beyond(self, elapsed_ms: int) -> list[int]:
        """Those that took longer than `elapsed_ms`."""
        return self._ordered[bisect_right(self._ordered, elapsed_ms) :]


class Runtimes:
    """What is known about run times."""

    __slots__ = ("_samples", "ends")

    def __init__(self) -> None:
        self._samples: dict[Key, Sample] = {}
        self.ends = 0

    def learn(self, kind: Kind, run_ms: int) -> None:
        """Work of this kind ended by itself after `run_ms`."""
        self.ends += 1
        for _, key in _keys(kind):
            sample = self._samples.get(key)
            if sample is None:
                sample = self._samples[key] = Sample()
            sample.add(max(run_ms, LEAST_MS))

    def basis(self, kind: Kind) -> tuple[str, Sample | None]:
        """What a guess for this kind rests on, in words, and the run times themselves; None: nothing is known."""
        for level, key in _keys(kind):
            sample = self._samples.get(key)
            if sample is not None and len(sample) >= ENOUGH:
                return level, sample
        return "no experience", None

    def draw(self, kind: Kind, chance: Random, elapsed_ms: int = 0, limit_ms: int | None = None) -> int:
        """A run time (in total) for work that has run `elapsed_ms` and is ended at `limit_ms` at the latest."""
        _, sample = self.basis(kind)
        longer = sample.beyond(elapsed_ms) if sample is not None else []
        if longer:
            total = longer[int(chance.random() * len(longer))]
        elif sample is not None:
            # It outlived everything alike. What lasted so long lasts as long again, give or take.
            total = int(elapsed_ms * (1 + chance.expovariate(1.0)))
        elif limit_ms is not None:
            # All that is known is the limit, and people set limits with room to spare.
            total = int(limit_ms * chance.uniform(0.2, 1.0))
        else:
            total = int(PRIOR_MEDIAN_MS * chance.lognormvariate(0.0, PRIOR_SPREAD))
        if total <= elapsed_ms:
            total = int(elapsed_ms * (1 + chance.expovariate(2.0))) + LEAST_MS
        return total if limit_ms is None else min(total, max(limit_ms, elapsed_ms + LEAST_MS))


# -- gangs ---------------------------------------------------------------------------------------------------------

WORK = "~work"
"""How the key of a gang's supposed work ends."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A gang whose placeholders all have a node."""

    partition: str
    placeholders: tuple[str, ...]
    """Their keys."""
    asks: tuple[AskSpec, ...]

    def work(self) -> AddAsks:
        """Its owner submits what is still missing of the real work."""
        return AddAsks(self.asks, self.partition)


class Gangs:
    """The gangs of one future."""

    __slots__ = ("_opened", "_scheduler")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._opened: set[tuple[str, str]] = set()

    def standing(self) -> Iterator[Standing]:
        """Those that stand whole as it is."""
        for name, partition in self._scheduler.cluster.partitions.items():
            for app in list(partition.applications.values()):
                if app.placeholder_count and (found := self.complete(name, app)) is not None:
                    yield found

    def complete(self, partition: str, app: Application) -> Standing | None:
        """The gang of this application, if the last of its placeholders stands now."""
        placeholders = [ask for ask in app.asks.values() if ask.spec.placeholder]
        if (partition, app.id) in self._opened or any(ask.pending for ask in placeholders):
            return None
        self._opened.add((partition, app.id))
        came = Counter(a.spec.task_group for a in app.asks.values() if a.pending and not a.spec.placeholder)
        missing = []
        for ask in placeholders:
            group = ask.spec.task_group
            if came[group]:
                came[group] -= 1
            else:
                missing.append(replace(ask.spec, key=f"{ask.key}{WORK}", placeholder=False))
        return Standing(partition, tuple(ask.key for ask in placeholders), tuple(missing))
