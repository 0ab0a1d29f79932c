"""What is committed is there, in order, and one process writes."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from journals import filled, raw

from fairlead.journal import format as fmt
from fairlead.journal.format import JournalError, JournalFull, JournalInUse
from fairlead.journal.store import Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def test_records_come_back_as_they_were(path: Path) -> None:
    """Seq, time, kind, payload and outcome of each record are kept, in order, from 1 on."""
    with Journal(path) as journal:
        assert journal.append(5, "event", b"a", b"x") == 1
        assert journal.append(5, "note", b"", b"") == 2
        assert journal.commit() == 2
    with Journal.read(path) as reader:
        assert [(r.seq, r.at_ms, r.kind, r.payload, r.outcome) for r in reader.records()] == [
            (1, 5, "event", b"a", b"x"),
            (2, 5, "note", b"", b""),
        ]


def test_nothing_is_visible_before_it_is_committed(path: Path) -> None:
    """A reader sees records when they are durable, and all of a commit at once."""
    with Journal(path) as journal, journal.reader() as reader:
        journal.append(1, "note", b"1")
        journal.append(2, "note", b"2")
        assert (reader.last_seq, journal.pending, journal.committed_seq) == (0, 2, 0)
        assert journal.commit() == 2
        assert (reader.last_seq, journal.pending, journal.committed_seq) == (2, 0, 2)


def test_an_empty_commit_says_what_is_durable(path: Path) -> None:
    """Committing nothing is free and right."""
    filled(path, 3)
    with Journal(path) as journal:
        assert journal.commit() == 3


def test_seqs_go_on_after_opening_again(path: Path) -> None:
    """A journal that is opened again goes on where it ended."""
    filled(path, 3)
    with Journal(path) as journal:
        assert not journal.opening.created
        assert journal.opening.sentences() == ()
        assert (journal.last_seq, journal.last_at_ms) == (3, 30)
        assert journal.append(30, "note", b"") == 4


def test_closing_commits_what_waits(path: Path) -> None:
    """A clean end loses nothing, and says nothing at the next opening."""
    journal = Journal(path)
    journal.append(1, "note", b"late")
    journal.close()
    journal.close()
    with Journal(path) as again:
        assert again.last_seq == 1


def test_time_cannot_go_backwards(path: Path) -> None:
    """An earlier time is refused and changes nothing, also after opening again."""
    filled(path, 3)
    with Journal(path) as journal:
        with pytest.raises(ValueError, match="record at 29 ms, but the last one is at 30 ms"):
            journal.append(29, "note", b"")
        assert journal.append(30, "note", b"") == 4


@pytest.mark.parametrize(
    ("kind", "payload", "complaint"),
    [
        ("", b"", "needs a kind"),
        ("cafe\u0301", b"", "a word in ASCII"),
        ("note", bytes(fmt.MAX_RECORD_BYTES + 1), "at most 67108864 are possible"),
    ],
    ids=["no kind", "odd kind", "too large"],
)
def test_a_record_that_cannot_be_is_refused(path: Path, kind: str, payload: bytes, complaint: str) -> None:
    """A refused record takes no seq."""
    with Journal(path) as journal:
        with pytest.raises(ValueError, match=complaint):
            journal.append(1, kind, payload)
        assert journal.append(1, "note", b"") == 1


def test_a_second_writer_is_told_who_the_first_is(path: Path) -> None:
    """The same file cannot be opened for writing twice; the error names the process."""
    with Journal(path):
        with pytest.raises(JournalInUse, match=f"is in use by process {os.getpid()}; stop it") as e:
            Journal(path)
        assert e.value.pid == os.getpid()
    Journal(path).close()


def test_a_lock_that_cannot_be_written_is_said_and_let_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the file; as soon as the disk lets it, the journal can be opened."""

    def refused(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", refused)
        with pytest.raises(JournalError, match=r"cannot open .*journal\.db\.lock: Input/output error"):
            Journal(path)
    Journal(path).close()


def test_what_is_durable_does_not_fail_for_its_mark(path: Path) -> None:
    """Whoever was told that it is not written would write it again: the mark is behind, and is put right later."""
    journal = Journal(path)
    full = os.open("/dev/full", os.O_RDWR)
    lock = os.dup(journal._lock._fd)
    os.dup2(full, journal._lock._fd)
    journal.append(1, "note", b"")
    assert journal.commit() == 1
    os.dup2(lock, journal._lock._fd)
    journal.append(2, "note", b"")
    assert journal.commit() == 2
    journal.close()
    os.close(full)
    os.close(lock)
    with Journal(path) as journal:
        assert journal.last_seq == 2


def test_a_second_process_is_refused_and_the_first_goes_on(path: Path) -> None:
    """Another process gets the error too, and the writer does not notice."""
    program = "import sys; from fairlead.journal.store import Journal; Journal(sys.argv[1])"
    with Journal(path) as journal:
        ended = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
        )
        assert f"JournalInUse: {path} is in use by process {os.getpid()}" in ended.stderr
        journal.append(1, "note", b"")
        assert journal.commit() == 1


