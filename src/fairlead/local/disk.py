"""The disk of the state directory: how much room is kept on it, so that what runs can always be stopped.

Decides from when on the disk counts as full (or as not there): then nothing new is taken in or started. Never deletes
anything.
Invariant: whoever asks gets what holds at this moment; nothing is remembered.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from fairlead.core.model.quantities import format_bytes

KEEP_BYTES = 64 * 2**20
KEEP_FILES = 1000
SMALL_DISK = 20
"""On a small disk no more than this part of it (one twentieth) is kept."""


class Disk:
    """The disk that a directory is on."""

    def __init__(self, directory: Path, keep_bytes: int | None = None, journal: Path | None = None) -> None:
        """`keep_bytes`: instead of what fits its size; 0: nothing is kept. `journal`: the file that is written to."""
        self._directory, self._keep_bytes, self._journal = directory, keep_bytes, journal

    def shortage(self) -> str:
        """What there is too little of, as a sentence that says what to do; empty while there is enough."""
        try:
            found = os.statvfs(self._directory)
        except OSError as problem:
            why = f"the state directory {self._directory} cannot be used: {problem.strerror}"
            return f"{why}; put it back, and start the service anew"
        if self._journal is not None and not os.path.exists(self._journal):
            # What is open goes on to be written, and is gone with this process.
            why = f"the journal {self._journal} was removed, and the next start would not know what is taken in now"
            return f"{why}; stop the service, and restore a backup (`fairlead restore`)"
        unit = found.f_frsize
        keep = min(KEEP_BYTES, found.f_blocks * unit // SMALL_DISK) if self._keep_bytes is None else self._keep_bytes
        if (free := found.f_bavail * unit) < keep:
            return self._full(f"{format_bytes(free)} free, {format_bytes(keep, up=True)} kept for cancels and ends")
        keep_files = min(KEEP_FILES, found.f_files // SMALL_DISK) if keep else 0
        if found.f_favail < keep_files:
            return self._full(f"room for {found.f_favail} files free, for {keep_files} kept for cancels and ends")
        return ""

    def require_room(self) -> None:
        """Raises OSError (ENOSPC) while there is too little."""
        if short := self.shortage():
            raise OSError(errno.ENOSPC, short)

    def _full(self, figures: str) -> str:
        return (
            f"the disk of the state directory is full: {figures}; free some space there "
            "(`fairlead clean` removes what ended long ago), what runs goes on meanwhile"
        )
