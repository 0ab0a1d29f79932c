"""What a journal file contains: its tables, its records, and how each is sealed.

Decides the format and its version. Never waits. Invariant: the checksum of a record covers its content and the checksum
of the record before it, so that no record can be changed, lost or moved unnoticed.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b

FORMAT = 2
"""The version this code writes. Older ones are read, and migrated with the first write; newer ones are refused.

1: Fairlead 0.1. Every field is written, and what is not ASCII is escaped.
2: what is empty is left out, in UTF-8 (`codec`). Whoever reads this reads 1 as well.
"""

APPLICATION_ID = 0x46_41_49_52
"""Marks an SQLite file as a journal of ours."""

EVENT, SCHEDULE, NOTE = "event", "schedule", "note"
"""Kinds of records: an event for the scheduler, a scheduling run (`{"limit": n}`), anything else worth keeping."""

MAX_RECORD_BYTES = 64 * 2**20
"""Payload and outcome together, at most."""

MAX_STATE_BYTES = 2**29
"""An uncompressed snapshot, at most."""

GENESIS = blake2b(b"fairlead journal", digest_size=16).digest()
"""What stands before the first record of all."""

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE records (
    seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL,
    payload BLOB NOT NULL, outcome BLOB NOT NULL, checksum BLOB NOT NULL
);
CREATE TABLE snapshots (
    seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, state BLOB NOT NULL, chain BLOB NOT NULL, checksum BLOB NOT NULL
);
CREATE TABLE cut_records (
    id INTEGER PRIMARY KEY, seq INTEGER, at_ms INTEGER, kind TEXT, payload BLOB, outcome BLOB, checksum BLOB
);
"""


class JournalError(Exception):
    """The journal cannot do what was asked; the text says what to do."""


class JournalInUse(JournalError):
    """Another process writes this journal; `pid` is its process id, or None if it could not be read."""

    def __init__(self, what: str, pid: int | None) -> None:
        super().__init__(what)
        self.pid = pid


class JournalFull(JournalError):
    """There is no room at the moment. Nothing is lost: what waits is kept, and `commit` can be called again."""


class JournalDamaged(JournalError):
    """What is stored is not what was written; `seq` is the first record that cannot be trusted, if one is to blame."""

    def __init__(self, what: str, seq: int | None = None) -> None:
        super().__init__(what)
        self.seq = seq


