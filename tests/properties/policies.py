"""A world in which every policy is at work at once, and courses of events through it, made from a number.

Amounts are tiny and names few, so that the policies meet. Decides what happens; what has to hold is for the tests.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from reference.test_constraints import Chance

from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import Constraints, Requirement
from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    ChangeAsk,
    Checkpoint,
    Configure,
    DrainNode,
    Event,
    LabelNode,
    MoveApplication,
    Release,
    RemoveApplication,
    RemoveBudget,
    RemoveNode,
    RemovePriorityClass,
    RemoveQuota,
    ReserveAsk,
    SetBudget,
    SetConditions,
    SetPriority,
    SetPriorityClass,
    SetQuota,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_FOREIGN,
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    BudgetSpec,
    ClusterSpec,
    LimitSpec,
    NodeSortSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    RetrySpec,
)

LEAVES = ("root.a.x", "root.a.y", "root.b.z", "root.c")
SHAPES = [Resources(each) for each in ({"vcore": 1}, {"vcore": 2}, {"vcore": 1, "memory": 2}, {"vcore": 3})]
NODES_MAX = 5
CLASSES = ("low", "high", "meek")
PROPERTIES: dict[str, tuple[tuple[str, ...], float]] = {
    "application.sort.policy": (("fair", "fifo"), 0.3),
    "application.sort.priority": (("disabled",), 0.1),
    "priority.offset": (("1", "-2", "3"), 0.15),
    "priority.policy": (("fence",), 0.1),
    "preemption.policy": (("fence", "disabled"), 0.15),
    "preemption.delay": (("1ms", "1s", "20s"), 0.5),
    "preemption.min.runtime": (("2s", "10s"), 0.15),
    "preemption.evictions.max": (("0", "2", "5"), 0.15),
    "quota.preemption.delay": (("1s", "10s"), 0.2),
}
PROTECTIONS = ("preemption.min.runtime", "preemption.evictions.max")
OF_LEAVES: dict[str, tuple[tuple[str, ...], float]] = {
    "wait.max": (("10s", "60s"), 0.3),
    "backfill": (("easy",), 0.3),
    "application.unschedasks.backoff": (("1", "2"), 0.08),
    "application.unschedasks.backoff.delay": (("5s",), 0.1),
}


@dataclass(frozen=True, slots=True)
class Mixture:
    """How much of what happens; `EVERYTHING` is the first, with a bit of all."""

    rule: str = ""
    """The only rule of preemption; empty: either, drawn for each queue file."""
    gangs: float = 0.1
    """How likely a new application is a gang."""
    cores: tuple[int, int] = (3, 6)
    nodes: int = NODES_MAX
    protected: float = 0.15
    """How likely a queue protects young work, and how likely it may lose only so much within the hour."""
    min_runtime_ms: int = 0
    """So long work of the class `low` is nobody's victim."""


EVERYTHING = Mixture()
OTHERS = (
    Mixture(rule="priority", protected=0.4, min_runtime_ms=20_000),
    Mixture(rule="guarantee", protected=0.4, min_runtime_ms=20_000),
    Mixture(gangs=0.35),
    Mixture(cores=(6, 12), nodes=8, min_runtime_ms=20_000),
    Mixture(rule="priority", gangs=0.35, cores=(1, 4)),
    Mixture(rule="guarantee", gangs=0.35, cores=(6, 12)),
)
SETTLING_MAX = 300
"""So many rounds have to be enough for a course to come to rest."""
COURSES_OF_ONE = 500
"""So many courses are taken with everything; later numbers take one of the other mixtures each."""


def mixture_of(number: int) -> Mixture:
    """Which mixture a course takes."""
    return EVERYTHING if number < COURSES_OF_ONE else OTHERS[number % len(OTHERS)]


