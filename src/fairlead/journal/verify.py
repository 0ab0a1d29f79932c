"""Whether a journal is what was written, from its first byte to its last.

Decides what is wrong with it, all of it, and says so record by record. Never changes anything. Invariant: a journal
that it calls good is one from which `load_for_recovery` and `replay` can read every record.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fairlead.journal import format as files
from fairlead.journal.lock import mark_of
from fairlead.journal.reader import Reader, Sizes

MAX_PROBLEMS = 100
"""Reported one by one; a file with more is beyond looking at each."""

_RESET_BUG = (3, 7, 0), (3, 51, 3)
"""First SQLite with the bug in which a log that is being restarted can lose a transaction, and the first without."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; `seq` is 0 where no single record is to blame."""

    seq: int
    what: str


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What was looked at, and what was found."""

    path: str
    problems: tuple[Problem, ...]
    sizes: Sizes | None
    snapshots: tuple[int, ...]
    """After which records there are snapshots that hold, newest first."""
    cut_seqs: tuple[int, ...]
    """Records that were cut off once and are kept aside."""
    format: int
    sqlite_version: str
    journal_mode: str
    recovery_from: int | None
    """The record after which recovery would begin (0: the start); None if it would fail."""

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not self.problems

    def notes(self) -> tuple[str, ...]:
        """What to know about this SQLite and this file, in sentences."""
        version = tuple(int(n) for n in self.sqlite_version.split("."))
        said = []
        if _RESET_BUG[0] <= version < _RESET_BUG[1]:
            said.append(
                f"SQLite {self.sqlite_version} has the bug of the write-ahead log that 3.51.3 fixed; it needs two "
                "connections that write or fold the log back at once, and a journal has one, held by a lock: it cannot "
                "occur here"
            )
        if self.cut_seqs:
            said.append(f"{len(self.cut_seqs)} records were cut off at some time and are kept aside in the file")
        return tuple(said)


def verify(path: str | Path) -> VerifyResult:
    """Check the whole journal at `path`; it may be in use.

    Every checksum, the chain, gaps, times, that all is there that was confirmed, snapshots, and the file itself
    (SQLite's own check, which takes about a second for a gigabyte). Raises `JournalError` if there is no journal, or
    one of another format.
    """
    problems: list[Problem] = []
    sizes: Sizes | None = None
    cut: tuple[int, ...] = ()
    good: list[int] = []
    start: int | None = None
    version, mode = 0, ""
    mark = mark_of(Path(path))  # Before the view: a living writer is never behind it.
    try:
        with Reader(path) as reader:
            connection = reader.connection
            # One view of the file for all checks, whatever a living writer does meanwhile.
            connection.execute("BEGIN")
            version = files.require_known(connection, path)
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            sizes, cut = reader.sizes(), reader.cut_seqs()
            problems += islice(_records(connection), MAX_PROBLEMS)
            problems += _snapshots(reader, good)
            # A snapshot, too, is of what was confirmed.
            confirmed = max([mark.seq if mark is not None else 0, *good[:1]])
            if (last := sizes.last_seq) < confirmed:
                what = "is missing" if last + 1 == confirmed else f"is missing, with all up to {confirmed}"
                problems.append(Problem(last + 1, f"{what}; it was confirmed once"))
            else:
                start = _recovery_start(reader.first_seq, good, [p.seq for p in problems])
            if not good and reader.first_seq > 1:
                problems.append(Problem(0, f"history begins with record {reader.first_seq}, and no snapshot holds"))
            problems += _file(connection)
    except (sqlite3.DatabaseError, files.JournalDamaged) as e:
        problems.append(Problem(0, f"the file cannot be read to its end: {e}"))
    return VerifyResult(
        str(path), tuple(problems), sizes, tuple(good), cut, version, sqlite3.sqlite_version, mode, start
    )


def _snapshots(reader: Reader, good: list[int]) -> Iterator[Problem]:
    """What is wrong with the snapshots; those that hold are put into `good`, newest first."""
    for seq in reader.snapshot_seqs():
        try:
            good.append(reader.open_snapshot(seq).seq)
        except files.JournalDamaged as e:
            yield Problem(0, str(e))


def _records(connection: sqlite3.Connection) -> Iterator[Problem]:
    """What is wrong with the records, each judged by itself: one bad one does not spoil those after it."""
    due, chain = files.beginning(connection)
    last_at_ms = -(2**63)
    for row in connection.execute("SELECT * FROM records ORDER BY seq"):
        record = files.whole(row)
        if record is None:
            yield Problem(row[0], "is damaged: a value has the wrong type")
            due, chain = row[0] + 1, b""
            continue
        if record.seq != due:
            yield Problem(due, f"is missing, with all up to {record.seq - 1}" if record.seq > due + 1 else "is missing")
            chain = b""
        if chain and not files.holds(record, chain):
            # If the next one follows from what this one should be, only its stored checksum was hit.
            yield Problem(record.seq, "is damaged: its checksum does not hold")
            chain = files.record_checksum(chain, record.seq, record.at_ms, record.kind, record.payload, record.outcome)
            chain = chain if _follows(connection, record.seq, chain) else record.checksum
        else:
            chain = record.checksum
        if record.at_ms < last_at_ms:
            yield Problem(record.seq, f"is at {record.at_ms} ms, earlier than the one before it")
        due, last_at_ms = record.seq + 1, record.at_ms


def _follows(connection: sqlite3.Connection, seq: int, chain: bytes) -> bool:
    """Whether the record after `seq` holds with `chain` before it."""
    row = connection.execute("SELECT * FROM records WHERE seq = ?", (seq + 1,)).fetchone()
    record = files.whole(row) if row else None
    return record is not None and files.holds(record, chain)


def _recovery_start(first: int, good: list[int], bad: list[int]) -> int | None:
    """After which record recovery would begin: the newest good snapshot or the start; None if it could not go on."""
    start = good[0] if good else 0
    return None if start + 1 < first or any(seq > start for seq in bad) else start


def _file(connection: sqlite3.Connection) -> Iterator[Problem]:
    """What SQLite itself finds wrong with the file."""
    for (line,) in connection.execute(f"PRAGMA integrity_check({MAX_PROBLEMS})"):
        if line != "ok":
            yield Problem(0, f"SQLite: {line}")
