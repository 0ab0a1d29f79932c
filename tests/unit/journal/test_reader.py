"""A reader sees what is durable, while the writer lives and after its death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from journals import filled, raw

from fairlead.journal import reader as reading
from fairlead.journal.format import JournalDamaged, JournalError
from fairlead.journal.store import Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def seqs(path: Path, *args: int, **kwargs: object) -> list[int]:
    with Journal.read(path) as reader:
        return [r.seq for r in reader.records(*args, **kwargs)]  # type: ignore[arg-type]


def test_a_range_of_seqs(path: Path) -> None:
    """Both ends are included; beyond the ends there is nothing."""
    filled(path, 5)
    assert seqs(path, 2, 4) == [2, 3, 4]
    assert seqs(path, 4) == [4, 5]
    assert seqs(path, -3, 99) == [1, 2, 3, 4, 5]
    assert seqs(path, 6) == []


def test_the_last_record_up_to_a_time(path: Path) -> None:
    """Records are at 10, 20, ... ms; before the first there is none."""
    filled(path, 5)
    with Journal.read(path) as reader:
        assert [reader.seq_at(at_ms) for at_ms in (9, 10, 39, 40, 1000)] == [0, 1, 3, 4, 5]


def test_kinds_can_be_picked(path: Path) -> None:
    """Only the wanted kinds come, each still checked."""
    with Journal(path) as journal:
        for n, kind in enumerate(["event", "note", "schedule", "event"]):
            journal.append(n, kind, b"")
    assert seqs(path, kinds=("event",)) == [1, 4]
    assert seqs(path, kinds=("note", "schedule")) == [2, 3]
    assert seqs(path, kinds=()) == []


def test_long_histories_come_in_pages(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader does not stop at the end of a page, and picks by kind across pages."""
    monkeypatch.setattr(reading, "_PAGE", 4)
    with Journal(path) as journal:
        for n in range(1, 24):
            journal.append(n, "event" if n % 3 == 0 else "note", b"")
    assert seqs(path) == list(range(1, 24))
    assert seqs(path, kinds=("event",)) == [3, 6, 9, 12, 15, 18, 21]


def test_equal_times_are_found_at_their_last(path: Path) -> None:
    """`seq_at` is the last record of that moment."""
    with Journal(path) as journal:
        for at in (5, 5, 5, 8, 8, 13):
            journal.append(at, "note", b"")
    with Journal.read(path) as reader:
        assert [reader.seq_at(t) for t in (4, 5, 7, 8, 12, 13, 99)] == [0, 3, 3, 5, 5, 6, 6]


def test_a_live_journal_can_be_followed(path: Path) -> None:
    """Calling again from the next seq gives what has come since."""
    with Journal(path) as journal, journal.reader() as reader:
        journal.append(1, "note", b"")
        journal.commit()
        assert [r.seq for r in reader.records(1)] == [1]
        journal.append(2, "note", b"")
        journal.commit()
        assert [r.seq for r in reader.records(2)] == [2]


def test_an_empty_journal_has_no_records(path: Path) -> None:
    """Nothing is a valid history."""
    with Journal(path) as journal, journal.reader() as reader:
        assert (reader.first_seq, reader.last_seq, reader.seq_at(5)) == (1, 0, 0)
        assert list(reader.records()) == []
        assert reader.snapshot() is None


def test_a_reader_cannot_write(path: Path) -> None:
    """The connection itself refuses."""
    filled(path)
    with Journal.read(path) as reader, pytest.raises(Exception, match="readonly"):
        reader.connection.execute("DELETE FROM records")


