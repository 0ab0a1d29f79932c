"""Arrays on a machine that executes nothing: the lives of parts, and of the whole."""

from __future__ import annotations

import json
from threading import Event
from typing import Any

import pytest
from testbed.paper import ANN, Service, spec

from fairlead.core.model.conditions import Awaited, Dependency
from fairlead.core.model.events import Configure, SetQuota
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec, PartitionSpec, QueueSpec, QuotaSpec, RetrySpec
from fairlead.local import requests
from fairlead.local.array_changes import change_whole
from fairlead.local.arrays import state_of
from fairlead.local.callers import Caller, Rights
from fairlead.local.changes import Change, change
from fairlead.local.history_records import ArrayBrokenOff, ArraySpec, JobsCleaned, JobSpec
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.local.notices import Notice
from fairlead.local.selection import meant
from fairlead.runtime import Refusal, Turn


def submit(service: Service, indices: str, at_once: int = 0, **fields: Any) -> str:
    return service.submit(array=ArraySpec(indices=indices, at_once=at_once), **fields)


def states(service: Service, key: str) -> list[str]:
    return service.do(
        lambda turn: [job.state.value for job in meant(service.place.jobs, Rights(ANN, turn.scheduler), key)]
    )  # type: ignore[no-any-return]


def keys(service: Service, key: str, caller: Caller = ANN) -> list[str]:
    return service.do(lambda turn: [job.key for job in meant(service.place.jobs, Rights(caller, turn.scheduler), key)])  # type: ignore[no-any-return]


def refused(service: Service, act: Any) -> str:
    with pytest.raises(Refusal) as refusal:
        service.do(act)
    return refusal.value.message


def runs(service: Service) -> list[str]:
    """What was started so far."""
    service.do(lambda _: None)
    carried_out = Event()
    service.place._orders._due.put(carried_out.set)
    assert carried_out.wait(30)
    return list(service.paper.specs)


def finish(service: Service, key: str, exit_code: int = 0, attempt: int = 1) -> None:
    service.end(f"{key}-{attempt}", exit_code=exit_code)


def test_an_array_is_one_application_with_an_ask_for_each_part(service: Service) -> None:
    """Its key is the name of the application."""
    assert submit(service, "1-3") == "1"
    partition = service.runtime.books.scheduler.cluster.partitions[DEFAULT_PARTITION]
    assert list(partition.applications) == ["1"]
    assert list(partition.applications["1"].asks) == ["1.1", "1.2", "1.3"]
    assert states(service, "1") == ["running", "waiting", "waiting"]
    assert submit(service, "1") == "2"


def test_a_part_finds_its_index_in_its_environment(service: Service) -> None:
    """With what the array is."""
    submit(service, "3-9:3")
    finish(service, "1.3")
    assert service.job("1.6").state is State.RUNNING
    env = service.place._run_spec(service.job("1.6"), "1.6-1").env
    assert {name: value for name, value in env.items() if "ARRAY" in name or name == "FAIRLEAD_KEY"} == {
        "FAIRLEAD_KEY": "1.6",
        "FAIRLEAD_ARRAY_KEY": "1",
        "FAIRLEAD_ARRAY_INDEX": "6",
        "FAIRLEAD_ARRAY_FIRST": "3",
        "FAIRLEAD_ARRAY_LAST": "9",
        "FAIRLEAD_ARRAY_STEP": "3",
        "FAIRLEAD_ARRAY_COUNT": "3",
    }


def test_keys_mean_parts(service: Service) -> None:
    """One, some, or all; others are not there, and nothing is there for who may not see it."""
    submit(service, "1-9:2")
    service.submit()
    assert keys(service, "1.3") == ["1.3"]
    assert keys(service, "1.1,7-9:2") == ["1.1", "1.7", "1.9"]
    assert len(keys(service, "1")) == 5
    for key, said in (
        ("1.2", "array 1 has no part 2; its parts are 1-9:2"),
        ("1.1-3", "array 1 has no part 2"),
        ("1.x", "1.x: 'x' names no indices"),
        ("1.", "names no indices"),
        ("2.1", "there is no job '2.1'; job 2 is no array"),
        ("3", "there is no job '3'"),
    ):
        assert said in refused(service, lambda turn, k=key: meant(service.place.jobs, Rights(ANN, turn.scheduler), k))
    carl = Caller(user="carl", uid=1002, groups=("carl",))
    with pytest.raises(Refusal, match=r"there is no job '1\.3'"):
        keys(service, "1.3", carl)


