"""Hold, release, begin, and jobs that wait for others: in the book, with a machine of paper."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from testbed.paper import ANN, Service

from fairlead.core.model.conditions import Awaited, Dependency
from fairlead.core.model.events import SetQuota
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import QuotaSpec, RetrySpec
from fairlead.local import dependencies, holding, requests
from fairlead.local.callers import Caller, Rights
from fairlead.local.changes import Change, change
from fairlead.local.history_records import JobSpec
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal, Turn

BOB = Caller(user="bob", uid=1001, groups=("bob",), is_admin=True)
ANN_ALONE = Caller(user="ann", uid=1000, groups=("ann",))


def after(key: str, awaited: Awaited = Awaited.OK) -> tuple[Dependency, ...]:
    return (Dependency(application=key, awaited=awaited),)


def order(service: Service, act: Callable[..., None], caller: Caller, key: str, **given: Any) -> None:
    service.do(lambda turn: act(service.place.jobs, turn, caller, key, **given))


def refusal(service: Service, act: Callable[..., None], caller: Caller, key: str) -> str:
    with pytest.raises(Refusal) as refused:
        order(service, act, caller, key)
    return f"{refused.value.code}: {refused.value.message}"


# --- hold and release ------------------------------------------------------------------------------------------------


def test_what_is_on_hold_runs_when_it_is_released(service: Service) -> None:
    """Who did what stands in its history."""
    key = service.submit(hold=True)
    assert service.job(key).state is State.WAITING
    order(service, holding.release, ANN, key, why="go")
    job = service.job(key)
    assert job.state is State.RUNNING
    assert [(e.what, e.detail) for e in job.history][2] == ("conditions", "released by ann: go")


def test_who_holds_for_others_is_the_one_who_releases(service: Service) -> None:
    """An owner's own hold anybody may release who may act on the job; that of somebody else the owner may not."""
    running, key = service.submit(), service.submit()
    order(service, holding.hold, ANN_ALONE, key)
    order(service, holding.hold, ANN_ALONE, key)
    order(service, holding.hold, BOB, key)
    order(service, holding.hold, ANN_ALONE, key)
    assert "forbidden: job 2 was put on hold by bob; ask bob" in refusal(service, holding.release, ANN_ALONE, key)
    order(service, holding.release, BOB, key)
    order(service, holding.hold, ANN_ALONE, key)
    order(service, holding.release, BOB, key)
    assert service.job(running).state is State.RUNNING
    said = [e.detail for e in service.job(key).history if e.what == "conditions"]
    assert said == [
        "put on hold by ann",
        "put on hold by bob",
        "released by bob",
        "put on hold by ann",
        "released by bob",
    ]


def test_what_makes_no_sense_is_refused(service: Service) -> None:
    """With what the job is, and what it waits for."""
    running, waits = service.submit(), service.submit(begin_ms=2**47)
    assert "job 1 is running; only a job that waits can be held" in refusal(service, holding.hold, ANN, running)
    said = refusal(service, holding.release, ANN, waits)
    assert "job 2 is not on hold; it waits for the time it is to begin at" in said
    assert "not-found" in refusal(service, holding.hold, ANN, "99")


def test_a_job_on_hold_can_be_cancelled(service: Service) -> None:
    """At once; nothing of it is left in line."""
    key = service.submit(hold=True)
    order(service, requests.cancel, ANN, key)
    assert service.job(key).state is State.CANCELLED


# --- others ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("awaited", "exit_code", "state"),
    [
        (Awaited.OK, 0, State.RUNNING),
        (Awaited.OK, 3, State.WAITING),
        (Awaited.NOT_OK, 0, State.WAITING),
        (Awaited.NOT_OK, 3, State.RUNNING),
        (Awaited.ANY, 0, State.RUNNING),
        (Awaited.ANY, 3, State.RUNNING),
    ],
)
def test_the_end_of_one_is_the_beginning_of_another(
    service: Service, awaited: Awaited, exit_code: int, state: State
) -> None:
    """In the same turn; and the same holds for one that is submitted after the end."""
    first = service.submit()
    second = service.submit(after=after(first, awaited))
    service.end("1-1", exit_code=exit_code)
    assert service.job(second).state is state
    if state is State.RUNNING:
        service.end("2-1", exit_code=0)
    third = service.submit(after=after(first, awaited))
    assert service.job(third).state is state
    why = service.do(lambda turn: turn.scheduler.why(third, third))
    assert why is None or "can never run: 1 was" in why.sentence()


def test_a_start_counts_when_the_process_is_there(service: Service) -> None:
    """Not when the job has its place."""
    first = service.submit()
    second = service.submit(after=after(first, Awaited.STARTED))
    waits = service.submit()
    service.end("1-1", exit_code=0)
    assert service.job(second).state is State.RUNNING
    assert service.job(waits).state is State.WAITING


