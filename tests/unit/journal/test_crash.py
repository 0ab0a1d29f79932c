"""Whatever ends a writer, whatever happens to its files: committed records are there in order, or the loss is named."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from journals import filled, flip, raw

from fairlead.journal.format import JournalDamaged, JournalError
from fairlead.journal.losses import JournalLoss
from fairlead.journal.store import Journal, cut_off
from fairlead.journal.verify import verify

WRITER = """
import os, signal, sys
from fairlead.journal.store import Journal
seed, path, commits = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
journal = Journal(path)
print("open", journal.last_seq, flush=True)
while True:
    for n in range(1 + (journal.last_seq * 7 + seed) % 40):
        seq = journal.last_seq + 1
        journal.append(seq, "note", b"%d " % seq * (1 + seq % 50), b"out %d" % seq)
    print("committed", journal.commit(), flush=True)
    commits -= 1
    if commits == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if journal.last_seq % 5 == 0:
        journal.save_snapshot(journal.last_seq, journal.last_at_ms, b"state %d" % journal.last_seq)
    if journal.last_seq % 7 == 0:
        journal.checkpoint()
"""

"""Writes until it is killed, at the latest by itself after `commits`; 0: never by itself."""
RUNS = 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def writer_of(path: Path, seed: int, commits: int = 0) -> subprocess.Popen[str]:
    """A process that writes a journal."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(seed), str(path), str(commits)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def killed_writer(path: Path, seed: int, acknowledgements: int) -> int:
    """Run a writer, kill it with -9 some time after it has confirmed so many commits; the last seq it had confirmed."""
    with writer_of(path, seed) as writer:
        assert writer.stdout is not None
        last = int(writer.stdout.readline().split()[1])
        for _ in range(acknowledgements):
            last = int(writer.stdout.readline().split()[1])
        writer.send_signal(signal.SIGKILL)
        for line in writer.stdout:
            if line.endswith("\n"):
                last = int(line.split()[1])
    return last


def check_history(journal: Journal, at_least: int) -> None:
    """Every record from 1 on is there with its right content, up to `at_least` or further."""
    with journal.reader() as reader:
        seqs = [r.seq for r in reader.records() if r.payload == b"%d " % r.seq * (1 + r.seq % 50)]
    assert seqs == list(range(1, journal.last_seq + 1))
    assert journal.last_seq >= at_least
    recovery = journal.load_for_recovery()
    after = recovery.snapshot.seq if recovery.snapshot else 0
    assert [r.seq for r in recovery.records] == list(range(after + 1, journal.last_seq + 1))
    assert recovery.passed_over == ()
    if recovery.snapshot:
        assert recovery.snapshot.state == b"state %d" % after


