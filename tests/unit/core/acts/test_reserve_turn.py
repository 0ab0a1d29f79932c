"""Turns that are kept and given back: what is held back gives back its node, and what was is looked at again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from priority_clusters import PriorityCluster

from fairlead.core.acts import reserve_node
from fairlead.core.acts.reserve_turn import TIMER, begin, end, on_timer, reordered, watch
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import ReservationSwitched
from fairlead.core.model.events import Configure
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import LimitSpec, QueueSpec

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


@pytest.mark.parametrize(
    ("limits", "switched"),
    [
        ((LimitSpec(users=("ann",), max_resources=Limits({"vcore": 2000})),), []),
        ((LimitSpec(users=("ann",), max_resources=Limits({"vcore": 3000})),), [False, True]),
        ((LimitSpec(users=("ann",), max_resources=Limits({"vcore": 2000}), max_applications=9),), [False, True]),
        ((), [False, True, False]),
    ],
)
def test_a_turn_that_waits_for_a_limit_is_kept_through_a_reload_that_leaves_this_as_it_is(
    limits: tuple[LimitSpec, ...], switched: list[bool]
) -> None:
    """Whatever else is in the file. For another limit it is given anew, if that is in its way, or it starts."""
    of_ann = LimitSpec(users=("ann",), max_resources=Limits({"vcore": 2000}))
    a = QueueSpec(name="a", properties={"wait.max": "10s"})
    c = PriorityCluster(a, QueueSpec(name="b"), rule="guarantee", limits=(of_ann,))
    c.fill("runs", 2, user="ann")
    c.submit("waits", 2, user="ann")
    c.run(11_000)
    reserving = c.s.cluster.partitions["default"].reserving
    assert [(ask.key, kept.limit is not None) for ask, kept in reserving.every()] == [("waits", True)]
    part = c.spec.partitions[0]
    limits += (LimitSpec(users=("bob",), max_resources=Limits({"vcore": 1000})),)
    root = replace(part.root, queues=(*part.root.queues, QueueSpec(name="new")), limits=limits)
    before = len(c.decided)
    c.handle(Configure(replace(c.spec, partitions=(replace(part, root=root),))))
    c.run()
    assert [d.on for d in c.decided[before:] if isinstance(d, ReservationSwitched)] == switched
    assert all(kept.limit in ask.app.ceilings for ask, kept in reserving.every())
