"""Run times: how long work takes, learned from the ends of earlier work, and what owners of gangs do meanwhile.

Decides which earlier work counts as alike (from the parts of the same array to all work: `levels`), and draws run times
from what that took, mostly from what is most alike; decides what is guessed where little has ended, and which gangs
stand whole in a possible future, and which real work comes for them then: one ask for each placeholder, of its size.
Never a mean: what is drawn has been seen, or is guessed. Never places anything. Invariant: the same state and the same
seed draw the same times; the work of a gang comes once.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random  # noqa: TID251 - drawn from a seed that the caller gives
from typing import TYPE_CHECKING

from fairlead.core.books.asks import counts_as_gone
from fairlead.core.model.decisions import Decision, Evict
from fairlead.core.model.events import AddAsks

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.model.resources import Items
    from fairlead.core.model.specs import AskSpec
    from fairlead.scheduler import Scheduler

ENOUGH = 5
"""Ends of alike work that a guess is said to rest on."""
SHRINK = 4
"""How many ends that are alike in less count as much as those that are alike in more."""
NO_EXPERIENCE = "no experience"
KEPT = 512
"""Ends of each kind that are remembered, the newest."""
KINDS = 20_000
"""Kinds that are remembered, those of which something ended last: names of work come without end."""
PRIOR_MEDIAN_MS = 600_000
PRIOR_SPREAD = 1.5
"""Where nothing is known: half of all work takes less than ten minutes, and two thirds between 2 and 45 minutes."""
LEAST_MS = 1


@dataclass(frozen=True, slots=True)
class Kind:
    """What work is alike: user, name (empty: none) and queue; and what it declares."""

    user: str
    name: str
    queue: str
    limit_ms: int | None = None
    size: Items = ()
    application: str = ""
    """The array or group that it is part of."""

    def of(self, spec: AskSpec) -> Kind:
        """The same with what an ask declares."""
        return replace(self, limit_ms=spec.time_limit_ms, size=spec.resources.items, application=spec.application)


Key = tuple[object, ...]
RATIO = 1_000_000
"""Of its time limit work takes so many parts at most."""


@dataclass(frozen=True, slots=True)
class Level:
    """One way to call work alike."""

    words: str
    key: Key
    of_limit: bool = False
    """Remembered are parts of the time limit, not times."""


def levels(kind: Kind) -> Iterator[Level]:
    """From the most particular to all work; those that need a name or a limit are left out where there is none."""
    user, name, queue, size, limit_ms = kind.user, kind.name, kind.queue, kind.size, kind.limit_ms
    if kind.application:
        yield Level("its own array", ("application", kind.application, size))
    if name:
        yield Level("user, name, limit and size", ("user-name", user, name, limit_ms, size))
        yield Level("user and name", ("user-name", user, name))
        yield Level("name in the queue", ("queue-name", queue, name))
    yield Level("user, limit and size", ("user-queue", user, queue, limit_ms, size))
    yield Level("limit and size in the queue", ("queue", queue, limit_ms, size))
    if limit_ms:
        yield Level("part of the limit, user", ("user-part", user, queue), of_limit=True)
        yield Level("part of the limit, queue", ("queue-part", queue), of_limit=True)
    yield Level("user", ("user-queue", user, queue))
    yield Level("queue", ("queue", queue))
    yield Level("all work", ("all",))


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

    __slots__ = ("_samples", "ends", "not_well")

    def __init__(self) -> None:
        self._samples: OrderedDict[Key, Sample] = OrderedDict()
        self.ends = 0
        self.not_well: set[str] = set()
        """Applications of which a part has ended, and not well: so no future ends all of it well."""

    def learn(self, kind: Kind, run_ms: int) -> None:
        """Work of this kind ended by itself after `run_ms`."""
        self.ends += 1
        for level in levels(kind):
            sample = self._samples.get(level.key)
            if sample is None:
                sample = self._samples[level.key] = Sample()
            sample.add(_measured(run_ms, level, kind))
            self._samples.move_to_end(level.key)
        while len(self._samples) > KINDS:
            self._samples.popitem(last=False)

    def basis(self, kind: Kind) -> str:
        """What a guess for this kind mostly rests on, in words."""
        for level in levels(kind):
            sample = self._samples.get(level.key)
            if sample is not None and len(sample) >= ENOUGH:
                return level.words
        return NO_EXPERIENCE

    def draw(
        self, kind: Kind, chance: Random, elapsed_ms: int = 0, limit_ms: int | None = None, future: str = ""
    ) -> int:
        """A run time (in total) for work that has run `elapsed_ms` and is ended at `limit_ms` at the latest.

        Of `n` ends that are alike and took longer one is drawn with the chance n / (n + `SHRINK`), else one of those
        that are alike in less, and behind them all what is guessed without any; so few ends count for little, and many
        for nearly all.

        Draws of the same `future` share what they take for usual: `n` of those ends, drawn with repetition (the
        bootstrap: Efron 1979). Few ends may mislead about all work that is alike at once, and futures differ by that.
        """
        total = self._drawn(kind, chance, elapsed_ms, future)
        if total is None:
            total = self._guessed(chance, elapsed_ms, limit_ms)
        if total <= elapsed_ms:
            total = int(elapsed_ms * (1 + chance.expovariate(2.0))) + LEAST_MS
        return total if limit_ms is None else min(total, max(limit_ms, elapsed_ms + LEAST_MS))

    def _drawn(self, kind: Kind, chance: Random, elapsed_ms: int, future: str) -> int | None:
        known = 0
        for level in levels(kind):
            sample = self._samples.get(level.key)
            longer = sample.beyond(_measured(elapsed_ms, level, kind)) if sample is not None else []
            if len(longer) > known:
                # The same ends seen in another way would count twice.
                known = len(longer)
                place = int(chance.random() * known)
                if future:
                    place = Random(f"{future}:{level.key}:{known}:{place}").randrange(known)
                if chance.random() * (len(longer) + SHRINK) < len(longer):
                    return _time(longer[place], level, kind)
        return None

    def _guessed(self, chance: Random, elapsed_ms: int, limit_ms: int | None) -> int:
        if elapsed_ms and chance.random() * (self.ends + SHRINK) < self.ends:
            # It outlived nearly everything. What lasted so long lasts as long again, give or take.
            return int(elapsed_ms * (1 + chance.expovariate(1.0)))
        if limit_ms:
            # All that is known is the limit, and people set limits with room to spare.
            return int(limit_ms * chance.uniform(min(max(0.2, elapsed_ms / limit_ms), 1.0), 1.0))
        return int(PRIOR_MEDIAN_MS * chance.lognormvariate(0.0, PRIOR_SPREAD))


def _measured(run_ms: int, level: Level, kind: Kind) -> int:
    if not level.of_limit or not kind.limit_ms:
        return max(run_ms, LEAST_MS) if run_ms else 0
    return min(run_ms * RATIO // kind.limit_ms, RATIO)


def _time(measured: int, level: Level, kind: Kind) -> int:
    return measured * kind.limit_ms // RATIO if level.of_limit and kind.limit_ms else measured


# -- gangs ---------------------------------------------------------------------------------------------------------

WORK = "~work"
"""How the key of a gang's supposed work ends."""


