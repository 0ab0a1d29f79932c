"""A journal opened for writing, and where its reader starts again.

Decides whether it may be opened at all: what is lost has to be accepted by its name first. Never writes a record.
Invariant: until that is decided nothing of the files is changed, and what is given up has been copied aside.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairlead.journal import format as files
from fairlead.journal import losses, tail
from fairlead.journal.lock import Mark, WriterLock
from fairlead.journal.losses import Loss
from fairlead.journal.reader import History, unreadable

_WAL_PAGES = 8192
"""SQLite folds the log back by itself beyond this (32 MiB), should nobody call `checkpoint` in time."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What was found when the journal was opened."""

    created: bool
    migrated: int
    """Format steps that are taken with the first write; until then whoever wrote it can go on with it."""
    unfinished_bytes: int
    """Of a write at the end of the log that a crash left half done; it was cut off."""
    mark_damaged: bool
    """What was kept beside the journal of how far it was confirmed could not be read."""
    given_up: str
    """What became of the loss that was to be accepted, as a sentence; empty: none was."""

    def sentences(self) -> tuple[str, ...]:
        """What a person should know, empty if all is well."""
        said = []
        if self.migrated:
            said.append(f"the journal is brought to format {files.FORMAT}")
        if self.unfinished_bytes:
            said.append(f"an unfinished write of {self.unfinished_bytes} bytes at the end of the log was cut off")
        if self.mark_damaged:
            said.append(
                "the mark of how far the journal was confirmed (in its .lock file) was damaged; it is made anew"
            )
        if self.given_up:
            said.append(self.given_up)
        return tuple(said)


def open_for_writing(path: Path, lock: WriterLock, accept_loss: str) -> tuple[sqlite3.Connection, Opening]:
    """The connection to the journal at `path`, an empty file included. Raises as `Journal`, and `sqlite3.Error`."""
    tail.require_database(path)
    # Before SQLite may fold its log back: what is damaged stays as it was found.
    found = losses.look(path, lock.mark)
    if found.loss is not None:
        _require_accepted(path, found.loss, accept_loss)
    connection = files.connect(str(path))
    try:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise files.JournalError(f"{path} is on a file system without shared memory ({mode}); use a local disk")
        connection.execute("PRAGMA synchronous = FULL")
        # What was pruned may have held secrets: nothing of it is to be found in the file.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        tail.fold_back(connection)
        created = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if created:
            tail.require_fresh(connection, path)
            files.create(connection)
        behind = files.FORMAT - files.require_known(connection, path)
        given_up = _give_up(History(connection, path), found.loss, accept_loss) if accept_loss else ""
        return connection, Opening(created, behind, found.log.unfinished_bytes, lock.mark_damaged, given_up)
    except BaseException:
        connection.close()
        raise


def _require_accepted(path: Path, loss: Loss, accept_loss: str) -> None:
    """Go on only where this loss was named, and what there is has been kept aside."""
    if accept_loss != loss.id:
        raise losses.refused(path, loss)
    try:
        losses.keep_aside(path, loss)
    except OSError as e:
        raise files.JournalError(
            f"what there is of {path} cannot be copied aside ({e.strerror}), so nothing is given up; it needs room in "
            f"{path.parent / losses.KEPT}"
        ) from e


def _give_up(history: History, loss: Loss | None, accept_loss: str) -> str:
    """Put aside what was named as lost; what became of it, as a sentence."""
    loss = loss or _damage(history)
    if loss is None:
        return f"there is no loss {accept_loss}: nothing was given up"
    _require_accepted(history.path, loss, accept_loss)
    tail.require_sound(history.connection, history.path)
    tail.put_aside(history.connection, loss.first)
    kept = history.path.parent / losses.KEPT / loss.id
    return f"{loss.records()} were given up (--accept-loss {loss.id}); the files as they were are in {kept}"


def _damage(history: History) -> Loss | None:
    """What would be lost by a damaged record that the next recovery would meet."""
    try:
        for _ in load_for_recovery(history).records:
            pass
    except losses.JournalLoss as e:
        return e.loss
    return None


@dataclass(frozen=True, slots=True)
class Recovery:
    """Where to start again: a snapshot (None: from nothing), and the records after it, checked as they are read."""

    snapshot: files.Snapshot | None
    records: Iterator[files.Record]
    count: int
    """How many records will come."""
    passed_over: tuple[str, ...]
    """Why newer snapshots could not be used."""


def load_for_recovery(history: History) -> Recovery:
    """The newest snapshot that holds and the records after it; older snapshots, or the very start, if need be.

    Raises `JournalDamaged` if no snapshot holds and the start of history was pruned, or the file cannot be read.
    Reading the records raises `JournalLoss` at one that does not hold.
    """
    try:
        return _load_for_recovery(history)
    except sqlite3.DatabaseError as e:
        raise unreadable(history.path, e) from e


def _load_for_recovery(history: History) -> Recovery:
    snapshot, passed_over = history.first_good(history.snapshot_seqs())
    first = history.first_seq
    after = snapshot.seq if snapshot else 0
    if after + 1 < first:
        raise files.JournalDamaged(
            f"history begins with record {first}, and no snapshot before it holds "
            f"({'; '.join(passed_over) or 'there is none'}); restore the journal from a backup"
        )
    last, _, chain = tail.end(history)
    return Recovery(snapshot, _records(history, after + 1, Mark(last, chain)), last - after, passed_over)


def _records(history: History, first: int, last: Mark) -> Iterator[files.Record]:
    try:
        yield from history.records(first, last.seq)
    except files.JournalDamaged as e:
        if e.seq is None:
            raise
        raise losses.refused(history.path, losses.of_damaged(e.seq, last)) from e
