"""Retry: which ends are tried again, when, and as what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.decisions import Allocated, ApplicationChanged, Decision, Evict, Retried
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Checkpoint,
    Release,
    RemoveApplication,
    RemoveNode,
)
from fairlead.core.model.reasons import AttemptHeldBack
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    TAG_CREATION_TIME,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RetrySpec,
)
from fairlead.scheduler import Scheduler

HOUR_MS = 3_600_000


def cluster(*nodes: int, rule: str = "priority") -> Scheduler:
    """One leaf, preemption by priority, and nodes with so many cores (one with four if none is named)."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    part = PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule))
    s = Scheduler(ClusterSpec(partitions=(part,)))
    for number, vcore in enumerate(nodes or (4,)):
        s.handle(AddNode(NodeSpec(id=f"n{number}", capacity=Resources({"vcore": vcore}))), 0)
    s.handle(AddApplication(ApplicationSpec(id="app", queue="root.a")), 0)
    return s


def ask(s: Scheduler, key: str = "k", now_ms: int = 0, retry: RetrySpec | None = None, **fields: Any) -> list[Decision]:
    """Submit one ask of one core and let it run if it can."""
    spec = {"application": "app", "key": key, "resources": Resources({"vcore": 1}), "retry": retry} | fields
    s.handle(AddAsks((AskSpec(**spec),)), now_ms)
    return s.schedule(now_ms)


def end(s: Scheduler, key: str, cause: Cause, now_ms: int, exit_code: int | None = None) -> list[Decision]:
    """An end is reported; what followed from it, a scheduling run included."""
    decided = s.handle(Release("app", key, cause, exit_code=exit_code), now_ms)
    check_books(s)
    return [*decided, *s.schedule(now_ms)]


def retried(decisions: list[Decision]) -> list[Retried]:
    return [d for d in decisions if isinstance(d, Retried)]


def placed(decisions: list[Decision]) -> list[str]:
    return [d.key for d in decisions if isinstance(d, Allocated)]


def state(s: Scheduler) -> str:
    return str(s.cluster.partitions["default"].applications["app"].state)


@pytest.mark.parametrize(
    ("cause", "exit_code", "again"),
    [
        (Cause.INTERRUPTED, None, True),
        (Cause.PREEMPTED_BY_SCHEDULER, None, True),
        (Cause.PREEMPTED_BY_SCHEDULER, 0, True),
        (Cause.FINISHED, 1, True),
        (Cause.FINISHED, 137, True),
        (Cause.FINISHED, 2, False),
        (Cause.FINISHED, 0, False),
        (Cause.FINISHED, None, False),
        (Cause.STOPPED_BY_RM, None, False),
        (Cause.STOPPED_BY_RM, 1, False),
        (Cause.TIMEOUT, None, False),
    ],
)
def test_which_ends_are_tried_again(cause: Cause, exit_code: int | None, again: bool) -> None:
    """What was broken off, and what failed with a status that is not excepted; never what was ended or ended well."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=3, never_on=(2,)))
    decided = end(s, "k", cause, 5, exit_code)
    assert placed(decided) == (["k#2"] if again else [])
    assert [(r.key, r.new_key, r.attempt, r.due_ms) for r in retried(decided)] == [("k", "k#2", 2, 5)] * again


def test_work_without_retry_is_not_tried_again() -> None:
    """It is part of what was submitted; nothing has it by default."""
    s = cluster()
    ask(s)
    assert not retried(end(s, "k", Cause.INTERRUPTED, 5))


def test_attempts_are_linked_and_bounded() -> None:
    """Two further attempts: the third end is the last, and the application completes."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=2))
    assert placed(end(s, "k", Cause.INTERRUPTED, 1)) == ["k#2"]
    second = s.cluster.partitions["default"].applications["app"].asks["k#2"].spec
    assert (second.first_key, second.attempt) == ("k", 2)
    assert placed(end(s, "k#2", Cause.FINISHED, 2, 9)) == ["k#3"]
    assert not retried(end(s, "k#3", Cause.INTERRUPTED, 3))
    assert state(s) == "Completing"


