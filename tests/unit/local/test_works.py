"""The book of works: states, histories, and that it can be rebuilt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.decisions import Allocated, ApplicationAccepted, AskRejected, Evict, PriorityChanged, Released
from fairlead.core.events import Cause
from fairlead.core.reasons import Refused
from fairlead.core.resources import Resources
from fairlead.local.records import (
    WorkCancelRequested,
    WorkEnded,
    WorkSpec,
    WorkStarted,
    WorkSubmitted,
    parse_run_key,
    run_key,
)
from fairlead.local.runs import RunReport
from fairlead.local.work import ENDED, LIVE, TRANSITIONS, State, WorksError, state_after
from fairlead.local.works import Works


def spec(key: str = "1", **changes: Any) -> WorkSpec:
    values: dict[str, Any] = {
        "key": key,
        "user": "ada",
        "uid": 1000,
        "command": ("/bin/true",),
        "queue": "root.batch",
        "resources": Resources({"vcore": 1000}),
    }
    return WorkSpec(**(values | changes))


def book(*keys: str) -> Works:
    works = Works()
    for number, key in enumerate(keys or ("1",)):
        works.apply(WorkSubmitted(work=spec(key)), 100 + number)
    return works


def state_of(works: Works, key: str = "1") -> State:
    work = works.get(key)
    assert work is not None
    return work.state


def end(key: str = "1", state: State = State.SUCCEEDED, **changes: Any) -> WorkEnded:
    return WorkEnded(key=key, attempt=1, state=state.value, **changes)


def running(*keys: str) -> Works:
    works = book(*keys)
    works.follow([Allocated(key, key, "n1") for key in keys or ("1",)], 200)
    return works


def test_work_waits_runs_and_succeeds() -> None:
    """The plain life: submitted, placed, started, ended."""
    works = book()
    assert state_of(works) is State.WAITING
    works.follow([ApplicationAccepted("1", "root.batch"), Allocated("1", "1", "n1")], 200)
    works.apply(WorkStarted(key="1", attempt=1, pid=77, started_at_ms=205), 206)
    assert state_of(works) is State.RUNNING
    works.apply(end(exit_code=0, ended_at_ms=300, cpu_ms=12), 301)
    work = works.get("1")
    assert work is not None
    assert (work.state, work.exit_code, work.cpu_ms, work.node, work.pid) == (State.SUCCEEDED, 0, 12, "n1", 77)
    assert [(h.at_ms, h.what) for h in work.history] == [
        (100, "submitted"),
        (200, "placed"),
        (200, "allocated"),
        (206, "started"),
        (300, "succeeded"),
    ]


def test_waiting_work_is_cancelled_at_once() -> None:
    """Nothing runs, so there is nothing to wait for."""
    works = book()
    works.apply(WorkCancelRequested(key="1", who="ada"), 150)
    assert state_of(works) is State.CANCELLED
    assert works.live_count == 0


def test_running_work_is_stopping_until_its_end_was_seen() -> None:
    """A cancellation is a wish; the end is a fact."""
    works = running()
    works.apply(WorkCancelRequested(key="1", who="ada"), 250)
    assert state_of(works) is State.STOPPING
    works.apply(end(state=State.CANCELLED, signal=15, stopped=True), 260)
    assert state_of(works) is State.CANCELLED


def test_an_eviction_says_for_whom() -> None:
    """The scheduler's order is noted with the work it makes room for."""
    works = running()
    works.follow([Evict("1", "1", "n1", Cause.PREEMPTED_BY_SCHEDULER, on_behalf_of="9", rule="priority")], 250)
    work = works.get("1")
    assert work is not None
    assert (work.state, work.evicted_for, work.evict_cause) == (State.STOPPING, "9", "PREEMPTED_BY_SCHEDULER")
    assert "make room for 9" in work.history[-1].detail


def test_a_place_that_the_scheduler_gave_away_stops_the_work() -> None:
    """A removed node takes its work along; nothing is left to return."""
    works = running()
    works.follow([Released("1", "1", "n1", Cause.STOPPED_BY_RM, "Node n1 Removed")], 250)
    work = works.get("1")
    assert work is not None
    assert (work.state, work.released) == (State.STOPPING, True)


def test_the_echo_of_an_end_changes_nothing() -> None:
    """The scheduler confirms what was returned; the work has ended already."""
    works = running()
    works.apply(end(exit_code=0), 250)
    before = works.dump()
    works.follow([Released("1", "1", "n1", Cause.FINISHED)], 250)
    assert works.dump() == before


