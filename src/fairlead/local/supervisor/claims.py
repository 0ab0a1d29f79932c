"""Whose run it is: how a supervisor takes it, and gives it back where the machine kept it from beginning.

Decides which failures pass, so that the run may be started again. Never executes anything. Invariant: a claim is given
back only before the command could begin, and by the process that made it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys

from . import kernel, run_files
from .sealed import Damaged

PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})
"""What may be better in a moment: no more file descriptors, no memory for a process."""
BROKEN_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
"""What is waited for however long it takes: somebody has to make room, or see to the disk."""
_NUMBER = re.compile(r"\[Errno (\d+)\]")
"""Of an error, in the words of Python: a supervisor that cannot even be loaded says no others."""
_NOT_LOADED = re.compile(r"can't open file|ModuleNotFoundError|ImportError")
"""Of a supervisor that is not there, or not all of it: while another version is installed its files go and come."""


def record(spec: run_files.Record, supervisor: int, command: int) -> run_files.Record:
    """What a claim says: by whom the run is executed, and with what."""
    mine, its = kernel.process(supervisor), kernel.process(command)
    return {
        "boot": kernel.boot_id(),
        "supervisor": supervisor,
        "supervisor_ticks": mine.started_ticks if mine else 0,
        "pid": command,
        "pid_ticks": its.started_ticks if its else 0,
        "started_at_ms": run_files.now_ms(),
        "marker": spec["marker"],
        "gpus": spec["gpus"],
        "cpus": spec["cpus"],
        "groups": spec["groups"],
    }


def give_back(directory: str, problem: OSError) -> bool:
    """Leave a run that was not begun as if nobody had taken it, and say why. False: that would not help, or failed."""
    if problem.errno not in PASSING | BROKEN_DISK:
        return False
    if is_ours(directory):
        with contextlib.suppress(OSError):
            _remove_what_was_made(directory)
    if is_ours(directory):
        return False
    print(problem, file=sys.stderr)
    return True


def _remove_what_was_made(directory: str) -> None:
    """The claim last: as long as it is there nobody else begins."""
    for name in os.listdir(directory):
        if name.startswith((run_files.STDOUT, run_files.STDERR)) or name.endswith(".reserved"):
            os.unlink(os.path.join(directory, name))
    os.unlink(os.path.join(directory, run_files.CLAIM))
    run_files.sync_directory(directory)


def is_ours(directory: str) -> bool:
    """Whether this process has made the claim."""
    try:
        claim = run_files.read(directory, run_files.CLAIM)
    except (Damaged, OSError):
        return False
    return claim is not None and claim["supervisor"] == os.getpid()


def kept_from(words: str) -> OSError | None:
    """What kept a supervisor that said this from beginning now; None: something else, which does not pass.

    One that said nothing was killed. That a machine kills them (no memory) must not fail job after job.
    """
    if not words:
        return OSError(errno.EAGAIN, "its supervisor was killed before it could begin")
    if _NOT_LOADED.search(words):
        return OSError(errno.EAGAIN, "its supervisor cannot be loaded; is Fairlead being installed?")
    number = next((int(found) for found in _NUMBER.findall(words)), 0)
    return OSError(number, os.strerror(number)) if number in PASSING | BROKEN_DISK else None
