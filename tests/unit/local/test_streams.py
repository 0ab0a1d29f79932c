"""Runs that read from and write to files of their user, with the rights of that user."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.local import user_files
from fairlead.local.streams import Streams

if TYPE_CHECKING:
    from conftest import Bench

ALICE = 54_321
SCRIPT = "#!/bin/sh\necho $2 and $1 by $(id -u); cat"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs work as others")


def test_output_goes_to_the_file(bench: Bench, tmp_path: Path) -> None:
    """All of it, beyond the bound of the service, which keeps nothing; standard error has its own."""
    files = Streams(stdout=str(tmp_path / "out"), stderr=str(tmp_path / "err"))
    assert bench.shell("a", "seq 10000; echo wrong >&2", streams=files, output_bytes=4096).exit_code == 0
    assert (tmp_path / "out").read_text() == "".join(f"{i}\n" for i in range(1, 10_001))
    assert (tmp_path / "err").read_text() == "wrong\n"
    assert not bench.machine.stdout_path(bench.key("a")).exists()


def test_only_standard_error(bench: Bench, tmp_path: Path) -> None:
    """The service keeps the rest."""
    assert bench.shell("a", "echo out; echo err >&2", streams=Streams(stderr=str(tmp_path / "err"))).exit_code == 0
    assert (bench.output("a"), (tmp_path / "err").read_text()) == ("out\n", "err\n")


@pytest.mark.parametrize(("append", "left"), [(True, "old\n1\n2\n3\n"), (False, "1\n2\n3\n")])
def test_both_in_one_file(bench: Bench, tmp_path: Path, append: bool, left: str) -> None:
    """In the order in which they were written; what was there stays if it is to be appended to."""
    path = tmp_path / "out"
    path.write_text("old\n")
    files = Streams(stdout=str(path), stderr=str(path), append=append)
    assert bench.shell("a", "echo 1; echo 2 >&2; echo 3", streams=files).exit_code == 0
    assert path.read_text() == left


def test_input(bench: Bench, tmp_path: Path) -> None:
    """It is read from the file; without one there is nothing to read."""
    (tmp_path / "in").write_text("given\n")
    bench.shell("a", "cat", streams=Streams(stdin=str(tmp_path / "in")))
    bench.shell("b", "cat; echo end")
    assert (bench.output("a"), bench.output("b")) == ("given\n", "end\n")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"stdout": "{0}/no/out"}, "'{0}/no/out', the file to write to, cannot be opened: No such file or directory"),
        ({"stderr": "{0}"}, "'{0}', the file to write to, cannot be opened: Is a directory"),
        ({"stdin": "{0}/in"}, "'{0}/in', the file to read from, cannot be opened: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_opened(bench: Bench, tmp_path: Path, files: dict[str, str], said: str) -> None:
    """It does not begin, and says why."""
    streams = Streams(**{name: text.format(tmp_path) for name, text in files.items()})
    report = bench.run("a", "touch", str(tmp_path / "began"), streams=streams)
    assert report.exit_code == 126
    assert said.format(tmp_path) in report.error
    assert not (tmp_path / "began").exists()


@as_root
def test_nothing_is_written_that_the_user_may_not(bench: Bench, tmp_path: Path) -> None:
    """Though the service is root, also by way of a link."""
    public, secret = tmp_path / "public", tmp_path / "secret"
    secret.write_text("kept")
    secret.chmod(0o600)
    public.mkdir()
    public.chmod(0o777)
    for above in (public, *list(public.parents)[:4]):
        above.chmod(above.stat().st_mode | 0o011)
    (public / "link").symlink_to(secret)
    user: dict[str, Any] = {"uid": ALICE, "gid": ALICE}
    refused = bench.shell("a", "echo lost", streams=Streams(stdout=str(public / "link")), **user)
    assert "Permission denied" in refused.error
    assert secret.read_text() == "kept"
    assert bench.shell("b", "echo mine", streams=Streams(stdout=str(public / "out")), **user).exit_code == 0
    assert (public / "out").stat().st_uid == ALICE
    with pytest.raises(PermissionError):
        user_files.open_as(ALICE, (ALICE,), str(public / "link"))
    found = user_files.open_as(ALICE, (ALICE,), str(public / "out"))
    try:
        assert os.pread(found, 100, 0) == b"mine\n"
    finally:
        os.close(found)
    with pytest.raises(FileNotFoundError):
        user_files.open_as(ALICE, (ALICE,), str(public / "nothing"))


@as_root
def test_a_disk_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As any other reason for which the file cannot be opened."""
    monkeypatch.setattr(user_files, "PATIENCE_S", 0.0)
    with pytest.raises(TimeoutError, match="Connection timed out") as told:
        user_files.open_as(ALICE, (ALICE,), str(tmp_path))
    assert told.value.filename == str(tmp_path)


