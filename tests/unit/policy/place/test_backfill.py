"""Backfill past a kept turn: what delays nothing starts, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores, on

from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import (
    ANYWHERE,
    PREFER_NO_SCHEDULE,
    Constraints,
    PreferredNodes,
    Requirement,
    Taint,
)
from fairlead.core.model.events import AddAsks, LabelNode, ReserveAsk
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec, QueueSpec
from fairlead.policy.place.backfill import backfill_one

EASY = {"backfill": "easy"}


def kept(
    count: int = 4, *, properties: dict[str, str] | None = None, most: int = 8, idle: int = 0
) -> tuple[PriorityCluster, Partition]:
    """Two nodes of four cores, each with one free; what runs on n1 ends at 1,000 ms. The turn of `big` is kept, which
    waits for `count` cores and has the highest priority. With `idle`, n1 has so many
    more cores, which idle work uses.
    """
    queue = QueueSpec(name="a", properties=EASY if properties is None else properties, max=cores(most))
    c = PriorityCluster(queue, nodes={"n1": 4 + idle, "n2": 4}, enabled=False)
    c.fill("one", 3, time_limit_ms=999, tags=on("n1"))
    c.fill("two", 3, time_limit_ms=9_000, tags=on("n2"))
    if idle:
        c.fill("idle", idle, idle=True, tags=on("n1"))
    c.submit("big", count, 9)
    assert c.run() == ([], [])
    c.handle(ReserveAsk("big", "big", on=True))
    assert c.run() == ([], [])
    return c, c.s.cluster.partitions["default"]


def small(c: PriorityCluster, name: str = "small", **more: Any) -> list[str]:
    """One core is asked for: what starts."""
    c.submit(name, 1, **more)
    return c.run()[0]


def test_what_ends_in_time_passes() -> None:
    c, _ = kept()
    assert small(c, time_limit_ms=500) == ["small@n1"]


def test_what_would_be_in_the_way_does_not() -> None:
    """On the node of the expected start. On the other one it delays nothing."""
    c, _ = kept()
    assert small(c, tags=on("n1")) == []
    assert small(c, "longer", time_limit_ms=100_000, tags=on("n1")) == []
    assert small(c, "elsewhere", tags=on("n2")) == ["elsewhere@n2"]


def test_what_leaves_enough_passes() -> None:
    """Three of the four cores are wanted there."""
    c, _ = kept(3)
    assert small(c, tags=on("n1")) == ["small@n1"]


def test_the_maximum_of_the_queue_is_kept_free_for_it() -> None:
    """At the expected start `two` still has three cores, and `big` takes four: nothing is left of seven."""
    c, _ = kept(most=7)
    assert small(c) == []
    assert small(c, "short", time_limit_ms=500) == ["short@n1"]


def test_what_is_kept_under_a_maximum_for_others_is_not_taken() -> None:
    """`mine` comes before `big`, and had idle work stopped: of nine cores six are used, and three are promised."""
    c, _ = kept(most=9, idle=3)
    c.submit("mine", 3, 10, tags=on("n1"))
    assert c.run() == ([], ["idle"])
    assert small(c, time_limit_ms=500, tags=on("n2")) == []
    c.gone("idle")
    assert c.run()[0] == ["mine@n1"]


def test_without_the_property_nothing_passes() -> None:
    c, part = kept(properties={})
    assert small(c, time_limit_ms=1) == []
    assert backfill_one(part) is None


def test_while_the_start_is_not_known_nothing_passes() -> None:
    c, _ = kept(9)
    assert small(c, time_limit_ms=1) == []


def test_that_more_should_have_ended_by_now_is_seen() -> None:
    """`big` starts where `one` ends first. Once both should have ended it starts on the emptier node."""
    c = PriorityCluster(QueueSpec(name="a", properties=EASY), nodes={"n1": 4, "n2": 8}, enabled=False)
    c.fill("one", 3, time_limit_ms=999, tags=on("n1"))
    c.fill("two", 5, time_limit_ms=1_998, tags=on("n2"))
    c.submit("big", 4, 9)
    c.handle(ReserveAsk("big", "big", on=True))
    assert small(c, tags=on("n1")) == []
    assert c.s.next_wakeup_ms() == 1_000
    assert c.run(1_500) == ([], [])
    assert c.s.next_wakeup_ms() == 2_000
    assert c.run(500)[0] == ["small@n1"]


def test_of_one_batch_each_time_limit_is_looked_at() -> None:
    """Asks of one shape differ in nothing else that counts here."""
    c, part = kept()
    c.submit("crowd", 1, tags=on("n1"))
    more = [
        AskSpec(
            application="crowd",
            key=f"k{limit}",
            resources=Resources({"vcore": 1000}),
            tags=on("n1"),
            time_limit_ms=limit,
        )
        for limit in (5_000, 100)
    ]
    c.handle(AddAsks(tuple(more)))
    assert len(part.applications["crowd"].batches) == 1
    assert c.run()[0] == ["k100@n1"]


@pytest.mark.parametrize("first", ["weak", "strong"])
def test_what_comes_first_in_order_passes_first(first: str) -> None:
    """By priority: there is room for one of them in time."""
    c, _ = kept()
    for name in (first, "strong" if first == "weak" else "weak"):
        c.submit(name, 1, 5 if name == "strong" else 0, time_limit_ms=100, tags=on("n1"))
    assert c.run()[0] == ["strong@n1"]


@pytest.mark.parametrize("by_taint", [False, True])
def test_of_the_nodes_where_it_delays_nothing_it_takes_what_it_likes_best(by_taint: bool) -> None:
    """As work that nothing holds back does: the node that it prefers, not one that would rather be left alone."""
    queue = QueueSpec(name="a", properties=EASY)
    c = PriorityCluster(queue, nodes={"n1": 4, "n2": 4, "n3": 8}, enabled=False)
    taints = (Taint("slow", "", PREFER_NO_SCHEDULE),) if by_taint else ()
    c.handle(LabelNode("n1", {}, taints))
    c.handle(LabelNode("n2", {"disk": "ssd"}, ()))
    c.fill("long", 8, time_limit_ms=9_000, tags=on("n3"))
    c.submit("big", 8, 9)
    c.handle(ReserveAsk("big", "big", on=True))
    wish = PreferredNodes(100, (Requirement("disk", "In", ("ssd",)),))
    c.submit("small", 1, time_limit_ms=600, where=ANYWHERE if by_taint else Constraints(preferred_nodes=(wish,)))
    assert c.run()[0] == ["small@n2"]


def test_what_passes_within_a_guarantee_is_not_stopped_for_a_larger_one_that_was_not() -> None:
    """When `early` has ended, the five cores of `large` would fit into the guarantee in the place of the small one."""
    queue = QueueSpec(name="a", properties=EASY, guaranteed=cores(5))
    c = PriorityCluster(queue, QueueSpec(name="b"), nodes={"n1": 6}, rule="both")
    c.fill("runs", 1, 9, queue="root.b", time_limit_ms=999)
    c.fill("early", 1, 9, time_limit_ms=999)
    c.submit("big", 6, 9)
    c.handle(ReserveAsk("big", "big", on=True))
    c.submit("large", 5, 5)
    assert small(c, time_limit_ms=500) == ["small@n1"]
    c.handle(ReserveAsk("big", "big", on=False))
    c.finished("early")
    assert c.run() == ([], [])


@pytest.mark.parametrize("most", [0, 8])
def test_room_for_which_work_was_stopped_is_not_used_until_then(most: int) -> None:
    """By time limits alone `big` starts on n2, much later: `small` took its room, on n1 or under the maximum, and `low`
    had been stopped for nothing.
    """
    queue = QueueSpec(name="a", properties=EASY, max=cores(most) if most else None)
    c = PriorityCluster(queue, nodes={"n1": 4, "n2": 4, "n3": 1 if most else 0})
    c.fill("low", 3, grace_ms=5_000, tags=on("n1"))
    c.fill("long", 4, 9, time_limit_ms=60_000, tags=on("n2"))
    c.submit("big", 4, 5)
    c.handle(ReserveAsk("big", "big", on=True))
    assert c.run() == ([], ["low"])
    assert small(c, time_limit_ms=20_000) == []
    c.gone("low")
    assert c.run()[0] == ["big@n1"]
