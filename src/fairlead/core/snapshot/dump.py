"""What a snapshot holds: the state of a cluster as plain values, in one order.

Decides which attributes are state, and which are only kept orders that can be made again (`load`). Never decides what
happens next, and changes nothing. Invariant: every attribute of every book is either listed here or named as made again
by the test of this module.
"""

from __future__ import annotations

from typing import Any

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import NEVER_MS, Ask, Batch
from fairlead.core.books.cluster import Cluster
from fairlead.core.books.node import Node
from fairlead.core.books.nominations import Nomination
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.task_groups import TaskGroup
from fairlead.core.model.plain import to_brief, to_plain

VERSION = 5

# For each class: the attributes that are written as they are. All others are made again, or have a form of their own.
ASK_STATE: dict[str, Any] = {
    "priority": None,
    "seq": None,
    "created_ms": None,
    "pending": False,
    "allocated_ms": None,
    "preempt_triggered": False,
    "preempt_checked_ms": None,
    "attempted": False,
    "stood_in_ms": None,
    "overdue": False,
    "checkpoint_ms": None,
    "started_seq": 0,
    "started_owed": False,
}
"""What is not written is so."""
APP_STATE = (
    "seq",
    "submitted_ms",
    "submitted_seq",
    "start_ms",
    "finished_ms",
    "message",
    "backoff_until_ms",
    "unschedulable",
    "placeholder_timeout_ms",
    "closing",
    "limit_group",
    "tracked",
)
GROUP_STATE = ("name", "count", "replaced", "timed_out")
QUEUE_STATE = ("seq", "is_leaf", "managed", "max_applications", "admin_acl", "submit_acl", "quota_due_ms")
QUEUE_BOOKS = ("max", "guaranteed")
PARTITION_STATE = ("reservations", "allocation_count", "released_count", "started_seq", "changed_seq")


def dump_cluster(cluster: Cluster) -> dict[str, Any]:
    """The whole state as plain values, in one order."""
    return {
        "version": VERSION,
        "now_ms": cluster.now_ms,
        "started_ms": cluster.started_ms,
        "checksum": cluster.checksum,
        "text": cluster.text,
        "seq": cluster.last_seq,
        "admission": cluster.admission.dump(),
        "timers": [list(t) for t in cluster.timers.pending()],
        "timer_seq": cluster.timers.last_seq,
        "partitions": [_dump_partition(p) for p in cluster.partitions.values()],
    }


def _dump_partition(partition: Partition) -> dict[str, Any]:
    return {
        "spec": to_plain(partition.spec),
        **{name: getattr(partition, name) for name in PARTITION_STATE},
        "queues": [_dump_queue(q) for q in partition.root.walk()],
        "nodes": [_dump_node(partition, n) for n in partition.nodes.nodes.values()],
        "applications": [_dump_application(a) for a in partition.applications.values()],
        "ended": [[key, _dump_application(a)] for key, a in partition.ended.items()],
        "rejected": [_dump_application(a) for a in partition.rejected.values()],
        "nominations": [_dump_nomination(n) for n in partition.nominations.of.values()],
        "disruption": partition.disruption.dump(),
        "held_asks": partition.held_asks.dump(),
        "reserving": partition.reserving.dump(),
        "label_keys": list(partition.nodes.terrain.label_keys),
        "resting": [_name(batch.head) for batch in _in_line(partition) if batch in batch.key[0].resting],
        "attempts": _dump_attempts(partition),
        "resting_in_leaves": [_name(batch.head) for queue in partition.root.walk() for batch in queue.resting],
    }


def _dump_attempts(partition: Partition) -> list[list[Any]]:
    """When batches may have others stopped by guarantee, where their asks do not say it: long ones wait longer."""
    if partition.spec.preemption.rule != "guarantee":
        return []
    batches = [batch for batch in _in_line(partition) if _differs(batch)]
    return [[*_name(batch.head), batch.attempt_ms, batch.oldest_ms] for batch in batches]


