"""Trials: what is seen of one ask is its own, not that of another with the same name elsewhere."""

from __future__ import annotations

from fairlead.core.model.events import AddApplication, AddAsks, AddNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.insight.trial import start_of
from fairlead.scheduler import Scheduler


def test_the_start_of_its_namesake_in_another_partition_is_not_its_own() -> None:
    """Also where the nodes have the same names: it waits for more than there is, the other one starts."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    amounts = {"default": 2, "other": 1}
    s = Scheduler(ClusterSpec(partitions=tuple(PartitionSpec(name=name, root=root) for name in amounts)))
    for name, amount in amounts.items():
        s.handle(AddNode(NodeSpec(id="n", partition=name, capacity=Resources({"gpu": 1}))), 0)
        s.handle(AddApplication(ApplicationSpec(id="app", queue="root.a", user="ann", partition=name)), 0)
        s.handle(AddAsks((AskSpec(application="app", key="ask", resources=Resources({"gpu": amount})),), name), 0)
    copy = Scheduler.load(s.dump())
    assert start_of(s, (), ("default", "app", "ask")) is None
    found = start_of(copy, (), ("other", "app", "ask"))
    assert found is not None
    assert found.node == "n"
