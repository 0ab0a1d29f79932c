"""A reader who is no administrator finds what is said of own applications, and nothing that names others'."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.core.model.events import AddApplication, AddAsks, AddNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.scheduler import Scheduler
from fairlead.service.yunikorn import routes


@pytest.fixture
def moment() -> Any:
    """The node is kept for both of ann and bob, whose applications hold a place of the queue; ann looks."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)), 1000)
    s.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 1}))), 1000)
    part = s.cluster.partitions["default"]
    for name, user in (("12", "ann"), ("13", "bob")):
        s.handle(AddApplication(ApplicationSpec(id=name, queue="root.a", user=user)), 1000)
        s.handle(AddAsks((AskSpec(application=name, key=f"{name}#2", resources=Resources({"vcore": 1})),)), 1000)
        part.nodes.nodes["n1"].reservations[part.applications[name].asks[f"{name}#2"]] = 0
        part.root.find("root.a").allocating_accepted[name] = None
    return SimpleNamespace(scheduler=s, sees=lambda application: application == "12")


def test_a_node_is_kept_for_ones_own_asks(moment: Any) -> None:
    """An ask that is begun again has another name than its application, and was never found."""
    for found in (routes.nodes(moment, "default")[0], routes.node(moment, "default", "n1")):
        assert (found["isReserved"], found.get("reservations")) == (True, ["12#2"])


def test_a_queue_names_ones_own_applications(moment: Any) -> None:
    """Those that begin were named to everybody."""
    tree = routes.queues(moment, "default")
    one = routes.queue(moment, "default", "root.a")
    assert [found["allocatingAcceptedApps"] for found in (one, tree["children"][0])] == [["12"], ["12"]]
