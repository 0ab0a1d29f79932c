"""What the kernel says about processes, read from /proc.

Decides what makes a process the same one: its pid *and* its start time, so that a pid that was given out again is never
taken for it. Never changes a process, apart from two settings of the caller itself. Invariant: a process that is gone
or a zombie is not alive; that it cannot be asked just now (no file descriptor left, no memory) does not mean that it is
gone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MARKER = "FAIRLEAD_RUN"
"""The variable that every process of a run carries in its environment."""


class Process(NamedTuple):
    """One line of /proc/PID/stat. Times are in clock ticks, memory in bytes."""

    pid: int
    parent: int
    state: str
    session: int
    own_ticks: int
    reaped_ticks: int
    """CPU time of its children that have ended and were waited for."""
    started_ticks: int
    """Since the machine was booted."""
    memory: int
    ignored: int
    """The signals that it ignores, a bit each: 1 is that of signal 1."""


def prctl(option: int, value: int) -> bool:
    """One setting of the calling process. False: this machine has no such setting."""
    try:
        import ctypes
    except ImportError:
        return False
    return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)) == 0


def takes_in_orphans() -> bool:
    """Whether orphans below the calling process come back to it, and not to the machine's first one."""
    try:
        import ctypes
    except ImportError:
        return False
    answer = ctypes.c_int()
    return (
        int(ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)) == 0 and answer.value == 1
    )


def process(pid: int) -> Process | None:
    """What the kernel says about one process; None if there is none. Raises OSError if it cannot say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in brackets and may itself hold brackets and blanks.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 31:
        return None
    return Process(
        pid=pid,
        state=fields[0].decode(),
        parent=int(fields[1]),
        session=int(fields[3]),
        own_ticks=int(fields[11]) + int(fields[12]),
        reaped_ticks=int(fields[13]) + int(fields[14]),
        started_ticks=int(fields[19]),
        memory=int(fields[21]) * PAGE,
        ignored=int(fields[30]),
    )


def boot_id() -> str:
    """A name of the time since the machine was booted."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def alive(pid: int, started_ticks: int) -> bool:
    """Is the process with this pid the one that was started then, and does it still run? Raises OSError."""
    found = process(pid)
    return found is not None and found.started_ticks == started_ticks and found.state not in "ZX"


def send(pid: int, started_ticks: int, number: int) -> None:
    """Send a signal to exactly this process; nothing if it is gone, whoever has its pid now."""
    try:
        fd = os.pidfd_open(pid)
    except AttributeError:
        if alive(pid, started_ticks):
            os.kill(pid, number)
        return
    except OSError as problem:
        if problem.errno in {errno.ESRCH, errno.EINVAL}:
            return
        raise
    try:
        # What was opened is this process if it has the start time now.
        if alive(pid, started_ticks):
            signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return
    finally:
        os.close(fd)


def pids() -> list[int]:
    """Every process of the machine that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root: int) -> list[Process]:
    """All processes below `root`, found by a look at every process of the machine."""
    children: dict[int, list[Process]] = {}
    for pid in pids():
        found = process(pid)
        if found is not None:
            children.setdefault(found.parent, []).append(found)
    return _below(root, lambda pid: children.get(pid, ()))


def nearby_descendants(root: int) -> list[Process]:
    """All processes below `root`, by following the lists of children. Cheap; a newborn one can be missed."""
    if not os.path.exists("/proc/thread-self/children"):
        return descendants(root)
    return _below(root, _children)


def _below(root: int, children_of: Callable[[int], Iterable[Process]]) -> list[Process]:
    result: list[Process] = []
    seen = {root}
    waiting = [root]
    while waiting:
        for child in children_of(waiting.pop()):
            if child.pid not in seen:
                seen.add(child.pid)
                result.append(child)
                waiting.append(child.pid)
    return result


def _children(pid: int) -> Iterable[Process]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found = [process(int(child)) for child in file.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield from (child for child in found if child is not None)


def marked(markers: Collection[str]) -> dict[str, list[int]]:
    """The living processes that carry one of these markers, by marker. Those of other users are seen by root only.

    Raises OSError if it cannot be said just now.
    """
    wanted = {f"{MARKER}={marker}".encode(): marker for marker in markers}
    result: dict[str, list[int]] = {}
    for pid in pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                entries = file.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        for entry in entries:
            marker = wanted.get(entry)
            if marker is not None:
                found = process(pid)
                if found is not None and found.state not in "ZX":
                    result.setdefault(marker, []).append(pid)
                break
    return result


def command_lines() -> Iterator[tuple[int, list[bytes]]]:
    """Every process of the machine with the words of its command line, as far as that can be read."""
    for pid in pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            yield pid, file.read().rstrip(b"\0").split(b"\0")


def shared_memory_once(pid: int) -> int | None:
    """Memory of a process in bytes, with what it shares divided among the sharers; None if it cannot be read. Slow."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return None
    return None
