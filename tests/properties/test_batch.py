"""Idle work, kept turns, retries, bounds on waiting and gangs, mixed at random: the laws of `docs/batch.md`.

Each law is worked out from the books in the plainest way. Two schedulers get the same events, and one of them is
restarted now and then; they have to decide the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest
from invariants.books import check_books
from portions import where_compiled
from properties.laws import Before, every_wait_has_a_reason

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.idle_work import group_of
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import Allocated, Decision, Evict, ReservationSwitched, Reserved, Unreserved
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    DrainNode,
    Event,
    MoveApplication,
    Release,
    RemoveApplication,
    RemoveNode,
    ReserveAsk,
    SetPriority,
    UndrainNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
    RetrySpec,
)
from fairlead.policy.order.effective_priority import is_stronger
from fairlead.scheduler import Scheduler

LEAVES = ("root.a.x", "root.a.y", "root.b.z", "root.c")
STEPS_OF_ONE = 200
SHAPES = [{"vcore": 1}, {"vcore": 2}, {"vcore": 1, "memory": 2}, {"vcore": 3}]
DISRUPTIVE = (
    Configure,
    DrainNode,
    UndrainNode,
    RemoveNode,
    MoveApplication,
    SetPriority,
    ReserveAsk,
    RemoveApplication,
)


def world(chance: random.Random) -> ClusterSpec:
    """A small tree with groups, maxima and bounds here and there."""

    def limits(low: int, high: int) -> Limits | None:
        return Limits({"vcore": chance.randint(low, high)}) if chance.random() < 0.5 else None

    def leaf(name: str) -> QueueSpec:
        properties = {}
        if chance.random() < 0.4:
            properties["wait.max"] = chance.choice(["10s", "60s"])
        if chance.random() < 0.4:
            properties["backfill"] = "easy"
        if chance.random() < 0.2:
            properties["application.sort.policy"] = "fair"
        if chance.random() < 0.1:
            properties["application.sort.priority"] = "disabled"
        return QueueSpec(name=name, max=limits(1, 6), properties=properties, max_applications=chance.choice([0, 0, 3]))

    def group() -> dict[str, str]:
        return {"resource.group": "true"} if chance.random() < 0.5 else {}

    queues = (
        QueueSpec(name="a", parent=True, queues=(leaf("x"), leaf("y")), max=limits(3, 10), properties=group()),
        QueueSpec(name="b", parent=True, queues=(leaf("z"),), max=limits(3, 10), properties=group()),
        leaf("c"),
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    rule = PreemptionSpec(rule=chance.choice(["priority", "guarantee"]), enabled=chance.random() < 0.5)
    return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=rule),), checksum=str(chance.random()))


class Mix:
    """One course of events."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(number)
        self.now_ms = 0
        self.made = 0
        spec = world(self.chance)
        self.scheduler, self.twin = Scheduler(spec, 0), Scheduler(spec, 0)
        self.orders: list[Evict] = []
        self.promised: dict[tuple[str, str], str] = {}
        """Asks for which idle work was stopped, with the node, while nothing has disturbed that."""
        for _ in range(self.chance.randint(1, 3)):
            capacity = Resources({"vcore": self.chance.randint(3, 6), "memory": 8})
            self.handle(AddNode(NodeSpec(id=self.name("n"), capacity=capacity)))

    @property
    def part(self) -> Partition:
        return self.scheduler.cluster.partitions["default"]

    def name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def handle(self, event: Event) -> None:
        if isinstance(event, DISRUPTIVE) or (isinstance(event, AddAsks) and any(a.node for a in event.asks)):
            self.promised.clear()
        decisions = self.scheduler.handle(event, self.now_ms)
        assert self.twin.handle(event, self.now_ms) == decisions
        self.take(decisions)

    def step(self) -> None:
        self.now_ms += self.chance.choice([0, 0, 1_000, 5_000, 20_000])
        for event in self.events():
            self.handle(event)
        check_books(self.scheduler)
        if self.chance.random() < 0.05:
            written = json.dumps(self.scheduler.dump())
            self.twin = Scheduler.load(json.loads(written))
            check_books(self.twin)
            assert json.dumps(self.twin.dump()) == written
        if self.chance.random() < 0.8:
            self.schedule()
        check_books(self.scheduler)

    # -- what happens --

    def asks(self) -> list[Ask]:
        return [ask for app in self.part.applications.values() for ask in app.asks.values()]

    def events(self) -> Iterator[Event]:
        chance, asks = self.chance, self.asks()
        for ask in asks:
            over = ask.spec.time_limit_ms is not None and ask.allocated_ms is not None
            if over and ask.node is not None and ask.allocated_ms + ask.spec.time_limit_ms <= self.now_ms:  # type: ignore[operator]
                yield Release(ask.app.id, ask.key, Cause.FINISHED)
        what = chance.random()
        if what < 0.45 or not asks:
            yield from self.submit()
        elif what < 0.65:
            for ask in chance.sample(asks, min(2, len(asks))):
                yield Release(ask.app.id, ask.key, chance.choice([Cause.FINISHED, Cause.INTERRUPTED]))
        elif what < 0.75:
            ask = chance.choice(asks)
            yield ReserveAsk(ask.app.id, ask.key, chance.random() < 0.8, "ann", "because")
        elif what < 0.80:
            ask = chance.choice(asks)
            yield SetPriority(ask.app.id, ask.key, chance.randint(0, 3), "ann", why="so")
        elif what < 0.92:
            if self.orders:
                order = self.orders.pop(chance.randrange(len(self.orders)))
                yield Release(order.application, order.key, order.cause)
        elif what < 0.94:
            yield MoveApplication(chance.choice(asks).app.id, chance.choice(LEAVES))
        elif what < 0.96:
            yield Configure(world(chance))
        elif what < 0.97:
            yield RemoveApplication(chance.choice(asks).app.id)
        elif self.part.nodes.nodes:
            node = chance.choice(list(self.part.nodes.nodes))
            capacity = Resources({"vcore": chance.randint(3, 6), "memory": 8})
            fresh = AddNode(NodeSpec(id=self.name("n"), capacity=capacity))
            few = len(self.part.nodes.nodes) < 2
            yield fresh if few else chance.choice([DrainNode(node), UndrainNode(node), RemoveNode(node), fresh])

    def submit(self) -> Iterator[Event]:
        chance, app = self.chance, self.name("w")
        gang = chance.random() < 0.1
        idle = not gang and chance.random() < 0.4
        shape = Resources(chance.choice(SHAPES))
        spec = ApplicationSpec(id=app, queue=chance.choice(LEAVES), placeholder_ask=shape if gang else Resources({}))
        yield AddApplication(spec)
        if gang:
            yield AddAsks((self.ask(app, shape, task_group="g", placeholder=True),))
            yield AddAsks((self.ask(app, shape, task_group="g"),))
            return
        asks = tuple(self.ask(app, shape, idle=idle) for _ in range(chance.choice([1, 1, 1, 3])))
        yield AddAsks(asks)

    def ask(self, app: str, shape: Resources, **more: bool | str) -> AskSpec:
        chance = self.chance
        return AskSpec(
            application=app,
            key=self.name("k"),
            resources=shape,
            priority=chance.choice([0, 0, 0, 1, 2]),
            time_limit_ms=chance.choice([None, 10_000, 30_000]),
            retry=RetrySpec(limit=2) if chance.random() < 0.3 else None,
            **more,  # type: ignore[arg-type]
        )

    # -- scheduling, and what must be so --

    def schedule(self) -> None:
        for _ in range(100):
            before = Before(self.part)
            held_back = self.held_back()
            decisions = self.scheduler.schedule(self.now_ms)
            portions = []
            while portion := self.twin.schedule(self.now_ms, 1):
                portions += portion
            assert portions == decisions
            before.nothing_grew_beyond()
            self.no_idle_before_the_others(decisions)
            self.nobody_passes(held_back, decisions)
            self.take(decisions)
            check_books(self.scheduler)
            if not decisions:
                every_wait_has_a_reason(self.scheduler, self.part, settled=True)
                return
        raise AssertionError("it goes on deciding although nothing happens")

    def spec_of(self, decision: Allocated) -> AskSpec:
        return self.part.applications[decision.application].asks[decision.key].spec

    def no_idle_before_the_others(self, decisions: list[Decision]) -> None:
        """In one call nobody who is not idle is placed after idle work."""
        idle = [self.spec_of(d).idle for d in decisions if isinstance(d, Allocated)]
        assert idle == sorted(idle), f"idle work was placed before others: {decisions}"

    def held_back(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """For each ask that has to wait, the asks with a reservation that it waits for."""
        found: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for leaf, own in self.part.reserving.of.items():
            if leaf.properties.easy_backfill:
                continue
            for app in leaf.applications.values():
                for ask in app.asks.values():
                    found[app.id, ask.key] = [
                        (h.app.id, h.key)
                        for h in own
                        if ask.pending and not ask.spec.idle and ask.priority < h.priority
                    ]
        return found

    def nobody_passes(self, held_back: dict[tuple[str, str], list[tuple[str, str]]], decisions: list[Decision]) -> None:
        """Without `backfill: easy` nobody below a reserved ask is placed while that waits (unless space was held)."""
        over = {(d.application, d.key) for d in decisions if isinstance(d, ReservationSwitched) and not d.on}
        ready = {(d.application, d.key) for d in decisions if isinstance(d, Unreserved)}
        for decision in decisions:
            if not isinstance(decision, Allocated) or (decision.application, decision.key) in ready:
                continue
            waits_for = held_back.get((decision.application, decision.key), [])
            assert set(waits_for) <= over, f"{decision} passes {waits_for}"

    def take(self, decisions: list[Decision]) -> None:
        """Note orders; who had idle work stopped for himself gets the room, if nothing disturbs that."""
        holds = {(d.application, d.key): d.node for d in decisions if isinstance(d, Reserved)}
        for decision in decisions:
            if isinstance(decision, Evict):
                self.orders.append(decision)
                if decision.rule == "reclaim":
                    self.pays(decision, holds)
            elif isinstance(decision, Allocated):
                self.promised.pop((decision.application, decision.key), None)
        lost: list[tuple[str, str]] = []
        for app, key in self.promised:
            ask = self.part.applications[app].asks.get(key) if app in self.part.applications else None
            if ask is None or not ask.pending or ask.held_on is not None:
                continue
            # By rank a stronger one takes in its turn what was left for a weaker one.
            taken = {(d.application, d.key) for d in decisions if isinstance(d, Allocated | Reserved)}
            by = [self.part.applications[a].asks[k] for a, k in taken]
            stronger = self.part.root.by_rank and any(is_stronger(other, ask) for other in by)
            assert stronger, f"{ask} lost what idle work left to it"
            lost.append((app, key))
        for name in lost:
            del self.promised[name]

    def pays(self, order: Evict, holds: dict[tuple[str, str], str]) -> None:
        app, _, key = order.on_behalf_of.rpartition("/")
        claimant = self.part.applications[app].asks[key]
        victim = self.part.applications[order.application].asks[order.key]
        assert victim.spec.idle, f"{victim} is not idle"
        assert not claimant.spec.idle, f"{claimant} is idle"
        assert group_of(claimant.app.queue) in victim.app.queue.lineage, f"{victim} borrows in another group"
        assert (app, key) in holds, f"no space is held for {claimant}"
        self.promised[app, key] = holds[app, key]


@where_compiled
@pytest.mark.timeout(1800)
def test_the_laws_of_batch_work_hold(fewer_steps: int) -> None:
    """The books, the reasons and the laws hold whatever happens, in whatever order."""
    for number in range(max(fewer_steps // STEPS_OF_ONE, 1)):
        mix = Mix(number)
        for step in range(STEPS_OF_ONE):
            try:
                mix.step()
            except AssertionError as e:
                raise AssertionError(f"course {number}, step {step}: {e}") from e


# -- the bound on waiting -----------------------------------------------------------------------------------------

WAIT_MAX_MS, LIMIT_MS = 60_000, 20_000


class Bounded:
    """Two queues on the same nodes, one with `wait.max`; whatever runs ends by its limit, and work never stops coming.

    The bound: where k asks of the queue waited when an ask came, it starts within `wait.max` and 2 (k + 1) limits.
    """

    def __init__(self, number: int) -> None:
        self.chance = chance = random.Random(number)
        properties = {"wait.max": f"{WAIT_MAX_MS}ms"} | ({"backfill": "easy"} if number % 2 else {})
        own = Limits({"vcore": 6}) if number % 3 == 0 else None
        above = Limits({"vcore": 8}) if number % 5 == 0 else None
        leaves = (QueueSpec(name="bounded", max=own, properties=properties), QueueSpec(name="busy"))
        team = QueueSpec(name="team", parent=True, queues=leaves, max=above)
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(team,))
        preemption = PreemptionSpec(rule="priority", enabled=False)
        self.s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=preemption),)))
        self.now_ms = self.made = 0
        self.due: dict[tuple[str, str], int] = {}
        for node in range(chance.randint(1, 3)):
            self.s.handle(AddNode(NodeSpec(id=f"n{node}", capacity=Resources({"vcore": 4}))), 0)

    @property
    def apps(self) -> dict[str, Application]:
        return self.s.cluster.partitions["default"].applications

    def submit(self, queue: str, cores: int, idle: bool = False) -> None:
        self.made += 1
        name = f"w{self.made}"
        waiting = sum(a.pending_count for a in self.apps.values() if a.queue.name == queue)
        if queue == "bounded" and not idle:
            self.due[name, name] = self.now_ms + WAIT_MAX_MS + 2 * (waiting + 1) * LIMIT_MS
        self.s.handle(AddApplication(ApplicationSpec(id=name, queue=f"root.team.{queue}")), self.now_ms)
        spec = AskSpec(
            application=name,
            key=name,
            resources=Resources({"vcore": cores}),
            time_limit_ms=self.chance.randint(1, LIMIT_MS),
            idle=idle,
        )
        self.s.handle(AddAsks((spec,)), self.now_ms)

    def step(self) -> None:
        chance = self.chance
        self.now_ms += 1_000
        for ask in [ask for app in self.apps.values() for ask in app.asks.values() if ask.node is not None]:
            if ask.evict_cause is not None:
                self.s.handle(Release(ask.app.id, ask.key, ask.evict_cause), self.now_ms)
            elif (ask.allocated_ms or 0) + (ask.spec.time_limit_ms or 0) <= self.now_ms:
                self.s.handle(Release(ask.app.id, ask.key, Cause.FINISHED), self.now_ms)
        waiting = sum(a.pending_count for a in self.apps.values())
        if waiting < 12:
            self.submit("busy", 1, idle=chance.random() < 0.2)
            self.submit("bounded", chance.choice([1, 1, 1, 1, 4]))
        for decision in self.s.schedule(self.now_ms):
            if isinstance(decision, Allocated):
                self.due.pop((decision.application, decision.key), None)
        for name, due_ms in self.due.items():
            assert self.now_ms <= due_ms, f"{name} waits {self.now_ms - due_ms} ms longer than the bound"


def test_no_wait_is_longer_than_its_bound(steps: int) -> None:
    """While small work never stops coming into both queues, and every limit is honoured."""
    for number in range(max(steps // 1000, 1)):
        course = Bounded(number)
        for _ in range(300):
            course.step()
        check_books(course.s)
