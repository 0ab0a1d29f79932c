"""Changes of a job that is there: what it asks for, its time limit, priority, queue, name, and what it waits for.

Decides who may change what in which state, and refuses a change before any part of it is entered; only the queue may be
refused by the scheduler, and comes first. Never decides who runs. Invariant: the time limit of what runs is raised by
those alone who administer its queue, and how much it has does not change; what is executed its owner alone changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.model import events
from fairlead.core.model.conditions import Conditions, Dependency
from fairlead.core.model.decisions import MoveRejected
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local import dependencies, job_bounds, placing
from fairlead.local.arrays import part_of
from fairlead.local.callers import Caller, Rights
from fairlead.local.history_records import JobChanged, JobSpec, JobSuspended
from fairlead.local.holding import conditions_now, require_room
from fairlead.local.job import CHANGEABLE, Job
from fairlead.local.job_states import NOT_TOLD_TO_STOP, ON_THE_MACHINE, State
from fairlead.local.jobs import Jobs
from fairlead.local.selection import visible
from fairlead.policy.events.orders import why_not_change
from fairlead.runtime import Refusal, Turn
from fairlead.times import duration_exactly

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be otherwise; None: that stays as it is."""

    priority: int | None = None
    queue: str | None = None
    name: str | None = None
    resources: Mapping[str, int] | None = None
    """These amounts; 0: of that nothing any more. All others stay."""
    time_limit_ms: int | None = None
    """0: none any more."""
    begin_ms: int | None = None
    """0: at once."""
    after: tuple[Dependency, ...] | None = None
    """Instead of all that it waits for of others."""
    cancel_never: bool | None = None
    command: tuple[str, ...] | None = None
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    """These variables; all others stay."""
    unset_env: tuple[str, ...] = ()
    tags: Mapping[str, str] | None = None
    """These tags; all others stay."""
    at_once: int | None = None
    """Of an array as a whole (`array_changes`)."""


def change(jobs: Jobs, turn: Turn, caller: Caller, key: str, wanted: Change, why: str = "") -> str:
    """Change a job; why it cannot be put into the other queue, or nothing. Where that is refused all stays as it is."""
    rights = Rights(caller, turn.scheduler)
    job = visible(jobs, rights, key)
    if job.ended:
        raise Refusal("conflict", f"job {key} has ended already ({job.state}); `fairlead rerun {key}` submits it again")
    require_owner(caller, job, wanted)
    _only_while_it_waits(job, wanted)
    spec = _spec(rights, job, wanted, turn.now_ms)
    limit_ms = None if spec.time_limit_ms is None else spec.time_limit_ms + job.suspended_ms
    order = events.ChangeAsk(job.application, job.ask_key, spec.resources, limit_ms, caller.user, why)
    is_otherwise = (spec.resources, spec.time_limit_ms) != (job.spec.resources, job.spec.time_limit_ms)
    partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
    if not spec.resources:
        nothing = f"job {key} would ask for nothing; let it ask for a little, such as cpu 0.1"
        raise Refusal("conflict", nothing, field="resources")
    path = placing.full_path(partition, wanted.queue or "")
    if is_otherwise and (refused := why_not_change(partition, order, path)) is not None:
        raise Refusal("conflict", f"job {key} stays as it is: {refused.sentence()}", field="resources")
    conditions = _conditions(jobs, turn, rights, job, wanted)
    if conditions is not None:
        require_room(turn, job, conditions, spec.resources, path)
    target = _target(partition, rights, job, wanted.queue) if wanted.queue is not None else None
    _require_bounds(partition, rights, job, spec, wanted)
    if target is not None and (moved := _move(jobs, turn, rights, job, target)):
        return moved
    if spec != job.spec:
        said = {name: getattr(spec, name) for name in CHANGEABLE}
        turn.note(JobChanged(key=key, who=caller.user, why=why, **said))
    if is_otherwise:
        turn.event(order)
    if conditions is not None:
        turn.event(events.SetConditions(job.application, job.ask_key, conditions, caller.user, why))
    dependencies.cancel_if_never(jobs, turn, key)
    if wanted.priority is not None and job.priority != wanted.priority and job.state is State.WAITING:
        turn.event(events.SetPriority(job.application, job.ask_key, wanted.priority, who=caller.user, why=why))
    return ""


