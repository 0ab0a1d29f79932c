"""Forecast: when each waiting ask may start, by letting the future run a number of times on copies.

Decides how many futures make an interval and what is drawn for them: run times of what is alike, and work to come that
is like what came. Never a second model of scheduling, never a clock or chance of its own: the same state and seed give
the same forecast. Where time is short futures are broken off, and what was not seen in them is not made up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from random import Random  # noqa: TID251 - drawn from a seed that the caller gives
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import astuple
from msgspec.structs import replace as msgspec_replace

from fairlead.core.model.conditions import NeverRuns, OnHold
from fairlead.core.model.events import Event, Release
from fairlead.insight.arrivals import LEAST_HOURS
from fairlead.insight.futures import HORIZON_MS, NEVER, IsOver, Played, play_on
from fairlead.insight.runtimes import NO_EXPERIENCE, Kind, Runtimes
from fairlead.insight.trial import Name, on_a_copy
from fairlead.wire.questions import Interval, Shift

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.held_asks import HeldAsk
    from fairlead.core.books.partition import Partition
    from fairlead.insight.arrivals import Arrivals
    from fairlead.scheduler import Scheduler

DRAWS = 16
"""Futures that are played for an answer, if nobody says how many."""
HALF = 0.5
FAR_MS = 2**62
"""Later than anything that is seen."""
Share = Callable[[int, int], IsOver | None]
"""Of the time to spend on a forecast what this future has, of so many; None: nothing is left."""

KindOf = Callable[["Ask"], Kind]


def kind_of(ask: Ask) -> Kind:
    """User, name (a tag `name` of the ask or its application) and queue."""
    name = ask.spec.tags.get("name", "") or ask.app.spec.tags.get("name", "")
    return Kind(ask.app.user, name, ask.app.queue.path)


class About(Struct, frozen=True):
    """Of a waiting ask what tells whose waits are like its own."""

    queue: str = ""
    size: str = ""
    """`small`, `medium` or `large`: up to an eighth of the largest node, up to half of it, more."""
    priority: int = 0
    waited_ms: int = 0


class Expected(Interval, frozen=True, kw_only=True):
    """When one ask may start, by its futures."""

    name: Name
    about: About = About()
    declared_ms: int | None = None
    """When it starts if everything takes as long as it declares, and nothing comes."""
    begin_ms: int = 0
    """It is not in line before, and starts at no earlier time whatever was wrong with other forecasts."""


def unknown(told: Forecast, name: Name) -> Expected:
    """What can be said where nothing has ended yet: no middle, and when it starts if everything takes its time limit.

    That is no bound: what ends earlier may let others go first.
    """
    limits_ms = told.declared.get(name) if told.endless <= {name} else None
    plain = told.expected(name)
    soonest_ms = max(told.made_ms, plain.begin_ms)
    return msgspec_replace(
        plain, median_ms=None, earliest_ms=soonest_ms, latest_ms=limits_ms, known=False, broken_off=0, never=0.0
    )


@dataclass(frozen=True)
class Forecast:
    """The starts of everything that waits, and what they rest on."""

    made_ms: int
    draws: int
    starts: Mapping[Name, tuple[int | None, ...]]
    """Of each waiting ask its start in each future."""
    assumptions: tuple[str, ...]
    ends: int = 0
    """How many ends of work it rests on; 0: nothing is known of run times."""
    about: Mapping[Name, About] = field(default_factory=dict)
    declared: Mapping[Name, int] = field(default_factory=dict)
    """Of each ask its start in the one future in which everything takes as long as it declares."""
    endless: frozenset[Name] = frozenset()
    """What waits, runs or will be in line, and declares no time limit: what comes behind it has no bound."""
    begins: Mapping[Name, int] = field(default_factory=dict)
    """Of what is held until then, or longer: from when on it may be in line."""
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
        plain = Expected(middle, low, high, coverage, ahead, never, broken_off, name=name)
        about, declared_ms, begin_ms = self.about.get(name), self.declared.get(name), self.begins.get(name, 0)
        return msgspec_replace(plain, about=about or About(), declared_ms=declared_ms, begin_ms=begin_ms)

    @cached_property
    def _middles(self) -> list[int]:
        """The middle of each ask's futures, in order."""
        middles = (_quantile(_ordered(starts), 0.5) for starts in self.starts.values())
        return sorted(FAR_MS if middle is None else middle for middle in middles)


