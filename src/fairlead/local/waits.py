"""Notes of what jobs wait for, as it changes: so that their stories tell more than that it waited.

Decides which waiting jobs are looked at when, and which changes are worth a note. Never asks more than a bounded
number of questions at once. Invariant: the number of notes of one job grows with the logarithm of its wait.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fairlead.core.model.reasons import AttemptHeldBack, EnoughAtOnce, NextInLine, Reason, WaitingForVictims
from fairlead.insight.by_job import by_job
from fairlead.local.history_records import JobWaits
from fairlead.local.job import Job
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs

if TYPE_CHECKING:
    from fairlead.runtime import Turn

LOOKED_AT_ONCE = 20
FIRST_AFTER_MS = 1_000
"""What starts sooner has no story of waiting."""
LEAST_GAP_MS = 5_000
GAP_PART = 4
"""A change is noted when this part of the whole wait has passed since the last note."""


class WaitNotes:
    """Goes round all waiting jobs, some at a time."""

    def __init__(self) -> None:
        self._round: deque[str] = deque()

    def look(self, turn: Turn, jobs: Jobs) -> int:
        """Look at the next few; how many notes were made."""
        if not self._round:
            self._round.extend(job.key for job in jobs.live() if job.state is State.WAITING)
        made = 0
        for _ in range(min(LOOKED_AT_ONCE, len(self._round))):
            job = jobs.get(self._round.popleft())
            if job is not None and (note := _note(turn, job)) is not None:
                turn.note(note)
                made += 1
        return made


def _note(turn: Turn, job: Job) -> JobWaits | None:
    waited = turn.now_ms - job.submitted_at_ms
    if job.state is not State.WAITING or waited < FIRST_AFTER_MS:
        return None
    if job.waits_for and turn.now_ms - job.waits_noted_ms < max(LEAST_GAP_MS, waited // GAP_PART):
        return None
    reason = turn.scheduler.why(job.application, job.ask_key)
    if reason is None or isinstance(reason, NextInLine | AttemptHeldBack | EnoughAtOnce):
        return None
    subject = _subject(reason)
    if job.waits_for == f"{reason.code} {subject}":
        return None
    return JobWaits(key=job.key, code=reason.code, subject=subject, sentence=by_job(reason.sentence()))


def _subject(reason: Reason) -> str:
    """What is in the way, without the numbers that change all the time."""
    if isinstance(reason, WaitingForVictims):
        return " ".join(reason.victims)
    return " ".join(str(getattr(reason, name)) for name in ("kind", "name", "queue") if hasattr(reason, name))