def _in_line(partition: Partition) -> list[Batch]:
    """In the order of the line: that in which they were made, or began to rest, is another one after a restart."""
    return [batch for app in partition.applications.values() for batch in app.line]


def _differs(batch: Batch) -> bool:
    """Whether its times are others than its asks say. One that may never try finds that again, and of one ask alone it
    says itself when it tried last.
    """
    is_later = len(batch) > 1 and batch.app.first_attempt_ms(batch) < batch.attempt_ms < NEVER_MS
    return is_later or batch.oldest_ms < min(ask.created_ms for ask in batch.asks)


def _dump_nomination(nomination: Nomination) -> dict[str, Any]:
    """What has left already is not known any more after a restart."""
    victims = [_name(v) for v in nomination.victims if v.evict_cause is not None]
    return {
        "ask": _name(nomination.ask),
        "node": nomination.node.id,
        "victims": victims,
        "gathers": nomination.gathers,
        "in_line": nomination.ask.batch is not None,
    }


def _dump_queue(queue: Queue) -> dict[str, Any]:
    return {
        "name": queue.name,
        "parent": queue.parent.path if queue.parent else None,
        "state": str(queue.state),
        **{name: getattr(queue, name) for name in QUEUE_STATE},
        **{name: _book(getattr(queue, name)) for name in QUEUE_BOOKS},
        "properties": dict(queue.properties.raw),
        "template": to_plain(queue.template),
        "allocating_accepted": list(queue.allocating_accepted),
    }


def _dump_node(partition: Partition, node: Node) -> dict[str, Any]:
    images = partition.nodes.images.of_node.get(node)
    return {
        "spec": to_plain(node.spec),
        "seq": node.seq,
        "schedulable": node.schedulable,
        "total": _book(node.total),
        "foreign_notes": {key: [to_plain(spec), at_ms] for key, (spec, at_ms) in node.foreign.items()},
        "allocations": [_name(a) for a in node.allocations],
        "held": [_name(a) for a in node.held],
        "reservations": [[*_name(a), since_ms] for a, since_ms in node.reservations.items()],
        **({"images": {image.name: image.size for image in images}} if images else {}),
    }


def _dump_application(app: Application) -> dict[str, Any]:
    return {
        "spec": to_plain(app.spec),
        "queue": app.queue.path,
        "state": str(app.state),
        "state_log": [[at, str(state)] for at, state in app.state_log],
        "rejected": to_plain(app.rejected),
        **{name: getattr(app, name) for name in APP_STATE},
        "asks": [_dump_ask(a) for a in app.asks.values()],
        "groups": [_dump_group(g) for g in app.groups.values()],
        "awaited_by": [younger.id for younger in app.awaited_by],
        "consumed": app.consumed.as_plain() if app.consumed is not None else None,
    }


def _dump_group(group: TaskGroup) -> dict[str, Any]:
    return {
        **{name: getattr(group, name) for name in GROUP_STATE},
        "smallest": [list(item) for item in group.smallest],
        "standing": [a.key for a in group.standing],
    }


def _dump_ask(ask: Ask) -> dict[str, Any]:
    row = {"spec": to_brief(ask.spec)}
    row |= {name: value for name, default in ASK_STATE.items() if (value := getattr(ask, name)) != default}
    tied = {
        "node": ask.node and ask.node.id,
        "evict_cause": ask.evict_cause and str(ask.evict_cause),
        "evicted_by": ask.evicted_by and list(ask.evicted_by),
        "evicted_for": _name(ask.evicted_for) if ask.evicted_for and ask.evicted_for.pending else None,
        "reserved_on": ask.reserved_on and ask.reserved_on.id,
        "replaces": ask.replaces and _name(ask.replaces),
        "bound_for": ask.bound_for and ask.bound_for.id,
    }
    return row | {name: value for name, value in tied.items() if value}


def _book(book: dict[str, int] | None) -> dict[str, int] | None:
    return None if book is None else {name: book[name] for name in sorted(book)}


def _name(ask: Ask) -> list[str]:
    return [ask.app.id, ask.key]
