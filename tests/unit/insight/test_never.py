"""What can never run as it is, told at submission from sizes alone."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.events import AddApplication, AddAsks, AddNode
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
)
from fairlead.insight.never import never
from fairlead.insight.search import Effort
from fairlead.insight.unblock import ways
from fairlead.scheduler import Scheduler

GIB = 2**30


def scheduler(*nodes: tuple[int, int]) -> Scheduler:
    """root.a may use 3 cores, ann 2 of root.b; each node has so many cores and GiB."""
    limit = LimitSpec(users=("ann",), max_resources=Limits({"vcore": 2000}))
    leaves = (
        QueueSpec(name="a", max=Limits({"vcore": 3000})),
        QueueSpec(name="b", limits=(limit,)),
        QueueSpec(name="c"),
    )
    root = QueueSpec(name="root", submit_acl="*", queues=leaves)
    made = Scheduler(ClusterSpec(partitions=(PartitionSpec(name="default", root=root),)))
    for number, (cores, memory) in enumerate(nodes):
        capacity = Resources({"vcore": cores * 1000, "memory": memory * GIB})
        made.handle(AddNode(NodeSpec(id=f"n{number}", capacity=capacity)), 0)
    return made


def asked(made: Scheduler, queue: str, cores: int, memory: int = 0, **more: Any) -> str | None:
    """What is said of an ask of ann."""
    made.handle(AddApplication(ApplicationSpec(id="x", queue=f"root.{queue}", user="ann")), 0)
    amounts = Resources({"vcore": cores * 1000, "memory": memory * GIB})
    made.handle(AddAsks((AskSpec(application="x", key="x", resources=amounts, **more),)), 0)
    found = never(made, "x", "x")
    assert (found is None) == (ways(made, ("default", "x", "x"), Effort()).never is None), "the search says the same"
    return None if found is None else found.sentence


@pytest.mark.parametrize(
    ("queue", "cores", "memory", "said"),
    [
        ("a", 3, 0, None),
        ("a", 4, 0, "it needs cpu 4, and queue root.a may use cpu 3 at most: ask for less, submit to another queue"),
        ("b", 2, 0, None),
        ("b", 3, 0, "it needs cpu 3, and user ann may use cpu 2 of root.b at most: ask for less"),
        ("c", 8, 4, None),
        ("c", 9, 0, "it needs cpu 9 on one node, and no node has more than cpu 8: ask for less, or a larger node"),
        ("c", 8, 16, "it needs cpu 8, memory 16Gi on one node, and no node has more than cpu 8, memory 16Gi together"),
        (
            "a",
            9,
            0,
            "no node has more than cpu 8: ask for less, or a larger node has to come; and it needs cpu 9, and queue",
        ),
    ],
)
def test_sizes_are_held_against_nodes_queues_and_limits(queue: str, cores: int, memory: int, said: str | None) -> None:
    """Whatever runs meanwhile; and a search comes to the same."""
    found = asked(scheduler((8, 4), (2, 16)), queue, cores, memory)
    assert (found is None) == (said is None), found
    assert said is None or said in str(found)


def test_without_nodes_nothing_is_said() -> None:
    """They have yet to come."""
    made = scheduler()
    made.handle(AddApplication(ApplicationSpec(id="x", queue="root.c", user="ann")), 0)
    made.handle(AddAsks((AskSpec(application="x", key="x", resources=Resources({"vcore": 1})),)), 0)
    assert never(made, "x", "x") is None
    assert never(made, "gone", "x") is None