def test_the_back_off_doubles_and_ends_at_an_hour() -> None:
    """The attempt enters when its time has come, not before."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=20, backoff_ms=30_000))
    now, key, waits = 0, "k", []
    for attempt in range(2, 12):
        (told,) = retried(end(s, key, Cause.INTERRUPTED, now))
        assert not placed(s.schedule(told.due_ms - 1))
        assert s.next_wakeup_ms() == told.due_ms
        waits.append(told.due_ms - now)
        now, key = told.due_ms, f"k#{attempt}"
        assert placed(s.schedule(now)) == [key]
    assert waits == [30_000, 60_000, 120_000, 240_000, 480_000, 960_000, 1_920_000, HOUR_MS, HOUR_MS, HOUR_MS]


def test_an_application_does_not_complete_while_an_attempt_is_to_come() -> None:
    """Nothing waits and nothing runs, and yet it is not over. It is accepted again: it holds no place meanwhile."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=1, backoff_ms=10 * 60_000))
    changed = [d for d in end(s, "k", Cause.INTERRUPTED, 0) if isinstance(d, ApplicationChanged)]
    assert [(d.state, d.cause) for d in changed] == [("Accepted", "requeueApplication")]
    assert not [d for d in s.schedule(5 * 60_000) if isinstance(d, ApplicationChanged)]
    assert state(s) == "Accepted"


def test_why_says_when_the_next_attempt_enters() -> None:
    """The question is asked with the key that the decision named."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=4, backoff_ms=7_000))
    end(s, "k", Cause.INTERRUPTED, 1_000)
    reason = s.why("app", "k#2")
    assert reason == AttemptHeldBack("k#2", 2, 5, 8_000)
    assert reason.sentence() == "attempt 2 of at most 5 enters after its back-off"


def test_an_attempt_that_is_held_back_can_be_withdrawn() -> None:
    """Its release ends the application; its timer then does nothing."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=4, backoff_ms=7_000))
    end(s, "k", Cause.INTERRUPTED, 0)
    end(s, "k#2", Cause.STOPPED_BY_RM, 1)
    assert state(s) == "Completing"
    assert not placed(s.schedule(8_000))


def test_an_end_that_is_told_twice_counts_once() -> None:
    """The second report is about an allocation that is gone: the attempt to come stays, and there is one."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=4, backoff_ms=7_000))
    end(s, "k", Cause.INTERRUPTED, 0)
    assert not retried(end(s, "k", Cause.INTERRUPTED, 1))
    assert placed(s.schedule(7_000)) == ["k#2"]


@pytest.mark.parametrize("gone", [Release("app", ""), RemoveApplication("app")])
def test_the_end_of_the_application_ends_what_is_to_come(gone: Any) -> None:
    """All of it is released, or it is removed."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=4, backoff_ms=7_000))
    end(s, "k", Cause.INTERRUPTED, 0)
    s.handle(gone, 1)
    check_books(s)
    assert not placed(s.schedule(7_000))


def test_a_lost_node_interrupts_its_work() -> None:
    """It is tried again, on another node at once."""
    s = cluster(4, 4)
    (first,) = [d for d in ask(s, retry=RetrySpec(limit=1)) if isinstance(d, Allocated)]
    decided = s.handle(RemoveNode(first.node), 3)
    check_books(s)
    assert [r.new_key for r in retried(decided)] == ["k#2"]
    (second,) = [d for d in s.schedule(3) if isinstance(d, Allocated)]
    assert second.key == "k#2"
    assert second.node != first.node


def test_a_preempted_victim_comes_back_behind_its_preemptor() -> None:
    """The space that it left is the preemptor's; its own next attempt waits."""
    s = cluster(1)
    ask(s, "low", retry=RetrySpec(limit=1))
    evicted = [d for d in ask(s, "high", 10, priority=9) if isinstance(d, Evict)]
    assert [e.key for e in evicted] == ["low"]
    assert placed(end(s, "low", Cause.PREEMPTED_BY_SCHEDULER, 20)) == ["high"]
    assert s.why("app", "low#2") is not None


