"""What the books say, as plain values for the outside.

Decides names and shapes of the answers of /api/v1. Never changes anything and never hands out a live object: called
between two turns, it copies what it shows. Invariant: every amount shown is the scheduler's own number.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from fairlead.core.applications import NO_PRIORITY
from fairlead.core.idle import use_by_queue
from fairlead.core.reasons import AttemptHeldBack
from fairlead.core.resources import pruned
from fairlead.core.specs import DEFAULT_PARTITION
from fairlead.insight.clauses import duration
from fairlead.insight.verdict import why_stopped
from fairlead.local.whereabouts import fields_of
from fairlead.local.work import Attempt, State, Work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.nodes import Node
    from fairlead.core.queues import Queue
    from fairlead.core.resources import Book
    from fairlead.local.records import WorkSpec
    from fairlead.scheduler import Scheduler

Plain = dict[str, Any]


def work_row(work: Work, scheduler: Scheduler) -> Plain:
    """A work as a row of a list."""
    return {
        "key": work.key,
        "name": work.spec.name,
        "queue": work.queue,
        "user": work.spec.user,
        "priority": work.priority,
        "state": work.state.value,
        "node": work.node,
        "exit_code": work.exit_code,
        "reason": work_reason(work, scheduler),
        "submitted_at_ms": work.submitted_at_ms,
        "started_at_ms": work.started_at_ms,
        "ended_at_ms": work.ended_at_ms,
        "resources": work.spec.resources.as_dict(),
    }


def work_full(work: Work, scheduler: Scheduler) -> Plain:
    """Everything the books know about a work; of its environment only the names."""
    spec = work.spec
    return work_row(work, scheduler) | {
        "command": list(spec.command),
        "env": sorted(spec.env),
        "cwd": spec.cwd,
        "tags": dict(spec.tags),
        "labels": dict(spec.labels),
        **fields_of(spec.where),
        "idle": spec.idle,
        "priority_class": spec.priority_class,
        "retry": _retry(spec),
        "retry_due_ms": work.retry_due_ms if work.state is State.WAITING else None,
        "reserved": work.reserved and work.state is State.WAITING,
        "checkpoint_at_ms": work.checkpoint_at_ms,
        "past": [_attempt(each) for each in work.past],
        "grace_ms": spec.grace_ms,
        "time_limit_ms": spec.time_limit_ms,
        "pid": work.pid,
        "attempts": work.attempt,
        "signal": work.signal,
        "error": work.error,
        "cpu_ms": work.cpu_ms,
        "peak_memory_bytes": work.peak_memory_bytes,
        "gpus": list(work.gpus),
        "history": [{"at_ms": h.at_ms, "what": h.what, "detail": h.detail} for h in work.history],
    }


def _retry(spec: WorkSpec) -> Plain | None:
    if spec.retry is None:
        return None
    return {
        "limit": spec.retry.limit,
        "backoff_ms": spec.retry.backoff_ms,
        "never_on": list(spec.retry.never_on),
    }


def _attempt(over: Attempt) -> Plain:
    """An attempt that is over."""
    return {
        "attempt": over.number,
        "state": over.state.value,
        "node": over.node,
        "started_at_ms": over.started_at_ms,
        "ended_at_ms": over.ended_at_ms,
        "exit_code": over.exit_code,
        "signal": over.signal,
        "cpu_ms": over.cpu_ms,
        "peak_memory_bytes": over.peak_memory_bytes,
        "how": over.how,
        "on_behalf_of": over.evicted_for,
        "rule": over.evict_rule,
    }


def work_reason(work: Work, scheduler: Scheduler) -> Plain | None:
    """Why a work waits, stops, or ended otherwise than by itself; None where there is nothing to say."""
    if work.state is State.WAITING:
        reason = scheduler.why(work.key, work.ask_key)
        return _held_back(reason, work) if isinstance(reason, AttemptHeldBack) else reason.as_dict() if reason else None
    if work.state in (State.STOPPING, State.EVICTED) and work.evict_cause and not work.cancelled_by:
        if work.note and not work.evicted_for:
            named = {"on_behalf_of": "", "cause": work.evict_cause, "rule": work.evict_rule}
            return {"code": "evicted", "sentence": work.note} | named
        told = "was stopped" if work.ended else "was told to stop"
        room = f" to make room for {work.evicted_for}" if work.evicted_for else ""
        return {
            "code": "evicted",
            "sentence": f"{told} by the scheduler{room}{why_stopped(work.evict_rule)}",
            "on_behalf_of": work.evicted_for,
            "cause": work.evict_cause,
            "rule": work.evict_rule,
        }
    if work.cancelled_by and work.state in (State.STOPPING, State.CANCELLED):
        return {"code": "cancelled", "sentence": f"cancelled by {work.cancelled_by}", "who": work.cancelled_by}
    if work.state is State.REJECTED:
        return {"code": work.refusal_code or "refused", "sentence": work.error, "text": work.error}
    if work.state is State.TIMED_OUT:
        limit = work.spec.time_limit_ms
        sentence = f"stopped after its time limit of {duration(limit or 0)}"
        return {"code": "timed-out", "sentence": sentence, "time_limit_ms": limit}
    if work.state is State.LOST:
        return {"code": "lost", "sentence": work.note or "it is gone, and how it ended could not be observed"}
    if work.error:
        return {"code": "not-started", "sentence": work.error}
    return {"code": "note", "sentence": work.note} if work.note else None


def _held_back(reason: AttemptHeldBack, work: Work) -> Plain:
    """When its next attempt enters, in the words of this machine's clock."""
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(reason.due_ms / 1000))
    last = f"; the last one {_ended(work.past[-1])}" if work.past else ""
    said = f"the next attempt ({reason.attempt} of at most {reason.most}) enters at {at}, after its back-off{last}"
    return reason.as_dict() | {"sentence": said}


