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
from fairlead.journal.store import Journal, cut_off

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


def test_kill_9_at_random_moments_loses_nothing_confirmed(path: Path) -> None:
    """The same journal is killed thirty times; each time all that was confirmed is there, in order, and nothing odd."""
    for seed in range(RUNS):
        confirmed = killed_writer(path, seed, random.Random(seed).randrange(12))
        with Journal(path) as journal:
            check_history(journal, confirmed)
            assert not journal.opening.lost
            assert journal.opening.cut_seq is None


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
    return int((crashed / "journal.db.lock").read_bytes().split()[1])


def test_a_log_cut_at_any_place_is_a_shorter_history(crashed: Path, tmp_path: Path) -> None:
    """With the tail of the log gone the journal opens with a prefix of history and names what is lost."""
    size, before = (crashed / "journal.db-wal").stat().st_size, confirmed(crashed)
    rng = random.Random(7)
    lengths = []
    for at in [0, 1, 31, 32, 33, size - 1, *(rng.randrange(size) for _ in range(20))]:
        path = wounded(crashed, tmp_path, "-wal", lambda content, at=at: content.__delitem__(slice(at, None)))
        with Journal(path) as journal:
            check_history(journal, 0)
            assert journal.opening.lost == range(journal.last_seq + 1, before + 1)
            said = " ".join(journal.opening.sentences())
            assert ("had been confirmed and are not there any more" in said) == (journal.last_seq < before)
            lengths.append(journal.last_seq)
            journal.append(10**6, "note", b"goes on")
            assert journal.commit() == lengths[-1] + 1
    assert len(set(lengths)) > 3
    assert max(lengths) <= before + 40


def test_a_bit_flipped_in_the_log_is_never_believed(crashed: Path, tmp_path: Path) -> None:
    """What follows a damaged place in the log is cut off as a whole commit; what is left is true."""
    size, before = (crashed / "journal.db-wal").stat().st_size, confirmed(crashed)
    rng = random.Random(11)
    for at in (rng.randrange(size) for _ in range(20)):
        path = wounded(crashed, tmp_path, "-wal", lambda content, at=at: content.__setitem__(at, content[at] ^ 4))
        with Journal(path) as journal:
            check_history(journal, 0)
            if journal.last_seq < before:
                assert journal.opening.lost == range(journal.last_seq + 1, before + 1)


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
        cut = journal.opening.cut_wal_bytes
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
def test_a_torn_last_record_is_cut_off_and_kept_aside(path: Path, column: str) -> None:
    """The journal goes on before it; what was cut is named and still in the file."""
    filled(path, 5)
    flip(path, "records", column, 5)
    with Journal(path) as journal:
        assert (journal.opening.cut_seq, journal.last_seq) == (5, 4)
        assert "record 5, the last one, was torn" in " ".join(journal.opening.sentences())
        assert journal.append(60, "note", b"new") == 5
        journal.commit()
        with journal.reader() as reader:
            assert [r.payload for r in reader.records()][-2:] == [b"payload 4", b"new"]
            assert reader.cut_seqs() == (5,)
    with Journal(path) as journal:
        assert journal.opening.sentences() == ()


def test_a_torn_only_record_is_cut_off(path: Path) -> None:
    """The very first record may be torn as well."""
    filled(path, 1)
    flip(path, "records", "payload", 1)
    with Journal(path) as journal:
        assert (journal.opening.cut_seq, journal.last_seq) == (1, 0)


@pytest.mark.parametrize("column", ["payload", "outcome", "checksum"])
@pytest.mark.parametrize("seq", [1, 3])
def test_a_damaged_record_in_the_middle_is_refused(path: Path, column: str, seq: int) -> None:
    """Recovery does not go past it, and the error has its seq and what to do."""
    filled(path, 5)
    flip(path, "records", column, seq)
    with Journal(path) as journal, pytest.raises(JournalDamaged, match="Restore the journal from a backup") as e:
        list(journal.load_for_recovery().records)
    assert e.value.seq == seq


def test_damage_right_before_the_last_record_is_not_a_torn_end(path: Path) -> None:
    """Two bad records at the end are not what a crash leaves."""
    filled(path, 5)
    flip(path, "records", "checksum", 4)
    with pytest.raises(JournalDamaged, match="record 4 is damaged"):
        Journal(path)
    with raw(path) as c:
        assert c.execute("SELECT count(*) FROM records").fetchone() == (5,)


def test_a_last_record_that_a_snapshot_followed_was_whole_once(path: Path) -> None:
    """It cannot be torn, so it is not cut off."""
    with Journal(path) as journal:
        for n in range(1, 4):
            journal.append(n, "note", b"x")
        journal.save_snapshot(3, 3, b"{}")
    flip(path, "records", "payload", 3)
    with pytest.raises(JournalDamaged, match=r"record 3 is damaged.*although a snapshot was made after it"):
        Journal(path)


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
        assert not journal.opening.lost
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
    with Journal(path) as journal:
        assert journal.opening.lost == range(6, 8)
        assert "records 6 to 7 had been confirmed and are not there" in journal.opening.sentences()[0]
