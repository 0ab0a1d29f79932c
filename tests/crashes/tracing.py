"""Faults at the n-th system call of a kind, put there by strace (`-e inject`), which needs to be allowed to trace.

Decides what a fault is and how it is said. A thread or process counts its own calls, those of each kind by themselves.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from dataclasses import dataclass

WRITES = ("write", "pwrite64", "writev", "sendmsg")
FILES = ("openat", "rename", "link", "unlink", "mkdir", "rmdir", "ftruncate", "fallocate", "chmod", "fchmod")
DURABLE = ("fsync", "fdatasync")
PROCESSES = ("clone", "clone3", "vfork", "fork", "pipe2", "wait4", "kill", "pidfd_open", "pidfd_send_signal", "dup2")
READS = ("read", "pread64", "getdents64", "newfstatat", "mmap", "close", "lseek", "fcntl", "flock")
ERRORS = {
    "EIO": (*WRITES[:2], *DURABLE, "openat", "rename", "link", "read", "pread64", "ftruncate", "unlink"),
    "ENOSPC": ("write", "pwrite64", *DURABLE, "openat", "rename", "link", "mkdir", "ftruncate", "fallocate"),
    "EMFILE": ("openat", "pipe2", "pidfd_open"),
    "EINTR": ("read", "write", "openat", "wait4", "fsync", "rt_sigtimedwait", "epoll_wait", "poll"),
    # Not at mmap: where a new thread has no memory for its first step, CPython lets its starter wait for ever.
    "ENOMEM": ("clone", "clone3", "fork", "vfork", "openat"),
    "EROFS": ("openat", "mkdir", "rename", "unlink", "link"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens, at which call of which kind, and how many of them in a row."""

    call: str
    what: str
    """The name of an error, or KILL."""
    first: int
    times: int = 1

    def words(self) -> list[str]:
        """For strace."""
        act = "signal=KILL" if self.what == "KILL" else f"error={self.what}"
        last = f"..{self.first + self.times - 1}" if self.times > 1 else ""
        return ["-e", f"trace={self.call}", "-e", f"inject={self.call}:{act}:when={self.first}{last}"]

    def __str__(self) -> str:
        return f"{self.what} at {self.call} {self.first}, {self.times} in a row"


def drawn(dice: random.Random, most: int) -> Fault:
    """Some fault, at one of the first `most` calls of its kind: a kill as often as an error."""
    if dice.random() < 0.5:
        call = dice.choice([*WRITES[:2], *FILES, *DURABLE, *PROCESSES, *READS])
        return Fault(call, "KILL", dice.randint(1, most))
    what = dice.choice(sorted(ERRORS))
    return Fault(dice.choice(ERRORS[what]), what, dice.randint(1, most), dice.choice([1, 1, 3, 30]))


def strace(fault: Fault, *more: str) -> list[str]:
    """The command that traces with it; the rest of the command line, or `-p PID`, comes after."""
    return ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", "signal=none", *fault.words(), *more]


def allowed() -> str:
    """Why it cannot be done here; empty if it can."""
    if shutil.which("strace") is None:
        return "strace is not installed (apt-get install strace)"
    done = subprocess.run(
        strace(Fault("fsync", "EIO", 1), "true"), capture_output=True, text=True, timeout=50, check=False
    )
    return f"strace may not trace here: {done.stderr.strip()}" if done.returncode else ""
