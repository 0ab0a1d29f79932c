"""From a run's specification to a supervisor that is on its way.

Decides the environment of the job, and refuses what cannot be executed. Never executes the command itself. Invariant:
the job sees only the small environment that is made here, never that of the service.
"""

from __future__ import annotations

import errno
import os
import pwd
import resource
import secrets
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairlead.local import accounts
from fairlead.local.gpus import Gpu, visible
from fairlead.local.means import Means
from fairlead.local.runs import SUPERVISOR, RunSpec
from fairlead.local.supervisor import kernel, run_files

PROGRAM = Path(__file__).parent / SUPERVISOR
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


DESCRIPTORS, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
"""As many as this process began with; it may have more by now, which programs that use `select` do not bear."""


class Refused(Exception):
    """The run cannot be executed here; one sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What of the machine a run is given."""

    gpus: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    """The cores it is bound to; empty: all."""


def check(run: RunSpec) -> None:
    """Raises `Refused` if the run cannot be executed whatever the state of the machine."""
    if not run.command or not run.command[0]:
        raise Refused("there is no command to execute")
    files = (run.streams.stdin, run.streams.stdout, run.streams.stderr)
    texts = [*run.command, run.cwd, *run.env, *run.env.values(), *files]
    if any("\0" in text for text in texts):
        raise Refused("a NUL character in the command, the environment or the working directory")
    wrong = [name for name in run.env if not name or "=" in name]
    if wrong:
        raise Refused(f"{wrong[0]!r} cannot be the name of an environment variable")
    if not os.path.isabs(run.cwd):
        raise Refused(f"the working directory {run.cwd!r} is not an absolute path")
    if min(run.vcore, run.memory, run.gpus, run.processes, run.grace_ms, run.time_limit_ms or 0, run.output_bytes) < 0:
        raise Refused("an amount or a time is negative")
    if run.uid is not None and os.geteuid() not in {0, run.uid}:
        raise Refused(f"the service is not root and cannot run work as user {run.uid}")


def with_groups(run: RunSpec) -> RunSpec:
    """The same with the groups of its user as they are now.

    Raises OSError if they cannot be looked up, or nobody has that number now; `Refused` if somebody else has it.
    """
    if run.uid is None or run.groups is not None:
        return run
    who = accounts.by_uid(run.uid)
    if who.name != run.user:
        said = f"it is {run.user}'s, and user {run.uid} is {who.name} now"
        raise Refused(said) if who.is_known else BlockingIOError(errno.EAGAIN, said)
    return replace(run, gid=who.gid, groups=who.gids)


def _group_of(run: RunSpec) -> int | None:
    if run.uid is None or run.gid is not None:
        return run.gid
    try:
        return pwd.getpwuid(run.uid).pw_gid
    except KeyError:
        raise Refused(f"user {run.uid} is not known to this machine, and no group is given") from None


def environment(run: RunSpec, marker: str, gpus: Sequence[int], owned: Sequence[Gpu]) -> dict[str, str]:
    """What the job finds in its environment: the submitter's basics, what was asked for, what the machine decides."""
    uid = os.geteuid() if run.uid is None else run.uid
    env = {"PATH": PATH, "LANG": os.environ.get("LANG", "C.UTF-8"), "HOME": "/", "SHELL": "/bin/sh"}
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        env["USER"] = env["LOGNAME"] = str(uid)
    else:
        env.update(HOME=entry.pw_dir, USER=entry.pw_name, LOGNAME=entry.pw_name, SHELL=entry.pw_shell or "/bin/sh")
    env["PWD"] = run.cwd
    env.update(run.env)
    env[kernel.MARKER] = marker
    if owned:
        # Who asked for none must see none: an unset variable would mean all of them.
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        env["CUDA_VISIBLE_DEVICES"] = visible(gpus, owned)
        env["NVIDIA_VISIBLE_DEVICES"] = env["CUDA_VISIBLE_DEVICES"] or "void"
    return env


def record_of(
    run: RunSpec, share: Share, means: Means, *, owned: Sequence[Gpu], most_vcore: int, processes: int
) -> dict[str, Any]:
    """The `spec` file. Raises `Refused`."""
    marker = f"{run.key}-{secrets.token_hex(8)}"
    return {
        "marker": marker,
        "run": {
            "command": list(run.command),
            "cwd": run.cwd,
            "uid": run.uid,
            "gid": _group_of(run),
            "groups": list(run.groups or ()),
            "memory": run.memory,
            "amounts": {"vcore": run.vcore, "memory": run.memory, "gpu": run.gpus, **run.gpu_parts},
            "grace_ms": run.grace_ms,
            "time_limit_ms": run.time_limit_ms,
            "limit_signal": asdict(run.limit_signal) if run.limit_signal is not None else None,
            "output_bytes": run.output_bytes,
            "streams": asdict(run.streams),
            "piped": run.piped,
            "terminal": run.terminal,
            "descriptors": DESCRIPTORS,
        },
        "env": environment(run, marker, share.gpus, owned),
        "gpus": list(share.gpus),
        "cpus": list(share.cpus),
        "groups": means.groups_for(run, f"fairlead-{marker}", most_vcore=most_vcore, processes=processes),
        "memory_watch": 0 if means.bounds("memory") else run.memory,
    }


def make_runs_directory(path: Path, *, parents: bool = False) -> None:
    """Make the directory for all runs, unless it is there. Users pass through it, to their own logs. Raises OSError."""
    path.mkdir(parents=parents, exist_ok=True)
    path.chmod(0o711 if os.geteuid() == 0 else 0o700)


def write_spec(directory: Path, run: RunSpec, record: run_files.Record) -> None:
    """Make the run's directory and write the `spec` into it. Raises OSError.

    The directory belongs to the service: another user could swap files under it. He may pass through, to his own logs.
    """
    if not directory.parent.is_dir():  # Somebody removed it, and no run has to fail for that.
        make_runs_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    directory.chmod(0o711 if run.uid not in {None, os.geteuid()} else 0o700)
    if run.script:
        record["run"]["command"][0] = str(_write_script(directory, run))
    # Not made durable: after a power cut only the claim counts, and whoever makes that makes it durable.
    run_files.write(str(directory), run_files.SPEC, record, durable=False)


def _write_script(directory: Path, run: RunSpec) -> Path:
    """The script as a file that its user alone may read and execute."""
    path = directory / run_files.SCRIPT
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o500)
    with os.fdopen(fd, "wb") as file:
        if run.uid is not None:
            os.fchown(fd, run.uid, -1)
        file.write(run.script.encode())
    return path


def start_supervisor(directory: Path) -> tuple[int, int]:
    """A supervisor for this directory: its pid and the read end of its standard error. Raises OSError."""
    said, words = os.pipe()
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(PROGRAM), str(directory)],
            {"LC_ALL": "C.UTF-8"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, words, 2),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )
    except OSError as problem:
        os.close(said)
        if problem.errno == errno.ENOENT:
            raise BlockingIOError(errno.EAGAIN, f"{sys.executable} is not there; is it being installed?") from None
        raise
    finally:
        os.close(words)
    return pid, said
