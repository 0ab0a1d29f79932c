"""What preemption does not do yet, and should: each fails for the reason that is given, and passes once it does."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster

from fairlead.core.model.events import AddApplication, AddAsks, AddNode, RemoveNode, SetWindow
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec, QueueSpec, WindowSpec

HOUR = 3_600_000


@pytest.mark.xfail(reason="what a guarantee keeps after lower work goes is tried alone, not with some of that")
def test_work_above_what_a_guarantee_lets_go_is_stopped_with_some_of_it() -> None:
    """Of 6 cores 4 may go: `p` has the memory, and together with one of the low ones it makes room."""

    def size(count: int, memory: int) -> Resources:
        return Resources({"vcore": count * 1000, "memory": memory})

    def work(key: str, needs: Resources, priority: int, queue: str) -> None:
        c.handle(AddApplication(ApplicationSpec(id=key, queue=queue)))
        c.handle(AddAsks((AskSpec(application=key, key=key, resources=needs, priority=priority),)))

    queues = QueueSpec(name="a", guaranteed=Limits({"vcore": 2000})), QueueSpec(name="b")
    c = PriorityCluster(*queues, nodes={"x": 1}, rule="both")
    c.handle(RemoveNode("x"))
    c.handle(AddNode(NodeSpec(id="n1", capacity=size(8, 14))))
    work("p", size(2, 10), 2, "root.a")
    c.run()
    for i in range(4):
        work(f"low{i}", size(1, 1), 0, "root.a")
        c.run()
    work("hi", size(1, 11), 9, "root.b")
    assert "p" in c.run()[1]
