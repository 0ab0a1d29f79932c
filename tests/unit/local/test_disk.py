"""From when on a disk counts as full."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairlead.local.disk import Disk
from fairlead.local.machine import Machine
from fairlead.local.means import Means
from fairlead.local.runs import RunSpec

LARGE = 100 * 2**30
ENOUGH = 10**6


@pytest.fixture
def disk_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> object:
    """A disk of this size with so much free."""

    def make(total: int, free: int, *, files: int = ENOUGH, free_files: int = ENOUGH, keep: int | None = None) -> Disk:
        found = SimpleNamespace(
            f_frsize=4096, f_blocks=total // 4096, f_bavail=free // 4096, f_files=files, f_favail=free_files
        )
        monkeypatch.setattr(os, "statvfs", lambda _: found)
        return Disk(tmp_path, keep)

    return make


@pytest.mark.parametrize(
    ("total", "free", "files", "free_files", "keep", "said"),
    [
        (LARGE, 64 << 20, ENOUGH, ENOUGH, None, ""),
        (LARGE, (64 << 20) - 4096, ENOUGH, ENOUGH, None, "63.9Mi free, 64Mi kept for cancels and ends"),
        (100 << 20, 5 << 20, ENOUGH, ENOUGH, None, ""),
        (100 << 20, 4 << 20, ENOUGH, ENOUGH, None, "4Mi free, 5Mi kept"),
        (LARGE, 1 << 30, ENOUGH, ENOUGH, 2 << 30, "1Gi free, 2Gi kept"),
        (LARGE, 0, ENOUGH, 0, 0, ""),
        (LARGE, LARGE, ENOUGH, 999, None, "room for 999 files free, for 1000 kept"),
        (LARGE, LARGE, 2000, 99, None, "room for 99 files free, for 100 kept"),
        (LARGE, LARGE, 0, 0, None, ""),
    ],
)
def test_it_is_full_when_less_is_free_than_is_kept(
    disk_of: object, total: int, free: int, files: int, free_files: int, keep: int | None, said: str
) -> None:
    """In bytes or in files; a disk that counts no files has enough of them."""
    disk = disk_of(total, free, files=files, free_files=free_files, keep=keep)  # type: ignore[operator]
    short = disk.shortage()
    assert (said in short) if said else short == ""


def test_without_its_journal_nothing_is_taken_in(tmp_path: Path) -> None:
    """It was, into a file that nobody could open any more: the next start knew nothing of it."""
    disk = Disk(tmp_path, 0, tmp_path / "journal.db")
    assert f"the journal {tmp_path / 'journal.db'} was removed" in disk.shortage()
    (tmp_path / "journal.db").touch()
    assert disk.shortage() == ""


def test_nothing_starts_on_a_full_disk(disk_of: object, tmp_path: Path) -> None:
    """It was not executed, and may be started again."""
    machine = Machine(tmp_path / "runs", on_end=lambda _: None, means=Means(), disk=disk_of(LARGE, 0))  # type: ignore[operator]
    try:
        with pytest.raises(OSError, match="the disk of the state directory is full") as failure:
            machine.start(RunSpec(key="1-1", command=("true",)))
        assert failure.value.errno == errno.ENOSPC
        assert machine.report("1-1") is None
    finally:
        machine.close()
