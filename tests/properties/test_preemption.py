"""Preemption by priority under random mixes: nothing is stopped in vain, nothing twice, nothing that is as important.

What is watched is worked out from the decisions and the queue file alone.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from invariants.books import check_books
from portions import where_compiled

from fairlead.core.model.constraints import Requirement
from fairlead.core.model.decisions import Allocated, Decision, Evict, Released, Reserved, Unreserved
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Checkpoint,
    Configure,
    DrainNode,
    Event,
    Release,
    RemoveBudget,
    RemoveNode,
    SetBudget,
    SetPriority,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    BudgetSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RetrySpec,
)
from fairlead.scheduler import Scheduler

STEPS_PER_COURSE = 100
CHECKED_EVERY = 10
"""The books as a whole are checked so often: that takes much longer than a step."""
LEAVES = ("root.a.x", "root.a.y", "root.b", "root.c")
RETRY = RetrySpec(limit=50)


def spec(chance: random.Random) -> ClusterSpec:
    """A queue file with offsets, fences, maxima, limits and protections here and there."""

    def rules() -> dict[str, str]:
        known = {
            "priority.offset": ("1", "-2", "3"),
            "priority.policy": ("fence", "default", "default"),
            "preemption.policy": ("fence", "disabled", "default", "default"),
            "preemption.min.runtime": ("2s", "10s"),
            "preemption.evictions.max": ("0", "2", "5"),
        }
        return {key: chance.choice(texts) for key, texts in known.items() if chance.random() < 0.2}

    def queue(name: str, *below: QueueSpec) -> QueueSpec:
        most = Limits({"vcore": chance.randint(2, 12)}) if chance.random() < 0.3 else None
        apps = chance.randint(2, 6) if chance.random() < 0.1 else 0
        limits = (LimitSpec(users=("ann",), max_resources=Limits({"vcore": 5})),) if chance.random() < 0.2 else ()
        return QueueSpec(
            name=name,
            parent=bool(below),
            queues=below,
            max=most,
            max_applications=apps,
            limits=limits,
            properties=rules(),
        )

    leaves = (queue("a", queue("x"), queue("y")), queue("b"), queue("c"))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule="priority")),))


class Course:
    """One course of random events, and what has to hold all the time."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(number)
        self.now_ms = 0
        self.made = 0
        self.s = Scheduler(spec(self.chance), 0)
        self.to_confirm: list[Evict] = []
        self.stopped_for: dict[tuple[str, str], int] = {}
        self.news = 0
        self.nominated: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        for number in range(self.chance.randint(1, 5)):
            self.handle(AddNode(NodeSpec(id=f"n{number}", capacity=self.amount(2, 8))))

    @property
    def part(self) -> Any:
        return self.s.cluster.partitions["default"]

    def amount(self, low: int, high: int) -> Resources:
        return Resources({"vcore": self.chance.randint(low, high), "memory": self.chance.randint(0, high)})

    def handle(self, event: Event) -> None:
        for decision in self.s.handle(event, self.now_ms):
            self.note(decision)

    def run(self, steps: int) -> None:
        for step in range(steps):
            self.now_ms += self.chance.choice([0, 1, 1_000, 5_000, 60_000])
            self.step()
            for decision in self.s.schedule(self.now_ms, self.chance.choice([None, None, 1, 3])):
                self.note(decision)
            if step % CHECKED_EVERY == 0:
                check_books(self.s)
            self.holds_agree()

    # -- what happens ---------------------------------------------------------------------------------------------

    def step(self) -> None:
        what = self.chance.random()
        asks = [ask for app in self.part.applications.values() for ask in app.asks.values()]
        if self.to_confirm and what < 0.35:
            order = self.to_confirm.pop(self.chance.randrange(len(self.to_confirm)))
            self.handle(Release(order.application, order.key, order.cause))
        elif what < 0.65 or not asks:
            self.submit()
        elif what < 0.80:
            ask = self.chance.choice(asks)
            self.handle(Release(ask.app.id, ask.key, Cause.FINISHED))
        elif what < 0.84:
            ask = self.chance.choice(asks)
            self.handle(SetPriority(ask.app.id, ask.key, self.chance.randint(-3, 6)))
        elif what < 0.87:
            ask = self.chance.choice(asks)
            self.handle(Checkpoint(ask.app.id, ask.key))
        elif what < 0.90:
            bound = {self.chance.choice(["min_available", "max_unavailable"]): self.chance.choice([0, 1, 2, "50%"])}
            selector = (Requirement("app", "In", (self.chance.choice("pq"),)),)
            name = self.chance.choice(["one", "two"])
            self.handle(SetBudget(BudgetSpec(name=name, selector=selector, **bound)))  # type: ignore[arg-type]
        elif what < 0.91:
            self.handle(RemoveBudget(self.chance.choice(["one", "two"])))
        else:
            self.change_capacity()

    def submit(self) -> None:
        self.made += 1
        self.news += 1
        app = f"w{self.made}"
        user = self.chance.choice(["ann", "bob"])
        self.handle(AddApplication(ApplicationSpec(id=app, queue=self.chance.choice(LEAVES), user=user)))
        asks = tuple(
            AskSpec(
                application=app,
                key=f"{app}-{i}",
                resources=self.amount(1, 4),
                priority=self.chance.randint(-3, 6),
                labels={"app": self.chance.choice("pqr")},
                allow_preempt_other=self.chance.random() < 0.8,
                retry=RETRY if self.chance.random() < 0.7 else None,
            )
            for i in range(self.chance.randint(1, 3))
        )
        self.handle(AddAsks(asks))

    def change_capacity(self) -> None:
        self.news += 1
        node = f"n{self.chance.randrange(5)}"
        kind = self.chance.randrange(6)
        if kind < 2:
            self.handle(AddNode(NodeSpec(id=node, capacity=self.amount(2, 8))))
        elif kind == 2:
            self.handle(UpdateNode(node, self.amount(1, 8)))
        elif kind == 3:
            self.handle(self.chance.choice([DrainNode(node), UndrainNode(node)]))
        elif kind == 4:
            self.handle(RemoveNode(node))
        else:
            self.handle(Configure(spec(self.chance)))

    # -- what has to hold -----------------------------------------------------------------------------------------

    def note(self, decision: Decision) -> None:
        name = type(decision).__name__
        self.counts[name] = self.counts.get(name, 0) + 1
        if isinstance(decision, Evict) and decision.rule == "priority":
            self.to_confirm.append(decision)
            self.nothing_in_vain(decision)
        elif isinstance(decision, Reserved):
            self.nominated[f"{decision.application}/{decision.key}"] = decision.node
        elif isinstance(decision, Unreserved | Allocated | Released):
            self.nominated.pop(f"{decision.application}/{decision.key}", None)

    def nothing_in_vain(self, order: Evict) -> None:
        """The victim stands strictly below whom it is stopped for, and was not stopped for it before."""
        app, _, key = order.on_behalf_of.rpartition("/")
        asks = self.part.applications[app or key].asks
        assert key in asks, f"{order} is for somebody who is not there"
        victim = self.part.applications[order.application].asks[order.key]
        mine, theirs = standings(asks[key], victim)
        assert mine > theirs, f"{order}: {mine} is not above {theirs}"
        pair = (first(asks[key]), first(victim))
        assert self.stopped_for.get(pair, -1) < self.news, f"{order}: a second time, and nothing new has come"
        self.stopped_for[pair] = self.news
        rules = victim.app.queue.properties
        assert self.now_ms - victim.allocated_ms >= rules.preemption_min_runtime_ms, f"{order}: too young"
        assert rules.preemption_policy != "disabled", f"{order}: its queue says no"

    def holds_agree(self) -> None:
        """Who had others stopped has the space held, or was told that it is not held any more."""
        held = {f"{a.app.id}/{a.key}": a.held_on.id for a in self.part.nominations}
        assert self.nominated == held
        for order in self.to_confirm:
            app = self.part.applications.get(order.application)
            victim = app.asks.get(order.key) if app is not None else None
            if victim is not None and victim.node is not None:
                assert victim.evict_cause is not None, f"{victim} was told to stop and is not leaving"


