"""The benchmark of retention runs jobs through the real books, and measures what is on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import retention as module
from benchmarks.retention import run

from fairlead.service.retention import Retention


@pytest.mark.thorough
def test_jobs_run_and_what_is_old_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them has its records; no more stay than may, in the list and on the disk, also after a restart."""
    monkeypatch.setattr(module, "LOOK_EVERY", 200)
    said: list[str] = []
    found = run(600, tmp_path, Retention(jobs=150), said.append)
    assert (found["jobs"], found["known"], len(said)) == (600, 150, 3)
    assert found["records"] > 5 * 600
    assert found["largest_bytes"] > 150 * 3 * 4096
    assert len(list((tmp_path / "runs").iterdir())) == 150
    assert 0 < found["recovery_s"] < 20
