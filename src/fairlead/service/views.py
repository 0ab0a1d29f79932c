"""What the books say, in the shapes of the wire.

Never decides a name: `fairlead.wire` has them. Never changes anything and never hands out a live object: called
between two turns, it copies what it shows. Invariant: every amount shown is the scheduler's own number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from fairlead import times
from fairlead.core.books.applications import NO_PRIORITY
from fairlead.core.model.conditions import Awaited
from fairlead.core.model.reasons import AttemptHeldBack, BackedOff, BeginsAt, Reason, WindowAhead
from fairlead.core.model.resources import pruned
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.insight import line
from fairlead.insight.by_job import by_job
from fairlead.insight.verdict import shown
from fairlead.local.history_records import fields_of
from fairlead.local.holding import conditions_now
from fairlead.local.job import Attempt, Job
from fairlead.local.job_bounds import stated
from fairlead.local.job_states import State
from fairlead.wire import cluster
from fairlead.wire import jobs as wire
from fairlead.wire.fields import Amounts, with_cpu
from fairlead.wire.notices import Notice
from fairlead.wire.notices import shown as shown_to
from fairlead.wire.stopped import in_brackets
from fairlead.wire.verdicts import Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.books.asks import Ask
    from fairlead.core.books.node import Node
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.resources import Book
    from fairlead.local.history_records import JobSpec
    from fairlead.scheduler import Scheduler


def job_row(job: Job, scheduler: Scheduler) -> wire.Job:
    """A job as a row of a list."""
    return wire.Job(**_row(job, scheduler))


def _row(job: Job, scheduler: Scheduler) -> dict[str, Any]:
    spec = job.spec
    as_they_are = {name: getattr(spec, name) for name in wire.Job.__struct_fields__ if hasattr(spec, name)}
    return as_they_are | {
        "key": job.key,
        "queue": job.queue,
        "priority": job.priority,
        "state": job.state.value,
        "node": job.node,
        "exit_code": job.exit_code,
        "signal": job.signal,
        "suspended_ms": job.suspended_ms,
        "reason": job_reason(job, scheduler),
        "submitted_at_ms": job.submitted_at_ms,
        "started_at_ms": job.started_at_ms,
        "ended_at_ms": job.ended_at_ms,
        "suspended_at_ms": job.suspended_at_ms if job.suspended_by else None,
        "cpu_ms": job.cpu_ms,
        "peak_memory_bytes": job.peak_memory_bytes,
        "resources": with_cpu(stated(job.spec.resources)),
    }


def job_full(job: Job, scheduler: Scheduler) -> wire.JobDetails:
    """Everything the books know about a job; of its environment only the names."""
    spec, conditions = job.spec, conditions_now(scheduler, job)
    return wire.JobDetails(
        **_row(job, scheduler),
        held_by=conditions.held_by,
        begin_at_ms=conditions.begin_ms,
        after=[wire.Dependency(key=each.application, awaited=Awaited(each.awaited).value) for each in conditions.after],
        rerun_of=spec.rerun_of,
        on_never="cancel" if spec.cancel_never else "wait",
        **fields_of(spec.where),
        **_streams(job),
        terminal=spec.terminal,
        notify=[Notice(to=shown_to(each.to), on=list(each.on)) for each in spec.notify],  # type: ignore[arg-type]
        command=list(spec.command),
        env=sorted(spec.env),
        cwd=spec.cwd,
        tags=dict(spec.tags),
        labels=dict(spec.labels),
        idle=spec.idle,
        priority_class=spec.priority_class,
        retry=_retry(spec),
        retry_due_ms=job.retry_due_ms if job.state is State.WAITING else None,
        reserved=job.reserved and job.state is State.WAITING,
        checkpoint_at_ms=job.checkpoint_at_ms,
        past=[_attempt(each) for each in job.past],
        grace_ms=spec.grace_ms,
        limit_signal=spec.limit_signal,
        pid=job.pid,
        attempts=job.attempt,
        error=job.error,
        gpus=list(job.gpus),
        history=msgspec.convert(list(job.history), list[wire.HistoryItem], from_attributes=True),
    )


def _streams(job: Job) -> dict[str, Any]:
    """Its own files: those of its newest attempt, else those that it would have now."""
    files = job.streams if job.attempt else job.files()
    return {
        "stdin": files.stdin,
        "stdout": files.stdout or None,
        "stderr": files.stderr or None,
        "own_files": [name for name in ("stdout", "stderr") if getattr(files, name)],
        "open_mode": "append" if files.append else "truncate",
        "umask": f"{files.umask:03o}",
    }


def _retry(spec: JobSpec) -> wire.Retry | None:
    return msgspec.convert(spec.retry, wire.Retry, from_attributes=True) if spec.retry is not None else None


def _attempt(over: Attempt) -> wire.PastAttempt:
    """An attempt that is over."""
    return wire.PastAttempt(
        attempt=over.number,
        state=over.state.value,
        node=over.node,
        started_at_ms=over.started_at_ms,
        ended_at_ms=over.ended_at_ms,
        exit_code=over.exit_code,
        signal=over.signal,
        cpu_ms=over.cpu_ms,
        peak_memory_bytes=over.peak_memory_bytes,
        how=over.how,
        on_behalf_of=over.evicted_for,
        rule=over.evict_rule,
        suspended_ms=over.suspended_ms,
    )


def job_reason(job: Job, scheduler: Scheduler) -> wire.Reason | None:
    """Why a job waits, stops, or ended otherwise than by itself; None where there is nothing to say."""
    if job.state is State.WAITING:
        reason = scheduler.why(job.application, job.ask_key)
        return _held_back(reason, job) if isinstance(reason, AttemptHeldBack) else waits_for(reason)
    if job.state is State.SUSPENDED:
        by = job.suspended_by
        return wire.Reason(code="suspended", sentence=f"was suspended by {by}", values={"who": by})
    if job.state in (State.STOPPING, State.EVICTED) and job.evict_cause and not job.cancelled_by:
        named = {"on_behalf_of": job.evicted_for, "cause": job.evict_cause, "rule": job.evict_rule}
        if job.note and not job.evicted_for:
            return wire.Reason(code="evicted", sentence=job.note, values=named)
        told = "was stopped" if job.ended else "was told to stop"
        room = f" to make room for {job.evicted_for}" if job.evicted_for else ""
        said = f"{told} by the scheduler{room}{in_brackets(job.evict_rule)}"
        return wire.Reason(code="evicted", sentence=said, values=named)
    if job.cancelled_by and job.state in (State.STOPPING, State.CANCELLED):
        by = job.cancelled_by
        why = f": {job.note}" if job.note else ""
        return wire.Reason(code="cancelled", sentence=f"cancelled by {by}{why}", values={"who": by})
    if job.state is State.REJECTED:
        return wire.Reason(code=job.refusal_code or "refused", sentence=job.error)
    if job.state is State.TIMED_OUT:
        limit = job.spec.time_limit_ms
        sentence = f"stopped after its time limit of {times.duration_exactly(limit or 0)}"
        return wire.Reason(code="timed-out", sentence=sentence, values={"time_limit_ms": limit})
    if job.state is State.LOST:
        return wire.Reason(code="lost", sentence=job.note or "it is gone, and how it ended could not be observed")
    if job.error:
        return wire.Reason(code="not-started", sentence=job.error)
    return wire.Reason(code="note", sentence=job.note) if job.note else None


def waits_for(reason: Reason | None) -> wire.Reason | None:
    """A reason to wait; a moment in it is said by this machine's clock."""
    said = by_job(shown(reason))
    if said is not None and isinstance(reason, WindowAhead):
        when = f"{times.moment(reason.starts_ms)} to {times.moment(reason.ends_ms)}"
        advice = "" if reason.is_open else "; with a shorter time limit it may start before (fairlead update)"
        return replace(said, sentence=f"{said.sentence}, {when}{advice}")
    if said is None or not isinstance(reason, BackedOff | AttemptHeldBack | BeginsAt):
        return said
    until_ms = reason.until_ms if isinstance(reason, BackedOff) else reason.due_ms
    return replace(said, sentence=f"{said.sentence}, until {times.moment(until_ms)}")


