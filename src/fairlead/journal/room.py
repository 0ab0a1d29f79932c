"""Room on the disk that only the journal can use, behind the end of its write-ahead log.

Decides how much of it there is and when it is taken. Never changes what the log says or how long it is: the blocks are
there, the length of the file stays. Invariant: where the file system can do it and had the room when it was asked, so
much can be committed after the disk is full.

A log that was folded back is written from its start again, over blocks that it has: that needs no room at all.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

ROOM_BYTES = 4 * 2**20
"""More than three hundred commits of single cancels or ends; many that come together need one commit."""
STEP_BYTES = 4 * 2**20
"""Taken beyond that, so that it need not be taken at each commit."""
_KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE: take the blocks, and leave the length of the file as it is."""


class LogRoom:
    """The room behind the end of one write-ahead log."""

    def __init__(self, log: Path) -> None:
        self._fd = os.open(log, os.O_RDWR | os.O_CLOEXEC)
        self._taken_to = 0

    def keep(self) -> None:
        """Take room if the log came close to the end of what is taken. On a full disk: the next call tries again."""
        end = os.fstat(self._fd).st_size
        if end + ROOM_BYTES > self._taken_to and _allocate(self._fd, end, ROOM_BYTES + STEP_BYTES):
            self._taken_to = end + ROOM_BYTES + STEP_BYTES

    def close(self) -> None:
        """Let go of the file; doing it twice is harmless, also when its number is another file's by then."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)


def _allocate(fd: int, begin: int, size: int) -> bool:
    """Python's own `posix_fallocate` would make the file longer, and write zeros where the system cannot do it."""
    fallocate = getattr(ctypes.CDLL(None), "fallocate", None)
    if fallocate is None:
        return False
    return int(fallocate(fd, _KEEP_SIZE, ctypes.c_int64(begin), ctypes.c_int64(size))) == 0