def world(chance: random.Random, mixture: Mixture = EVERYTHING) -> ClusterSpec:
    """A queue file with something of everything."""

    def limits(low: int, high: int, likely: float) -> Limits | None:
        return Limits({"vcore": chance.randint(low, high)}) if chance.random() < likely else None

    def properties(is_leaf: bool) -> dict[str, str]:
        known = PROPERTIES | (OF_LEAVES if is_leaf else {"resource.group": (("true",), 0.4)})
        known |= {key: (known[key][0], mixture.protected) for key in PROTECTIONS}
        return {key: chance.choice(texts) for key, (texts, likely) in known.items() if chance.random() < likely}

    def of_users() -> tuple[LimitSpec, ...]:
        if chance.random() > 0.15:
            return ()
        most = Limits({"vcore": chance.randint(2, 6)})
        return (LimitSpec(users=("ann",), max_resources=most), LimitSpec(users=("*",), max_applications=4))

    def queue(name: str, *below: QueueSpec) -> QueueSpec:
        return QueueSpec(
            name=name,
            parent=bool(below),
            queues=below,
            max=limits(3 if below else 2, 12, 0.35),
            guaranteed=limits(1, 5, 0.4),
            max_applications=chance.randint(2, 5) if chance.random() < 0.1 else 0,
            limits=of_users(),
            properties=properties(not below),
        )

    leaves = (queue("a", queue("x"), queue("y")), queue("b", queue("z")), queue("c"))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    rule = PreemptionSpec(
        rule=mixture.rule or chance.choice(["priority", "guarantee"]),
        enabled=chance.random() < 0.9,
        quota_enabled=chance.random() < 0.3,
    )
    sort = NodeSortSpec(policy=chance.choice(["fair", "binpacking"]))
    part = PartitionSpec(root=root, preemption=rule, node_sort=sort)
    classes = (
        PriorityClassSpec(name="low", value=-1, min_runtime_ms=mixture.min_runtime_ms),
        PriorityClassSpec(name="high", value=4),
        PriorityClassSpec(name="meek", value=3, preemption_policy="Never"),
    )
    return ClusterSpec(
        partitions=(part,),
        priority_classes=classes,
        budgets=(budget(chance, "first"),) if chance.random() < 0.3 else (),
        quotas=(_quota(chance, "first"),) if chance.random() < 0.2 else (),
        checksum=str(chance.random()),
    )


def budget(chance: random.Random, name: str) -> BudgetSpec:
    selector = (Requirement("app", "In", (chance.choice("xy"),)),)
    if chance.random() < 0.5:
        return BudgetSpec(name=name, selector=selector, min_available=chance.choice([0, 1, 2, "50%"]))
    return BudgetSpec(name=name, selector=selector, max_unavailable=chance.choice([0, 1, "50%"]))


def _quota(chance: random.Random, name: str) -> QuotaSpec:
    scopes = (Requirement("PriorityClass", "In", (chance.choice(CLASSES),)),) if chance.random() < 0.7 else ()
    resources = Limits({"vcore": chance.randint(4, 20)})
    return QuotaSpec(name=name, queue=chance.choice(["root", "root.a", "root.c"]), resources=resources, scopes=scopes)


