"""Asks and allocations that change their size in place: all sums follow, and what waits is looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.events import AddAsks, ReserveAsk
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import LimitSpec, QueueSpec


def resize(c: PriorityCluster, key: str, count: int) -> None:
    """Report the same work with another size."""
    spec = c.s.cluster.partitions["default"].applications[key].asks[key].spec
    c.handle(AddAsks((replace(spec, resources=Resources({"vcore": count * 1000}), node="", priority=99),)))


def used(c: PriorityCluster) -> int:
    """Cores in use, by the root's books."""
    return c.s.cluster.partitions["default"].root.allocated.get("vcore", 0) // 1000


def test_what_runs_may_grow_beyond_everything() -> None:
    """Its node, its queue and its limit; new work waits until there is room."""
    queue = QueueSpec(name="a", max=cores(3), limits=(LimitSpec(users=("*",), max_resources=cores(3)),))
    c = PriorityCluster(queue)
    c.fill("one", 2)
    resize(c, "one", 6)
    part = c.s.cluster.partitions["default"]
    assert (used(c), part.nodes.nodes["n1"].free) == (6, {"vcore": -2000})
    c.submit("more", 1)
    assert c.run() == ([], [])


def test_what_shrinks_lets_others_start() -> None:
    c = PriorityCluster()
    c.fill("one", 4)
    c.submit("two", 2)
    assert c.run() == ([], [])
    resize(c, "one", 2)
    assert c.run() == (["two@n1"], [])


def test_only_the_amount_changes() -> None:
    """What else the report says is not what it was submitted with."""
    c = PriorityCluster()
    c.fill("one", 1, 5)
    resize(c, "one", 2)
    ask = c.s.cluster.partitions["default"].applications["one"].asks["one"]
    assert (ask.priority, ask.spec.priority, ask.items) == (5, 5, (("vcore", 2000),))


def test_what_waits_is_placed_by_its_new_size() -> None:
    c = PriorityCluster()
    c.submit("one", 9)
    assert c.run() == ([], [])
    resize(c, "one", 3)
    assert c.run() == (["one@n1"], [])
    assert used(c) == 3


def test_a_kept_turn_stays_with_what_waits() -> None:
    c = PriorityCluster()
    c.submit("one", 9, 5)
    c.handle(ReserveAsk("one", "one", True, "ann", "it matters"))
    resize(c, "one", 8)
    part = c.s.cluster.partitions["default"]
    assert part.reserving.get(part.applications["one"].asks["one"]) is not None


def test_what_leaves_counts_as_gone_with_its_new_size() -> None:
    c = PriorityCluster()
    c.fill("low", 4)
    c.submit("high", 4, 9)
    c.run()
    resize(c, "low", 3)
    assert c.s.cluster.partitions["default"].root.preempting == {"vcore": 3000}
    c.gone("low")
    assert c.s.cluster.partitions["default"].root.preempting == {}


@pytest.mark.parametrize("size", [1, 7])
def test_idle_work_counts_in_its_group_with_its_new_size(size: int) -> None:
    c = PriorityCluster(QueueSpec(name="a", max=cores(1)))
    c.fill("idle", 2, idle=True)
    resize(c, "idle", size)
    root = c.s.cluster.partitions["default"].root
    assert (used(c), root.children["a"].allocated.get("vcore", 0)) == (size, 0)


def test_a_change_in_place_is_a_change_of_the_books_and_its_node_may_be_overfull() -> None:
    """What was looked at in vain is looked at again."""
    c = PriorityCluster()
    c.fill("one", 2)
    part = c.s.cluster.partitions["default"]
    resize(c, "one", 3)  # Nothing is young any more, which is a change by itself.
    part.nodes.suspects.clear()
    version = part.books_version
    resize(c, "one", 6)
    assert part.books_version > version
    assert list(part.nodes.suspects) == [part.nodes.nodes["n1"]]
