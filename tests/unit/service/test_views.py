"""What is said of a job on its own."""

from __future__ import annotations

from typing import Any

from small_clusters import cluster, cores, submit

from fairlead.core.model.events import UpdateNode
from fairlead.local.job import Job, JobSpec, State
from fairlead.scheduler import Scheduler
from fairlead.service.views import job_full, node_view, plain_sentence


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


def test_what_a_job_waits_for_is_said_after_a_restart_too(served: Any) -> None:
    """Read from a snapshot the words are plain texts."""
    first = served.submit("/bin/true", hold=True)
    second = served.submit("/bin/true", after=[{"key": first, "awaited": "not-ok"}])

    def after_a_restart(_: Any) -> Any:
        scheduler = Scheduler.load(served.place.runtime.books.scheduler.dump())
        return job_full(served.place.local.jobs.get(second), scheduler).after

    [said] = served.place.runtime.do(after_a_restart).result(10)
    assert (said.key, said.awaited) == (first, "not-ok")
    served.call("POST", f"/api/v1/jobs/{first}/cancel", {})
    served.call("POST", f"/api/v1/jobs/{second}/cancel", {})


def test_of_a_node_on_which_more_runs_than_it_has_nothing_is_free() -> None:
    """It lost a part of what it had."""
    scheduler = cluster(nodes={"n": 4})
    submit(scheduler, "work", 3)
    scheduler.schedule(0)
    scheduler.handle(UpdateNode("n", cores(2)), 0)
    found = node_view(scheduler.cluster.partitions["default"].nodes.nodes["n"])
    assert (found.capacity, found.allocated, found.free) == ({"cpu": 2}, {"cpu": 3}, {"cpu": 0})
