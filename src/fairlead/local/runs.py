"""The words between the runtime and the processes of this machine, and what the directory of a run says in them.

Decides what a run is told and what it reports, and how the files of `supervisor.run_files` become a report. Writes the
wish that a run ends, and nothing else. A *run* is one attempt to execute one allocation; its key is unique for ever, so
that starting it twice is impossible. Invariant: a run whose directory has a result or a claim is never called "never
executed".
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fairlead.local.streams import NONE, Streams
from fairlead.local.supervisor import kernel, run_files
from fairlead.local.supervisor.sealed import Damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSignal:
    """A signal some time before the end of the time limit."""

    number: int
    before_ms: int
    to: str
    """`first`: to the command's own process alone; `others`: to all but that; `all`."""


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
    user: str = ""
    """Where `groups` is None: whose it is. The number may be another one's by the time that it is executed."""
    gid: int | None = None
    groups: tuple[int, ...] | None = ()
    """None: it has the groups that the user has when it is executed, and `gid` is the primary one of them."""
    vcore: int = 0
    """Thousandths of a core; 0: no limit."""
    memory: int = 0
    """Bytes; 0: no limit."""
    gpus: int = 0
    """How many devices; the machine chooses which and says so in CUDA_VISIBLE_DEVICES."""
    gpu_parts: Mapping[str, int] = field(default_factory=dict)
    """How many parts of GPUs, by the name of the resource, such as `mig-1g.5gb`."""
    processes: int = 0
    """How many processes and threads it may have at once; 0: as many as the machine lets every run have."""
    grace_ms: int = 30_000
    """From the polite request to end (SIGTERM) to the killing of the whole tree."""
    time_limit_ms: int | None = None
    limit_signal: LimitSignal | None = None
    output_bytes: int = 0
    """So much of each of the two outputs is kept: the beginning, and the newest of the rest; 0: all of it."""
    script: str = ""
    """Its text, which takes the place of the first word of the command; empty: it is no script."""
    terminal: bool = False
    """It runs at a terminal of its own, which users may sit at."""
    streams: Streams = NONE
    """Files of the user, as whole paths; what goes there has no bound."""
    piped: bool = False
    """Its input comes from a `fairlead run` that waits to write it, or is gone."""


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
    not_now: int = 0
    """The number of the system's error that kept its supervisor from beginning, if that passes; it may be started
    again."""

    @property
    def is_over(self) -> bool:
        """It has ended, or never will begin."""
        return self.ended_at_ms is not None or self.lost or (self.stopped and self.started_at_ms is None)

    @property
    def never_executed(self) -> bool:
        """It has not begun, and may still."""
        return self.started_at_ms is None and not self.is_over


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


KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,127}")
SUPERVISOR = "supervisor/__main__.py"
"""Where the program that supervises a run stands; its last argument is the run's directory."""
REPORTED = {each.name for each in fields(RunReport)} - {"key"}


def directory_of(runs: Path, key: str) -> Path:
    """The directory of a run. Raises ValueError if the key cannot be the name of one."""
    if not KEY.fullmatch(key):
        raise ValueError(
            f"a run cannot be called {key!r}: at most 128 letters, digits and . _ : @ = + - are possible, "
            "the first a letter or digit"
        )
    return runs / key


def is_forgotten(directory: Path) -> bool:
    """Has this run been settled for good?"""
    return run_files.exists(str(directory), run_files.FORGOTTEN)


def clear_up(directory: Path) -> None:
    """Remove of a run that is settled for good what was only needed to execute it, the `spec` last. Raises OSError."""
    for each in sorted(directory.iterdir(), key=lambda each: each.name == run_files.SPEC):
        if not each.name.startswith((run_files.FORGOTTEN, run_files.STDOUT, run_files.STDERR)):
            remove(each)


def remove(each: Path) -> None:
    """One thing in the directory of a run. A script may go to where it stands, and make directories. Raises OSError."""
    if each.is_dir() and not each.is_symlink():
        shutil.rmtree(each)
    else:
        each.unlink(missing_ok=True)


def go_on_clearing_up(directory: Path) -> None:
    """The same where somebody was killed on the way: the `spec`, with its variables, is still there. Raises OSError."""
    if run_files.exists(str(directory), run_files.SPEC):
        clear_up(directory)


def spec_of(directory: Path) -> run_files.Record | None:
    """What the run was told to execute; None: that is not known any more."""
    try:
        return run_files.read(str(directory), run_files.SPEC)
    except Damaged:
        return None


def vcore_of(directory: Path) -> int:
    """Thousandths of a core that the run has; 0: it has no limit, or that is not known any more."""
    spec = spec_of(directory)
    return int(spec["run"].get("amounts", {}).get("vcore", 0)) if spec is not None else 0


def claim_of(directory: Path) -> run_files.Record | None:
    """Who executes or executed the run; None: nobody ever did."""
    try:
        return run_files.read(str(directory), run_files.CLAIM)
    except Damaged:
        return _claim_from_processes(directory)


