"""Search: changes that start one waiting ask, each tried before it is said.

Decides by trial alone: a change is stated when the scheduler, on a copy on which it was made, starts the ask, and no
longer does when any part of it is one unit less or left out. A change of the queue file that the checks of queue files
refuse is none. Where no single change helps that the asker can make, several are made together and then left out one
by one. What cannot be shown within the effort that is allowed is not said. Never changes the scheduler that it is
asked of.
Invariant: `is_complete` is only true when everything that the levers offer was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from itertools import combinations as pairs_of
from typing import TYPE_CHECKING

from msgspec import structs

from fairlead.core.books.windows import TIMER as WINDOW_TIMER
from fairlead.insight import combinations, levers
from fairlead.insight.advice import By, by, price
from fairlead.insight.changes import current_spec, edited, events_of, renamed, until_ms
from fairlead.insight.elsewhere import elsewhere
from fairlead.insight.grounds import grounds, horizon_ms, terms, wait_until
from fairlead.insight.parts import IN_THE_FILE, Part, What, acts, clauses
from fairlead.insight.places import places
from fairlead.insight.queue_file import difference, is_refused
from fairlead.insight.trial import Name, Start, on_a_copy, start_of
from fairlead.wire.verdicts import Named, Way

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.insight.advice import Asker
    from fairlead.insight.levers import Lever
    from fairlead.scheduler import Scheduler

TRIALS = 400
FEW = 12
"""So many values are tried one after the other, from the smallest."""
OF_A_KIND = 24
"""So many levers of one kind are tried, the likeliest first."""
_BETWEEN = IN_THE_FILE | {What.NODES}
"""Of these more is not always better."""
TWO_OF = 20
"""Of so many levers any two are tried together, where nothing else helps."""


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


class Trials:
    """What was tried for one ask, and what came of it."""

    def __init__(self, scheduler: Scheduler, name: Name, effort: Effort, fork: bool | None) -> None:
        self.scheduler, self.name = scheduler, name
        self.effort, self.fork = effort, fork
        self.found: list[Way] = []
        self.is_complete = True
        self._known: dict[tuple[Part, ...], Start | None] = {}

    def run(self) -> Start | None:
        """Find everything that can be shown, unless it starts by itself: then that."""
        try:
            by_itself = self.works(())
            if by_itself is not None:
                return by_itself
            for change in self._changes():
                if all(change.sentence != known.sentence for known in self.found):
                    self.found.append(change)
        except Exhausted:
            self.is_complete = False
        return None

    def _changes(self) -> Iterator[Way]:
        raise NotImplementedError

    def works(self, parts: tuple[Part, ...]) -> Start | None:
        """How the ask starts with these parts; None: it does not, or they are no valid change."""
        if parts not in self._known:
            self._known[parts] = self._tried(parts) if self._is_valid(parts) else None
        return self._known[parts]

    def _tried(self, parts: tuple[Part, ...]) -> Start | None:
        self.effort.spend()
        events, name = events_of(self.scheduler, self.name, parts), renamed(self.name, parts)
        at_ms = until_ms(parts)
        start = on_a_copy(self.scheduler, lambda copy: start_of(copy, events, name, at_ms), fork=self.fork)
        if start is None or sum(part.what is What.CANCEL for part in parts) < 2:
            return start
        # Nobody can end several at once: what is free first may go to others.
        return on_a_copy(
            self.scheduler, lambda copy: start_of(copy, events, name, at_ms, one_by_one=True), fork=self.fork
        )

    def _is_valid(self, parts: tuple[Part, ...]) -> bool:
        """Whether a queue file that is part of it would be taken."""
        if not any(part.what in IN_THE_FILE for part in parts):
            return True
        now = current_spec(self.scheduler)
        return not is_refused(now, edited(now, self.name[0], parts))

    def stated(self, parts: tuple[Part, ...]) -> Way | None:
        """The change, if it holds: all of it starts the ask, and one unit less of any part does not."""
        start = self.works(parts)
        if start is None:
            return None
        for number, part in enumerate(parts):
            if part.is_counted and self.still_works(parts, number, part.less()):
                return None
        return self.way(parts, start)

    def way(self, parts: tuple[Part, ...], start: Start) -> Way:
        """The change as it is answered."""
        text = "runs if " + " and ".join(clauses(parts))
        if start.evicted:
            named = ", ".join(key for _, _, key in start.evicted[:3])
            more = f" and {len(start.evicted) - 3} more" if len(start.evicted) > 3 else ""
            text += f"; that would stop {named}{more}"
        if start.violates:
            text += f", against the disruption budget {' and '.join(start.violates)}"
        now = current_spec(self.scheduler)
        partition = self.name[0]
        return Way(
            dimension="+".join(dict.fromkeys(part.what for part in parts)),
            sentence=text,
            action=" and ".join(self.acts(parts)),
            parts=[part.shown() for part in parts],
            node=start.node,
            evicts=[Named(*name) for name in start.evicted],
            violates=list(start.violates),
            smallest=False,
            by=self.by(parts),
            price=price(parts),
            stops=len(start.evicted) + sum(self._ends_work(part) for part in parts),
            difference=difference(now, edited(now, partition, parts), partition, parts),
        )

    def by(self, parts: tuple[Part, ...]) -> By:
        """Whose it is; what is not in line needs nobody."""
        del parts
        return By.ASKER

    def acts(self, parts: tuple[Part, ...]) -> list[str]:
        """What is to be done."""
        return acts(parts)

    def _ends_work(self, part: Part) -> bool:
        if part.what is not What.CANCEL:
            return False
        application, _, key = part.subject.rpartition("/")
        app = self.scheduler.cluster.partitions[self.name[0]].applications.get(application)
        ask = app.asks.get(key) if app is not None else None
        return ask is not None and ask.node is not None

    def still_works(self, parts: tuple[Part, ...], number: int, instead: Part) -> bool:
        """Whether it starts with another part in the place of one."""
        return self.works((*parts[:number], instead, *parts[number + 1 :])) is not None

    def in_time(self) -> Iterator[Way]:
        """The first moment at which it starts although nothing happens but what falls due by itself."""
        cluster = self.scheduler.cluster
        now_ms = cluster.now_ms
        timers = [(timer.due_ms, timer.kind) for timer in cluster.timers.pending()]
        # A window that begins sets the timer for its end only then.
        timers += [(due_ms, WINDOW_TIMER) for _, due_ms in cluster.admission.windows.times(now_ms)]
        end_ms = horizon_ms(now_ms, timers)
        start = self.works((wait_until(now_ms, end_ms, timers),)) if end_ms is not None else None
        if start is not None:
            change = self.stated((wait_until(now_ms, start.at_ms, timers),))
            if change is not None:
                # The one future of this kind was played from the beginning: this is where it starts in it.
                yield structs.replace(change, smallest=True)

    # -- levers --------------------------------------------------------------------------------------------------------

    def each(self, groups: Iterable[Iterable[Lever]]) -> Iterator[Way]:
        """Of each group the first lever that helps, as the least that does."""
        for group in groups:
            change = self._first(group)
            if change is not None:
                yield change

    def _first(self, group: Iterable[Lever]) -> Way | None:
        """Of levers of one kind the first that helps."""
        tried = iter(group)
        for lever in islice(tried, OF_A_KIND):
            change = self._solve(lever)
            if change is not None:
                return change
        if next(tried, None) is not None:
            self.is_complete = False
        return None

    def _solve(self, lever: Lever) -> Way | None:
        parts, grains = lever.parts, {_about(part): grain for part, _, grain in lever.rows}
        if self.works(parts) is None:
            parts = tuple(replace_value(p, high, grain) for p, high, grain in lever.rows)
            if parts == lever.parts:
                return None
            if self.works(parts) is None and not (parts := self._between(lever)):
                return None
            parts = self._needed(parts)
            for number, part in enumerate(parts):
                parts = self._lowered(parts, number, grains[_about(part)])
        parts = self._needed(parts)
        for number, part in enumerate(parts):
            if part.is_counted and self.still_works(parts, number, part.less()):
                parts = self._lowered(parts, number, 1)
        # What time alone does `in_time` says, with the reason for it.
        is_more = any(part.what is not What.TIME for part in parts)
        return self.stated(parts) if is_more else None

    def _between(self, lever: Lever) -> tuple[Part, ...]:
        """A bound of the queue file, or a number of nodes, between the least and the widest, where neither helps: with
        the widest others that wait may take what it needs. Nothing: none was found among the first few.
        """
        (part, high, grain), *others = lever.rows
        if others or part.what not in _BETWEEN or not part.is_counted:
            return ()
        for value in islice(range(part.value + grain, high, grain), FEW):
            parts = (structs.replace(part, value=value),)
            if self.works(parts) is not None:
                return parts
        return ()

    def _needed(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The parts without those that it starts without."""
        for part in reversed(parts):
            rest = tuple(each for each in parts if each is not part)
            if rest and self.works(rest) is not None:
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
            tried = structs.replace(part, value=at - part.step * (high - middle) * grain)
            if self.still_works(parts, number, tried):
                part, at, high = tried, tried.value, middle
            else:
                low = middle
        return (*parts[:number], part, *parts[number + 1 :])


