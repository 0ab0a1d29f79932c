"""Forecast: when each waiting ask may start, by letting the future run a number of times on copies.

Decides how one possible future is played (everything that runs ends after a drawn time, everything else is the
scheduler's doing) and how many of them make an interval. Never a second model of scheduling, never a clock or chance of
its own: the same state and seed give the same forecast. What nobody can know is not in it: work that has yet to come.
Where time is short futures are broken off, and what was not seen in them is not made up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from random import Random  # noqa: TID251 - drawn from a seed that the caller gives
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from fairlead.core.model.conditions import NeverRuns, OnHold, Outcome
from fairlead.core.model.decisions import Allocated, Decision
from fairlead.core.model.events import Cause, Event, Release
from fairlead.insight.runtimes import Gangs, Kind, Runtimes
from fairlead.insight.trial import Name, leaving, on_a_copy
from fairlead.policy.events.held import following
from fairlead.virtual_time import VirtualTime
from fairlead.wire.questions import Interval, Shift

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.scheduler import Scheduler

DRAWS = 20
HORIZON_MS = 30 * 24 * 3_600_000
FAR_MS = 2**62
"""Later than anything that is seen."""
EVENTS_MAX = 200_000
"""Ends of work and timers that one future is played through at most."""

MANY = 200
COARSE = 64
"""With more than `MANY` that wait, ends that are this part of the time from now apart count as one: 1.6 % of a wait."""

IsOver = Callable[[], bool]
NEVER: IsOver = lambda: False  # noqa: E731 - it says what it is
Share = Callable[[int, int], IsOver | None]
"""Of the time to spend on a forecast what this future has, of so many; None: nothing is left."""

KindOf = Callable[["Ask"], Kind]


def kind_of(ask: Ask) -> Kind:
    """User, name (a tag `name` of the ask or its application) and queue."""
    name = ask.spec.tags.get("name", "") or ask.app.spec.tags.get("name", "")
    return Kind(ask.app.user, name, ask.app.queue.path)


class Expected(Interval, frozen=True, kw_only=True):
    """When one ask may start, by its futures."""

    name: Name


@dataclass(frozen=True)
class Forecast:
    """The starts of everything that waits, and what they rest on."""

    made_ms: int
    draws: int
    starts: Mapping[Name, tuple[int | None, ...]]
    """Of each waiting ask its start in each future."""
    assumptions: tuple[str, ...]
    seen_ms: tuple[int | None, ...] = ()
    """Of each future the time up to which it was played where it was broken off; None (or nothing): it was not."""

    def first(self, draws: int) -> Forecast:
        """The same with only the first so many of its futures."""
        starts = {name: each[:draws] for name, each in self.starts.items()}
        return replace(self, draws=min(draws, self.draws), starts=starts, seen_ms=self.seen_ms[:draws])

    def expected(self, name: Name, coverage: float = 0.8) -> Expected:
        """The interval of one ask, as these futures have it (`Scorecard.calibrated` widens it by experience).

        Raises KeyError for an ask that did not wait when the forecast was made.
        """
        tail = (1 - coverage) / 2
        starts, seen = self.starts[name], self.seen_ms or (None,) * self.draws
        pairs = list(zip(starts, seen, strict=True))
        at_least = _ordered(at if start is None else start for start, at in pairs)
        at_most = _ordered(starts)
        low, middle, high = (_quantile(at_least, part) for part in (tail, 0.5, 1 - tail))
        broken_off = sum(start is None and at is not None for start, at in pairs)
        never = (starts.count(None) - broken_off) / len(starts)
        if (low, middle, high) == tuple(_quantile(at_most, part) for part in (tail, 0.5, 1 - tail)):
            broken_off = 0
        else:
            high = _quantile(at_most, 1 - tail)
            middle = middle if middle == _quantile(at_most, 0.5) else None
        ahead = 0
        if middle is not None or broken_off:
            ahead = bisect_left(self._middles, FAR_MS if middle is None else middle)
        return Expected(middle, low, high, coverage, ahead, never, broken_off, name=name)

    @cached_property
    def _middles(self) -> list[int]:
        """The middle of each ask's futures, in order."""
        middles = (_quantile(_ordered(starts), 0.5) for starts in self.starts.values())
        return sorted(FAR_MS if middle is None else middle for middle in middles)


def _ordered(starts: Iterable[int | None]) -> list[int | None]:
    return sorted(starts, key=lambda ms: FAR_MS if ms is None else ms)


