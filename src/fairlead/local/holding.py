"""What people ask of the conditions of a job that waits: hold it, release it, another time, other jobs to wait for.

Decides who may give such an order and when it makes no sense. Never decides when conditions are met. Invariant: what
somebody other than its owner has put on hold, its owner does not release.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.core.model import events
from fairlead.core.model.conditions import MET, Conditions
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local import dependencies
from fairlead.local.callers import Caller, Rights
from fairlead.local.job import Job
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.local.selection import visible
from fairlead.policy.events.held import why_no_room
from fairlead.runtime import Refusal, Turn
from fairlead.scheduler import Scheduler


def conditions_now(scheduler: Scheduler, job: Job) -> Conditions:
    """What a job waits for before it is in line."""
    held = dependencies.held_asks(scheduler).get(job.application, job.ask_key)
    return held.conditions if held is not None else MET


def hold(jobs: Jobs, turn: Turn, caller: Caller, key: str, why: str = "") -> None:
    """Keep a job that waits out of the line until it is released. Who is not its owner holds it against its owner."""
    job = _waiting(jobs, turn, caller, key, "held")
    now = conditions_now(turn.scheduler, job)
    if now.held_by and caller.user in (job.spec.user, now.held_by):
        return
    _set(turn, job, replace(now, held_by=caller.user), caller, why)


def release(jobs: Jobs, turn: Turn, caller: Caller, key: str, why: str = "") -> None:
    """Let a job that is on hold have its turn as soon as nothing else is in the way."""
    job = _waiting(jobs, turn, caller, key, "released")
    now = conditions_now(turn.scheduler, job)
    if not now.held_by:
        waits = f"; it {now.reason().sentence()}" if now != MET else ""
        raise Refusal("conflict", f"job {key} is not on hold{waits}")
    may = now.held_by in (job.spec.user, caller.user) or Rights(caller, turn.scheduler).administers(job.queue)
    if not may:
        said = f"job {key} was put on hold by {now.held_by}; ask {now.held_by} or an administrator of {job.queue}"
        raise Refusal("forbidden", said)
    new = replace(now, held_by="")
    require_room(turn, job, new)
    _set(turn, job, new, caller, why)


def require_room(
    turn: Turn, job: Job, conditions: Conditions, resources: Resources | None = None, path: str = ""
) -> None:
    """Raises `Refusal` where a job that enters the line under these conditions is refused by a quota: it would be over.

    `resources`, `path`: what it asks for by then, and its queue; otherwise those that it has.
    """
    partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
    held = partition.held_asks.get(job.application, job.ask_key)
    if held is None or not conditions.met(turn.now_ms):
        return
    spec = held.spec if resources is None else replace(held.spec, resources=resources)
    short = why_no_room(partition, partition.applications[job.application], spec, path)
    if short is not None:
        raise Refusal("conflict", f"job {job.key} stays out of line, for it would be refused: {short.sentence()}")


def _waiting(jobs: Jobs, turn: Turn, caller: Caller, key: str, done: str) -> Job:
    job = visible(jobs, Rights(caller, turn.scheduler), key)
    if job.state is not State.WAITING:
        raise Refusal("conflict", f"job {key} is {job.state}; only a job that waits can be {done}")
    return job


def _set(turn: Turn, job: Job, conditions: Conditions, caller: Caller, why: str) -> None:
    turn.event(events.SetConditions(job.application, job.ask_key, conditions, caller.user, why))
