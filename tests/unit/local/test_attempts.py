"""A job that is tried again: one job with its attempts, in the book and in the orders to the machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from testbed.paper import ANN, CAPACITY, QUEUES, Paper, Service, spec

from fairlead.core.model.conditions import Outcome
from fairlead.core.model.decisions import Allocated, Evict, Released, ReservationSwitched, Retried
from fairlead.core.model.events import Cause, Configure, DrainNode, Release, SetWindow
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import ClusterSpec, PartitionSpec, QueueSpec, RetrySpec, WindowSpec
from fairlead.journal.codec import decode_event
from fairlead.journal.format import EVENT
from fairlead.journal.reader import Reader
from fairlead.local import attempt_ends, orders, requests
from fairlead.local.callers import Caller
from fairlead.local.changes import Change, change, suspend
from fairlead.local.dependencies import outcome_of
from fairlead.local.history_records import (
    AttemptEnded,
    JobCheckpointed,
    JobEnded,
    JobPressed,
    JobRequeued,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    MemoryShort,
    Observed,
    exit_status,
)
from fairlead.local.job import Job
from fairlead.local.job_names import ask_key, attempt_of, job_of
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.local.memory_guard import MemoryGuard
from fairlead.local.place import LocalPlace
from fairlead.local.pressure import Memory, Step, Use, Victim, parse_threshold
from fairlead.local.runs import RunReport
from fairlead.runtime import Refusal, Runtime, Turn
from fairlead.runtime.configurations import configure

# --- names -----------------------------------------------------------------------------------------------------------


def test_an_attempt_has_a_name_and_the_name_an_attempt() -> None:
    """The first is called as the job; those of other applications stand behind a slash."""
    assert [ask_key("17", n) for n in (1, 2, 12)] == ["17", "17#2", "17#12"]
    assert [attempt_of(each) for each in ("17", "17#2", "17#12")] == [1, 2, 12]
    assert [job_of(each) for each in ("17", "17#2", "17/17#2", "")] == ["17", "17", "17", ""]


@pytest.mark.parametrize(
    ("observed", "status"),
    [
        ({"exit_code": 3}, 3),
        ({"exit_code": 0}, 0),
        ({"signal": 9}, 137),
        ({"lost": True}, None),
        ({"timed_out": True, "signal": 15}, None),
        ({}, None),
    ],
)
def test_the_status_of_an_end(observed: dict[str, Any], status: int | None) -> None:
    """As a shell counts: 128 + N for signal N; none for what is lost or took too long."""
    assert exit_status(Observed(key="1", attempt=1, state="failed", **observed)) == status


# --- the book --------------------------------------------------------------------------------------------------------


def running() -> tuple[Jobs, Job]:
    jobs = Jobs()
    jobs.apply(JobSubmitted(job=spec("1", RetrySpec(limit=3))), 100)
    jobs.follow([Allocated("1", "1", "n1")], 200)
    jobs.apply(JobStarted(key="1", attempt=1, pid=7, started_at_ms=201), 201)
    job = jobs.get("1")
    assert job is not None
    return jobs, job


def test_an_attempt_that_is_over_stays_with_the_job() -> None:
    """The job waits again; what was observed of the attempt is kept, and void for the next one."""
    jobs, job = running()
    over = AttemptEnded(key="1", attempt=1, state="failed", exit_code=4, ended_at_ms=300, cpu_ms=9)
    jobs.apply(over, 301)
    jobs.follow([Retried("1", "1", "1#2", 2, 1301), Released("1", "1", "n1", Cause.FINISHED)], 301)
    assert (job.state, job.ask_key, job.retry_due_ms, job.pid, job.node) == (State.WAITING, "1#2", 1301, None, "")
    (past,) = job.past
    assert (past.number, past.state, past.exit_code, past.started_at_ms, past.ended_at_ms) == (
        1,
        State.FAILED,
        4,
        201,
        300,
    )
    assert [(e.what, e.detail) for e in job.history[-2:]] == [
        ("failed", "attempt 1: exit status 4"),
        ("retry", "attempt 2 enters after a back-off of 1s"),
    ]
    jobs.follow([Allocated("1", "1#2", "n1")], 1301)
    assert (job.state, job.attempt) == (State.RUNNING, 2)


@pytest.mark.parametrize(("started_at_ms", "outcome"), [(201, Outcome.STARTED), (None, None)])
def test_a_start_that_is_heard_of_at_the_end_of_an_attempt_alone(started_at_ms: int | None, outcome: Any) -> None:
    """The service was down meanwhile. What was stopped before it had begun has not started."""
    jobs = Jobs()
    jobs.apply(JobSubmitted(job=spec("1", RetrySpec(limit=3))), 100)
    jobs.follow([Allocated("1", "1", "n1")], 200)
    jobs.apply(AttemptEnded(key="1", attempt=1, state="evicted", stopped=True, started_at_ms=started_at_ms), 300)
    assert (jobs.news, outcome_of(jobs, "1")) == (["1"], outcome)


def service(
    directory: Path, prepare: Callable[[Turn], Any], *ended: RunReport
) -> tuple[LocalPlace, Runtime, Future[Any]]:
    """A start on what the one before left, of which this has ended meanwhile."""
    paper = Paper()
    paper.adopt = lambda: list(ended)  # type: ignore[method-assign]
    (directory / "runs").mkdir(exist_ok=True)
    place = LocalPlace(lambda _: paper, directory / "runs", as_submitter=False)  # type: ignore[arg-type, return-value]
    runtime = Runtime(directory / "journal.db", place)
    opened = place.open(runtime, prepare)
    runtime.start()
    return place, runtime, opened


def test_what_ended_before_the_time_came_to_stop_it_is_tried_again(tmp_path: Path) -> None:
    """The service was down meanwhile. A window that has begun stops what the scheduler still takes to run."""

    def begin(turn: Turn) -> None:
        place.register_node(turn, "n", CAPACITY)
        requests.submit(place.jobs, turn, ANN, [spec(retry=RetrySpec(limit=1))])

    def declare(turn: Turn) -> None:
        soon = WindowSpec(name="w", starts_ms=turn.now_ms + 300, length_ms=3_600_000, stop_running=True)
        turn.event(SetWindow(soon))

    place, runtime, _ = service(tmp_path, lambda turn: turn.event(Configure(QUEUES)))
    runtime.do(begin).result(10)
    runtime.do(declare).result(10)
    runtime.close()
    time.sleep(0.4)
    ended = RunReport(key="1-1", pid=1, started_at_ms=1, ended_at_ms=2, exit_code=3)
    place, runtime, opened = service(tmp_path, lambda _: None, ended)
    opened.result(10)
    job = place.jobs.get("1")
    runtime.close()
    assert job is not None
    assert (job.state, job.past[0].how) == (State.WAITING, "exit status 3")


def test_what_ended_meanwhile_ended_before_the_queues_were_others(tmp_path: Path) -> None:
    """Its story said that they had changed, and then, with an earlier time, that it had failed."""

    def begin(turn: Turn) -> None:
        configure(turn, QUEUES, who="", source="built-in")
        place.register_node(turn, "n", CAPACITY)
        requests.submit(place.jobs, turn, ANN, [spec()])

    bounded = QueueSpec(name="default", max=Limits({"vcore": 2000}))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(bounded,))
    others = ClusterSpec(partitions=(PartitionSpec(root=root),), checksum="2")
    place, runtime, _ = service(tmp_path, lambda _: None)
    runtime.do(begin).result(10)
    runtime.close()
    ended = RunReport(key="1-1", pid=1, started_at_ms=1, ended_at_ms=2, exit_code=3)
    place, runtime, opened = service(tmp_path, lambda turn: configure(turn, others, who="ann", source="file"), ended)
    opened.result(10)
    job = place.jobs.get("1")
    runtime.close()
    assert job is not None
    assert [each.what for each in job.history][-1] == "failed"
    assert "configured" not in [each.what for each in job.history]


def test_an_eviction_of_a_later_attempt_finds_the_job() -> None:
    """And names the job that it made room for, not its attempt."""
    jobs, job = running()
    jobs.apply(AttemptEnded(key="1", attempt=1, state="lost", lost=True), 300)
    jobs.follow([Retried("1", "1", "1#2", 2, 300), Allocated("1", "1#2", "n1")], 300)
    jobs.follow([Evict("1", "1#2", "n1", Cause.PREEMPTED_BY_SCHEDULER, on_behalf_of="9/9#3")], 400)
    assert (job.state, job.evicted_for) == (State.STOPPING, "9")


def test_a_place_that_was_given_away_too_early() -> None:
    """The scheduler tried it again before it was gone: the next attempt starts when it is."""
    jobs, job = running()
    jobs.follow([Retried("1", "1", "1#2", 2, 300), Released("1", "1", "n1", Cause.STOPPED_BY_RM)], 300)
    jobs.follow([Allocated("1", "1#2", "n2")], 300)
    assert (job.state, job.attempt) == (State.STOPPING, 1)
    jobs.apply(AttemptEnded(key="1", attempt=1, state="evicted", signal=15, stopped=True), 400)
    assert (job.state, job.attempt, job.node, job.placed_ahead) == (State.RUNNING, 2, "n2", "")


def test_short_of_memory_is_part_of_the_story() -> None:
    """Of the job that had to go, and of the machine."""
    jobs, job = running()
    jobs.apply(MemoryShort(short=True, closed_node="n1"), 250)
    jobs.apply(JobPressed(key="1", grace_ms=500, sentence="told to stop because it uses 3Gi"), 260)
    assert (job.state, job.stop_grace_ms, job.evict_cause) == (State.STOPPING, 500, "INTERRUPTED")
    jobs.apply(AttemptEnded(key="1", attempt=1, state="evicted", signal=15, stopped=True), 300)
    assert job.past[0].how == "evicted, told to stop because it uses 3Gi"
    assert job.stop_grace_ms is None
    again = Jobs.load(json.loads(json.dumps(jobs.dump())))
    assert again.memory_short == MemoryShort(short=True, closed_node="n1")
    jobs.apply(MemoryShort(short=False), 400)
    assert jobs.memory_short is None


def test_the_last_end_says_why_it_is_the_last() -> None:
    """In the history, and for those who ask."""
    jobs, job = running()
    jobs.apply(JobEnded(key="1", attempt=1, state="failed", exit_code=2, no_retry="it had all its 1 attempts"), 300)
    assert job.history[-1].detail == "exit status 2; not tried again: it had all its 1 attempts"


def test_a_reservation_is_part_of_the_story() -> None:
    """Who switched it, and why."""
    jobs = Jobs()
    jobs.apply(JobSubmitted(job=spec("1")), 100)
    jobs.follow(
        [ReservationSwitched("1", "1", True, "bob", "the demo"), ReservationSwitched("1", "1", False, "", "")], 1
    )
    job = jobs.get("1")
    assert job is not None
    assert [e.detail for e in job.history[-2:]] == ["switched on by bob: the demo", "switched off"]
    assert not job.reserved


def test_a_checkpoint_that_is_said_again_and_again_stands_once() -> None:
    """With the time of the newest."""
    jobs, job = running()
    for at_ms in (300, 400, 500):
        jobs.apply(JobCheckpointed(key="1", attempt=1), at_ms)
    assert [e.at_ms for e in job.history if e.what == "checkpoint"] == [500]
    assert job.checkpoint_at_ms == 500


def test_what_an_attempt_stood_still_is_kept() -> None:
    """As that of the newest one is: what it stood still before, and until it was told to stop."""
    jobs, job = running()
    for at_ms, on in ((300, True), (400, False), (500, True)):
        jobs.apply(JobSuspended(key="1", who="ann", on=on), at_ms)
    jobs.apply(JobRequeued(key="1", who="ann"), 550)
    jobs.apply(AttemptEnded(key="1", attempt=1, state="evicted", signal=15, stopped=True, ended_at_ms=600), 601)
    assert (job.past[0].suspended_ms, job.suspended_ms) == (200, 0)


def test_the_book_comes_back_with_its_attempts() -> None:
    """Written down and read."""
    jobs, _ = running()
    jobs.apply(AttemptEnded(key="1", attempt=1, state="failed", exit_code=4, ended_at_ms=300), 301)
    jobs.follow([Retried("1", "1", "1#2", 2, 1301)], 301)
    state = json.loads(json.dumps(jobs.dump()))
    assert json.loads(json.dumps(Jobs.load(state).dump())) == state


# --- the orders ------------------------------------------------------------------------------------------------------


def test_each_attempt_is_a_run_of_its_own(service: Service) -> None:
    """The old one is forgotten by the machine, its output stays, and the new one starts."""
    key = service.submit(RetrySpec(limit=2))
    service.end(f"{key}-1", exit_code=1)
    job = service.job(key)
    assert (job.state, job.attempt, job.ask_key) == (State.RUNNING, 2, f"{key}#2")
    service.end(f"{key}-2", exit_code=0)
    assert service.job(key).state is State.SUCCEEDED
    service.place.close()
    assert list(service.paper.runs) == [f"{key}-1", f"{key}-2"]
    assert service.paper.forgotten == [f"{key}-1", f"{key}-2"]


def test_a_late_report_about_an_earlier_attempt_is_passed_over(service: Service) -> None:
    """It ended once."""
    key = service.submit(RetrySpec(limit=5))
    service.end(f"{key}-1", exit_code=1)
    service.end(f"{key}-1", exit_code=1)
    assert service.job(key).attempt == 2


def test_a_cancelled_victim_is_cancelled(service: Service) -> None:
    """Its user's word counts more than the scheduler's: it is not tried again."""
    key = service.submit(RetrySpec(limit=5))
    service.do(lambda turn: turn.note(JobPressed(key=key, grace_ms=5, sentence="short")))
    service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, key))
    service.end(f"{key}-1", signal=15, stopped=True)
    assert service.job(key).state is State.CANCELLED
    assert service.submit() in {w.key for w in service.place.jobs.live()}


def test_who_had_to_go_for_memory_is_stopped_with_its_own_grace_and_comes_back(service: Service) -> None:
    """By the interruption that it is."""
    key = service.submit(RetrySpec(limit=5, backoff_ms=60_000), grace_ms=90_000)
    service.do(lambda turn: turn.note(JobPressed(key=key, grace_ms=5, sentence="short")))
    service.end(f"{key}-1", exit_code=0, stopped=True)
    job = service.job(key)
    assert (job.state, job.past[0].state, job.retry_due_ms is not None) == (State.WAITING, State.EVICTED, True)
    service.place.close()
    assert service.paper.stopped == {f"{key}-1": 5}


def test_idle_work_that_had_to_go_for_memory_comes_back_without_retry(service: Service) -> None:
    """It waits again; when its owner cancels it after that, it is over."""
    key = service.submit(idle=True)
    assert service.job(key).state is State.RUNNING
    service.do(lambda turn: turn.event(DrainNode("n")))
    service.do(lambda turn: turn.note(JobPressed(key=key, grace_ms=5, sentence="short")))
    service.end(f"{key}-1", signal=15, stopped=True)
    job = service.job(key)
    assert (job.state, job.ask_key, job.past[0].state) == (State.WAITING, f"{key}#2", State.EVICTED)
    service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, key))
    assert service.job(key).state is State.CANCELLED


def test_idle_work_that_its_owner_cancels_while_it_is_stopped_is_over(service: Service) -> None:
    """Nothing of it comes back."""
    key = service.submit(idle=True)
    service.do(lambda turn: turn.note(JobPressed(key=key, grace_ms=5, sentence="short")))
    service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, key))
    service.end(f"{key}-1", signal=15, stopped=True)
    assert service.job(key).state is State.CANCELLED


@pytest.mark.parametrize(
    ("how", "state", "attempt"),
    [
        ({"lost": True}, State.RUNNING, 2),
        ({"signal": 11}, State.RUNNING, 2),
        ({"timed_out": True, "stopped": True, "signal": 15}, State.TIMED_OUT, 1),
        ({"exit_code": 3}, State.FAILED, 1),
        ({"exit_code": 0}, State.SUCCEEDED, 1),
    ],
)
def test_which_ends_of_a_process_are_tried_again(
    service: Service, how: dict[str, Any], state: State, attempt: int
) -> None:
    """Lost and killed are; at the time limit, with an excepted status, and well are not."""
    key = service.submit(RetrySpec(limit=2, never_on=(3,)), time_limit_ms=5)
    service.end(f"{key}-1", **how)
    job = service.job(key)
    assert (job.state, job.attempt) == (state, attempt)


def test_who_ends_well_before_he_could_be_stopped_is_not_tried_again(service: Service) -> None:
    """The order to stop came too late: his own end counts, and the scheduler is told so."""
    key = service.submit(RetrySpec(limit=2))
    service.do(lambda turn: turn.note(JobPressed(key=key, grace_ms=5, sentence="short")))
    service.end(f"{key}-1", exit_code=0)
    assert (service.job(key).state, service.job(key).attempt) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize("how", [{"lost": True}, {"exit_code": 1}, {"signal": 9, "stopped": True}])
def test_what_is_cancelled_is_not_tried_again_however_it_ends(service: Service, how: dict[str, Any]) -> None:
    """Lost or failed while it was being stopped."""
    key = service.submit(RetrySpec(limit=2))
    service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, key))
    service.end(f"{key}-1", **how)
    assert (service.job(key).ended, service.job(key).attempt) == (True, 1)


def test_a_restart_knows_all_attempts(service: Service) -> None:
    """The book and the scheduler come back from the journal as they were."""
    key = service.submit(RetrySpec(limit=3))
    service.end(f"{key}-1", exit_code=1)
    service.end(f"{key}-2", lost=True)
    service.job(key)
    service.runtime.close()
    before = json.loads(service.runtime.books.dump())
    place: LocalPlace = LocalPlace(lambda _: Paper(), service.directory / "runs", as_submitter=False)
    again = Runtime(service.directory / "journal.db", place)
    assert json.loads(again.books.dump()) | {"at_ms": 0} == before | {"at_ms": 0}
    place.close()
    again.journal.close()


def test_the_guard_closes_the_node_and_opens_it_again(service: Service) -> None:
    """What an administrator closed stays closed."""
    guard = MemoryGuard(parse_threshold("10%"), budget=1000)
    jobs = service.place.jobs
    key = service.submit(RetrySpec(limit=3))

    def node() -> bool:
        return bool(service.do(lambda turn: turn.scheduler.cluster.partitions["default"].nodes.nodes["n"].schedulable))

    def enter(step: Step, victim: Victim | None = None) -> str:
        told: str = service.do(lambda turn: guard.enter(turn, jobs, step, victim, "n"))
        return told

    enter(Step.BEGIN)
    assert (node(), jobs.memory_short is not None) == (False, True)
    victim = Victim(Use(key, 0, 0, 950, 0), False, "it uses 950 and asked for none")
    assert enter(Step.CHOOSE, victim) == f"{key}-1"
    assert enter(Step.CHOOSE, victim) == ""
    service.end(f"{key}-1", stopped=True, signal=15)
    assert service.job(key).state is State.WAITING
    enter(Step.END)
    assert (node(), jobs.memory_short, service.job(key).state) == (True, None, State.RUNNING)
    service.do(lambda turn: turn.event(DrainNode("n")))
    enter(Step.BEGIN)
    enter(Step.END)
    assert not node()


def test_what_is_suspended_goes_for_memory_as_what_runs(service: Service) -> None:
    """It has its memory still: where it was chosen and could not be told, nobody was, and the kernel chose."""
    guard, jobs = MemoryGuard(parse_threshold("10%"), budget=1000), service.place.jobs
    key = service.submit(RetrySpec(limit=3))
    service.do(lambda turn: suspend(jobs, turn, ANN, key, on=True))
    victim = Victim(Use(key, 0, 100, 500, 0), False, "told to stop because it uses too much")
    assert service.do(lambda turn: guard.enter(turn, jobs, Step.CHOOSE, victim, "n")) == f"{key}-1"
    assert (service.job(key).state, service.job(key).note) == (State.STOPPING, victim.sentence)


def test_who_leaves_slowly_is_hurried_before_others_have_to_go_for_memory(service: Service) -> None:
    """With an hour of grace it kept all others from being told, and the kernel chose; it goes for its own reason."""
    guard, jobs = MemoryGuard(parse_threshold("10%"), budget=1000, short=True), service.place.jobs
    slow, other = service.submit(RetrySpec(limit=3), grace_ms=3_600_000), service.submit()
    service.do(lambda turn: requests.requeue(jobs, turn, ANN, slow))
    uses = [Use(slow, 0, 0, 100, 0), Use(other, 0, 0, 850, 0)]

    def decide() -> tuple[Step, Victim | None]:
        running = service.do(lambda _: guard.running(jobs))
        return [guard.decide(Memory(1000, 50), uses, running) for _ in range(2)][-1]

    step, victim = decide()
    assert (step, victim is not None and victim.use.key) == (Step.CHOOSE, slow)
    assert service.do(lambda turn: guard.enter(turn, jobs, step, victim, "n")) == f"{slow}-1"
    assert decide() == (Step.NOTHING, None)
    assert (service.job(slow).stop_grace_ms, service.job(slow).evict_cause) == (10_000, str(Cause.REQUEUED))
    service.end(f"{slow}-1", stopped=True, signal=15)
    assert service.job(slow).past[0].how == "evicted, requeued by ann"


def test_what_was_told_to_stop_for_memory_and_runs_again_at_once_may_be_told_again(service: Service) -> None:
    """Somebody had opened the node: the guard took the new attempt for the old one on its way, and nobody had to go."""
    guard, jobs = MemoryGuard(parse_threshold("10%"), budget=1000, short=True), service.place.jobs
    key = service.submit(RetrySpec(limit=3))

    def told() -> str:
        running = service.do(lambda _: guard.running(jobs))
        found = [guard.decide(Memory(1000, 50), [Use(key, 0, 0, 950, 0)], running) for _ in range(2)][-1]
        run: str = service.do(lambda turn: guard.enter(turn, jobs, *found, "n"))
        guard.entered(run)
        return run

    assert (told(), told()) == (f"{key}-1", "")
    service.end(f"{key}-1", stopped=True, signal=15)
    assert service.job(key).state is State.RUNNING
    assert told() == f"{key}-2"


def test_a_job_in_its_back_off_can_be_cancelled_and_its_priority_changed(service: Service) -> None:
    """It is not in line, and yet it is one that waits."""
    key = service.submit(RetrySpec(limit=5, backoff_ms=60_000))
    service.end(f"{key}-1", exit_code=1)
    jobs = service.place.jobs
    service.do(lambda turn: change(jobs, turn, ANN, key, Change(priority=7), "urgent"))
    assert service.job(key).priority == 7
    assert service.job(key).history[-1].detail == "0 to 7 by ann: urgent"
    service.do(lambda turn: requests.cancel(jobs, turn, ANN, key))
    assert service.job(key).state is State.CANCELLED
    applications = service.do(lambda turn: turn.scheduler.cluster.partitions["default"].held_asks.has(key))
    assert not applications


def test_what_cannot_be_reserved_is_refused_before_it_is_tried(service: Service) -> None:
    """With what is in the way; nothing is entered."""
    runs, waits, idle = service.submit(), service.submit(), service.submit(idle=True)
    jobs, held = service.place.jobs, service.submit(hold=True)
    not_admin = Caller(user="ann", uid=1000, groups=("ann",), is_admin=False)
    for key, on, who, said in (
        (runs, True, ANN, "is running; only a job that waits in line"),
        (idle, True, ANN, "is idle work"),
        (held, True, ANN, r"is not in line yet \(was put on hold by ann and waits until it is released\); only a job"),
        (waits, False, ANN, "has no reservation"),
        (waits, True, not_admin, "only administrators of root.default"),
    ):

        def act(turn: Turn, key: str = key, on: bool = on, who: Caller = who) -> None:
            requests.reserve(jobs, turn, who, key, on=on)

        with pytest.raises(Refusal, match=said):
            service.do(act)
    service.do(lambda turn: requests.reserve(jobs, turn, ANN, waits, on=True, why="the demo"))
    assert service.job(waits).reserved
    assert service.job(waits).history[-1].detail == "switched on by ann: the demo"


def test_a_checkpoint_counts_for_the_attempt_that_runs(service: Service) -> None:
    """One of an attempt that is over is refused; the scheduler knows the time of the last one."""
    key = service.submit(RetrySpec(limit=5))
    jobs = service.place.jobs
    service.do(lambda turn: requests.checkpoint(jobs, turn, ANN, key, 1))
    ask = service.do(lambda turn: turn.scheduler.cluster.partitions["default"].applications[key].asks[key])
    assert ask.checkpoint_ms == service.job(key).checkpoint_at_ms is not None
    service.end(f"{key}-1", exit_code=1)
    with pytest.raises(Refusal, match=r"attempt 1 of job .* is over; attempt 2 runs"):
        service.do(lambda turn: requests.checkpoint(jobs, turn, ANN, key, 1))


def test_the_output_of_every_attempt_goes_with_the_job(tmp_path: Path) -> None:
    """When it leaves the book."""
    jobs = Jobs(keep_ended=0)
    jobs.apply(JobSubmitted(job=spec("1", RetrySpec(limit=3))), 1)
    for attempt in (1, 2):
        jobs.follow([Allocated("1", ask_key("1", attempt), "n")], 2)
        if attempt == 1:
            jobs.apply(AttemptEnded(key="1", attempt=1, state="failed", exit_code=1), 3)
    jobs.apply(JobEnded(key="1", attempt=2, state="succeeded", exit_code=0), 4)
    assert jobs.dropped == ["1-1", "1-2"]


def wait_for(what: Callable[[], Any]) -> None:
    end = time.monotonic() + 10
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def test_the_scheduler_is_told_when_a_run_ended(service: Service) -> None:
    """The record of the scheduler's events says it, for those who learn run times from that."""
    key = service.submit()
    wait_for(lambda: service.job(key).pid)
    service.end(f"{key}-1", exit_code=0)
    with Reader(service.directory / "journal.db") as reader:
        told = [decode_event(record.payload) for record in reader.records(kinds=(EVENT,))]
    assert [event.ended_ms for event in told if isinstance(event, Release)] == [2]


def test_an_end_that_a_fault_kept_out_of_the_books_is_entered_later(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine tells of it once: the room would be held, and the job run, until the next start of the service."""
    key = service.submit()
    wait_for(lambda: service.job(key).pid)
    monkeypatch.setattr(orders, "LONGEST_PAUSE_S", 0.01)
    with monkeypatch.context() as faulty:
        faulty.setattr(attempt_ends, "enter_end", lambda *_: 1 // 0)
        service.place._told(RunReport(key=f"{key}-1", pid=1, started_at_ms=1, ended_at_ms=2, exit_code=0))
        wait_for(lambda: service.runtime.measures.faults > 1)
        assert service.job(key).state is State.RUNNING
    wait_for(lambda: service.job(key).state is State.SUCCEEDED)
