"""The end of a journal: where it is, and what stands in the log behind it after a crash.

Decides what of the log a crash left half done, and what had been whole. Never touches anything but the end, and that
only when told. Invariant: SQLite's own verdict on its log is taken as it is.
"""

from __future__ import annotations

import sqlite3
import struct
from dataclasses import dataclass
from pathlib import Path

from fairlead.journal import format as files
from fairlead.journal.reader import History

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


@dataclass(frozen=True, slots=True)
class LogEnd:
    """What stands in the write-ahead log behind the last commit that SQLite accepts."""

    unfinished_bytes: int = 0
    """Of a write that a crash left half done."""
    dropped_commits: bool = False
    """Commits that were whole once are among it: more was written after them, or the log does not even begin well."""


def log_end(path: Path, accepted: int) -> LogEnd:
    """The end of the log of the journal at `path`, of which SQLite accepts so many frames.

    Frames with the salts of the log's own beginning were written since it was begun anew; others are old ones that are
    yet to be overwritten. A writer begins no commit before the one before it is durable, so what is followed by another
    frame had been.
    """
    wal = path.with_name(path.name + "-wal")
    if not wal.exists():
        return LogEnd()
    size = wal.stat().st_size
    with wal.open("rb") as log:
        head = log.read(_HEADER.size)
        if size <= _HEADER.size:
            return LogEnd(size % _HEADER.size)
        if not _header_holds(head):
            return LogEnd(size, dropped_commits=True)
        _, _, page, _, *salts, _, _ = _HEADER.unpack(head)
        frame_bytes = _FRAME_HEADER + page
        written, dropped, committed = 0, False, False
        for at in range(_HEADER.size + accepted * frame_bytes, size, frame_bytes):
            log.seek(at)
            start = log.read(_FRAME.size)
            if len(start) < _FRAME.size:
                written += size - at
                break
            _, database_pages, *own_salts = _FRAME.unpack(start)
            if own_salts == salts:
                dropped = dropped or committed
                committed = database_pages > 0
                written += min(frame_bytes, size - at)
        return LogEnd(written, dropped)


def _header_holds(head: bytes) -> bool:
    """Whether the log's beginning is what SQLite wrote, by the checksum in it."""
    order = ">" if head[3] & 1 else "<"
    first = second = 0
    for one, two in struct.iter_unpack(f"{order}2I", head[:24]):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return (first, second) == _HEADER.unpack(head)[6:]


def fold_back(connection: sqlite3.Connection) -> None:
    """Fold back what is accepted of the log, so that the next write begins it anew. On a full disk it stays there."""
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    except sqlite3.OperationalError as e:
        if e.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
            raise


def require_sound(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file in which SQLite finds pages that do not fit together."""
    said = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if said != "ok":
        raise files.JournalDamaged(f"{path} is damaged as a file ({said}); restore it from a backup")


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
        # A damaged snapshot may have a time that is no number: what reads it says so.
        return last, newest[0] if newest and isinstance(newest[0], int) else -(2**62), chain
    at_ms, checksum = history.connection.execute(
        "SELECT at_ms, checksum FROM records WHERE seq = ?", (last,)
    ).fetchone()
    return last, at_ms, checksum
