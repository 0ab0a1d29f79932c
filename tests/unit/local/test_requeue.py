"""Requeue and rerun: what runs waits again, what has ended is submitted once more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testbed.paper import ANN, Service

from fairlead.core.model.conditions import Dependency
from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import Cause
from fairlead.core.model.specs import RetrySpec
from fairlead.local import holding, requests
from fairlead.local.callers import Caller
from fairlead.local.history_records import ArraySpec
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.local.streams import Streams
from fairlead.runtime import Refusal

BOB = Caller(user="bob", uid=1001, groups=("bob",), is_admin=True)


def requeue(service: Service, key: str, **how: Any) -> None:
    service.do(lambda turn: requests.requeue(service.place.jobs, turn, ANN, key, **how))


def rerun(service: Service, key: str, caller: Caller = ANN, **env: str) -> str:
    def act(turn: Any) -> str:
        submitted = requests.rerun(service.place.jobs, turn, caller, key, env).step(service.place.jobs, turn, 1)
        assert submitted is not None
        return submitted.keys[0]

    found: str = service.do(act)
    return found


def test_what_is_requeued_runs_again_from_the_beginning(service: Service) -> None:
    """Without any retry; its first attempt is told to stop with its own grace."""
    key = service.submit(grace_ms=700)
    requeue(service, key, why="new data")
    assert service.job(key).state is State.STOPPING
    service.end("1-1", signal=15, stopped=True)
    job = service.job(key)
    assert (job.state, job.attempt, job.past[0].how) == (State.RUNNING, 2, "evicted, requeued by ann: new data")
    service.end("1-2", exit_code=0)
    assert service.job(key).state is State.SUCCEEDED
    service.place.close()
    assert service.paper.stopped == {"1-1": 700}


def test_the_hold_is_all_that_its_story_tells(service: Service) -> None:
    """Nobody let it begin at once."""
    service.submit(array=ArraySpec(indices="1-3", at_once=1))
    requeue(service, "1.1", hold=True)
    service.end("1.1-1", signal=15, stopped=True)
    assert [service.job(f"1.{n}").state for n in (1, 2)] == [State.WAITING, State.RUNNING]
    assert [each.detail for each in service.job("1.1").history if each.what == "conditions"] == ["put on hold by ann"]


def test_on_hold_it_waits_until_it_is_released(service: Service) -> None:
    """Meanwhile others run in its place."""
    key, other = service.submit(), service.submit()
    requeue(service, key, hold=True)
    service.end("1-1", signal=15, stopped=True)
    assert [service.job(each).state for each in (key, other)] == [State.WAITING, State.RUNNING]
    assert service.do(lambda turn: turn.scheduler.why(key, "1#2").sentence()).startswith("was put on hold by ann")
    state = json.loads(json.dumps(service.place.jobs.dump()))
    assert json.loads(json.dumps(Jobs.load(state).dump())) == state
    service.end("2-1", exit_code=0)
    service.do(lambda turn: holding.release(service.place.jobs, turn, ANN, key))
    assert (service.job(key).state, service.job(key).attempt) == (State.RUNNING, 2)


def test_a_requeue_counts_for_no_retry(service: Service) -> None:
    """With one retry it may fail twice, however often it was requeued between; nor is a back-off the longer."""
    key = service.submit(retry=RetrySpec(limit=1))
    for number in (1, 2, 3):
        requeue(service, key)
        service.end(f"1-{number}", signal=15, stopped=True)
    service.end("1-4", exit_code=3)
    assert service.job(key).state is State.RUNNING
    requeue(service, key)
    service.end("1-5", signal=15, stopped=True)
    service.end("1-6", exit_code=3)
    job = service.job(key)
    assert (job.state, job.no_retry) == (State.FAILED, "it had all its 2 attempts")


def test_what_waits_for_a_job_waits_on_while_it_is_requeued(service: Service) -> None:
    """An attempt that was stopped is no end."""
    key = service.submit()
    behind = service.submit(after=(Dependency(application=key),))
    requeue(service, key)
    service.end("1-1", signal=15, stopped=True)
    assert service.job(behind).state is State.WAITING
    service.end("1-2", exit_code=0)
    assert service.job(behind).state is State.RUNNING


@pytest.mark.parametrize("how", [{"exit_code": 0}, {"exit_code": 3}, {"timed_out": True, "signal": 15}, {"lost": True}])
@pytest.mark.parametrize("hold", [False, True])
def test_a_job_that_wants_itself_to_wait_again_does_so_however_it_ends(
    service: Service, hold: bool, how: dict[str, Any]
) -> None:
    """It asked for that and went, as in a script for Slurm, before it was told to stop, and had succeeded. By the
    machine's clock that is long before: it was set back meanwhile.
    """
    key = service.submit()
    requeue(service, key, hold=hold)
    service.end("1-1", **how)
    job = service.job(key)
    assert (job.state, job.attempt) == ((State.WAITING, 1) if hold else (State.RUNNING, 2))
    if "exit_code" in how:
        assert (job.past[0].state, job.past[0].how) == (State.EVICTED, "evicted, requeued by ann")


def test_a_cancellation_counts_more_than_a_requeue(service: Service) -> None:
    """It is over."""
    key = service.submit()
    requeue(service, key, hold=True)
    service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, key))
    service.end("1-1", signal=15, stopped=True)
    assert service.job(key).state is State.CANCELLED


def test_an_eviction_on_the_way_does_not_end_it(service: Service) -> None:
    """The scheduler may want its room too before it has left."""
    key = service.submit()
    requeue(service, key)
    evict = Evict(key, key, "n", Cause.PREEMPTED_BY_SCHEDULER)
    service.do(lambda turn: service.place.jobs.follow([evict], turn.now_ms))
    service.end("1-1", signal=15, stopped=True)
    assert service.job(key).state is State.RUNNING


def test_what_makes_no_sense_is_refused(service: Service) -> None:
    """With what to do instead."""

    def refusal(act: Any, *args: Any) -> str:
        with pytest.raises(Refusal) as refused:
            act(service, *args)
        return refused.value.message

    runs, waits = service.submit(), service.submit()
    assert "job 2 waits already; `fairlead hold 2`" in refusal(requeue, waits)
    assert "job 1 is running; only what has ended is submitted again" in refusal(rerun, runs)
    requeue(service, runs)
    assert "job 1 is stopping already" in refusal(requeue, runs)
    service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, runs))
    service.end("1-1", exit_code=0)
    assert "`fairlead rerun 1` submits it again" in refusal(requeue, runs)
    assert "job 1 is ann's and would run as ann" in refusal(rerun, runs, BOB)


def test_a_rerun_is_a_new_job_that_waits_for_room_alone(service: Service) -> None:
    """The same command and needs; who asks finds the first one."""
    first = service.submit()
    key = service.submit(after=(Dependency(application=first),), env={"SEED": "1"}, name="x", cancel_never=True)
    service.end("1-1", exit_code=3)
    assert service.job(key).state is State.CANCELLED
    again = rerun(service, key, SEED="1")
    job = service.job(again)
    assert (again, job.state, job.spec.env, job.spec.name) == ("3", State.RUNNING, {"SEED": "1"}, "x")
    assert (job.spec.after, job.spec.rerun_of) == ((), key)
    assert job.history[0].detail == "by ann, as job 2 was"


def test_what_read_a_pipe_is_not_submitted_again(service: Service) -> None:
    """What came through it was kept by nobody: the new job would find no pipe, and fail."""
    key = service.submit(streams=Streams(stdin="/tmp/fairlead-input-abc/stdin"))
    service.end("1-1", exit_code=3)
    with pytest.raises(Refusal, match="job 1 read what was piped into `fairlead run`, and nobody kept that"):
        rerun(service, key)


def test_what_its_environment_held_is_given_again(service: Service) -> None:
    """It was forgotten when the job ended; what is missing is said, with what to write."""
    key = service.submit(env={"SEED": "1", "TOKEN": "secret"})
    service.end("1-1", exit_code=0)
    assert "secret" not in json.dumps(service.place.jobs.dump())
    with pytest.raises(Refusal, match="fairlead rerun 1 --env TOKEN") as refused:
        rerun(service, key, SEED="2")
    assert refused.value.field == "env"
    again = rerun(service, key, SEED="2", TOKEN="secret")
    assert dict(service.job(again).spec.env) == {"SEED": "2", "TOKEN": "secret"}


def test_idle_work_that_is_not_to_be_begun_twice_does_not_go_back(service: Service) -> None:
    """It says so; other idle work goes back to its queue when it had to make room."""
    for limit in (0, None):
        key = service.submit(idle=True, retry=RetrySpec(limit=limit) if limit is not None else None)
        other = service.submit()
        assert service.job(key).state is State.STOPPING
        service.end(f"{key}-1", signal=15, stopped=True)
        assert service.job(key).state is (State.EVICTED if limit == 0 else State.WAITING)
        assert "not tried again" not in service.job(key).history[-1].detail
        service.end(f"{other}-1", exit_code=0)


def test_idle_work_that_was_told_to_stop_and_is_lost_with_the_machine_goes_back(service: Service) -> None:
    """It was giving its room back when the machine went down. What nobody had told to stop is lost."""
    key, other = service.submit(idle=True), service.submit()
    assert service.job(key).state is State.STOPPING
    service.end(f"{key}-1", lost=True)
    job = service.job(key)
    assert (job.state, job.past[0].state, service.job(other).state) == (State.WAITING, State.LOST, State.RUNNING)
    service.end(f"{other}-1", exit_code=0)
    service.end(f"{key}-2", lost=True)
    assert service.job(key).state is State.LOST