class Search(Trials):
    """One search under way."""

    def __init__(
        self,
        scheduler: Scheduler,
        partition: Partition,
        ask: Ask,
        name: Name,
        asker: Asker,
        effort: Effort,
        fork: bool | None,
    ) -> None:
        super().__init__(scheduler, name, effort, fork)
        self.partition, self.ask, self.asker = partition, ask, asker

    def by(self, parts: tuple[Part, ...]) -> By:
        """Whose it is."""
        return by(parts, self.asker, self.partition, self.ask)

    def acts(self, parts: tuple[Part, ...]) -> list[str]:
        """What is to be done, as it is done where this is asked."""
        return acts(parts, of_pods=self.asker.has_pods)

    def _changes(self) -> Iterator[Way]:
        yield from self._alone()
        if not self.found:
            yield from self.each(combinations.pairs(self.partition, self.ask))
        if not self.found:
            yield from self.each(combinations.everything(self.partition, self.ask))
        if not self.found:
            yield from self._two()
        if all(way.by != By.ASKER for way in self.found):
            yield from self.each(combinations.of_the_asker(self.partition, self.ask, self.asker))

    def _alone(self) -> Iterator[Way]:
        """One dimension each, cheapest first."""
        partition, ask = self.partition, self.ask
        change = self._priority()
        if change is not None:
            yield change
        around = places(partition, ask)
        yield from self.each(
            chain(
                levers.limits(partition, ask),
                [levers.room_on_nodes(partition, ask), levers.more_nodes(partition, ask)],
                grounds(partition, ask, around),
                terms(partition, ask, around),
                levers.cancels(partition, ask, self.asker.may_act),
                [levers.smaller_requests(partition, ask), levers.other_queues(partition, ask)],
            )
        )
        yield from self.in_time()
        for group in elsewhere(partition, ask):
            if not group.kinds & {part.what for way in self.found for part in way.parts}:
                yield from self.each([group.levers])

    def _two(self) -> Iterator[Way]:
        """Any two things at once; the first two that help."""
        single = list(islice(combinations.single(self.partition, self.ask, self.asker), TWO_OF + 1))
        for one, other in pairs_of(single[:TWO_OF], 2):
            change = self._solve(combinations.joined([one, other]))
            if change is not None:
                yield change
                return
        if len(single) > TWO_OF:
            self.is_complete = False

    def _tried(self, parts: tuple[Part, ...]) -> Start | None:
        start = super()._tried(parts)
        return None if start is not None and self._robs_its_gang(start) else start

    def _robs_its_gang(self, start: Start) -> bool:
        """A place that another of its gang gives up for it brings the gang no further."""
        if not self.ask.spec.placeholder:
            return False
        asks, own = self.ask.app.asks, self.name[:2]
        return any(each[:2] == own and each[2] in asks and asks[each[2]].spec.placeholder for each in start.evicted)

    # -- priority -------------------------------------------------------------------------------------------------

    def _priority(self) -> Way | None:
        values = levers.priorities_above(self.partition, self.ask)
        parts = [(Part(What.PRIORITY, self.ask.key, self.ask.priority, value),) for value in values]
        if len(parts) <= FEW:
            # Between two of these values nothing changes sides, so the first that works is the smallest of all.
            for each in parts:
                if self.works(each) is not None:
                    change = self.stated(each)
                    return structs.replace(change, smallest=True) if change is not None else None
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


def _about(part: Part) -> tuple[str, str, str, str, str]:
    """What a part is about, whatever its value."""
    return part.what, part.subject, part.resource, part.who, part.text


def replace_value(part: Part, high: int, grain: int) -> Part:
    """The part at the least value from `high` on that is a whole number of grains away from its own."""
    if part.step < 0:
        return structs.replace(part, value=min(part.value, high))
    return structs.replace(part, value=part.value + -(-max(high - part.value, 0) // grain) * grain)
