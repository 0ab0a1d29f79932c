"""A signal for the processes of a job that runs.

Decides who may send one, and when that makes no sense. Never ends a job: what becomes of it is up to its processes.
Invariant: a signal is sent once, or not at all where the service ends in between; that it was wanted is in the history.
"""

from __future__ import annotations

from fairlead.local.callers import Caller, Rights
from fairlead.local.history_records import JobSignalled
from fairlead.local.job_names import run_key
from fairlead.local.job_states import NOT_TOLD_TO_STOP
from fairlead.local.jobs import Jobs
from fairlead.local.selection import visible
from fairlead.runtime import Refusal, Turn


def signal(jobs: Jobs, turn: Turn, caller: Caller, key: str, number: int, *, first: bool) -> str:
    """Note that a job is sent this signal, its first process alone or all of them; the run to send it to."""
    job = visible(jobs, Rights(caller, turn.scheduler), key)
    if job.state not in NOT_TOLD_TO_STOP:
        raise Refusal("conflict", f"job {key} is {job.state}; only what runs can be sent a signal")
    if job.pid is None:
        raise Refusal("conflict", f"job {key} has its place, but its command has not begun yet; try again")
    turn.note(JobSignalled(key=key, who=caller.user, number=number, first=first))
    return run_key(job.key, job.attempt)