def suspend(jobs: Jobs, turn: Turn, caller: Caller, key: str, *, on: bool, why: str = "") -> None:
    """Let a job that runs stand still, or go on. It keeps its room; when it ends nobody knows meanwhile.

    What somebody else than its owner has suspended, its owner does not resume.
    """
    rights = Rights(caller, turn.scheduler)
    job = visible(jobs, rights, key)
    wanted, other = (State.RUNNING, "running") if on else (State.SUSPENDED, "suspended")
    if job.state is not wanted:
        advice = "; `fairlead hold` keeps what waits from starting" if on and job.state is State.WAITING else ""
        done = "suspended" if on else "resumed"
        raise Refusal("conflict", f"job {key} is {job.state}; only a job that is {other} can be {done}{advice}")
    by = job.suspended_by
    if not on and by not in (job.spec.user, caller.user) and not rights.administers(job.queue):
        raise Refusal("forbidden", f"job {key} was suspended by {by}; ask {by} or an administrator of {job.queue}")
    turn.note(JobSuspended(key=key, who=caller.user, on=on, why=why))
    if job.spec.time_limit_ms is not None:
        turn.event(events.ChangeAsk(job.application, job.ask_key, job.spec.resources, job.limit_ms, caller.user, why))


def require_owner(caller: Caller, job: Job, wanted: Change) -> None:
    """Raises `Refusal` where somebody else would say what is executed: it runs with the rights of its owner."""
    said = {"command": wanted.command, "cwd": wanted.cwd, "env": wanted.env, "unset_env": wanted.unset_env or None}
    field = next((name for name, value in said.items() if value is not None), None)
    if field is not None and not caller.owns(job.spec):
        user = job.spec.user
        only = f"only {user} changes its command, directory and environment"
        raise Refusal("forbidden", f"job {job.key} is {user}'s and runs as {user}: {only}", field=field)


def _only_while_it_waits(job: Job, wanted: Change) -> None:
    """Raises `Refusal` for what cannot be changed in the state that the job is in."""
    if job.state is State.WAITING:
        return
    if job.state is State.SUSPENDED and wanted.time_limit_ms is not None:
        said = f"job {job.key} is suspended, and its time stands still; `fairlead resume {job.key}` first"
        raise Refusal("conflict", said, field="time_limit_ms")
    spec = job.spec
    # What is so already is no change: a request that is sent again may find that the first one let the job start.
    for name, what, value, now in (
        ("priority", "the priority", wanted.priority, job.priority),
        ("resources", "what it asks for", wanted.resources, {r: spec.resources[r] for r in wanted.resources or ()}),
        ("begin_at_ms", "when it begins", wanted.begin_ms, None),
        ("after", "what it waits for", wanted.after, None),
        ("command", "its command", wanted.command, spec.command),
        ("cwd", "its directory", wanted.cwd, spec.cwd),
        ("env", "its environment", wanted.env, {n: spec.env.get(n) for n in wanted.env or ()}),
        ("env", "its environment", wanted.unset_env or None, None),
    ):
        if value is not None and value != now:
            said = f"job {job.key} is {job.state}; {what} can only be changed while it waits"
            raise Refusal("conflict", said, field=name)


