"""Changes of a job that is there: while it waits, while it runs, by whom, and what is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from testbed.paper import ANN, Service

from fairlead.core.model.conditions import Dependency
from fairlead.core.model.events import Configure, SetQuota
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ClusterSpec, PartitionSpec, QueueSpec, QuotaSpec
from fairlead.local import requests
from fairlead.local.array_changes import change_whole
from fairlead.local.callers import Caller
from fairlead.local.changes import Change, change, suspend
from fairlead.local.history_records import ArraySpec, JobPressed
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.runtime import Refusal

ANN_ALONE = Caller(user="ann", uid=1000, groups=("ann",))


def order(service: Service, key: str, caller: Caller = ANN, why: str = "", **wanted: Any) -> str:
    said: str = service.do(lambda turn: change(service.place.jobs, turn, caller, key, Change(**wanted), why))
    return said


def refusal(service: Service, key: str, caller: Caller = ANN, **wanted: Any) -> str:
    with pytest.raises(Refusal) as refused:
        order(service, key, caller, **wanted)
    return f"{refused.value.code} {refused.value.field}: {refused.value.message}"


def until(what: Callable[[], Any]) -> None:
    """Until the thread that gives orders to the machine has come to it."""
    end = time.monotonic() + 50
    while not what():
        assert time.monotonic() < end
        time.sleep(0.005)


def told(service: Service, limits: dict[str, int | None]) -> None:
    """The machine has been told so by the thread that gives orders."""
    until(lambda: service.paper.limits == limits)


def test_a_job_that_waits_becomes_another_one(service: Service) -> None:
    """In the book, to the scheduler, and in what is executed in the end."""
    service.submit()
    key = service.submit(resources=Resources({"vcore": 500, "memory": 2**30}))
    said = order(
        service, key, why="so", name="new", resources={"vcore": 1000, "memory": 0}, time_limit_ms=5_000, priority=3
    )
    job = service.job(key)
    assert (said, job.spec.name, job.priority, job.spec.time_limit_ms) == ("", "new", 3, 5_000)
    assert job.spec.resources == Resources({"vcore": 1000})
    assert [(e.what, e.detail) for e in job.history][-2:] == [
        (
            "changed",
            "name from nothing to new, resources from cpu 0.5, memory 1Gi to cpu 1, time limit from nothing to "
            "5s by ann: so",
        ),
        ("priority", "0 to 3 by ann: so"),
    ]
    ask = service.do(lambda turn: turn.scheduler.cluster.partitions["default"].applications[key].asks[key].spec)
    assert (ask.resources, ask.time_limit_ms) == (Resources({"vcore": 1000}), 5_000)
    service.end("1-1", exit_code=0)
    assert service.job(key).state is State.RUNNING
    until(lambda: "2-1" in service.paper.specs)
    assert service.paper.specs["2-1"].time_limit_ms == 5_000


@pytest.mark.parametrize("role", ["is_admin", "heads_it"])
@pytest.mark.parametrize(
    "wanted",
    [{"command": ("id",)}, {"cwd": "/root"}, {"env": {"BASH_ENV": "x"}}, {"unset_env": ("HOME",)}],
    ids=str,
)
def test_what_is_executed_only_its_owner_changes(service: Service, wanted: dict[str, Any], role: str) -> None:
    """It runs as its owner: whoever else says what, could do anything as that user."""
    bob = Caller(user="bob", uid=1001, groups=("bob",), is_admin=role == "is_admin", heads_it=role == "heads_it")
    service.submit()
    key = service.submit(env={"HOME": "/home/ann"})
    before = service.job(key).spec
    (field,) = wanted
    assert f"forbidden {field}: job 2 is ann's and runs as ann" in refusal(service, key, bob, **wanted)
    assert service.job(key).spec == before
    order(service, key, bob, priority=3)
    order(service, key, ANN, **wanted)
    assert service.job(key).spec != before


def test_of_an_array_too_before_anything_is_changed(service: Service) -> None:
    """What it has as a whole stays as well."""
    bob = Caller(user="bob", uid=1001, groups=("bob",), is_admin=True)
    service.submit()
    key = service.submit(array=ArraySpec(indices="1-4", at_once=2))
    with pytest.raises(Refusal, match=r"job 2\.1 is ann's and runs as ann"):
        service.do(lambda turn: change_whole(service.place.jobs, turn, bob, key, Change(at_once=4, command=("id",))))
    assert not any(each.what == "changed" for each in service.job("2.1").history)


def test_the_book_comes_back_with_what_was_changed(service: Service) -> None:
    """Written down and read."""
    service.submit()
    order(service, "1", name="other", time_limit_ms=60_000)
    state = json.loads(json.dumps(service.place.jobs.dump()))
    assert json.loads(json.dumps(Jobs.load(state).dump())) == state


def test_the_time_limit_of_what_runs_reaches_the_machine(service: Service) -> None:
    """Its owner lowers it; only an administrator raises it again."""
    key = service.submit(time_limit_ms=3_600_000)
    order(service, key, ANN_ALONE, time_limit_ms=1_800_000)
    told(service, {"1-1": 1_800_000})
    for limit_ms in (3_600_000, 0):
        said = refusal(service, key, ANN_ALONE, time_limit_ms=limit_ms)
        assert "forbidden time_limit_ms: job 1 runs, and others count on its end" in said
    order(service, key, ANN, time_limit_ms=0)
    told(service, {"1-1": None})
    assert service.job(key).spec.time_limit_ms is None


def test_a_limit_that_is_over_already_is_refused(service: Service) -> None:
    """It would be a cancellation by another name."""
    key = service.submit()
    until(lambda: service.job(key).pid)

    def began(ago_ms: int, *names: str) -> None:
        for name in names:
            service.do(lambda turn, name=name: setattr(service.place.jobs.get(key), name, turn.now_ms - ago_ms))

    began(9_500, "allocated_at_ms", "started_at_ms")
    assert "job 1 has run for 9s already" in refusal(service, key, time_limit_ms=9_000)
    # By the machine's clock, which was set back, it started long before it got its place.
    began(3_600_000, "started_at_ms")
    order(service, key, time_limit_ms=10_000)


def test_the_next_attempt_has_the_limit_from_its_beginning(service: Service) -> None:
    """What was changed of the one before is no order about it."""
    key = service.submit(idle=True)
    order(service, key, time_limit_ms=60_000)
    assert service.job(key).course_changed
    service.do(lambda turn: turn.note(JobPressed(key=key, grace_ms=1, sentence="short of memory")))
    service.end("1-1", signal=15, stopped=True)
    assert (service.job(key).attempt, service.job(key).course_changed) == (2, False)
    until(lambda: "1-2" in service.paper.specs)
    assert service.paper.specs["1-2"].time_limit_ms == 60_000


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"priority": 1}, "conflict priority: job 1 is running; the priority can only be changed while it waits"),
        ({"resources": {"vcore": 1}}, "conflict resources: job 1 is running; what it asks for can only be changed"),
        ({"begin_ms": 5}, "conflict begin_at_ms: job 1 is running; when it begins"),
        ({"after": ()}, "conflict after: job 1 is running; what it waits for"),
    ],
)
def test_what_runs_stays_as_it_is(service: Service, wanted: dict[str, Any], said: str) -> None:
    """Save its name, its queue and its time limit."""
    key = service.submit()
    assert said in refusal(service, key, **wanted)
    order(service, key, name="allowed")


def test_what_is_so_already_of_what_runs_is_no_change(service: Service) -> None:
    """A request that was not answered is sent again, and the first one may have let the job start."""
    key = service.submit(resources=Resources({"vcore": 2000}), env={"A": "1", "B": "2"}, cwd="/")
    wanted: dict[str, Any] = {"resources": {"vcore": 500}, "priority": 3, "command": ("false",), "env": {"A": "3"}}
    order(service, key, cwd="/tmp", **wanted)
    assert service.job(key).state is State.RUNNING
    before = [each for each in service.job(key).history if each.what == "changed"]
    order(service, key, cwd="/tmp", **wanted)
    after = [each for each in service.job(key).history if each.what == "changed"]
    assert (after, service.job(key).spec.env) == (before, {"A": "3", "B": "2"})
    assert "its environment can only be changed" in refusal(service, key, env={"A": "3", "C": ""})


def test_what_makes_no_sense_is_refused_as_a_whole(service: Service) -> None:
    """Nothing of it is entered."""
    service.submit()
    waits = service.submit(hold=True)
    behind = service.submit(after=(Dependency(application=waits),))
    circle = (Dependency(application=behind),)
    said = refusal(service, waits, name="x", after=circle)
    assert said == ("conflict after: nothing in a circle ever runs, and this would be one: 2 waits for 3 waits for 2")
    assert "invalid after: there is no job '9'" in refusal(service, waits, after=(Dependency(application="9"),))
    said = "conflict resources: job 2 would ask for nothing; let it ask for a little, such as cpu 0.1"
    assert refusal(service, waits, resources={"vcore": 0}) == said
    assert service.job(waits).spec.name == ""
    service.end("1-1", exit_code=0)
    assert "has ended already (succeeded)" in refusal(service, "1", name="x")


def test_other_jobs_to_wait_for_take_the_place_of_all(service: Service) -> None:
    """Those that have ended count at once; without any it is in line."""
    running = service.submit()
    key = service.submit(after=(Dependency(application=running),), hold=True)
    order(service, key, after=(), begin_ms=2**47)
    held = service.do(lambda turn: turn.scheduler.cluster.partitions["default"].held_asks.get(key, key).conditions)
    assert (held.after, held.held_by, held.begin_ms) == ((), "ann", 2**47)
    service.end("1-1", exit_code=3)
    order(service, key, after=(Dependency(application=running),), cancel_never=True)
    job = service.job(key)
    assert (job.state, job.note) == (State.CANCELLED, "can never run: 1 was to end well, and it failed")


def test_a_cancelled_one_is_not_changed(service: Service) -> None:
    """It is over."""
    key = service.submit(hold=True)
    service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, key))
    assert "has ended already (cancelled)" in refusal(service, key, name="x")


# --- suspend and resume ----------------------------------------------------------------------------------------------


def stand_still(service: Service, key: str, caller: Caller = ANN, *, on: bool = True, why: str = "") -> None:
    service.do(lambda turn: suspend(service.place.jobs, turn, caller, key, on=on, why=why))


def test_what_is_suspended_keeps_its_room_and_has_no_known_end(service: Service) -> None:
    """The machine and the scheduler are told; when it goes on its limit is later by the time that it stood still."""
    key = service.submit(time_limit_ms=60_000)
    until(lambda: service.job(key).pid)
    waits = service.submit()

    def limit() -> Any:
        part = service.runtime.books.scheduler.cluster.partitions["default"]
        return service.do(lambda _: part.applications[key].asks[key].spec.time_limit_ms)

    stand_still(service, key, why="a demo")
    until(lambda: service.paper.suspended == {"1-1": True})
    assert (service.job(key).state, service.job(waits).state, limit()) == (State.SUSPENDED, State.WAITING, None)
    assert "job 1 is suspended, and its time stands still" in refusal(service, key, time_limit_ms=30_000)
    service.do(lambda turn: setattr(service.place.jobs.get(key), "suspended_at_ms", turn.now_ms - 5_000))
    stand_still(service, key, on=False)
    until(lambda: service.paper.suspended == {"1-1": False})
    job = service.job(key)
    assert (job.state, job.spec.time_limit_ms) == (State.RUNNING, 60_000)
    assert 65_000 <= limit() == job.limit_ms < 70_000
    assert [(e.what, e.detail) for e in job.history][-2:] == [("suspended", "by ann: a demo"), ("resumed", "by ann")]
    order(service, key, time_limit_ms=40_000)
    assert limit() == job.suspended_ms + 40_000


def test_what_somebody_else_has_suspended_its_owner_does_not_resume(service: Service) -> None:
    """As with a hold."""
    key = service.submit()
    bob = Caller(user="bob", uid=1001, groups=("bob",), is_admin=True)
    stand_still(service, key, bob)
    with pytest.raises(Refusal, match="job 1 was suspended by bob; ask bob"):
        stand_still(service, key, ANN_ALONE, on=False)
    stand_still(service, key, bob, on=False)
    stand_still(service, key, ANN_ALONE)
    stand_still(service, key, ANN_ALONE, on=False)


def test_what_is_suspended_can_be_cancelled_requeued_and_can_end(service: Service) -> None:
    """It is on the machine as what runs is; the next attempt begins without."""
    key = service.submit()
    stand_still(service, key)
    service.do(lambda turn: requests.requeue(service.place.jobs, turn, ANN, key))
    assert service.job(key).state is State.STOPPING
    service.end("1-1", signal=15, stopped=True)
    job = service.job(key)
    assert (job.state, job.suspended_by, job.suspended_ms, job.course_changed) == (State.RUNNING, "", 0, False)
    stand_still(service, key)
    service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, key))
    service.end("1-2", signal=15, stopped=True)
    assert service.job(key).state is State.CANCELLED
    other = service.submit()
    stand_still(service, other)
    service.end("2-1", signal=9)
    assert service.job(other).state is State.FAILED


@pytest.mark.parametrize("goes_on", [False, True])
def test_the_time_for_which_it_stood_still_is_no_part_of_the_next_limit(service: Service, goes_on: bool) -> None:
    """A job of an hour that was suspended for two fits before the same windows, and into the same gaps, as at first."""
    key = service.submit(time_limit_ms=60_000)
    until(lambda: service.job(key).pid)
    stand_still(service, key)
    service.do(lambda turn: setattr(service.place.jobs.get(key), "suspended_at_ms", turn.now_ms - 5_000))
    if goes_on:
        stand_still(service, key, on=False)
    service.do(lambda turn: requests.requeue(service.place.jobs, turn, ANN, key, hold=True))
    service.end("1-1", signal=15, stopped=True)
    part = service.runtime.books.scheduler.cluster.partitions["default"]
    (held,) = service.do(lambda _: part.held_asks.named(key, ""))
    assert (held.spec.key, held.spec.time_limit_ms) == ("1#2", 60_000)


def test_only_what_runs_is_suspended_and_only_that_resumed(service: Service) -> None:
    """With what to do instead."""
    runs, waits = service.submit(), service.submit()
    with pytest.raises(Refusal, match="job 2 is waiting; only a job that is running can be suspended; `fairlead hold`"):
        stand_still(service, waits)
    with pytest.raises(Refusal, match="job 1 is running; only a job that is suspended can be resumed"):
        stand_still(service, runs, on=False)
    stand_still(service, runs)
    with pytest.raises(Refusal, match="job 1 is suspended; only a job that is running can be suspended"):
        stand_still(service, runs)


def test_what_runs_and_how_is_changed_while_it_waits(service: Service) -> None:
    """Command, directory, variables and tags; what is not named stays. Values of variables are no history."""
    key = service.submit(command=("a",), hold=True, env={"KEEP": "1", "DROP": "2"}, tags={"t": "x"})
    order(service, key, command=("b", "c d"), cwd="/tmp", env={"NEW": "secret"}, unset_env=("DROP",), tags={"u": "y"})
    spec = service.job(key).spec
    assert (spec.command, spec.cwd) == (("b", "c d"), "/tmp")
    assert (spec.env, spec.tags) == ({"KEEP": "1", "NEW": "secret"}, {"t": "x", "u": "y"})
    said = service.job(key).history[-1].detail
    assert "command from a to b 'c d'" in said
    assert "env from KEEP, DROP to KEEP, NEW" in said
    assert "secret" not in said


def test_a_variable_that_there_is_not_is_named(service: Service) -> None:
    """With those that there are."""
    key = service.submit(command=("a",), hold=True, env={"KEEP": "1"})
    assert "has no variable DROP; it has KEEP" in refusal(service, key, unset_env=("DROP",))


def test_the_command_of_a_script_is_not_changed(service: Service) -> None:
    """It was kept as it was submitted."""
    key = service.submit(command=("job.sh",), hold=True, is_script=True, script="#!/bin/sh\n")
    assert refusal(service, key, command=("b",)).startswith("conflict command: ")


def test_a_larger_environment_counts_for_its_user(service: Service) -> None:
    """And no longer when the job has ended."""
    key = service.submit(command=("a",), hold=True, env={"A": "1"})
    order(service, key, env={"B": "x" * 100})
    assert service.place.jobs.taken(1000).environment == 103
    service.do(lambda turn: requests.cancel(service.place.jobs, turn, ANN, key))
    assert service.place.jobs.taken(1000).environment == 0


def test_what_a_quota_of_the_other_queue_has_no_room_for_stays_as_it_is(service: Service) -> None:
    """It was moved, then refused in its new size, and over in the book alone: what it had in line took its room."""
    leaves = (QueueSpec(name="default"), QueueSpec(name="other"))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    few = QuotaSpec(name="few", queue="root.other", resources=Limits({"vcore": 600}))
    for event in (Configure(ClusterSpec(partitions=(PartitionSpec(root=root),))), SetQuota(few)):
        service.do(lambda turn, event=event: turn.event(event))
    service.submit()
    key = service.submit(resources=Resources({"vcore": 500}))
    said = refusal(service, key, queue="root.other", resources={"vcore": 700})
    assert said.startswith(f"conflict resources: job {key} stays as it is: needs cpu 0.2; quota few of queue root")
    job = service.job(key)
    assert (job.state, job.queue, job.spec.resources) == (State.WAITING, "root.default", Resources({"vcore": 500}))
    assert order(service, key, queue="root.other", resources={"vcore": 600}) == ""
    assert service.job(key).queue == "root.other"
