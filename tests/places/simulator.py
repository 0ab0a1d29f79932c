"""The simulator as a place: virtual time. It also finds out when each task ends, which the other places are told."""

from __future__ import annotations

import io
import json
from bisect import bisect_right

from places.course import PLACEHOLDER, Course, Decided, happenings, task_of
from places.workload import PAUSE_MS, JobWords, Workload, application, asks, node_spec

from fairlead.config import load_text
from fairlead.sim.attempts import Settings
from fairlead.sim.engine import Engine
from fairlead.sim.jobs import Job, Task


def _job(job: JobWords) -> Job:
    tasks = tuple(Task(ask, job.runs_ms(ask.key)) for ask in asks(job))
    return Job(job.at * 1000, application(job), tasks, gang=job.gang)


def run(workload: Workload) -> Course:
    """Simulate it until a pause after the last job has come."""
    told = io.StringIO()
    engine = Engine(
        load_text(workload.queues),
        [node_spec(node) for node in workload.nodes],
        [_job(job) for job in workload.jobs],
        settings=Settings(resubmit=False, digest=False, lines=told),
    )
    engine.run(until_ms=workload.last_ms + PAUSE_MS)
    return _course(workload, told.getvalue().splitlines())


def _course(workload: Workload, told: list[str]) -> Course:
    decisions: list[tuple[int, str, str, str, str]] = []
    for line in told:
        at, what, said = line.split(" ", 2)
        if what in ("allocated", "evict"):
            fields = json.loads(said)
            decisions.append((int(at), what, fields["application"], fields["key"], fields.get("node", "")))
    timed = happenings(workload, _ends(workload, decisions))
    course: Course = [(happening, Decided()) for _, happening in timed]
    times = [at for at, _ in timed]
    for at, what, app, key, node in decisions:
        decided = course[bisect_right(times, at) - 1][1]
        name = f"{app}{PLACEHOLDER}" if key.endswith("~") else task_of(key)
        if what == "allocated":
            decided.place(name, node)
        elif not key.endswith("~"):
            decided.stop(name)
    return course


def _ends(workload: Workload, decisions: list[tuple[int, str, str, str, str]]) -> list[tuple[int, str]]:
    """When each task ended by itself, as far as was simulated."""
    ends: dict[str, int] = {}
    for at, what, _, key, _ in decisions:
        if key.endswith("~"):
            continue
        if what == "allocated":
            ends[key] = at + workload.job_of(task_of(key)).runs_ms(task_of(key))
        elif ends[key] > at:
            del ends[key]
    return sorted((at, task_of(key)) for key, at in ends.items() if at <= workload.last_ms + PAUSE_MS)
