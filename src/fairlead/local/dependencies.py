"""Dependencies: what the start and the end of a job mean for the jobs that wait for it.

Decides how the end of a job is called (well or not), and enters what follows for those that wait for it, in the same
turn. Never decides when conditions are met (`core.model.conditions` does). Invariant: after each turn no job waits for
what has come about, or can never come about, in a job of the book.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.core.model import events
from fairlead.core.model.conditions import Conditions, Dependency, Outcome
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local.history_records import JobCancelRequested, JobSpec
from fairlead.local.job import Job, State
from fairlead.policy.events.held import following

if TYPE_CHECKING:
    from fairlead.core.books.held_asks import HeldAsks
    from fairlead.local.callers import Rights
    from fairlead.local.jobs import Jobs
    from fairlead.runtime import Turn
    from fairlead.scheduler import Scheduler

BY_ITSELF = "the service"
"""Who cancels what can never run."""


def held_asks(scheduler: Scheduler) -> HeldAsks:
    """What is not in line yet on this machine."""
    return scheduler.cluster.partitions[DEFAULT_PARTITION].held_asks


def outcome_of(job: Job) -> Outcome | None:
    """What others that wait for this job are told; None: nothing yet."""
    if job.ended:
        return Outcome.OK if job.state is State.SUCCEEDED else Outcome.NOT_OK
    return Outcome.STARTED if job.past or job.started_at_ms is not None else None


def how_it_ended(job: Job) -> str:
    """As part of a sentence that begins with the job: `failed`, `was cancelled`."""
    return {
        State.SUCCEEDED: "ended well",
        State.FAILED: "failed",
        State.LOST: "was lost",
        State.TIMED_OUT: "ran into its time limit",
    }.get(job.state, f"was {job.state}")


def conditions_of(jobs: Jobs, spec: JobSpec) -> Conditions | None:
    """The conditions under which a job is entered: those that are met already are left out; None: there are none."""
    return after_all(jobs, Conditions(held_by=spec.user if spec.hold else "", begin_ms=spec.begin_ms, after=spec.after))


def after_all(jobs: Jobs, conditions: Conditions) -> Conditions | None:
    """What is left of conditions when what the book knows already is counted; None: nothing."""
    for key in dict.fromkeys(each.application for each in conditions.after):
        job = jobs.get(key)
        if job is None:
            conditions = conditions.when(key, Outcome.NOT_OK, "has left the books since")
        elif (outcome := outcome_of(job)) is not None:
            conditions = conditions.when(key, outcome, how_it_ended(job))
    return conditions if conditions != Conditions() else None


def unknown(jobs: Jobs, rights: Rights, after: Iterable[Dependency]) -> str:
    """What is wrong with a dependency on what is no job, or none that the caller may see; else nothing."""
    for each in after:
        job = jobs.get(each.application)
        if job is None or not rights.may_act(job):
            return f"there is no job {each.application!r} to wait for; `fairlead ls --all` shows yours"
    return ""


def settle(jobs: Jobs, turn: Turn) -> None:
    """Enter what the starts and ends of this turn mean for others; what is cancelled by that counts, too."""
    while jobs.news:
        key = jobs.news.pop(0)
        job = jobs.get(key)
        outcome = outcome_of(job) if job is not None else None
        if job is None or outcome is None:
            continue
        partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
        for event in following(partition, key, outcome, how_it_ended(job)):
            turn.event(event)
            cancel_if_never(jobs, turn, event.application)


def cancel_if_never(jobs: Jobs, turn: Turn, key: str) -> None:
    """Take a job back that can never run, if it was submitted so."""
    job = jobs.get(key)
    if job is None or not job.spec.cancel_never or job.state is not State.WAITING:
        return
    held = held_asks(turn.scheduler).get(key, job.ask_key)
    if held is None or not any(each.never for each in held.conditions.after):
        return
    why = held.conditions.reason().sentence()
    turn.note(JobCancelRequested(key=key, who=BY_ITSELF, why=why))
    turn.event(events.Release(application=key, key=job.ask_key, cause=events.Cause.STOPPED_BY_RM))


def circle(scheduler: Scheduler, key: str, after: Iterable[Dependency]) -> list[str]:
    """The way from `key` over jobs that wait for each other back to it, if it waited for these; else nothing."""
    held = held_asks(scheduler)
    waits_for_it: dict[str, str] = {}
    todo = [(each.application, key) for each in after]
    while todo:
        found, by = todo.pop()
        if found == key:
            way = [by]
            while way[-1] != key:
                way.append(waits_for_it[way[-1]])
            return [*reversed(way), key]
        if found not in waits_for_it:
            waits_for_it[found] = by
            todo += [(each.application, found) for one in held.of(found) for each in one.conditions.after]
    return []