def test_each_part_has_attempts_of_its_own(service: Service) -> None:
    """Under a bound what is tried again goes first."""
    submit(service, "1-3", at_once=1, retry=RetrySpec(limit=1))
    finish(service, "1.1", exit_code=3)
    assert (service.job("1.1").state, service.job("1.1").attempt) == (State.RUNNING, 2)
    finish(service, "1.1", attempt=2)
    assert [service.job(f"1.{n}").state.value for n in (1, 2, 3)] == ["succeeded", "running", "waiting"]


def test_the_state_of_several_is_that_of_the_liveliest_then_the_worst() -> None:
    """Running, then waiting, then failed, then succeeded."""

    class Of:
        def __init__(self, state: State) -> None:
            self.state = state

    def of(*found: State) -> State:
        return state_of([Of(each) for each in found])  # type: ignore[misc]

    assert of(State.SUCCEEDED, State.WAITING, State.RUNNING) is State.RUNNING
    assert of(State.FAILED, State.WAITING) is State.WAITING
    assert of(State.SUCCEEDED, State.CANCELLED, State.FAILED) is State.FAILED
    assert of(State.SUCCEEDED, State.SUCCEEDED) is State.SUCCEEDED


def test_others_wait_for_all_of_it_or_for_a_part(service: Service) -> None:
    """And a part for the part of its own index."""
    first = submit(service, "1-2")
    part = service.submit(after=(Dependency(application=f"{first}.1"),), hold=False)
    whole = service.submit(after=(Dependency(application=first, awaited=Awaited.ANY),))
    second = submit(service, "1-2", after=(Dependency(application=f"{first}.%a"),))
    why = service.runtime.books.scheduler.why
    reason = why(second, f"{second}.2")
    assert reason is not None
    assert reason.sentence() == "waits for 1.2 to end well"
    finish(service, "1.1")
    assert why(part, part).code == "cluster-full"  # type: ignore[union-attr]
    assert why(whole, whole).sentence() == "waits for 1 to end"  # type: ignore[union-attr]
    finish(service, "1.2", exit_code=1)
    assert why(second, f"{second}.2").code == "never-runs"  # type: ignore[union-attr]
    assert "1.2 was to end well, and it failed" in why(second, f"{second}.2").sentence()  # type: ignore[union-attr]
    assert why(whole, whole).code == "cluster-full"  # type: ignore[union-attr]
    late = service.submit(after=(Dependency(application=first),))
    assert "it has 1 of 2 parts that did not" in why(late, late).sentence()  # type: ignore[union-attr]


def test_parts_of_the_same_index_have_to_be_there(service: Service) -> None:
    """And who waits for them is an array."""
    first = submit(service, "1-2")
    after = (Dependency(application=f"{first}.%a"),)
    assert "there is no job '1.3' to wait for" in refused(
        service,
        lambda turn: requests.submit(
            service.place.jobs, turn, ANN, [spec(array=ArraySpec(indices="1-3"), after=after)]
        ),
    )
    assert "and this is no array" in refused(
        service, lambda turn: requests.submit(service.place.jobs, turn, ANN, [spec(after=after)])
    )


def test_a_part_that_waits_for_its_own_array_is_a_circle(service: Service) -> None:
    """Also over another job."""
    submit(service, "1-2", hold=True)
    other = service.submit(after=(Dependency(application="1"),))
    for name in ("1", other):
        wanted = Change(after=(Dependency(application=name),))
        said = refused(service, lambda turn, w=wanted: change(service.place.jobs, turn, ANN, "1.2", w))
        assert "nothing in a circle ever runs" in said


def test_the_bound_and_the_queue_are_of_the_array(service: Service) -> None:
    """A part has none of its own; an array that has ended has none any more."""
    key = submit(service, "1-3", at_once=1)
    jobs = service.place.jobs

    def whole(turn: Turn, key: str, wanted: Change) -> Any:
        return change_whole(jobs, turn, ANN, key, wanted)

    assert service.do(lambda turn: whole(turn, key, Change(at_once=2, name="x"))) == (Change(name="x"), "")
    partition = service.runtime.books.scheduler.cluster.partitions[DEFAULT_PARTITION]
    assert partition.applications[key].spec.at_once == 2
    assert "change that of 1" in refused(service, lambda turn: whole(turn, "1.2", Change(at_once=2)))
    assert "change that of 1" in refused(service, lambda turn: whole(turn, "1.2", Change(queue="root.default")))
    plain = service.submit()
    assert "is no array" in refused(service, lambda turn: whole(turn, plain, Change(at_once=2)))
    assert service.do(lambda turn: whole(turn, plain, Change(name="y"))) == (Change(name="y"), "")
    for part in ("1.3", "1.2"):
        service.do(lambda turn, p=part: requests.cancel(jobs, turn, ANN, p))
    finish(service, "1.1")
    assert "has ended already" in refused(service, lambda turn: whole(turn, key, Change(at_once=2)))


