"""The bound on waiting, beside everything else: one queue has `wait.max`, and around it every policy is at work.

The bound of `docs/queues/batch.md`: whoever comes into the queue when k of its tasks wait starts within `wait.max` and
2 (k + 1) L, where L is the longest time limit: so nobody is passed for ever by smaller work, of his queue or of others.
It holds for a queue in which nothing of a higher priority comes, nothing is retried (what is retried goes ahead), and
for whose tasks no user's limit, filter or placeholder is in the way, of which none is larger than a node or than the
maximum of the queue, while no node leaves. In the other queues all goes
on: both rules of preemption, guarantees, fences and offsets, priority classes, changes of priority, kept turns, moves,
idle work, gangs, retries, budgets, labels, required nodes, quotas, new nodes. What is left out, and why it voids the
bound:

* the end, drain or shrinking of a node, and work of other schedulers: the room that gathered is gone;
* a new queue file: it may change `wait.max` itself;
* a placeholder and the work in its place are one piece of work for L: here each has half of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from properties.policies import Happenings, world

from fairlead.core.applications import Ask
from fairlead.core.decisions import Allocated, ApplicationRejected, AskRejected, Decision, Evict
from fairlead.core.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Event,
    MoveApplication,
    Release,
)
from fairlead.core.partition import Partition
from fairlead.core.resources import Limits, Resources
from fairlead.core.specs import ApplicationSpec, AskSpec, ClusterSpec, QueueSpec
from fairlead.scheduler import Scheduler

BOUNDED = "root.c"
WAIT_MAX_MS, LIMIT_MS = 10_000, 8_000
LARGEST = 3
"""So many cores has the largest task of the bounded queue."""
WAITING_MAX = 14
"""Nothing more is submitted while so many wait: k would be large and the bound far away."""
STEPS_OF_ONE = 200


def bounded_world(course: Honoured) -> ClusterSpec:
    """A queue file with something of everything, and `root.c` with a bound and nothing that voids it."""
    chance = course.chance
    spec = world(chance, course.mixture)
    (part,) = spec.partitions
    properties = {"wait.max": f"{WAIT_MAX_MS}ms", "preemption.delay": chance.choice(["1ms", "1s", "20s"])}
    if chance.random() < 0.5:
        properties["backfill"] = "easy"
    bounded = QueueSpec(
        name="c",
        max=Limits({"vcore": chance.randint(3, 8)}) if chance.random() < 0.4 else None,
        guaranteed=Limits({"vcore": chance.randint(1, 5)}) if chance.random() < 0.4 else None,
        properties=properties,
    )
    queues = (*(queue for queue in part.root.queues if queue.name != "c"), bounded)
    return replace(spec, partitions=(replace(part, root=replace(part.root, queues=queues)),))


class Honoured(Happenings):
    """A course in which every time limit is kept to the second, and work never stops coming."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.s = Scheduler(bounded_world(self), 0)
        self.due: dict[tuple[str, str], int] = {}
        self.counts: Counter[str] = Counter()
        self.longest = 0.0
        """The longest wait of a bounded task, as a part of its bound."""
        self.came: dict[tuple[str, str], int] = {}
        for _ in range(self.chance.randint(1, 3)):
            self.s.handle(self.plain_node(), 0)

    @property
    def part(self) -> Partition:
        return self.s.cluster.partitions["default"]

    def plain_node(self) -> AddNode:
        """With labels, but nothing that keeps work off, and large enough for each bounded task."""
        node = self.fresh_node()
        cores = max(self.capacity()["vcore"], LARGEST)
        return AddNode(replace(node.node, taints=(), capacity=Resources({"vcore": cores, "memory": 8})))

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self) -> None:
        self.now_ms += 1_000
        asks = [ask for app in self.part.applications.values() for ask in app.asks.values()]
        for event in (*self.ends_by_limit(asks), *self.confirmations(), *self.chosen(asks)):
            self.handle(event)
        self.take(self.s.schedule(self.now_ms))
        for name, due_ms in self.due.items():
            assert self.now_ms <= due_ms, f"{name} waits {self.now_ms - due_ms} ms longer than its bound"

    def confirmations(self) -> Iterator[Event]:
        """Most of what was told to stop does within the second, the rest by its limit."""
        for order in self.orders[:]:
            if self.chance.random() < 0.7:
                self.orders.remove(order)
                yield Release(order.application, order.key, order.cause)

    def chosen(self, asks: list[Ask]) -> Iterator[Event]:
        chance = self.chance
        others = [ask for ask in asks if ask.app.queue.path != BOUNDED]
        waiting = sum(ask.pending for ask in asks)
        what = chance.random()
        if waiting < WAITING_MAX and what < 0.8:
            yield from self.bounded() if chance.random() < 0.4 else self.submit(self.part)
        elif what < 0.85 and asks:
            yield self.end(chance.choice(asks))
        elif what < 0.98 and others:
            event = self.at_work(chance.choice(others), self.part)
            if not (isinstance(event, MoveApplication) and event.queue == BOUNDED):
                yield event
        elif len(self.part.nodes.nodes) < self.mixture.nodes:
            yield self.plain_node()

    def bounded(self) -> Iterator[Event]:
        """A task of the bounded queue, now and then idle: that has no bound."""
        chance, app = self.chance, self.name("w")
        idle = chance.random() < 0.15
        cores = chance.choice([1, 1, 1, 2, LARGEST, LARGEST])
        limit_ms = 1_000 * chance.randint(1, LIMIT_MS // 1_000)
        amount = Resources({"vcore": cores})
        spec = AskSpec(application=app, key=app, resources=amount, time_limit_ms=limit_ms, idle=idle)
        if not idle:
            behind = sum(a.pending_count for a in self.part.applications.values() if a.queue.path == BOUNDED)
            self.due[app, app] = self.now_ms + WAIT_MAX_MS + 2 * (behind + 1) * LIMIT_MS
            self.came[app, app] = self.now_ms
        yield AddApplication(ApplicationSpec(id=app, queue=BOUNDED))
        yield AddAsks((spec,))

    def submit(self, part: Partition) -> Iterator[Event]:
        """Work for the other queues: every piece of it has a limit."""
        for event in super().submit(part):
            if isinstance(event, AddApplication) and event.application.queue == BOUNDED:
                queue = self.chance.choice(["root.a.x", "root.a.y", "root.b.z"])
                event = AddApplication(replace(event.application, queue=queue))
            elif isinstance(event, AddAsks):
                event = AddAsks(tuple(self.limited(spec) for spec in event.asks))
            yield event

    def limited(self, spec: AskSpec) -> AskSpec:
        most = LIMIT_MS // 2 if spec.task_group else LIMIT_MS
        return replace(spec, time_limit_ms=1_000 * self.chance.randint(1, most // 1_000))

    def at_work(self, ask: Ask, part: Partition) -> Event:
        event = super().at_work(ask, part)
        if isinstance(event, AddAsks):
            event = AddAsks(tuple(self.limited(spec) for spec in event.asks))
        return event

    # -- what has to hold -------------------------------------------------------------------------------------------

    def take(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            self.counts[type(decision).__name__] += 1
            if isinstance(decision, Evict):
                self.counts[f"rule {decision.rule}"] += 1
                self.orders.append(decision)
            elif isinstance(decision, Allocated):
                name = (decision.application, decision.key)
                due_ms = self.due.pop(name, None)
                if due_ms is not None:
                    came = self.came.pop(name)
                    self.counts["bounded"] += 1
                    self.longest = max(self.longest, (self.now_ms - came) / (due_ms - came))
            elif isinstance(decision, AskRejected | ApplicationRejected):
                key = decision.key if isinstance(decision, AskRejected) else decision.id
                self.due.pop((key, key), None)

    def handle(self, event: Event) -> None:
        """What its owner takes back has no bound any more."""
        if isinstance(event, Release):
            self.due.pop((event.application, event.key), None)
        self.take(self.s.handle(event, self.now_ms))


@pytest.mark.timeout(7200)
def test_no_wait_is_longer_than_its_bound_whatever_goes_on_beside_it(courses: int) -> None:
    """All courses together: the bound is kept, and waits came near enough to it that it says something."""
    counts: Counter[str] = Counter()
    longest = 0.0
    for number in range(courses):
        course = Honoured(number)
        for step in range(STEPS_OF_ONE):
            try:
                course.step()
            except AssertionError as e:
                raise AssertionError(f"course {number}, step {step}: {e}") from e
        course.s.check()
        counts += course.counts
        longest = max(longest, course.longest)
    assert longest > 0.4, f"the longest wait is only {longest} of its bound"
    assert counts["bounded"] > 10 * courses, counts
