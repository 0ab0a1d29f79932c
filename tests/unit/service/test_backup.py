"""Backups: what is in them, what is refused, and that nothing is written over or run twice."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.core.model.events import AddNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSpec
from fairlead.journal import codec
from fairlead.journal.format import EVENT
from fairlead.journal.reader import Reader
from fairlead.journal.store import Journal
from fairlead.local.runs import ended_of
from fairlead.local.supervisor import run_files
from fairlead.service import backup as module
from fairlead.service.backup import BackupError, back_up, restore


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state with three records, a run that goes on, one that was settled, and tokens."""
    path = tmp_path / "state"
    for name in ("1-1", "2-1"):
        (path / "runs" / name).mkdir(parents=True)
        run_files.claim(str(path / "runs" / name), {"boot": "", "pid": None, "gpus": [], "started_at_ms": 1})
        (path / "runs" / name / "stdout.log").write_text(f"of {name}")
    run_files.write(str(path / "runs" / "2-1"), run_files.FORGOTTEN, {"exit_code": 0, "ended_at_ms": 2})
    (path / "tokens.json").write_text("{}")
    (path / "other").write_text("not ours")
    with Journal(path / "journal.db") as journal:
        write(journal, 3)
    return path


def write(journal: Journal, count: int) -> None:
    for number in range(count):
        event = AddNode(NodeSpec(id=f"n{number}", capacity=Resources({"vcore": 1})))
        journal.append(1, EVENT, codec.encode(event), codec.encode_all([]))
    journal.commit()


