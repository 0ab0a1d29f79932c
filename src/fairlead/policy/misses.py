"""Misses: what is done for asks that were looked at in turn and cannot be placed.

Decides the order of the three things: a node is set aside (`reserve`), room is made (`preempt`), the application rests
(`backoff`); each decides in its own module. Never places an ask. Invariant: nothing is done for an ask before
everything that stands before it in the application's line was looked at.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from fairlead.policy.backoff import RunOfMisses
from fairlead.policy.limits import is_over_limit
from fairlead.policy.reserve import Seekers

if TYPE_CHECKING:
    from fairlead.core.applications import Application, Batch
    from fairlead.core.partition import Partition
    from fairlead.policy.preempt import Attempts
    from fairlead.policy.reserve import LineKey


class End(Enum):
    """What ends a visit to an application without a placement."""

    RESERVED = "reserved"
    """A node was set aside for an ask; the run is over."""
    RESTING = "resting"
    """The application rests; the run goes on behind it."""


class Misses:
    """The misses of one visit to an application."""

    __slots__ = ("_attempts", "_partition", "_rest", "_seekers")

    def __init__(self, partition: Partition, app: Application, attempts: Attempts) -> None:
        self._partition = partition
        self._attempts = attempts
        self._seekers = Seekers(partition)
        self._rest = RunOfMisses(app) if app.queue.properties.backoff_threshold else None

    def add(self, batch: Batch) -> End | None:
        """No ask of this batch can be placed now: do what its first ask is due."""
        partition = self._partition
        self._seekers.missed(batch)
        if self._seekers.reserve_up_to(batch.line_key):
            return End.RESERVED
        if not is_over_limit(batch.demand) and self._attempts.make_room(partition, batch):
            return End.RESERVED
        if self._rest is not None:
            self._rest.missed(partition, batch)
        return None

    def due_before(self, key: LineKey) -> End | None:
        """What asks missed so far are due before the ask with this place in line is looked at."""
        if self._seekers.reserve_up_to(key):
            return End.RESERVED
        if self._rest is not None and self._rest.is_due_before(key):
            self._rest.back_off(self._partition)
            return End.RESTING
        return None

    def due_at_end(self) -> End | None:
        """What asks missed are due when all were looked at."""
        if self._seekers.reserve_up_to(None):
            return End.RESERVED
        if self._rest is not None and self._rest.is_due():
            self._rest.back_off(self._partition)
            return End.RESTING
        return None
