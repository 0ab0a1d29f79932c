"""Small clusters for tests of one decision: queues in a line or two, nodes of so many cores, one ask at a time.

Times are in milliseconds; what a scheduler says is given back, so that a test names what it looks at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fairlead.core.model.decisions import Allocated, Decision, Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RuleSpec,
)
from fairlead.scheduler import Scheduler

RULES = ("guarantee", "priority", "both")
SOON = {"preemption.delay": "1s"}


def cores(count: int) -> Resources:
    return Resources({"vcore": count * 1000})


def guaranteed(name: str, count: int, **more: Any) -> QueueSpec:
    return QueueSpec(name=name, guaranteed=Limits({"vcore": count * 1000}), **more)


def queue_file(
    *queues: QueueSpec,
    rule: str = "guarantee",
    rules: tuple[RuleSpec, ...] = (),
    limits: tuple[LimitSpec, ...] = (),
    **more: Any,
) -> ClusterSpec:
    """With these queues (default: the leaves a and b), rules of placement, and limits of the root; `more` is of the
    cluster.
    """
    leaves = queues or (QueueSpec(name="a"), QueueSpec(name="b"))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves, limits=limits)
    part = PartitionSpec(root=root, placement_rules=rules, preemption=PreemptionSpec(rule=rule))
    return ClusterSpec(partitions=(part,), **more)


def cluster(*queues: QueueSpec, nodes: Mapping[str, int], **more: Any) -> Scheduler:
    """A scheduler with this `queue_file` and nodes of so many cores."""
    return on_nodes(queue_file(*queues, **more), **nodes)


def on_nodes(spec: ClusterSpec, **nodes: int) -> Scheduler:
    """The same, from a queue file."""
    s = Scheduler(spec)
    for name, count in nodes.items():
        s.handle(AddNode(NodeSpec(id=name, capacity=cores(count))), 0)
    return s


def application(s: Scheduler, name: str, queue: str = "root.a", now: int = 0, **more: Any) -> None:
    s.handle(AddApplication(ApplicationSpec(id=name, queue=queue, **more)), now)


def ask(s: Scheduler, app: str, key: str, count: int = 1, now: int = 0, **more: Any) -> list[Decision]:
    """An ask of so many cores."""
    return s.handle(AddAsks((AskSpec(application=app, key=key, resources=cores(count), **more),)), now)


def submit(
    s: Scheduler, key: str, count: int, now: int = 0, queue: str = "root.a", user: str = "nobody", **more: Any
) -> list[Decision]:
    """One application with one ask of the same name; what is said of the ask."""
    application(s, key, queue, now, user=user)
    return ask(s, key, key, count, now, **more)


def restarted(s: Scheduler) -> Scheduler:
    return Scheduler.load(json.loads(json.dumps(s.dump())))


def over_time(s: Scheduler, now: int, until: int) -> list[Decision]:
    """What is decided when the scheduler is called whenever it wants to be."""
    said = s.schedule(now)
    while (due := s.next_wakeup_ms()) is not None and due <= until:
        said += s.schedule(due)
    return said


def started(decisions: list[Decision]) -> list[str]:
    return [f"{d.key}@{d.node}" for d in decisions if isinstance(d, Allocated)]


def stopped(decisions: list[Decision]) -> list[str]:
    return [d.key for d in decisions if isinstance(d, Evict)]