def test_an_interrupted_task_goes_before_one_that_waits_already() -> None:
    """10:00 A (2c, retry) runs, B (2c, same priority) waits, nothing is free; 11:00 A is interrupted: A1 runs, B waits.

    So it does however high the priority of what was not tried before, in its own queue; where rank decides, among those
    of its priority.
    """
    for priority, rule in ((0, "guarantee"), (9, "guarantee"), (0, "priority")):
        s = cluster(2, rule=rule)
        s.handle(AddApplication(ApplicationSpec(id="other", queue="root.a")), 0)
        two = Resources({"vcore": 2})
        ask(s, "A", retry=RetrySpec(limit=3), resources=two)
        ask(s, "B", 1, application="other", resources=two, priority=priority, allow_preempt_other=False)
        assert placed(end(s, "A", Cause.INTERRUPTED, HOUR_MS)) == ["A#2"]
        assert s.why("other", "B") is not None


def test_the_next_attempt_keeps_the_priority_that_was_given_meanwhile() -> None:
    """It asks for what the first asked for, and is created when it enters; a gang's member comes back by itself."""
    s = cluster()
    tags = {TAG_CREATION_TIME: "0", "team": "red"}
    ask(s, retry=RetrySpec(limit=1), tags=tags, task_group="workers")
    s.cluster.partitions["default"].applications["app"].asks["k"].priority = 7
    end(s, "k", Cause.INTERRUPTED, 60_000)
    again = s.cluster.partitions["default"].applications["app"].asks["k#2"]
    assert (again.priority, again.created_ms, again.spec.task_group) == (7, 60_000, "")
    assert dict(again.spec.tags) == {"team": "red"}


def test_the_name_of_an_attempt_that_is_taken_is_said() -> None:
    """Nothing is lost in silence."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=1))
    ask(s, "k#2")
    (refused,) = [d for d in end(s, "k", Cause.INTERRUPTED, 1) if type(d).__name__ == "AskRejected"]
    assert "attempt 2 of k cannot enter" in refused.reason.sentence()


def test_a_checkpoint_is_remembered_for_what_runs() -> None:
    """The time of the last one; unknown and waiting asks are passed over."""
    s = cluster(1)
    ask(s)
    ask(s, "waits")
    for key in ("k", "waits", "nobody"):
        s.handle(Checkpoint("app", key), 500)
    asks = s.cluster.partitions["default"].applications["app"].asks
    assert [asks[key].checkpoint_ms for key in ("k", "waits")] == [500, None]


def test_a_restart_in_the_back_off_changes_nothing() -> None:
    """The attempt to come and its timer are part of the state."""
    s = cluster()
    ask(s, retry=RetrySpec(limit=4, backoff_ms=7_000, never_on=(3,)), idle=True, labels={"a": "b"})
    s.handle(Checkpoint("app", "k"), 50)
    end(s, "k", Cause.INTERRUPTED, 100)
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    assert again.dump() == s.dump()
    assert placed(again.schedule(7_100)) == placed(s.schedule(7_100)) == ["k#2"]
    assert again.dump() == s.dump()


def test_what_is_requeued_comes_back_whatever_its_retries() -> None:
    """At once, behind nobody and ahead of nobody, and that counts for no try."""
    s = cluster(1)
    ask(s, retry=RetrySpec(limit=1, backoff_ms=1_000))
    ask(s, "other")
    decided = end(s, "k", Cause.REQUEUED, 10)
    assert Retried("app", "k", "k#2", 2, 10) in decided
    spec = next(a.spec for a in s.cluster.partitions["default"].applications["app"].asks.values() if a.key == "k#2")
    assert (spec.attempt, spec.requeues, spec.tries, spec.retried) == (2, 1, 1, False)
    ask(s, "plain", now_ms=20)
    end(s, "other", Cause.REQUEUED, 30)
    check_books(s)


def test_what_is_requeued_gives_back_its_place_among_those_that_run() -> None:
    """Where only one application may run, another one can take its turn; its back-off is that of its tries."""
    s = cluster(1)
    ask(s, retry=RetrySpec(limit=2, backoff_ms=1_000))
    end(s, "k", Cause.REQUEUED, 10)
    decided = end(s, "k#2", Cause.FINISHED, 20, exit_code=1)
    assert Retried("app", "k#2", "k#3", 3, 1_020) in decided
    assert s.why("app", "k#3") == AttemptHeldBack("k#3", 3, 4, 1_020)