@pytest.mark.thorough
def test_kill_9_at_random_moments_loses_nothing_confirmed(path: Path) -> None:
    """The same journal is killed thirty times; each time all that was confirmed is there, in order, and nothing odd."""
    for seed in range(RUNS):
        confirmed = killed_writer(path, seed, random.Random(seed).randrange(12))
        with Journal(path) as journal:
            check_history(journal, confirmed)
            assert not journal.opening.mark_damaged


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a writer that was killed, with part of its history in the log only: the same part each time."""
    place = tmp_path_factory.mktemp("crashed")
    with writer_of(place / "journal.db", 1, commits=9) as writer:
        writer.communicate()
    assert writer.returncode == -signal.SIGKILL
    assert (place / "journal.db-wal").stat().st_size > 10_000
    return place


def wounded(crashed: Path, tmp_path: Path, suffix: str, hurt: Callable[[bytearray], None]) -> Path:
    """A copy of the crashed directory in which one file was hurt."""
    place = tmp_path / "state"
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(crashed, place)
    (place / "journal.db-shm").unlink(missing_ok=True)
    file = place / f"journal.db{suffix}"
    content = bytearray(file.read_bytes())
    hurt(content)
    file.write_bytes(content)
    return place / "journal.db"


def confirmed(crashed: Path) -> int:
    """How far the writer had got, as its lock file says."""
    return int((crashed / "journal.db.lock").read_bytes()[16:].split()[0])


def commits_of_writer() -> list[int]:
    """The last record of each commit of the crashed writer."""
    ends = [0]
    for _ in range(9):
        ends.append(ends[-1] + 1 + (ends[-1] * 7 + 1) % 40)
    return ends


def opened(path: Path) -> tuple[Journal, JournalLoss | None]:
    """The journal, its loss accepted by name where there is one; and that loss."""
    try:
        return Journal(path), None
    except JournalLoss as loss:
        return Journal(path, accept_loss=loss.loss.id), loss


def test_a_log_cut_at_any_place_is_refused_until_the_loss_is_accepted(crashed: Path, tmp_path: Path) -> None:
    """With the tail of the log gone a prefix of history is left; the journal says what is missing, and goes on if told.

    What there is is the same after the refusal, and was copied aside.
    """
    size, before = (crashed / "journal.db-wal").stat().st_size, confirmed(crashed)
    rng = random.Random(7)
    lengths = []
    for at in [0, 1, 31, 32, 33, size - 1, *(rng.randrange(size) for _ in range(20))]:
        path = wounded(crashed, tmp_path, "-wal", lambda content, at=at: content.__delitem__(slice(at, None)))
        found = path.read_bytes(), path.with_name("journal.db-wal").read_bytes()
        with Journal.read(path) as reader:
            if reader.last_seq == before:
                continue  # Nothing but frames of an earlier round was cut off.
        with pytest.raises(JournalLoss) as refused:
            Journal(path)
        assert (path.read_bytes(), path.with_name("journal.db-wal").read_bytes()) == found
        loss = refused.value.loss
        assert loss.last == before
        assert f"fairlead up --accept-loss {loss.id}" in str(refused.value)
        kept = path.parent / "damaged" / loss.id
        assert (kept / "journal.db-wal").read_bytes() == found[1]
        with pytest.raises(JournalLoss):
            Journal(path, accept_loss=f"{loss.first}-000000")
        with Journal(path, accept_loss=loss.id) as journal:
            assert f"(--accept-loss {loss.id})" in " ".join(journal.opening.sentences())
            check_history(journal, 0)
            assert journal.last_seq == loss.first - 1
            lengths.append(journal.last_seq)
            journal.append(10**6, "note", b"goes on")
            assert journal.commit() == lengths[-1] + 1
        with Journal(path, accept_loss=loss.id) as journal:
            assert journal.last_seq == lengths[-1] + 1
            assert journal.opening.sentences() == (f"there is no loss {loss.id}: nothing was given up",)
    assert len(set(lengths)) >= 3


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_bit_flipped_in_the_log_is_never_passed_over(crashed: Path, tmp_path: Path, has_mark: bool) -> None:
    """What was confirmed is there, or its loss is named; without a mark the log tells, but of its very last commit."""
    size, before = (crashed / "journal.db-wal").stat().st_size, confirmed(crashed)
    rng = random.Random(11)
    refusals = 0
    for at in [0, 5, 9, 17, 25, *(rng.randrange(size) for _ in range(40))]:
        path = wounded(crashed, tmp_path, "-wal", lambda content, at=at: content.__setitem__(at, content[at] ^ 4))
        if not has_mark:
            path.with_name("journal.db.lock").unlink()
        journal, refusal = opened(path)
        with journal:
            check_history(journal, 0)
            refusals += refusal is not None
            assert refusal is not None or journal.last_seq >= (before if has_mark else commits_of_writer()[-2])
    assert refusals > 15


def test_a_damaged_mark_is_said_and_made_anew(path: Path) -> None:
    """It is no reason to refuse: the journal itself is whole."""
    filled(path, 5)
    lock = path.with_name("journal.db.lock")
    content = bytearray(lock.read_bytes())
    content[content.index(b" 5 ".strip(), 16)] ^= 2
    lock.write_bytes(content)
    with Journal(path) as journal:
        assert journal.last_seq == 5
        assert "the mark of how far the journal was confirmed" in journal.opening.sentences()[0]
    with Journal(path) as journal:
        assert journal.opening.sentences() == ()


@pytest.mark.parametrize("how", ["emptied", "removed"])
def test_a_journal_that_is_gone_altogether_is_a_loss(path: Path, how: str) -> None:
    """It is not taken for a new one."""
    filled(path, 5)
    path.write_bytes(b"") if how == "emptied" else path.unlink()
    with pytest.raises(JournalLoss, match=r"records 1 to 5 of .* cannot be had any more: the file is empty") as refused:
        Journal(path)
    with Journal(path, accept_loss=refused.value.loss.id) as journal:
        assert (journal.last_seq, journal.opening.created) == (0, True)


def test_without_room_for_the_evidence_nothing_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal says so, and accepting it is refused as well."""
    filled(path, 5)
    path.write_bytes(b"")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(JournalLoss, match=r"could not be copied aside \(No space left on device\)") as refused:
        Journal(path)
    with pytest.raises(JournalError, match="so nothing is given up; it needs room"):
        Journal(path, accept_loss=refused.value.loss.id)


def test_an_unfinished_write_is_counted(path: Path, tmp_path: Path) -> None:
    """Bytes of a commit that never completed are reported, and what was complete before them is kept."""
    with Journal(path) as journal:
        for n in range(1, 4):
            journal.append(n, "note", b"%d" % n)
            journal.commit()
        copy = tmp_path / "copy.db"
        shutil.copy(path, copy)
        log = path.with_name("journal.db-wal").read_bytes()
    copy.with_name("copy.db-wal").write_bytes(log[:-10])
    with Journal(copy) as journal:
        cut = journal.opening.unfinished_bytes
        assert cut % (24 + 4096) == 24 + 4096 - 10
        assert f"an unfinished write of {cut} bytes" in journal.opening.sentences()[0]
        assert journal.last_seq == 2


