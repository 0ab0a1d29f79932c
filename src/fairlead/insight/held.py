"""Held: what would start an ask that is not in line yet.

Decides what is tried: that its conditions are gone, that more of its application may be at once, and that time goes on;
and what brings it into line where that alone gives it no room (`unblock` searches on from there). Never tries itself
what would make room for it. Invariant: a change is only called the asker's when whoever asks may give the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import structs

from fairlead.core.model.conditions import NeverRuns, OnHold
from fairlead.insight.advice import Asker, By, price
from fairlead.insight.changes import events_of
from fairlead.insight.levers import Lever, together
from fairlead.insight.parts import AFTER, BEGIN, HOLD, Part, What, acts, clauses
from fairlead.insight.search import Effort, Trials
from fairlead.insight.trial import copy_of

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.insight.trial import Name
    from fairlead.scheduler import Scheduler
    from fairlead.wire.verdicts import Way


class Held(Trials):
    """One search under way."""

    def __init__(
        self, scheduler: Scheduler, partition: Partition, name: Name, asker: Asker, effort: Effort, fork: bool | None
    ) -> None:
        super().__init__(scheduler, name, effort, fork)
        self.partition, self.asker = partition, asker
        self.app = partition.applications[name[1]]

    def by(self, parts: tuple[Part, ...]) -> By:
        """Whose it is: what others than its owner have put on hold its owner does not release."""
        is_his = self.asker.may_act(self.app.id)
        held = self.partition.held_asks.get(*self.name[1:])
        if held is not None and held.conditions.held_by != self.app.user:
            is_his = is_his and all(part.text != HOLD for part in parts)
        is_time = all(part.what is What.TIME for part in parts)
        return By.ASKER if is_time or is_his or self.asker.administers(self.app.queue.path) else By.QUEUE

    def _changes(self) -> Iterator[Way]:
        yield from self.each([self._levers()])
        yield from self.in_time()

    @property
    def comes_by_itself(self) -> bool:
        """Whether it is in line one day though nobody does anything for it."""
        held = self.partition.held_asks.get(*self.name[1:])
        return held is None or not isinstance(held.reason(self.app, self.partition.now_ms), OnHold | NeverRuns)

    def in_line(self) -> tuple[Scheduler, tuple[Part, ...]] | None:
        """A copy on which it is in line, and what it took, the least of it; None: nothing of this kind does that."""
        copy, parts = copy_of(self.scheduler), tuple(self._conditions())
        partition = copy.cluster.partitions[self.name[0]]
        app = partition.applications[self.name[1]]
        self._bring_about(copy, parts)
        held = partition.held_asks.get(*self.name[1:])
        if held is not None:  # It waits for its turn: those before it enter as well. (A quota may refuse so many.)
            others = (h for h in partition.held_asks.of(app.id) if h.conditions.met(partition.now_ms))
            before = sum(other.turn < held.turn for other in others)
            more = Part(What.AT_ONCE, app.id, app.spec.at_once, len(app.asks) + before + 1)
            self._bring_about(copy, (more,))
            parts += (more,)
        return (copy, parts) if self.name[2] in app.asks else None

    def also(self, enters: tuple[Part, ...], change: Way) -> Way:
        """What starts it once it is in line, together with what brings it there."""
        runs, _, clause = change.sentence.partition(" if ")
        return structs.replace(
            change,
            dimension="+".join(dict.fromkeys([*(part.what for part in enters), *change.dimension.split("+")])),
            sentence=f"{runs} if {' and '.join([*clauses(enters), clause])}",
            action=" and ".join([*acts(enters), change.action]),
            parts=[*(part.shown() for part in enters), *change.parts],
            by=max(self.by(enters), By(change.by), key=list(By).index),
            price=max(price(enters), change.price),
        )

    def _bring_about(self, copy: Scheduler, parts: tuple[Part, ...]) -> None:
        for event in events_of(copy, self.name, parts):
            copy.handle(event, copy.cluster.now_ms)

    def _levers(self) -> Iterator[Lever]:
        conditions = list(self._conditions())
        if conditions:
            yield together(*conditions)
        at_once = self.app.spec.at_once
        if at_once:
            more = Part(What.AT_ONCE, self.app.id, at_once, at_once + 1)
            most = at_once + len(self.partition.held_asks.of(self.app.id))
            yield together(*conditions) + Lever(((more, most, 1),))

    def _conditions(self) -> Iterator[Part]:
        """What was said of when it is to enter; the back-off of a further attempt was not."""
        held = self.partition.held_asks.get(*self.name[1:])
        if held is None:
            return
        now = held.conditions
        begins_later = now.begin_ms > self.partition.now_ms and not held.spec.retried
        for text, there in ((HOLD, now.held_by), (BEGIN, begins_later), (AFTER, now.after)):
            if there:
                yield Part(What.CONDITION, self.name[2], 0, 1, text=text)
