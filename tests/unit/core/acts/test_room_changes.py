"""Thousands of nodes that come at once: what they change about the queues is worked out once for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.acts import reserve_node
from fairlead.core.acts.room_changes import nodes_changed, wake_all
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.events import AddApplication, AddAsks, AddNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler


@pytest.mark.plain
def test_the_tree_is_gone_over_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node changes what shares are measured against; they are measured when they are next compared."""
    queues = tuple(QueueSpec(name=f"q{i}") for i in range(50))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddApplication(ApplicationSpec(id="a", queue="root.q7")), 0)
    s.handle(AddAsks((AskSpec(application="a", key="a", resources=Resources({"vcore": 1})),)), 0)
    s.schedule(0)
    walks: list[str] = []
    walk = Queue.walk

    def counted(queue: Queue) -> Iterator[Queue]:
        walks.append(queue.path)
        return walk(queue)

    monkeypatch.setattr(Queue, "walk", counted)
    for i in range(100):
        s.handle(AddNode(NodeSpec(id=f"n{i}", capacity=Resources({"vcore": 8}))), 1)
    assert walks == []
    assert len(s.schedule(1)) > 0
    s.schedule(2)
    assert walks.count("root") == 1


def waiting(rule: str = "guarantee") -> tuple[PriorityCluster, Partition, Ask]:
    """A full node, and an ask `w` of a leaf with a bound on waiting and a limit, that was looked at in vain."""
    limits = (LimitSpec(users=("*",), max_resources=cores(9)),)
    queue = QueueSpec(name="a", guaranteed=cores(1), limits=limits, properties={"wait.max": "1h"})
    c = PriorityCluster(queue, QueueSpec(name="b"), rule=rule)
    c.fill("runs", 4, 0, "root.b")
    c.submit("w", 2)
    c.run()
    part = c.s.cluster.partitions["default"]
    return c, part, part.applications["w"].asks["w"]


def test_other_nodes_are_a_change_of_capacity_and_of_the_books() -> None:
    _, part, _ = waiting()
    version, capacity = part.books_version, part.disruption.capacity
    nodes_changed(part)
    assert (part.books_version, part.disruption.capacity) == (version + 1, capacity + 1)


def test_other_nodes_make_room_at_the_root_and_turns_are_looked_at() -> None:
    """A bound on waiting may count for something that fits nowhere until now."""
    _, part, ask = waiting()
    assert ask.shape is not None
    part.root.full[ask.shape] = None
    part.reserving.overdue.clear()
    nodes_changed(part)
    assert part.root.full == {}
    assert list(part.reserving.overdue) == [ask.app.queue]


def test_after_a_general_change_nothing_is_held_to_fit_nowhere() -> None:
    _, part, ask = waiting()
    assert ask.shape is not None
    assert ask.shape.unfit
    wake_all(part)
    assert not ask.shape.unfit
    assert part.rested_at is None


def test_after_a_general_change_nodes_that_are_set_aside_are_tried() -> None:
    _, part, ask = waiting()
    reserve_node.reserve(part, ask, part.nodes.nodes["n1"])
    part.nodes.reserved_again.clear()
    wake_all(part)
    assert list(part.nodes.reserved_again) == [ask]


def test_after_a_general_change_attempts_to_preempt_are_made_anew() -> None:
    _, part, ask = waiting()
    assert ask.batch is not None
    ask.batch.attempt_ms, ask.batch.demand.tried = 2**62, 5
    wake_all(part)
    first_ms = ask.created_ms + ask.app.queue.properties.preemption_delay_ms
    assert (ask.batch.attempt_ms, ask.batch.demand.tried) == (first_ms, -1)


def test_after_a_general_change_what_waits_for_a_limit_is_looked_at() -> None:
    _, part, ask = waiting()
    assert ask.batch is not None
    assert ask.app.allowance is not None
    ask.batch.demand.block(ask.app.allowance.ceilings[0])
    wake_all(part)
    assert ask.batch.demand.obstacle is None
