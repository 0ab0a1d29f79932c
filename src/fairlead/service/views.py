"""What the books say, as plain values for the outside.

Decides names and shapes of the answers of /api/v1. Never changes anything and never hands out a live object: called
between two turns, it copies what it shows. Invariant: every amount shown is the scheduler's own number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead import times
from fairlead.core.applications import NO_PRIORITY
from fairlead.core.idle import use_by_queue
from fairlead.core.reasons import AttemptHeldBack, BackedOff, Reason
from fairlead.core.resources import pruned
from fairlead.core.specs import DEFAULT_PARTITION
from fairlead.insight.verdict import why_stopped
from fairlead.local.job import Attempt, Job, State
from fairlead.local.whereabouts import fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.nodes import Node
    from fairlead.core.queues import Queue
    from fairlead.core.resources import Book
    from fairlead.local.history_records import JobSpec
    from fairlead.scheduler import Scheduler

Plain = dict[str, Any]


def job_row(job: Job, scheduler: Scheduler) -> Plain:
    """A job as a row of a list."""
    return {
        "key": job.key,
        "name": job.spec.name,
        "queue": job.queue,
        "user": job.spec.user,
        "priority": job.priority,
        "state": job.state.value,
        "node": job.node,
        "exit_code": job.exit_code,
        "reason": job_reason(job, scheduler),
        "submitted_at_ms": job.submitted_at_ms,
        "started_at_ms": job.started_at_ms,
        "ended_at_ms": job.ended_at_ms,
        "resources": job.spec.resources.as_dict(),
    }


def job_full(job: Job, scheduler: Scheduler) -> Plain:
    """Everything the books know about a job; of its environment only the names."""
    spec = job.spec
    return job_row(job, scheduler) | {
        "command": list(spec.command),
        "env": sorted(spec.env),
        "cwd": spec.cwd,
        "tags": dict(spec.tags),
        "labels": dict(spec.labels),
        **fields_of(spec.where),
        "idle": spec.idle,
        "priority_class": spec.priority_class,
        "retry": _retry(spec),
        "retry_due_ms": job.retry_due_ms if job.state is State.WAITING else None,
        "reserved": job.reserved and job.state is State.WAITING,
        "checkpoint_at_ms": job.checkpoint_at_ms,
        "past": [_attempt(each) for each in job.past],
        "grace_ms": spec.grace_ms,
        "time_limit_ms": spec.time_limit_ms,
        "pid": job.pid,
        "attempts": job.attempt,
        "signal": job.signal,
        "error": job.error,
        "cpu_ms": job.cpu_ms,
        "peak_memory_bytes": job.peak_memory_bytes,
        "gpus": list(job.gpus),
        "history": [{"at_ms": h.at_ms, "what": h.what, "detail": h.detail} for h in job.history],
    }


def _retry(spec: JobSpec) -> Plain | None:
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


def job_reason(job: Job, scheduler: Scheduler) -> Plain | None:
    """Why a job waits, stops, or ended otherwise than by itself; None where there is nothing to say."""
    if job.state is State.WAITING:
        reason = scheduler.why(job.key, job.ask_key)
        return _held_back(reason, job) if isinstance(reason, AttemptHeldBack) else waits_for(reason)
    if job.state in (State.STOPPING, State.EVICTED) and job.evict_cause and not job.cancelled_by:
        if job.note and not job.evicted_for:
            named = {"on_behalf_of": "", "cause": job.evict_cause, "rule": job.evict_rule}
            return {"code": "evicted", "sentence": job.note} | named
        told = "was stopped" if job.ended else "was told to stop"
        room = f" to make room for {job.evicted_for}" if job.evicted_for else ""
        return {
            "code": "evicted",
            "sentence": f"{told} by the scheduler{room}{why_stopped(job.evict_rule)}",
            "on_behalf_of": job.evicted_for,
            "cause": job.evict_cause,
            "rule": job.evict_rule,
        }
    if job.cancelled_by and job.state in (State.STOPPING, State.CANCELLED):
        return {"code": "cancelled", "sentence": f"cancelled by {job.cancelled_by}", "who": job.cancelled_by}
    if job.state is State.REJECTED:
        return {"code": job.refusal_code or "refused", "sentence": job.error, "text": job.error}
    if job.state is State.TIMED_OUT:
        limit = job.spec.time_limit_ms
        sentence = f"stopped after its time limit of {times.duration_exactly(limit or 0)}"
        return {"code": "timed-out", "sentence": sentence, "time_limit_ms": limit}
    if job.state is State.LOST:
        return {"code": "lost", "sentence": job.note or "it is gone, and how it ended could not be observed"}
    if job.error:
        return {"code": "not-started", "sentence": job.error}
    return {"code": "note", "sentence": job.note} if job.note else None


def waits_for(reason: Reason | None) -> Plain | None:
    """A reason to wait as plain values; a moment in it is said by this machine's clock."""
    if reason is None:
        return None
    said = reason.as_dict()
    if isinstance(reason, BackedOff | AttemptHeldBack):
        until_ms = reason.until_ms if isinstance(reason, BackedOff) else reason.due_ms
        said["sentence"] += f", until {times.moment(until_ms)}"
    return said


def _held_back(reason: AttemptHeldBack, job: Job) -> Plain:
    """When its next attempt enters, in the words of this machine's clock."""
    at = times.moment(reason.due_ms)
    last = f"; the last one {_ended(job.past[-1])}" if job.past else ""
    said = f"the next attempt ({reason.attempt} of at most {reason.most}) enters at {at}, after its back-off{last}"
    return reason.as_dict() | {"sentence": said}


def _ended(over: Attempt) -> str:
    """How an attempt ended, without saying its state twice."""
    state = over.state.value
    return f"was {over.how}" if over.how.startswith(state) else f"{state}: {over.how}"


def job_why(job: Job, scheduler: Scheduler) -> Plain:
    """Why a job is where it is, as one answer."""
    reason = job_reason(job, scheduler)
    return {
        "key": job.key,
        "state": job.state.value,
        "reason": reason,
        "sentence": reason["sentence"] if reason else _plain_sentence(job),
        "queue_position": queue_position(job, scheduler) if job.state is State.WAITING else None,
        "expected_start_ms": scheduler.expected_start_ms(job.key, job.ask or job.key),
    }


def _plain_sentence(job: Job) -> str:
    match job.state:
        case State.RUNNING:
            return f"it runs on {job.node}"
        case State.WAITING:
            return "it has just arrived; the scheduler has not looked at it yet"
        case State.SUCCEEDED:
            return "it ended well"
        case State.FAILED if job.signal is not None:
            return f"it was ended by signal {job.signal}"
        case State.FAILED:
            return f"it ended with exit status {job.exit_code}"
        case _:
            return f"it is {job.state}"


def queue_position(job: Job, scheduler: Scheduler) -> int | None:
    """How many waiting jobs of its queue come before it (by priority, then by age), plus one."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    application = partition.applications.get(job.key) if partition else None
    if application is None:
        return None
    ask = application.asks.get(job.ask_key)
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