FAILURES = (JournalError, sqlite3.Error, OSError)
"""What writing raises where the disk does not let it."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of history. `outcome` is what followed from it (empty: not recorded)."""

    seq: int
    at_ms: int
    kind: str
    payload: bytes
    outcome: bytes
    checksum: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after record `seq`, as the caller's bytes."""

    seq: int
    at_ms: int
    state: bytes


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A snapshot as it is stored: compressed, with the checksum of record `seq` (`chain`) and its own."""

    seq: int
    at_ms: int
    """As everything else here of any type at all, until it is `checked`."""
    packed: object
    chain: object
    checksum: object

    def checked(self) -> bytes:
        """What is in it, compressed. Raises `JournalDamaged` if it is not what was written."""
        if not isinstance(self.packed, bytes) or not isinstance(self.chain, bytes) or not isinstance(self.at_ms, int):
            raise JournalDamaged(f"the snapshot after record {self.seq} is damaged: a value has the wrong type")
        if self.checksum != snapshot_checksum(self.seq, self.at_ms, self.packed, self.chain):
            raise JournalDamaged(f"the snapshot after record {self.seq} is damaged: its checksum does not hold")
        return self.packed

    def opened(self) -> Snapshot:
        """The snapshot in it. Raises `JournalDamaged` if it is not what was written."""
        unpacking = zlib.decompressobj()
        state = unpacking.decompress(self.checked(), MAX_STATE_BYTES)
        if not unpacking.eof:
            raise JournalDamaged(f"the snapshot after record {self.seq} is larger than {MAX_STATE_BYTES} bytes")
        return Snapshot(self.seq, self.at_ms, state)


def record_checksum(before: bytes, seq: int, at_ms: int, kind: str, payload: bytes, outcome: bytes) -> bytes:
    """16 bytes over the record and the checksum `before` it; the lengths are in it, so no byte can change sides."""
    name = kind.encode("utf-8", "surrogateescape")
    head = struct.pack(">qqIII", seq, at_ms, len(name), len(payload), len(outcome))
    return blake2b(b"".join((before, head, name, payload, outcome)), digest_size=16).digest()


def snapshot_checksum(seq: int, at_ms: int, packed: bytes, chain: bytes) -> bytes:
    """16 bytes over a stored snapshot, tied by `chain` to the record it follows."""
    return blake2b(b"".join((b"snapshot", struct.pack(">qq", seq, at_ms), chain, packed)), digest_size=16).digest()


def whole(row: tuple[object, ...]) -> Record | None:
    """The record in a row of the table, or None if a value does not even have its type."""
    seq, at_ms, kind, payload, outcome, checksum = row
    if (
        isinstance(seq, int)
        and isinstance(at_ms, int)
        and isinstance(kind, str)
        and isinstance(payload, bytes)
        and isinstance(outcome, bytes)
        and isinstance(checksum, bytes)
    ):
        return Record(seq, at_ms, kind, payload, outcome, checksum)
    return None


def holds(record: Record, before: object) -> bool:
    """Whether the record is what was written after the record whose checksum is `before` (a damaged one: no bytes)."""
    return isinstance(before, bytes) and record.checksum == record_checksum(
        before, record.seq, record.at_ms, record.kind, record.payload, record.outcome
    )


# --- The file --------------------------------------------------------------------------------------------------------


def connect(place: str, *, uri: bool = False) -> sqlite3.Connection:
    """A connection without hidden transactions; damaged text is handed out as it is, for its checksum to refuse."""
    connection = sqlite3.connect(place, uri=uri, isolation_level=None, timeout=5.0, check_same_thread=False)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return connection


Migration = Callable[[sqlite3.Connection], None]

MIGRATIONS: Mapping[int, Migration] = {1: lambda _: None}
"""By the version they start from; each brings a file one version further, inside a transaction.

From 1 to 2 nothing is written anew: the number alone keeps Fairlead 0.1 from records that it could not read.
"""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing of what happens inside; durable when it ends."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def meta(connection: sqlite3.Connection, name: str) -> object:
    """A value of the meta table, or None."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def set_meta(connection: sqlite3.Connection, name: str, value: int | bytes) -> None:
    """Write a value of the meta table."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))


def beginning(connection: sqlite3.Connection) -> tuple[int, bytes]:
    """The seq at which history begins (1 unless it was pruned) and the checksum that stands before it."""
    first, chain = meta(connection, "begins"), meta(connection, "chain_before")
    if not isinstance(first, int) or not isinstance(chain, bytes):
        raise JournalDamaged("the journal does not say where its history begins; restore it from a backup")
    return first, chain


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty journal."""
    with transaction(connection):
        for statement in _TABLES.split(";"):
            if statement.strip():
                connection.execute(statement)
        set_meta(connection, "format", FORMAT)
        set_meta(connection, "begins", 1)
        set_meta(connection, "chain_before", GENESIS)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def require_known(connection: sqlite3.Connection, path: object, newest: int = FORMAT) -> int:
    """The format version of a file. Raises `JournalError` if it is not a journal, or one from the future."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise JournalError(f"{path} is not a journal of Fairlead; name another file or move this one away")
    version = meta(connection, "format")
    if not isinstance(version, int) or version > newest:
        raise JournalError(
            f"{path} has journal format {version}; this version of Fairlead knows up to {newest}: upgrade Fairlead"
        )
    return version


def migrate(
    connection: sqlite3.Connection, path: object, steps: Mapping[int, Migration] = MIGRATIONS, newest: int = FORMAT
) -> int:
    """Bring an older file to the `newest` format, step by step, each step whole or not at all; how many were taken."""
    version = start = require_known(connection, path, newest)
    while version < newest:
        if version not in steps:
            raise JournalError(f"{path} has journal format {version}, and there is no way from it to {version + 1}")
        with transaction(connection):
            steps[version](connection)
            version += 1
            set_meta(connection, "format", version)
    return version - start
