"""Nodes that are set aside: what that means in the books, and what wakes when it is over."""

from __future__ import annotations

from priority_clusters import PriorityCluster

from fairlead.core.acts.reserve_node import RESERVATION_MS, reserve, unreserve, unwatch, watch
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.timers import RESERVATION
from fairlead.core.model.decisions import Reserved, Unreserved
from fairlead.core.model.events import Cause, Release
from fairlead.scheduler import Scheduler


def waiting() -> tuple[PriorityCluster, Partition, Ask, Node]:
    """A full node, and an ask that waits."""
    c = PriorityCluster(rule="guarantee")
    c.fill("runs", 4)
    c.submit("w", 2)
    c.run()
    part = c.s.cluster.partitions["default"]
    return c, part, part.applications["w"].asks["w"], part.nodes.nodes["n1"]


def test_node_ask_and_partition_know_of_it() -> None:
    _, part, ask, node = waiting()
    reserve(part, ask, node)
    assert (ask.reserved_on, part.reservations, list(node.reservations)) == (node, 1, [ask])
    assert ask in part.nodes.reserved_again
    assert not node.is_open, "it fills up for no other"
    assert part.out == [Reserved("w", "w", "n1")]


def test_all_of_it_is_over_when_it_ends() -> None:
    _, part, ask, node = waiting()
    reserve(part, ask, node)
    unreserve(part, ask)
    assert (ask.reserved_on, part.reservations, node.reservations) == (None, 0, {})
    assert ask not in part.nodes.reserved_again
    assert node.is_open
    assert part.out[-1] == Unreserved("w", "w", "n1")


def test_to_end_what_is_not_changes_nothing() -> None:
    _, part, ask, _ = waiting()
    version = part.books_version
    unreserve(part, ask)
    assert (part.out, part.books_version) == ([], version)


def test_a_node_that_is_set_aside_is_looked_at_again_after_an_hour() -> None:
    _, part, ask, node = waiting()
    reserve(part, ask, node)
    assert part.timers.due_ms("default", "w", RESERVATION) == part.now_ms + RESERVATION_MS


def test_an_ask_that_lost_its_node_may_get_another() -> None:
    """And have work stopped once more, if it had."""
    _, part, ask, node = waiting()
    reserve(part, ask, node)
    ask.preempt_triggered = True
    assert ask.batch is not None
    ask.batch.demand.seek_ms = 2**62
    unreserve(part, ask)
    assert not ask.preempt_triggered
    assert ask.batch.demand.seek_ms == 0
    assert ask.app.touched


def test_what_the_ask_watched_forgets_it() -> None:
    _, part, ask, node = waiting()
    reserve(part, ask, node)
    part.nodes.reserved_again.clear()
    queue = part.root
    watch(part, ask, queue)
    assert list(queue.reserved) == [ask]
    queue.wake_waiting()
    assert list(part.nodes.reserved_again) == [ask], "it is tried again when that moves"
    unreserve(part, ask)
    assert (queue.reserved, ask.watches) == ({}, [])
    assert ask.shape is not None
    watch(part, ask, ask.shape)
    assert ask.shape.reserved == {ask.app.queue: {ask: None}}
    unwatch(ask)
    assert ask.shape.reserved == {}, "a shape that nothing watches has nothing to be tried again"


def test_the_node_takes_others_again_when_the_ask_is_withdrawn() -> None:
    c, part, ask, node = waiting()
    reserve(part, ask, node)
    c.finished("runs")
    c.handle(Release("w", "w", Cause.STOPPED_BY_RM))
    c.submit("other", 4)
    assert c.run()[0] == ["other@n1"]


def test_both_are_a_change_of_the_books() -> None:
    """What was looked at in vain is looked at again."""
    _, part, ask, node = waiting()
    version = part.books_version
    reserve(part, ask, node)
    assert part.books_version > version
    version = part.books_version
    unreserve(part, ask)
    assert part.books_version > version


def test_a_node_that_an_older_version_did_not_look_at_any_more_is_looked_at_again() -> None:
    """It did once, after an hour."""
    c, part, ask, node = waiting()
    reserve(part, ask, node)
    state = c.s.dump()
    state["timers"] = [timer for timer in state["timers"] if timer[-1] != RESERVATION]
    again = Scheduler.load(state).cluster.partitions["default"]
    assert again.timers.due_ms("default", "w", RESERVATION) == part.now_ms
