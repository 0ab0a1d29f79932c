"""Snapshots shorten recovery, never replace history unseen, and a bad one is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest
from journals import flip, raw

from fairlead.journal import store
from fairlead.journal.format import JournalDamaged, JournalError
from fairlead.journal.store import Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def with_snapshots(path: Path, count: int, after: tuple[int, ...]) -> None:
    """A closed journal of `count` records with snapshots after some of them."""
    with Journal(path) as journal:
        for n in range(1, count + 1):
            journal.append(n, "note", b"%d" % n)
            if n in after:
                journal.save_snapshot(n, n, b"state %d" % n)


def recovered(path: Path) -> tuple[bytes | None, list[int], int]:
    with Journal(path) as journal:
        found = journal.load_for_recovery()
        seqs = [r.seq for r in found.records]
        assert found.count == len(seqs)
        return found.snapshot.state if found.snapshot else None, seqs, len(found.passed_over)


def test_recovery_is_the_newest_snapshot_and_what_came_after(path: Path) -> None:
    """Only the records after it are read."""
    with_snapshots(path, 8, (3, 6))
    assert recovered(path) == (b"state 6", [7, 8], 0)


def test_recovery_without_a_snapshot_is_the_whole_history(path: Path) -> None:
    """Everything from the first record on."""
    with_snapshots(path, 3, ())
    assert recovered(path) == (None, [1, 2, 3], 0)


def test_recovery_of_an_empty_journal_is_nothing(path: Path) -> None:
    """A first start recovers to a fresh state."""
    assert recovered(path) == (None, [], 0)


def test_a_snapshot_of_the_very_start_can_be_kept(path: Path) -> None:
    """A state from before the first record is a state after record 0."""
    with Journal(path) as journal:
        journal.save_snapshot(0, 0, b"start")
        journal.append(1, "note", b"")
    assert recovered(path) == (b"start", [1], 0)


@pytest.mark.parametrize("column", ["state", "chain", "checksum"])
def test_a_damaged_snapshot_is_passed_over(path: Path, column: str) -> None:
    """The one before it serves, and the reason is told."""
    with_snapshots(path, 8, (3, 6))
    flip(path, "snapshots", column, 6)
    assert recovered(path) == (b"state 3", [4, 5, 6, 7, 8], 1)


def test_a_snapshot_whose_time_is_text_is_passed_over(path: Path) -> None:
    """A flipped bit in the header of a row changes the type of a value; also where no record comes after it."""
    with_snapshots(path, 8, (3, 6))
    with raw(path) as c:
        c.execute("UPDATE snapshots SET at_ms = 'six' WHERE seq = 6")
    assert recovered(path) == (b"state 3", [4, 5, 6, 7, 8], 1)


def test_with_all_snapshots_damaged_recovery_begins_at_the_start(path: Path) -> None:
    """History is kept, so nothing is lost."""
    with_snapshots(path, 8, (3, 6))
    for seq in (3, 6):
        flip(path, "snapshots", "state", seq, -1)
    assert recovered(path) == (None, list(range(1, 9)), 2)


def test_damage_before_the_newest_snapshot_does_not_stop_recovery(path: Path) -> None:
    """It needs only the records after the snapshot."""
    with_snapshots(path, 8, (6,))
    flip(path, "records", "payload", 2)
    flip(path, "records", "checksum", 6)
    with pytest.raises(JournalDamaged, match="record 7 is damaged"):
        recovered(path)
    flip(path, "records", "checksum", 6)
    assert recovered(path) == (b"state 6", [7, 8], 0)


def test_the_newest_three_are_kept(path: Path) -> None:
    """Older ones go, unless asked otherwise."""
    with_snapshots(path, 9, (1, 2, 3, 4, 5))
    with Journal(path) as journal, journal.reader() as reader:
        assert reader.snapshot_seqs() == (5, 4, 3)
    with Journal(path, keep_snapshots=1) as journal, journal.reader() as reader:
        journal.save_snapshot(7, 7, b"x")
        assert reader.snapshot_seqs() == (7,)
    with pytest.raises(ValueError, match="keep_snapshots is 0; at least 1"):
        Journal(path, keep_snapshots=0)


def test_a_snapshot_commits_what_it_follows(path: Path) -> None:
    """A state is never durable before the records that led to it."""
    with Journal(path) as journal, journal.reader() as reader:
        journal.append(1, "note", b"")
        journal.save_snapshot(1, 1, b"x")
        assert (journal.pending, reader.last_seq) == (0, 1)


@pytest.mark.parametrize("seq", [-1, 4])
def test_a_snapshot_of_no_record_is_refused(path: Path, seq: int) -> None:
    """It must follow a record that is there."""
    with_snapshots(path, 3, ())
    with Journal(path) as journal, pytest.raises(ValueError, match=f"after record {seq}, but the journal has 1 to 3"):
        journal.save_snapshot(seq, 9, b"x")


def test_snapshots_are_compressed(path: Path) -> None:
    """A large state takes little room."""
    with Journal(path) as journal:
        journal.append(1, "note", b"")
        journal.save_snapshot(1, 1, b"the same " * 100_000)
        assert journal.load_for_recovery().snapshot.state == b"the same " * 100_000  # type: ignore[union-attr]
    with raw(path) as c:
        assert c.execute("SELECT length(state) FROM snapshots").fetchone()[0] < 20_000


# --- Pruning ---


def test_pruning_moves_the_beginning_of_history(path: Path) -> None:
    """What is left is still a checked chain; recovery and going on are as before."""
    with_snapshots(path, 9, (4, 7))
    with Journal(path) as journal:
        assert journal.prune(4) == 3
        assert journal.prune(4) == 0
        assert journal.prune(2) == 0
        with journal.reader() as reader:
            assert (reader.first_seq, [r.seq for r in reader.records()]) == (4, [4, 5, 6, 7, 8, 9])
            assert reader.seq_at(2) == 3
            assert reader.sizes().records == 6
    assert recovered(path) == (b"state 7", [8, 9], 0)


def test_pruning_stops_at_the_oldest_snapshot(path: Path) -> None:
    """Beyond it there would be nothing to start from if the newer ones were bad."""
    with_snapshots(path, 9, (4, 7))
    with Journal(path) as journal:
        with pytest.raises(JournalError, match="before 6: the oldest snapshot covers up to 4"):
            journal.prune(6)
        assert journal.prune(5) == 4
    flip(path, "snapshots", "state", 7)
    assert recovered(path) == (b"state 4", [5, 6, 7, 8, 9], 1)


def test_a_snapshot_that_does_not_hold_allows_no_pruning(path: Path) -> None:
    """The oldest good one counts; with none nothing can go."""
    with_snapshots(path, 9, (4,))
    flip(path, "snapshots", "state", 4)
    with Journal(path) as journal, pytest.raises(JournalError, match="no snapshot holds"):
        journal.prune(2)


def test_everything_before_a_snapshot_can_go(path: Path) -> None:
    """A journal of a snapshot alone goes on with the next seq and refuses earlier times."""
    with_snapshots(path, 5, (5,))
    with Journal(path) as journal:
        assert journal.prune(6) == 5
    with Journal(path) as journal:
        assert (journal.last_seq, journal.last_at_ms) == (5, 5)
        assert journal.append(5, "note", b"on") == 6
    assert recovered(path) == (b"state 5", [6], 0)


def test_a_snapshot_alone_whose_time_is_text_is_refused(path: Path) -> None:
    """With what is wrong, not with a TypeError."""
    with_snapshots(path, 5, (5,))
    with Journal(path) as journal:
        journal.prune(6)
    with raw(path) as c:
        c.execute("UPDATE snapshots SET at_ms = 'five'")
    with (
        Journal(path) as journal,
        pytest.raises(JournalDamaged, match="after record 5 is damaged: a value has the wrong"),
    ):
        journal.load_for_recovery()


def test_long_histories_are_pruned_in_steps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step leaves a good journal."""
    monkeypatch.setattr(store, "_PRUNE_STEP", 3)
    with_snapshots(path, 12, (11,))
    with Journal(path) as journal, journal.reader() as reader:
        assert journal.prune(11) == 10
        assert [r.seq for r in reader.records()] == [11, 12]


def test_bad_snapshots_and_a_pruned_start_are_refused(path: Path) -> None:
    """Recovery never begins in the middle."""
    with_snapshots(path, 5, (4,))
    with Journal(path) as journal:
        journal.prune(3)
    flip(path, "snapshots", "state", 4)
    with Journal(path) as journal, pytest.raises(JournalDamaged, match="history begins with record 3, and no snapshot"):
        journal.load_for_recovery()