def _ordered(starts: Iterable[int | None]) -> list[int | None]:
    return sorted(starts, key=lambda ms: FAR_MS if ms is None else ms)


def _quantile(ordered: Sequence[int | None], part: float) -> int | None:
    """A further one of `n` alike would come before the i-th of them with the chance i / (n + 1).

    Between two of them it is in proportion; beside one that was not seen the nearer counts. So few futures lean to
    neither side, and reach as far as they have to.
    """
    place = min(max(part * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    first = int(place)
    beyond = place - first
    low, high = ordered[first], ordered[min(first + 1, len(ordered) - 1)]
    if low is None or high is None:
        return low if beyond < HALF else high
    return low + round(beyond * (high - low))


def forecast(  # noqa: PLR0913 - the state, what is known, and how much to spend
    scheduler: Scheduler,
    runtimes: Runtimes,
    *,
    arrivals: Arrivals | None = None,
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

    `arrivals`: what came so far; work like it comes in the futures. `events` happen first, on the copies alone; what
    they submit may be `wanted` too.
    `share`: the time to spend; a future is broken off when its share is over, and where nothing is left there are fewer
    futures, but one.
    """
    names = waiting(scheduler)
    until = names if wanted is None else tuple(wanted)
    names = tuple(dict.fromkeys((*names, *until)))
    now_ms = scheduler.cluster.now_ms
    play = partial(play_on, wanted=until, horizon_ms=horizon_ms, events=events, not_well=runtimes.not_well)
    futures: list[Played] = []
    for number in range(draws):
        is_over = share(number, draws) if share is not None else NEVER
        if is_over is None and futures:
            break
        future = f"{seed}:{number}"
        comes = arrivals.future(now_ms, Random(f"{future}:comes")) if arrivals is not None else None
        draw = _drawn(runtimes, kind, future)
        course = partial(play, draw=draw, is_over=is_over or (lambda: True), comes=comes)
        futures.append(on_a_copy(scheduler, course, fork=fork))
    is_over = share(draws - 1, draws) if share is not None else NEVER
    declared: dict[Name, int] = {}
    if is_over is not None:
        draw = _declared(runtimes, kind)
        declared = on_a_copy(scheduler, partial(play, draw=draw, is_over=is_over), fork=fork).starts
    return Forecast(
        now_ms,
        len(futures),
        {name: tuple(future.starts.get(name) for future in futures) for name in names},
        tuple(assumptions(scheduler, runtimes, kind, arrivals)),
        runtimes.ends,
        on_a_copy(scheduler, partial(_abouts, names=until, events=events), fork=fork)
        if events
        else _abouts(scheduler, until),
        declared,
        _endless(scheduler),
        {name: held.conditions.begin_ms for name, held in _to_come(scheduler)},
        tuple(each.seen_ms for each in futures),
    )


def _abouts(scheduler: Scheduler, names: Iterable[Name], events: Sequence[Event] = ()) -> dict[Name, About]:
    """Of each what tells whose waits are like its own, once the events have happened to this very scheduler."""
    for event in events:
        scheduler.handle(event, scheduler.cluster.now_ms)
    return {name: about(scheduler, name) for name in names}


def _drawn(runtimes: Runtimes, kind: KindOf, future: str) -> Callable[[Ask, int], int]:
    """A run time for each ask, given how long it has run already; its own in each future, whatever else happens."""

    def draw(ask: Ask, elapsed_ms: int) -> int:
        chance = Random(f"{future}:{ask.app.id}/{ask.key}")
        return runtimes.draw(kind(ask).of(ask.spec), chance, elapsed_ms, ask.spec.time_limit_ms, future)

    return draw


def _declared(runtimes: Runtimes, kind: KindOf) -> Callable[[Ask, int], int]:
    """The time limit of each ask; where it has none, one of the times that work like it took."""

    def draw(ask: Ask, elapsed_ms: int) -> int:
        limit_ms = ask.spec.time_limit_ms
        if limit_ms is not None:
            return max(limit_ms, elapsed_ms + 1)
        return runtimes.draw(kind(ask).of(ask.spec), Random(f"{ask.app.id}/{ask.key}"), elapsed_ms)

    return draw


def _endless(scheduler: Scheduler) -> frozenset[Name]:
    there = (
        ((name, app.id, key), ask.spec)
        for name, partition in scheduler.cluster.partitions.items()
        for app in partition.applications.values()
        for key, ask in app.asks.items()
    )
    to_come = ((name, held.spec) for name, held in _to_come(scheduler))
    return frozenset(name for name, spec in (*there, *to_come) if spec.time_limit_ms is None)


SIZES = ((0.125, "small"), (0.5, "medium"))


def about(scheduler: Scheduler, name: Name) -> About:
    """What is said of a waiting ask; nothing of one that is not in line."""
    partition = scheduler.cluster.partitions.get(name[0])
    app = partition.applications.get(name[1]) if partition is not None else None
    ask = app.asks.get(name[2]) if app is not None else None
    if partition is None or ask is None:
        return About()
    return About(ask.app.queue.path, _size(partition, ask), ask.priority, partition.now_ms - ask.created_ms)


def _size(partition: Partition, ask: Ask) -> str:
    nodes = partition.nodes.nodes.values()
    largest = {name: max((node.total.get(name, 0) for node in nodes), default=0) for name, _ in ask.items}
    part = max((amount / largest[name] for name, amount in ask.items if largest[name]), default=0.0)
    return next((word for most, word in SIZES if part <= most), "large")


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
    return (*in_line, *(name for name, _ in _to_come(scheduler)))


def _to_come(scheduler: Scheduler) -> Iterator[tuple[Name, HeldAsk]]:
    """What is not in line and will be by itself."""
    for name, partition in scheduler.cluster.partitions.items():
        for application, held in partition.held_asks:
            reason = held.reason(partition.applications[application], partition.now_ms)
            if not isinstance(reason, OnHold | NeverRuns):
                yield (name, application, held.spec.key), held


def assumptions(
    scheduler: Scheduler, runtimes: Runtimes, kind: KindOf = kind_of, arrivals: Arrivals | None = None
) -> Iterable[str]:
    """What a forecast rests on, in sentences."""
    hours = arrivals.hours(scheduler.cluster.now_ms) if arrivals is not None else 0
    if arrivals is not None and hours >= LEAST_HOURS:
        came = "1 arrival" if len(arrivals) == 1 else f"{len(arrivals)} arrivals"
        yield f"work comes as in the last {hours} hours, by hour and day ({came})"
    else:
        yield "nothing new arrives"
    yield "no node comes or goes, and what runs ends by itself and well; what is stopped for others begins anew"
    counts: dict[str, int] = {}
    limited = 0
    for partition in scheduler.cluster.partitions.values():
        for node in partition.nodes.nodes.values():
            for ask in node.allocations:
                known = runtimes.basis(kind(ask).of(ask.spec))
                counts[known] = counts.get(known, 0) + 1
                limited += ask.spec.time_limit_ms is not None
    if counts:
        told = ", ".join(f"{level} ({count})" for level, count in sorted(counts.items(), key=lambda c: (-c[1], c[0])))
        ends = "1 end" if runtimes.ends == 1 else f"{runtimes.ends} ends"
        yield f"run times of what runs are drawn from {ends}, mostly by: {told}"
        have, them = ("has", "it") if limited == 1 else ("have", "them")
        yield f"{limited} of {sum(counts.values())} running {have} a time limit, which ends {them} at the latest"
    if NO_EXPERIENCE in counts:
        yield "without experience or limit half of all work is taken to last less than 10 minutes"
    asks = (
        ask
        for part in scheduler.cluster.partitions.values()
        for app in part.applications.values()
        for ask in app.asks.values()
    )
    if any(ask.pending and ask.spec.where.devices for ask in asks):
        yield "devices stay with the claims that have them: what waits for one that is taken starts in no future"


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
    gone = {(each.partition, each.application, each.key) for each in events if isinstance(each, Release)}
    # What is withdrawn has no start that could move.
    names = [name for name in waiting(scheduler) if not gone & {name, (*name[:2], "")}]
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
