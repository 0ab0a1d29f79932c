"""Consumption: what ended is counted by what became of it, and costs nothing before it ends."""

from __future__ import annotations

import json

from fairlead.core.books.usage_history import PLACEHOLDER, PREEMPTED, USED
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.scheduler import Scheduler


def running(s: Scheduler, key: str, vcore: int, node: str, now: int, **more: object) -> None:
    spec = AskSpec(application="a", key=key, resources=Resources({"vcore": vcore}), node=node, **more)  # type: ignore[arg-type]
    s.handle(AddAsks((spec,)), now)


def start() -> Scheduler:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="default"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 10}), attributes={"si/instance-type": "big"})), 0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 10}))), 0)
    s.handle(AddApplication(ApplicationSpec(id="a", queue="root.default")), 0)
    return s


def test_use_is_counted_by_the_type_of_the_node_when_it_ends() -> None:
    """Amount times whole seconds; a node without a type counts as UNKNOWN."""
    s = start()
    running(s, "x", 2, "n1", 1000)
    running(s, "y", 3, "n2", 1000)
    app = s.cluster.partitions["default"].applications["a"]
    assert app.consumed is None
    s.handle(Release("a", "x", Cause.FINISHED), 6500)
    s.handle(Release("a", "y", Cause.STOPPED_BY_RM), 7000)
    assert app.consumed is not None
    assert app.consumed.seconds(USED) == {"UNKNOWN": {"vcore": 18}, "big": {"vcore": 11}}
    assert app.consumed.seconds(PREEMPTED) == {}


def test_the_peak_is_the_most_of_real_allocations_at_once() -> None:
    """Placeholders do not count; what runs now does not either, until something ends."""
    s = start()
    for key, vcore in (("x", 2), ("y", 3)):
        running(s, key, vcore, "n1", 0)
    running(s, "p", 4, "n1", 0, placeholder=True, task_group="tg")
    app = s.cluster.partitions["default"].applications["a"]
    s.handle(Release("a", "x", Cause.FINISHED), 1000)
    running(s, "z", 1, "n1", 1000)
    s.handle(Release("a", "y", Cause.FINISHED), 2000)
    assert app.consumed is not None
    assert app.consumed.peak == {"vcore": 5}


def test_placeholders_are_counted_apart() -> None:
    """In a bucket of their own, whatever ends them but preemption."""
    s = start()
    running(s, "p", 4, "n1", 0, placeholder=True, task_group="tg")
    running(s, "x", 1, "n1", 0)
    s.handle(Release("a", "p", Cause.TIMEOUT), 3000)
    app = s.cluster.partitions["default"].applications["a"]
    assert app.consumed is not None
    assert app.consumed.seconds(PLACEHOLDER) == {"big": {"vcore": 12}}
    assert app.consumed.seconds(USED) == {}


def test_the_figures_survive_a_restart() -> None:
    """They are part of the state."""
    s = start()
    running(s, "x", 2, "n1", 0)
    running(s, "y", 2, "n1", 0)
    s.handle(Release("a", "x", Cause.FINISHED), 4000)
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    app = again.cluster.partitions["default"].applications["a"]
    assert app.consumed is not None
    assert (app.consumed.peak, app.consumed.seconds(USED)) == ({"vcore": 4}, {"big": {"vcore": 8}})
    assert again.dump() == s.dump()
