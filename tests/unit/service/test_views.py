"""What is said of a job on its own."""

from __future__ import annotations

from typing import Any

from fairlead.local.job import Job, JobSpec, State
from fairlead.service.views import plain_sentence


def test_what_has_its_place_and_cannot_begin_does_not_run() -> None:
    """As while the disk is full: nothing starts then."""
    spec = JobSpec(key="7", name="train", user="ada", uid=1, groups=(), command=("/bin/true",), queue="root.a")
    job = Job(spec=spec, submitted_at_ms=1, priority=0, state=State.RUNNING, node="vm")
    assert plain_sentence(job).startswith("it has its place on vm, but its command has not begun yet; if that takes")
    job.started_at_ms = 2
    assert plain_sentence(job) == "it runs on vm"


def test_what_keeps_it_from_beginning_is_a_problem_of_the_service(served: Any) -> None:
    """The log alone had it; what waits for nothing else seemed to run."""
    refused = served.place.local._orders.retrying
    try:
        refused["7-1"] = refused["8-1"] = "no more processes"
        [said] = served.place.problems()
        assert said.endswith("cannot begin now, and is tried again: run 7-1, and 1 more: no more processes")
    finally:
        refused.clear()
    assert not served.place.problems()
