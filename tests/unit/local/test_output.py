"""The output of a run is bounded: the beginning and the end are kept, and what was left out is said."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Bench

MOST = 64 * 1024
LINES = "i=0; while [ $i -lt {count} ]; do echo line $i; i=$((i+1)); done"


def lines(count: int) -> str:
    return "".join(f"line {i}\n" for i in range(count))


def logged(bench: Bench, name: str = "a") -> tuple[bytes, list[str]]:
    """What is in the log, and the files that hold output."""
    path = bench.machine.stdout_path(bench.key(name))
    return path.read_bytes(), sorted(each.name for each in path.parent.iterdir() if ".log" in each.name)


@pytest.mark.parametrize("count", [10, 3_000, 5_500])
def test_output_within_the_bound_is_whole(bench: Bench, count: int) -> None:
    """Also what was beside the log while it ran."""
    assert bench.shell("a", LINES.format(count=count), output_bytes=MOST).exit_code == 0
    assert logged(bench) == (lines(count).encode(), ["stderr.log", "stdout.log"])
    assert len(lines(count)) < MOST


def test_of_more_the_beginning_and_the_end_are_kept(bench: Bench) -> None:
    """How much was left out between is said, to the byte; standard error has a bound of its own."""
    whole = lines(50_000)
    report = bench.shell("a", f"{LINES.format(count=50_000)}; echo fine >&2", output_bytes=MOST)
    assert report.exit_code == 0
    content, files = logged(bench)
    assert files == ["stderr.log", "stdout.log"]
    assert MOST // 2 < len(content) < MOST + 300
    said = re.fullmatch(
        rb"(.*)\n\[fairlead: longer than its bound: the newest is in stdout\.log\.1 and stdout\.log\.2\]\n"
        rb"\n\[fairlead: (\d+) bytes were left out here\]\n(.*)",
        content,
        re.DOTALL,
    )
    assert said is not None
    begin, left_out, end = said[1].decode(), int(said[2]), said[3].decode()
    assert whole.startswith(begin)
    assert whole.endswith(end)
    assert len(begin) + left_out + len(end) == len(whole)
    assert len(begin) == MOST // 2
    assert MOST // 4 < len(end) <= MOST // 2
    assert bench.machine.stderr_path(bench.key("a")).read_text() == "fine\n"


def test_the_bound_holds_while_it_runs(bench: Bench) -> None:
    """However fast it writes; what stands in the log stays where it is."""
    bench.start("a", "yes", output_bytes=MOST)
    path = bench.machine.stdout_path(bench.key("a"))
    bench.until(lambda: Path(f"{path}.2").exists() and b"[fairlead: longer" in path.read_bytes())
    before = path.read_bytes()
    for _ in range(300):
        size = 0
        for name in ("", ".1", ".2"):
            with contextlib.suppress(FileNotFoundError):
                size += Path(f"{path}{name}").stat().st_size
        assert size <= MOST + 200
    assert path.read_bytes() == before
    bench.machine.stop(bench.key("a"), 0)
    bench.end("a")
    content, files = logged(bench)
    assert (content[: len(before)], files) == (before, ["stderr.log", "stdout.log"])
    bench.machine.forget(bench.key("a"))
    assert logged(bench) == (content, files)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_neither_holds_nor_fails_a_run(bench: Bench, tmp_path: Path) -> None:
    """What found no room is named where it is missing, as soon as there is some, or with the end."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", small], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        bench.directory = small / "runs"
        go, written, filling = tmp_path / "go", tmp_path / "written", small / "filling"
        script = (
            f"echo begin; head -c 1000000 /dev/zero; : > {written}; while ! test -e {go}; do sleep 0.02; done; echo end"
        )
        bench.start("a", "/bin/sh", "-c", script)
        path = bench.machine.stdout_path(bench.key("a"))
        # All is written but for what the pipe holds, twice what the disk does: the rest found no room.
        bench.until(lambda: written.exists() and os.statvfs(small).f_bavail == 0)
        os.truncate(path, 4096)
        go.touch()
        assert bench.end("a").exit_code == 0
        content = path.read_bytes()
        assert content.startswith(b"begin\n")
        assert re.search(rb"\n\[fairlead: \d{6} bytes are missing here: the disk was full\]\n\0*end\n$", content)
        go.unlink()
        filling.write_bytes(bytes(100_000))
        go.touch()
        report = bench.shell("b", "head -c 1000000 /dev/zero")
        assert report.exit_code == 0
        assert re.fullmatch(r"the last \d{6} bytes of its output are missing: the disk was full", report.note)
        bench.close()
    finally:
        subprocess.run(["umount", "-l", small], check=True)