def test_what_failed_is_submitted_again_as_an_array(service: Service) -> None:
    """With the same indices."""
    submit(service, "1-3", at_once=1)
    jobs = service.place.jobs
    for part, status in (("1.1", 0), ("1.2", 1), ("1.3", 2)):
        if part == "1.3":
            assert "only what has ended" in refused(service, lambda turn: requests.rerun(jobs, turn, ANN, "1", {}))
        finish(service, part, exit_code=status)

    def again(turn: Turn, key: str, *, failed: bool) -> tuple[str, ...]:
        submitted = requests.rerun(jobs, turn, ANN, key, {}, failed=failed).step(jobs, turn, 100)
        assert submitted is not None
        return submitted.keys

    assert service.do(lambda turn: again(turn, "1", failed=True)) == ("2",)
    assert keys(service, "2") == ["2.2", "2.3"]
    assert service.do(lambda turn: again(turn, "1.1", failed=False)) == ("3",)
    assert keys(service, "3") == ["3.1"]
    assert service.do(lambda turn: again(turn, "1.1,2", failed=False)) == ("4",)
    assert [service.job(each).spec.rerun_of for each in ("2.2", "3.1", "4.2")] == ["1", "1.1", "1"]
    assert "all of 1.1 ended well" in refused(service, lambda turn: again(turn, "1.1", failed=True))


def test_a_part_that_is_run_again_finds_the_same_in_its_environment(service: Service) -> None:
    """It does one of so many parts; with a count of those that failed it did another one."""
    jobs = service.place.jobs

    def about_its_array(key: str) -> dict[str, str]:
        env = service.place._run_spec(service.job(key), f"{key}-1").env
        return {name: value for name, value in env.items() if "ARRAY" in name and not name.endswith("_KEY")}

    key = submit(service, "2-8:2")
    first = about_its_array("1.6")
    assert first["FAIRLEAD_ARRAY_COUNT"] == "4"
    for again in ("2", "3"):
        for part in keys(service, key):
            finish(service, part, exit_code=int(part.endswith((".4", ".6"))))
        service.do(lambda turn, k=key: requests.rerun(jobs, turn, ANN, k, {}, failed=True).step(jobs, turn, 100))
        key = again
        assert (keys(service, key), about_its_array(f"{key}.6")) == ([f"{key}.4", f"{key}.6"], first)


def test_what_has_ended_of_an_array_moves_along(service: Service) -> None:
    """Who administers the queue that it is in sees all of it, and who administers the other one nothing any more."""
    lists = {"default": "dora", "other": "otto"}
    leaves = tuple(QueueSpec(name=name, admin_acl=who) for name, who in lists.items())
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    service.do(lambda turn: turn.event(Configure(ClusterSpec(partitions=(PartitionSpec(root=root),)))))
    key = submit(service, "1-3", at_once=1)
    finish(service, "1.1")
    service.do(lambda turn: change_whole(service.place.jobs, turn, ANN, key, Change(queue="root.other")))
    assert [job.queue for job in service.place.jobs.of(key)] == ["root.other"] * 3
    assert service.job("1.1").history[-1].what == "succeeded"
    assert keys(service, key, Caller("otto", 1007)) == ["1.1", "1.2", "1.3"]
    assert "there is no job '1'" in refused(
        service, lambda turn: meant(service.place.jobs, Rights(Caller("dora", 1008), turn.scheduler), key)
    )


def test_parts_that_were_changed_are_submitted_again_by_themselves(service: Service) -> None:
    """One array is one command with the same needs."""
    submit(service, "1-3", hold=True)
    jobs = service.place.jobs

    def again(turn: Turn, key: str) -> JobSpec:
        return requests.rerun(jobs, turn, ANN, key, {}).specs[0]

    service.do(lambda turn: change(jobs, turn, ANN, "1.2", Change(time_limit_ms=7000, command=("other",))))
    service.do(lambda turn: change(jobs, turn, ANN, "1.3", Change(name="third")))
    for part in ("1.1", "1.2", "1.3"):
        service.do(lambda turn, p=part: requests.cancel(jobs, turn, ANN, p))
    assert refused(service, lambda turn: again(turn, "1")).endswith("submit these again by themselves: 1.2")
    assert service.do(lambda turn: again(turn, "1.2")).command == ("other",)
    assert service.do(lambda turn: again(turn, "1.1,3")).time_limit_ms is None
    assert service.do(lambda turn: again(turn, "1.1,3")).name == "", "a name makes no difference"


