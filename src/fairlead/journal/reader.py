"""Reading a journal, also while its writer lives and from another process.

Decides nothing. Never writes. Invariant: a record that is handed out has been checked against the record before it;
one that does not hold, or is missing, ends the reading with `JournalDamaged` and its seq.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from fairlead.journal import format as files

_PAGE = 256
"""Records per query: short reads, so that a slow reader does not keep the writer from cleaning up."""

_SELECT = """
SELECT r.seq, r.at_ms, r.kind, r.payload, r.outcome, r.checksum,
    (SELECT b.checksum FROM records b WHERE b.seq = r.seq - 1)
FROM records r WHERE r.seq >= ? AND r.seq <= ? {and_kind} ORDER BY r.seq LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much there is; all sizes in bytes."""

    records: int
    first_seq: int
    last_seq: int
    snapshots: int
    database_bytes: int
    wal_bytes: int
    free_bytes: int
    """Space in the database file that pruning has freed; it is used again before the file grows."""


def damaged(seq: int, what: str) -> files.JournalDamaged:
    """The error for a record in the middle, with what to do about it."""
    return files.JournalDamaged(
        f"record {seq} {what}. Nothing after it can be trusted to follow from what came before. Restore the journal "
        f"from a backup; or give up everything from this record on with `fairlead journal cut --from {seq}` (it is put "
        "aside inside the file, not deleted)",
        seq,
    )


class History:
    """What a connection to a journal shows, checked as it is read."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection, self.path = connection, path

    @property
    def first_seq(self) -> int:
        """Where history begins: 1, unless older records were pruned."""
        return files.beginning(self.connection)[0]

    @property
    def last_seq(self) -> int:
        """The seq of the last durable record; `first_seq - 1` when there is none."""
        last = self.connection.execute("SELECT max(seq) FROM records").fetchone()[0]
        return int(last) if last is not None else self.first_seq - 1

    def records(
        self, from_seq: int = 1, to_seq: int | None = None, *, kinds: Collection[str] | None = None
    ) -> Iterator[files.Record]:
        """The records of a range, both ends inclusive, in order, each checked against the one before it.

        `kinds` picks some of them. A range that begins before history does begins with it. Ends at what was durable
        when the last page was read, so a live journal can be followed by calling again from the next seq. Raises
        `JournalDamaged` at the first that does not hold or, without `kinds`, is missing (with them, one whose kind
        itself was hit is passed over).
        """
        names = tuple(sorted(kinds)) if kinds is not None else ()
        query = _SELECT.format(and_kind=f"AND r.kind IN ({','.join('?' * len(names))})" if kinds is not None else "")
        last = 2**62 if to_seq is None else to_seq
        try:
            first, chain = files.beginning(self.connection)
            due, there = max(from_seq, first), min(last, self.last_seq)
            while rows := self.connection.execute(query, (due, last, *names, _PAGE)).fetchall():
                for *row, before in rows:
                    if kinds is None and row[0] != due:
                        raise self._gap(due)
                    if before is None and row[0] != first:
                        # What was before it may have been pruned since the last page: history begins with it then.
                        first, chain = files.beginning(self.connection)
                        if row[0] < first:
                            raise self._gap(row[0])
                    record = files.whole(tuple(row))
                    if record is None or not files.holds(record, chain if row[0] == first else before):
                        raise damaged(row[0], "is damaged: its checksum does not hold")
                    yield record
                    due = record.seq + 1
                if len(rows) < _PAGE:
                    break
            # A damaged number of a record ends the search of SQLite for those behind it, without an error.
            if kinds is None and due <= there:
                raise self._gap(due)
        except sqlite3.DatabaseError as e:
            raise unreadable(self.path, e) from e

    def _gap(self, due: int) -> files.JournalError:
        begins = self.first_seq
        if begins > due:
            said = f"record {due} was pruned while it was being read; history now begins with {begins}"
            return files.JournalError(said)
        return damaged(due, "is missing")

    def seq_at(self, at_ms: int) -> int:
        """The seq of the last record not later than `at_ms`; `first_seq - 1` if all are later.

        Times never go backwards in a journal, so this is a binary search.
        """
        low, high = self.first_seq - 1, self.last_seq
        while low < high:
            middle = (low + high + 1) // 2
            row = self.connection.execute("SELECT at_ms FROM records WHERE seq = ?", (middle,)).fetchone()
            if row is None:
                raise self._gap(middle)
            if not isinstance(row[0], int):
                raise damaged(middle, "is damaged: its time is no number")
            low, high = (middle, high) if row[0] <= at_ms else (low, middle - 1)
        return low

    def decided_beside(self, seq: int, step: int) -> int | None:
        """The next record behind this one (`step` 1), or before it (-1), that has decisions (not checked)."""
        after = "seq > ? AND length(outcome) > 2 ORDER BY seq"
        before = "seq < ? AND length(outcome) > 2 ORDER BY seq DESC"
        query = f"SELECT seq FROM records WHERE {after if step > 0 else before} LIMIT 1"
        row = self.connection.execute(query, (seq,)).fetchone()
        return int(row[0]) if row is not None else None

    def snapshot_seqs(self) -> tuple[int, ...]:
        """After which records there are snapshots, newest first (not checked)."""
        return tuple(r[0] for r in self.connection.execute("SELECT seq FROM snapshots ORDER BY seq DESC"))

    def open_snapshot(self, seq: int) -> files.Snapshot:
        """The snapshot after record `seq`. Raises `JournalDamaged` if it is not what was written, or not there."""
        return self._snapshot_row(seq).opened()

    def _snapshot_row(self, seq: int) -> files.SnapshotRow:
        try:
            row = self.connection.execute("SELECT * FROM snapshots WHERE seq = ?", (seq,)).fetchone()
        except sqlite3.DatabaseError as e:
            raise files.JournalDamaged(f"the snapshot after record {seq} is damaged: {e}") from e
        if row is None:
            raise files.JournalDamaged(f"there is no snapshot after record {seq} any more")
        return files.SnapshotRow(*row)

    def first_good(self, seqs: Iterable[int]) -> tuple[files.Snapshot | None, tuple[str, ...]]:
        """The first of these snapshots that holds, and why those before it were passed over."""
        passed_over: list[str] = []
        for seq in seqs:
            try:
                return self.open_snapshot(seq), tuple(passed_over)
            except files.JournalDamaged as e:
                passed_over.append(str(e))
        return None, tuple(passed_over)

    def snapshot(self, at_or_before: int | None = None) -> files.Snapshot | None:
        """The newest snapshot that holds, not after the record `at_or_before`; None if there is none."""
        return self.first_good(seq for seq in self.snapshot_seqs() if at_or_before is None or seq <= at_or_before)[0]

    def first_snapshot(self) -> files.Snapshot | None:
        """The oldest snapshot that holds; None if there is none."""
        return self.first_good(reversed(self.snapshot_seqs()))[0]

    @property
    def covered(self) -> int | None:
        """The last record that the oldest snapshot that holds covers; None: none does. What is behind it is needed."""
        for seq in reversed(self.snapshot_seqs()):
            try:
                self._snapshot_row(seq).checked()
            except files.JournalDamaged:
                continue
            return seq
        return None

    def prunable(self, before_ms: int) -> int:
        """How many records are older than this and not needed at the next start."""
        first = self.first_seq
        return max(0, min(self.seq_at(before_ms), self.covered or 0) + 1 - first)

    def cut_seqs(self) -> tuple[int, ...]:
        """The seqs of records that were cut off at some time and are kept aside, in the order of cutting."""
        return tuple(r[0] for r in self.connection.execute("SELECT seq FROM cut_records ORDER BY id"))

    @property
    def used_bytes(self) -> int:
        """What is in the database, wherever it is stored just now, without the space that pruning has freed."""
        pages, free, size = (
            self.connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def sizes(self) -> Sizes:
        """How much there is, counted without reading the records."""
        first, last = self.first_seq, self.last_seq
        with closing(self.connection.cursor()) as c:
            snapshots = c.execute("SELECT count(*) FROM snapshots").fetchone()[0]
            free = c.execute("PRAGMA freelist_count").fetchone()[0] * c.execute("PRAGMA page_size").fetchone()[0]
        wal = self.path.with_name(self.path.name + "-wal")
        return Sizes(
            records=last - first + 1,
            first_seq=first,
            last_seq=last,
            snapshots=snapshots,
            database_bytes=self.path.stat().st_size,
            wal_bytes=wal.stat().st_size if wal.exists() else 0,
            free_bytes=free,
        )


class Reader(History):
    """A journal opened for reading only; a context manager. Use it from one thread."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if not path.is_file():
            raise files.JournalError(f"there is no journal at {path}; name the file, such as STATE/journal.db")
        try:
            super().__init__(files.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True), path)
        except sqlite3.Error as e:
            raise files.JournalError(f"cannot open {path}: {e}") from e
        try:
            files.require_known(self.connection, path)
        except sqlite3.DatabaseError as e:
            self.close()
            raise unreadable(path, e) from e
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file; doing it twice is harmless."""
        self.connection.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def unreadable(path: Path, e: sqlite3.Error) -> files.JournalError:
    """What to say when SQLite cannot read the file."""
    if isinstance(e, sqlite3.OperationalError):
        return files.JournalError(f"cannot read {path}: {e}; is it readable for you, and its directory writable?")
    if getattr(e, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
        return files.JournalDamaged(
            f"{path} is not a journal of Fairlead, or its beginning is damaged ({e}); name another file, or restore "
            "it from a backup"
        )
    return files.JournalDamaged(
        f"{path} is damaged as a file ({e}); restore it from a backup, or save what can be read with "
        f"`sqlite3 {path.name} .recover`"
    )
