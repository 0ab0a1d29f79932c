"""The words between the runtime and the processes of this machine. Frozen values, no behaviour.

Decides what a run is told and what it reports. A *run* is one attempt to execute one allocation; its key is unique for
ever, so that starting it twice is impossible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What to execute and within which bounds."""

    key: str
    """Unique for ever; also the name of the run's directory."""
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    uid: int | None = None
    """Run as this user (only when the service is root); None: as the service itself."""
    gid: int | None = None
    groups: tuple[int, ...] = ()
    vcore: int = 0
    """Thousandths of a core; 0: no limit."""
    memory: int = 0
    """Bytes; 0: no limit."""
    gpus: int = 0
    """How many devices; the machine chooses which and says so in CUDA_VISIBLE_DEVICES."""
    processes: int = 0
    """How many processes and threads it may have at once; 0: as many as the machine lets every run have."""
    grace_ms: int = 30_000
    """From the polite request to end (SIGTERM) to the killing of the whole tree."""
    time_limit_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What was observed of a run.

    `ended_at_ms` None and `started_at_ms` set: it runs. Both None: it was never executed. Only `ended_at_ms` set: it
    ended before it was executed, because it was stopped in time or because of `error`.
    """

    started_at_ms: int | None = None
    ended_at_ms: int | None = None
    exit_code: int | None = None
    """The command's exit status; None while it runs, or when a signal ended it, or when its end was not observed."""
    signal: int | None = None
    """The signal that ended it."""
    stopped: bool = False
    """It was told to stop (cancelled or evicted) before it ended."""
    timed_out: bool = False
    """It was stopped because of its time limit."""
    lost: bool = False
    """It is gone, and how it ended could not be observed (machine restarted, supervisor killed)."""
    oom: bool = False
    """It was killed because it used more memory than it asked for; `note` has the figures."""
    note: str = ""
    """One sentence about its end where the fields above do not say it all; empty otherwise."""
    error: str = ""
    """It could not be started: one sentence (command not found, no such directory, ...). exit_code: 127 or 126."""
    cpu_ms: int = 0
    """CPU time of the whole tree."""
    peak_memory_bytes: int = 0
    """The most that the tree was seen to hold; below about 10 MB it is the launcher's own."""
    gpus: tuple[int, ...] = ()
    """Device numbers it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Course):
    """What became of a run."""

    key: str
    pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing that this machine can or cannot enforce."""

    name: str
    enforced: bool
    how: str
    """One sentence: by what means, or why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """What a run that still runs uses: CPU time so far, memory now."""

    cpu_ms: int
    memory_bytes: int