def test_a_submission_of_many_parts_goes_on_where_it_was(service: Service) -> None:
    """Some a turn; with the same request it is the same array."""
    jobs = service.place.jobs
    draft = spec(array=ArraySpec(indices="1-5"))
    intake = requests.Intake(ANN, [draft, spec()], "twice", "d")
    assert service.do(lambda turn: intake.step(jobs, turn, 2)) is None
    assert keys(service, "1") == ["1.1", "1.2"]
    again = requests.Intake(ANN, [draft, spec()], "twice", "d")
    assert service.do(lambda turn: again.step(jobs, turn, 3)) is None
    assert len(keys(service, "1")) == 5
    submitted = service.do(lambda turn: again.step(jobs, turn, 3))
    assert submitted.keys == ("1", "2")
    assert service.do(lambda turn: requests.Intake(ANN, [draft, spec()], "twice", "d").step(jobs, turn, 1)).keys == (
        "1",
        "2",
    )
    assert len(jobs) == 6
    assert {tuple(entry.what for entry in service.job(f"1.{n}").history)[:2] for n in range(1, 6)} == {
        ("submitted", "placed")
    }
    assert {service.job(f"1.{n}").queue for n in range(1, 6)} == {"root.default"}


def test_what_was_broken_off_is_over_with_what_came(service: Service) -> None:
    """From the next start on; those that wait for it are told, and a repeated request goes on with it."""
    jobs = service.place.jobs
    intake = requests.Intake(ANN, [spec(array=ArraySpec(indices="1-3"))], "cut", "d")
    assert service.do(lambda turn: intake.step(jobs, turn, 1)) is None
    other = service.submit(after=(Dependency(application="1"),))
    finish(service, "1.1")
    why = service.runtime.books.scheduler.why
    assert why(other, other).code == "waits-for-others"  # type: ignore[union-attr]
    assert not jobs.arrays["1"].is_over
    service.do(lambda turn: service.place._reconcile(turn, []))
    service.do(lambda _: None)
    assert service.job(other).state is State.RUNNING
    assert service.do(lambda _: jobs.cleanable(2**60, None)) == ["1.1"]
    state = json.loads(json.dumps(jobs.dump()))
    assert json.loads(json.dumps(Jobs.load(state).dump())) == state
    assert len(Jobs.load(state).ended) == 1
    again = requests.Intake(ANN, [spec(array=ArraySpec(indices="1-3"))], "cut", "d")
    assert service.do(lambda turn: again.step(jobs, turn, 5)).keys == ("1",)
    assert keys(service, "1") == ["1.1", "1.2", "1.3"]
    assert len(jobs.ended) == 0
    service.do(lambda turn: requests.cancel(jobs, turn, ANN, other, now=True))
    service.end(f"{other}-1", stopped=True)
    for part in ("1.2", "1.3"):
        finish(service, part)
    assert service.do(lambda _: jobs.cleanable(2**60, None)) == [other, "1.1", "1.2", "1.3"]


