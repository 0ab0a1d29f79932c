"""The state at the end of a scenario: applications and queues in the words of the REST reads, and what still waits.

Decides which figures are shown, that empty ones are left out, and the rows of what is held and what waits. Never
changes the books it reads. Invariant: the same books give the same rows, in order of name; every ask that waits has one
row, and equal asks of one application share their reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.core.model.resources import pruned
from fairlead.core.model.specs import DEFAULT_PARTITION

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.reasons import Reason
    from fairlead.scheduler import Scheduler


Row = dict[str, Any]
Unblock = Callable[["Scheduler", str, str], Any]
"""The smallest change that would start an ask (application, key) as plain values; None when there is none."""


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


def aftermath(scheduler: Scheduler, unblock: Unblock | None = None) -> dict[str, Row]:
    """`{"nominated": {key: node}, "waiting": {key: {reason, sentence, needed, free, unblock}}}`.

    A key that several applications have is written `application/key`. `unblock` is null where nobody works it out.
    """
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    if partition is None:
        return {"nominated": {}, "waiting": {}}
    waiting = [ask for app in partition.applications.values() for ask in app.waiting_asks()]
    names = _Names([ask.key for ask in waiting] + [coming.spec.key for _, coming in partition.retries])
    nominated = {names.of(a.app.id, a.key): a.held_on.id for a in partition.nominations if a.held_on is not None}
    rows: dict[str, Row] = {}
    known: dict[object, Row] = {}
    for ask in waiting:
        group: object = (ask.app, ask.priority, ask.shape, ask.spec.task_group)
        if ask.held_on is not None or ask.reserved_on is not None:
            group = ask
        row = known.get(group)
        if row is None:
            row = known[group] = _row(scheduler, ask, unblock)
        rows[names.of(ask.app.id, ask.key)] = row
    for app_id, coming in partition.retries:
        rows[names.of(app_id, coming.spec.key)] = _words(coming.held_back(), coming.spec.resources.as_dict(), None)
    return {"nominated": dict(sorted(nominated.items())), "waiting": dict(sorted(rows.items()))}


class _Names:
    """How asks are called: by their key, where that tells which one is meant."""

    def __init__(self, keys: list[str]) -> None:
        self._doubled = {key for key, count in Counter(keys).items() if count > 1}

    def of(self, application: str, key: str) -> str:
        return f"{application}/{key}" if key in self._doubled else key


def _row(scheduler: Scheduler, ask: Ask, unblock: Unblock | None) -> Row:
    reason = scheduler.why(ask.app.id, ask.key)
    assert reason is not None, f"{ask} waits without a reason"
    change = unblock(scheduler, ask.app.id, ask.key) if unblock is not None else None
    return _words(reason, dict(ask.items), change)


def _words(reason: Reason, needed: dict[str, int], unblock: Any) -> Row:
    """The reason's own numbers where it has them; else all that is needed."""
    return {
        "reason": reason.code,
        "sentence": reason.sentence(),
        "needed": pruned(dict(getattr(reason, "needed", needed))),
        "free": dict(sorted(getattr(reason, "free", {}).items())),
        "unblock": unblock,
    }
