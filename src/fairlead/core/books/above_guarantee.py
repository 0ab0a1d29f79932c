"""By how much queues are above their guarantees, as things are.

Decides it for each queue once for as long as nothing changes, and how much of a resource the work of a leaf may give
without leaving a queue below its guarantee. Never decides what goes. Invariant: what is known is what would be counted
anew.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Book, add_to

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition

NOTHING: Book = {}


class AboveGuarantee:
    """What is known of one partition at one version of its books."""

    __slots__ = ("_gone", "_known", "_least", "_version")

    def __init__(self) -> None:
        self._version = -1
        self._gone: dict[Queue, Book] = {}
        """What was told to stop and is not counted on: it counts as gone here all the same."""
        self._known: dict[Queue, Book] = {}
        self._least: dict[tuple[Queue, str], float] = {}

    def of(self, partition: Partition, queue: Queue) -> Book:
        """By how much what runs in a queue is more than its guarantee, for all that this names; below 0: less. What was
        told to stop counts as gone, and idle work is within no guarantee.
        """
        self._keep_up(partition)
        found = self._known.get(queue)
        if found is None:
            used, leaving, idle = queue.allocated, queue.preempting, queue.idle
            gone = self._gone.get(queue, NOTHING)
            found = self._known[queue] = {
                n: used.get(n, 0) - leaving.get(n, 0) - idle.get(n, 0) - gone.get(n, 0) - due
                for n, due in (queue.guaranteed or {}).items()
            }
        return found

    def least(self, partition: Partition, leaf: Queue, name: str, unguarded: Collection[Queue] = ()) -> float:
        """How much of a resource the work of a leaf may give at most without leaving a queue, but the `unguarded`,
        below its guarantee.
        """
        self._keep_up(partition)
        found = self._least.get((leaf, name)) if not unguarded else None
        if found is None:
            guarded = (q for q in leaf.lineage if q.guaranteed and name in q.guaranteed and q not in unguarded)
            found = min((max(self.of(partition, q)[name], 0) for q in guarded), default=math.inf)
            if not unguarded:
                self._least[leaf, name] = found
        return found

    def _keep_up(self, partition: Partition) -> None:
        if self._version == partition.books_version:
            return
        self._version = partition.books_version
        self._known.clear()
        self._least.clear()
        self._gone.clear()
        for ask in (*partition.disruption.going, *partition.disruption.overdue):
            if not ask.spec.idle:
                for queue in ask.app.queue.lineage:
                    add_to(self._gone.setdefault(queue, {}), ask.items)