def test_the_message_of_what_was_broken_off_is_sent(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the end of the array, though nothing of it ends at that moment."""
    sent: list[str] = []
    monkeypatch.setattr(service.place._announcing, "send", lambda job, _: sent.extend(each.what for each in job.due))
    draft = spec(array=ArraySpec(indices="1-3"), notify=(Notice(to="true"),))
    service.do(lambda turn: requests.Intake(ANN, [draft]).step(service.place.jobs, turn, 1))
    finish(service, "1.1")
    assert sent == []
    service.do(lambda turn: turn.note(ArrayBrokenOff(key="1")))
    service.do(lambda _: None)
    assert sent == ["end"]


def test_it_leaves_the_book_as_a_whole(service: Service) -> None:
    """When all of it has ended, by the end of its last part. It stays as long as one part does, however many it has."""
    submit(service, "1-2")
    jobs = service.place.jobs
    finish(service, "1.1")
    assert (len(jobs.ended), service.do(lambda _: jobs.cleanable(2**60, None))) == (0, [])
    finish(service, "1.2")
    assert service.do(lambda _: jobs.cleanable(2**60, None)) == ["1.1", "1.2"]
    state = json.loads(json.dumps(jobs.dump()))
    again = Jobs.load(state)
    assert json.loads(json.dumps(again.dump())) == state
    assert (len(again.ended), list(again.arrays)) == (2, ["1"])
    service.do(lambda turn: turn.note(JobsCleaned(before_ms=0, most=1)))
    assert [job.key for job in jobs] == ["1.1", "1.2"]
    after = service.submit()
    service.end(f"{after}-1", exit_code=0)
    service.do(lambda turn: turn.note(JobsCleaned(before_ms=0, most=2)))
    assert [job.key for job in jobs] == ["1.1", "1.2", after]
    service.do(lambda turn: turn.note(JobsCleaned(before_ms=0, most=1)))
    assert ([job.key for job in jobs], list(jobs.arrays), len(jobs.ended)) == ([after], [], 1)


def test_parts_that_are_read_back_share_what_is_equal(service: Service) -> None:
    """As when they came in: each had its own words, and a service was half as large again after a restart."""
    submit(service, "1-3")
    state = json.loads(json.dumps(service.place.jobs.dump()))
    state["jobs"][2]["spec"]["command"] = ["another"]
    again = Jobs.load(state)
    assert json.loads(json.dumps(again.dump())) == state
    first, second, third = again.arrays["1"].parts.values()
    assert (second.spec.tags is first.spec.tags, second.history[0] is first.history[0]) == (True, True)
    assert (second.queue is first.queue, second.history is first.history) == (True, False)
    assert (third.spec.command, third.spec.tags is first.spec.tags) == (("another",), False)


def test_a_restart_knows_arrays(service: Service) -> None:
    """The book is what its dump says, while parts wait, run and have ended."""
    submit(service, "1-4", at_once=2)
    finish(service, "1.1")
    state = json.loads(json.dumps(service.place.jobs.dump()))
    again = Jobs.load(state)
    assert json.loads(json.dumps(again.dump())) == state
    assert (again.arrays["1"].live, again.live_count, again.numbers.next) == (3, 3, 2)


def test_the_environment_of_an_array_counts_once(service: Service) -> None:
    """Not once for each part: all have the same."""
    submit(service, "1-4", env={"NAME": "x" * 96})
    assert tuple(service.place.jobs.taken(1000)) == (4, 100)


def test_a_quota_for_as_many_as_are_at_once_lets_a_whole_array_in(service: Service) -> None:
    """More at once are refused before anything is changed: all that are left would be refused on their way in."""
    few = QuotaSpec(name="few", queue="root.default", resources=Limits({"vcore": 2000}))
    service.do(lambda turn: turn.event(SetQuota(few)))
    key = submit(service, "1-4", at_once=2)
    change_to = Change(at_once=3, name="x")
    said = refused(service, lambda turn: change_whole(service.place.jobs, turn, ANN, key, change_to))
    assert said.startswith(f"array {key} cannot have so many at once: needs cpu 1; quota few of queue root.default has")
    for n in range(1, 5):
        assert runs(service)[-1] == f"{key}.{n}-1"
        finish(service, f"{key}.{n}")
    assert states(service, key) == ["succeeded"] * 4


def test_more_at_once_in_another_queue_are_asked_of_the_quotas_of_that_queue(service: Service) -> None:
    """Not of those of the queue that the array leaves; what is in line already counts in the new one."""
    few = QuotaSpec(name="few", queue="root.default", resources=Limits({"vcore": 2000}))
    root = QueueSpec(name="root", submit_acl="*", queues=(QueueSpec(name="default"), QueueSpec(name="wide")))
    service.do(lambda turn: turn.event(Configure(ClusterSpec(partitions=(PartitionSpec(root=root),), checksum="2"))))
    service.do(lambda turn: turn.event(SetQuota(few)))
    key = submit(service, "1-4", at_once=2)
    change_whole_to = lambda turn, **to: change_whole(service.place.jobs, turn, ANN, key, Change(**to))  # noqa: E731
    assert service.do(lambda turn: change_whole_to(turn, queue="wide", at_once=3)) == (Change(), "")
    assert service.job(f"{key}.1").queue == "root.wide"
    assert service.runtime.books.scheduler.cluster.partitions[DEFAULT_PARTITION].applications[key].spec.at_once == 3
    said = refused(service, lambda turn: change_whole_to(turn, queue="root.default", at_once=4))
    assert "quota few of queue root.default" in said
    assert service.job(f"{key}.1").queue == "root.wide"
