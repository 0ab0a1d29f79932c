"""Faults on the side of the queues that a second reading found: orders, limits, gates, and what wakes what waits there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.decisions import Allocated, Decision, Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RuleSpec,
)
from fairlead.scheduler import Scheduler

RULES = ("guarantee", "priority", "both")


def cores(count: int) -> Resources:
    return Resources({"vcore": count * 1000})


def cluster(*queues: QueueSpec, nodes: dict[str, int], rule: str = "guarantee", **more: Any) -> Scheduler:
    """With these queues and nodes of so many cores; `more` is of the partition."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    spec = PartitionSpec(name="default", root=root, preemption=PreemptionSpec(rule=rule), **more)
    s = Scheduler(ClusterSpec(partitions=(spec,)))
    for name, count in nodes.items():
        s.handle(AddNode(NodeSpec(id=name, capacity=cores(count))), 0)
    return s


def submit(
    s: Scheduler, key: str, count: int, now: int = 0, queue: str = "root.a", user: str = "nobody", **more: Any
) -> None:
    """One application with one ask of the same name."""
    s.handle(AddApplication(ApplicationSpec(id=key, queue=queue, user=user)), now)
    s.handle(AddAsks((AskSpec(application=key, key=key, resources=cores(count), **more),)), now)


def started(decisions: list[Decision]) -> list[str]:
    return [f"{d.key}@{d.node}" for d in decisions if isinstance(d, Allocated)]


def stopped(decisions: list[Decision]) -> list[str]:
    return [d.key for d in decisions if isinstance(d, Evict)]


# -- gates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_a_gang_that_gave_way_keeps_nothing_else_of_its_queue_back(rule: str) -> None:
    """Where a queue bounds its applications, what is like the gang's placeholders waited behind its gate."""
    leaves = [QueueSpec(name=name, max_applications=9) for name in ("a", "b")]
    s = cluster(*leaves, nodes={"n1": 4, "n2": 4}, rule=rule)
    for name, queue, sizes in (("first", "root.a", (4, 4)), ("later", "root.b", (2, 2, 2))):
        s.handle(AddApplication(ApplicationSpec(id=name, queue=queue)), 0)
        held: dict[str, Any] = {"application": name, "placeholder": True, "task_group": "t"}
        asks = (AskSpec(key=f"{name}{i}", resources=cores(size), **held) for i, size in enumerate(sizes))
        s.handle(AddAsks(tuple(asks)), 0)
    assert stopped(s.schedule(0)) == ["later0", "later1"]
    s.handle(AddNode(NodeSpec(id="n3", capacity=cores(2))), 1)
    submit(s, "other", 2, 1, "root.b")
    assert started(s.schedule(1)) == ["other@n3"]
    for key in ("later0", "later1"):
        s.handle(Release("later", key, Cause.PREEMPTED_BY_SCHEDULER), 2)
    assert started(s.schedule(2)) == ["first1@n2"]
    s.handle(AddNode(NodeSpec(id="n4", capacity=cores(4))), 3)
    assert len(started(s.schedule(3))) == 2
    check_books(s)


# -- order ----------------------------------------------------------------------------------------------------------


def guaranteed(count: int) -> dict[str, str]:
    """The tag of a namespace that is guaranteed so many cores."""
    return {"namespace.resourceguaranteed": json.dumps({"resources": {"vcore": {"value": count * 1000}}})}


@pytest.mark.parametrize("forgets", [False, True])
def test_a_queue_finds_its_place_when_an_application_states_another_guarantee(forgets: bool) -> None:
    """Though that application has nothing to offer yet: shares are measured against the new one at once."""
    rules = (RuleSpec(name="provided", create=True),)
    s = cluster(QueueSpec(name="other"), nodes={"n1": 10}, rule="priority", placement_rules=rules)
    submit(s, "run", 6, queue="root.other")
    for leaf in ("x", "y"):
        s.handle(AddApplication(ApplicationSpec(id=leaf, queue=f"root.{leaf}", user="u", tags=guaranteed(10))), 0)
        s.handle(AddAsks(tuple(AskSpec(application=leaf, key=f"{leaf}{i}", resources=cores(2)) for i in (0, 1))), 0)
    assert started(s.schedule(1)) == ["run@n1", "x0@n1", "y0@n1"]
    s.handle(AddApplication(ApplicationSpec(id="more", queue="root.x", user="u", tags=guaranteed(2))), 2)
    if forgets:
        s.forget()
    s.handle(Release("run", "run"), 3)
    assert started(s.schedule(3, limit=1)) == ["y1@n1"]
