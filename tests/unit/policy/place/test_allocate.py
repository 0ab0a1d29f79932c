"""The walk down the tree: whose turn it is, what happens where nothing fits, and that nothing is tried twice."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores, on

from fairlead.core.books.partition import Partition
from fairlead.core.model.events import RemoveNode
from fairlead.core.model.specs import QueueSpec
from fairlead.policy.order.pick import Lines
from fairlead.policy.place.allocate import Walk


def cluster(*queues: QueueSpec, nodes: dict[str, int] | None = None) -> tuple[PriorityCluster, Partition, Walk]:
    """By the rule `guarantee`, where the walk decides."""
    c = PriorityCluster(*queues, nodes=nodes, rule="guarantee")
    part = c.s.cluster.partitions["default"]
    lines = Lines(part)
    return c, part, Walk(part, lines)


def step(walk: Walk) -> str | None:
    """The key of what is placed next."""
    walk.lines.settle()
    found = walk.allocate_one()
    return found.key if found is not None and not isinstance(found, str) else None


def test_the_queue_with_less_of_its_share_goes_first() -> None:
    c, _, walk = cluster(QueueSpec(name="a"), QueueSpec(name="b"), nodes={"n1": 4})
    for name, queue in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")):
        c.submit(name, 1, queue=f"root.{queue}")
    assert [step(walk) for _ in range(5)] == ["a1", "b1", "a2", "b2", None]


def test_what_does_not_fit_does_not_stop_what_does() -> None:
    """Neither in its leaf nor in another one."""
    c, part, walk = cluster(QueueSpec(name="a"), QueueSpec(name="b"), nodes={"n1": 4})
    c.submit("big", 9)
    c.submit("small", 1)
    c.submit("other", 1, queue="root.b")
    assert {step(walk), step(walk)} == {"small", "other"}
    assert step(walk) is None
    assert [shape.unfit for shape in part.nodes.unfit] == [True]


def test_a_full_queue_is_passed_over() -> None:
    c, _, walk = cluster(QueueSpec(name="a", max=cores(1)), QueueSpec(name="b"), nodes={"n1": 4})
    for name in ("a1", "a2"):
        c.submit(name, 1)
    c.submit("b1", 1, queue="root.b")
    assert [step(walk) for _ in range(3)] == ["a1", "b1", None]
    c.finished("a1")
    assert step(walk) == "a2"


def test_without_a_node_nothing_is_walked() -> None:
    c, part, _ = cluster(nodes={"n1": 4})
    c.handle(RemoveNode("n1"))
    c.submit("one", 1)
    assert c.run() == ([], [])
    assert not part.nodes.unfit


@pytest.mark.parametrize("name", ["n1", "n2"])
def test_a_required_node_is_the_only_one(name: str) -> None:
    c, _, walk = cluster(nodes={"n1": 1, "n2": 4})
    c.submit("one", 2, tags=on(name))
    assert step(walk) == (None if name == "n1" else "one")