def test_only_the_owner_can_read_it(path: Path) -> None:
    """Commands and their environment are nobody else's business; the log beside it is as closed."""
    with Journal(path) as journal:
        journal.append(1, "note", b"")
        journal.commit()
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_every_commit_reaches_the_disk(path: Path) -> None:
    """The settings that durability stands on are in force."""
    with Journal(path) as journal:
        assert journal._connection.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert journal._connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_a_full_disk_keeps_what_waits(path: Path) -> None:
    """When there is no room nothing is lost: the same records are committed when there is room again."""
    with Journal(path) as journal:
        journal.append(1, "note", b"small")
        journal.commit()
        pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
        journal._connection.execute(f"PRAGMA max_page_count = {pages}")
        journal.append(2, "note", bytes(100_000))
        with pytest.raises(JournalFull, match="1 records wait and are kept; free some space"):
            journal.commit()
        journal.append(3, "note", b"after")
        with pytest.raises(JournalFull, match="2 records wait"):
            journal.commit()
        assert (journal.committed_seq, journal.pending) == (1, 2)
        journal._connection.execute(f"PRAGMA max_page_count = {2**30}")
        assert journal.commit() == 3
        with journal.reader() as reader:
            assert [r.seq for r in reader.records()] == [1, 2, 3]


def test_a_failing_disk_stops_the_journal(path: Path) -> None:
    """After a failure that leaves open what the disk holds nothing more is written until it is opened again."""
    program = f"""
import resource, signal, sys
from fairlead.journal.store import Journal
from fairlead.journal.format import JournalError, JournalFull
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal({str(path)!r})
journal.append(1, "note", b"kept"); journal.commit()
size = sum(f.stat().st_size for f in journal.path.parent.glob("journal.db-wal"))
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, resource.RLIM_INFINITY))
journal.append(2, "note", bytes(50_000))
for act in (journal.commit, journal.commit, lambda: journal.append(3, "note", b"")):
    try:
        act()
        print("went through")
    except JournalError as e:
        print(type(e).__name__, e)
journal.close()
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.count("what was committed is safe up to record 1. Open the journal again") == 3, ended.stdout
    with Journal(path) as journal:
        assert journal.last_seq == 1
        assert journal.append(2, "note", b"") == 2


def test_a_closed_journal_refuses(path: Path) -> None:
    """Writing after the end is an error, not a loss."""
    journal = Journal(path)
    journal.close()
    with pytest.raises(JournalError, match="it is closed"):
        journal.append(1, "note", b"")


def test_closing_twice_closes_nobody_elses_file(path: Path) -> None:
    """The numbers of its files are given out again in between."""
    journal = Journal(path)
    journal.append(1, "note", b"")
    journal.close()
    others = [os.open("/dev/null", os.O_RDONLY) for _ in range(8)]
    journal.close()
    for fd in others:
        os.close(fd)


def test_checkpoint_folds_the_log_back(path: Path) -> None:
    """After a checkpoint the database has everything; a reader in the middle of something is not waited for."""
    with Journal(path) as journal:
        journal.append(1, "note", bytes(200_000))
        journal.commit()
        before = journal.sizes()
        assert journal.checkpoint()
        assert journal.sizes().database_bytes > before.database_bytes + 100_000


def test_sizes_count_what_is_there(path: Path) -> None:
    """Records and snapshots are counted."""
    with Journal(path) as journal:
        for n in range(3):
            journal.append(n, "note", b"")
        journal.save_snapshot(2, 1, b"{}")
        sizes = journal.sizes()
    assert (sizes.records, sizes.first_seq, sizes.last_seq, sizes.snapshots) == (3, 1, 3, 1)
    assert sizes.database_bytes > 0


# --- The file and its format ---


def test_a_foreign_file_is_left_alone(path: Path) -> None:
    """Another program's database is not taken for a journal."""
    with raw(path) as c:
        c.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(JournalError, match="is not a journal of Fairlead"):
        Journal(path)
    with pytest.raises(JournalError, match="is not a journal of Fairlead"):
        Journal.read(path)
    with raw(path) as c:
        assert c.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    assert len(path.read_bytes()) == len(before)


