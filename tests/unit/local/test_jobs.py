"""The book of jobs: states, histories, and that it can be rebuilt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.model.decisions import Allocated, ApplicationAccepted, AskRejected, Evict, PriorityChanged, Released
from fairlead.core.model.events import Cause
from fairlead.core.model.reasons import Refused
from fairlead.core.model.resources import Resources
from fairlead.local.attempt_ends import state_after
from fairlead.local.history_records import JobCancelRequested, JobEnded, JobsCleaned, JobSpec, JobStarted, JobSubmitted
from fairlead.local.job import JobsError
from fairlead.local.job_names import parse_run_key, run_key
from fairlead.local.job_states import ENDED, LIVE, TRANSITIONS, State
from fairlead.local.jobs import Jobs
from fairlead.local.runs import RunReport


def spec(key: str = "1", **changes: Any) -> JobSpec:
    values: dict[str, Any] = {
        "key": key,
        "user": "ada",
        "uid": 1000,
        "command": ("/bin/true",),
        "queue": "root.batch",
        "resources": Resources({"vcore": 1000}),
    }
    return JobSpec(**(values | changes))


def book(*keys: str) -> Jobs:
    jobs = Jobs()
    for number, key in enumerate(keys or ("1",)):
        jobs.apply(JobSubmitted(job=spec(key)), 100 + number)
    return jobs


def state_of(jobs: Jobs, key: str = "1") -> State:
    job = jobs.get(key)
    assert job is not None
    return job.state


def end(key: str = "1", state: State = State.SUCCEEDED, **changes: Any) -> JobEnded:
    return JobEnded(key=key, attempt=1, state=state.value, **changes)


def running(*keys: str) -> Jobs:
    jobs = book(*keys)
    jobs.follow([Allocated(key, key, "n1") for key in keys or ("1",)], 200)
    return jobs


def test_work_waits_runs_and_succeeds() -> None:
    """The plain life: submitted, placed, started, ended."""
    jobs = book()
    assert state_of(jobs) is State.WAITING
    jobs.follow([ApplicationAccepted("1", "root.batch"), Allocated("1", "1", "n1")], 200)
    jobs.apply(JobStarted(key="1", attempt=1, pid=77, started_at_ms=205), 206)
    assert state_of(jobs) is State.RUNNING
    jobs.apply(end(exit_code=0, ended_at_ms=300, cpu_ms=12), 301)
    job = jobs.get("1")
    assert job is not None
    assert (job.state, job.exit_code, job.cpu_ms, job.node, job.pid) == (State.SUCCEEDED, 0, 12, "n1", 77)
    assert [(h.at_ms, h.what) for h in job.history] == [
        (100, "submitted"),
        (200, "placed"),
        (200, "allocated"),
        (206, "started"),
        (300, "succeeded"),
    ]


def test_waiting_work_is_cancelled_at_once() -> None:
    """Nothing runs, so there is nothing to wait for."""
    jobs = book()
    jobs.apply(JobCancelRequested(key="1", who="ada"), 150)
    assert state_of(jobs) is State.CANCELLED
    assert jobs.live_count == 0


def test_running_work_is_stopping_until_its_end_was_seen() -> None:
    """A cancellation is a wish; the end is a fact."""
    jobs = running()
    jobs.apply(JobCancelRequested(key="1", who="ada"), 250)
    assert state_of(jobs) is State.STOPPING
    jobs.apply(end(state=State.CANCELLED, signal=15, stopped=True), 260)
    assert state_of(jobs) is State.CANCELLED


def test_an_eviction_says_for_whom() -> None:
    """The scheduler's order is noted with the job it makes room for."""
    jobs = running()
    jobs.follow([Evict("1", "1", "n1", Cause.PREEMPTED_BY_SCHEDULER, on_behalf_of="9", rule="priority")], 250)
    job = jobs.get("1")
    assert job is not None
    assert (job.state, job.evicted_for, job.evict_cause) == (State.STOPPING, "9", "PREEMPTED_BY_SCHEDULER")
    assert "make room for 9" in job.history[-1].detail