def test_a_refused_ask_is_a_rejected_work() -> None:
    """The reason is kept as a sentence."""
    works = book()
    works.follow([AskRejected("1", "1", Refused("no such queue"))], 120)
    work = works.get("1")
    assert work is not None
    assert (work.state, work.error) == (State.REJECTED, "no such queue")


def test_a_changed_priority_is_noted() -> None:
    """Old, new and who."""
    works = book()
    works.follow([PriorityChanged("1", "1", 0, 7, "root")], 120)
    work = works.get("1")
    assert work is not None
    assert work.priority == 7
    assert work.history[-1].detail == "0 to 7 by root"


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
    works = running()
    if evicted:
        works.follow([Evict("1", "1", "n1", Cause.PREEMPTED_BY_SCHEDULER)], 250)
    if cancelled:
        works.apply(WorkCancelRequested(key="1", who="ada"), 251)
    work = works.get("1")
    assert work is not None
    assert state_after(work, RunReport(key="1-1", **report)) is expected


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    """A second end, or a start of work that waits, is a fault in the program."""
    works = running()
    works.apply(end(exit_code=0), 250)
    before = works.dump()
    for record in (end(exit_code=1), WorkStarted(key="1", attempt=1), WorkCancelRequested(key="1", who="x")):
        with pytest.raises(WorksError, match="work 1 is succeeded"):
            works.apply(record, 300)
    with pytest.raises(WorksError, match="there is no work 5"):
        works.apply(end("5"), 300)
    with pytest.raises(WorksError, match="submitted before"):
        works.apply(WorkSubmitted(work=spec("1")), 300)
    assert works.dump() == before


def test_no_state_leads_out_of_an_end() -> None:
    """What has ended stays ended."""
    assert {before for before, _ in TRANSITIONS} == LIVE
    assert set(State) == ENDED | LIVE


def test_the_book_can_be_rebuilt_from_its_dump() -> None:
    """Through JSON, with live and ended works and named submissions."""
    works = running("1", "2")
    works.apply(WorkSubmitted(work=spec("3", env={"A": "b"}, tags={"t": "x"}), request="r1", digest="d"), 300)
    works.apply(end("2", exit_code=1), 310)
    state = json.loads(json.dumps(works.dump()))
    again = Works.load(state)
    assert json.loads(json.dumps(again.dump())) == state
    assert [w.key for w in again.live()] == ["1", "3"]
    assert again.request(1000, "r1") == ("d", ("3",))
    assert again.next_number == 4


def test_the_oldest_ended_works_leave_the_book() -> None:
    """The book is bounded; what left it is named once, and its submission is forgotten with it."""
    works = Works(keep_ended=2)
    for number in range(1, 6):
        key = str(number)
        works.apply(WorkSubmitted(work=spec(key), request=f"r{key}", digest="d"), number)
        works.follow([Allocated(key, key, "n1")], number)
        works.apply(end(key, exit_code=0), number)
    assert [work.key for work in works] == ["4", "5"]
    assert works.dropped == ["1-1", "2-1", "3-1"]
    assert works.request(1000, "r1") is None
    assert works.request(1000, "r5") == ("d", ("5",))


def test_a_long_history_keeps_its_beginning_and_its_end() -> None:
    """The middle is dropped."""
    works = book()
    for number in range(200):
        works.follow([PriorityChanged("1", "1", number, number + 1, "ada")], 200 + number)
    work = works.get("1")
    assert work is not None
    assert len(work.history) == 64
    assert work.history[0].what == "submitted"
    assert work.history[-1].detail == "199 to 200 by ada"


def test_keys_are_not_given_out_twice() -> None:
    """Not even when runs of that name are there that the book does not know."""
    works = book("1", "2")
    works.skip_to(9)
    assert works.next_number == 9
    works.skip_to(3)
    assert works.next_number == 9


@pytest.mark.parametrize("name", ["1", "1-", "-1", "a-1", "1-a", "1-2-3", "journal.db", "１-1"])
def test_what_is_no_name_of_a_run_is_not_taken_for_one(name: str) -> None:
    """Only KEY-ATTEMPT, in plain digits."""
    assert parse_run_key(name) is None
    assert parse_run_key(run_key("12", 3)) == ("12", 3)
