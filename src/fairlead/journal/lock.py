"""The lock file beside a journal: who writes it, and the mark of how far it was confirmed.

Decides who may write. Never waits, and never reads the journal. Invariants: while the lock is held no other process
(and no second journal object in this one) holds it, and the kernel lets go of it when the process ends, however it
ends; the mark is never ahead of what is durable.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from fairlead.journal.format import JournalError, JournalInUse

_PID_BYTES = 16
_MARK_BYTES = 80


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a journal was confirmed: its last record, and the checksum of that (`chain`)."""

    seq: int
    chain: bytes


class WriterLock:
    """The lock file of the journal at `path`.

    Raises `JournalInUse` at once if another writer holds it. The file stays when the lock is let go: removing it would
    let two writers hold locks on two files of the same name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        self.mark: Mark | None = None
        """What was confirmed by this writer or one before it; None: that is not known."""
        self.mark_damaged = False
        """There was a mark, and it is not what was written."""
        self._fd = -1
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._take(path)
        except OSError as e:
            self.release()
            raise JournalError(f"cannot open {self.path}: {e.strerror}; is the state directory there and yours?") from e
        except BaseException:
            self.release()
            raise

    def _take(self, journal: Path) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.pread(self._fd, _PID_BYTES, 0).strip()
            pid = int(said) if said.isdigit() else None
            by = f"process {pid}" if pid else "another process"
            raise JournalInUse(
                f"{journal} is in use by {by}; stop it, or give this service another state directory", pid
            ) from None
        try:
            self.mark = _mark_in(self._fd)
        except ValueError:
            self.mark_damaged = True
        os.pwrite(self._fd, (b"%d" % os.getpid()).ljust(_PID_BYTES), 0)

    def note(self, seq: int, chain: bytes) -> None:
        """Say how far the journal is durable. Survives the process; after a power cut it may be some seconds old."""
        words = b"%d" % seq, chain.hex().encode()
        content = b" ".join((*words, _seal(*words))).ljust(_MARK_BYTES - 1) + b"\n"
        os.pwrite(self._fd, content, _PID_BYTES)
        self.mark, self.mark_damaged = Mark(seq, chain), False

    def release(self) -> None:
        """Let go; doing it twice is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_written(path: Path) -> bool:
    """Whether somebody writes the journal at `path` now, as far as can be seen from here.

    The system's list of locks is read: to try the lock would be in the way of a service that starts.
    """
    try:
        file = path.with_name(path.name + ".lock").stat().st_ino
        held = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    except OSError:
        return False
    return any(lock[1] == "FLOCK" and lock[5].endswith(f":{file}") for lock in held)


def mark_of(path: Path) -> Mark | None:
    """How far the journal at `path` was confirmed, whoever writes it now; None: that is not known."""
    try:
        with path.with_name(path.name + ".lock").open("rb") as file:
            return _mark_in(file.fileno())
    except (OSError, ValueError):
        return None


def _mark_in(fd: int) -> Mark | None:
    """None: there is none yet. Raises ValueError if it is not what was written."""
    if not (words := os.pread(fd, _MARK_BYTES, _PID_BYTES).split()):
        return None
    seq, chain, seal = words
    if seal != _seal(seq, chain):
        raise ValueError("the seal of the mark does not hold")
    return Mark(int(seq), bytes.fromhex(chain.decode()))


def _seal(*words: bytes) -> bytes:
    return b"%08x" % zlib.crc32(b" ".join(words))
