"""Queues that leave: said, and removed once they are empty.

Decides when empty queues that leave are removed. Never decides that a queue leaves (`core.acts.reconfigure` does).
Invariant: a queue that is removed is empty.
"""

from __future__ import annotations

from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import QueueChanged

CLEAN_QUEUES_MS = 10_000
"""Queues that leave are removed at whole multiples of this, once they are empty."""


def queue_changed(partition: Partition, queue: Queue, change: str) -> None:
    """Say that a queue was added, removed, drains or was restarted."""
    partition.out.append(QueueChanged(queue.path, change, partition.name))


def clean_if_leaving(partition: Partition, queue: Queue) -> None:
    """See to it that a queue that leaves is removed, if it is empty by then."""
    if queue.is_leaving and not queue.applications:
        clean_later(partition)


def clean_later(partition: Partition) -> None:
    """Have the empty queues that leave removed at the next whole multiple of ten seconds."""
    due_ms = (partition.now_ms // CLEAN_QUEUES_MS + 1) * CLEAN_QUEUES_MS
    partition.timers.set_earlier(due_ms, partition.name, "", "queues")
