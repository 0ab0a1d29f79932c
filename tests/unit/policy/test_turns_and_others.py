"""Kept turns together with other policies: what one changes, the others have to notice."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.constraints import HOSTNAME, AffinityTerm, Constraints, Requirement
from fairlead.core.model.decisions import Allocated, Decision, Evict, Unreserved
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    DrainNode,
    Release,
    ReserveAsk,
    SetPriority,
    UndrainNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler


class Place:
    def __init__(self, rule: str, *nodes: int) -> None:
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="q"),))
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule)),)))
        for number, cores in enumerate(nodes):
            self.s.handle(AddNode(NodeSpec(id=f"n{number}", capacity=Resources({"vcore": cores}))), 0)

    def submit(self, name: str, cores: int, now_ms: int = 0, priority: int = 0, idle: bool = False) -> None:
        self.s.handle(AddApplication(ApplicationSpec(id=name, queue="root.q")), now_ms)
        ask = AskSpec(application=name, key=name, resources=Resources({"vcore": cores}), priority=priority, idle=idle)
        self.s.handle(AddAsks((ask,)), now_ms)

    def run(self, now_ms: int) -> list[Decision]:
        decided = []
        while more := self.s.schedule(now_ms):
            decided += more
        check_books(self.s)
        return decided


def test_who_falls_behind_a_kept_turn_gives_back_the_node_that_was_set_aside() -> None:
    """Another's priority is raised: what was set aside for the one that waits for it now would help nobody."""
    p = Place("guarantee", 4, 2)
    p.submit("runs", 3)
    p.run(0)
    p.submit("late", 3, 1, priority=0)
    p.submit("turn", 3, 1, priority=-1)
    p.run(3_000)
    late = p.s.cluster.partitions["default"].applications["late"].asks["late"]
    assert late.reserved_on is not None
    p.s.handle(ReserveAsk("turn", "turn", True, "ann"), 3_000)
    decided = p.s.handle(SetPriority("turn", "turn", 5, "ann"), 3_000)
    assert [d.key for d in decided if isinstance(d, Unreserved)] == ["late"]
    assert late.reserved_on is None


def test_idle_work_gives_way_when_a_kept_turn_is_over() -> None:
    """Nothing else has changed since nobody could take anything back: that has to count as a change."""
    p = Place("priority", 4)
    p.submit("idle", 4, idle=True)
    p.run(0)
    p.submit("big", 5, 1, priority=5)
    p.s.handle(ReserveAsk("big", "big", True, "ann"), 1)
    p.submit("small", 1, 2)
    assert not [d for d in p.run(3) if isinstance(d, Evict)]
    p.s.handle(ReserveAsk("big", "big", False, "ann"), 4)
    assert [d.key for d in p.run(5) if isinstance(d, Evict)] == ["idle"]


class Shared:
    """Two queues under one maximum of four cores; whoever waits for ten seconds in `team` gets a turn."""

    def __init__(self, *nodes: int, most: int | None = None, beside: str = "", **rules: str) -> None:
        limited = Limits({"vcore": most}) if most else None
        team = QueueSpec(name="team", max=limited, properties={"wait.max": "10s"} | rules)
        other = QueueSpec(name="beside", properties={"wait.max": beside} if beside else {})
        both = QueueSpec(name="c", parent=True, max=Limits({"vcore": 4}), queues=(team, other))
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(both, QueueSpec(name="other")))
        preemption = PreemptionSpec(rule="guarantee", enabled=False)
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=preemption),)))
        self.part = self.s.cluster.partitions["default"]
        for number, cores in enumerate(nodes):
            self.s.handle(AddNode(NodeSpec(id=f"n{number}", capacity=Resources({"vcore": cores}))), 0)

    def submit(self, queue: str, name: str, cores: int, now_ms: int, limit_ms: int | None = None, **more: Any) -> None:
        self.s.handle(AddApplication(ApplicationSpec(id=name, queue=f"root.{queue}")), now_ms)
        amount = Resources({"vcore": cores})
        ask = AskSpec(application=name, key=name, resources=amount, time_limit_ms=limit_ms, **more)
        self.s.handle(AddAsks((ask,)), now_ms)

    def end(self, *names: str, now_ms: int) -> None:
        for name in names:
            self.s.handle(Release(name, name, Cause.FINISHED), now_ms)

    def run(self, now_ms: int) -> list[str]:
        decided: list[Decision] = []
        while more := self.s.schedule(now_ms):
            decided += more
        check_books(self.s)
        return [d.key for d in decided if isinstance(d, Allocated)]