def test_a_script_is_run_from_its_text(bench: Bench, tmp_path: Path) -> None:
    """With its arguments; the first word of the command is only its name."""
    report = bench.run("a", "job.sh", "one", "two", script=SCRIPT)
    assert (report.exit_code, bench.output("a")) == (0, f"two and one by {os.geteuid()}\n")


@as_root
def test_a_script_runs_as_its_user(bench: Bench, tmp_path: Path) -> None:
    """Who may read it; others may not."""
    for above in (tmp_path, *list(tmp_path.parents)[:3]):
        above.chmod(above.stat().st_mode | 0o011)
    report = bench.run("a", "job.sh", "one", "two", script=SCRIPT, uid=ALICE, gid=ALICE)
    assert (report.error, bench.output("a")) == ("", f"two and one by {ALICE}\n")
    file = bench.machine.stdout_path(bench.key("a")).parent / "script"
    assert (file.stat().st_uid, file.stat().st_mode & 0o777) == (ALICE, 0o500)


def test_a_pipe_that_nobody_reads_can_be_left(bench: Bench, tmp_path: Path) -> None:
    """It waits there to be opened, and is ended as any other: at once, without its grace."""
    os.mkfifo(tmp_path / "pipe")
    bench.start("a", "/bin/echo", "never", streams=Streams(stdout=str(tmp_path / "pipe")), grace_ms=60_000)
    bench.machine.stop(bench.key("a"))
    assert bench.end("a").stopped


@pytest.mark.thorough
def test_a_pipe_whose_run_is_gone_is_not_waited_for(bench: Bench, tmp_path: Path) -> None:
    """`fairlead run` was killed before its job began: that held its room for ever. The pipe goes with it."""
    left, there = (tmp_path / f"fairlead-input-{name}" for name in ("left", "there"))
    for each in (left, there):
        each.mkdir()
        os.mkfifo(each / "stdin")
    writer = threading.Thread(target=(there / "stdin").write_text, args=("given\n",))
    writer.start()
    bench.shell("a", "cat", streams=Streams(stdin=str(there / "stdin")), piped=True)
    writer.join()
    assert bench.output("a") == "given\n"
    report = bench.run("b", "touch", str(tmp_path / "began"), streams=Streams(stdin=str(left / "stdin")), piped=True)
    assert (report.exit_code, report.error) == (126, "the `fairlead run` whose input it was to read is gone")
    assert sorted(each.name for each in tmp_path.glob("fairlead-input-*")) == [there.name]
    assert not (tmp_path / "began").exists()


@pytest.mark.parametrize(("umask", "mode"), [(0o022, "644"), (0o077, "600"), (0, "666")])
def test_what_it_writes_has_the_permissions_that_its_umask_leaves(
    bench: Bench, tmp_path: Path, umask: int, mode: str
) -> None:
    """Its own files and those that it opens for its output."""
    files = Streams(stdout=str(tmp_path / "out"), umask=umask)
    assert bench.shell("a", f"cd {tmp_path} && touch made && stat -c %a out made", streams=files).exit_code == 0
    assert (tmp_path / "out").read_text().split() == [mode, mode]
