"""How long ended jobs and the journal are kept, and the route that removes what is no longer wanted.

Decides what has to go, some at a time, so that nobody waits for it. Never removes what is live, nor what the next start
needs: the journal keeps everything behind its oldest snapshot. Invariant: what left the book left it by a record of the
journal, so a restart knows it too; its files go after that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.concurrency import run_in_threadpool

from fairlead.journal.format import FAILURES
from fairlead.journal.store import Journal
from fairlead.local.history_records import JobsCleaned
from fairlead.local.job_names import run_key
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal, Turn
from fairlead.service.http.shaped import api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf, now_ms
from fairlead.wire import jobs as wire
from fairlead.wire import orders

log = logging.getLogger("fairlead.service")
router = api("jobs")

LOOK_S = 60.0
STEP = 10_000
"""Records of the journal that go in one turn of the writer."""
DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long what is kept."""

    jobs_ms: int = 30 * DAY_MS
    """Jobs that ended longer ago leave the book, with their output."""
    jobs: int = 10_000
    """So many ended jobs stay at most, and all parts of an array of which one is among them."""
    journal_ms: int = 30 * DAY_MS
    journal_bytes: int = 192 * 2**20
    """The older records go while the database is larger than that, without what is free in it."""


async def keep(place: MachinePlace, retention: Retention) -> None:
    """Remove what has to go, until cancelled."""
    while True:
        # What looks old after the machine's clock went forward by years is not: that may be put right within a day.
        if place.runtime.clock.jumped:
            await asyncio.sleep(LOOK_S)
            continue
        # While nothing can be recorded nothing can go either; a later look does it.
        with contextlib.suppress(Refusal):
            await place.do(lambda turn: forget_old_jobs(turn, place.local.jobs, retention))
        try:
            while await prune(place, retention):
                await asyncio.sleep(0)
        except FAILURES as failure:
            log.warning("older records could not be removed from the journal: %s", failure)
        await asyncio.sleep(LOOK_S)


def forget_old_jobs(turn: Turn, jobs: Jobs, retention: Retention) -> None:
    """Enter that what has to go leaves the book, if anything has to."""
    before_ms = turn.now_ms - retention.jobs_ms
    if jobs.ended.beyond(retention.jobs) or jobs.cleanable(before_ms, None):
        turn.note(JobsCleaned(before_ms=before_ms, most=retention.jobs))


async def prune(place: MachinePlace, retention: Retention) -> int:
    """Remove a step of the journal's older records, by age and by size; how many went."""
    journal = place.runtime.journal
    before_ms = now_ms() - retention.journal_ms
    return await place.look(lambda *_: prune_step(journal, before_ms, retention.journal_bytes))


def prune_step(journal: Journal, before_ms: int, most_bytes: int) -> int:
    """Have history begin later, a step at most, and not behind the oldest snapshot; how many records went."""
    history = journal.history
    first, covered = history.first_seq, history.covered
    if covered is None or covered < first:
        return 0
    wanted = history.seq_at(before_ms) + 1
    if (used := history.used_bytes) > most_bytes:
        wanted = max(wanted, first + (history.last_seq - first + 1) * (used - most_bytes) // used + 1)
    return journal.prune(min(wanted, covered + 1, first + STEP))


@router.post("/clean")
async def clean_jobs(body: orders.Cleaning, place: MachineOf, caller: CallerOf) -> wire.Cleaned:
    """Remove jobs that ended long ago, with their output: the caller's. For administrators: all, and older records."""
    uid = None if caller.is_admin else caller.uid
    before_ms = now_ms() + place.runtime.clock.ahead_ms - body.older_than_ms  # By the service's time.

    def found(jobs: Jobs) -> tuple[int, list[str]]:
        keys = jobs.cleanable(before_ms, uid, caller.user)
        runs = [run_key(key, number) for key in keys if (job := jobs.get(key)) is not None for number in job.runs]
        return len(keys), runs

    count, runs = await place.look(lambda _, jobs: found(jobs))
    size = await run_in_threadpool(_size, [place.machine.stdout_path(run).parent for run in runs])
    records = await place.look(lambda *_: place.runtime.journal.history.prunable(before_ms)) if uid is None else 0
    if not body.dry_run:
        if count:
            await place.do(lambda turn: turn.note(JobsCleaned(before_ms=before_ms, uid=uid, who=caller.user)))
        if records:
            records = await _prune_before(place, before_ms)
    return wire.Cleaned(jobs=count, bytes=size, records=records)


async def _prune_before(place: MachinePlace, before_ms: int) -> int:
    journal, gone = place.runtime.journal, 0
    while went := await place.look(lambda *_: prune_step(journal, before_ms, 2**63)):
        gone += went
    return gone


def _size(directories: Sequence[Path]) -> int:
    size = 0
    for directory in directories:
        with contextlib.suppress(OSError):
            size += sum(each.lstat().st_size for each in directory.iterdir())
    return size