def _ended(over: Attempt) -> str:
    """How an attempt ended, without saying its state twice."""
    state = over.state.value
    return f"was {over.how}" if over.how.startswith(state) else f"{state}: {over.how}"


def work_why(work: Work, scheduler: Scheduler) -> Plain:
    """Why a work is where it is, as one answer."""
    reason = work_reason(work, scheduler)
    return {
        "key": work.key,
        "state": work.state.value,
        "reason": reason,
        "sentence": reason["sentence"] if reason else _plain_sentence(work),
        "queue_position": queue_position(work, scheduler) if work.state is State.WAITING else None,
        "expected_start_ms": scheduler.expected_start_ms(work.key, work.ask or work.key),
    }


def _plain_sentence(work: Work) -> str:
    match work.state:
        case State.RUNNING:
            return f"it runs on {work.node}"
        case State.WAITING:
            return "it has just arrived; the scheduler has not looked at it yet"
        case State.SUCCEEDED:
            return "it ended well"
        case State.FAILED if work.signal is not None:
            return f"it was ended by signal {work.signal}"
        case State.FAILED:
            return f"it ended with exit status {work.exit_code}"
        case _:
            return f"it is {work.state}"


def queue_position(work: Work, scheduler: Scheduler) -> int | None:
    """How many waiting works of its queue come before it (by priority, then by age), plus one."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    application = partition.applications.get(work.key) if partition else None
    if application is None:
        return None
    ask = application.asks.get(work.ask_key)
    if ask is None:
        return None
    before = sum(
        1
        for other in application.queue.applications.values()
        for one in other.asks.values()
        if one.pending and one.line_key < ask.line_key
    )
    return before + 1


def queue_view(queue: Queue, idle: Mapping[str, Book]) -> Plain:
    """A queue with those below it. `idle`: what idle work uses beside the books, by path."""
    headroom = queue.headroom()
    children = [queue_view(child, idle) for child in queue.children.values()]
    own = sum(app.pending_count for app in queue.applications.values())
    return {
        "path": queue.path,
        "leaf": queue.is_leaf,
        "state": queue.state.value.lower(),
        "max": dict(queue.max) if queue.max is not None else None,
        "guaranteed": dict(queue.guaranteed) if queue.guaranteed is not None else None,
        "allocated": pruned(queue.allocated),
        "idle": pruned(idle.get(queue.path, {})),
        "pending": pruned(queue.pending),
        "headroom": dict(sorted(headroom.items())) if headroom is not None else None,
        "priority": None if queue.reported == NO_PRIORITY else queue.reported,
        "running_apps": queue.running,
        "max_apps": queue.max_applications,
        "waiting": own + sum(child["waiting"] for child in children),
        "children": children,
    }


def queue_views(scheduler: Scheduler) -> list[Plain]:
    """The tree of each partition."""
    return [queue_view(part.root, use_by_queue(part)) for part in scheduler.cluster.partitions.values()]


def leaves(scheduler: Scheduler) -> list[str]:
    """The full paths of the leaves of the default partition."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    return [queue.path for queue in partition.root.walk() if queue.is_leaf] if partition else []


def node_view(node: Node) -> Plain:
    """A node."""
    return {
        "id": node.id,
        "capacity": pruned(node.total),
        "allocated": pruned(node.allocated),
        "free": {name: node.free.get(name, 0) for name in sorted(node.total)},
        "schedulable": node.schedulable,
        "attributes": dict(node.attributes),
        "taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.spec.taints],
        "running": len(node.allocations),
    }


def node_views(scheduler: Scheduler) -> list[Plain]:
    """Every node of every partition."""
    partitions = scheduler.cluster.partitions.values()
    return [node_view(node) for partition in partitions for node in partition.nodes.nodes.values()]


def partition_total(scheduler: Scheduler) -> dict[str, int]:
    """What the nodes of the default partition have together."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    return pruned(partition.nodes.total) if partition else {}
