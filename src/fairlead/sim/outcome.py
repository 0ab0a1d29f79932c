"""The state at the end of a scenario: applications and queues in the words of the REST reads.

Decides which figures are shown and that empty ones are left out. Never changes the books it reads. Invariant: the same
books give the same rows, in order of name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.core.resources import pruned
from fairlead.core.specs import DEFAULT_PARTITION

if TYPE_CHECKING:
    from fairlead.core.applications import Application
    from fairlead.core.queues import Queue
    from fairlead.scheduler import Scheduler

Row = dict[str, Any]


def final_state(scheduler: Scheduler, partition: str = DEFAULT_PARTITION) -> dict[str, Row]:
    """`{"apps": {id: row}, "queues": {path: row}}` of one partition; nothing in both when it does not exist."""
    books = scheduler.cluster.partitions.get(partition)
    if books is None:
        return {"apps": {}, "queues": {}}
    return {
        "apps": {app.id: application_row(app) for app in sorted(books.applications.values(), key=lambda a: a.id)},
        "queues": {queue.path: queue_row(queue) for queue in sorted(books.root.walk(), key=lambda q: q.path)},
    }


def application_row(app: Application) -> Row:
    """State, amounts and `key@node` for each allocation."""
    return {
        "state": str(app.state),
        "allocated": pruned(app.allocated),
        "pending": pruned(app.pending),
        "placeholder": pruned(app.placeholders),
        "allocations": sorted(f"{ask.key}@{ask.node.id}" for ask in app.allocated_asks() if ask.node is not None),
    }


def queue_row(queue: Queue) -> Row:
    """The queue's own figures; headroom is what is left on the whole way up. Empty amounts and limits are left out."""
    row: Row = {
        "currentPriority": queue.reported,
        "isLeaf": queue.is_leaf,
        "isManaged": queue.managed,
        "status": str(queue.state),
    }
    optional = {
        "allocatedResource": pruned(queue.allocated),
        "pendingResource": pruned(queue.pending),
        "preemptingResource": pruned(queue.preempting),
        "maxResource": queue.max,
        "guaranteedResource": queue.guaranteed,
        "headroom": queue.headroom(),
        "runningApps": queue.running,
    }
    return row | {name: value for name, value in optional.items() if value}
