"""What is known about run times, from the jobs in the books."""

from __future__ import annotations

from random import Random

from fairlead.insight.runtimes import Kind
from fairlead.local.job import Job, JobSpec
from fairlead.local.job_states import State
from fairlead.service.forecaster import learned


def test_the_time_that_a_job_stood_still_is_no_run_time() -> None:
    """Two minutes of work, suspended over a weekend."""
    spec = JobSpec(key="7", name="train", user="ada", uid=1, groups=(), command=("/bin/true",), queue="root.a")
    job = Job(spec=spec, submitted_at_ms=0, priority=0, queue="root.a")
    job.state, job.started_at_ms, job.ended_at_ms = State.SUCCEEDED, 1_000, 200_121_000
    job.suspended_ms = 200_000_000
    known, kind = learned([job] * 50), Kind("ada", "train", "root.a")
    times = sorted(known.draw(kind, Random(number)) for number in range(20))
    assert times[len(times) // 2] == 120_000