def first(ask: Any) -> str:
    return f"{ask.app.id}/{ask.spec.first_key or ask.key}"


def standings(left: Any, right: Any) -> tuple[int, int]:
    """Both priorities as seen in the lowest queue that both are in."""

    def way(ask: Any) -> dict[str, int]:
        seen, found, queue = ask.priority, {}, ask.app.queue
        while queue is not None:
            found[queue.path] = seen
            rules = queue.properties
            seen = rules.priority_offset if rules.priority_fence else seen + rules.priority_offset
            queue = queue.parent
        return found

    mine, theirs = way(left), way(right)
    common = next(path for path in mine if path in theirs)
    return mine[common], theirs[common]


@pytest.mark.timeout(1800)
def test_nothing_is_stopped_in_vain_or_twice(fewer_steps: int) -> None:
    """Over many courses of events, with queues, limits, budgets and protections drawn at random."""
    counts: dict[str, int] = {}
    for number in range(max(fewer_steps // STEPS_PER_COURSE, 1)):
        course = Course(number)
        course.run(min(fewer_steps, STEPS_PER_COURSE))
        for name, count in course.counts.items():
            counts[name] = counts.get(name, 0) + count
    assert fewer_steps < 4_000 or (counts["Evict"] > fewer_steps // 40 and counts["Reserved"] > fewer_steps // 40), (
        counts
    )


@where_compiled
def test_nominations_end_with_the_start_when_all_is_confirmed() -> None:
    """When the events stop and every victim goes, whoever is nominated starts or gives up the space, and it ends."""
    for number in range(20):
        course = Course(1_000 + number)
        course.run(100)
        for _ in range(400):
            if not course.to_confirm and not course.part.nominations:
                break
            while course.to_confirm:
                order = course.to_confirm.pop()
                course.handle(Release(order.application, order.key, order.cause))
            for decision in course.s.schedule(course.now_ms):
                course.note(decision)
        else:
            raise AssertionError(f"course {1_000 + number} goes on for ever: {list(course.part.nominations)}")
