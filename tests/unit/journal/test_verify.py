"""Every kind of damage is found, by its place, and a good journal is called good."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from journals import filled, flip, raw

from fairlead.journal import verify as verifying
from fairlead.journal.format import FORMAT, JournalError
from fairlead.journal.store import Journal, cut_off
from fairlead.journal.verify import verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        for n in range(1, 10):
            journal.append(n, "note", b"payload %d" % n, b"outcome %d" % n)
            if n in (3, 6):
                journal.save_snapshot(n, n, b"state %d" % n)
    return path


def found(path: Path) -> list[tuple[int, str]]:
    return [(p.seq, p.what) for p in verify(path).problems]


def test_a_good_journal_is_good(path: Path) -> None:
    """Nothing found; what was looked at is said."""
    result = verify(path)
    assert result.ok
    assert result.problems == ()
    assert (result.snapshots, result.recovery_from, result.format) == ((6, 3), 6, FORMAT)
    assert result.sizes is not None
    assert (result.sizes.records, result.sizes.last_seq) == (9, 9)
    assert (result.sqlite_version, result.journal_mode) == (sqlite3.sqlite_version, "wal")


def test_a_journal_in_use_can_be_verified(path: Path) -> None:
    """The writer goes on meanwhile."""
    with Journal(path) as journal:
        assert verify(path).ok
        journal.append(99, "note", b"")
        journal.commit()
        assert verify(path).sizes.records == 10  # type: ignore[union-attr]


@pytest.mark.parametrize("column", ["payload", "outcome", "checksum"])
@pytest.mark.parametrize("seq", [1, 5, 9])
def test_one_flipped_bit_is_one_problem(path: Path, column: str, seq: int) -> None:
    """The record that was hit is named, and no other."""
    flip(path, "records", column, seq)
    assert found(path) == [(seq, "is damaged: its checksum does not hold")]


@pytest.mark.parametrize(("left", "what"), [(8, "is missing; "), (6, "is missing, with all up to 9; ")])
def test_an_end_that_is_missing_is_a_problem(path: Path, left: int, what: str) -> None:
    """The chain holds to the last record that there is, and more was confirmed; without a mark nobody can know."""
    with raw(path) as connection:
        connection.execute("DELETE FROM records WHERE seq > ?", (left,))
    assert found(path) == [(left + 1, f"{what}it was confirmed once")]
    path.with_name(path.name + ".lock").unlink()
    assert verify(path).ok


def test_two_wounds_are_two_problems(path: Path) -> None:
    """Everything is reported, not the first only."""
    flip(path, "records", "payload", 2)
    flip(path, "records", "checksum", 7)
    assert [seq for seq, _ in found(path)] == [2, 7]


def test_gaps_are_found(path: Path) -> None:
    """A missing record and a missing stretch."""
    with raw(path) as c:
        c.execute("DELETE FROM records WHERE seq IN (2, 5, 6, 7)")
    assert found(path) == [(2, "is missing"), (5, "is missing, with all up to 7")]


def test_a_value_of_the_wrong_type_is_found(path: Path) -> None:
    """A number where bytes should be."""
    with raw(path) as c:
        c.execute("UPDATE records SET payload = 7 WHERE seq = 4")
    assert found(path) == [(4, "is damaged: a value has the wrong type")]


@pytest.mark.parametrize("column", ["state", "chain", "checksum"])
def test_a_damaged_snapshot_is_found(path: Path, column: str) -> None:
    """It is not counted as one to recover from."""
    flip(path, "snapshots", column, 6)
    result = verify(path)
    (problem,) = result.problems
    assert problem.seq == 0
    assert problem.what.startswith("the snapshot after record 6 is damaged")
    assert (result.snapshots, result.recovery_from) == ((3,), 3)


def test_whether_recovery_would_work_is_said(path: Path) -> None:
    """Damage after the newest good snapshot stops it, damage before does not."""
    flip(path, "records", "payload", 2)
    assert verify(path).recovery_from == 6
    flip(path, "records", "payload", 8)
    assert verify(path).recovery_from is None


def test_a_pruned_journal_is_good(path: Path) -> None:
    """History may begin later, as long as a snapshot covers what is gone."""
    with Journal(path) as journal:
        journal.prune(4)
    assert verify(path).ok
    with raw(path) as c:
        c.execute("DELETE FROM snapshots")
    assert found(path) == [(0, "history begins with record 4, and no snapshot holds")]


def test_a_damaged_file_is_found(tmp_path: Path) -> None:
    """What SQLite finds is reported too: here pages that are gone."""
    path = tmp_path / "journal.db"
    filled(path, 2000)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    result = verify(path)
    assert [p.seq for p in result.problems] == [0]
    assert "malformed" in result.problems[0].what
    assert result.recovery_from is None


def test_a_broken_page_is_found(tmp_path: Path) -> None:
    """A page overwritten with zeros."""
    path = tmp_path / "journal.db"
    filled(path, 2000)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = bytes(4096)
    path.write_bytes(content)
    assert not verify(path).ok


def test_a_hopeless_journal_is_not_listed_to_its_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems are bounded."""
    monkeypatch.setattr(verifying, "MAX_PROBLEMS", 3)
    with raw(path) as c:
        c.execute("UPDATE records SET payload = X'00'")
    assert [seq for seq, _ in found(path)] == [1, 2, 3]


def test_records_cut_off_are_told(path: Path) -> None:
    """They are no problem, but worth knowing."""
    flip(path, "records", "payload", 9)
    cut_off(path, 9)
    result = verify(path)
    assert result.ok
    assert result.cut_seqs == (9,)
    assert "1 records were cut off" in result.notes()[-1]


def test_the_known_bug_of_sqlite_is_spoken_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the versions that have it: why it cannot occur here. Silence for later ones."""
    for version, said in (("3.40.1", True), ("3.51.2", True), ("3.51.3", False), ("3.6.9", False)):
        monkeypatch.setattr(sqlite3, "sqlite_version", version)
        assert bool(verify(path).notes()) == said, version


def test_nothing_to_verify_is_an_error(tmp_path: Path) -> None:
    """A name that is wrong is not a good journal."""
    with pytest.raises(JournalError, match="there is no journal at"):
        verify(tmp_path / "journal.db")
