"""What was confirmed once and is not found any more.

Decides whether a journal still ends where it was confirmed to end, and what a loss is called. Never changes the
journal: what there is is copied aside. Invariants: a journal in which something is lost is not opened for writing until
the loss is accepted by its name; the same loss has the same name at each start, and another one has another.
"""

from __future__ import annotations

import os
import shutil
import struct
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from fairlead.journal import format as files
from fairlead.journal import reader, tail
from fairlead.journal.lock import Mark

KEPT = "damaged"
"""The folder beside the journal in which the files are kept as they were found, by the name of the loss."""
_MX_FRAME = 16
"""Where SQLite's index of its log (`-shm`) says how many frames it accepts."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Records that are missing or damaged at the end of a journal, or from a damaged one on."""

    id: str
    first: int
    last: int
    """The last that is known to have been confirmed; less than `first`: none is known, but there was more."""
    why: str

    def records(self) -> str:
        """Which, in words."""
        if self.last < self.first:
            return f"what was confirmed after record {self.first - 1}"
        return f"record {self.first}" if self.first == self.last else f"records {self.first} to {self.last}"


class JournalLoss(files.JournalDamaged):
    """Something is lost, and nobody has accepted that: nothing may be written."""

    def __init__(self, path: Path, loss: Loss, kept: str) -> None:
        super().__init__(
            f"{loss.records()} of {path} cannot be had any more: {loss.why}. {kept} Restore a backup "
            "(`fairlead restore`); or give up what is lost by its name, with `fairlead up --accept-loss "
            f"{loss.id}`: what runs and is not known any more goes on then, `fairlead unknown` shows it",
            loss.first,
        )
        self.loss = loss


@dataclass(frozen=True, slots=True)
class End:
    """How a journal was found to end, before it is opened for writing."""

    log: tail.LogEnd = field(default_factory=tail.LogEnd)
    loss: Loss | None = None


def look(path: Path, mark: Mark | None) -> End:
    """The end of the journal at `path`, compared with its mark. Reads only. Raises as `Reader`."""
    if not path.stat().st_size:
        return End(loss=_gone(1, mark, "the file is empty") if mark is not None and mark.seq else None)
    with closing(files.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        log = tail.log_end(path, _accepted(path))
        if tables == 0:
            lost = (mark is not None and mark.seq) or log.dropped_commits
            return End(log, _gone(1, mark, "its tables are gone") if lost else None)
        files.require_known(connection, path)
        history = reader.History(connection, path)
        last = history.last_seq
        if (damaged := _first_damaged(history, last)) is not None:
            return End(log, _gone(damaged, mark or _end_mark(history), "its checksum does not hold"))
        if mark is not None and last < mark.seq:
            why = (
                "the write-ahead log is damaged"
                if log.dropped_commits
                else ("they are not in the file (the disk lost them, or an older copy was put back)")
            )
            return End(log, _gone(last + 1, mark, why))
        # Where there is no mark, or one from before a power cut: a snapshot follows what was confirmed.
        ahead, _ = history.first_good(seq for seq in history.snapshot_seqs() if seq > last)
        if ahead is not None:
            why = f"they are not in the file, and the snapshot after record {ahead.seq} is"
            return End(log, _gone(last + 1, Mark(ahead.seq, b""), why))
        if log.dropped_commits:
            return End(log, _gone(last + 1, mark or _end_mark(history), "the write-ahead log is damaged"))
        return End(log)


def of_damaged(seq: int, mark: Mark) -> Loss:
    """The loss of everything from a damaged record on."""
    return _gone(seq, mark, f"record {seq} is damaged, and nothing after it can be trusted to follow from what was")


def keep_aside(path: Path, loss: Loss) -> Path:
    """Copy the files as they are, once for each loss; where they are. Raises OSError."""
    kept = path.parent / KEPT / loss.id
    if kept.is_dir():
        return kept
    fresh = kept.with_name(f".{loss.id}.{os.getpid()}")
    fresh.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        for each in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + ".lock")):
            if each.exists():
                shutil.copy2(each, fresh / each.name)
        fresh.rename(kept)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return kept


def refused(path: Path, loss: Loss) -> JournalLoss:
    """The error for a loss, when what there is has been kept aside."""
    try:
        kept = f"The files as they were found are in {keep_aside(path, loss)}."
    except OSError as e:
        kept = f"The files could not be copied aside ({e.strerror}); leave them as they are."
    return JournalLoss(path, loss, kept)


def _gone(first: int, mark: Mark | None, why: str) -> Loss:
    last, chain = (mark.seq, mark.chain) if mark is not None else (0, b"")
    name = blake2b(b"%d %d %s" % (first, last, chain), digest_size=3).hexdigest()
    return Loss(f"{first}-{name}", first, last, why)


def _end_mark(history: reader.History) -> Mark:
    """Where there is no mark: what is found."""
    seq, _, chain = tail.end(history)
    return Mark(seq, chain)


def _first_damaged(history: reader.History, last: int) -> int | None:
    """The first of the records up to the last that do not hold; None: the last one holds."""
    damaged = None
    for seq in range(last, history.first_seq - 1, -1):
        if _holds(history, seq):
            break
        damaged = seq
    return damaged


def _holds(history: reader.History, seq: int) -> bool:
    try:
        return next(history.records(seq, seq), None) is not None
    except files.JournalDamaged:
        return False


def _accepted(path: Path) -> int:
    """How many frames of its log SQLite accepts, while a connection looks at it."""
    try:
        with path.with_name(path.name + "-shm").open("rb") as index:
            index.seek(_MX_FRAME)
            found = index.read(4)
    except FileNotFoundError:
        return 0
    return int(struct.unpack("=I", found)[0]) if len(found) == 4 else 0
