"""The line of a queue: what is ready below it, which places are marked, and what is forgotten."""

from __future__ import annotations

from heapq import heapify

import pytest
from loose_books import application, ask, tree

from fairlead.core.books import queue_line
from fairlead.core.books.asks import Batch
from fairlead.core.books.demand import Demand, Shape
from fairlead.core.books.queues import Queue

SHAPE = Shape(((("vcore", 1),), ""))
OTHER = Shape(((("vcore", 2),), ""))


def queues() -> tuple[Queue, Queue, Queue]:
    """Root, parent and leaf, with nothing marked."""
    made = tree("root.p.a")
    found = made["root"], made["root.p"], made["root.p.a"]
    for queue in found:
        queue.changed_children.clear()
        queue.touched = False
    return found


def batch_in(leaf: Queue, demand: Demand) -> Batch:
    """One ask that waits with this demand, in no line."""
    app = application(leaf)
    made = Batch(app, (demand.shape, "", True, False), demand)
    made.add(ask(app, "k"))
    return made


def test_a_demand_counts_as_ready_up_to_the_root() -> None:
    root, parent, leaf = queues()
    demands = [leaf.demand(SHAPE, (key, None, 0)) for key in ("one", "two")]
    for demand in demands:
        leaf.offer(demand)
    assert [queue.ready for queue in (root, parent, leaf)] == [{SHAPE: 2}] * 3
    leaf.offer_no_more(demands[0])
    assert root.ready == {SHAPE: 1}
    leaf.offer_no_more(demands[1])
    assert [queue.ready for queue in (root, parent, leaf)] == [{}] * 3


def test_a_queue_with_a_new_shape_is_put_in_its_place_anew_and_so_is_one_that_has_none_left() -> None:
    root, parent, leaf = queues()
    demand = leaf.demand(SHAPE, ("one", None, 0))
    leaf.offer(demand)
    assert (root.changed_children, parent.changed_children) == ([parent], [leaf])
    for queue in (parent, leaf):
        queue.touched = False
    leaf.offer_no_more(demand)
    assert (parent.touched, leaf.touched) == (True, True)


def test_what_is_marked_is_listed_once() -> None:
    root, _, leaf = queues()
    app = application(leaf)
    for _ in range(2):
        leaf.touch()
        leaf.touch_app(app)
    assert leaf.lineage[1].changed_children == [leaf]
    assert (root.changed_leaves, leaf.changed_apps) == ([leaf], [app])


def test_one_demand_serves_all_of_its_key_and_goes_with_the_last_batch() -> None:
    leaf = queues()[2]
    demand = leaf.demand(SHAPE, ("one", None, 0))
    assert leaf.demand(SHAPE, ("one", None, 0)) is demand
    assert leaf.demand(OTHER, ("one", None, 0)) is not demand
    assert leaf.every_demand() == [demand, leaf.demand(OTHER, ("one", None, 0))]
    demand.block(leaf)
    leaf.drop_demand(demand)
    assert [each.shape for each in leaf.every_demand()] == [OTHER]
    assert leaf.waiting == {}, "nothing wakes what is gone"


def test_attempts_that_are_due_are_counted_by_leaves() -> None:
    root, parent, leaf = queues()
    batches = [batch_in(leaf, leaf.demand(SHAPE, (key, None, 0))) for key in ("one", "two")]
    for batch in batches:
        leaf.note_due(batch)
    assert (root.due_below, parent.due_below) == (1, 1)
    assert leaf.touched
    leaf.drop_due(batches[0])
    assert root.due_below == 1
    leaf.drop_due(batches[1])
    leaf.drop_due(batches[1])
    assert (root.due_below, leaf.due_below) == (0, 0)


def test_the_place_of_a_demand_follows_its_first_entry() -> None:
    """Old entries stay in the heap and count for nothing."""
    leaf = queues()[2]
    demand = leaf.demand(SHAPE, ("one", None, 0))
    batch = batch_in(leaf, demand)
    demand.put((5,), leaf.next_stamp(), batch)
    first = demand.stamp
    demand.put((3,), leaf.next_stamp(), batch)
    assert demand.stamp > first
    assert [entry[0] for entry in leaf.heap if entry[1] == demand.stamp] == [(3,)]


def test_entries_that_count_no_longer_are_thrown_away_in_time() -> None:
    leaf = queues()[2]
    demand = leaf.demand(SHAPE, ("one", None, 0))
    demand.put((5,), leaf.next_stamp(), batch_in(leaf, demand))
    for _ in range(1_000):
        leaf.rank(demand)
    assert len(leaf.heap) < 100


def test_when_other_criteria_count_every_line_is_empty_and_knows_what_to_line_up() -> None:
    leaf = queues()[2]
    demand = leaf.demand(SHAPE, ("one", None, 0))
    batch = batch_in(leaf, demand)
    batch.app.batches[batch.key] = batch
    demand.put((5,), leaf.next_stamp(), batch)
    leaf.forget_lines()
    assert (leaf.heap, demand.line, demand.live, leaf.ready) == ([], [], 0, {})
    assert list(batch.app.out_of_line) == [batch]


@pytest.mark.plain
def test_many_demands_of_one_shape_are_not_put_in_order_anew_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of users, each with limits of its own, ask for the same: what a leaf holds does not go by its shapes."""
    _, _, leaf = queues()
    tidied: list[int] = []
    shape = Shape(((("vcore", 3),), ""))
    monkeypatch.setattr(queue_line, "heapify", lambda heap: tidied.append(len(heap)) or heapify(heap))
    for n in range(1000):
        demand = leaf.demand(shape, (f"{n}", None, 0))
        demand.put((n,), n + 1, batch_in(leaf, demand))
    assert len(leaf.heap) == 1000
    assert len(tidied) < 10
    for n in range(1000, 5000):
        demand.put((-n,), n + 1, next(iter(demand.line))[2])
    assert len(leaf.heap) < 4000