class Happenings:
    """What happens in one course: mostly new work and ends of work, now and then anything else."""

    leaves: ClassVar[tuple[str, ...]] = LEAVES

    def __init__(self, number: int) -> None:
        self.chance = Chance(number)
        self.mixture = mixture_of(number)
        self.now_ms = 0
        self.made = 0
        self.orders: list[Evict] = []
        """Work that was told to stop and has not confirmed."""

    def name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def changed_file(self) -> ClusterSpec:
        """Another queue file."""
        return world(self.chance, self.mixture)

    # -- machines ---------------------------------------------------------------------------------------------------

    def capacity(self) -> Resources:
        return Resources({"vcore": self.chance.randint(*self.mixture.cores), "memory": self.chance.choice([2, 8])})

    def fresh_node(self) -> AddNode:
        attributes = self.chance.attributes() if self.chance.random() < 0.7 else {}
        taints = self.chance.taints()
        return AddNode(NodeSpec(id=self.name("n"), capacity=self.capacity(), attributes=attributes, taints=taints))

    def at_nodes(self, part: Partition) -> Event:
        """A node comes, goes, changes, drains, says something else of itself, or is used by others."""
        nodes = list(part.nodes.nodes)
        kind = self.chance.randrange(8)
        if len(nodes) < 2 or (kind < 2 and len(nodes) < self.mixture.nodes):
            return self.fresh_node()
        node = self.chance.choice(nodes)
        if kind == 2:
            return RemoveNode(node)
        if kind == 3:
            return LabelNode(node, self.chance.attributes(), self.chance.taints())
        if kind == 4:
            return UpdateNode(node, self.capacity())
        if kind == 5:
            key, used = f"foreign{self.chance.randrange(2)}", Resources({"vcore": self.chance.randint(1, 2)})
            if self.chance.random() < 0.6:
                return Release("", key)
            return AddAsks(
                (AskSpec(application="", key=key, resources=used, tags={TAG_FOREIGN: "default"}, node=node),)
            )
        return self.chance.choice([DrainNode, UndrainNode, UndrainNode])(node)

    # -- work -------------------------------------------------------------------------------------------------------

    def events(self, part: Partition) -> Iterator[Event]:
        chance = self.chance
        asks = [ask for app in part.applications.values() for ask in app.asks.values()]
        yield from self.ends_by_limit(asks)
        what = chance.random()
        if self.orders and what < 0.2:
            for _ in range(chance.randint(1, len(self.orders))):
                order = self.orders.pop(chance.randrange(len(self.orders)))
                yield Release(order.application, order.key, order.cause)
        elif what < 0.52 or not asks:
            yield from self.submit(part)
        elif what < 0.74:
            for ask in chance.sample(asks, min(2, len(asks))):
                yield self.end(ask)
        elif what < 0.93:
            yield self.at_work(chance.choice(asks), part)
        elif what < 0.98:
            yield self.at_nodes(part)
        else:
            yield Configure(self.changed_file())

    def ends_by_limit(self, asks: list[Ask]) -> Iterator[Event]:
        """Declared time limits are honoured to the millisecond, as far as the course looks."""
        for ask in asks:
            limit_ms = ask.spec.time_limit_ms
            if ask.node is None or ask.allocated_ms is None or limit_ms is None:
                continue
            if ask.allocated_ms + limit_ms <= self.now_ms:
                yield Release(ask.app.id, ask.key, Cause.FINISHED, exit_code=0)

    def end(self, ask: Ask) -> Release:
        """It ends well, fails, is killed, or is withdrawn by its owner."""
        cause = self.chance.choice([Cause.FINISHED, Cause.FINISHED, Cause.INTERRUPTED, Cause.STOPPED_BY_RM])
        code = self.chance.choice([0, 0, 1, 2, None]) if cause is Cause.FINISHED else None
        return Release(ask.app.id, ask.key, cause, exit_code=code)

    def at_work(self, ask: Ask, part: Partition) -> Event:
        """Somebody orders something about work that is there, or about what is declared for all."""
        chance, app = self.chance, ask.app.id
        kind = chance.randrange(16)
        if kind < 4:
            return ReserveAsk(app, ask.key, chance.random() < 0.75, "ann", "because")
        if kind < 7:
            return SetPriority(app, chance.choice([ask.key, ""]), chance.randint(-2, 5), "ann", why="so")
        if kind < 9:
            return MoveApplication(app, chance.choice(self.leaves))
        if kind == 9:
            return RemoveApplication(app)
        if kind == 10:
            return Checkpoint(app, ask.key)
        if kind == 11:
            return AddAsks((replace(ask.spec, resources=chance.choice(SHAPES), node=""),))
        if kind == 12 and part.nodes.nodes:
            node = chance.choice(list(part.nodes.nodes))
            spec = AskSpec(application=app, key=self.name("k"), resources=chance.choice(SHAPES), node=node)
            return AddAsks((spec,))
        if kind == 13:
            return self.at_conditions(ask, part)
        if kind == 14:
            resources = chance.choice(SHAPES) if ask.pending else ask.spec.resources
            return ChangeAsk(app, ask.key, resources, chance.choice([None, 500, 5_000, 60_000]), "ann")
        return self.declare()

    def at_conditions(self, ask: Ask, part: Partition) -> Event:
        """What waits is put on hold or is to begin later; what is held is released, or to begin at another time."""
        chance, held = self.chance, list(part.held_asks)
        begin_ms = chance.choice([0, self.now_ms + chance.randint(1, 5_000)])
        if held and chance.random() < 0.5:
            app, one = chance.choice(held)
            return SetConditions(app, one.spec.key, Conditions(begin_ms=begin_ms), "ann")
        return SetConditions(ask.app.id, ask.key, Conditions(held_by=chance.choice(["", "ann"]), begin_ms=begin_ms))

    def declare(self) -> Event:
        """A budget, class or quota comes, changes or goes."""
        chance, name = self.chance, self.chance.choice(["first", "second"])
        value = PriorityClassSpec(name=chance.choice(CLASSES), value=chance.randint(-2, 5))
        return chance.choice(
            [
                SetBudget(budget(chance, name)),
                RemoveBudget(name),
                SetQuota(_quota(chance, name), "ann"),
                RemoveQuota(name, "ann"),
                SetPriorityClass(value, "ann"),
                RemovePriorityClass(chance.choice(CLASSES), "ann"),
            ]
        )

    def submit(self, part: Partition) -> Iterator[Event]:
        chance, app = self.chance, self.name("w")
        shape, queue = chance.choice(SHAPES), chance.choice(self.leaves)
        user = chance.choice(["ann", "bob"])
        if chance.random() < self.mixture.gangs:
            yield from self.submit_gang(app, queue, user, shape)
            return
        yield AddApplication(ApplicationSpec(id=app, queue=queue, user=user))
        idle = chance.random() < 0.3
        alike = self.ask(app, shape, idle=idle)
        many = chance.choice([1, 1, 1, 2, 4])
        yield AddAsks(tuple(replace(alike, key=self.name("k")) for _ in range(many)))
        if chance.random() < 0.2:
            yield AddAsks((self.ask(app, chance.choice(SHAPES)),))
        if chance.random() < 0.05 and part.nodes.nodes:
            tags = {TAG_REQUIRED_NODE: chance.choice(list(part.nodes.nodes))}
            yield AddAsks((replace(self.ask(app, shape), tags=tags, where=Constraints()),))

    def submit_gang(self, app: str, queue: str, user: str, shape: Resources) -> Iterator[Event]:
        chance, size = self.chance, self.chance.randint(1, 3)
        yield AddApplication(
            ApplicationSpec(
                id=app,
                queue=queue,
                user=user,
                placeholder_ask=shape * size,
                gang_style=chance.choice(["Soft", "Hard"]),
                placeholder_timeout_ms=chance.choice([0, 5_000, 60_000]),
            )
        )
        member = replace(self.ask(app, shape), task_group="g")
        yield AddAsks(tuple(replace(member, key=self.name("k"), placeholder=True, retry=None) for _ in range(size)))
        yield AddAsks(tuple(replace(member, key=self.name("k")) for _ in range(size)))

    def ask(self, app: str, shape: Resources, idle: bool = False) -> AskSpec:
        chance = self.chance
        retry = RetrySpec(limit=chance.choice([1, 50]), backoff_ms=chance.choice([0, 0, 5_000]), never_on=(2,))
        return AskSpec(
            application=app,
            key=self.name("k"),
            resources=shape,
            priority=chance.choice([0, 0, 0, 1, 2, 5, -1]),
            priority_class=chance.choice(CLASSES) if chance.random() < 0.25 else "",
            time_limit_ms=chance.choice([None, 10_000, 30_000]),
            retry=retry if chance.random() < 0.4 else None,
            labels=chance.labels(),
            where=chance.where() if chance.random() < 0.3 else Constraints(),
            allow_preempt_self=chance.random() < 0.9,
            allow_preempt_other=chance.random() < 0.9,
            originator=chance.random() < 0.1,
            idle=idle,
        )


class SettlingCourse(Happenings):
    """A course that can be left to itself until it comes to rest."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.counts: Counter[str] = Counter()
        """How many decisions of each kind were made, and what else is counted."""

    @property
    @abstractmethod
    def part(self) -> Partition:
        """The books."""

    @abstractmethod
    def handle(self, event: Event) -> None:
        """Something happens."""

    @abstractmethod
    def schedule(self) -> None:
        """A call of the scheduler, with what has to hold after it."""

    def comes_to_rest(self) -> bool:
        """Nothing new comes, all that is told to stop does, and the clock goes on: whether decisions come to an end."""
        for _ in range(SETTLING_MAX):
            for order in self.orders[:]:
                self.orders.remove(order)
                self.handle(Release(order.application, order.key, order.cause))
            before = self.counts.total()
            self.schedule()
            self.now_ms += 1_000
            for event in self.ends_by_limit([a for app in self.part.applications.values() for a in app.asks.values()]):
                self.handle(event)
            if self.counts.total() == before and not self.orders:
                return True
        return False