def _held_back(reason: AttemptHeldBack, job: Job) -> wire.Reason | None:
    """When its next attempt enters, in the words of this machine's clock."""
    at = times.moment(reason.due_ms)
    last = f"; the last one {_ended(job.past[-1])}" if job.past else ""
    said = f"the next attempt ({reason.attempt} of at most {reason.most}) enters at {at}, after its back-off{last}"
    return wire.reason(reason.as_dict() | {"sentence": said})


def _ended(over: Attempt) -> str:
    """How an attempt ended, without saying its state twice."""
    state = over.state.value
    return f"was {over.how}" if over.how.startswith(state) else f"{state}: {over.how}"


def job_why(job: Job, scheduler: Scheduler) -> Why:
    """Why a job is where it is, without the verdict."""
    reason = job_reason(job, scheduler)
    return Why(
        key=job.key,
        state=job.state.value,
        reason=reason,
        sentence=reason.sentence if reason else plain_sentence(job),
        queue_position=queue_position(job, scheduler) if job.state is State.WAITING else None,
        expected_start_ms=scheduler.expected_start_ms(job.application, job.ask_key),
    )


def plain_sentence(job: Job) -> str:
    """What is to be said of a job without a reason."""
    match job.state:
        case State.RUNNING if job.started_at_ms is None:
            stuck = "if that takes long, `fairlead doctor` says what is wrong with the machine"
            return f"it has its place on {job.node}, but its command has not begun yet; {stuck}"
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
    """Its place in line, from 1; None when it is not in line."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    application = partition.applications.get(job.application) if partition else None
    return place_in_line(application.asks.get(job.ask_key) if application is not None else None)


def place_in_line(ask: Ask | None) -> int | None:
    """How many waiting asks of its queue come before it, plus one; None: it does not wait."""
    return 1 + len(line.before(ask)) if ask is not None and ask.pending else None


def queue_view(
    queue: Queue, partition: str, idle: Mapping[str, Book], waits: Mapping[Queue, tuple[Book, int]]
) -> cluster.Queue:
    """A queue with those below it. `idle`: what idle work uses beside the books, by path; `waits`: what waits."""
    headroom, (pending, waiting) = queue.headroom(), waits[queue]
    return cluster.Queue(
        partition=partition,
        path=queue.path,
        leaf=queue.is_leaf,
        state=queue.state.value.lower(),
        max=with_cpu(queue.max),
        guaranteed=with_cpu(queue.guaranteed),
        allocated=with_cpu(pruned(queue.allocated)),
        idle=with_cpu(pruned(idle.get(queue.path, {}))),
        pending=with_cpu(pruned(pending)),
        headroom=with_cpu(dict(sorted(headroom.items()))) if headroom is not None else None,
        priority=None if queue.reported == NO_PRIORITY else queue.reported,
        running_applications=queue.running,
        max_applications=queue.max_applications,
        waiting=waiting,
        children=[queue_view(child, partition, idle, waits) for child in queue.children.values()],
    )


def queue_views(scheduler: Scheduler) -> list[cluster.Queue]:
    """The tree of each partition."""
    parts = scheduler.cluster.partitions.values()
    return [queue_view(part.root, part.name, part.idle.use_by_queue(), line.pending(part)) for part in parts]


def leaves(scheduler: Scheduler) -> list[str]:
    """The full paths of the leaves of the default partition."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    return [queue.path for queue in partition.root.walk() if queue.is_leaf] if partition else []


def node_view(node: Node) -> cluster.Node:
    """A node; where more runs than it has nothing is free."""
    taints = node.spec.taints
    return cluster.Node(
        id=node.id,
        capacity=with_cpu(pruned(node.total)),
        allocated=with_cpu(pruned(node.allocated)),
        free=with_cpu({name: max(node.free.get(name, 0), 0) for name in sorted(node.total)}),
        schedulable=node.takes_new,
        attributes=dict(node.spec.attributes),
        taints=msgspec.convert(list(taints), list[cluster.NodeTaint], from_attributes=True) if taints else [],
        running=len(node.allocations),
    )


def nodes(scheduler: Scheduler) -> list[Node]:
    """Every node of every partition, as the books have it."""
    return [node for partition in scheduler.cluster.partitions.values() for node in partition.nodes.nodes.values()]


def partition_total(scheduler: Scheduler) -> Amounts:
    """What the nodes of the default partition have together."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    return with_cpu(pruned(partition.nodes.total)) if partition else {}
