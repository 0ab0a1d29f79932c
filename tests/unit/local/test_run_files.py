"""The files of a run: whole or not at all, and claimed once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.local import runs
from fairlead.local.supervisor import kernel, run_files
from fairlead.local.supervisor.sealed import Damaged


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Also with characters that are no text."""
    record = {"a": 1, "b": ["x", "\udcff", "ä"]}
    run_files.write(str(tmp_path), run_files.SPEC, record)
    assert run_files.read(str(tmp_path), run_files.SPEC) == record
    assert [each.name for each in tmp_path.iterdir()] == [run_files.SPEC]
    assert (tmp_path / run_files.SPEC).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b'{"half": ', b"\0" * 100, b"[1]", b"null", b"{}"])
def test_what_is_no_record_is_damaged(tmp_path: Path, content: bytes) -> None:
    """It is never taken for a record, nor for none."""
    (tmp_path / run_files.SPEC).write_bytes(content)
    with pytest.raises(Damaged):
        run_files.read(str(tmp_path), run_files.SPEC)
    assert runs.spec_of(tmp_path) is None


def test_every_flipped_bit_of_a_record_is_harmless(tmp_path: Path) -> None:
    """Each bit of a file, one at a time: the other copy says what was written."""
    record = {"grace_ms": 30_000, "text": "\udcff \n ä"}
    run_files.reserve(str(tmp_path))
    run_files.write_reserved(str(tmp_path), run_files.STOP, record)
    path = tmp_path / run_files.STOP
    content = path.read_bytes()
    for at in range(8 * (len(content.rstrip()) + 20)):
        hurt = bytearray(content)
        hurt[at // 8] ^= 1 << at % 8
        path.write_bytes(hurt)
        assert run_files.read(str(tmp_path), run_files.STOP) == record, at


def test_a_lost_sector_of_a_record_is_harmless_or_found(tmp_path: Path) -> None:
    """Zeros instead of 512 bytes: what is read is what was written, or nothing is."""
    record = {"env": {f"NAME{n}": "value" * 9 for n in range(100)}}
    run_files.write(str(tmp_path), run_files.SPEC, record)
    path = tmp_path / run_files.SPEC
    content = path.read_bytes()
    for at in range(0, len(content), 512):
        path.write_bytes(content[:at] + bytes(512) + content[at + 512 :])
        assert runs.spec_of(tmp_path) in (record, None)


def test_a_claim_is_made_once(tmp_path: Path) -> None:
    """The second one fails, and the first one stays as it is."""
    assert run_files.claim(str(tmp_path), {"who": 1})
    assert not run_files.claim(str(tmp_path), {"who": 2})
    assert run_files.read(str(tmp_path), run_files.CLAIM) == {"who": 1}
    assert [each.name for each in tmp_path.iterdir()] == [run_files.CLAIM]


def test_no_claim_without_a_directory(tmp_path: Path) -> None:
    """A run that was purged cannot be claimed any more."""
    with pytest.raises(FileNotFoundError):
        run_files.claim(str(tmp_path / "gone"), {})


def test_the_result_goes_into_the_reserved_room(tmp_path: Path) -> None:
    """The room becomes the result; nothing else is left."""
    run_files.reserve(str(tmp_path))
    room = tmp_path / "result.reserved"
    inode = room.stat().st_ino
    assert room.stat().st_size == run_files.RESERVED_BYTES[run_files.RESULT]
    run_files.write_reserved(str(tmp_path), run_files.RESULT, {"exit_code": 3})
    assert run_files.read(str(tmp_path), run_files.RESULT) == {"exit_code": 3}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["course.reserved", run_files.RESULT, "stop.reserved"]
    assert (tmp_path / run_files.RESULT).stat().st_ino == inode


def test_a_stop_gives_its_room_to_the_next(tmp_path: Path) -> None:
    """Without a file more or a block more, however often it is written."""
    run_files.reserve(str(tmp_path))
    inode = (tmp_path / "stop.reserved").stat().st_ino
    for grace_ms in (86_400_000, 30_000, 0):
        run_files.write_reserved(str(tmp_path), run_files.STOP, {"grace_ms": grace_ms, "at_ms": 1})
        assert run_files.read(str(tmp_path), run_files.STOP) == {"grace_ms": grace_ms, "at_ms": 1}
        assert (tmp_path / run_files.STOP).stat().st_ino == inode
        run_files.take_back(str(tmp_path), run_files.STOP)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        f"{each}.reserved" for each in ("course", "result", "stop")
    ]


