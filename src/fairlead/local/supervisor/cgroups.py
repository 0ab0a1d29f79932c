"""The control groups of one run: made, filled, read, emptied, removed.

Decides how each of these is done in version 1 and version 2 of the kernel's control groups. Never decides which groups
a run gets or what bounds: that is in the plan that the machine wrote. Invariant: a bound that the plan requires is set
before the command begins, or the run does not begin.

A plan is a list of groups, each `{"path": directory, "settings": [[file, value, required], ...]}`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence

from .run_files import Record

Plan = Sequence[Record]


def _write(path: str, value: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def _read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def create(plan: Plan) -> None:
    """Make the groups and set their bounds. Raises OSError with the file that refused."""
    for group in plan:
        os.mkdir(group["path"], 0o755)
        for name, value, required in group["settings"]:
            path = os.path.join(group["path"], name)
            try:
                _write(path, value)
            except OSError as problem:
                if required:
                    raise OSError(problem.errno, os.strerror(problem.errno or 0), path) from None


def join(plan: Plan) -> None:
    """Put the calling process, and all that it starts from now on, into the groups. Raises OSError."""
    for group in plan:
        _write(os.path.join(group["path"], "cgroup.procs"), "0")


def members(plan: Plan) -> list[int]:
    """The processes in the groups and in groups below them."""
    found: set[int] = set()
    for group in plan:
        for directory, _, files in os.walk(group["path"]):
            if "cgroup.procs" in files:
                found.update(int(pid) for pid in (_read(os.path.join(directory, "cgroup.procs")) or "").split())
    return sorted(found)


def kill(plan: Plan) -> None:
    """SIGKILL to every process in the groups; with `cgroup.kill` or the freezer none can be born meanwhile."""
    for group in plan:
        with contextlib.suppress(OSError):
            _write(os.path.join(group["path"], "cgroup.kill"), "1")
            return
    frozen = [path for group in plan if os.path.exists(path := os.path.join(group["path"], "freezer.state"))]
    for path in frozen:
        with contextlib.suppress(OSError):
            _write(path, "FROZEN")
    for pid in members(plan):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    for path in frozen:
        with contextlib.suppress(OSError):
            _write(path, "THAWED")


def freeze(plan: Plan, *, frozen: bool) -> bool:
    """Let every process in the groups stand still, or go on. False: no group can do that."""
    done = False
    for group in plan:
        for file, words in (("cgroup.freeze", ("0", "1")), ("freezer.state", ("THAWED", "FROZEN"))):
            path = os.path.join(group["path"], file)
            if os.path.exists(path):
                with contextlib.suppress(OSError):
                    _write(path, words[frozen])
                    done = True
    return done


def remove(plan: Plan, *, patience_s: float = 1.0) -> bool:
    """Remove the empty groups. False: something is still in there after that time."""
    deadline = time.monotonic() + patience_s
    while not all(_remove_tree(group["path"]) for group in plan):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _remove_tree(path: str) -> bool:
    for directory, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True


def _field(text: str | None, name: str) -> int | None:
    for line in (text or "").splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return None


def _first(plan: Plan, sources: Sequence[tuple[str, str]]) -> int | None:
    """The first of these fields (file, name in it; no name: the whole file) that any group has."""
    for file, name in sources:
        for group in plan:
            text = _read(os.path.join(group["path"], file))
            value = _field(text, name) if name else (int(text) if text else None)
            if value is not None:
                return value
    return None


def cpu_ms(plan: Plan) -> int | None:
    """CPU time used so far by all that ever ran in the groups; None if no group counts it."""
    value = _first(plan, [("cpu.stat", "usage_usec")])
    if value is not None:
        return value // 1000
    value = _first(plan, [("cpuacct.usage", "")])
    return None if value is None else value // 1_000_000


def memory_bytes(plan: Plan) -> int | None:
    """Memory that the processes hold now, without the page cache; None if no group counts it."""
    return _first(plan, [("memory.stat", "anon"), ("memory.stat", "total_rss")])


def killed_for_memory(plan: Plan) -> bool:
    """Has the kernel killed something in the groups because the memory bound was reached?"""
    return bool(_first(plan, [("memory.events", "oom_kill"), ("memory.oom_control", "oom_kill")]))