def _spec(rights: Rights, job: Job, wanted: Change, now_ms: int) -> JobSpec:
    """The job as it is wanted. Raises `Refusal`."""
    spec = job.spec
    resources = spec.resources
    if wanted.resources is not None:
        amounts = {**resources.as_dict(), **wanted.resources}
        resources = Resources({name: amount for name, amount in amounts.items() if amount})
    limit_ms = spec.time_limit_ms
    if wanted.time_limit_ms is not None:
        limit_ms = wanted.time_limit_ms or None
        if job.state in ON_THE_MACHINE:
            _may_run_for(rights, job, limit_ms, now_ms)
    return replace(
        spec,
        name=spec.name if wanted.name is None else wanted.name,
        resources=resources,
        time_limit_ms=limit_ms,
        cancel_never=spec.cancel_never if wanted.cancel_never is None else wanted.cancel_never,
        command=_command(job, wanted),
        cwd=spec.cwd if wanted.cwd is None else wanted.cwd,
        env=_environment(job, wanted),
        tags={**spec.tags, **(wanted.tags or {})},
    )


def _command(job: Job, wanted: Change) -> tuple[str, ...]:
    if wanted.command is not None and job.spec.is_script:
        said = f"job {job.key} runs a script that is kept with it; cancel it, and submit the script as it is now"
        raise Refusal("conflict", said, field="command")
    return job.spec.command if wanted.command is None else wanted.command


def _environment(job: Job, wanted: Change) -> Mapping[str, str]:
    if missing := [name for name in wanted.unset_env if name not in job.spec.env]:
        has = ", ".join(sorted(job.spec.env)) or "none"
        raise Refusal("invalid", f"job {job.key} has no variable {missing[0]}; it has {has}", field="unset_env")
    unset = frozenset(wanted.unset_env)
    kept = {name: value for name, value in job.spec.env.items() if name not in unset}
    return {**kept, **(wanted.env or {})}


def require_bounds(partition: Partition, rights: Rights, job: Job, wanted: Change, now_ms: int) -> None:
    """Raises `Refusal` if a job would break a bound of its queue when what makes sense of this for it has been done."""
    try:
        _only_while_it_waits(job, wanted)
        spec = _spec(rights, job, wanted, now_ms)
    except Refusal:
        spec, wanted = job.spec, Change(queue=wanted.queue)
    _require_bounds(partition, rights, job, spec, wanted)


def _require_bounds(partition: Partition, rights: Rights, job: Job, spec: JobSpec, wanted: Change) -> None:
    """Raises `Refusal` if the job would break a bound of its queue that it does not break as it is."""
    path = job.queue if wanted.queue is None else placing.full_path(partition, wanted.queue)
    priority = job.priority if wanted.priority is None else wanted.priority
    before = {each.sentence for each in _broken(partition, rights, job.spec, job.priority, job.queue)}
    for each in _broken(partition, rights, spec, priority, path):
        if each.sentence not in before:
            field = "queue" if path != job.queue else _FIELDS.get(each.code, "queue")
            raise Refusal("invalid", each.sentence, field=field)


def require_taken(jobs: Jobs, partition: Partition, rights: Rights, job: Job, path: str) -> None:
    """Raises `Refusal` where what a queue says of its jobs, or how many it takes, keeps this one from going there."""
    _require_bounds(partition, rights, job, job.spec, Change(queue=path))
    if path != job.queue:
        _require_count(jobs, partition, job, path)


_FIELDS = {"time-limit-above-max": "time_limit_ms", "memory-above-max": "resources", job_bounds.PRIORITY: "priority"}


def _broken(partition: Partition, rights: Rights, spec: JobSpec, priority: int, path: str) -> list[job_bounds.Broken]:
    # A priority that is not the one that it came with is not that of its class.
    named = spec.priority_class if priority == spec.priority else ""
    asked = replace(spec, priority=priority, priority_class=named)
    return job_bounds.broken(
        asked, job_bounds.properties_of(partition, path), path, administers=rights.administers(path)
    )


