"""A gang under way, for tests that play what happens to it step by step."""

from __future__ import annotations

from typing import Any

from invariants.books import check_books

from fairlead.core.model.decisions import Decision, Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Event, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, PartitionSpec, QueueSpec
from fairlead.scheduler import Scheduler


class Gang:
    """A scheduler with one gang application `g`, and what was decided so far."""

    def __init__(self, size: int, *nodes: int, style: str = "Soft", timeout_ms: int = 0, tags: Any = None) -> None:
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="leaf"),))
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
        self.now = 0
        self.seen: list[Decision] = []
        for i, cores in enumerate(nodes):
            self.do(AddNode(NodeSpec(id=f"n{i}", capacity=Resources({"vcore": cores}))))
        spec = ApplicationSpec(
            id="g",
            queue="root.leaf",
            placeholder_ask=Resources({"vcore": size}),
            gang_style=style,
            placeholder_timeout_ms=timeout_ms,
            tags=tags or {},
        )
        self.do(AddApplication(spec))

    def do(self, event: Event) -> list[Decision]:
        decided = self.s.handle(event, self.now)
        check_books(self.s)
        self.seen += decided
        return decided

    def ask(self, *keys: str, cores: int = 1, **more: Any) -> None:
        more = {"task_group": "t"} | more
        asks = (AskSpec(application="g", key=k, resources=Resources({"vcore": cores}), **more) for k in keys)
        self.do(AddAsks(tuple(asks)))

    def placeholders(self, *keys: str, **more: Any) -> None:
        self.ask(*keys, placeholder=True, **more)

    def run(self) -> list[Decision]:
        decided = self.s.schedule(self.now)
        check_books(self.s)
        self.seen += decided
        return decided

    def confirm(self, decided: list[Decision]) -> list[Decision]:
        """The outside did what it was told."""
        after: list[Decision] = []
        for d in decided:
            if isinstance(d, Evict):
                after += self.do(Release(d.application, d.key, d.cause))
        return after

    def pass_time(self, millis: int) -> list[Decision]:
        self.now += millis
        return self.run()

    @property
    def app(self) -> Any:
        return self.s.cluster.partitions["default"].applications["g"]

    @property
    def running(self) -> dict[str, str]:
        return {a.key: a.node.id for a in self.app.allocated_asks()}


def evicted(decided: list[Decision]) -> list[tuple[str, Cause]]:
    return [(d.key, d.cause) for d in decided if isinstance(d, Evict)]


def formed(size: int = 2, *nodes: int, **more: Any) -> Gang:
    """A gang with all its placeholders `p0`, `p1`, … in place."""
    g = Gang(size, *(nodes or (size,)), **more)
    g.placeholders(*(f"p{i}" for i in range(size)))
    g.run()
    return g
