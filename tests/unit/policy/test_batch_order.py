"""The order of batch work: non-idle before idle, retried before not, priority, creation."""

from __future__ import annotations

import pytest
from invariants.books import check_books

from fairlead.core.model.decisions import Allocated, PriorityChanged
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, SetPriority
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
    RetrySpec,
)
from fairlead.scheduler import Scheduler

HOUR = 3_600_000


def cluster(*properties: tuple[str, str]) -> Scheduler:
    leaves = (QueueSpec(name="q", properties=dict(properties)), QueueSpec(name="other"))
    return Scheduler(
        ClusterSpec(
            partitions=(PartitionSpec(root=QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)),)
        )
    )


def submit(s: Scheduler, name: str, priority: int = 0, at_ms: int = 0, **more: object) -> None:
    queue = str(more.pop("queue", "root.q"))
    s.handle(AddApplication(ApplicationSpec(id=name, queue=queue)), at_ms)
    spec = AskSpec(application=name, key=name, resources=Resources({"vcore": 1}), priority=priority, **more)  # type: ignore[arg-type]
    s.handle(AddAsks((spec,)), at_ms)


def order(s: Scheduler, at_ms: int, room: int = 100) -> list[str]:
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": room}))), at_ms)
    started = [d.application for d in s.schedule(at_ms) if isinstance(d, Allocated)]
    check_books(s)
    return started


def test_the_table_of_six_tasks() -> None:
    """Idle tasks come after all others, whatever their priority; then priority, then the time of creation."""
    s = cluster()
    submit(s, "F", 2, 10 * HOUR, idle=True)
    submit(s, "D", 4, 10 * HOUR, idle=True)
    submit(s, "C", 2, 10 * HOUR)
    submit(s, "A", 9, 10 * HOUR)
    submit(s, "E", 4, 11 * HOUR, idle=True)
    submit(s, "B", 9, 11 * HOUR)
    assert order(s, 12 * HOUR) == ["A", "B", "C", "D", "E", "F"]


@pytest.mark.parametrize("sorting", ["fifo", "fair"])
@pytest.mark.parametrize("priorities", ["enabled", "disabled"])
def test_a_retry_goes_ahead_however_high_the_priority_of_others(sorting: str, priorities: str) -> None:
    """In every way of sorting a queue; among retries the higher priority is first."""
    s = cluster(("application.sort.policy", sorting), ("application.sort.priority", priorities))
    submit(s, "high", 2**31 - 1)
    submit(s, "low", 1)
    submit(s, "again", -5, attempt=2, first_key="x")
    submit(s, "sooner", 0, attempt=3, first_key="y")
    assert order(s, 0)[:2] == ["sooner", "again"]


def test_a_retry_goes_ahead_in_its_own_queue_only() -> None:
    """Other queues compare priorities as they did."""
    s = cluster()
    submit(s, "again", 0, attempt=2, first_key="x")
    submit(s, "high", 5, queue="root.other")
    assert order(s, 0, room=1) == ["high"]


def test_an_idle_retry_goes_ahead_in_the_whole_group() -> None:
    """Of all idle work, of whatever queue; but not of work that is not idle."""
    s = cluster()
    submit(s, "idle", 9, idle=True)
    submit(s, "again", 0, idle=True, attempt=2, first_key="x", queue="root.other", retry=RetrySpec(limit=2))
    submit(s, "other", -3)
    assert order(s, 0) == ["other", "again", "idle"]


def test_idle_work_that_came_back_without_retry_does_not_go_ahead() -> None:
    """It gave back what it had borrowed: that is nothing to be rewarded for."""
    s = cluster()
    submit(s, "idle", 1, idle=True)
    submit(s, "back", 0, idle=True, attempt=2, first_key="x")
    assert order(s, 0) == ["idle", "back"]


def test_an_application_stands_where_its_first_ask_stands() -> None:
    """A retried ask takes the others of its application along; inside, it is first."""
    s = cluster()
    submit(s, "high", 9)
    submit(s, "job", 0)
    again = AskSpec(
        application="job", key="x#2", resources=Resources({"vcore": 1}), priority=0, attempt=2, first_key="x"
    )
    s.handle(AddAsks((again,)), 0)
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 9}))), 0)
    assert [d.key for d in s.schedule(0) if isinstance(d, Allocated)] == ["x#2", "high", "job"]


def test_idle_work_does_not_speak_for_its_queue() -> None:
    """What a queue reports upwards is the highest priority of what is not idle."""
    s = cluster()
    submit(s, "idle", 9, idle=True)
    submit(s, "other", 2)
    queue = s.cluster.partitions["default"].root.children["q"]
    assert queue.reported == 2


def test_a_change_of_priority_counts_at_once_and_is_recorded() -> None:
    """With who and why; of idle work too."""
    s = cluster()
    submit(s, "first", 5)
    submit(s, "second", 1)
    submit(s, "third", 1, idle=True)
    submit(s, "fourth", 3, idle=True)
    [changed] = s.handle(SetPriority("second", "second", 6, "ann", why="the paper is due"), 1)
    assert changed == PriorityChanged("second", "second", 1, 6, "ann", "the paper is due")
    s.handle(SetPriority("third", "third", 4, "ann"), 1)
    assert order(s, 2) == ["second", "first", "third", "fourth"]
