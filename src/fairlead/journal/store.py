"""The durable log of everything that happened, and snapshots of what it had led to.

Decides when something is durable: when `commit` returns. Never reads a clock, and never decides what is recorded.
Invariant: records have seqs without gaps and times that do not go backwards; what `commit` has confirmed is there after
any crash, in order; there is one writer.

SQLite with a write-ahead log and `synchronous=FULL`: a commit costs one synchronisation with the disk, however many
records are in it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from pathlib import Path

from fairlead.journal import format as files
from fairlead.journal import reader, tail
from fairlead.journal.lock import WriterLock
from fairlead.journal.opening import Recovery, load_for_recovery, open_for_writing
from fairlead.journal.reader import Reader, Sizes
from fairlead.journal.room import LogRoom

_PRUNE_STEP = 10_000
"""Records deleted per transaction."""

_TRANSIENT = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Journal:
    """A journal opened for writing; a context manager. One thread calls `append`, `commit` and `save_snapshot`.

    `path` is the database file; it is made if it is not there (for its owner alone, since commands and their
    environment are in it). `accept_loss`: the name of a loss that may be given up. Raises `JournalInUse` if another
    process writes it, `JournalLoss` if what was confirmed is not there and not accepted, `JournalDamaged` if the file
    cannot be read, `JournalError` if it cannot be opened or is of a newer format.
    """

    def __init__(self, path: str | Path, *, keep_snapshots: int = 3, accept_loss: str = "") -> None:
        if keep_snapshots < 1:
            raise ValueError(f"keep_snapshots is {keep_snapshots}; at least 1 is needed")
        self.path = Path(path)
        self._keep = keep_snapshots
        self._pending: list[tuple[int, int, str, bytes, bytes, bytes]] = []
        self._broken = ""
        self._room: LogRoom | None = None
        self._lock = WriterLock(self.path)
        try:
            self._open(accept_loss)
        except sqlite3.DatabaseError as e:
            self.close()
            raise reader.unreadable(self.path, e) from e
        except OSError as e:
            self.close()
            raise files.JournalError(f"cannot open {self.path}: {e.strerror}; is it a file, and yours?") from e
        except BaseException:
            self.close()
            raise

    def _open(self, accept_loss: str) -> None:
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._connection, self.opening = open_for_writing(self.path, self._lock, accept_loss)
        self.history = reader.History(self._connection, self.path)
        self.last_seq, self.last_at_ms, self._chain = tail.end(self.history)
        self.committed_seq = self.last_seq
        self._is_older = self.opening.migrated > 0
        self._lock.note(self.last_seq, self._chain)
        self._keep_room()

    def _keep_room(self) -> None:
        """The log is there as soon as something was written to it. What is durable already must not fail for this."""
        with contextlib.suppress(OSError):
            self._room = self._room or LogRoom(self.path.with_name(self.path.name + "-wal"))
            self._room.keep()

    def close(self) -> None:
        """Commit what waits if that is still possible, fold the log back, let go. Doing it twice is harmless.

        Raises `JournalError` if something that waited could not be made durable; the journal is closed all the same.
        """
        try:
            if self._pending and not self._broken:
                self.commit()
        finally:
            if self._room is not None:
                self._room.close()
            if hasattr(self, "_connection"):
                self._connection.close()
            self._lock.release()
            self._broken = "it is closed"

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def read(path: str | Path) -> Reader:
        """The journal at `path` for reading, from any process, whether or not a writer lives."""
        return Reader(path)

    def reader(self) -> Reader:
        """This journal for reading what is committed; for a thread of its own if need be."""
        return Reader(self.path)

    # --- Writing -----------------------------------------------------------------------------------------------------

    def append(self, at_ms: int, kind: str, payload: bytes, outcome: bytes = b"") -> int:
        """Put a record at the end and return its seq. It is durable after the next `commit`, not before.

        `at_ms` must not be earlier than the record before it (clamp the clock to `last_at_ms`). Raises `ValueError`
        for a time that goes backwards, an empty kind or a record that is too large; `JournalError` if the journal is
        broken.
        """
        if self._broken:
            raise self._refusal()
        if at_ms < self.last_at_ms:
            raise ValueError(f"record at {at_ms} ms, but the last one is at {self.last_at_ms} ms; clamp to it")
        if not (kind and kind.isascii()):
            raise ValueError(f"a record needs a kind, a word in ASCII; got {kind!r}")
        if len(payload) + len(outcome) > files.MAX_RECORD_BYTES:
            raise ValueError(
                f"a record of {len(payload) + len(outcome)} bytes; at most {files.MAX_RECORD_BYTES} are possible"
            )
        seq = self.last_seq + 1
        chain = files.record_checksum(self._chain, seq, at_ms, kind, payload, outcome)
        self._pending.append((seq, at_ms, kind, payload, outcome, chain))
        self.last_seq, self.last_at_ms, self._chain = seq, at_ms, chain
        return seq

    @property
    def pending(self) -> int:
        """How many records wait for `commit`."""
        return len(self._pending)

    def commit(self) -> int:
        """Make everything that was appended durable, all of it or nothing; return the last durable seq.

        Raises `JournalFull` if there is no room: the records are kept, call again later. Raises `JournalError` if the
        disk failed in a way that leaves open what it holds: then nothing more can be written until the journal is
        opened again.
        """
        if self._broken:
            raise self._refusal()
        if self._pending:
            try:
                self._renew_format()
                with files.transaction(self._connection):
                    self._connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)", self._pending)
            except sqlite3.Error as e:
                raise self._failure(e) from e
            self.committed_seq, chain = self._pending[-1][0], self._pending[-1][-1]
            self._pending.clear()
            # What is durable must not fail for what is only beside it: whoever hears of a failure does it again.
            with contextlib.suppress(OSError):
                self._lock.note(self.committed_seq, chain)
            self._keep_room()
        return self.committed_seq

    def _renew_format(self) -> None:
        """What is written from now on is of today's format, and the file says so before any of it is there."""
        if self._is_older:
            files.migrate(self._connection, self.path)
            self._is_older = False

    def _failure(self, e: sqlite3.Error) -> files.JournalError:
        code = getattr(e, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _TRANSIENT:
            return files.JournalFull(
                f"cannot write to {self.path}: {e}. {self.pending} records wait and are kept; free some space"
            )
        self._broken = f"writing failed: {e}"
        return self._refusal()

    def _refusal(self) -> files.JournalError:
        return files.JournalError(
            f"nothing can be written to {self.path} any more ({self._broken}); what was committed is safe up to record "
            f"{self.committed_seq}. Open the journal again"
        )

    def checkpoint(self) -> bool:
        """Fold the write-ahead log back into the database, as far as readers allow; whether all of it was.

        Takes some milliseconds for a large log: call it when nobody waits for a commit.
        """
        try:
            busy, log, done = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as e:
            raise self._failure(e) from e
        return not busy and log == done

    def sizes(self) -> Sizes:
        """How much there is (without what waits for `commit`)."""
        return self.history.sizes()

    # --- Snapshots ---------------------------------------------------------------------------------------------------

    def save_snapshot(self, seq: int, at_ms: int, state: bytes) -> None:
        """Keep `state`, the state after record `seq`, and forget all but the newest few. What waits is committed first.

        For replay the state must be canonical JSON (`encode_plain`) of an object whose `scheduler` is what
        `Scheduler.dump` gave; other keys are the caller's. Raises `ValueError` for a seq that is not in the journal or
        a state that is too large, otherwise as `commit`.
        """
        self.save_packed(seq, at_ms, packed(state))

    def save_packed(self, seq: int, at_ms: int, state: bytes) -> None:
        """The same of a state that is packed already: that takes long, and another process may do it."""
        self.commit()
        first, before = files.beginning(self._connection)
        if not first - 1 <= seq <= self.committed_seq:
            raise ValueError(f"a snapshot after record {seq}, but the journal has {first} to {self.committed_seq}")
        row = self._connection.execute("SELECT checksum FROM records WHERE seq = ?", (seq,)).fetchone()
        chain = row[0] if row else before
        sealed = files.snapshot_checksum(seq, at_ms, state, chain)
        try:
            self._renew_format()
            with files.transaction(self._connection):
                self._connection.execute(
                    "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)", (seq, at_ms, state, chain, sealed)
                )
                self._connection.execute(
                    "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)",
                    (self._keep,),
                )
        except sqlite3.Error as e:
            raise self._failure(e) from e

    def rollback(self) -> None:
        """Drop what waits for a commit; open the file again if a failed write left it unclear. Raises as `Journal`.

        It goes on from its last durable record, as if the rest had never been appended.
        """
        self._pending.clear()
        if self._broken:
            self.close()
            self.__init__(self.path, keep_snapshots=self._keep)  # type: ignore[misc]
            return
        self.last_seq, self.last_at_ms, self._chain = tail.end(self.history)
        self.committed_seq = self.last_seq

    def load_for_recovery(self) -> Recovery:
        """As `opening.load_for_recovery`, of what is committed."""
        return load_for_recovery(self.history)

    def prune(self, before_seq: int) -> int:
        """Forget the records before `before_seq` for ever; how many they were.

        Raises `JournalError` if no snapshot would be left to start from, that is for more than the oldest kept one
        covers.
        """
        covered = self.history.covered
        first = files.beginning(self._connection)[0]
        if covered is None or before_seq > covered + 1:
            covers = f"the oldest snapshot covers up to {covered}" if covered is not None else "no snapshot holds"
            raise files.JournalError(
                f"cannot forget the records before {before_seq}: {covers}, and without it they are needed"
            )
        for end in [*range(first + _PRUNE_STEP, before_seq, _PRUNE_STEP), before_seq] if before_seq > first else []:
            with files.transaction(self._connection):
                row = self._connection.execute("SELECT checksum FROM records WHERE seq = ?", (end - 1,)).fetchone()
                if row is None:
                    raise reader.damaged(end - 1, "is missing")
                self._connection.execute("DELETE FROM records WHERE seq < ?", (end,))
                files.set_meta(self._connection, "begins", end)
                files.set_meta(self._connection, "chain_before", row[0])
        return max(0, before_seq - first)


def packed(state: bytes) -> bytes:
    """A state as a snapshot keeps it. Raises `ValueError` if it is too large."""
    if len(state) > files.MAX_STATE_BYTES:
        raise ValueError(f"a state of {len(state)} bytes; at most {files.MAX_STATE_BYTES} are possible")
    return zlib.compress(state, 1)


def cut_off(path: str | Path, from_seq: int) -> int:
    """Put all records from `from_seq` on aside (they stay in the file) with the snapshots after them; how many.

    The way on for a journal with a damaged record in the middle. Needs the journal not to be in use. Raises as
    `Journal`, and `JournalError` if `from_seq` is before where history begins.
    """
    path = Path(path)
    if not path.is_file():
        raise files.JournalError(f"there is no journal at {path}; name the file, such as STATE/journal.db")
    lock = WriterLock(path)
    try:
        connection = files.connect(str(path))
        try:
            connection.execute("PRAGMA synchronous = FULL")
            files.migrate(connection, path)
            first = files.beginning(connection)[0]
            if from_seq < first:
                raise files.JournalError(
                    f"history begins with record {first}; cutting from {from_seq} on is not possible"
                )
            count = tail.put_aside(connection, from_seq)
            seq, _, chain = tail.end(reader.History(connection, path))
            lock.note(seq, chain)
            return count
        finally:
            connection.close()
    except sqlite3.DatabaseError as e:
        raise reader.unreadable(path, e) from e
    finally:
        lock.release()