def test_how_it_goes_on_gives_its_room_to_the_next(tmp_path: Path) -> None:
    """A full disk keeps no job running that is called suspended, nor with a time limit that it has no more."""
    run_files.reserve(str(tmp_path))
    inode = (tmp_path / "course.reserved").stat().st_ino
    for suspended in (True, False, True):
        runs.wish_to_go_on(tmp_path, 900, suspended=suspended)
        assert run_files.read(str(tmp_path), run_files.COURSE) == {"time_limit_ms": 900, "suspended": suspended}
        assert (tmp_path / run_files.COURSE).stat().st_ino == inode
    assert sorted(each.name for each in tmp_path.iterdir()) == ["course", "result.reserved", "stop.reserved"]


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_a_shorter_grace_counts_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """It may have been set between the two; a longer one changes nothing."""
    now = run_files.now_ms()
    runs.wish_to_end(tmp_path, 600_000)
    monkeypatch.setattr(run_files, "now_ms", lambda: now + hours * 3_600_000)
    graces = []
    for grace_ms in (900_000, 1000, 600_000, 0):
        runs.wish_to_end(tmp_path, grace_ms)
        wish = run_files.read(str(tmp_path), run_files.STOP)
        assert wish is not None
        graces.append(wish["grace_ms"])
    assert graces == [600_000, 1000, 1000, 0]


def test_a_result_without_reserved_room(tmp_path: Path) -> None:
    """It is written all the same."""
    run_files.write_reserved(str(tmp_path), run_files.RESULT, {"exit_code": 3})
    assert run_files.read(str(tmp_path), run_files.RESULT) == {"exit_code": 3}


@pytest.mark.parametrize("key", ["1", "1.2", "a_b-c:d@e=f+g", "x" * 128])
def test_keys_are_names(tmp_path: Path, key: str) -> None:
    """Ordinary keys name a directory right below the runs."""
    assert runs.directory_of(tmp_path, key) == tmp_path / key


def test_the_end_does_not_lie_before_the_begin(tmp_path: Path) -> None:
    """A clock that was set back meanwhile does not make a run end before it began."""
    run_files.write(str(tmp_path), run_files.CLAIM, {"pid": 1, "started_at_ms": 1000, "gpus": [2]})
    run_files.write_reserved(str(tmp_path), run_files.RESULT, {"exit_code": 0, "ended_at_ms": 400})
    report = runs.ended_of("a", tmp_path)
    assert report is not None
    assert (report.started_at_ms, report.ended_at_ms, report.pid, report.gpus) == (1000, 1000, 1, (2,))


# --- processes ---


def test_a_process_is_described() -> None:
    """This one: its parent, its memory, its time; and a name with brackets and blanks does not confuse."""
    code = "import os\nopen('/proc/self/comm', 'w').write(') R (1 2')\nprint('ready', flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = kernel.process(child.pid)
        assert found is not None
        assert found.parent == os.getpid()
        assert found.state in {"R", "S"}
        assert 1_000_000 < found.memory < 100_000_000
        assert kernel.alive(child.pid, found.started_ticks)
        assert not kernel.alive(child.pid, found.started_ticks + 1)
        assert child.pid in {each.pid for each in kernel.descendants(os.getpid())}
        assert child.pid in {each.pid for each in kernel.nearby_descendants(os.getpid())}
        child.communicate(b"\n")
    assert kernel.process(child.pid) is None


def test_a_zombie_is_not_alive() -> None:
    """A process that has ended and was not waited for is dead."""
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    found = kernel.process(pid)
    assert found is not None
    assert not kernel.alive(pid, found.started_ticks)
    os.waitpid(pid, 0)


def test_a_signal_goes_to_the_right_process_only() -> None:
    """A process with another start time is not signalled; neither is one that does not exist."""
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        found = kernel.process(child.pid)
        assert found is not None
        kernel.send(child.pid, found.started_ticks - 1, 9)
        assert child.poll() is None
        kernel.send(child.pid, found.started_ticks, 9)
        assert child.wait(50) == -9
    kernel.send(child.pid, found.started_ticks, 9)
