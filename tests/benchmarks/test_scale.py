"""The measurement of scale measures what it says: a log with gangs that a simulation gets through."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import scale

from fairlead.sim.sources import Source
from fairlead.sim.trials import Trial, run_trial


@pytest.mark.thorough
def test_the_log_has_gangs_and_is_got_through(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    scale.write_log(log, 300)
    workload = Source(workload=str(log)).open()
    assert 30 < sum(job.gang for job in workload.jobs) < 90
    outcome = run_trial(Trial(name="log", source=Source(workload=str(log)), digest=False))
    totals = outcome["figures"]["tasks"]
    assert totals["completed"] == totals["submitted"] > 300


def test_a_case_is_told_with_time_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "JOBS", 50)
    told = scale.measured("log", tmp_path)
    assert told.startswith("log: ")
    assert " s of CPU, " in told