def test_a_dead_writers_journal_can_be_read(path: Path) -> None:
    """After kill -9 a reader in another process sees everything committed, before any writer has come back."""
    program = (
        f"import os, signal; from fairlead.journal.store import Journal; j = Journal({str(path)!r})\n"
        "for n in range(50): j.append(n, 'note', b'x')\n"
        "j.commit(); j.append(99, 'note', b'not committed'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert ended.returncode == -signal.SIGKILL
    assert seqs(path) == list(range(1, 51))


def test_records_that_are_pruned_meanwhile_are_not_called_damaged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow reader learns that history now begins later."""
    monkeypatch.setattr(reading, "_PAGE", 2)
    with Journal(path) as journal:
        for n in range(1, 9):
            journal.append(n, "note", b"")
        journal.save_snapshot(6, 6, b"{}")
        with journal.reader() as reader:
            coming = reader.records()
            assert next(coming).seq == 1
            journal.prune(6)
            with pytest.raises(JournalError, match=r"record 3 was pruned while it was being read; .* begins with 6"):
                list(coming)


@pytest.mark.parametrize("kinds", [None, ("note",)])
def test_what_is_pruned_up_to_the_next_page_stops_no_reader(
    path: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...] | None
) -> None:
    """The record that history begins with by now is checked against what was pruned, not against nothing."""
    monkeypatch.setattr(reading, "_PAGE", 2)
    with Journal(path) as journal:
        for n in range(1, 9):
            journal.append(n, "note", b"")
        journal.save_snapshot(6, 6, b"{}")
        with journal.reader() as reader:
            coming = reader.records(kinds=kinds)
            assert next(coming).seq == 1
            journal.prune(3)
            assert [record.seq for record in coming] == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("column", ["payload", "outcome", "checksum"])
def test_a_flipped_bit_ends_the_reading_there(path: Path, column: str) -> None:
    """Nothing from the damaged record on is handed out, and the error has its seq and says what to do."""
    filled(path, 5)
    with raw(path) as c:
        c.execute(f"UPDATE records SET {column} = CAST(X'00' || substr({column}, 2) AS BLOB) WHERE seq = 3")
    with Journal.read(path) as reader:
        coming = reader.records()
        assert [next(coming).seq, next(coming).seq] == [1, 2]
        with pytest.raises(JournalDamaged, match=r"record 3 .*journal cut --from 3") as e:
            next(coming)
    assert e.value.seq == 3


@pytest.mark.parametrize(
    "change",
    [
        "at_ms = 31",
        "kind = 'nota'",
        "kind = CAST(X'FF' AS TEXT)",
        "kind = 7.5",
        "payload = 'payload 3'",
        "outcome = NULL || X'00'",
    ],
)
def test_every_value_of_a_record_is_covered(path: Path, change: str) -> None:
    """A changed time, kind or type is found as well as a changed payload."""
    filled(path, 5)
    with raw(path) as c:
        c.execute("PRAGMA writable_schema = ON")
        c.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'records'")
    with raw(path) as c:
        c.execute(f"UPDATE records SET {change} WHERE seq = 3")
    with pytest.raises(JournalDamaged, match="record 3 is damaged"):
        seqs(path)


@pytest.mark.parametrize("from_seq", [1, 3, 4])
def test_a_checksum_that_is_text_is_damage(path: Path, from_seq: int) -> None:
    """A flipped bit in the header of a row changes the type of a value. Where reading begins behind it, the service
    ended with a TypeError (`make damage`).
    """
    filled(path, 5)
    with raw(path) as c:
        c.execute("UPDATE records SET checksum = 'sixteen letters.' WHERE seq = 3")
    with pytest.raises(JournalDamaged, match=f"record {max(from_seq, 3)} is damaged"):
        seqs(path, from_seq)


def test_a_time_that_is_text_is_damage(path: Path) -> None:
    """Whatever time is looked for."""
    filled(path, 5)
    with raw(path) as c:
        c.execute("UPDATE records SET at_ms = 'thirty' WHERE seq = 3")
    with Journal.read(path) as reader, pytest.raises(JournalDamaged, match="record 3 is damaged: its time"):
        reader.seq_at(30)


def test_a_damaged_number_hides_no_records(path: Path) -> None:
    """SQLite searches a page by halves: at a number that is too large it takes those behind it for not there, and says
    nothing. A recovery passed over 30 records (`make damage`).
    """
    filled(path, 60)
    whole = path.read_bytes()
    hidden = 0
    for seq in range(1, 59):
        path.write_bytes(with_number(whole, seq, 100))
        with raw(path) as c:
            found = c.execute("SELECT count(*) FROM records WHERE seq BETWEEN ? AND 60", (seq + 1,)).fetchone()[0]
        if not found:
            hidden += 1
            with pytest.raises(JournalDamaged, match=f"record {seq + 1} is missing"):
                seqs(path, seq + 1, 60)
    assert hidden > 5


def with_number(whole: bytes, seq: int, number: int) -> bytes:
    """The file with another number for one of the first 127 records, in the page that holds it."""
    hurt = bytearray(whole)
    for page in range(0, len(whole), size := int.from_bytes(whole[16:18], "big")):
        if not page or whole[page] != LEAF_OF_A_TABLE:
            continue
        for n in range(int.from_bytes(whole[page + 3 : page + 5], "big")):
            at = page + int.from_bytes(whole[page + 8 + 2 * n : page + 10 + 2 * n], "big")
            while whole[at] & 0x80:  # The length of the row stands before its number.
                at += 1
            if whole[at + 1] == seq and whole[page : page + size].count(b"note") > 1:
                hurt[at + 1] = number
    return bytes(hurt)


LEAF_OF_A_TABLE = 13
"""The first byte of such a page in SQLite's file format."""


def test_a_missing_record_is_named(path: Path) -> None:
    """A gap is damage at the seq that should be there."""
    filled(path, 5)
    with raw(path) as c:
        c.execute("DELETE FROM records WHERE seq = 3")
    with pytest.raises(JournalDamaged, match="record 3 is missing"):
        seqs(path)


def test_swapped_records_are_found(path: Path) -> None:
    """The same records in another order are not the same history."""
    filled(path, 5)
    with raw(path) as c:
        c.execute("UPDATE records SET seq = -2 WHERE seq = 2")
        c.execute("UPDATE records SET seq = 2 WHERE seq = 3")
        c.execute("UPDATE records SET seq = 3 WHERE seq = -2")
    with pytest.raises(JournalDamaged, match="record 2 is damaged"):
        seqs(path)
