"""The order of nodes: what leaves it and what comes back."""

from __future__ import annotations

from invariants.books import check_books

from fairlead.core.model.decisions import Allocated
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Release, RemoveNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.scheduler import Scheduler

CORE = Resources({"vcore": 1})


def test_a_node_that_comes_back_under_its_id_is_a_new_one() -> None:
    """What changed on the old one just before it left does not bring that one back into the order."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="leaf"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddApplication(ApplicationSpec(id="a", queue="root.leaf")), 0)
    s.handle(AddNode(NodeSpec(id="n", capacity=CORE)), 0)
    s.handle(AddAsks((AskSpec(application="a", key="x", resources=CORE),)), 0)
    s.schedule(0)
    s.handle(Release("a", "x"), 0)
    s.handle(RemoveNode("n"), 0)
    s.handle(AddNode(NodeSpec(id="n", capacity=CORE)), 0)
    s.handle(AddAsks((AskSpec(application="a", key="y", resources=CORE),)), 0)
    assert Allocated("a", "y", "n") in s.schedule(0)
    check_books(s)
