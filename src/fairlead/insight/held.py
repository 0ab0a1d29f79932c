"""Held: what would start an ask that is not in line yet.

Decides what is tried: that its conditions are gone, that more of its application may be at once, and that time goes on.
Never tries what would make room for it: that is asked once it is in line. Invariant: a change is only called the
asker's when whoever asks may give the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.insight.advice import Asker, By
from fairlead.insight.levers import Lever, together
from fairlead.insight.parts import AFTER, BEGIN, HOLD, Part, What
from fairlead.insight.search import Effort, Trials

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.insight.trial import Name
    from fairlead.scheduler import Scheduler
    from fairlead.wire.questions import Way


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
        if not self.found:
            self.is_complete = False

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
