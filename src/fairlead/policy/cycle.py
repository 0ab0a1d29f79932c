"""The cycle: the steps of one scheduling run, least disruptive first.

Decides the order of the steps and when a run is over; each step decides in its own module. A run places at most one
ask; a later step is only tried when the earlier ones found nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from fairlead.policy.allocate import RESERVED, allocate_one
from fairlead.policy.backfill import backfill_one
from fairlead.policy.gang import replace_one
from fairlead.policy.gang_deadlock import resolve_one
from fairlead.policy.idle import place_idle
from fairlead.policy.nominate import place_nominated
from fairlead.policy.preempt import preempt_one
from fairlead.policy.reclaim import reclaim_one
from fairlead.policy.reserve import place_reserved
from fairlead.policy.turns import keep_turns

if TYPE_CHECKING:
    from fairlead.core.partition import Partition
    from fairlead.policy.line import Lines


class Run(Enum):
    """What came of one scheduling run."""

    PLACED = "placed"
    """An ask was placed, or began to replace a placeholder."""
    MOVED = "moved"
    """A node was set aside or victims were told to stop; the next run may find more to do."""
    EMPTY = "empty"
    """Nothing can be done until something happens."""


def run_once(partition: Partition, lines: Lines) -> Run:
    """One scheduling run."""
    before = partition.books_version
    if partition.holds and place_nominated(partition):
        return Run.PLACED
    kept = bool(partition.reserving.of or partition.reserving.overdue)
    if kept:
        keep_turns(partition)
        if partition.holds and place_nominated(partition):
            return Run.PLACED
    if partition.reservations and place_reserved(partition) is not None:
        return Run.PLACED
    if (partition.swappable or partition.homeless) and replace_one(partition, lines) is not None:
        return Run.PLACED
    outcome = allocate_one(partition, lines)
    if outcome is not None:
        return Run.MOVED if outcome is RESERVED else Run.PLACED
    if partition.idle.running and reclaim_one(partition):
        return Run.MOVED
    if partition.reserving.of and backfill_one(partition) is not None:
        return Run.PLACED
    if preempt_one(partition, lines):
        return Run.MOVED
    if partition.idle.lines and place_idle(partition) is not None:
        return Run.PLACED
    if partition.root.allocating_accepted and resolve_one(partition):
        return Run.MOVED
    # Turns that were given or taken, and room that was gathered or let go, may let somebody start in the next run.
    return Run.MOVED if kept and partition.books_version != before else Run.EMPTY
