"""What is said of a job on its own."""

from __future__ import annotations

from fairlead.local.job import Job, JobSpec, State
from fairlead.service.views import plain_sentence


def test_what_has_its_place_and_cannot_begin_does_not_run() -> None:
    """As while the disk is full: nothing starts then."""
    spec = JobSpec(key="7", name="train", user="ada", uid=1, groups=(), command=("/bin/true",), queue="root.a")
    job = Job(spec=spec, submitted_at_ms=1, priority=0, state=State.RUNNING, node="vm")
    assert plain_sentence(job).startswith("it has its place on vm, but its command has not begun yet; if that takes")
    job.started_at_ms = 2
    assert plain_sentence(job) == "it runs on vm"
