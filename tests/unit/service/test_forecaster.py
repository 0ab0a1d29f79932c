"""What is known about run times, from the jobs in the books, and forecasts of the service's own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any

from fairlead.insight.forecast import About, Forecast
from fairlead.insight.runtimes import Kind
from fairlead.local.job import Job, JobSpec
from fairlead.local.job_states import State
from fairlead.service.forecaster import IN_A_TURN, Forecaster, learned


def test_the_time_that_a_job_stood_still_is_no_run_time() -> None:
    """Two minutes of work, suspended over a weekend."""
    spec = JobSpec(key="7", name="train", user="ada", uid=1, groups=(), command=("/bin/true",), queue="root.a")
    job = Job(spec=spec, submitted_at_ms=0, priority=0, queue="root.a")
    job.state, job.started_at_ms, job.ended_at_ms = State.SUCCEEDED, 1_000, 200_121_000
    job.suspended_ms = 200_000_000
    known, kind = learned([job] * 50), Kind("ada", "train", "root.a")
    times = sorted(known.draw(kind, Random(number)) for number in range(20))
    assert times[len(times) // 2] == 120_000


def test_whoever_asks_something_does_not_wait_until_all_answers_are_put_right() -> None:
    """Of thousands that wait the service was deaf for seconds."""
    names = [("default", str(number), "1") for number in range(5 * IN_A_TURN)]
    told = Forecast(0, 1, dict.fromkeys(names, (60000,)), (), about={name: About() for name in names})
    forecaster, seen = Forecaster(), []

    class Desk:
        async def look(self, ask: Any) -> Any:
            del ask
            return set(names), [], SimpleNamespace(answer=lambda: told)

    async def others() -> None:
        while len(forecaster.card.promised()) < len(names):
            seen.append(len(forecaster.card.promised()))
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(others(), forecaster.look(Desk()))

    asyncio.run(both())
    assert max(after - before for before, after in pairwise(seen)) == IN_A_TURN


def test_it_is_known_of_which_arrays_a_part_ended_otherwise_than_well() -> None:
    """One that waits for all of such an array waits in vain; parts that run, or ended well, say nothing yet."""
    spec = JobSpec(key="7", name="", user="ada", uid=1, groups=(), command=("/bin/true",), queue="root.a")
    jobs = []
    for number, state in enumerate((State.SUCCEEDED, State.FAILED, State.CANCELLED, State.RUNNING)):
        own = replace(spec, key=f"{number}.1")
        jobs.append(Job(spec=own, submitted_at_ms=0, priority=0, queue="root.a"))
        jobs[-1].state = state
    assert learned(jobs).not_well == {"1", "2"}
