"""The cycle: the steps of one scheduling run.

Decides the order of the steps and when a run is over; each step decides in its own module. A run places at most one
ask. There are two orders of turns: YuniKorn's walk of the tree (`preemption.rule: guarantee`), and rank (`priority`,
`both`). In both an ask tries in its turn what is least disruptive first, before anything behind it is looked at.
"""

from __future__ import annotations

from fairlead.core.acts.limit_groups import decide_groups
from fairlead.core.books.partition import Partition
from fairlead.policy.eligibility.backoff import rest_all
from fairlead.policy.eligibility.max_wait import keep_turns
from fairlead.policy.order.pick import Lines
from fairlead.policy.place.allocate import MOVED, Outcome, Walk
from fairlead.policy.place.backfill import backfill_one
from fairlead.policy.place.by_rank import Turns
from fairlead.policy.place.gang import replace_one
from fairlead.policy.place.gang_deadlock import resolve_one
from fairlead.policy.place.idle import place_idle
from fairlead.policy.place.nominated import place_nominated
from fairlead.policy.place.reserved import place_reserved

MOVES_MAX = 1_000
"""So often work is stopped, or a nomination moves, in one run at most; then the next one goes on."""


class Cycle:
    """The runs over one partition, and the orders that they keep."""

    __slots__ = ("_walk", "lines", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.lines = Lines(partition)
        self._walk = Walk(partition, self.lines)

    def run_once(self, *, is_step: bool = False) -> Outcome:
        """One scheduling run; as a step it ends with each node that is set aside, though the next does not differ."""
        self._walk.is_step = is_step
        partition, lines = self.partition, self.lines
        before = partition.books_version
        rested = partition.rested_at
        if rested is not None and rested[1] == before and rested[0] == partition.news:
            return None
        lines.settle()
        # 1. Turns that are kept: reservations that are due, and room that gathers for what waited too long.
        kept = bool(partition.reserving.of or partition.reserving.overdue)
        if kept:
            if not partition.root.by_rank and partition.nominations and (ask := place_nominated(partition, lines)):
                return ask
            keep_turns(partition)
            lines.settle()
        # 2. Real asks take the places of their placeholders; that takes no room from anything.
        # 3. Waiting asks have their turns.
        outcome = self._place_one()
        if outcome is not None:
            return outcome
        if partition.unseen:
            decide_groups(partition)
        # What is kept no longer (a turn, a node, room that gathers), or was told to stop, may let something start that
        # had its turn before.
        if partition.books_version != before:
            return MOVED
        # 4. What waits for the turn of another starts where it delays nothing.
        if partition.reserving.of and (ask := backfill_one(partition)) is not None:
            return ask
        # 5. Idle work takes what is left over.
        if partition.idle.lines and (ask := place_idle(partition)) is not None:
            return ask
        # 6. Of gangs that hold each other one gives way.
        if partition.root.allocating_accepted and resolve_one(partition):
            return MOVED
        # 7. Applications with too many asks that fit nowhere rest.
        if partition.uncounted and rest_all(partition):
            return MOVED
        partition.rested_at = (partition.news, partition.books_version)
        return None

    def _place_one(self) -> Outcome:
        """First what has room kept for it (by rank it takes that in its turn), a node set aside, or placeholders; then
        the order of turns.
        """
        partition, lines = self.partition, self.lines
        by_rank = partition.root.by_rank
        if not by_rank and partition.nominations.of and (ask := place_nominated(partition, lines)) is not None:
            return ask
        if partition.reservations and (ask := place_reserved(partition, lines)) is not None:
            return ask
        if (partition.swappable or partition.homeless) and (ask := replace_one(partition)) is not None:
            return ask
        lines.settle()
        if partition.root.max is None:
            return None  # There are no nodes.
        return self._by_rank() if by_rank else self._walk.allocate_one()

    def _by_rank(self) -> Outcome:
        """The turns in the order of rank, until something is placed."""
        for moves in range(MOVES_MAX):
            outcome = Turns(self.partition, self.lines).take_next()
            if outcome is not MOVED:
                return MOVED if outcome is None and moves else outcome
            self.lines.settle()
        return MOVED
