"""The search for the first node with room: the same answer as walking all of them, whatever happened before."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.node_columns import Columns
from fairlead.core.books.node_order import ORDERS_KEPT, SEARCHES
from fairlead.core.books.nodes import NodeTable
from fairlead.core.books.queues import Queue
from fairlead.core.model.constraints import NO_SCHEDULE, Taint
from fairlead.core.model.resources import Items, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSortSpec, NodeSpec

SIZES: list[Items] = [(("gpu", g), ("vcore", v)) if g else (("vcore", v),) for g in (0, 1) for v in (1, 2, 3, 5, 8)]
POLICIES = ("binpacking", "fair")


class World:
    """A table of nodes to which random things happen."""

    def __init__(self, rng: random.Random, nodes: int, policy: str) -> None:
        self.rng = rng
        self.table = NodeTable(NodeSortSpec(policy=policy))
        self.made = 0
        for _ in range(nodes):
            self.add()

    def add(self) -> None:
        """A node joins, some with a resource that the others have not."""
        self.made += 1
        amounts = {"vcore": self.rng.choice((8, 8, 16))} | ({"gpu": 2} if self.rng.random() < 0.3 else {})
        node = Node(NodeSpec(id=f"n{self.made * 7 % 1000:03d}", capacity=Resources(amounts)), self.made)
        node.set_capacity(Resources(amounts))
        if node.id not in self.table.nodes:
            self.table.add(node)

    def ask(self, items: Items) -> Ask:
        """An ask of this size that is in no line."""
        self.made += 1
        app = Application(ApplicationSpec(id="a", queue="root.a"), Queue("a", None, 1, leaf=True, managed=True), 1, 0)
        return Ask(app, AskSpec(application="a", key=f"k{self.made}", resources=Resources(dict(items))), self.made, 0)

    def start(self, node: Node, items: Items) -> None:
        """Work starts there."""
        node.take(self.ask(items))
        self.table.lost(node)

    def step(self) -> None:
        """One thing happens to one node."""
        rng, table = self.rng, self.table
        node = rng.choice(sorted(table.nodes.values(), key=lambda n: n.id))
        what = rng.randrange(16)
        if what < 6:
            if node.allocations:
                node.give_back(next(iter(node.allocations)))
                table.gained(node)
        elif what == 6:
            node.hold(self.ask(rng.choice(SIZES)))
            table.touch(node)
        elif what == 7 and node.held:
            node.unhold(next(iter(node.held)))
            table.gained(node)
        elif what == 8:
            node.schedulable = not node.schedulable
            (table.gained if node.schedulable else table.touch)(node)
        elif what == 9:
            taints = () if node.keeps_away else (Taint("t", "", NO_SCHEDULE),)
            table.describe(node, {}, taints)
        elif what == 10:
            self.reserve_or_free(node)
        elif what == 11:
            table.resize(node, Resources({"vcore": rng.choice((4, 8, 16))}))
        elif what == 12:
            self.add()
        elif what == 13 and len(table.nodes) > 2:
            table.end_foreign("f" if "f" in node.foreign else "")
            table.remove(node)
        elif what == 14:
            resources = Resources(dict(rng.choice(SIZES)))
            table.end_foreign("f")
            table.set_foreign(node, AskSpec(application="", key="f", resources=resources), 0)
        elif rng.random() < 0.1:
            table.resort(NodeSortSpec(policy=rng.choice(POLICIES), weights={"vcore": 1.0, "gpu": rng.random()}))

    def reserve_or_free(self, node: Node) -> None:
        """It is set aside, or no longer."""
        if node.reservations:
            node.reservations.clear()
            self.table.gained(node)
        else:
            node.reservations[self.ask(SIZES[0])] = 0
            self.table.touch(node)

    def walked(self, items: Items) -> Node | None:
        """The plain way."""
        room = (n for n in self.table.every() if n.is_common and all(v <= n.free.get(name, 0) for name, v in items))
        return next(room, None)

    def tightest(self, items: Items) -> list[Node]:
        """The plain way."""
        open_nodes = [n for n in self.table.every() if n.is_open and n.fits_total(items)]
        return sorted(open_nodes, key=lambda n: left_free(n, items))  # Those that leave as much: in order.


def left_free(node: Node, items: Items) -> float:
    """How much of what is free on a node an amount would leave, summed over its resources as parts of the free."""
    left, asked = 0.0, dict(items)
    for name, free in sorted(node.free.items()):
        left += (free - asked.get(name, 0)) / free if free > asked.get(name, 0) else 0.0
    return left


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), nodes=st.sampled_from([3, 12, 13, 30, 80]), policy=st.sampled_from(POLICIES))
def test_the_search_answers_as_a_walk_over_all_nodes(seed: int, nodes: int, policy: str) -> None:
    """With starts, ends, holds, reservations, drains, taints, and nodes that come, go and change."""
    rng = random.Random(seed)
    world = World(rng, nodes, policy)
    quiet = rng.random() < 0.5
    sizes = [*SIZES, *((("vcore", 1), (f"x{i}", 1)) for i in range(2 * ORDERS_KEPT))] if rng.random() < 0.2 else SIZES
    for _ in range(400):
        if rng.random() < (0.1 if quiet else 0.6):
            world.step()
        items = rng.choice(sizes)
        found = world.table.order.first_fit(items)
        assert found is world.walked(items), f"{items}"
        if found is not None and rng.random() < 0.9:
            world.start(found, items)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), nodes=st.sampled_from([1, 3, 13, 40]), policy=st.sampled_from(POLICIES))
def test_the_tightest_nodes_come_first_as_in_a_walk_over_all_nodes(seed: int, nodes: int, policy: str) -> None:
    """The whole order, after every change."""
    rng = random.Random(seed)
    world = World(rng, nodes, policy)
    columns = world.table.columns
    for _ in range(200):
        world.step()
        items = rng.choice(SIZES)
        columns.sync()
        found = list(columns.tightest_first(columns.could_hold(columns.open, items), items))
        assert found == world.tightest(items), f"{items}"
        if found and rng.random() < 0.5 and world.walked(items) is found[0]:
            world.start(found[0], items)


def test_what_a_node_has_not_left_makes_it_no_worse_for_what_asks_for_none() -> None:
    """Of two nodes that are full, the one whose GPUs are in use too is the tighter one for work without GPUs."""
    world = World(random.Random(1), 0, "fair")
    for i, gpus in enumerate((2, 0)):
        total = Resources({"vcore": 4, "memory": 8, "gpu": 2})
        node = Node(NodeSpec(id=f"n{i}", capacity=total), i)
        node.set_capacity(total)
        world.table.add(node)
        node.recompute({"vcore": 4, "memory": 6, "gpu": 2 - gpus})
    columns = world.table.columns
    columns.resized()
    columns.sync()
    items = (("memory", 1), ("vcore", 2))
    found = columns.tightest_first(columns.could_hold(columns.open, items), items)
    assert [node.id for node in found] == ["n1", "n0"]


@pytest.mark.plain
def test_full_nodes_are_not_looked_at_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fullest first, every search begins at full nodes; after a few of them no further one goes over all nodes."""
    world = World(random.Random(1), 0, "binpacking")
    for i in range(50):
        node = Node(NodeSpec(id=f"n{i:03d}", capacity=Resources({"vcore": 8})), i)
        node.set_capacity(Resources({"vcore": 8}))
        world.table.add(node)
    searches = 0
    first = Columns.first

    def counted(columns: Columns, among: object) -> Node | None:
        nonlocal searches
        searches += 1
        return first(columns, among)  # type: ignore[arg-type]

    monkeypatch.setattr(Columns, "first", counted)
    for i in range(100):
        items = (("vcore", 3 if i % 2 else 5),)
        node = world.table.order.first_fit(items)
        assert node is world.walked(items)
        assert node is not None
        world.start(node, items)
    assert searches <= 2 * SEARCHES
    assert world.table.order.first_fit((("vcore", 1),)) is None