def _quantile(ordered: Sequence[int | None], part: float) -> int | None:
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def forecast(  # noqa: PLR0913 - the state, what is known, and how much to spend
    scheduler: Scheduler,
    runtimes: Runtimes,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    kind: KindOf = kind_of,
    horizon_ms: int = HORIZON_MS,
    wanted: Iterable[Name] | None = None,
    events: Sequence[Event] = (),
    fork: bool | None = None,
    share: Share | None = None,
) -> Forecast:
    """The starts of everything that waits, in `draws` futures; each ends when all of `wanted` (default: all) started.

    `events` happen first, on the copies alone. `share`: the time to spend; a future is broken off when its share is
    over, and where nothing is left there are fewer futures, but one.
    """
    names = waiting(scheduler)
    until = names if wanted is None else tuple(wanted)
    futures: list[Played] = []
    for number in range(draws):
        is_over = share(number, draws) if share is not None else NEVER
        if is_over is None and futures:
            break
        draw = _drawn(runtimes, kind, f"{seed}:{number}")
        play = partial(
            play_on, draw=draw, wanted=until, horizon_ms=horizon_ms, events=events, is_over=is_over or (lambda: True)
        )
        futures.append(on_a_copy(scheduler, play, fork=fork))
    starts = {name: tuple(future.starts.get(name) for future in futures) for name in names}
    taken = tuple(assumptions(scheduler, runtimes, kind))
    return Forecast(scheduler.cluster.now_ms, len(futures), starts, taken, tuple(each.seen_ms for each in futures))


def _drawn(runtimes: Runtimes, kind: KindOf, future: str) -> Callable[[Ask, int], int]:
    """A run time for each ask, given how long it has run already; its own in each future, whatever else happens."""

    def draw(ask: Ask, elapsed_ms: int) -> int:
        chance = Random(f"{future}:{ask.app.id}/{ask.key}")
        return runtimes.draw(kind(ask), chance, elapsed_ms, ask.spec.time_limit_ms)

    return draw


def waiting(scheduler: Scheduler) -> tuple[Name, ...]:
    """Everything that waits in line, or will be in line by itself; of a gang whose real work has yet to come, its
    placeholders. When what is on hold starts nobody knows.
    """
    partitions = scheduler.cluster.partitions.items()
    in_line = (
        (name, app.id, ask.key)
        for name, partition in partitions
        for app in partition.applications.values()
        if app.pending_count
        for ask in app.asks.values()
        if ask.pending
    )
    to_come = (
        (name, application, held.spec.key)
        for name, partition in partitions
        for application, held in partition.held_asks
        if not isinstance(held.reason(partition.applications[application], partition.now_ms), OnHold | NeverRuns)
    )
    return (*in_line, *to_come)


@dataclass(frozen=True, slots=True)
class Played:
    """What one future showed."""

    starts: dict[Name, int]
    seen_ms: int | None
    """Where it was broken off: what has no start here starts later than this. None: it was not."""


def play_on(
    scheduler: Scheduler,
    draw: Callable[[Ask, int], int],
    wanted: Iterable[Name],
    horizon_ms: int = HORIZON_MS,
    events: Sequence[Event] = (),
    is_over: IsOver = NEVER,
) -> Played:
    """Let one future happen to this very scheduler until all of `wanted` started, or `is_over`; when each ask starts.

    Call it on a copy only.
    """
    return _Future(scheduler, draw, wanted, horizon_ms).run(events, is_over)


