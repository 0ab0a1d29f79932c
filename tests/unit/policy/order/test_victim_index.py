"""The table of what may be stopped: never leaves out a node that has a plan, and follows every change."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from priority_clusters import PriorityCluster, cores, on

from fairlead.core.books.partition import Partition
from fairlead.core.model.events import Cause, DrainNode
from fairlead.core.model.specs import QueueSpec
from fairlead.policy.order import victim_levels
from fairlead.policy.order.effective_priority import EVERYBODY, Reach
from fairlead.policy.order.victim_index import Guards, Level, Stoppable, leaves_for_others

Found = list[tuple[tuple[int, ...], list[str]]]


def world(nodes: dict[str, int] | None = None) -> tuple[PriorityCluster, Partition, Stoppable]:
    """Leaves `a` and `b`, of which `b` counts ten more."""
    b = QueueSpec(name="b", properties={"priority.offset": "10"})
    c = PriorityCluster(QueueSpec(name="a"), b, nodes=nodes or {"n1": 4, "n2": 4}, enabled=False)
    return c, c.s.cluster.partitions["default"], Stoppable()


def levels(part: Partition, table: Stoppable, cores: int, priority: int) -> Found:
    """What is offered for an ask of leaf `a`, the levels that offer nothing left out."""
    [app] = [app for app in part.applications.values() if app.id == "ask"]
    ask = next(iter(app.asks.values()))
    assert (ask.priority, ask.items) == (priority, (("vcore", cores * 1000),))
    table.keep_up(part)
    needs = table.needs((("vcore", cores * 1000),), {})
    return offering(table.by_level(Reach(part, ask), needs))


def offering(levels: Iterator[Level]) -> Found:
    """The levels with the names of their nodes, those without any left out."""
    found = [(level, [n.id for n in nodes]) for level, nodes in levels]
    return [(level, names) for level, names in found if names]


def test_nodes_come_at_the_level_of_the_highest_that_has_to_go() -> None:
    c, part, table = world()
    c.fill("low", 3, 1, tags=on("n1"))
    c.fill("lower", 4, 0, tags=on("n2"))
    c.submit("ask", 2, 5)
    assert levels(part, table, 2, 5) == [((0, 0), ["n2"]), ((1, 1), ["n1"])]


def test_a_node_with_room_needs_nothing_stopped() -> None:
    c, part, table = world()
    c.fill("low", 3, 1, tags=on("n1"))
    c.submit("ask", 4, 5)
    assert levels(part, table, 4, 5)[0] == ((), ["n2"])


def test_work_that_stands_above_helps_nothing() -> None:
    """As seen where the queues meet: ten more in leaf `b`."""
    c, part, table = world({"n1": 4})
    c.fill("high", 4, 0, queue="root.b")
    c.submit("ask", 2, 5)
    assert levels(part, table, 2, 5) == []


def test_in_a_level_the_smallest_shortage_comes_first() -> None:
    c, part, table = world({"n1": 4, "n2": 4, "n3": 4})
    for name, used in (("n1", 4), ("n2", 3), ("n3", 4)):
        c.fill(f"on-{name}", used, 0, tags=on(name))
    c.submit("ask", 3, 5)
    assert levels(part, table, 3, 5) == [((0, 0), ["n2", "n1", "n3"])]


def test_a_node_that_is_closed_is_not_offered() -> None:
    c, part, table = world()
    for name in ("n1", "n2"):
        c.fill(f"on-{name}", 4, 0, tags=on(name))
    c.submit("ask", 3, 5)
    c.handle(DrainNode("n1"))
    assert levels(part, table, 3, 5) == [((0, 0), ["n2"])]


def test_what_was_told_to_stop_counts_as_room() -> None:
    """And is nothing that could be stopped."""
    c = PriorityCluster(nodes={"n1": 4})
    part, table = c.s.cluster.partitions["default"], Stoppable()
    c.fill("low", 4, 0)
    c.submit("strong", 4, 9)
    assert c.run() == ([], ["low"])
    low = part.applications["low"].asks["low"]
    assert leaves_for_others(low)
    table.keep_up(part)
    assert list(table.running_groups()) == []
    assert table.needs((("vcore", 1000),), {})[0].missing.tolist() == [1000.0], "it is held for the nominated ask"
    held = part.applications["strong"].asks["strong"]
    assert table.needs((("vcore", 1000),), {part.nodes.nodes["n1"]: [held]})[0].missing.tolist() == [-3000.0]


def test_the_table_follows_every_change() -> None:
    """It offers what one offers that was made anew."""
    rng = random.Random(4)
    c, part, table = world({f"n{i}": 4 for i in range(4)})
    running: list[str] = []
    c.submit("ask", 4, 50)
    c.run()
    for step in range(120):
        if running and rng.random() < 0.45:
            name = running.pop(rng.randrange(len(running)))
            c.gone(name, cause=Cause.FINISHED)
        else:
            c.submit(f"w{step}", rng.randint(1, 3), rng.randint(0, 3), queue=rng.choice(["root.a", "root.b"]))
        started, _ = c.run()
        running += [name.partition("@")[0] for name in started if not name.startswith("ask")]
        if "ask" in [name.partition("@")[0] for name in started]:
            c.finished("ask")
            c.submit("ask", 4, 50)
        if part.applications["ask"].asks and part.applications["ask"].asks["ask"].pending:
            kept = levels(part, table, 4, 50)
            part.nodes.since_search.update(dict.fromkeys(part.nodes.nodes.values()))
            assert kept == levels(part, Stoppable(), 4, 50)


def test_the_lowest_that_may_be_stopped_is_told() -> None:
    """It follows what starts, is told to stop, and ends; what may not be stopped is none."""
    safe = QueueSpec(name="safe", properties={"preemption.policy": "disabled"})
    c = PriorityCluster(QueueSpec(name="a"), QueueSpec(name="b"), safe, nodes={"n1": 4, "n2": 4}, enabled=False)
    part, table = c.s.cluster.partitions["default"], Stoppable()

    def lowest() -> int:
        table.keep_up(part)
        return table.lowest()

    assert lowest() == EVERYBODY
    c.fill("safe", 1, -5, "root.safe")
    assert lowest() == EVERYBODY
    c.fill("b", 1, 7, "root.b")
    assert lowest() == 7
    c.fill("idle", 1, 2, idle=True)
    c.fill("a", 1, 3)
    assert lowest() == 2
    c.submit("wide", 4, 9, tags=on("n1"))
    c.finished("idle")
    assert lowest() == 3
    c.finished("a")
    assert lowest() == 7


def test_all_that_may_be_stopped_by_anybody_is_offered_by_its_rank() -> None:
    safe = QueueSpec(name="safe", properties={"preemption.policy": "disabled"})
    b = QueueSpec(name="b", properties={"priority.offset": "10"})
    c = PriorityCluster(QueueSpec(name="a"), b, safe, nodes={"n1": 4, "n2": 4, "n3": 4}, enabled=False)
    part, table = c.s.cluster.partitions["default"], Stoppable()
    c.fill("safe", 4, -5, "root.safe", tags=on("n3"))
    c.fill("b", 4, 1, "root.b", tags=on("n2"))
    c.fill("a", 4, 3, tags=on("n1"))
    table.keep_up(part)
    needs = table.needs((("vcore", 4000),), {})
    assert offering(table.by_level(None, needs)) == [((3, 3), ["n1"]), ((11, 1), ["n2"])]


@pytest.mark.parametrize("may_go", [4, 3, 1])
@pytest.mark.parametrize("is_own", [False, True])
def test_no_leaf_gives_more_than_its_guarantee_leaves(may_go: int, is_own: bool) -> None:
    """But for an ask of its own, which may do as it likes there."""
    a = QueueSpec(name="a", guaranteed=cores(6 - may_go))
    c = PriorityCluster(a, QueueSpec(name="b"), nodes={"n1": 4, "n2": 4}, enabled=False, rule="both")
    part, table = c.s.cluster.partitions["default"], Stoppable()
    c.fill("a", 4, 1, tags=on("n1"))
    c.fill("b", 2, 2, "root.b", tags=on("n2"))
    c.fill("also", 2, 3, tags=on("n2"))
    leaf = part.root.find("root.a")
    assert leaf is not None
    guards = Guards(part, leaf.lineage if is_own else ())
    expected = {4: [((1, 1), ["n1"]), ((3, 3), ["n2"])], 3: [((3, 3), ["n2"])], 1: []}
    for _ in range(2):  # The second time from what is known.
        table.keep_up(part)
        found = offering(table.by_level(None, table.needs((("vcore", 4000),), {}), guards))
        assert found == expected[4 if is_own else may_go]


def test_the_most_that_a_queue_has_on_one_node_is_known_of_leaves_and_above() -> None:
    p = QueueSpec(name="p", parent=True, queues=(QueueSpec(name="a"), QueueSpec(name="b")))
    safe = QueueSpec(name="safe", properties={"preemption.policy": "disabled"})
    c = PriorityCluster(p, safe, nodes={"n1": 4, "n2": 4}, enabled=False)
    part, table = c.s.cluster.partitions["default"], Stoppable()
    c.fill("a1", 1, 1, "root.p.a", tags=on("n1"))
    c.fill("a2", 2, 2, "root.p.a", tags=on("n1"))
    c.fill("b1", 2, 1, "root.p.b", tags=on("n2"))
    c.fill("b2", 1, 1, "root.p.b", tags=on("n1"))
    c.fill("safe", 2, 1, "root.safe", tags=on("n2"))

    def most(path: str, name: str = "vcore") -> float:
        queue = part.root.find(path)
        assert queue is not None
        table.keep_up(part)
        return table.most_on_a_node(queue, name)

    paths = ("root.p.a", "root.p.b", "root.p", "root.safe", "root")
    assert [most(path) for path in paths] == [3000, 2000, 4000, 0, 4000]
    assert most("root.p", "gpu") == 0
    c.finished("a2")
    assert [most(path) for path in paths] == [1000, 2000, 2000, 0, 2000]


def test_asks_that_are_as_high_at_the_root_share_what_they_reach() -> None:
    """Whatever their leaves, without a fence on the way: the same rows, worked out once."""
    a, b = QueueSpec(name="a"), QueueSpec(name="b", properties={"priority.offset": "10"})
    fenced = QueueSpec(name="f", properties={"priority.policy": "fence"})
    c = PriorityCluster(a, b, fenced, nodes={"n1": 4}, enabled=False)
    part = c.s.cluster.partitions["default"]
    for name, priority in (("a", 15), ("b", 5), ("f", 15)):
        c.submit(name, 1, priority, f"root.{name}")
    by_queue = {app.queue.name: Reach(part, ask) for app in part.applications.values() for ask in app.asks.values()}
    assert by_queue["a"].key == by_queue["b"].key != by_queue["f"].key
    leaves = [queue for queue in part.root.walk() if queue.is_leaf and queue.name != "f"]
    for leaf in leaves:
        there = by_queue["a"].below(leaf), by_queue["b"].below(leaf)
        assert there[0] == there[1]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_free_at_each_rank_says_the_same_as_the_levels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is kept of a few ranks alone."""
    chance = random.Random(seed)
    monkeypatch.setattr(victim_levels, "LEVELS_KEPT", chance.choice([0, 1, 2, 32]))
    b = QueueSpec(name="b", properties={"priority.offset": "10"})
    c = PriorityCluster(QueueSpec(name="a"), b, nodes={f"n{i}": 6 for i in range(5)}, enabled=False)
    part, table = c.s.cluster.partitions["default"], Stoppable()
    for n in range(8):
        c.fill(f"w{n}", chance.randint(1, 3), chance.randint(0, 6), chance.choice(["root.a", "root.b"]))
    for turn in range(6):
        if turn == 3:
            c.finished(chance.choice([ask.key for app in part.applications.values() for ask in app.allocated_asks()]))
        table.keep_up(part)
        items = (("vcore", chance.randint(1, 7) * 1000), ("gpu", chance.randint(0, 1)))
        levels = table.by_level(None, table.needs(items, {}))
        first = next((place for place, nodes in levels if next(nodes, None) is not None), None)
        assert table.rooms().lowest_for(items, 10**9) == first
        if first:
            assert (table.rooms().lowest_for(items, 0) or (-1,))[0] >= 0
