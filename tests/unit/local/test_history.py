"""The story of a job: where it was placed and why, who moved, changed, stopped it for whom, what touched it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.model.decisions import Allocated, ApplicationAccepted, ApplicationMoved, ApplicationRejected, Evict
from fairlead.core.model.events import Cause
from fairlead.core.model.reasons import Refused
from fairlead.local.history_records import JobRefused, JobSpec, JobSubmitted, JobWaits
from fairlead.local.job import Job, JobsError
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.runtime.configurations import QueueDifference, QueuesReconfigured


def submitted(key: str, user: str = "ada", rule: str = "") -> JobSubmitted:
    spec = JobSpec(key=key, user=user, uid=1, command=("/bin/true",), queue="root.asked")
    return JobSubmitted(job=spec, rule=rule)


def book(*keys: str, queue: str = "root.team.day") -> Jobs:
    jobs = Jobs()
    for key in keys:
        jobs.apply(submitted(key, rule="placement rule 2 (user)"), 100)
        jobs.follow([ApplicationAccepted(key, queue)], 100)
    return jobs


def job(jobs: Jobs, key: str = "1") -> Job:
    found = jobs.get(key)
    assert found is not None
    return found


def last(jobs: Jobs, key: str = "1") -> tuple[str, str]:
    entry = job(jobs, key).history[-1]
    return entry.what, entry.detail


def test_the_rule_that_chose_the_queue_is_told() -> None:
    """And the queue that it chose."""
    assert last(book("1")) == ("placed", "in root.team.day by placement rule 2 (user)")


def test_a_move_changes_the_queue_and_says_who() -> None:
    """Waiting or running."""
    jobs = book("1")
    jobs.follow([Allocated("1", "1", "n"), ApplicationMoved("1", "root.team.day", "root.other", "bob")], 200)
    assert job(jobs).queue == "root.other"
    assert last(jobs) == ("moved", "from root.team.day to root.other by bob")


def test_an_eviction_names_whom_it_is_for() -> None:
    """Key, user, queue and priority of the job that needs the room, and the rule."""
    jobs = book("1")
    jobs.apply(submitted("2", user="bob"), 150)
    jobs.follow([Allocated("1", "1", "n")], 160)
    jobs.follow([Evict("1", "1", "n", Cause.PREEMPTED_BY_SCHEDULER, on_behalf_of="2", rule="priority")], 170)
    told = "told to stop to make room for 2 of bob in root.asked, own priority 0 (that one has a higher priority)"
    assert last(jobs) == ("evicting", told)


def test_what_it_waits_for_is_noted_and_forgotten_when_it_starts() -> None:
    """A job that is told to wait again begins a new story."""
    jobs = book("1")
    jobs.apply(JobWaits(key="1", code="queue-full", subject="root.team", sentence="queue is full"), 200)
    assert last(jobs) == ("waits", "queue is full")
    assert job(jobs).waits_for == "queue-full root.team"
    jobs.follow([Allocated("1", "1", "n")], 300)
    assert job(jobs).waits_for == ""
    with pytest.raises(JobsError, match="does not wait"):
        jobs.apply(JobWaits(key="1", code="x", subject="", sentence="x"), 400)


def test_a_refusal_in_plain_words_replaces_the_schedulers() -> None:
    """One entry, the better sentence."""
    jobs = Jobs()
    jobs.apply(submitted("1"), 100)
    jobs.follow([ApplicationRejected("1", Refused("no placement rule matched"))], 100)
    jobs.apply(JobRefused(key="1", code="submit-denied", sentence="ask ann"), 100)
    assert job(jobs).state is State.REJECTED
    assert (job(jobs).error, job(jobs).refusal_code) == ("ask ann", "submit-denied")
    assert [entry.what for entry in job(jobs).history] == ["submitted", "rejected"]
    assert last(jobs) == ("rejected", "ask ann")


def test_a_job_can_be_refused_before_the_scheduler_sees_it() -> None:
    """It is rejected all the same."""
    jobs = Jobs()
    jobs.apply(submitted("1"), 100)
    jobs.apply(JobRefused(key="1", code="submit-denied", sentence="ask ann", queue="root.far"), 100)
    assert job(jobs).state is State.REJECTED
    assert jobs.live_count == 0


def reconfigured(*changes: tuple[str, str, Any, Any], partition: str = "default") -> QueuesReconfigured:
    differences = tuple(
        QueueDifference(partition=partition, queue=queue, what=what, old=old, new=new)
        for queue, what, old, new in changes
    )
    return QueuesReconfigured(version=3, who="ann", source="api", differences=differences)


def test_changes_of_its_queue_and_those_above_touch_a_job() -> None:
    """Others do not, not even one whose name begins alike, and none of another partition."""
    jobs = book("1", "2")
    jobs.follow([ApplicationMoved("2", "root.team.day", "root.tea", "ann")], 150)
    changes = [
        ("root.team", "max", {"vcore": 2000}, None),
        ("root.team.day", "properties.priority.offset", None, "5"),
        ("root.team.day.deep", "max", None, {"vcore": 1}),
    ]
    jobs.apply(reconfigured(*changes), 200)
    assert last(jobs) == (
        "configured",
        "version 3 by ann: max of root.team from cpu 2 to nothing; "
        "properties.priority.offset of root.team.day from nothing to 5",
    )
    assert last(jobs, "2")[0] == "moved"
    jobs.apply(reconfigured(("root.team", "max", None, {"vcore": 1}), partition="gpu"), 210)
    assert job(jobs).history[-1].at_ms == 200


def test_many_changes_are_counted() -> None:
    """The first few are told."""
    jobs = book("1")
    jobs.apply(reconfigured(*[("root.team", f"properties.p{n}", None, str(n)) for n in range(10)]), 200)
    assert last(jobs)[1].endswith("; properties.p3 of root.team from nothing to 3 and 6 more")


def test_the_book_with_all_of_this_is_written_down_and_read_back() -> None:
    """As JSON."""
    jobs = book("1")
    jobs.apply(JobWaits(key="1", code="queue-full", subject="root.team", sentence="full"), 200)
    jobs.apply(submitted("2"), 200)
    jobs.apply(JobRefused(key="2", code="no-queue", sentence="none"), 200)
    plain = json.loads(json.dumps(jobs.dump()))
    assert Jobs.load(plain).dump() == jobs.dump()