class _Future(VirtualTime):
    """One future being played. What is told to stop stops at once."""

    def __init__(
        self, scheduler: Scheduler, draw: Callable[[Ask, int], int], wanted: Iterable[Name], horizon_ms: int
    ) -> None:
        super().__init__(scheduler, scheduler.cluster.now_ms)
        self.draw = draw
        self.gangs = Gangs(scheduler)
        self.left = dict.fromkeys(wanted)
        self.starts: dict[Name, int] = {}
        self.made = self.now_ms
        self.until = self.now_ms + horizon_ms

    def run(self, events: Sequence[Event], is_over: IsOver) -> Played:
        for stopped in leaving(self.scheduler):
            self._happens(stopped)
        for name, partition in self.scheduler.cluster.partitions.items():
            for node in partition.nodes.nodes.values():
                for ask in node.allocations:
                    since = self.now_ms if ask.allocated_ms is None else ask.allocated_ms
                    self._will_end(name, ask, self.now_ms - since)
        for event in events:
            self._happens(event)
        for standing in self.gangs.standing():
            self._happens(standing.work())
        self.settle()
        for _ in range(EVENTS_MAX):
            moment = self._next()
            if not self.left or moment is None or moment > self.until:
                break
            if is_over():
                return Played(self.starts, self.now_ms)
            together_until = moment + (max(moment - self.made, 0) // COARSE if len(self.left) > MANY else 0)
            self.now_ms = max(moment, self.now_ms)
            self.happen(together_until)
            self.settle()
        return Played(self.starts, None)

    def _next(self) -> int | None:
        # A timer alone can start nothing for ever: without work that ends the future stands still in the end.
        return min((ms for ms in (self.due_ms, self.scheduler.next_wakeup_ms()) if ms is not None), default=None)

    def _happens(self, event: Event) -> None:
        """Where something follows at once, what that makes possible comes before what happens next."""
        self.handle(event)
        if self.follow():
            self.settle()

    def take(self, decisions: list[Decision]) -> None:
        super().take(decisions)
        for each in decisions:
            if isinstance(each, Allocated):
                self._started(each)

    def _started(self, placed: Allocated) -> None:
        """Note it; where a gang stands whole now, its owner brings the work."""
        app = self.scheduler.cluster.partitions[placed.partition].applications.get(placed.application)
        ask = app.asks.get(placed.key) if app is not None else None
        if app is None or ask is None:
            return
        if not ask.spec.placeholder:
            self._note((placed.partition, app.id, ask.key))
            self.then(partial(self._tell, placed.partition, app.id, ask.key, Outcome.STARTED))
            self._will_end(placed.partition, ask, 0)
        elif (gang := self.gangs.complete(placed.partition, app)) is not None:
            for key in gang.placeholders:
                self._note((placed.partition, app.id, key))
            self.then(partial(self.handle, gang.work()))

    def _note(self, name: Name) -> None:
        self.left.pop(name, None)
        self.starts.setdefault(name, self.now_ms)

    def _will_end(self, partition: str, ask: Ask, elapsed_ms: int) -> None:
        if ask.spec.placeholder:
            return
        rest_ms = max(self.draw(ask, elapsed_ms) - elapsed_ms, 0)
        self.later(self.now_ms + rest_ms, partial(self._ends, Release(ask.app.id, ask.key, Cause.FINISHED, partition)))

    def _ends(self, event: Release) -> None:
        """It ends, and well: those enter that waited for it, and with the last of an application those for that."""
        self._happens(event)
        partition = self.scheduler.cluster.partitions[event.partition]
        app = partition.applications.get(event.application)
        is_last = app is None or not (app.asks or partition.held_asks.has(app.id))
        self._tell(event.partition, event.application if is_last else "", event.key, Outcome.OK)

    def _tell(self, partition: str, application: str, key: str, outcome: Outcome) -> None:
        """Those that wait for an application, and for one ask of it (its first attempt names it)."""
        for awaited in dict.fromkeys((key.partition("#")[0], application)):
            for event in following(self.scheduler.cluster.partitions[partition], awaited, outcome):
                self._happens(event)


def assumptions(scheduler: Scheduler, runtimes: Runtimes, kind: KindOf = kind_of) -> Iterable[str]:
    """What a forecast rests on, in sentences."""
    yield "nothing new arrives, no node comes or goes, and what runs ends by itself and well"
    counts: dict[str, int] = {}
    limited = 0
    for partition in scheduler.cluster.partitions.values():
        for node in partition.nodes.nodes.values():
            for ask in node.allocations:
                level, sample = runtimes.basis(kind(ask))
                known = f"{level}" if sample is not None else "no experience"
                counts[known] = counts.get(known, 0) + 1
                limited += ask.spec.time_limit_ms is not None
    if counts:
        told = ", ".join(f"{level} ({count})" for level, count in sorted(counts.items(), key=lambda c: (-c[1], c[0])))
        yield f"run times of what runs are drawn from {runtimes.ends} ends, by: {told}"
        yield f"{limited} of {sum(counts.values())} running have a time limit, which ends them at the latest"
    if "no experience" in counts:
        yield "without experience or limit half of all work is taken to last less than 10 minutes"


@dataclass(frozen=True, slots=True)
class Shifts:
    """Whose expected start would be another."""

    found: tuple[Shift, ...] = ()
    """The largest first."""
    unseen: int = 0
    """Of so many that wait it is not known: the time was over before their starts were seen, with or without."""


def shifts(
    scheduler: Scheduler,
    events: Sequence[Event],
    runtimes: Runtimes,
    *,
    draws: int = 5,
    seed: int = 0,
    kind: KindOf = kind_of,
    fork: bool | None = None,
    spending: Callable[[], Share] | None = None,
) -> Shifts:
    """Whose start these events would move, by the same futures with and without them; the largest moves first.

    A run time belongs to its work: it is drawn from the work's own name, so that both futures share it. `spending`: the
    time that each of the two forecasts may take, from when it begins. Only futures that both have are compared.
    """
    names = waiting(scheduler)
    pair = []
    for each in ((), events):
        share = spending() if spending is not None else None
        told = forecast(
            scheduler, runtimes, draws=draws, seed=seed, kind=kind, wanted=names, events=each, fork=fork, share=share
        )
        draws = told.draws
        pair.append(told)
    without, changed = (told.first(draws) for told in pair)
    found, unseen = [], 0
    for name in names:
        before, after = without.expected(name), changed.expected(name)
        if _is_unseen(before) or _is_unseen(after):
            unseen += 1
        elif before.median_ms != after.median_ms:
            found.append(Shift(*name, before.median_ms, after.median_ms))
    far = scheduler.cluster.now_ms + 2 * HORIZON_MS
    found.sort(key=lambda shift: (-abs((shift.after_ms or far) - (shift.before_ms or far)), astuple(shift)[:3]))
    return Shifts(tuple(found), unseen)


def _is_unseen(expected: Expected) -> bool:
    """Whether the middle of its futures is beyond what was seen of them (not: beyond the horizon)."""
    return expected.median_ms is None and expected.broken_off > 0
