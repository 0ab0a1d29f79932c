"""Idle work: its order, what waits and what runs, and whose books it counts in."""

from __future__ import annotations

import pytest
from loose_books import application, ask, tree
from priority_clusters import PriorityCluster

from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Shape
from fairlead.core.books.idle_work import IdleWork, group_of, idle_key, payer, start
from fairlead.core.model.events import Cause


def idle(key: str = "i", path: str = "root.g.a", **more: int | bool) -> Ask:
    """An idle ask of one core in a resource group `root.g`."""
    queues = tree("root.g.a", "root.b")
    queues["root.g"].set_properties({"resource.group": "true"})
    made = ask(application(queues[path]), key, idle=True, **more)  # type: ignore[arg-type]
    made.shape = Shape((made.items, ""))
    return made


def test_the_resource_group_is_the_nearest_queue_that_says_so() -> None:
    """Above the leaf; without one it is the root."""
    assert group_of(idle().app.queue).path == "root.g"
    assert group_of(idle(path="root.b").app.queue).path == "root"


def test_a_leaf_is_no_group_of_its_own() -> None:
    """What it lends it would lend to itself."""
    leaf = tree("root.a")["root.a"]
    leaf.set_properties({"resource.group": "true"})
    assert group_of(leaf).path == "root"


def test_idle_work_counts_in_its_group_and_other_work_in_its_leaf() -> None:
    borrowed = idle()
    assert payer(borrowed).path == "root.g"
    assert payer(ask(borrowed.app, "k")).path == "root.g.a"


def test_what_starts_is_taken_from_what_waits_below_and_counts_from_the_group_up() -> None:
    borrowed = idle()
    leaf = borrowed.app.queue
    leaf.add_pending(borrowed.items)
    start(borrowed)
    assert [queue.allocated.get("vcore", 0) for queue in leaf.lineage] == [0, 1, 1]
    assert [queue.pending_sum for queue in leaf.lineage] == [0, 0, 0]


def test_the_order_of_idle_work() -> None:
    """Retried, then by priority, then by age."""
    first = idle("retried", attempt=2)
    assert not first.spec.retried, "without retry it does not go ahead"
    low, high = idle("low", priority=1), idle("high", priority=2)
    assert sorted([low, high], key=idle_key) == [high, low]
    older, younger = idle("older"), idle("younger")
    assert sorted([younger, older], key=idle_key) == [older, younger]


def test_what_waits_stands_in_one_line_for_each_leaf_and_shape() -> None:
    work = IdleWork()
    one = idle("one", priority=1)
    two = ask(one.app, "two", priority=2, idle=True)
    two.shape = one.shape
    for each in (one, two):
        work.join(each)
    [line] = work.lines.values()
    assert line == [two, one]
    work.leave(two)
    work.leave(one)
    assert not work.lines


@pytest.mark.parametrize("leaves", [False, True])
def test_another_queue_file_moves_what_runs_to_the_books_of_its_group_of_then(leaves: bool) -> None:
    """With what was told to stop."""
    work, borrowed = IdleWork(), idle()
    leaf, group, root = borrowed.app.queue.lineage
    work.running[borrowed] = None
    group.add_allocated(borrowed.items)
    if leaves:
        borrowed.evict_cause = Cause.PREEMPTED_BY_SCHEDULER
        group.add_part(borrowed.items, 1, is_leaving=True)
    work.count(-1)
    group.set_properties({})
    work.count(1)
    assert (group.allocated["vcore"], root.allocated["vcore"]) == (0, 1)
    assert (group.preempting, root.preempting) == ({}, {"vcore": 1} if leaves else {})
    assert work.use_by_queue() == {leaf.path: {"vcore": 1}, group.path: {"vcore": 1}}


def test_room_that_idle_work_could_make_is_that_of_one_node() -> None:
    """What is free there and what all idle work there uses, as the books are; of each amount the answer is kept."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4, "n3": 3})
    for name, idle in (("one", True), ("two", False), ("three", False)):
        c.fill(name, 3, idle=idle)
    c.fill("four", 1, idle=True)
    part = c.s.cluster.partitions["default"]

    def may_make(cores: int) -> bool:
        return part.idle.may_make_room((("vcore", cores * 1000),), part.books_version)

    idle_on = {ask.node.id for ask in part.idle.running if ask.node is not None}
    most = max(
        node.free["vcore"] // 1000 + sum(a.items[0][1] // 1000 for a in node.allocations if a.spec.idle)
        for node in part.nodes.nodes.values()
        if node.id in idle_on
    )
    assert [may_make(cores) for cores in range(1, 6)] == [cores <= most for cores in range(1, 6)]
    for name in ("one", "four"):
        c.finished(name)
    assert not may_make(1), "nothing idle runs"
