"""Routes about what jobs write.

Decides which file of output is read and how far. Never decides who may see what (`local.callers` does), and never
follows a link that a user may have put where the output was: the service may have more rights. Invariant: what is sent
is the output of the caller's own work, unless that is an administrator of the service (queues have no say in it); a
file of the user is read with the rights of that user.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from fairlead.local import accounts, selection, user_files
from fairlead.local.callers import Rights
from fairlead.local.job import Job
from fairlead.local.job_names import run_key
from fairlead.local.job_states import ON_THE_MACHINE
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal
from fairlead.scheduler import Scheduler
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf

router = api("jobs")
PART = 64 * 1024
MOST = 8 * 2**20
LOOK_AGAIN_S = 0.2

LOGS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes as they were written. X-Offset-Next: where to go on.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    },
    **documented(404),
}


class Stream(StrEnum):
    """Which of the two outputs."""

    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True)
class _Written:
    """Where the newest attempt of a job writes to."""

    newest: int
    uid: int
    own: str = ""
    """A file of the user, which all attempts share; empty: the service keeps what each attempt writes."""
    with_stdout: bool = False
    """Standard error goes to the same file, and is told with standard output."""
    has_run: bool = False
    """The attempt that is asked for is over, and was executed: its files were there."""


@router.get("/jobs/{key}/logs", response_class=Response, responses=LOGS)
async def get_job_logs(
    key: str,
    place: MachineOf,
    caller: CallerOf,
    stream: Annotated[Stream, Query(description="Which of the two outputs.")] = Stream.STDOUT,
    offset: Annotated[int, Query(ge=-(2**62), le=2**62, description="From this byte on; below 0: from the end.")] = 0,
    limit: Annotated[int | None, Query(ge=0, le=MOST, description="At most so many bytes.")] = None,
    follow: Annotated[bool, Query(description="Go on until the job (or the named attempt) has ended.")] = False,
    attempt: Annotated[int | None, Query(ge=1, le=2**31, description="Of this attempt; else of the newest.")] = None,
) -> Response:
    """What a job has written. Standard error that goes to the file of standard output is told there alone."""

    def look(scheduler: Scheduler, jobs: Jobs) -> _Written:
        job = selection.visible(jobs, Rights(caller, scheduler), key)
        if not caller.may_see(job):
            owner = job.spec.user
            raise Refusal("forbidden", f"what job {key} writes is the business of {owner}; ask {owner} to show it")
        if attempt is not None and attempt > max(job.attempt, 1):
            raise Refusal(
                "not-found",
                f"job {key} has had {job.attempt} attempt{'' if job.attempt == 1 else 's'} so far",
                field="attempt",
            )
        files = job.streams
        own = files.stdout if stream is Stream.STDOUT else files.stderr
        with_stdout = stream is Stream.STDERR and bool(own) and files.stdout == own
        return _Written(job.attempt, job.spec.uid, own, with_stdout, _has_run(job, attempt))

    written = await place.look(look)
    content, most = b"", 0 if follow else MOST if limit is None else limit
    # Also of what is followed: what cannot be read is refused before the answer begins.
    if written.own:
        offset, content = await run_in_threadpool(_read_own, written, offset, most)
    elif written.newest:
        path = _path(place, key, attempt or written.newest, stream)
        offset, content = await run_in_threadpool(_read, path, written.uid, offset, most, written.has_run)
    if follow:
        pieces = (
            _follow_own(place, key, written, offset, limit)
            if written.own
            else _follow(place, key, written.uid, stream, offset, limit, attempt)
        )
        return StreamingResponse(_while_it_lasts(pieces), media_type="text/plain; charset=utf-8", headers=_HEADERS)
    headers = {"X-Offset-Next": str(max(0, offset) + len(content)), **_HEADERS}
    return Response(content, headers=headers, media_type="text/plain; charset=utf-8")


def _has_run(job: Job, attempt: int | None) -> bool:
    if attempt in (None, job.attempt):
        return job.ended and job.started_at_ms is not None and not job.error
    return any(each.number == attempt and each.started_at_ms is not None for each in job.past)


_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


async def _while_it_lasts(pieces: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """What is refused now ends the answer, which has begun: whoever asks again is told why."""
    async with contextlib.aclosing(pieces):
        with contextlib.suppress(Refusal):
            async for piece in pieces:
                yield piece


# -- what the service keeps ----------------------------------------------------------------------------------------


def _path(place: MachinePlace, key: str, attempt: int, stream: Stream) -> Path:
    run = run_key(key, attempt)
    return Path(place.machine.stdout_path(run) if stream is Stream.STDOUT else place.machine.stderr_path(run))


async def _follow(
    place: MachinePlace, key: str, uid: int, stream: Stream, offset: int, limit: int | None, only: int | None
) -> AsyncGenerator[bytes, None]:
    """The output of one attempt (`only`), or that of the newest one and of those that follow it."""
    left, attempt = limit, only or 0

    def look(_: Scheduler, jobs: Jobs) -> tuple[int, bool, bool]:
        job = jobs.get(key)
        if job is None:
            return 0, True, True
        return job.attempt, job.ended, job.ended or job.state not in ON_THE_MACHINE

    while left is None or left > 0:
        newest, ended, idle = await place.look(look)
        attempt = attempt or newest
        over = attempt < newest or (idle and bool(attempt))
        if attempt:
            size = PART if left is None else min(PART, left)
            offset, content = await run_in_threadpool(_read, _path(place, key, attempt, stream), uid, offset, size)
            if content:
                offset += len(content)
                left = None if left is None else left - len(content)
                yield content
                continue
        if only is None and attempt < newest:
            attempt, offset = attempt + 1, 0
            continue
        if ended or place.stopping.is_set() or (only is not None and over):
            return
        await asyncio.sleep(LOOK_AGAIN_S)


def _gone(path: str) -> Refusal:
    return Refusal("not-found", f"what it wrote is not there any more: there is no file {path}")


def _read(path: Path, uid: int, offset: int, size: int, has_run: bool = False) -> tuple[int, bytes]:
    """Part of a plain file of this user (or of the service), and where it begins; nothing if it is not there yet."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if has_run:
            raise _gone(str(path)) from None
        return max(0, offset), b""
    except OSError as error:
        raise Refusal("not-found", f"the output cannot be read: {error.strerror}") from error
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid not in (uid, os.geteuid()) or about.st_nlink != 1:
            raise Refusal("not-found", "where the output was there is something else now; it is not shown")
        begin = _begin(fd, offset)
        return begin, os.pread(fd, size, begin)
    finally:
        os.close(fd)


