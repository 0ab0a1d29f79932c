"""Changes of an array as a whole: how many of its parts may be at once, and its queue.

Decides what cannot be changed of one part alone. Never changes what each part has for itself (`changes` does).
Invariant: all parts of an array are in one queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairlead.core.model import events
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local import placing
from fairlead.local.callers import Caller, Rights
from fairlead.local.changes import Change, change, require_bounds, require_owner
from fairlead.local.job import Job
from fairlead.local.job_states import NOT_TOLD_TO_STOP, State
from fairlead.local.jobs import Jobs
from fairlead.local.selection import meant
from fairlead.policy.events.held import why_not_so_many
from fairlead.runtime import Refusal, Turn


def change_whole(jobs: Jobs, turn: Turn, caller: Caller, key: str, wanted: Change, why: str = "") -> tuple[Change, str]:
    """Change what an array has as a whole; what is left to change of each of its parts, and why the queue is refused.

    Raises `Refusal` before anything is changed.
    """
    found = meant(jobs, Rights(caller, turn.scheduler), key)
    array = jobs.arrays.get(found[0].application)
    if array is None:
        if wanted.at_once is not None:
            raise Refusal("invalid", f"job {key} is no array; only of parts there are so many at once", field="at_once")
        return wanted, ""
    require_owner(caller, found[0], wanted)
    for name, value in (("at_once", wanted.at_once), ("queue", wanted.queue)):
        if value is not None and key != array.key:
            said = f"{key} is part of array {array.key}; {name.replace('_', ' ')} is of all its parts"
            raise Refusal("conflict", f"{said}: change that of {array.key}", field=name)
    live = [job for job in found if not job.ended]
    if not live:
        raise Refusal("conflict", f"array {key} has ended already; `fairlead rerun {key}` submits it again")
    if wanted.at_once is not None:
        partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
        app = partition.applications.get(array.key)
        path = placing.full_path(partition, wanted.queue or "")
        short = why_not_so_many(partition, app, wanted.at_once, path) if app is not None else None
        if short is not None:
            said = f"array {array.key} cannot have so many at once: {short.sentence()}"
            raise Refusal("conflict", said, field="at_once")
    if wanted.queue is not None and (refused := _move(jobs, turn, caller, live, wanted, why)):
        return wanted, refused
    if wanted.at_once is not None:
        turn.event(events.SetAtOnce(array.key, wanted.at_once, caller.user, why))
    return replace(wanted, queue=None, at_once=None), ""


def _move(jobs: Jobs, turn: Turn, caller: Caller, live: Sequence[Job], wanted: Change, why: str) -> str:
    """Put all of an array into another queue, if that takes each of its parts as it will be then; why not, or nothing.

    One of them is changed in the same step as a job of its own is: what else is wanted of it may be why the queue takes
    it. Raises `Refusal`.
    """
    partition, rights = turn.scheduler.cluster.partitions[DEFAULT_PARTITION], Rights(caller, turn.scheduler)
    at_once = Change(
        queue=wanted.queue, resources=wanted.resources, time_limit_ms=wanted.time_limit_ms, priority=wanted.priority
    )
    alike = {(each.state, each.spec.resources, each.spec.time_limit_ms, each.priority): each for each in live}
    for each in alike.values():
        require_bounds(partition, rights, each, at_once, turn.now_ms)
    first = min(live, key=lambda each: (each.state is not State.WAITING, each.state not in NOT_TOLD_TO_STOP))
    return change(jobs, turn, caller, first.key, at_once, why)
