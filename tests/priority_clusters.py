"""Small clusters with `preemption.rule: priority`, for tests that play what happens in them step by step."""

from __future__ import annotations

from typing import Any

from invariants.books import check_books

from fairlead.core.model.constraints import Constraints, Requirement
from fairlead.core.model.decisions import Allocated, Decision, Evict, LoopBroken
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Event, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    BudgetSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler


class PriorityCluster:
    """A cluster under way, with all that it decided."""

    def __init__(
        self,
        *queues: QueueSpec,
        nodes: dict[str, int] | None = None,
        budgets: tuple[BudgetSpec, ...] = (),
        rule: str = "priority",
        enabled: bool = True,
        limits: tuple[LimitSpec, ...] = (),
    ) -> None:
        """`nodes`: so many cores on each; without queues there are two leaves, `a` and `b`."""
        leaves = queues or (QueueSpec(name="a"), QueueSpec(name="b"))
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves, limits=limits)
        part = PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule, enabled=enabled))
        self.spec = ClusterSpec(partitions=(part,), budgets=budgets)
        self.s = Scheduler(self.spec)
        self.now_ms = 0
        self.decided: list[Decision] = []
        self._steps = 0
        for name, cores in (nodes or {"n1": 4}).items():
            self.node(name, cores)

    def handle(self, event: Event) -> list[Decision]:
        decided = self.s.handle(event, self.now_ms)
        self.decided += decided
        self._check()
        return decided

    def _check(self) -> None:
        """The books, after each of the first hundred steps, and in a long course after each twentieth."""
        self._steps += 1
        if self._steps <= 100 or self._steps % 20 == 0:
            check_books(self.s)

    def node(self, name: str, cores: int, **attributes: str) -> None:
        self.handle(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": cores * 1000}), attributes=attributes)))

    def submit(
        self, key: str, cores: int, priority: int = 0, queue: str = "root.a", user: str = "nobody", **more: Any
    ) -> None:
        """One application with one ask of the same name."""
        self.handle(AddApplication(ApplicationSpec(id=key, queue=queue, user=user)))
        ask = AskSpec(application=key, key=key, resources=Resources({"vcore": cores * 1000}), priority=priority, **more)
        self.handle(AddAsks((ask,)))

    def run(self, millis: int = 1) -> tuple[list[str], list[str]]:
        """Time passes, then it schedules: who starts (`key@node`) and who is told to stop."""
        self.now_ms += millis
        decided = self.s.schedule(self.now_ms)
        self.decided += decided
        self._check()
        return (
            [f"{d.key}@{d.node}" for d in decided if isinstance(d, Allocated)],
            [d.key for d in decided if isinstance(d, Evict)],
        )

    def fill(self, key: str, cores: int, priority: int = 0, queue: str = "root.a", **more: Any) -> str:
        """Submit work that starts at once; returns its node."""
        self.submit(key, cores, priority, queue, **more)
        started, _ = self.run()
        assert [name.partition("@")[0] for name in started] == [key]
        return started[0].partition("@")[2]

    def gone(self, key: str, app: str = "", cause: Cause = Cause.PREEMPTED_BY_SCHEDULER) -> None:
        """The victim has stopped."""
        self.handle(Release(app or key, key, cause))

    def finished(self, key: str) -> None:
        self.handle(Release(key, key, Cause.FINISHED))

    def evictions(self) -> list[Evict]:
        return [d for d in self.decided if isinstance(d, Evict)]

    def loops(self) -> list[LoopBroken]:
        return [d for d in self.decided if isinstance(d, LoopBroken)]

    def nominated(self) -> dict[str, str]:
        part = self.s.cluster.partitions["default"]
        return {ask.key: ask.held_on.id for ask in part.nominations if ask.held_on is not None}


def cores(count: int) -> Limits:
    return Limits({"vcore": count * 1000})


def labelled(value: str) -> tuple[Requirement, ...]:
    """The selector `app=value`."""
    return (Requirement("app", "In", (value,)),)


def on(node: str) -> dict[str, str]:
    """The tags of work that may run on this node alone."""
    return {TAG_REQUIRED_NODE: node}


def only_on(node: str) -> Constraints:
    """The same as a constraint: where the node is this one."""
    return Constraints(node_terms=((Requirement("kubernetes.io/hostname", "In", (node,)),),))
