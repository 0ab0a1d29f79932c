"""What came of a scenario: what happened, row by row, and the state at its end.

Decides which decisions become rows and what they hold, which figures of applications and queues are shown (in the words
of the REST reads, without empty ones), and what still waits. Never changes the books it reads. Invariant: the same
books give the same rows, in order of name. One row for each allocation and one for each that ended; an eviction is
listed when it is ordered, and its confirmation is not listed again. Every ask that waits has one row, and equal asks of
one application share their reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Any

from fairlead.core.model.decisions import (
    Allocated,
    ApplicationAccepted,
    ApplicationRejected,
    AskRejected,
    ConfigurationRejected,
    Decision,
    DeclarationRejected,
    Evict,
    NodeRejected,
    Released,
)
from fairlead.core.model.events import Cause
from fairlead.core.model.resources import pruned
from fairlead.core.model.specs import DEFAULT_PARTITION, PRIORITY_MIN
from fairlead.insight.line import pending

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.reasons import Reason
    from fairlead.core.model.resources import Book
    from fairlead.scheduler import Scheduler


Row = dict[str, Any]
_REFUSED: dict[type, tuple[str, str]] = {
    ApplicationRejected: ("apps_rejected", "id"),
    AskRejected: ("asks_rejected", "key"),
    NodeRejected: ("nodes_rejected", "id"),
    DeclarationRejected: ("declarations_rejected", "name"),
}
"""Where the reason of a refusal is noted, and under what."""

ADDED = frozenset({"evicted", "nominated", "waiting", "declarations_rejected"})
"""Sections that only the rules beyond YuniKorn's have (`Record.additions`, `aftermath`)."""


class Record:
    """The rows of one scenario."""

    def __init__(self) -> None:
        self.allocated: list[Row] = []
        self.released: list[Row] = []
        self.accepted: list[str] = []
        self.apps_rejected: dict[str, str] = {}
        self.asks_rejected: dict[str, str] = {}
        self.nodes_rejected: dict[str, str] = {}
        self.configuration_rejected: str | None = None
        self.placed = 0
        """How many asks were allocated or replaced."""
        self.evictions: list[Row] = []
        self.declarations_rejected: dict[str, str] = {}

    def take(self, decisions: Iterable[Decision], step: int, leaving: Container[tuple[str, str]] = ()) -> None:
        """Add rows for `decisions`, which came in `step`; `leaving` (application, key) was told to stop before and is
        listed.
        """
        for d in decisions:
            match d:
                case Allocated():
                    self.placed += 1
                    self.allocated.append({"key": d.key, "app": d.application, "node": d.node, "step": step})
                case Evict():
                    self.placed += d.cause is Cause.PLACEHOLDER_REPLACED
                    self._add_released(d.application, d.key, d.cause, step)
                case Released():
                    told = d.node or d.cause is Cause.TIMEOUT
                    if told and (d.application, d.key) not in leaving:
                        self._add_released(d.application, d.key, d.cause, step)
                case ApplicationAccepted():
                    self.accepted.append(d.id)
                case ConfigurationRejected():
                    self.configuration_rejected = d.reason.sentence()
                case ApplicationRejected() | AskRejected() | NodeRejected() | DeclarationRejected():
                    rows, name = _REFUSED[type(d)]
                    getattr(self, rows)[getattr(d, name)] = d.reason.sentence()

    def add_eviction(self, order: Evict, preemptor: str, step: int) -> None:
        """Add the row of work that was told to stop for the ask with the key `preemptor` (empty: for nobody)."""
        if order.cause is Cause.PREEMPTED_BY_SCHEDULER:
            row = {"key": order.key, "for": preemptor, "rule": order.rule, "node": order.node, "step": step}
            self.evictions.append(row | ({"violates": list(order.violates)} if order.violates else {}))

    def _add_released(self, app: str, key: str, cause: Cause, step: int) -> None:
        self.released.append({"key": key, "app": app, "by": str(cause), "step": step})

    def as_result(self) -> Row:
        """The rows in the order that an expectation has them; final states are added by the caller."""
        return {
            "allocated": self.allocated,
            "released": sorted(self.released, key=lambda r: (r["step"], r["key"], r["by"])),
            "apps_accepted": sorted(self.accepted),
            "apps_rejected": self.apps_rejected,
            "asks_rejected": self.asks_rejected,
            "nodes_rejected": self.nodes_rejected,
        }

    def additions(self) -> Row:
        """The rows that only the rules beyond YuniKorn's have."""
        return {"evicted": self.evictions, "declarations_rejected": self.declarations_rejected}


Unblock = Callable[["Scheduler", str, str], Any]
"""The smallest change that would start an ask (application, key) as plain values; None when there is none."""


def final_state(scheduler: Scheduler, partition: str = DEFAULT_PARTITION) -> dict[str, Row]:
    """`{"apps": {id: row}, "queues": {path: row}}` of one partition; nothing in both when it does not exist."""
    books = scheduler.cluster.partitions.get(partition)
    if books is None:
        return {"apps": {}, "queues": {}}
    waits = pending(books)
    return {
        "apps": {app.id: application_row(app) for app in sorted(books.applications.values(), key=lambda a: a.id)},
        "queues": {queue.path: queue_row(queue, waits[queue][0]) for queue in sorted(waits, key=lambda q: q.path)},
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


def queue_row(queue: Queue, waits: Book) -> Row:
    """The queue's own figures, with what waits here and below; headroom is what is left on the whole way up. Empty
    amounts and limits are left out.
    """
    row: Row = {
        "currentPriority": max(queue.reported, PRIORITY_MIN),
        "isLeaf": queue.is_leaf,
        "isManaged": queue.managed,
        "status": str(queue.state),
    }
    optional = {
        "allocatedResource": pruned(queue.allocated),
        "pendingResource": pruned(waits),
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
    names = _Names([ask.key for ask in waiting] + [held.spec.key for _, held in partition.held_asks])
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
    for app_id, held in partition.held_asks:
        reason = held.reason(partition.applications[app_id], partition.now_ms)
        rows[names.of(app_id, held.spec.key)] = _words(reason, held.spec.resources.as_dict(), None)
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