def test_a_database_cut_at_any_place_is_refused_or_right(tmp_path: Path) -> None:
    """A shortened database is never read as a shorter history: it opens complete or says that it is damaged."""
    whole = tmp_path / "whole.db"
    filled(whole, 3000)
    content = whole.read_bytes()
    rng = random.Random(3)
    refused = 0
    for at in [1, 100, 4096, *(rng.randrange(len(content)) for _ in range(25))]:
        path = tmp_path / "cut.db"
        path.write_bytes(content[:at])
        try:
            with Journal(path) as journal:
                assert sum(1 for _ in journal.load_for_recovery().records) == journal.last_seq == 3000
        except JournalDamaged:
            refused += 1
        for leftover in tmp_path.glob("cut.db*"):
            leftover.unlink()
    assert refused >= 25


@pytest.mark.parametrize("column", ["payload", "outcome", "checksum"])
@pytest.mark.parametrize("seq", [1, 4, 5])
def test_a_damaged_record_at_the_end_is_a_loss(path: Path, column: str, seq: int) -> None:
    """SQLite leaves none half written, so it was whole once. Given up it is put aside in the file, and named."""
    filled(path, 5)
    flip(path, "records", column, seq)
    with pytest.raises(JournalLoss, match=r"damaged|does not hold") as refused, Journal(path) as journal:
        list(journal.load_for_recovery().records)
    loss = refused.value.loss
    assert (loss.first, loss.last) == (seq, 5)
    with Journal(path, accept_loss=loss.id) as journal:
        assert journal.last_seq == seq - 1
        assert journal.append(60, "note", b"new") == seq
        journal.commit()
        with journal.reader() as reader:
            assert [r.payload for r in reader.records()][-1] == b"new"
            assert reader.cut_seqs() == tuple(range(seq, 6))
    with Journal(path) as journal:
        assert journal.opening.sentences() == ()


@pytest.mark.parametrize("column", ["payload", "outcome", "checksum"])
@pytest.mark.parametrize("seq", [1, 3])
def test_a_damaged_record_in_the_middle_is_refused(path: Path, column: str, seq: int) -> None:
    """Recovery does not go past it, and the error has its seq and what to do."""
    filled(path, 5)
    flip(path, "records", column, seq)
    with Journal(path) as journal, pytest.raises(JournalDamaged, match="Restore a backup") as e:
        list(journal.load_for_recovery().records)
    assert e.value.seq == seq


def test_history_can_be_given_up_from_a_damaged_record_on(path: Path) -> None:
    """The way on when there is no backup: what comes after is put aside, and the journal opens again."""
    with Journal(path) as journal:
        for n in range(1, 7):
            journal.append(n, "note", b"x")
        journal.save_snapshot(2, 2, b"early")
        journal.save_snapshot(5, 5, b"late")
    flip(path, "records", "payload", 4)
    assert cut_off(path, 4) == 3
    with Journal(path) as journal:
        recovery = journal.load_for_recovery()
        assert recovery.snapshot is not None
        assert (recovery.snapshot.state, [r.seq for r in recovery.records]) == (b"early", [3])
        assert journal.append(9, "note", b"") == 4
        with journal.reader() as reader:
            assert reader.cut_seqs() == (4, 5, 6)
        with pytest.raises(JournalError, match="is in use by process"):
            cut_off(path, 1)
    with pytest.raises(JournalError, match="history begins with record 1"):
        cut_off(path, 0)


def test_an_older_copy_put_back_is_noticed(path: Path, tmp_path: Path) -> None:
    """The lock file remembers how far the journal had been confirmed."""
    filled(path, 5)
    shutil.copy(path, tmp_path / "backup.db")
    with Journal(path) as journal:
        journal.append(60, "note", b"")
        journal.append(70, "note", b"")
    shutil.copy(tmp_path / "backup.db", path)
    with pytest.raises(JournalLoss, match=r"records 6 to 7 of .* an older copy was put back"):
        Journal(path)


def test_records_that_only_a_snapshot_knows_of_are_a_loss(path: Path) -> None:
    """Without the mark as well: what is written in their place would be passed over at the next start."""
    filled(path, 5)
    with Journal(path) as journal:
        journal.save_snapshot(2, 20, b"early")
        journal.save_snapshot(5, 50, b"late")
    with raw(path) as connection:
        connection.execute("DELETE FROM records WHERE seq > 3")
    path.with_name(path.name + ".lock").unlink()
    assert [(p.seq, p.what) for p in verify(path).problems] == [
        (4, "is missing, with all up to 5; it was confirmed once")
    ]
    assert verify(path).recovery_from is None
    with pytest.raises(JournalLoss, match=r"records 4 to 5 of .* the snapshot after record 5 is") as refused:
        Journal(path)
    with Journal(path, accept_loss=refused.value.loss.id) as journal:
        assert journal.append(60, "note", b"new") == 4
        journal.commit()
    with Journal(path) as journal:
        recovery = journal.load_for_recovery()
        assert recovery.snapshot is not None
        assert (recovery.snapshot.state, [r.payload for r in recovery.records]) == (b"early", [b"payload 3", b"new"])