def test_two_at_once_to_one_file_do_not_take_each_others_away(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second removed what the first was writing, and then nobody had a backup."""
    target, write_one, refused = tmp_path / "b.tar.gz", module._write, list[str]()

    def write(*args: Any) -> None:
        write_one(*args)
        monkeypatch.setattr(module, "_write", write_one)
        back_up(state, target)

    monkeypatch.setattr(module, "_write", write)
    try:
        back_up(state, target)
    except BackupError as error:
        refused.append(str(error))
    assert refused == [f"{target} is there already; name another file, or move that one away"]
    assert restore(target, tmp_path / "again").last_seq == 3
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")], "nothing is left over"


@pytest.mark.parametrize("name", ["file/b.tar.gz", "none/b.tar.gz", "x" * 300])
def test_where_nothing_can_be_written_it_says_so(state: Path, tmp_path: Path, name: str) -> None:
    """By no traceback."""
    (tmp_path / "file").touch()
    with pytest.raises(BackupError, match="could not be written") as refused:
        back_up(state, tmp_path / name)
    assert ".fairlead-backup" not in str(refused.value), "of a name that is made for a moment nobody knows"


def test_where_no_service_keeps_its_state_it_says_how_to_name_the_place(tmp_path: Path) -> None:
    """It asked for a file, which it does not take."""
    with pytest.raises(BackupError, match=r"there is no journal in .*; say with --state where"):
        back_up(tmp_path / "none", tmp_path / "b.tar.gz")


def names(backup: Path) -> list[str]:
    with tarfile.open(backup) as tar:
        return tar.getnames()


def test_it_goes_out_and_comes_back(state: Path, tmp_path: Path) -> None:
    backup = tmp_path / "b.tar.gz"
    made = back_up(state, backup)
    assert (made.last_seq, made.runs) == (3, ["1-1"])
    assert names(backup) == ["manifest.json", "journal.db", "tokens.json"]
    assert backup.stat().st_mode & 0o777 == 0o600
    restore(backup, tmp_path / "again")
    with Reader(tmp_path / "again" / "journal.db") as journal:
        assert journal.last_seq == 3
    assert (tmp_path / "again" / "tokens.json").stat().st_mode & 0o777 == 0o600
    report = ended_of("1-1", tmp_path / "again" / "runs" / "1-1")
    assert report is not None
    assert report.lost, "it would be executed once more"
    assert not (tmp_path / "again" / "runs" / "2-1").exists()
    assert [path.name for path in tmp_path.iterdir()].count("again") == 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")], "nothing is left over"


def test_a_disk_without_links_takes_a_backup(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a memory stick or a share of Windows, where backups go: it was an operation that is not permitted."""

    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted", "backup")

    monkeypatch.setattr("os.link", link)
    back_up(state, tmp_path / "saved")
    assert "journal.db" in names(tmp_path / "saved")


def test_output_comes_too_where_that_is_wanted(state: Path, tmp_path: Path) -> None:
    back_up(state, tmp_path / "b", with_output=True)
    restore(tmp_path / "b", tmp_path / "again")
    assert (tmp_path / "again" / "runs" / "2-1" / "stdout.log").read_text() == "of 2-1"


def test_what_is_written_anew_meanwhile_is_in_it_as_it_was(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest output of a run that writes much, or the score of forecasts: each backup failed while it did."""
    newest, score, write_all = state / "runs" / "1-1" / "stdout.log.1", state / "forecasts.json", module._write
    newest.write_text("much")
    score.write_text("[]")

    def write(*args: Any) -> None:
        newest.write_text("")
        score.write_text("[1]")
        (state / "runs" / "1-1" / "stdout.log").write_text("of 1-1 and more")
        write_all(*args)

    monkeypatch.setattr(module, "_write", write)
    back_up(state, tmp_path / "b", with_output=True)
    restore(tmp_path / "b", tmp_path / "again")
    again = tmp_path / "again"
    assert (again / "forecasts.json").read_text() == "[]"
    assert (again / "runs" / "1-1" / "stdout.log.1").read_text() == "much"
    assert (again / "runs" / "1-1" / "stdout.log").read_text() == "of 1-1"


def test_output_that_leaves_meanwhile_is_left_out(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where jobs come and go, one or another reaches its time while the backup is made."""
    write_all = module._write

    def write(*args: Any) -> None:
        (state / "runs" / "2-1" / "stdout.log").unlink(missing_ok=True)
        write_all(*args)

    monkeypatch.setattr(module, "_write", write)
    made = back_up(state, tmp_path / "b", with_output=True)
    assert "runs/1-1/stdout.log" in made.files
    assert "runs/2-1/stdout.log" not in made.files
    restore(tmp_path / "b", tmp_path / "again")


def test_a_journal_in_use_is_copied_as_of_one_moment(state: Path, tmp_path: Path) -> None:
    with Journal(state / "journal.db") as journal:
        write(journal, 4)
        made = back_up(state, tmp_path / "b")
        write(journal, 5)
    restore(tmp_path / "b", tmp_path / "again")
    with Reader(tmp_path / "again" / "journal.db") as copy:
        assert copy.last_seq == made.last_seq == 7


def test_nothing_is_written_over(state: Path, tmp_path: Path) -> None:
    backup = tmp_path / "b"
    backup.write_text("mine")
    with pytest.raises(BackupError, match="is there already"):
        back_up(state, backup)
    assert backup.read_text() == "mine"
    back_up(state, tmp_path / "c")
    with pytest.raises(BackupError, match="is there and not empty"):
        restore(tmp_path / "c", state)
    (tmp_path / "empty").mkdir()
    restore(tmp_path / "c", tmp_path / "empty")


def rewritten(backup: Path, change: Callable[[str, bytes], tuple[str, bytes] | None]) -> Path:
    """The backup with some of its files otherwise."""
    target = backup.with_name("changed")
    with tarfile.open(backup) as old, tarfile.open(target, "w:gz") as new:
        for member in old:
            file = old.extractfile(member)
            assert file is not None
            found = change(member.name, file.read())
            if found is not None:
                info = tarfile.TarInfo(found[0])
                info.size = len(found[1])
                new.addfile(info, io.BytesIO(found[1]))
    return target


def _manifest(change: Callable[[dict[str, Any]], None]) -> Callable[[str, bytes], tuple[str, bytes]]:
    def changed(name: str, content: bytes) -> tuple[str, bytes]:
        if name != "manifest.json":
            return name, content
        said = json.loads(content)
        change(said)
        return name, json.dumps(said).encode()

    return changed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda name, content: (name, content[:-1] + b"x") if name == "tokens.json" else (name, content),
            "is not what",
        ),
        (lambda name, content: None if name == "tokens.json" else (name, content), "not all of it is there"),
        (lambda name, content: ("../evil", content) if name == "tokens.json" else (name, content), "holds '../evil'"),
        (lambda name, content: None if name == "manifest.json" else (name, content), "no backup of ours"),
        (_manifest(lambda said: said.update(journal_format=99)), "journal this version"),
        (_manifest(lambda said: said.update(last_seq=2)), "not the one that was written down"),
        (_manifest(lambda said: said.update(runs=["../x"])), "names a run '../x'"),
    ],
)
def test_what_was_changed_is_refused_and_leaves_nothing(
    state: Path, tmp_path: Path, change: Callable[[str, bytes], tuple[str, bytes] | None], said: str
) -> None:
    back_up(state, tmp_path / "b")
    changed = rewritten(tmp_path / "b", change)
    with pytest.raises(BackupError, match=said):
        restore(changed, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_is_cut_short_or_no_backup_is_refused(state: Path, tmp_path: Path) -> None:
    back_up(state, tmp_path / "b")
    whole = (tmp_path / "b").read_bytes()
    for number, content in enumerate((whole[: len(whole) // 2], b"text", b"")):
        (tmp_path / f"bad{number}").write_bytes(content)
        with pytest.raises(BackupError, match=r"damaged|no backup of ours"):
            restore(tmp_path / f"bad{number}", tmp_path / "again")


def test_a_damaged_journal_is_not_copied(state: Path, tmp_path: Path) -> None:
    import sqlite3

    with contextlib.closing(sqlite3.connect(state / "journal.db")) as connection, connection:
        connection.execute("UPDATE records SET payload = x'00' WHERE seq = 2")
    with pytest.raises(BackupError, match="the journal is damaged"):
        back_up(state, tmp_path / "b")
    assert not (tmp_path / "b").exists()
