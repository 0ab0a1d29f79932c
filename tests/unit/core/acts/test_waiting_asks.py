"""Asks that begin to wait, change their place, and wait no longer: what follows in line, in sums and in priorities."""

from __future__ import annotations

from typing import Any

from priority_clusters import PriorityCluster

from fairlead.core.acts import nominate, reserve_node
from fairlead.core.acts.waiting_asks import change_priority, drop_ask
from fairlead.core.books.applications import NO_PRIORITY
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.events import AddAsks, ChangeAsk, ReserveAsk, SetPriority
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec, QueueSpec


def waiting(*keys: str, **more: Any) -> tuple[PriorityCluster, Partition, list[Ask]]:
    """A node that is full of important work, and asks for two cores that were looked at in vain."""
    c = PriorityCluster(QueueSpec(name="a"), rule=more.pop("rule", "priority"))
    c.fill("runs", 4, 9)
    for key in keys:
        c.submit(key, 2, **more)
    c.run()
    part = c.s.cluster.partitions["default"]
    return c, part, [part.applications[key].asks[key] for key in keys]


def test_what_waits_counts_in_its_queues_and_gives_them_its_priority() -> None:
    _, part, [ask] = waiting("w", priority=3)
    assert (part.root.pending_sum, part.root.reported, ask.app.queue.reported) == (2000, 3, 3)
    assert ask.batch is not None
    assert ask.shape is not None
    assert (ask.shape.pending, list(ask.batch.asks)) == (1, [ask])


def test_what_is_withdrawn_leaves_nothing_behind() -> None:
    _, part, [ask] = waiting("w", priority=3)
    drop_ask(part, ask)
    assert (part.root.pending_sum, part.root.reported, part.shapes) == (0, NO_PRIORITY, {})
    assert (ask.app.asks, ask.app.batches) == ({}, {})


def test_what_is_withdrawn_gives_back_the_node_that_was_set_aside_for_it() -> None:
    _, part, [ask] = waiting("w", rule="guarantee")
    node = part.nodes.nodes["n1"]
    reserve_node.reserve(part, ask, node)
    drop_ask(part, ask)
    assert (node.reservations, part.reservations) == ({}, 0)


def test_another_priority_is_another_place_and_is_looked_at() -> None:
    _, part, [one, two] = waiting("one", "two", priority=3)
    one.app.touched = False
    change_priority(part, one, 5)
    assert (one.priority, one.app.priority, part.root.reported) == (5, 5, 5)
    assert one.line_key < two.line_key
    assert one.app.touched


def test_with_another_priority_the_node_that_is_set_aside_is_tried_again() -> None:
    """Its turn comes earlier or later now, and something may be held back by it no longer."""
    _, part, [ask] = waiting("w", rule="guarantee")
    reserve_node.reserve(part, ask, part.nodes.nodes["n1"])
    part.nodes.reserved_again.clear()
    change_priority(part, ask, 5)
    assert list(part.nodes.reserved_again) == [ask]


def test_another_priority_of_what_is_nominated_is_a_change_of_the_books() -> None:
    """What stands above it may be something else now; it stays out of line."""
    _, part, [ask] = waiting("w")
    nominate.nominate(part, ask, part.nodes.nodes["n1"], ())
    version = part.books_version
    change_priority(part, ask, 5)
    assert part.books_version > version
    assert ask.batch is None


def test_idle_work_with_another_priority_stands_elsewhere_in_its_line() -> None:
    _, part, [one, two] = waiting("one", "two", idle=True)
    assert list(part.idle.lines.values()) == [[one, two]]
    change_priority(part, two, 5)
    assert list(part.idle.lines.values()) == [[two, one]]
    assert part.root.reported == NO_PRIORITY, "idle work waits with no priority"


def test_another_priority_moves_an_ask_also_where_its_application_stands_as_before() -> None:
    c = PriorityCluster(nodes={"n1": 2}, enabled=False)
    c.fill("runs", 2, 9, "root.b")
    c.submit("one", 3, 9)
    c.handle(AddAsks((AskSpec(application="one", key="small", resources=Resources({"vcore": 2000})),)))
    c.submit("two", 2, 3)
    assert c.run() == ([], [])
    c.handle(SetPriority("one", "small", 5))
    c.gone("runs")
    assert c.run()[0] == ["small@n1"]


def test_turns_stay_in_the_order_in_which_they_were_given() -> None:
    """Also where the first one asks for another amount: what is held back waits for the same one as before."""
    c, part, asks = waiting("w1", "w2", "w3")
    for key in ("w1", "w2"):
        c.handle(ReserveAsk(key, key, on=True))
    assert list(part.reserving.of[asks[0].app.queue]) == asks[:2]
    c.handle(ChangeAsk("w1", "w1", Resources({"vcore": 1000}), None))
    assert list(part.reserving.of[asks[0].app.queue]) == asks[:2]