def _claim_from_processes(directory: Path) -> run_files.Record:
    """What a damaged claim must have said, as the processes and the spec tell it."""
    owner = _supervisor_of(directory)
    below = kernel.descendants(owner.pid) if owner is not None else []
    command = next((each for each in below if owner is not None and each.parent == owner.pid), None)
    spec = spec_of(directory) or {"marker": "", "gpus": [], "cpus": [], "groups": []}
    return {
        "boot": kernel.boot_id(),
        "supervisor": owner.pid if owner is not None else 0,
        "supervisor_ticks": owner.started_ticks if owner is not None else 0,
        "pid": command.pid if command is not None else None,
        "pid_ticks": command.started_ticks if command is not None else 0,
        "started_at_ms": int((directory / run_files.CLAIM).stat().st_mtime * 1000),
        **{name: spec[name] for name in ("marker", "gpus", "cpus", "groups")},
    }


def _supervisor_of(directory: Path) -> kernel.Process | None:
    """The process that supervises this run, by its command line; its own child is called the same for a moment."""
    ends = os.fsencode(f"/{SUPERVISOR}"), os.fsencode(directory)
    pids = [pid for pid, words in kernel.command_lines() if words[-1] == ends[1] and words[-2:][0].endswith(ends[0])]
    found = [
        each
        for each in map(kernel.process, pids)
        if each is not None and each.state not in "ZX" and each.parent not in pids
    ]
    return found[0] if found else None


def owner_alive(claim: run_files.Record) -> bool:
    """Does the supervisor that made this claim still live?"""
    return bool(claim["boot"] == kernel.boot_id() and kernel.alive(claim["supervisor"], claim["supervisor_ticks"]))


def ended_of(key: str, directory: Path) -> RunReport | None:
    """How the run ended; None if it has not, or nobody has written it down."""
    forgotten = _end_of(directory, run_files.FORGOTTEN)
    if forgotten is not None:
        return _report(key, forgotten)
    result = whole_result(directory)
    return None if result is None else _report(key, result)


def _end_of(directory: Path, name: str) -> run_files.Record | None:
    try:
        return run_files.read(str(directory), name)
    except Damaged:
        path = directory / name
        note = f"it ended, and how is not known: {path} is damaged"
        return {"lost": True, "note": note, "ended_at_ms": int(path.stat().st_mtime * 1000)}


def whole_result(directory: Path) -> dict[str, Any] | None:
    """How it ended together with what the claim knows, all that a report needs; None: it has not."""
    result = _end_of(directory, run_files.RESULT)
    if result is None:
        return None
    claim = claim_of(directory) or {}
    whole = {**claim, **result}
    if result.get("begun") is False:
        whole.update(pid=None, started_at_ms=None)
    if whole.get("started_at_ms") is not None:
        whole["ended_at_ms"] = max(whole["ended_at_ms"], whole["started_at_ms"])
    return {name: value for name, value in whole.items() if name in REPORTED}


def removed(key: str, directory: Path, started_at_ms: int | None) -> RunReport:
    """A run whose directory somebody removed is lost. If its supervisor goes on all the same, it is told to end it."""
    if (owner := _supervisor_of(directory)) is not None:
        kernel.send(owner.pid, owner.started_ticks, signal.SIGTERM)
    note = f"its directory {directory} was removed while it ran, and with it the knowledge of how it ended"
    return RunReport(key=key, started_at_ms=started_at_ms, ended_at_ms=run_files.now_ms(), lost=True, note=note)


def running_of(key: str, claim: run_files.Record) -> RunReport:
    """A run that goes on."""
    return RunReport(key=key, pid=claim["pid"], started_at_ms=claim["started_at_ms"], gpus=tuple(claim["gpus"]))


def _report(key: str, record: run_files.Record) -> RunReport:
    known = {name: value for name, value in record.items() if name in REPORTED}
    known["gpus"] = tuple(known.get("gpus", ()))
    return RunReport(key=key, **known)


def wish_to_end(directory: Path, grace_ms: int) -> None:
    """Write the wish that a run ends, unless one with as short a grace stands there already. Raises OSError.

    That one came before, so it ends it sooner, whatever was done to the machine's clock meanwhile; and the supervisor
    counts from when it heard of each. The wish has its room on the disk, so that a full one keeps nothing from being
    stopped.
    """
    place = str(directory)
    try:
        before = run_files.read(place, run_files.STOP)
    except Damaged:
        before = {"grace_ms": grace_ms + 1}
    if before is not None:
        if grace_ms >= before["grace_ms"]:
            return
        run_files.take_back(place, run_files.STOP)
    run_files.write_reserved(place, run_files.STOP, {"grace_ms": grace_ms, "at_ms": run_files.now_ms()})


def wish_to_go_on(directory: Path, time_limit_ms: int | None, *, suspended: bool) -> None:
    """Write how a run is to go on instead of what was said before. It has its room on the disk, too. Raises OSError."""
    place = str(directory)
    if run_files.exists(place, run_files.COURSE):
        run_files.take_back(place, run_files.COURSE)
    run_files.write_reserved(place, run_files.COURSE, {"time_limit_ms": time_limit_ms, "suspended": suspended})
