"""Gang turns: of gangs that take their room at the same time, which goes on first.

Decides whether a placeholder lets a gang of another queue go on that has begun to take its room: else two that take
turns, as fair shares have them, end with a part each and neither is whole. In a single queue its own order counts.
Never places or stops anything. Invariant: a gang goes on before another one only if it has a part of its room, is not
after it by rank (at the root, nor where their queues meet), and can take more now.
"""

from __future__ import annotations

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.partition import Partition
from fairlead.policy.order.effective_priority import is_stronger, owed_by, rank
from fairlead.policy.order.pick import Lines
from fairlead.policy.place.fitting import may_fit_still, node_for
from fairlead.policy.place.nominated import Places


class GangTurns:
    """What was found in one run, in which nothing has been placed yet."""

    __slots__ = ("_going_on", "lines", "partition")

    def __init__(self, partition: Partition, lines: Lines) -> None:
        self.partition, self.lines = partition, lines
        self._going_on: Batch | None = None
        """Of a gang that has begun, what could be placed now."""

    def lets_another_go_on(self, ask: Ask) -> bool:
        """Whether this ask, which could be placed now, is a placeholder that waits until another gang has taken what it
        can.
        """
        if not ask.spec.placeholder:
            return False
        if self.is_known_to_wait(ask):
            return True
        mine = place_of(ask)
        for name in self.partition.root.allocating_accepted:
            app = self.partition.applications[name]
            # What it had may have been stopped.
            for batch in _in_line(app) if app.placeholder_count and app.queue is not ask.app.queue else ():
                comes_first = place_of(batch.head) < mine and not is_stronger(ask, batch.head)
                if comes_first and self._can_be_placed(batch):
                    self._going_on = batch
                    return True
        return False

    def is_known_to_wait(self, ask: Ask) -> bool:
        """Whether that is so by what was found already: then no other gang has to be searched."""
        first = self._going_on
        if first is None or not ask.spec.placeholder or ask.app.queue is first.app.queue:
            return False
        if place_of(first.head) >= place_of(ask) or is_stronger(ask, first.head):
            return False
        return ask.batch is not None and node_for(self.partition, ask.batch) is not None

    def _can_be_placed(self, batch: Batch) -> bool:
        if not self.lines.is_eligible(batch):
            return False
        if batch.head.nomination is not None:  # Room is kept for it, which no other placeholder may take.
            return Places(self.partition).of(batch.head) is not None
        if not may_fit_still(batch):
            return False
        is_placed = node_for(self.partition, batch) is not None
        self.lines.settle()
        return is_placed


def _in_line(app: Application) -> list[Batch]:
    return [batch for batch in app.batches.values() if batch.stamp and batch.head.spec.placeholder]


def place_of(ask: Ask) -> tuple[int, int, bool, int, int]:
    """Order among gangs: 1. within a guarantee, the nearest first (`both`), 2. the higher priority as seen at the root,
    3. what has a part of its room, 4. submitted earlier, 5. arrived earlier.
    """
    app, leaf = ask.app, ask.app.queue
    return owed_by(leaf, ask.items), -rank(leaf, ask.priority)[0], not app.placeholder_count, app.submitted_ms, app.seq
