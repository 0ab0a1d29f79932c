"""Random courses with windows: nothing starts that would run into one, and nothing that fits is left waiting.

After every step the books are checked, what was read back from a dump is the same state and decides the same, and a
scheduler that forgets what it remembers finds nothing more to do.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from invariants.books import check_books
from portions import in_portions

from fairlead.core.books.windows import covers, is_for, occurrence
from fairlead.core.model.decisions import Allocated, Decision, Evict
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    ChangeAsk,
    MoveApplication,
    Release,
    RemoveWindow,
    SetWindow,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RetrySpec,
    WindowSpec,
)
from fairlead.scheduler import Scheduler

SEEDS = range(12)
STEPS = 60


class Course:
    """One cluster, what happened to it, and the law."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        properties = {"wait.max": "40s"} if seed % 3 == 0 else {}
        leaves = tuple(QueueSpec(name=name, properties=properties) for name in "ab")
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
        rule = ("guarantee", "priority", "both")[seed % 3]
        partition = PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule))
        self.s = Scheduler(ClusterSpec(partitions=(partition,)))
        self.now_ms = 0
        self.count = 0
        self.running: dict[str, str] = {}
        self.limits: dict[str, int | None] = {}
        for number in range(1 + seed % 3):
            self.handle(AddNode(NodeSpec(id=f"n{number}", capacity=Resources({"vcore": 4000}))))

    def handle(self, event: Any) -> None:
        self.watch(self.s.handle(event, self.now_ms))

    def watch(self, decided: list[Decision]) -> None:
        """Hold each start against every window as it is now."""
        partition = self.s.cluster.partitions["default"]
        for each in decided:
            if isinstance(each, Allocated):
                self.running[each.key] = each.application
                app, node = partition.applications[each.application], partition.nodes.nodes[each.node]
                limit_ms = app.asks[each.key].spec.time_limit_ms
                for spec in self.s.cluster.admission.windows:
                    times = occurrence(spec, self.now_ms)
                    if times is None or is_for(spec, app) or not covers(spec, node):
                        continue
                    assert limit_ms is not None, f"{each.key} has no limit and starts before {spec}"
                    assert self.now_ms + limit_ms <= times[0], f"{each.key} runs into {spec}"

    def step(self) -> None:
        """Something happens, and it schedules."""
        draw = self.random
        kind = draw.random()
        if kind < 0.4:
            self.submit()
        elif kind < 0.55 and self.running:
            key = draw.choice(sorted(self.running))
            self.handle(Release(self.running.pop(key), key, Cause.FINISHED, exit_code=0))
        elif kind < 0.7:
            self.window()
        elif kind < 0.75:
            self.handle(RemoveWindow(f"w{draw.randrange(3)}"))
        elif kind < 0.85 and self.count:
            name = f"j{draw.randrange(self.count)}"
            self.handle(ChangeAsk(name, name, Resources({"vcore": draw.choice((500, 2000))}), self.limit()))
        elif self.count:
            self.handle(MoveApplication(f"j{draw.randrange(self.count)}", f"root.{draw.choice('ab')}"))
        self.schedule()
        for due_ms in iter(self.s.next_wakeup_ms, None):
            if due_ms > self.now_ms + 30_000:
                break
            self.now_ms = max(due_ms, self.now_ms + 1)
            self.schedule()
            if draw.random() < 0.2:
                break
        self.now_ms += draw.choice((1, 500, 20_000))
        self.schedule()

    def limit(self) -> int | None:
        return self.random.choice((None, 1_000, 10_000, 30_000, 100_000))

    def submit(self) -> None:
        draw, name = self.random, f"j{self.count}"
        self.count += 1
        user = draw.choice(("ann", "bob"))
        self.handle(AddApplication(ApplicationSpec(id=name, queue=f"root.{draw.choice('ab')}", user=user)))
        more: dict[str, Any] = {"retry": RetrySpec(limit=2)} if draw.random() < 0.4 else {}
        more["idle"] = draw.random() < 0.15
        ask = AskSpec(
            application=name,
            key=name,
            resources=Resources({"vcore": draw.choice((500, 1000, 3000))}),
            priority=draw.choice((0, 0, 5)),
            time_limit_ms=self.limit(),
            labels={"app": "x"} if draw.random() < 0.3 else {},
            **more,
        )
        self.handle(AddAsks((ask,)))

    def window(self) -> None:
        draw = self.random
        length_ms = draw.choice((1_000, 20_000))
        spec = WindowSpec(
            name=f"w{draw.randrange(3)}",
            starts_ms=max(self.now_ms + draw.choice((-5_000, 0, 5_000, 50_000)), 0),
            length_ms=length_ms,
            every_ms=draw.choice((0, 0, length_ms * 3)),
            nodes=draw.choice(((), (), ("n0",), ("n0", "n1"))),
            users=draw.choice(((), ("ann",))),
            queues=draw.choice(((), (), ("root.b",))),
            stop_running=draw.random() < 0.3,
        )
        self.handle(SetWindow(spec))

    def schedule(self) -> None:
        check_books(self.s)
        copy = Scheduler.load(self.s.dump())
        assert copy.dump() == self.s.dump()
        decided = self.s.schedule(self.now_ms)
        assert copy.schedule(self.now_ms) == decided, "what was read back decides otherwise"
        self.watch(decided)
        check_books(self.s)
        for each in decided:
            if isinstance(each, Evict) and each.key in self.running:
                self.handle(Release(self.running.pop(each.key), each.key, each.cause))
        more = self.s.schedule(self.now_ms)
        self.watch(more)
        self.s.forget()
        again = self.s.schedule(self.now_ms)
        assert not [each for each in again if isinstance(each, Allocated)], "something that fits was left waiting"


@pytest.mark.parametrize("seed", in_portions(SEEDS, 6))
def test_the_law_of_windows_holds_in_random_courses(seed: int) -> None:
    course = Course(seed)
    for _ in range(STEPS):
        course.step()
