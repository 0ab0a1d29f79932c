"""Unblock: the smallest changes that start a waiting ask, or have refused work taken in, each tried before it is said.

Decides by trial alone: a change is stated when the scheduler, on a copy on which it was made, starts the ask, and no
longer does when any part of it is one unit less. Quotas that refuse work are widened by just what is missing, until the
events are refused by no quota any more. What cannot be shown within the effort that is allowed is not said. Never
changes the scheduler that it is asked of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import replace

from fairlead.core.books.windows import TIMER as WINDOW_TIMER
from fairlead.core.model.decisions import ApplicationRejected, AskRejected, MoveRejected
from fairlead.core.model.events import Event
from fairlead.core.model.reasons import QuotaExceeded, Reason
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.insight import levers
from fairlead.insight.changes import events_of, renamed, until_ms, way
from fairlead.insight.grounds import grounds, horizon_ms, terms, turns, wait_until
from fairlead.insight.parts import Part, What, clauses
from fairlead.insight.places import places
from fairlead.insight.trial import Name, Start, on_a_copy, start_of
from fairlead.wire.questions import Admitted, Way

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.insight.levers import Lever
    from fairlead.scheduler import Scheduler

TRIALS = 160
FEW = 12
"""So many values are tried one after the other, from the smallest."""


class Exhausted(Exception):
    """All the effort that was allowed is spent."""


@dataclass(slots=True)
class Effort:
    """How much may be tried. With `is_over` the answer depends on the clock behind it; without, on the state alone."""

    trials: int = TRIALS
    is_over: Callable[[], bool] | None = None
    """Asked before each trial: whether there is no more time."""
    spent: int = 0

    def spend(self) -> None:
        """One more trial, if there may be one. Raises `Exhausted`."""
        if self.spent >= self.trials or (self.is_over is not None and self.is_over()):
            raise Exhausted
        self.spent += 1


@dataclass(frozen=True, slots=True)
class Ways:
    """How an ask could start."""

    by_itself: Start | None
    """It starts without any change, as soon as the scheduler runs and whoever is told to stop has stopped."""
    changes: tuple[Way, ...] = ()
    is_complete: bool = True
    """False: the effort was spent before everything had been tried."""
    trials: int = 0
    hidden: int = 0
    """So many more changes are about work that is not the asker's to see."""


def ways(scheduler: Scheduler, name: Name, effort: Effort | None = None, *, fork: bool | None = None) -> Ways:
    """The smallest changes that start a waiting ask, one for each dimension that can help.

    `name` is partition, application and key. Raises KeyError when nothing waits under that name.
    """
    partition = scheduler.cluster.partitions[name[0]]
    ask = partition.applications[name[1]].asks.get(name[2])
    if ask is None and partition.held_asks.get(name[1], name[2]) is not None:
        return _Held(scheduler, name, effort or Effort(), fork).run()
    if ask is None or not ask.pending:
        raise KeyError(name)
    return _Search(scheduler, partition, ask, name, effort or Effort(), fork).run()


class _Trials:
    """What was tried for one ask, and what came of it."""

    def __init__(self, scheduler: Scheduler, name: Name, effort: Effort, fork: bool | None) -> None:
        self.scheduler, self.name = scheduler, name
        self.effort, self.fork = effort, fork
        self.found: list[Way] = []
        self._known: dict[tuple[Part, ...], Start | None] = {}

    def run(self) -> Ways:
        """Everything that can be shown."""
        is_complete = True
        try:
            by_itself = self.works(())
            if by_itself is not None:
                return Ways(by_itself, trials=self.effort.spent)
            for change in self._changes():
                self.found.append(change)
        except Exhausted:
            is_complete = False
        return Ways(None, tuple(self.found), is_complete, self.effort.spent)

    def _changes(self) -> Iterator[Way]:
        raise NotImplementedError

    def works(self, parts: tuple[Part, ...]) -> Start | None:
        """How the ask starts with these parts; None: it does not."""
        if parts not in self._known:
            self.effort.spend()
            events, name = events_of(self.scheduler, self.name, parts), renamed(self.name, parts)
            at_ms = until_ms(parts)
            self._known[parts] = on_a_copy(
                self.scheduler, lambda copy: start_of(copy, events, name, at_ms), fork=self.fork
            )
        return self._known[parts]

    def stated(self, parts: tuple[Part, ...]) -> Way | None:
        """The change, if it holds: all of it starts the ask, and one unit less of any part does not."""
        start = self.works(parts)
        if start is None:
            return None
        for number, part in enumerate(parts):
            if part.is_counted and self.still_works(parts, number, part.less()):
                return None
        return way(parts, start)

    def still_works(self, parts: tuple[Part, ...], number: int, instead: Part) -> bool:
        """Whether it starts with another part in the place of one."""
        return self.works((*parts[:number], instead, *parts[number + 1 :])) is not None

    def in_time(self) -> Iterator[Way]:
        """The first moment at which it starts although nothing happens but what falls due by itself."""
        cluster = self.scheduler.cluster
        now_ms = cluster.now_ms
        timers = [(timer.due_ms, timer.kind) for timer in cluster.timers.pending()]
        # A window that begins sets the timer for its end only then.
        timers += [(due_ms, WINDOW_TIMER) for due_ms in cluster.admission.windows.ends(now_ms)]
        end_ms = horizon_ms(now_ms, timers)
        start = self.works((wait_until(now_ms, end_ms, timers),)) if end_ms is not None else None
        if start is not None:
            change = self.stated((wait_until(now_ms, start.at_ms, timers),))
            if change is not None:
                # The one future of this kind was played from the beginning: this is where it starts in it.
                yield replace(change, smallest=True)


