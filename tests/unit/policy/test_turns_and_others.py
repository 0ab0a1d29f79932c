"""Kept turns together with other policies: what one changes, the others have to notice."""

from __future__ import annotations

from fairlead.core.decisions import Decision, Evict, Unreserved
from fairlead.core.events import AddApplication, AddAsks, AddNode, ReserveAsk, SetPriority
from fairlead.core.resources import Resources
from fairlead.core.specs import (
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
        self.s.check()
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
