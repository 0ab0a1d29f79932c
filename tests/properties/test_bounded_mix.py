"""The bound on waiting, beside everything else: one queue has `wait.max`, and around it every policy is at work.

The bound of `docs/queues/batch.md`: whoever comes into the queue when k of its tasks wait starts within `wait.max` and
2 (k + 1) L, where L is the longest time limit: so nobody is passed for ever by smaller work, of his queue or of others.
That sum is far away where many wait, so its parts are watched one by one: whoever has waited for `wait.max` gets a turn
as soon as nobody of the queue has one, the oldest first, no turn lasts longer than 2 L, and without `backfill: easy`
nobody of the queue passes it. There is always more to do than the machines can, and most of it is small: without turns
the large would wait for ever.

It holds for a queue in which nothing of a higher priority comes, nothing is retried (what is retried goes ahead), and
for whose tasks no user's limit, filter or placeholder is in the way, of which none is larger than a node or than the
maximum of the queue, while no node leaves. In the other queues all goes
on: both rules of preemption, guarantees, fences and offsets, priority classes, changes of priority, kept turns, moves,
idle work, gangs, retries, budgets, labels, required nodes, quotas, new nodes. What is left out, and why it voids the
bound:

* the end, drain or shrinking of a node, work that is there already when it is reported or that grows while it runs, and
  work of other schedulers: the room that gathered is gone;
* another size or time limit, or a hold, of what is there: it is other work than what came;
* a new queue file: it may change `wait.max` itself;
* a placeholder and the work in its place are one piece of work for L: here each has half of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from invariants.books import check_books
from properties.policies import Happenings, world

from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import (
    Allocated,
    ApplicationRejected,
    AskRejected,
    Decision,
    Evict,
    ReservationSwitched,
    Reserved,
    Unreserved,
)
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    ChangeAsk,
    Event,
    MoveApplication,
    Release,
    SetConditions,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, QueueSpec
from fairlead.scheduler import Scheduler

BOUNDED, BESIDE = "root.c.bounded", "root.c.beside"
OTHERS = ("root.a.x", "root.a.y", "root.b.z", BESIDE)
WAIT_MAX_MS, LIMIT_MS = 10_000, 8_000
LARGEST = 3
"""So many cores has the largest task of the bounded queue."""
WAITING_MAX = 3
"""Nothing more is submitted to another queue while so many wait there."""
BOUNDED_WAITING = 5
"""So many always wait in the bounded queue: with more k would be large and the bound far away."""
IDLE_WAITING = 2
"""And so many that are idle."""
NODES_MAX = 2
"""So few that there is always more to do than they can."""
STEPS_OF_ONE = 200
COURSES_FOR_EACH = 3
"""A course of this kind costs a fifth of one of all policies."""
FIRST = 19
"""The number of the first course: soon after it comes one in which waits are long."""


def bounded_world(course: Honoured) -> ClusterSpec:
    """A queue file with something of everything, and a queue with a bound and nothing that voids it.

    It shares the maximum of its parent, if there is one, with a queue beside it.
    """
    chance = course.chance
    spec = world(chance, course.mixture)
    (part,) = spec.partitions
    properties = {"wait.max": f"{WAIT_MAX_MS}ms", "preemption.delay": chance.choice(["1ms", "1s", "20s"])}
    if chance.random() < 0.5:
        properties["backfill"] = "easy"
    if part.preemption.rule != "guarantee":
        # Where rank decides the bound counts towards what stands no higher: nothing here does.
        properties["priority.offset"] = "100"
    bounded = QueueSpec(
        name="bounded",
        max=Limits({"vcore": chance.randint(LARGEST, 6)}) if chance.random() < 0.5 else None,
        guaranteed=Limits({"vcore": chance.randint(1, 5)}) if chance.random() < 0.4 else None,
        properties=properties,
    )
    beside = QueueSpec(name="beside", properties={"preemption.delay": chance.choice(["1ms", "20s"])})
    parent = QueueSpec(
        name="c",
        parent=True,
        queues=(bounded, beside),
        max=Limits({"vcore": chance.randint(LARGEST, 8)}) if chance.random() < 0.5 else None,
        properties={"resource.group": "true"} if chance.random() < 0.5 else {},
    )
    queues = (*(queue for queue in part.root.queues if queue.name != "c"), parent)
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
        """When each bounded task that waits came, in that order."""
        self.turn: tuple[tuple[str, str], int] | None = None
        """Who of the bounded queue has a turn because of `wait.max`, and since when."""
        self.longest_turn_ms = 0
        self.all_small = self.chance.random() < 0.6
        """The work of other queues has one core each: what it leaves is never enough for the largest."""
        self.short: list[str] = []
        """The other queues in which more may be submitted."""
        self.claims: set[tuple[str, str]] = set()
        """For whom room is kept."""
        self.excepted: set[tuple[str, str]] = set()
        """For whom room was kept before the turn began, and still is."""
        for _ in range(self.chance.randint(1, NODES_MAX)):
            self.s.handle(self.plain_node(), 0)

    @property
    def part(self) -> Partition:
        return self.s.cluster.partitions["default"]

    def plain_node(self) -> AddNode:
        """With labels, but nothing that keeps work off, and just large enough for each bounded task."""
        node = self.fresh_node()
        cores = self.chance.randint(LARGEST, LARGEST + 1)
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
        self.turns_are_taken_and_end()

    def turns_are_taken_and_end(self) -> None:
        """Whoever waited too long has a turn, or somebody who came before; and no turn lasts longer than 2 L."""
        if self.turn is not None:
            holder, since_ms = self.turn
            self.longest_turn_ms = max(self.longest_turn_ms, self.now_ms - since_ms)
            assert self.now_ms <= since_ms + 2 * LIMIT_MS, f"{holder} has its turn for {self.now_ms - since_ms} ms"
        first = next(iter(self.came), None)
        if first is not None and self.came[first] + WAIT_MAX_MS <= self.now_ms:
            assert self.turn is not None, f"{first} waits for {self.now_ms - self.came[first]} ms and has no turn"

    def confirmations(self) -> Iterator[Event]:
        """Most of what was told to stop does within the second, the rest by its limit."""
        for order in self.orders[:]:
            if self.chance.random() < 0.7:
                self.orders.remove(order)
                yield Release(order.application, order.key, order.cause)

    def chosen(self, asks: list[Ask]) -> Iterator[Event]:
        chance = self.chance
        others = [ask for ask in asks if ask.app.queue.path != BOUNDED]
        waiting = Counter(ask.app.queue.path for ask in asks if ask.pending)
        self.short = [queue for queue in OTHERS if waiting[queue] < WAITING_MAX]
        mine = [ask for ask in asks if ask.pending and ask.app.queue.path == BOUNDED]
        for _ in range(sum(not ask.spec.idle for ask in mine), BOUNDED_WAITING):
            yield from self.bounded(idle=chance.random() < 0.15 and sum(ask.spec.idle for ask in mine) < IDLE_WAITING)
        what = chance.random()
        if self.short and what < 0.75:
            yield from self.submit(self.part)
        elif what < 0.78 and asks:
            yield self.end(chance.choice(asks))
        elif what < 0.98 and others:
            event = self.at_work(chance.choice(others), self.part)
            yield replace(event, queue=chance.choice(OTHERS)) if isinstance(event, MoveApplication) else event
        elif len(self.part.nodes.nodes) < NODES_MAX:
            yield self.plain_node()

    def bounded(self, idle: bool) -> Iterator[Event]:
        """A task of the bounded queue, now and then idle: that has no bound."""
        chance, app = self.chance, self.name("w")
        cores = chance.choice([1, 1, 1, 2, LARGEST, LARGEST])
        limit_ms = 1_000 * chance.randint(1, LIMIT_MS // 1_000)
        amount = Resources({"vcore": cores})
        spec = AskSpec(application=app, key=app, resources=amount, time_limit_ms=limit_ms, idle=idle)
        if not idle:
            self.due[app, app] = self.now_ms + WAIT_MAX_MS + 2 * (len(self.came) + 1) * LIMIT_MS
            self.came[app, app] = self.now_ms
        yield AddApplication(ApplicationSpec(id=app, queue=BOUNDED))
        yield AddAsks((spec,))

    def submit(self, part: Partition) -> Iterator[Event]:
        """Work for the other queues: every piece of it has a limit."""
        for event in super().submit(part):
            if isinstance(event, AddApplication):
                event = AddApplication(replace(event.application, queue=self.chance.choice(self.short)))
            elif isinstance(event, AddAsks):
                event = AddAsks(tuple(self.limited(spec) for spec in event.asks))
            yield event

    def limited(self, spec: AskSpec) -> AskSpec:
        most = LIMIT_MS // 2 if spec.task_group else LIMIT_MS
        if self.all_small and not spec.task_group:
            spec = replace(spec, resources=Resources({"vcore": 1}))
        return replace(spec, time_limit_ms=1_000 * self.chance.randint(1, most // 1_000))

    def at_work(self, ask: Ask, part: Partition) -> Event:
        event = super().at_work(ask, part)
        if isinstance(event, AddAsks) and any(spec.node or not ask.pending for spec in event.asks):
            return self.declare()
        if isinstance(event, ChangeAsk | SetConditions):
            return self.declare()
        return event

    # -- what has to hold -------------------------------------------------------------------------------------------

    def take(self, decisions: list[Decision]) -> None:
        for i, decision in enumerate(decisions):
            self.counts[type(decision).__name__] += 1
            if isinstance(decision, Evict):
                self.counts[f"rule {decision.rule}"] += 1
                self.orders.append(decision)
            elif isinstance(decision, ReservationSwitched):
                self.switched(decision)
            elif isinstance(decision, Reserved):
                self.claims.add((decision.application, decision.key))
            elif isinstance(decision, Unreserved):
                name = (decision.application, decision.key)
                self.claims.discard(name)
                after = decisions[i + 1] if i + 1 < len(decisions) else None
                if not (isinstance(after, Allocated) and (after.application, after.key) == name):
                    self.excepted.discard(name)
            elif isinstance(decision, Allocated):
                name = (decision.application, decision.key)
                due_ms = self.due.pop(name, None)
                if due_ms is not None:
                    self.passes_nobody(name)
                    came = self.came.pop(name)
                    self.counts["bounded"] += 1
                    self.longest = max(self.longest, (self.now_ms - came) / (due_ms - came))
            elif isinstance(decision, AskRejected | ApplicationRejected):
                key = decision.key if isinstance(decision, AskRejected) else decision.id
                self.forget((key, key))

    def switched(self, decision: ReservationSwitched) -> None:
        """A turn in the bounded queue begins, of the oldest that waits, or ends."""
        name = (decision.application, decision.key)
        if self.turn is not None and name == self.turn[0]:
            assert not decision.on, f"{name} has a turn already"
            self.turn = None
        elif decision.on and name in self.came:
            assert self.turn is None, f"{name} gets a turn while {self.turn} has one"
            assert name == next(iter(self.came)), f"{name} gets a turn before {next(iter(self.came))}"
            self.turn = (name, self.now_ms)
            self.excepted = set(self.claims)
            self.counts["turns"] += 1

    def passes_nobody(self, name: tuple[str, str]) -> None:
        """It starts now: nobody else of the queue has its turn, but where backfill may pass that delays nobody."""
        queue = self.part.root.find(BOUNDED)
        assert queue is not None
        if self.turn is not None and not queue.properties.easy_backfill:
            assert name == self.turn[0] or name in self.excepted, f"{name} passes {self.turn[0]}, which has its turn"

    def forget(self, name: tuple[str, str]) -> None:
        """It has no bound any more."""
        self.due.pop(name, None)
        self.came.pop(name, None)

    def handle(self, event: Event) -> None:
        """What its owner takes back has no bound any more."""
        if isinstance(event, Release):
            self.forget((event.application, event.key))
        self.take(self.s.handle(event, self.now_ms))


@pytest.mark.timeout(7200)
def test_no_wait_is_longer_than_its_bound_whatever_goes_on_beside_it(courses: int) -> None:
    """All courses together: the bound is kept, and waits came near enough to it that it says something."""
    counts: Counter[str] = Counter()
    longest, longest_turn_ms = 0.0, 0
    for number in range(FIRST, FIRST + courses * COURSES_FOR_EACH):
        course = Honoured(number)
        for step in range(STEPS_OF_ONE):
            try:
                course.step()
            except AssertionError as e:
                raise AssertionError(f"course {number}, step {step}: {e}") from e
        check_books(course.s)
        counts += course.counts
        longest, longest_turn_ms = max(longest, course.longest), max(longest_turn_ms, course.longest_turn_ms)
    assert longest > 0.4, f"the longest wait is only {longest} of its bound"
    # Few courses may have none as long.
    assert courses < 6 or longest_turn_ms > LIMIT_MS, f"no turn lasted longer than {longest_turn_ms} ms"
    assert min(counts["bounded"], counts["turns"]) > 10 * courses, counts
