"""Gang turns: of gangs that take their room at the same time, which goes on first.

Decides whether a placeholder lets a gang go before it that has begun to take its room: else two that take turns, as
fair shares have them, end with a part each and neither is whole. Never places or stops anything. Invariant: a gang goes
before another one only if it has a part of its room, comes before it by rank or not after it, and can take more now.
"""

from __future__ import annotations

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.partition import Partition
from fairlead.policy.order.effective_priority import owed_by, rank
from fairlead.policy.order.pick import Lines
from fairlead.policy.place.fitting import may_fit_still, node_for


def lets_another_go_on(partition: Partition, lines: Lines, ask: Ask) -> bool:
    """Whether this placeholder, which could be placed now, waits until a gang of another queue has taken what it can.
    In a single queue its own order counts.
    """
    mine, leaf = _place(ask.app, ask), ask.app.queue
    for name in partition.root.allocating_accepted:
        other = partition.applications[name]
        # What it had may have been stopped.
        has_begun = other.placeholder_count > 0 and other.queue is not leaf
        if has_begun and any(_goes_before(partition, lines, batch, mine) for batch in _in_line(other)):
            return True
    return False


def _in_line(app: Application) -> list[Batch]:
    return [batch for batch in app.batches.values() if batch.stamp and batch.head.spec.placeholder]


def _goes_before(partition: Partition, lines: Lines, batch: Batch, mine: tuple[object, ...]) -> bool:
    if _place(batch.app, batch.head) > mine or not (may_fit_still(batch) and lines.is_eligible(batch)):
        return False
    is_placed = node_for(partition, batch) is not None
    lines.settle()
    return is_placed


def _place(app: Application, ask: Ask) -> tuple[int, int, bool, int, int]:
    """Order among gangs: 1. within a guarantee, the nearest first (`both`), 2. the higher priority as seen at the root,
    3. what has a part of its room, 4. submitted earlier, 5. arrived earlier.
    """
    leaf = app.queue
    return owed_by(leaf, ask.items), -rank(leaf, ask.priority)[0], not app.placeholder_count, app.submitted_ms, app.seq