def _may_run_for(rights: Rights, job: Job, limit_ms: int | None, now_ms: int) -> None:
    """Raises `Refusal` where a job that runs may not have this time limit, or would be over at once."""
    old_ms = job.spec.time_limit_ms
    is_longer = old_ms is not None and (limit_ms is None or limit_ms > old_ms)
    if is_longer and not rights.administers(job.queue):
        raise Refusal(
            "forbidden",
            f"job {job.key} runs, and others count on its end: only administrators of {job.queue} raise its "
            "time limit; ask one of them, or lower it",
            field="time_limit_ms",
        )
    # It started by the machine's clock, which may have been set back; it got its place by the service's, before it did.
    begun_ms = max(job.started_at_ms or now_ms, job.allocated_at_ms or 0)
    ran_ms = now_ms - begun_ms - job.suspended_ms
    if limit_ms is not None and limit_ms <= ran_ms:
        raise Refusal(
            "conflict",
            f"job {job.key} has run for {duration_exactly(ran_ms // 1000 * 1000)} already, so that it would be over at "
            f"once; `fairlead cancel {job.key}` ends it",
            field="time_limit_ms",
        )


def _conditions(jobs: Jobs, turn: Turn, rights: Rights, job: Job, wanted: Change) -> Conditions | None:
    """What it waits for from now on; None: as before. Raises `Refusal`."""
    if wanted.begin_ms is None and wanted.after is None:
        return None
    now = new = conditions_now(turn.scheduler, job)
    if wanted.begin_ms is not None:
        new = replace(new, begin_ms=wanted.begin_ms)
    if wanted.after is not None:
        meant = replace(job.spec, after=wanted.after)
        if wrong := dependencies.unknown(jobs, rights, meant):
            raise wrong.refusal("after")
        after = part_of(meant, job.key).after
        if way := dependencies.circle(jobs, turn.scheduler, job.key, after):
            said = f"nothing in a circle ever runs, and this would be one: {' waits for '.join(way)}"
            raise Refusal("conflict", said, field="after")
        new = dependencies.after_all(jobs, replace(new, after=after)) or Conditions()
    return new if new != now else None


def _require_count(jobs: Jobs, partition: Partition, job: Job, path: str) -> None:
    """Raises `Refusal` where this queue, or one above it, would have more jobs than it may."""
    uid, moves = job.spec.uid, sum(not each.ended for each in jobs.of(job.application))
    for bound in job_bounds.count_bounds(partition, path):
        if bound.counts(job.queue, uid, uid):
            continue  # It counts there already.
        there = sum(bound.counts(each.queue, each.spec.uid, uid) for each in jobs.live())
        if there + moves > bound.most:
            raise Refusal("too-many", bound.sentence(there, moves, "move"), field="queue")


def _target(partition: Partition, rights: Rights, job: Job, queue: str) -> Queue | None:
    """The queue that a job may be moved to; None: it is in that one. Raises `Refusal`."""
    if job.state not in (State.WAITING, *NOT_TOLD_TO_STOP):
        raise Refusal("conflict", f"job {job.key} is {job.state}; only waiting and running jobs can be moved")
    path = placing.full_path(partition, queue)
    target = partition.root.find(path)
    if target is None:
        raise Refusal("invalid", placing.no_queue(partition, queue, job.spec.user, job.spec.groups), field="queue")
    if target.path == job.queue:
        return None
    if not rights.may_move_to(job, target):
        raise Refusal(
            "forbidden",
            f"{job.spec.user} may not submit to {target.path}, and {rights.caller.user} does not administer it; "
            f"ask an administrator of that queue to move job {job.key}",
            field="queue",
        )
    return target


def _move(jobs: Jobs, turn: Turn, rights: Rights, job: Job, target: Queue) -> str:
    """Put a job into another queue; why the scheduler leaves it where it is, or nothing."""
    _require_count(jobs, turn.scheduler.cluster.partitions[DEFAULT_PARTITION], job, target.path)
    for decision in turn.event(events.MoveApplication(job.application, target.path, rights.caller.user)):
        if isinstance(decision, MoveRejected):
            return f"job {job.key} stays in {job.queue}: {decision.reason.sentence()}"
    return ""
