"""The story of a work: where it was placed and why, who moved, changed, stopped it for whom, what touched it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.decisions import Allocated, ApplicationAccepted, ApplicationMoved, ApplicationRejected, Evict
from fairlead.core.events import Cause
from fairlead.core.reasons import Refused
from fairlead.local.records import WorkRefused, WorkSpec, WorkSubmitted, WorkWaits
from fairlead.local.work import State, Work, WorksError
from fairlead.local.works import Works
from fairlead.runtime.configuring import QueueDifference, QueuesReconfigured


def submitted(key: str, user: str = "ada", rule: str = "") -> WorkSubmitted:
    spec = WorkSpec(key=key, user=user, uid=1, command=("/bin/true",), queue="root.asked")
    return WorkSubmitted(work=spec, rule=rule)


def book(*keys: str, queue: str = "root.team.day") -> Works:
    works = Works()
    for key in keys:
        works.apply(submitted(key, rule="placement rule 2 (user)"), 100)
        works.follow([ApplicationAccepted(key, queue)], 100)
    return works


def work(works: Works, key: str = "1") -> Work:
    found = works.get(key)
    assert found is not None
    return found


def last(works: Works, key: str = "1") -> tuple[str, str]:
    entry = work(works, key).history[-1]
    return entry.what, entry.detail


def test_the_rule_that_chose_the_queue_is_told() -> None:
    """And the queue that it chose."""
    assert last(book("1")) == ("placed", "in root.team.day by placement rule 2 (user)")


def test_a_move_changes_the_queue_and_says_who() -> None:
    """Waiting or running."""
    works = book("1")
    works.follow([Allocated("1", "1", "n"), ApplicationMoved("1", "root.team.day", "root.other", "bob")], 200)
    assert work(works).queue == "root.other"
    assert last(works) == ("moved", "from root.team.day to root.other by bob")


def test_an_eviction_names_whom_it_is_for() -> None:
    """Key, user, queue and priority of the work that needs the room, and the rule."""
    works = book("1")
    works.apply(submitted("2", user="bob"), 150)
    works.follow([Allocated("1", "1", "n")], 160)
    works.follow([Evict("1", "1", "n", Cause.PREEMPTED_BY_SCHEDULER, on_behalf_of="2", rule="priority")], 170)
    told = "told to stop to make room for 2 of bob in root.asked, priority 0 (rule: priority)"
    assert last(works) == ("evicting", told)


def test_what_it_waits_for_is_noted_and_forgotten_when_it_starts() -> None:
    """A work that is told to wait again begins a new story."""
    works = book("1")
    works.apply(WorkWaits(key="1", code="queue-full", subject="root.team", sentence="queue is full"), 200)
    assert last(works) == ("waits", "queue is full")
    assert work(works).waits_for == "queue-full root.team"
    works.follow([Allocated("1", "1", "n")], 300)
    assert work(works).waits_for == ""
    with pytest.raises(WorksError, match="does not wait"):
        works.apply(WorkWaits(key="1", code="x", subject="", sentence="x"), 400)


def test_a_refusal_in_plain_words_replaces_the_schedulers() -> None:
    """One entry, the better sentence."""
    works = Works()
    works.apply(submitted("1"), 100)
    works.follow([ApplicationRejected("1", Refused("no placement rule matched"))], 100)
    works.apply(WorkRefused(key="1", code="submit-denied", sentence="ask ann"), 100)
    assert work(works).state is State.REJECTED
    assert (work(works).error, work(works).refusal_code) == ("ask ann", "submit-denied")
    assert [entry.what for entry in work(works).history] == ["submitted", "rejected"]
    assert last(works) == ("rejected", "ask ann")


def test_a_work_can_be_refused_before_the_scheduler_sees_it() -> None:
    """It is rejected all the same."""
    works = Works()
    works.apply(submitted("1"), 100)
    works.apply(WorkRefused(key="1", code="submit-denied", sentence="ask ann", queue="root.far"), 100)
    assert work(works).state is State.REJECTED
    assert works.live_count == 0


def reconfigured(*changes: tuple[str, str, Any, Any], partition: str = "default") -> QueuesReconfigured:
    differences = tuple(
        QueueDifference(partition=partition, queue=queue, what=what, old=old, new=new)
        for queue, what, old, new in changes
    )
    return QueuesReconfigured(version=3, who="ann", source="api", differences=differences)


def test_changes_of_its_queue_and_those_above_touch_a_work() -> None:
    """Others do not, not even one whose name begins alike, and none of another partition."""
    works = book("1", "2")
    works.follow([ApplicationMoved("2", "root.team.day", "root.tea", "ann")], 150)
    changes = [
        ("root.team", "max", {"vcore": 2000}, None),
        ("root.team.day", "properties.priority.offset", None, "5"),
        ("root.team.day.deep", "max", None, {"vcore": 1}),
    ]
    works.apply(reconfigured(*changes), 200)
    assert last(works) == (
        "configured",
        "version 3 by ann: max of root.team from vcore 2 to nothing; "
        "properties.priority.offset of root.team.day from nothing to 5",
    )
    assert last(works, "2")[0] == "moved"
    works.apply(reconfigured(("root.team", "max", None, {"vcore": 1}), partition="gpu"), 210)
    assert work(works).history[-1].at_ms == 200


def test_many_changes_are_counted() -> None:
    """The first few are told."""
    works = book("1")
    works.apply(reconfigured(*[("root.team", f"properties.p{n}", None, str(n)) for n in range(10)]), 200)
    assert last(works)[1].endswith("; properties.p3 of root.team from nothing to 3 and 6 more")


def test_the_book_with_all_of_this_is_written_down_and_read_back() -> None:
    """As JSON."""
    works = book("1")
    works.apply(WorkWaits(key="1", code="queue-full", subject="root.team", sentence="full"), 200)
    works.apply(submitted("2"), 200)
    works.apply(WorkRefused(key="2", code="no-queue", sentence="none"), 200)
    plain = json.loads(json.dumps(works.dump()))
    assert Works.load(plain).dump() == works.dump()
