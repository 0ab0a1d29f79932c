"""Turns that are kept and given back: what is held back gives back its node, and what was is looked at again."""

from __future__ import annotations

from priority_clusters import PriorityCluster

from fairlead.core.acts import reserve_node
from fairlead.core.acts.reserve_turn import TIMER, begin, end, on_timer, reordered, watch
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import ReservationSwitched
from fairlead.core.model.specs import QueueSpec

HOUR_MS = 3_600_000


def waiting() -> tuple[PriorityCluster, Partition, Ask, Ask]:
    """A full node; `high` and `low` wait in a leaf with a bound of an hour."""
    c = PriorityCluster(QueueSpec(name="a", properties={"wait.max": "1h"}), QueueSpec(name="b"), rule="guarantee")
    c.fill("runs", 4, 0, "root.b")
    c.submit("high", 2, 5)
    c.submit("low", 2, 1)
    c.run()
    part = c.s.cluster.partitions["default"]
    return c, part, part.applications["high"].asks["high"], part.applications["low"].asks["low"]


def test_a_turn_that_is_kept_is_said_and_changes_the_books() -> None:
    _, part, high, _ = waiting()
    version = part.books_version
    begin(part, high, "ann", "it matters")
    assert part.out == [ReservationSwitched("high", "high", True, "ann", "it matters")]
    assert part.reserving.get(high) is not None
    assert part.books_version > version


def test_what_is_held_back_gives_its_node_back() -> None:
    _, part, high, low = waiting()
    reserve_node.reserve(part, low, part.nodes.nodes["n1"])
    begin(part, high, "ann", "it matters")
    assert low.reserved_on is None


def test_the_end_of_a_turn_wakes_its_leaf() -> None:
    """With the look for what waited too long meanwhile."""
    _, part, high, low = waiting()
    begin(part, high, "ann", "it matters")
    low.app.touched, version = False, part.books_version
    low.app.queue.changed_apps.clear()
    part.reserving.overdue.clear()
    end(part, high, "bob", "done")
    assert low.app.touched
    assert part.books_version > version
    assert list(part.reserving.overdue) == [high.app.queue]
    assert part.out[-1] == ReservationSwitched("high", "high", False, "bob", "done")


def test_to_end_no_turn_changes_nothing() -> None:
    _, part, high, _ = waiting()
    version = part.books_version
    end(part, high)
    assert (part.out, part.books_version) == ([], version)


def test_a_changed_priority_changes_what_is_held_back() -> None:
    """What is now gives its node back; all of the leaf is looked at."""
    _, part, high, low = waiting()
    begin(part, high, "ann", "it matters")
    reserve_node.reserve(part, low, part.nodes.nodes["n1"])
    low.app.touched = False
    low.app.queue.changed_apps.clear()
    reordered(part, high.app.queue)
    assert low.reserved_on is None
    assert low.app.touched
    high.app.touched = False
    high.app.queue.changed_apps.clear()
    reordered(part, high.app.queue)
    assert high.app.touched


def test_a_leaf_is_looked_at_when_something_has_waited_so_long() -> None:
    """From its creation on; a time that is over already is now."""
    c, part, high, _ = waiting()
    assert part.timers.due_ms("default", "root.a", TIMER) == high.created_ms + HOUR_MS
    part.timers.cancel("default", "root.a", TIMER)
    c.s.cluster.set_time(5 * HOUR_MS)
    watch(part, high)
    assert part.timers.due_ms("default", "root.a", TIMER) == 5 * HOUR_MS
    on_timer(part, "root.a")
    assert list(part.reserving.overdue) == [high.app.queue]


def test_a_timer_of_a_queue_that_is_gone_does_nothing() -> None:
    _, part, _, _ = waiting()
    on_timer(part, "root.gone")
    assert not part.reserving.overdue
