"""The law of prices can fail: a victim too many, one too few, and a claim that moves where nothing was stopped."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores
from properties.price import is_paid

from fairlead.core.acts import allocations, nominate, reserve_node, reserve_turn
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.events import Cause
from fairlead.core.model.specs import TAG_REQUIRED_NODE, QueueSpec


def stopped(ask_cores: int, *victims: str) -> tuple[PriorityCluster, Partition]:
    """Two pieces of work fill a node of four cores; so many of them are stopped for `high`."""
    c = PriorityCluster(nodes={"n1": 4})
    c.fill("low", 2)
    c.fill("late", 2)
    c.submit("high", ask_cores, 5)
    assert c.run()[1] == list(victims)
    return c, c.s.cluster.partitions["default"]


def found(part: Partition, key: str) -> Ask:
    return part.applications[key].asks[key]


def test_what_was_stopped_is_counted() -> None:
    """Both of them are needed."""
    c, part = stopped(4, "late", "low")
    assert is_paid(part, c.evictions()) == 2


def test_one_victim_too_many_is_seen() -> None:
    """The other one is stopped too, for nothing."""
    c, part = stopped(2, "late")
    assert is_paid(part, c.evictions()) == 1
    allocations.evict(
        part, found(part, "low"), Cause.PREEMPTED_BY_SCHEDULER, on_behalf_of="high", rule="priority", message=""
    )
    with pytest.raises(AssertionError, match=r"would fit on .* without that"):
        is_paid(part, [*c.evictions(), *part.out])


@pytest.mark.parametrize("idle", [True, False])
def test_idle_work_that_a_guarantee_stops_for_nothing_is_seen(idle: bool) -> None:
    """Of the rest nobody asks that: YuniKorn's rule gives nothing back."""
    guaranteed = QueueSpec(name="a", guaranteed=cores(3), properties={"preemption.delay": "1s"})
    c = PriorityCluster(guaranteed, QueueSpec(name="b"), nodes={"n1": 4}, rule="guarantee")
    part = c.s.cluster.partitions["default"]
    c.submit("other", 1, queue="root.b", node="n1", idle=idle)
    c.submit("low", 3, queue="root.b", node="n1")
    c.submit("high", 3, queue="root.a")
    assert c.run(1_000)[1] == ["low"]
    assert is_paid(part, c.evictions()) == 0
    reason = Cause.PREEMPTED_BY_SCHEDULER
    allocations.evict(part, found(part, "other"), reason, on_behalf_of="high", rule="guarantee", message="")
    if not idle:
        assert is_paid(part, [*c.evictions(), *part.out]) == 0
        return
    with pytest.raises(AssertionError, match=r"would fit on .* without that"):
        is_paid(part, [*c.evictions(), *part.out])


def test_one_victim_too_few_is_seen() -> None:
    """One of both goes on."""
    c, part = stopped(4, "late", "low")
    found(part, "low").evict_cause = None
    with pytest.raises(AssertionError, match=r"does not fit on .* even so"):
        is_paid(part, c.evictions())


@pytest.mark.parametrize("waited_too_long", [True, False])
def test_only_room_that_gathers_behind_it_is_not_in_the_way(waited_too_long: bool) -> None:
    """Who was promised room first is placed first. Room that is promised to another for once is another matter."""
    c, part = stopped(2, "late")
    c.submit("long", 4, queue="root.b")
    if waited_too_long:
        reserve_turn.begin(part, found(part, "long"), "", "it has waited", by_itself=True)
    nominate.nominate(part, found(part, "long"), part.nodes.nodes["n1"], ())
    if waited_too_long:
        assert is_paid(part, c.evictions()) == 1
        c.gone("late")
        assert c.run()[0] == ["high@n1"]
        return
    with pytest.raises(AssertionError, match=r"does not fit on .* even so"):
        is_paid(part, c.evictions())


def test_room_that_gathers_before_it_is_in_the_way() -> None:
    """It was there when the plan was made."""
    c = PriorityCluster(QueueSpec(name="a"), QueueSpec(name="b", properties={"wait.max": "1s"}), nodes={"n1": 4})
    part = c.s.cluster.partitions["default"]
    c.fill("low", 2)
    c.fill("late", 2)
    c.submit("long", 2, 5, queue="root.b", allow_preempt_other=False)
    c.run()
    c.run(2_000)
    assert c.nominated() == {"long": "n1"}
    c.submit("high", 2, 5)
    assert c.run()[1] == ["late", "low"]
    assert is_paid(part, c.evictions()) == 2


@pytest.mark.parametrize("by_its_daemon", [True, False])
def test_only_who_requires_the_node_drives_the_claim_off(by_its_daemon: bool) -> None:
    """What was stopped for a node that is set aside is enough there. Another node is set aside for no reason."""
    guaranteed = QueueSpec(name="a", guaranteed=cores(6), properties={"preemption.delay": "1s", "priority.offset": "1"})
    c = PriorityCluster(guaranteed, QueueSpec(name="b"), nodes={"n1": 4, "n2": 5}, rule="guarantee")
    part = c.s.cluster.partitions["default"]
    c.submit("low", 3, queue="root.b", node="n1")
    c.submit("own", 3, queue="root.a", node="n2")
    c.submit("high", 3, queue="root.a")
    assert c.run(1_000) == ([], ["low"])
    assert found(part, "high").reserved_on is part.nodes.nodes["n1"]
    assert is_paid(part, c.evictions()) == 0
    if by_its_daemon:
        c.submit("daemon", 2, queue="root.b", tags={TAG_REQUIRED_NODE: "n1"})
        c.run(3_000)
        assert found(part, "high").reserved_on is part.nodes.nodes["n2"]
        assert is_paid(part, c.decided[c.decided.index(c.evictions()[0]) :]) == 0
        return
    reserve_node.unreserve(part, found(part, "high"))
    reserve_node.reserve(part, found(part, "high"), part.nodes.nodes["n2"])
    with pytest.raises(AssertionError, match=r"does not fit on .* even so"):
        is_paid(part, [*c.evictions(), *part.out])
