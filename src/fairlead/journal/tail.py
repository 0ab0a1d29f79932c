"""The end of a journal after a crash: what was torn is cut off and counted, what was whole stays.

Decides where a journal ends. Never touches anything but the end. Invariant: a record is only cut off if it is the last,
the one before it holds, and no snapshot was made after it; anything else is damage and refused.
"""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

from fairlead.journal import format as files
from fairlead.journal.reader import History, damaged

_MAGIC = b"SQLite format 3\0"
_SMALLEST_PAGE = 512
_HEADER = struct.Struct(">8I")
"""Of a write-ahead log of SQLite: magic, version, page size, checkpoint, salt 1 and 2, checksum 1 and 2."""
_FRAME = struct.Struct(">4I")
"""The start of a frame's 24-byte header: page, size of the database after a commit, salt 1 and 2."""
_FRAME_HEADER = 24


def require_database(path: Path) -> None:
    """Refuse a file that is not empty and not a database either: SQLite would take a short one for a new one."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size and (size < _SMALLEST_PAGE or file.read(len(_MAGIC)) != _MAGIC):
            raise files.JournalDamaged(
                f"{path} is damaged as a file (not a database, {size} bytes); restore it from a backup, or move it away"
            )


def require_fresh(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse to make a new journal of a file that was one once and has lost its tables."""
    if connection.execute("PRAGMA application_id").fetchone()[0] == files.APPLICATION_ID:
        raise files.JournalDamaged(f"{path} is damaged as a file (its tables are gone); restore it from a backup")


class LogEnd:
    """How much of the write-ahead log was written before SQLite opens it, to be compared with what it accepts.

    Frames after the last complete commit are what a crash left half done. Frames with other salts are old ones that are
    yet to be overwritten.
    """

    def __init__(self, path: Path) -> None:
        self._frame_bytes, self._written = 0, 0
        wal = path.with_name(path.name + "-wal")
        if not wal.exists():
            return
        size = wal.stat().st_size
        with wal.open("rb") as log:
            head = log.read(_HEADER.size)
            if len(head) < _HEADER.size:
                self._frame_bytes, self._written = 1, len(head)
                return
            _, _, page, _, salt1, salt2, _, _ = _HEADER.unpack(head)
            self._frame_bytes = _FRAME_HEADER + page
            at = _HEADER.size
            while at < size:
                log.seek(at)
                start = log.read(_FRAME.size)
                if len(start) == _FRAME.size and _FRAME.unpack(start)[2:] != (salt1, salt2):
                    break
                at += self._frame_bytes
            self._written = min(at, size) - _HEADER.size

    def cut_off(self, connection: sqlite3.Connection) -> int:
        """How many written bytes SQLite did not accept, after it has folded back all that it did.

        On a full disk that cannot be folded back; it is not counted then, and what was accepted stays in the log.
        """
        try:
            accepted = max(0, int(connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]))
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
                raise
            return 0
        return max(0, self._written - accepted * self._frame_bytes)


def cut_torn_record(history: History) -> int | None:
    """Cut off the last record if it does not hold, keeping it aside; its seq, or None if all is well.

    Raises `JournalDamaged` if the one before it does not hold either, or if a snapshot shows that it was whole once.
    """
    first, last = history.first_seq, history.last_seq
    if last < first or _holds(history, last):
        return None
    if last > first and not _holds(history, last - 1):
        raise damaged(last - 1, "is damaged: its checksum does not hold")
    if any(seq >= last for seq in history.snapshot_seqs()):
        raise damaged(last, "is damaged: its checksum does not hold, although a snapshot was made after it")
    put_aside(history.connection, last)
    return last


def _holds(history: History, seq: int) -> bool:
    try:
        return next(history.records(seq, seq), None) is not None
    except files.JournalDamaged:
        return False


def put_aside(connection: sqlite3.Connection, from_seq: int) -> int:
    """Move the records from `from_seq` on out of history and drop the snapshots after them; how many records."""
    with files.transaction(connection):
        connection.execute(
            "INSERT INTO cut_records (seq, at_ms, kind, payload, outcome, checksum) "
            "SELECT * FROM records WHERE seq >= ? ORDER BY seq",
            (from_seq,),
        )
        count = connection.execute("DELETE FROM records WHERE seq >= ?", (from_seq,)).rowcount
        connection.execute("DELETE FROM snapshots WHERE seq >= ?", (from_seq,))
    return count


def end(history: History) -> tuple[int, int, bytes]:
    """The seq, time and checksum of the last record; before the first one: the lowest time there is."""
    first, chain = files.beginning(history.connection)
    last = history.last_seq
    if last < first:
        newest = history.connection.execute("SELECT at_ms FROM snapshots ORDER BY seq DESC LIMIT 1").fetchone()
        return last, newest[0] if newest else -(2**62), chain
    at_ms, checksum = history.connection.execute(
        "SELECT at_ms, checksum FROM records WHERE seq = ?", (last,)
    ).fetchone()
    return last, at_ms, checksum
