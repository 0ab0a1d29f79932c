"""The end of an attempt, as it is entered into the books.

Decides whether its job ends with it, and how the scheduler is told. Never decides whether it is tried again: the
scheduler does. Invariant: an end is one record of the job and one release of its place, in one turn.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.core.model.events import Cause, ChangeAsk, Release, SetConditions
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local import history_records as records
from fairlead.local import job_names
from fairlead.local.holding import conditions_now
from fairlead.local.job import Job
from fairlead.local.job_states import State
from fairlead.local.runs import RunReport
from fairlead.policy.events.retry import final
from fairlead.runtime import Turn


def enter_end(turn: Turn, job: Job, report: RunReport) -> None:
    """An attempt is over: its job ends with it, or is tried again if the scheduler will say so."""
    state = state_after(job, report).value
    last = records.ended(report, job.key, job.attempt, state)
    release = Release(
        application=job.application,
        key=job_names.ask_key(job.key, job.attempt),
        cause=_release_cause(job, last),
        exit_code=records.exit_status(last),
        ended_ms=last.ended_at_ms,
    )
    if job.released:
        _enter_lost_place(turn, job, last, report)
        return
    final = _final(turn, release)
    held_by = job.hold_next
    if final is None:
        turn.note(records.attempt_ended(report, job.key, job.attempt, state))
    else:
        turn.note(replace(last, no_retry=final if _wanted_more(job, last) else ""))
    turn.event(release)
    if final is None:
        _give_own_limit(turn, job)
    if held_by and job.state is State.WAITING:
        conditions = replace(conditions_now(turn.scheduler, job), held_by=held_by)
        turn.event(SetConditions(job.application, job.ask_key, conditions, held_by))


def _enter_lost_place(turn: Turn, job: Job, last: records.JobEnded, report: RunReport) -> None:
    """The scheduler gave its place away before it was gone, and has decided by itself whether it is tried again."""
    again = job_names.attempt_of(job.ask_key) > job.attempt
    if again and not job.cancelled_by:
        turn.note(records.attempt_ended(report, job.key, job.attempt, last.state))
        _give_own_limit(turn, job)
        return
    turn.note(last)
    if again:
        turn.event(Release(application=job.application, key=job.ask_key, cause=Cause.STOPPED_BY_RM))


def _give_own_limit(turn: Turn, job: Job) -> None:
    """For how long an attempt stood still is no part of the time limit of the next one."""
    partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
    name = job.application, job.ask_key
    known = partition.held_asks.get(*name) or partition.find_ask(*name)
    if known is not None and known.spec.time_limit_ms != job.spec.time_limit_ms:
        turn.event(ChangeAsk(*name, job.spec.resources, job.spec.time_limit_ms))


def _final(turn: Turn, release: Release) -> str | None:
    """Why the scheduler will not try it again after this release, or None: it will."""
    partition = turn.scheduler.cluster.partitions[release.partition]
    app = partition.applications.get(release.application)
    ask = app.asks.get(release.key) if app is not None else None
    if ask is None:
        return ""
    return final(ask, release.cause, release.exit_code) or None


def _wanted_more(job: Job, record: records.JobEnded) -> bool:
    """Whether somebody may ask why it is not tried again: it neither ended well nor was it ended on request."""
    wants_more = job.spec.retry is not None and job.spec.retry.limit > 0
    return wants_more and record.state not in (State.SUCCEEDED, State.CANCELLED)


def state_after(job: Job, report: RunReport) -> State:
    """The state of a job whose run ended like this. Its own end counts, unless it was told to stop before."""
    if report.lost:
        return State.LOST
    if report.timed_out:
        return State.TIMED_OUT
    if report.stopped and job.cancelled_by:
        return State.CANCELLED
    if (report.stopped and job.evict_cause) or _waits_again(job):
        return State.EVICTED
    return State.SUCCEEDED if report.exit_code == 0 and not report.error else State.FAILED


def _waits_again(job: Job) -> bool:
    """Whether somebody wanted it to wait again, however it ended: a job that asks for that itself has often gone before
    it can be told to stop. By which clock it ended when says nothing: the machine's may have been set back.
    """
    return job.evict_cause == Cause.REQUEUED and not job.cancelled_by


def _release_cause(job: Job, record: records.JobEnded) -> Cause:
    """How its end is told to the scheduler: who cancelled it wants no more of it, however it ended in the end.

    What ended by itself before the scheduler's order reached it ended by itself.
    """
    if job.cancelled_by:
        return Cause.STOPPED_BY_RM
    if _waits_again(job):
        return Cause.REQUEUED
    if record.lost and not job.evict_cause:
        return Cause.INTERRUPTED
    if job.evict_cause and (record.stopped or record.lost) and not record.timed_out:
        return Cause(job.evict_cause)
    return Cause.FINISHED
