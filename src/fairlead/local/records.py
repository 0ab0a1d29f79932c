"""What the journal keeps about work on this machine, beside the scheduler's own events.

Decides the words: what a user asked for, and what became of it, each a frozen value that the codec can write. Never
says what follows from them (`works` does). Invariant: the book of works is these records and the scheduler's
decisions, in journal order, and nothing else; so it can be rebuilt from them at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.core.resources import NOTHING, Resources
from fairlead.journal import codec
from fairlead.local.runs import RunReport

DEFAULT_GRACE_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSpec:
    """One command that somebody wants to have run. `key` names it for ever, also as application and as ask."""

    key: str
    user: str
    uid: int
    command: tuple[str, ...]
    """The program and its arguments."""
    queue: str
    groups: tuple[str, ...] = ()
    """The names of the user's groups when it was submitted."""
    resources: Resources = NOTHING
    """`vcore` in thousandths, `memory` in bytes, all others in units."""
    priority: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    grace_ms: int = DEFAULT_GRACE_MS
    """Between being asked to stop and being killed."""
    time_limit_ms: int | None = None
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSubmitted:
    """Work was taken in. `request` is the submitter's own name for the submission, so that a repeated one is known."""

    work: WorkSpec
    request: str = ""
    digest: str = ""
    """Of the submission's content: the same `request` with another content is a mistake."""
    rule: str = ""
    """What chooses its queue: a placement rule, or `the request`, `the default`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRefused:
    """Why the scheduler did not take a work in, in words that say what to do."""

    key: str
    code: str
    sentence: str
    queue: str = ""
    """The queue that would have to let him in; empty where it is not about access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkWaits:
    """A waiting work waits for something else than before."""

    key: str
    code: str
    subject: str
    """Which queue, node, user or group is in the way."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStarted:
    """The machine executes it."""

    key: str
    attempt: int
    pid: int | None = None
    started_at_ms: int | None = None
    gpus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCancelRequested:
    """Somebody who may do so wants it to end."""

    key: str
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEnded:
    """It runs no more: what the machine observed, and the `state` that follows from it."""

    key: str
    attempt: int
    state: str
    started_at_ms: int | None = None
    ended_at_ms: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    stopped: bool = False
    timed_out: bool = False
    lost: bool = False
    oom: bool = False
    note: str = ""
    error: str = ""
    cpu_ms: int = 0
    peak_memory_bytes: int = 0
    gpus: tuple[int, ...] = ()


WorkRecord = WorkSubmitted | WorkRefused | WorkWaits | WorkStarted | WorkCancelRequested | WorkEnded
for _record in (WorkSubmitted, WorkRefused, WorkWaits, WorkStarted, WorkCancelRequested, WorkEnded):
    codec.register(_record)


def run_key(key: str, attempt: int) -> str:
    """The name of one attempt to run the work `key`; attempts count from 1."""
    return f"{key}-{attempt}"


def parse_run_key(run: str) -> tuple[str, int] | None:
    """The work and the attempt that a run's name stands for, or None if it is none of ours."""
    key, dash, attempt = run.partition("-")
    if dash and key.isascii() and key.isdecimal() and attempt.isascii() and attempt.isdecimal():
        return key, int(attempt)
    return None


def started(report: RunReport, key: str, attempt: int) -> WorkStarted:
    """The record that a run has begun."""
    return WorkStarted(
        key=key, attempt=attempt, pid=report.pid, started_at_ms=report.started_at_ms, gpus=tuple(report.gpus)
    )


def ended(report: RunReport, key: str, attempt: int, state: str) -> WorkEnded:
    """The record that a run is over, with what was observed."""
    return WorkEnded(
        key=key,
        attempt=attempt,
        state=state,
        started_at_ms=report.started_at_ms,
        ended_at_ms=report.ended_at_ms,
        exit_code=report.exit_code,
        signal=report.signal,
        stopped=report.stopped,
        timed_out=report.timed_out,
        lost=report.lost,
        oom=report.oom,
        note=report.note,
        error=report.error,
        cpu_ms=report.cpu_ms,
        peak_memory_bytes=report.peak_memory_bytes,
        gpus=tuple(report.gpus),
    )
