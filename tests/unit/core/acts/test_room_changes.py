"""Thousands of nodes that come at once: what they change about the queues is worked out once for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlead.core.books.queues import Queue
from fairlead.core.model.events import AddApplication, AddAsks, AddNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.scheduler import Scheduler


@pytest.mark.plain
def test_the_tree_is_gone_over_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node changes what shares are measured against; they are measured when they are next compared."""
    queues = tuple(QueueSpec(name=f"q{i}") for i in range(50))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddApplication(ApplicationSpec(id="a", queue="root.q7")), 0)
    s.handle(AddAsks((AskSpec(application="a", key="a", resources=Resources({"vcore": 1})),)), 0)
    s.schedule(0)
    walks: list[str] = []
    walk = Queue.walk

    def counted(queue: Queue) -> Iterator[Queue]:
        walks.append(queue.path)
        return walk(queue)

    monkeypatch.setattr(Queue, "walk", counted)
    for i in range(100):
        s.handle(AddNode(NodeSpec(id=f"n{i}", capacity=Resources({"vcore": 8}))), 1)
    assert walks == []
    assert len(s.schedule(1)) > 0
    s.schedule(2)
    assert walks.count("root") == 1
