"""Work that was told to stop: until when its room is counted on, and what is left of it when it is gone or late."""

from __future__ import annotations

from priority_clusters import PriorityCluster

from fairlead.core.acts.terminating import GRACE_MS, MARGIN_MS, TIMER, give_up, late
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition


def leaving(**more: int) -> tuple[PriorityCluster, Partition, Ask]:
    """Work that was told to stop for `high`, in milliseconds since now."""
    c = PriorityCluster()
    c.fill("low", 4, **more)
    c.submit("high", 4, 9)
    c.run()
    part = c.s.cluster.partitions["default"]
    return c, part, part.applications["low"].asks["low"]


def test_its_room_counts_as_gone_up_to_the_root() -> None:
    _, part, low = leaving()
    assert [queue.preempting for queue in low.app.queue.lineage] == [{"vcore": 4000}] * 2
    assert part.root.allocated["vcore"] == 4000, "it runs still"


def test_it_has_its_grace_and_a_margin() -> None:
    """The usual grace where it does not say."""
    for grace, more in ((GRACE_MS, {}), (5_000, {"grace_ms": 5_000})):
        c, part, low = leaving(**more)
        assert part.disruption.leave_by == {low: c.now_ms + grace + MARGIN_MS}
        assert part.timers.due_ms("default", "", TIMER) == c.now_ms + grace + MARGIN_MS


def test_nothing_is_left_of_it_when_it_is_gone() -> None:
    c, part, low = leaving()
    c.gone("low")
    assert (part.root.preempting, part.disruption.leave_by, part.disruption.overdue) == ({}, {}, {})
    assert (low.evict_cause, low.evicted_by, low.overdue) == (None, None, False)
    assert part.timers.due_ms("default", "", TIMER) is None


def test_the_timer_is_that_of_the_first_which_is_still_to_leave() -> None:
    """One for what has left would be news: what started while `later` waited would be stopped for it then."""
    c = PriorityCluster(nodes={"n1": 1, "n2": 1})
    c.fill("one", 1, grace_ms=0)
    c.fill("two", 1, grace_ms=60_000)
    c.submit("high", 1, 9)
    c.submit("higher", 1, 9)
    c.run()
    part = c.s.cluster.partitions["default"]
    told_ms = c.now_ms
    assert sorted(part.disruption.leave_by.values()) == [told_ms + MARGIN_MS, told_ms + 60_000 + MARGIN_MS]
    assert part.timers.due_ms("default", "", TIMER) == told_ms + MARGIN_MS
    c.gone("one")
    assert part.timers.due_ms("default", "", TIMER) == told_ms + 60_000 + MARGIN_MS
    c.gone("two")
    assert part.timers.due_ms("default", "", TIMER) is None


def test_who_is_late_is_named_in_the_order_in_which_it_was_told() -> None:
    c, part, low = leaving()
    assert late(part) == []
    c.s.cluster.set_time(c.now_ms + GRACE_MS + MARGIN_MS)
    assert late(part) == [low]


def test_the_room_of_what_is_late_is_counted_on_no_more() -> None:
    """And not a second time when it leaves in the end."""
    c, part, low = leaving()
    version = part.books_version
    give_up(part, low)
    assert (part.root.preempting, low.overdue, part.disruption.overdue) == ({}, True, {low: None})
    assert part.books_version > version
    assert low.node in part.nodes.since_search
    c.gone("low")
    assert (part.root.preempting, part.disruption.overdue) == ({}, {})