def test_a_place_that_the_scheduler_gave_away_stops_the_job() -> None:
    """A removed node takes its jobs along; nothing is left to return."""
    jobs = running()
    jobs.follow([Released("1", "1", "n1", Cause.STOPPED_BY_RM, "Node n1 Removed")], 250)
    job = jobs.get("1")
    assert job is not None
    assert (job.state, job.released) == (State.STOPPING, True)


def test_the_echo_of_an_end_changes_nothing() -> None:
    """The scheduler confirms what was returned; the job has ended already."""
    jobs = running()
    jobs.apply(end(exit_code=0), 250)
    before = jobs.dump()
    jobs.follow([Released("1", "1", "n1", Cause.FINISHED)], 250)
    assert jobs.dump() == before


def test_a_refused_ask_is_a_rejected_work() -> None:
    """The reason is kept as a sentence."""
    jobs = book()
    jobs.follow([AskRejected("1", "1", Refused("no such queue"))], 120)
    job = jobs.get("1")
    assert job is not None
    assert (job.state, job.error) == (State.REJECTED, "no such queue")


def test_a_changed_priority_is_noted() -> None:
    """Old, new and who."""
    jobs = book()
    jobs.follow([PriorityChanged("1", "1", 0, 7, "root")], 120)
    job = jobs.get("1")
    assert job is not None
    assert job.priority == 7
    assert job.history[-1].detail == "0 to 7 by root"


@pytest.mark.parametrize(
    ("cancelled", "evicted", "report", "expected"),
    [
        (False, False, {"exit_code": 0}, State.SUCCEEDED),
        (False, False, {"exit_code": 2}, State.FAILED),
        (False, False, {"signal": 9}, State.FAILED),
        (False, False, {"error": "no such program", "exit_code": 127}, State.FAILED),
        (False, False, {"exit_code": 0, "timed_out": True, "stopped": True}, State.TIMED_OUT),
        (False, False, {"lost": True}, State.LOST),
        (True, False, {"signal": 15, "stopped": True}, State.CANCELLED),
        (True, False, {"exit_code": 0}, State.SUCCEEDED),
        (False, True, {"exit_code": 0, "stopped": True}, State.EVICTED),
        (False, True, {"exit_code": 0}, State.SUCCEEDED),
        (True, True, {"exit_code": 0, "stopped": True}, State.CANCELLED),
    ],
)
def test_how_a_run_ended_decides_the_state(
    cancelled: bool, evicted: bool, report: dict[str, Any], expected: State
) -> None:
    """What a run did by itself counts, unless it was told to stop before."""
    jobs = running()
    if evicted:
        jobs.follow([Evict("1", "1", "n1", Cause.PREEMPTED_BY_SCHEDULER)], 250)
    if cancelled:
        jobs.apply(JobCancelRequested(key="1", who="ada"), 251)
    job = jobs.get("1")
    assert job is not None
    assert state_after(job, RunReport(key="1-1", **report)) is expected


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    """A second end, or a start of work that waits, is a fault in the program."""
    jobs = running()
    jobs.apply(end(exit_code=0), 250)
    before = jobs.dump()
    for record in (end(exit_code=1), JobStarted(key="1", attempt=1), JobCancelRequested(key="1", who="x")):
        with pytest.raises(JobsError, match="job 1 is succeeded"):
            jobs.apply(record, 300)
    with pytest.raises(JobsError, match="there is no job 5"):
        jobs.apply(end("5"), 300)
    with pytest.raises(JobsError, match="submitted before"):
        jobs.apply(JobSubmitted(job=spec("1")), 300)
    assert jobs.dump() == before


def test_no_state_leads_out_of_an_end() -> None:
    """What has ended stays ended."""
    assert {before for before, _ in TRANSITIONS} == LIVE
    assert set(State) == ENDED | LIVE


