"""Search classes: what stands for each other is found the same for; what differs on the way to the root tells apart."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.specs import QueueSpec
from fairlead.policy.order.victim_index import Stoppable
from fairlead.policy.preemption.search_class import class_of

FENCE = {"preemption.policy": "fence"}


def are_alike(a: QueueSpec, b: QueueSpec, fill: dict[str, int] | None = None, rule: str = "both") -> bool:
    """Whether two asks of two cores each, in these leaves, stand for each other where this many run of each leaf."""
    c = PriorityCluster(a, b, nodes={"n1": 4, "n2": 4, "n3": 4, "n4": 4}, rule=rule)
    for queue, cores_each in (fill or {}).items():
        for n in range(cores_each):
            c.fill(f"{queue}{n}", 1, 5, f"root.{queue}")
    part = c.s.cluster.partitions["default"]
    for queue in ("a", "b"):
        c.submit(f"new-{queue}", 2, 0, f"root.{queue}")
    table = Stoppable()
    table.keep_up(part)
    apps = [app for app in part.applications.values() if app.id.startswith("new-")]
    classes = [class_of(part, batch.demand, table) for app in apps for batch in app.batches.values()]
    assert len(classes) == 2
    return classes[0] == classes[1]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, True, id="nothing is declared"),
        pytest.param({"max": cores(100)}, False, id="a maximum"),
        pytest.param({"properties": FENCE}, False, id="a fence of preemption"),
        pytest.param({"properties": {"priority.policy": "fence"}}, False, id="a fence of priority"),
        pytest.param({"properties": {"priority.offset": "1"}}, False, id="another offset"),
        pytest.param({"guaranteed": cores(2)}, False, id="within its guarantee"),
    ],
)
def test_what_is_declared_tells_leaves_apart(given: dict[str, object], expected: bool) -> None:
    assert are_alike(QueueSpec(name="a", **given), QueueSpec(name="b")) == expected  # type: ignore[arg-type]


def test_leaves_with_the_same_offset_are_alike() -> None:
    ten = {"priority.offset": "10"}
    assert are_alike(QueueSpec(name="a", properties=ten), QueueSpec(name="b", properties=ten))


@pytest.mark.parametrize(
    ("guaranteed", "running", "expected"),
    [
        pytest.param(9, 4, False, id="within it"),
        pytest.param(8, 8, False, id="within it if two stopped, and so many are on one node"),
        pytest.param(7, 8, True, id="within it if three stopped, and no node has so many"),
    ],
)
def test_a_leaf_far_above_its_guarantee_is_like_one_without(guaranteed: int, running: int, expected: bool) -> None:
    a = QueueSpec(name="a", guaranteed=cores(guaranteed))
    assert are_alike(a, QueueSpec(name="b"), {"a": running}) == expected


def test_by_priority_alone_a_guarantee_tells_nothing_apart() -> None:
    assert are_alike(QueueSpec(name="a", guaranteed=cores(9)), QueueSpec(name="b"), rule="priority")