def made_anew(spec: AskSpec, key: str) -> AskSpec:
    """What an owner submits in the place of an ask: it runs nowhere, and is no further attempt, which may go ahead."""
    return replace(spec, key=key, node="", attempt=1, first_key="")


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

    def has_stood(self, partition: str, application: str) -> bool:
        """Whether the gang of an application was whole, so that its work has come."""
        return (partition, application) in self._opened

    def falls_apart(self, partition: str, application: str) -> None:
        """All of it was stopped, and is to come together once more."""
        self._opened.discard((partition, application))

    def complete(
        self, partition: str, app: Application, then: Callable[[], Iterable[Decision]] = tuple
    ) -> Standing | None:
        """The gang of this application, if the last of its placeholders stands now.

        `then`: what was decided after that, in the same call. What has to stop by it stood as well.
        """
        placeholders = [ask for ask in app.asks.values() if ask.spec.placeholder]
        if self.has_stood(partition, app.id) or any(ask.pending for ask in placeholders):
            return None
        leaving = {ask.key for ask in placeholders if counts_as_gone(ask)}
        told = (
            {each.key for each in then() if isinstance(each, Evict) and each.application == app.id} if leaving else ()
        )
        if not leaving.issubset(told):
            return None
        self._opened.add((partition, app.id))
        came = Counter(a.spec.task_group for a in app.asks.values() if a.pending and not a.spec.placeholder)
        missing = []
        for ask in placeholders:
            group = ask.spec.task_group
            if came[group]:
                came[group] -= 1
            else:
                missing.append(replace(made_anew(ask.spec, f"{ask.key}{WORK}"), placeholder=False))
        return Standing(partition, tuple(ask.key for ask in placeholders), tuple(missing))