def test_the_book_can_be_rebuilt_from_its_dump() -> None:
    """Through JSON, with live and ended jobs and named submissions."""
    jobs = running("1", "2")
    jobs.apply(JobSubmitted(job=spec("3", env={"A": "b"}, tags={"t": "x"}), request="r1", digest="d"), 300)
    jobs.apply(end("2", exit_code=1), 310)
    state = json.loads(json.dumps(jobs.dump()))
    again = Jobs.load(state)
    assert json.loads(json.dumps(again.dump())) == state
    assert [w.key for w in again.live()] == ["1", "3"]
    assert again.submissions.find(1000, "r1") == ("d", ("3",))
    assert again.numbers.next == 4


def test_the_oldest_ended_jobs_leave_the_book() -> None:
    """The book is bounded; what left it is named once, and its submission is forgotten with it."""
    jobs = Jobs(keep_ended=2)
    for number in range(1, 6):
        key = str(number)
        jobs.apply(JobSubmitted(job=spec(key), request=f"r{key}", digest="d"), number)
        jobs.follow([Allocated(key, key, "n1")], number)
        jobs.apply(end(key, exit_code=0), number)
    assert [job.key for job in jobs] == ["4", "5"]
    assert jobs.dropped == ["1-1", "2-1", "3-1"]
    assert jobs.submissions.find(1000, "r1") is None
    assert jobs.submissions.find(1000, "r5") == ("d", ("5",))


def test_what_ended_by_a_clock_that_was_set_back_is_kept_as_long_as_all_else() -> None:
    """By the service's time, which goes on: a job that had just ended was gone with its output at the next look."""
    day_ms = 86_400_000
    now_ms = 100 * day_ms
    jobs = Jobs()
    jobs.apply(JobSubmitted(job=spec("1")), now_ms)
    jobs.follow([Allocated("1", "1", "n1")], now_ms)
    jobs.apply(end("1", exit_code=0, started_at_ms=40 * day_ms, ended_at_ms=40 * day_ms + 1000), now_ms + 1000)
    for each in (jobs, Jobs.load(jobs.dump())):
        assert each.cleanable(now_ms - 30 * day_ms, None) == []
        assert each.cleanable(now_ms + 1000, None) == ["1"]


def test_clean_removes_nothing_of_a_user_whose_number_somebody_else_has() -> None:
    """The jobs of one who was removed are those of nobody who is there."""
    jobs = running("1")
    jobs.apply(end("1", exit_code=0, ended_at_ms=300), 301)
    assert jobs.cleanable(400, 1000, "bob") == []
    jobs.apply(JobsCleaned(before_ms=400, uid=1000, who="bob"), 400)
    assert jobs.cleanable(400, 1000, "ada") == ["1"]


def test_a_long_history_keeps_its_beginning_and_its_end() -> None:
    """The middle is dropped."""
    jobs = book()
    for number in range(200):
        jobs.follow([PriorityChanged("1", "1", number, number + 1, "ada")], 200 + number)
    job = jobs.get("1")
    assert job is not None
    assert len(job.history) == 64
    assert job.history[0].what == "submitted"
    assert job.history[-1].detail == "199 to 200 by ada"


def test_keys_are_not_given_out_twice() -> None:
    """Not even when runs of that name are there that the book does not know."""
    jobs = book("1", "2")
    jobs.numbers.skip_to(9)
    assert jobs.numbers.next == 9
    jobs.numbers.skip_to(3)
    assert jobs.numbers.next == 9


@pytest.mark.parametrize("name", ["1", "1-", "-1", "a-1", "1-a", "1-2-3", "journal.db", "１-1"])
def test_what_is_no_name_of_a_run_is_not_taken_for_one(name: str) -> None:
    """Only KEY-ATTEMPT, in plain digits."""
    assert parse_run_key(name) is None
    assert parse_run_key(run_key("12", 3)) == ("12", 3)
