"""One writer: the lock beside a journal, which also says how far it had been written.

Decides who may write. Never waits. Invariant: while the lock is held no other process (and no second journal object in
this one) holds it; the kernel lets go of it when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from fairlead.journal.format import JournalError, JournalInUse


class WriterLock:
    """The lock file of the journal at `path`: the writer's process id, and the last seq it had made durable.

    Raises `JournalInUse` at once if another writer holds it. The file stays when the lock is let go: removing it would
    let two writers hold locks on two files of the same name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise JournalError(f"cannot open {self.path}: {e.strerror}; is the state directory there and yours?") from e
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, _ = self._read()
            os.close(self._fd)
            who = f"process {pid}" if pid else "another process"
            raise JournalInUse(
                f"{path} is in use by {who}; stop it, or give this service another state directory", pid
            ) from None
        self.held_before: int | None = self._read()[1]
        """The last seq an earlier writer had committed, as far as is known."""
        self.note(self.held_before or 0)

    def _read(self) -> tuple[int | None, int | None]:
        pid, _, last = os.pread(self._fd, 64, 0).strip().partition(b" ")
        return int(pid) if pid.isdigit() else None, int(last) if last.strip().isdigit() else None

    def note(self, last_seq: int) -> None:
        """Say how far the journal is durable. Survives the process, not the machine: a hint that is never too high."""
        os.pwrite(self._fd, b"%-10d %-20d\n" % (os.getpid(), last_seq), 0)

    def release(self) -> None:
        """Let go; doing it twice is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