def _begin(fd: int, offset: int) -> int:
    """Where that is in a file: below 0 it counts from the end, as it is now."""
    return offset if offset >= 0 else max(0, os.fstat(fd).st_size + offset)


# -- files of the user ---------------------------------------------------------------------------------------------


def _open_own(written: _Written) -> int | None:
    """The file, where there is something to tell of it; None: it is not there (yet). Raises `Refusal`."""
    if written.with_stdout or not written.newest:
        return None
    try:
        fd = user_files.open_as(written.uid, accounts.by_uid(written.uid).gids, written.own)
    except FileNotFoundError:
        if written.has_run:
            raise _gone(written.own) from None
        return None
    except OSError as error:
        raise Refusal("not-found", f"{written.own} cannot be read by its owner: {error.strerror}") from error
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise Refusal("not-found", f"{written.own} is no plain file; what went there cannot be read again")


def _read_own(written: _Written, offset: int, size: int) -> tuple[int, bytes]:
    fd = _open_own(written)
    if fd is None:
        return max(0, offset), b""
    try:
        begin = _begin(fd, offset)
        return begin, os.pread(fd, size, begin)
    finally:
        os.close(fd)


async def _follow_own(
    place: MachinePlace, key: str, written: _Written, offset: int, limit: int | None
) -> AsyncGenerator[bytes, None]:
    """The file that all attempts share, until the job has ended; from its beginning on where it is begun anew."""
    left = limit
    fd: int | None = None

    def look(_: Scheduler, jobs: Jobs) -> tuple[int, bool]:
        job = jobs.get(key)
        return (0, True) if job is None else (job.attempt, job.ended)

    try:
        while left is None or left > 0:
            newest, ended = await place.look(look)
            if fd is None:
                now = _Written(newest, written.uid, written.own, written.with_stdout)
                fd = await run_in_threadpool(_open_own, now)
            if fd is not None:
                offset = 0 if os.fstat(fd).st_size < offset else _begin(fd, offset)
                content = await run_in_threadpool(os.pread, fd, PART if left is None else min(PART, left), offset)
                if content:
                    offset += len(content)
                    left = None if left is None else left - len(content)
                    yield content
                    continue
            if ended or place.stopping.is_set():
                return
            await asyncio.sleep(LOOK_AGAIN_S)
    finally:
        if fd is not None:
            os.close(fd)