class _Held(_Trials):
    """What is not in line yet: all that is tried is whether time alone helps."""

    def _changes(self) -> Iterator[Way]:
        yield from self.in_time()


class _Search(_Trials):
    """One search under way."""

    def __init__(
        self,
        scheduler: Scheduler,
        partition: Partition,
        ask: Ask,
        name: Name,
        effort: Effort,
        fork: bool | None,
    ) -> None:
        super().__init__(scheduler, name, effort, fork)
        self.partition, self.ask = partition, ask

    def _changes(self) -> Iterator[Way]:
        yield from self._alone()
        if not self.found:
            yield from self._together()

    def _alone(self) -> Iterator[Way]:
        """One dimension each, cheapest first."""
        partition, ask = self.partition, self.ask
        change = self._priority()
        if change is not None:
            yield change
        limits = levers.limits_in_the_way(partition, ask)
        if limits is not None:
            yield from self._first([limits])
        else:
            yield from self._first(levers.room_on_nodes(partition, ask))
            more = levers.more_nodes(partition, ask)
            yield from self._first([more] if more is not None else [])
        around = places(partition, ask)
        for group in (*grounds(partition, ask, around), *terms(partition, ask, around)):
            yield from self._first(group)
        yield from self._first(levers.cancels(partition, ask))
        yield from self._first(levers.smaller_requests(partition, ask))
        yield from self._first(levers.other_queues(partition, ask))
        yield from self.in_time()

    def _together(self) -> Iterator[Way]:
        """Two dimensions that do not help alone: of limits above the nodes, room on them, and priority."""
        partition, ask = self.partition, self.ask
        limits = levers.limits_in_the_way(partition, ask)
        first = levers.first_in_line(partition, ask)
        room = levers.room_on_nodes(partition, ask)
        if limits is not None:
            yield from self._first([limits + each for each in room])
            more = levers.more_nodes(partition, ask)
            yield from self._first([limits + more] if more is not None else [])
            yield from self._first([first + limits] if first is not None else [])
        elif first is not None:
            yield from self._first([first + each for each in room])
        freed = [lever for group in turns(partition, ask) for lever in group]
        if freed:
            also = [limits] if limits is not None else room
            yield from self._first([each + more for each in freed for more in also])

    def _first(self, tried: list[Lever]) -> Iterator[Way]:
        for lever in tried:
            change = self._solve(lever)
            if change is not None:
                yield change
                return

    # -- trials ---------------------------------------------------------------------------------------------------

    def _solve(self, lever: Lever) -> Way | None:
        parts = lever.parts
        if self.works(parts) is None:
            parts = tuple(replace(p, value=_up(p, high, g)) for p, high, g in lever.rows)
            if parts == lever.parts or self.works(parts) is None:
                return None
            for number, (_, _, grain) in enumerate(lever.rows):
                parts = self._lowered(parts, number, grain)
        for number, part in enumerate(parts):
            if part.is_counted and self.still_works(parts, number, part.less()):
                parts = self._lowered(parts, number, 1)
        return self.stated(self._needed(parts))

    def _needed(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The parts without those that are not counted and that it starts without."""
        for part in parts:
            rest = tuple(each for each in parts if each is not part)
            if rest and not part.is_counted and self.works(rest) is not None:
                return self._needed(rest)
        return parts

    def _lowered(self, parts: tuple[Part, ...], number: int, grain: int) -> tuple[Part, ...]:
        """The parts with one of them at the least value that works, found by halving, in steps of `grain`.

        Between two neighbours the lower fails and the upper works; there may be a smaller one that works further down.
        """
        part = parts[number]
        low, high = 0, abs(part.value - part.now) // grain
        at = part.value
        while high - low > 1:
            middle = (low + high) // 2
            tried = replace(part, value=at - part.step * (high - middle) * grain)
            if self.still_works(parts, number, tried):
                part, at, high = tried, tried.value, middle
            else:
                low = middle
        return (*parts[:number], part, *parts[number + 1 :])

    # -- priority -------------------------------------------------------------------------------------------------

    def _priority(self) -> Way | None:
        values = levers.priorities_above(self.partition, self.ask)
        parts = [(Part(What.PRIORITY, self.ask.key, self.ask.priority, value),) for value in values]
        if len(parts) <= FEW:
            # Between two of these values nothing changes sides, so the first that works is the smallest of all.
            for each in parts:
                if self.works(each) is not None:
                    change = self.stated(each)
                    return replace(change, smallest=True) if change is not None else None
            return None
        if self.works(parts[-1]) is None:
            return None
        low, high = -1, len(parts) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self.works(parts[middle]) is None:
                low = middle
            else:
                high = middle
        found: tuple[Part, ...] = parts[high]
        if self.still_works(found, 0, found[0].less()) and found[0].less().value > self.ask.priority:
            found = self._lowered(found, 0, 1)
        return self.stated(found)


def _up(part: Part, high: int, grain: int) -> int:
    """The least value from `high` on that is a whole number of grains away from the part's own."""
    if part.step < 0:
        return part.value
    return part.value + -(-max(high - part.value, 0) // grain) * grain


def unblock(scheduler: Scheduler, application: str, key: str, partition: str = "default") -> list[dict[str, Any]]:
    """The smallest changes that start a waiting ask, as plain values; empty when nothing is known to help."""
    name = (partition, application, key)
    book = scheduler.cluster.partitions.get(partition)
    app = book.applications.get(application) if book is not None else None
    ask = app.asks.get(key) if app is not None else None
    if ask is None or not ask.pending:
        return []
    return [to_builtins(change) for change in ways(scheduler, name).changes]


# -- quotas that refuse -------------------------------------------------------------------------------------------


QUOTA_TRIALS = 50
REFUSALS = (ApplicationRejected, AskRejected, MoveRejected)


def admitting(scheduler: Scheduler, events: Sequence[Event], *, fork: bool | None = None) -> Admitted | None:
    """The least widening of quotas with which these events are taken in; None: they are, or no quota would help."""
    parts: tuple[Part, ...] = ()
    for _ in range(QUOTA_TRIALS):
        refused = _refusals(scheduler, events, parts, fork)
        if not refused:
            break
        parts = _widened(parts, refused)
        if not parts:
            return None
    else:
        return None
    each_less = [(*parts[:at], part.less(), *parts[at + 1 :]) for at, part in enumerate(parts)]
    if not parts or any(not _refusals(scheduler, events, less, fork) for less in each_less):
        return None
    return Admitted(sentence="taken in if " + " and ".join(clauses(parts)), parts=[part.shown() for part in parts])


def _refusals(
    scheduler: Scheduler, events: Sequence[Event], parts: tuple[Part, ...], fork: bool | None
) -> list[Reason]:
    """Why parts of the events are refused with these quotas."""
    wider = events_of(scheduler, (DEFAULT_PARTITION, "", ""), parts) if parts else []

    def tried(copy: Scheduler) -> list[Reason]:
        now_ms = copy.cluster.now_ms
        for event in wider:
            copy.handle(event, now_ms)
        decided = [each for event in events for each in copy.handle(event, now_ms)]
        return [each.reason for each in decided if isinstance(each, REFUSALS)]

    return on_a_copy(scheduler, tried, fork=fork)


def _widened(parts: tuple[Part, ...], refused: Sequence[Reason]) -> tuple[Part, ...]:
    """The parts with what the first refusal lacks; nothing when something else than a quota is in the way."""
    if not all(isinstance(reason, QuotaExceeded) for reason in refused):
        return ()
    first = refused[0]
    assert isinstance(first, QuotaExceeded)
    found = {(part.text, part.resource): part for part in parts}
    for name, amount in first.needed.items():
        known = found.get((first.quota, name))
        value = first.used.get(name, 0) + amount
        if known is None:
            found[first.quota, name] = Part(What.QUOTA, first.queue, first.max[name], value, name, text=first.quota)
        else:
            found[first.quota, name] = replace(known, value=value)
    return tuple(found.values())
