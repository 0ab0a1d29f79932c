"""Demands: their line, what is in their way, and what wakes them."""

from __future__ import annotations

import random

import pytest
from loose_books import application, ask, tree

from fairlead.core.books.asks import Batch
from fairlead.core.books.demand import Demand, Shape
from fairlead.core.books.queues import Queue

PLAIN = Shape(((("vcore", 1),), ""))


def demand_in(leaf: Queue) -> Demand:
    return leaf.demand(PLAIN, ("key", None, 0))


def leaf_of(*paths: str) -> Queue:
    return tree(*(paths or ("root.a",)))[(paths or ("root.a",))[-1]]


def put(demand: Demand, name: str, key: int) -> Batch:
    """A batch of an application of its own, in line under this key."""
    app = application(demand.leaf, name)
    batch = Batch(app, (demand.shape, "", True, False), demand)
    batch.add(ask(app, name))
    demand.pending += 1
    demand.put((key,), demand.leaf.next_stamp(), batch)
    return batch


@pytest.mark.parametrize("count", [8, 25, 200])
def test_all_come_in_order_however_they_were_put_and_taken_out(count: int) -> None:
    """Put anew under another key now and then, as the order of applications changes."""
    chance, demand = random.Random(1), demand_in(leaf_of())
    batches = [put(demand, f"app{number}", chance.randint(0, 20)) for number in range(count)]
    keys = {}
    for batch in batches:
        if chance.random() < 0.3:
            demand.take_out(batch)
        else:
            keys[batch] = (chance.randint(0, 20),)
            demand.put(keys[batch], demand.leaf.next_stamp(), batch)
    found = [entry[2] for entry in demand.entries()]
    assert count > len(found) > count // 2
    assert found == sorted(keys, key=lambda batch: (keys[batch], batch.stamp))


def test_the_first_is_that_with_the_least_key() -> None:
    demand = demand_in(leaf_of())
    batches = {key: put(demand, f"app{key}", key) for key in (4, 1, 3)}
    assert [entry[2] for entry in demand.entries()] == [batches[1], batches[3], batches[4]]
    first = demand.first()
    assert first is not None
    assert first[2] is batches[1]
    assert demand.live == 3


def test_what_is_taken_out_counts_no_longer() -> None:
    demand = demand_in(leaf_of())
    one, two = put(demand, "one", 1), put(demand, "two", 2)
    demand.take_out(one)
    demand.take_out(one)
    first = demand.first()
    assert first is not None
    assert (first[2], demand.live) == (two, 1)


def test_one_in_line_makes_its_leaf_ready_and_the_last_ends_that() -> None:
    leaf = leaf_of()
    demand = demand_in(leaf)
    batch = put(demand, "one", 1)
    assert leaf.ready == {PLAIN: 1}
    demand.take_out(batch)
    assert leaf.ready == {}


def test_a_blocked_demand_is_not_ready_until_it_is_woken() -> None:
    """Also what comes in line meanwhile waits."""
    leaf = leaf_of()
    demand = demand_in(leaf)
    put(demand, "one", 1)
    demand.block(leaf)
    put(demand, "two", 2)
    assert (leaf.ready, list(leaf.waiting), demand.obstacle) == ({}, [demand], leaf)
    demand.tried = 7
    demand.wake()
    assert (leaf.ready, leaf.waiting, demand.obstacle) == ({PLAIN: 1}, {}, None)
    assert demand.tried == -1, "what could not be stopped for it is tried again"


def test_it_waits_at_a_gate_or_for_room_and_for_one_thing_at_a_time() -> None:
    root, leaf = tree("root.a").values()
    demand = demand_in(leaf)
    demand.block(leaf, at_gate=True)
    assert (list(leaf.gated), leaf.waiting) == ([demand], {})
    demand.block(root)
    assert (leaf.gated, list(root.waiting)) == ({}, [demand])


def test_to_wake_what_is_not_blocked_changes_nothing() -> None:
    leaf = leaf_of()
    demand = demand_in(leaf)
    put(demand, "one", 1)
    demand.wake()
    assert leaf.ready == {PLAIN: 1}


def test_attempts_that_were_put_off_are_due_when_it_is_woken() -> None:
    leaf = leaf_of()
    demand = demand_in(leaf)
    batch = put(demand, "one", 1)
    demand.deferred[batch] = None
    demand.wake()
    assert (list(leaf.due), demand.deferred) == ([batch], {})


def test_with_its_last_batch_it_goes() -> None:
    leaf = leaf_of()
    demand = demand_in(leaf)
    one, two = put(demand, "one", 1), put(demand, "two", 2)
    demand.forget(one)
    assert leaf.every_demand() == [demand]
    demand.forget(two)
    assert leaf.every_demand() == []


def test_entries_that_count_no_longer_are_thrown_away_in_time() -> None:
    demand = demand_in(leaf_of())
    batch = put(demand, "one", 1)
    for key in range(1_000):
        demand.put((key,), demand.leaf.next_stamp(), batch)
    assert len(demand.line) < 100
    first = demand.first()
    assert first is not None
    assert first[0] == (999,)


def test_a_shape_without_constraints_is_plain() -> None:
    assert PLAIN.is_plain
    assert (PLAIN.items, PLAIN.required_node) == ((("vcore", 1),), "")