def test_an_attempt_that_fails_is_not_the_end(service: Service) -> None:
    """What is tried again has not ended."""
    first = service.submit(retry=RetrySpec(limit=1))
    second = service.submit(after=after(first))
    service.end("1-1", exit_code=3)
    assert [service.job(key).state for key in (first, second)] == [State.RUNNING, State.WAITING]
    service.end("1-2", exit_code=0)
    assert service.job(second).state is State.RUNNING


def test_what_can_never_run_is_cancelled_if_it_is_asked_for(service: Service) -> None:
    """And so is what waits for that in turn; the others wait on, and say why."""
    first = service.submit(hold=True)
    second = service.submit(after=after(first), cancel_never=True)
    third = service.submit(after=after(second), cancel_never=True)
    stays = service.submit(after=after(second))
    cleans_up = service.submit(after=after(third, Awaited.NOT_OK))
    order(service, requests.cancel, ANN, first)
    states = [service.job(key).state for key in (second, third, stays, cleans_up)]
    assert states == [State.CANCELLED, State.CANCELLED, State.WAITING, State.RUNNING]
    assert service.job(third).note == "can never run: 2 was to end well, and it was cancelled"
    assert service.job(third).cancelled_by == "the service"
    late = service.submit(after=after(first), cancel_never=True)
    assert service.job(late).state is State.CANCELLED


def test_only_jobs_that_are_there_can_be_waited_for(service: Service) -> None:
    """Nothing of such a submission is taken in."""
    with pytest.raises(Refusal, match="there is no job '9' to wait for") as refused:
        service.submit(after=after("9"))
    assert refused.value.field == "jobs[0].after"
    assert service.do(lambda _: len(service.place.jobs)) == 0


def test_others_jobs_are_not_there_for_who_may_not_see_them(service: Service) -> None:
    """A dependency would tell how they end."""
    first = service.submit()
    carl = Caller(user="carl", uid=1002, groups=("carl",))
    spec = JobSpec(key="", user="carl", uid=1002, command=("true",), queue="", after=after(first))

    def wrong(turn: Turn) -> str:
        found = dependencies.unknown(service.place.jobs, Rights(carl, turn.scheduler), spec)
        return found.why if found is not None else ""

    assert "there is no job '1'" in service.do(wrong)


def test_a_circle_is_found(service: Service) -> None:
    """Over however many others; what only ends in the same job is none."""
    first = service.submit(hold=True)
    second = service.submit(after=after(first))
    third = service.submit(after=(*after(second), *after(first)))

    def circle(key: str, of: str) -> list[str]:
        jobs = service.place.jobs
        found: list[str] = service.do(lambda turn: dependencies.circle(jobs, turn.scheduler, key, after(of)))
        return found

    assert circle(first, third) == [first, third, second, first] or circle(first, third) == [first, third, first]
    assert circle(first, first) == [first, first]
    assert circle(third, second) == []


def test_a_restart_goes_on_waiting(service: Service) -> None:
    """From the journal, with the same decisions."""
    first = service.submit()
    second = service.submit(after=after(first))
    held = service.submit(hold=True)
    service.runtime.close()
    again = Service.__new__(Service)
    del again
    state = json.loads(json.dumps(service.place.jobs.dump()))
    assert json.loads(json.dumps(Jobs.load(state).dump())) == state
    scheduler = type(service.runtime.books.scheduler).load(service.runtime.books.scheduler.dump())
    kept = {app: one.conditions.reason().code for app, one in scheduler.cluster.partitions["default"].held_asks}
    assert kept == {second: "waits-for-others", held: "on-hold"}


# --- quotas ----------------------------------------------------------------------------------------------------------


def test_what_a_quota_would_refuse_is_not_released(service: Service) -> None:
    """It stays on hold: released it would be over. So with an update that brings it into line."""
    few = QuotaSpec(name="few", queue="root.default", resources=Limits({"vcore": 1000}))
    service.do(lambda turn: turn.event(SetQuota(few)))
    key, running = service.submit(hold=True), service.submit()
    said = refusal(service, holding.release, ANN, key)
    assert said.startswith(f"conflict: job {key} stays out of line, for it would be refused: needs cpu 1; quota few of")
    late = service.submit(begin_ms=2**50)
    with pytest.raises(Refusal, match="stays out of line, for it would be refused: needs cpu 1; quota few"):
        service.do(lambda turn: change(service.place.jobs, turn, ANN, late, Change(begin_ms=0)))
    assert [service.job(each).state for each in (key, late)] == [State.WAITING] * 2
    service.end(f"{running}-1", exit_code=0)
    order(service, holding.release, ANN, key)
    assert service.job(key).state is State.RUNNING