def test_a_text_file_is_refused(path: Path) -> None:
    """What is not a database at all is called so."""
    path.write_text("queues:\n" * 500)
    with pytest.raises(JournalError, match="is damaged as a file"):
        Journal(path)
    with pytest.raises(JournalError, match=r"is not a journal of Fairlead, or its beginning is damaged \(file is not"):
        Journal.read(path)


def test_a_format_of_the_future_is_refused(path: Path) -> None:
    """A journal of a newer version is not touched: upgrade."""
    filled(path)
    with raw(path) as c:
        c.execute("UPDATE meta SET value = 99 WHERE name = 'format'")
    for open_it in (Journal, Journal.read):
        with pytest.raises(JournalError, match=r"has journal format 99; .* knows up to 2: upgrade Fairlead"):
            open_it(path)


def test_an_older_format_is_migrated_step_by_step(path: Path) -> None:
    """Each step brings the file one version further and is recorded with it."""
    filled(path)
    steps = {
        fmt.FORMAT: lambda c: c.execute("ALTER TABLE records ADD COLUMN who TEXT"),
        fmt.FORMAT + 1: lambda c: c.execute("UPDATE records SET who = 'x'"),
    }
    newest = fmt.FORMAT + 2
    with raw(path) as c:
        assert fmt.migrate(c, path, steps, newest) == 2
        assert fmt.meta(c, "format") == newest
        assert c.execute("SELECT DISTINCT who FROM records").fetchall() == [("x",)]
        assert fmt.migrate(c, path, steps, newest) == 0


def test_a_migration_that_fails_leaves_the_old_format(path: Path) -> None:
    """A step is whole or not at all."""
    filled(path)

    def fails(c: sqlite3.Connection) -> None:
        c.execute("DELETE FROM records")
        c.execute("SELECT nonsense")

    with raw(path) as c:
        with pytest.raises(sqlite3.OperationalError):
            fmt.migrate(c, path, {fmt.FORMAT: fails}, newest=fmt.FORMAT + 1)
        assert fmt.meta(c, "format") == fmt.FORMAT
        assert c.execute("SELECT count(*) FROM records").fetchone() == (10,)
        with pytest.raises(JournalError, match=f"no way from it to {fmt.FORMAT + 1}"):
            fmt.migrate(c, path, {}, newest=fmt.FORMAT + 1)


def test_a_state_directory_that_is_not_there(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(JournalError, match=r"cannot open .*none/journal.db.lock: No such file or directory"):
        Journal(tmp_path / "none" / "journal.db")
    with pytest.raises(JournalError, match="there is no journal at"):
        Journal.read(tmp_path / "journal.db")


def test_a_creation_that_was_broken_off_is_done_again(path: Path) -> None:
    """An empty database, such as a crash at the very first start leaves, is a new journal."""
    with raw(path) as c:
        c.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size > 0
    with Journal(path) as journal:
        assert journal.opening.created
        assert journal.append(1, "note", b"") == 1


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_file_stays_open(path: Path) -> None:
    """Opening and closing leaves no file descriptor behind, also when opening fails."""
    filled(path)
    with raw(path) as c:
        c.execute("UPDATE meta SET value = 99 WHERE name = 'format'")
    before = open_files()
    for _ in range(5):
        with pytest.raises(JournalError):
            Journal(path)
        with pytest.raises(JournalError):
            Journal.read(path)
    assert open_files() == before