def test_who_has_a_turn_and_a_node_keeps_room_under_the_maximum_above_too() -> None:
    """A node was set aside for it before its turn came: the queue beside could fill the maximum for ever."""
    p = Shared(4, 4)
    p.submit("other", "o1", 2, 0)
    p.submit("other", "o2", 2, 0)
    assert p.run(0) == ["o1", "o2"]
    p.submit("c.team", "big", 3, 0)
    p.run(2_500)
    big = p.part.applications["big"].asks["big"]
    kept = big.reserved_on
    assert kept is not None
    there, elsewhere = ("o1", "o2") if kept.id == "n0" else ("o2", "o1")
    p.submit("c.beside", "b1", 1, 3_000)
    p.submit("c.beside", "b2", 1, 3_000)
    assert p.run(3_000) == ["b1", "b2"]
    p.end(elsewhere, now_ms=4_000)
    p.submit("c.beside", "b3", 1, 4_000)
    assert p.run(4_000) == ["b3"]
    p.run(10_000)
    p.end(there, "b1", now_ms=11_000)
    p.submit("c.beside", "b4", 1, 11_000)
    assert p.run(11_000) == [], "what would be left under the maximum is kept for the turn"
    p.end("b2", now_ms=12_000)
    assert p.run(12_000) == ["big"]


def test_who_is_passed_by_backfill_keeps_the_room_that_gathers() -> None:
    """What passes ends in time, but it fills the queue: others may not take the room of the node meanwhile."""
    p = Shared(4, most=3, backfill="easy")
    p.submit("other", "o1", 2, 0, limit_ms=20_000)
    p.submit("other", "o2", 1, 0, limit_ms=12_000)
    p.submit("other", "o3", 1, 0, limit_ms=12_500)
    assert p.run(0) == ["o1", "o2", "o3"]
    p.submit("c.team", "big", 3, 0, limit_ms=5_000)
    p.run(10_000)
    assert p.part.applications["big"].asks["big"].held_on is not None
    p.end("o2", now_ms=12_000)
    p.submit("c.team", "quick", 1, 12_000, limit_ms=1_000)
    assert p.run(12_000) == ["quick"]
    p.end("o3", now_ms=12_500)
    p.submit("other", "o4", 1, 12_500, limit_ms=60_000)
    assert p.run(12_500) == [], "the room of the node is kept"
    p.end("quick", now_ms=13_000)
    assert p.run(13_000) == []
    p.end("o1", now_ms=20_000)
    assert p.run(20_000) == ["big", "o4"]


def test_room_no_longer_gathers_where_the_company_has_gone() -> None:
    """Whom it wants to be with has ended: nothing else that ends would let it start there, and others need the room."""
    p = Shared(4)
    p.submit("other", "company", 1, 0, labels={"app": "x"})
    p.submit("other", "runs", 3, 0)
    assert p.run(0) == ["company", "runs"]
    beside = AffinityTerm((Requirement("app", "In", ("x",)),), HOSTNAME)
    p.submit("c.team", "near", 3, 0, where=Constraints(affinity=(beside,)))
    p.run(10_000)
    near = p.part.applications["near"].asks["near"]
    assert near.held_on is not None
    p.end("company", now_ms=11_000)
    p.submit("other", "small", 1, 11_000)
    assert p.run(11_000) == ["small"]
    assert near.held_on is None
    p.end("small", "runs", now_ms=12_000)
    p.submit("other", "again", 1, 12_000, labels={"app": "x"})
    assert p.run(12_000) == ["again", "near"]


@pytest.mark.timeout(60)
def test_no_room_gathers_on_a_node_that_takes_no_work() -> None:
    """Two require it, and have a turn each: it is drained, and set aside for both in turn. That has to come to rest."""
    p = Shared(4, 4, beside="10s")
    p.submit("other", "runs", 4, 0, tags={TAG_REQUIRED_NODE: "n0"})
    assert p.run(0) == ["runs"]
    for queue in ("team", "beside"):
        p.submit(f"c.{queue}", queue, 2, 0, tags={TAG_REQUIRED_NODE: "n0"})
    p.run(10_000)
    asks = [p.part.applications[name].asks[name] for name in ("team", "beside")]
    assert all(ask.held_on is not None for ask in asks)
    p.s.handle(DrainNode("n0"), 11_000)
    assert p.run(11_000) == []
    assert all(ask.held_on is None for ask in asks)
    p.s.handle(UndrainNode("n0"), 12_000)
    p.end("runs", now_ms=13_000)
    assert p.run(13_000) == ["team", "beside"]
