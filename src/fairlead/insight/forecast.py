"""Forecast: when each waiting ask may start, by letting the future run a number of times on copies.

Decides how one possible future is played (everything that runs ends after a drawn time, everything else is the
scheduler's doing) and how many of them make an interval. Never a second model of scheduling, never a clock or chance of
its own: the same state and seed give the same forecast. What nobody can know is not in it: work that has yet to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from random import Random  # noqa: TID251 - drawn from a seed that the caller gives
from typing import TYPE_CHECKING, Any

from fairlead.core.decisions import Allocated, Decision
from fairlead.core.events import Cause, Event, Release
from fairlead.insight.gangs import Gangs
from fairlead.insight.runtimes import Kind, Runtimes
from fairlead.insight.trial import Name, confirmations, leaving, on_a_copy

if TYPE_CHECKING:
    from fairlead.core.applications import Ask
    from fairlead.scheduler import Scheduler

DRAWS = 20
HORIZON_MS = 30 * 24 * 3_600_000
EVENTS_MAX = 200_000
"""Ends of work and timers that one future is played through at most."""

MANY = 200
COARSE = 64
"""With more than `MANY` that wait, ends that are this part of the time from now apart count as one: 1.6 % of a wait."""

KindOf = Callable[["Ask"], Kind]


def kind_of(ask: Ask) -> Kind:
    """User, name (a tag `name` of the ask or its application) and queue."""
    name = ask.spec.tags.get("name", "") or ask.app.spec.tags.get("name", "")
    return Kind(ask.app.user, name, ask.app.queue.path)


@dataclass(frozen=True, slots=True)
class Expected:
    """When one ask may start. Times in milliseconds; None: not within the horizon."""

    name: Name
    median_ms: int | None
    earliest_ms: int | None
    latest_ms: int | None
    coverage: float
    """The part of futures in which it starts between `earliest_ms` and `latest_ms`, as it is meant."""
    ahead: int
    """How many of those that wait start before it, by the middle of their futures."""
    never: float
    """The part of the futures in which it does not start within the horizon."""

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        partition, application, key = self.name
        plain = asdict(self)
        del plain["name"]
        return {"partition": partition, "application": application, "key": key} | plain


@dataclass(frozen=True, slots=True)
class Forecast:
    """The starts of everything that waits, and what they rest on."""

    made_ms: int
    draws: int
    starts: Mapping[Name, tuple[int | None, ...]]
    """Of each waiting ask its start in each future."""
    assumptions: tuple[str, ...]

    def expected(self, name: Name, coverage: float = 0.8) -> Expected:
        """The interval of one ask, as these futures have it (`Scorecard.calibrated` widens it by experience).

        Raises KeyError for an ask that did not wait when the forecast was made.
        """
        drawn = sorted(self.starts[name], key=lambda ms: HORIZON_MS * 2 if ms is None else ms - self.made_ms)
        tail = (1 - coverage) / 2
        low, middle, high = (_quantile(drawn, part) for part in (tail, 0.5, 1 - tail))
        ahead = 0
        if middle is not None:
            mine = _median(self.starts[name])
            ahead = sum(_median(starts) < mine for other, starts in self.starts.items() if other != name)
        never = sum(ms is None for ms in drawn) / len(drawn)
        return Expected(name, middle, low, high, coverage, ahead, never)


def _quantile(ordered: Sequence[int | None], part: float) -> int | None:
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def _median(starts: Sequence[int | None]) -> int:
    ordered = sorted(2**62 if ms is None else ms for ms in starts)
    return ordered[len(ordered) // 2]


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
) -> Forecast:
    """The starts of everything that waits, in `draws` futures; each ends when all of `wanted` (default: all) started.

    `events` happen first, on the copies alone.
    """
    names = waiting(scheduler)
    until = names if wanted is None else tuple(wanted)
    futures = []
    for number in range(draws):
        draw = _drawn(runtimes, kind, f"{seed}:{number}")
        futures.append(
            on_a_copy(scheduler, lambda copy, draw=draw: play_on(copy, draw, until, horizon_ms, events), fork=fork)  # type: ignore[misc]
        )
    starts = {name: tuple(future.get(name) for future in futures) for name in names}
    return Forecast(scheduler.cluster.now_ms, draws, starts, tuple(assumptions(scheduler, runtimes, kind)))


def _drawn(runtimes: Runtimes, kind: KindOf, future: str) -> Callable[[Ask, int], int]:
    """A run time for each ask, given how long it has run already; its own in each future, whatever else happens."""

    def draw(ask: Ask, elapsed_ms: int) -> int:
        chance = Random(f"{future}:{ask.app.id}/{ask.key}")
        return runtimes.draw(kind(ask), chance, elapsed_ms, ask.spec.time_limit_ms)

    return draw


def waiting(scheduler: Scheduler) -> tuple[Name, ...]:
    """Everything that waits; of a gang whose real work has yet to come, its placeholders."""
    return tuple(
        (name, app.id, ask.key)
        for name, partition in scheduler.cluster.partitions.items()
        for app in partition.applications.values()
        if app.pending_count
        for ask in app.asks.values()
        if ask.pending
    )


def play_on(
    scheduler: Scheduler,
    draw: Callable[[Ask, int], int],
    wanted: Iterable[Name],
    horizon_ms: int = HORIZON_MS,
    events: Sequence[Event] = (),
) -> dict[Name, int]:
    """Let one future happen to this very scheduler until all of `wanted` started; when each ask starts.

    Call it on a copy only.
    """
    return _Future(scheduler, draw, wanted, horizon_ms).run(events)


class _Future:
    """One future being played."""

    def __init__(
        self, scheduler: Scheduler, draw: Callable[[Ask, int], int], wanted: Iterable[Name], horizon_ms: int
    ) -> None:
        self.scheduler, self.draw = scheduler, draw
        self.gangs = Gangs(scheduler)
        self.left = dict.fromkeys(wanted)
        self.starts: dict[Name, int] = {}
        self.ends: list[tuple[int, int, Release]] = []
        self.now = self.made = scheduler.cluster.now_ms
        self.until = self.now + horizon_ms
        self._numbered = 0

    def run(self, events: Sequence[Event]) -> dict[Name, int]:
        for stopped in leaving(self.scheduler):
            self._handle(stopped)
        for name, partition in self.scheduler.cluster.partitions.items():
            for node in partition.nodes.nodes.values():
                for ask in node.allocations:
                    self._will_end(name, ask, self.now - (self.now if ask.allocated_ms is None else ask.allocated_ms))
        for event in events:
            self._handle(event)
        for standing in self.gangs.standing():
            self._handle(standing.work())
        self._schedule()
        for _ in range(EVENTS_MAX):
            moment = self._next()
            if not self.left or moment is None or moment > self.until:
                break
            together_until = moment + (max(moment - self.made, 0) // COARSE if len(self.left) > MANY else 0)
            self.now = max(moment, self.now)
            while self.ends and self.ends[0][0] <= together_until:
                at, _, end = heappop(self.ends)
                self.now = max(at, self.now)
                self._handle(end)
            self._schedule()
        return self.starts

    def _next(self) -> int | None:
        due = self.scheduler.next_wakeup_ms()
        moments = [self.ends[0][0]] if self.ends else []
        # A timer alone can start nothing for ever: without work that ends the future stands still in the end.
        return min([*moments, *([due] if due is not None else [])], default=None)

    def _schedule(self) -> None:
        self._take(self.scheduler.schedule(self.now))

    def _handle(self, event: Event) -> None:
        self._take(self.scheduler.handle(event, self.now))

    def _take(self, decisions: list[Decision]) -> None:
        follow: list[Event] = [*confirmations(self.scheduler, decisions)]
        for each in decisions:
            if isinstance(each, Allocated):
                follow += self._started(each)
        for event in follow:
            self._handle(event)
        if follow:
            self._schedule()

    def _started(self, placed: Allocated) -> list[Event]:
        """Note it; what its owner does then."""
        for name, partition in self.scheduler.cluster.partitions.items():
            app = partition.applications.get(placed.application)
            ask = app.asks.get(placed.key) if app is not None else None
            if app is not None and ask is not None and placed.node in partition.nodes.nodes:
                if not ask.spec.placeholder:
                    self._note((name, app.id, ask.key))
                    self._will_end(name, ask, 0)
                elif (gang := self.gangs.complete(name, app)) is not None:
                    for key in gang.placeholders:
                        self._note((name, app.id, key))
                    return [gang.work()]
                return []
        return []

    def _note(self, name: Name) -> None:
        self.left.pop(name, None)
        self.starts.setdefault(name, self.now)

    def _will_end(self, partition: str, ask: Ask, elapsed_ms: int) -> None:
        if ask.spec.placeholder:
            return
        total = self.draw(ask, elapsed_ms)
        self._numbered += 1
        event = Release(ask.app.id, ask.key, Cause.FINISHED, partition)
        heappush(self.ends, (self.now + max(total - elapsed_ms, 0), self._numbered, event))


def assumptions(scheduler: Scheduler, runtimes: Runtimes, kind: KindOf = kind_of) -> Iterable[str]:
    """What a forecast rests on, in sentences."""
    yield "nothing new arrives, no node comes or goes, and what runs ends by itself"
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
class Shift:
    """An expected start (the middle of the futures) that would be another; None: not within the horizon."""

    name: Name
    before_ms: int | None
    after_ms: int | None

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        partition, application, key = self.name
        return {
            "partition": partition,
            "application": application,
            "key": key,
            "before_ms": self.before_ms,
            "after_ms": self.after_ms,
        }


def shifts(
    scheduler: Scheduler,
    events: Sequence[Event],
    runtimes: Runtimes,
    *,
    draws: int = 5,
    seed: int = 0,
    kind: KindOf = kind_of,
    fork: bool | None = None,
) -> tuple[Shift, ...]:
    """Whose start these events would move, by the same futures with and without them; the largest moves first.

    A run time belongs to its work: it is drawn from the work's own name, so that both futures share it.
    """
    names = waiting(scheduler)
    pair = [
        forecast(scheduler, runtimes, draws=draws, seed=seed, kind=kind, wanted=names, events=each, fork=fork)
        for each in ((), events)
    ]
    found = []
    for name in names:
        before, after = (told.expected(name).median_ms for told in pair)
        if before != after:
            found.append(Shift(name, before, after))
    far = scheduler.cluster.now_ms + 2 * HORIZON_MS
    found.sort(key=lambda shift: (-abs((shift.after_ms or far) - (shift.before_ms or far)), shift.name))
    return tuple(found)
