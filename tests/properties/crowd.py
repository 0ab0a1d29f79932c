"""Crowded clusters: what happens to dozens of applications of many sizes on up to 25 nodes, drawn from a number.

The courses of `policies` have so few names that most of what is remembered is of no use there. How soon one way of
looking is taken rather than another is drawn too: that decides how long it takes, and nothing else. From 100,000 on
there are budgets, quotas, classes, jobs on hold, kept turns and others' work besides; from 200,000 on all of
`crowd_wide`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import HOSTNAME, AffinityTerm, Constraints, Requirement, SpreadTerm
from fairlead.core.model.decisions import Allocated, Decision
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

MORE_FROM = 100_000
CLASSES = ("low", "high", "meek")
CAPACITY = 4_000
"""Of each node, in thousandths of a core; work has 300 to 3,000, so that what is left of a node is of little use."""
PROPERTIES = {
    "application.sort.policy": (("fair",), 0.6),
    "application.sort.priority": (("disabled",), 0.2),
    "priority.offset": (("-3", "2"), 0.15),
    "priority.policy": (("fence",), 0.1),
    "wait.max": (("5s", "20s"), 0.15),
    "backfill": (("easy",), 0.15),
    "preemption.delay": (("1ms", "1s"), 0.4),
    "preemption.min.runtime": (("2s",), 0.1),
    "application.unschedasks.backoff": (("2",), 0.05),
    "application.unschedasks.backoff.delay": (("5s",), 0.1),
}
WAYS = {
    "fairlead.policy.order.pick": {
        "FEW_APPLICATIONS": (0, 1, 3),
        "FEW_BATCHES": (1, 16),
        "FEW_SHAPES": (0, 2, 8),
        "ASIDE_COST": (1, 4, 100),
    },
    "fairlead.core.books.node_order": {"TOPS_TRIED": (1, 4), "FEW_NODES": (0, 12), "SEARCHES": (0, 8)},
    "fairlead.core.books.candidate_nodes": {"MANY": (0, 1, 8)},
    "fairlead.policy.place.by_rank": {"FEW": (0, 8)},
}
"""Numbers that say how soon another way of looking is taken, by module. Compiled modules keep their own."""


class Crowd:
    """What happens in one course; `part` gives the books in which it does."""

    def __init__(self, number: int, part: Callable[[], Partition], rule: str = "") -> None:
        """`rule`: that of preemption; one is drawn where none is named."""
        self.number, self._part = number, part
        self.chance = random.Random(number)
        for module, numbers in WAYS.items():
            for name, values in numbers.items():
                setattr(sys.modules[module], name, self.chance.choice(values))
        self.prefix = self.chance.choice(["root.", "root.p."])
        self.leaves = [f"l{n}" for n in range(self.chance.randint(1, 5))]
        drawn = self.chance.choice(["guarantee", "guarantee", "priority", "both"])
        self.rule = rule or drawn
        self.spec = self._file()
        """The queue file that it begins with."""
        self.now_ms = self.made = self.started = 0
        self.running: dict[tuple[str, str], None] = {}
        self.sizes = [self._size() for _ in range(self.chance.choice([4, 15, 40]))]
        self.many = self.chance.choice([6, 20, 50])
        self.is_constrained = self.chance.random() < 0.4

    @property
    def part(self) -> Partition:
        return self._part()

    def take_note(self, decisions: list[Decision]) -> None:
        """What was decided in the books: what runs may end."""
        for decision in decisions:
            if isinstance(decision, Allocated):
                self.running[decision.application, decision.key] = None
                self.started += 1

    def begins(self) -> Iterator[Event]:
        """What is there before the first step."""
        for _ in range(self.chance.randint(5, 25)):
            yield self._node()
        for _ in range(self.many):
            yield from self._application(self.chance.randint(1, 12))

    def happens(self) -> Iterator[Event]:
        """What happens in a step: mostly work comes and goes; now and then anything else."""
        for _ in range(self.chance.randint(0, 4)):
            what, apps = self.chance.random(), self.part.applications
            if what < 0.45 and self.running:
                yield self._end()
            elif what < 0.75 and apps:
                yield AddAsks((self._ask(self.chance.choice(list(apps))),))
            elif what < 0.8:
                yield from self._application(self.chance.randint(1, 4))
            elif what < 0.9:
                yield self._at_nodes()
            elif what < 0.99 and apps:
                app = self.chance.choice(list(apps))
                more = self.number >= MORE_FROM and self.chance.random() < 0.5
                yield from self._more(app) if more else self._at_work(app)
            elif what >= 0.99:
                yield Configure(self._file())

    def _end(self) -> Event:
        app, key = self.chance.choice(list(self.running))
        del self.running[app, key]
        cause = self.chance.choice([Cause.FINISHED, Cause.FINISHED, Cause.INTERRUPTED])
        return Release(app, key, cause, exit_code=self.chance.choice([0, 1]) if cause is Cause.FINISHED else None)

    def _at_nodes(self) -> Event:
        nodes, what = list(self.part.nodes.nodes), self.chance.randrange(8)
        if len(nodes) < 3 or what == 0:
            return self._node()
        node = self.chance.choice(nodes)
        if what == 1:
            return RemoveNode(node)
        if what == 2:
            return LabelNode(node, {"zone": f"z{self.chance.randrange(3)}"})
        if what == 3:
            return UpdateNode(node, Resources({"vcore": self.chance.randint(3, 6) * 1_000, "memory": CAPACITY}))
        return self.chance.choice([DrainNode, UndrainNode, UndrainNode])(node)

    def _at_work(self, app: str) -> Iterator[Event]:
        waiting: list[Ask] = [ask for ask in self.part.applications[app].asks.values() if ask.pending]
        what = self.chance.randrange(8)
        if what == 0:
            yield RemoveApplication(app)
        elif what == 1:
            yield MoveApplication(app, self._leaf())
        elif waiting and what == 2:
            yield Release(app, self.chance.choice(waiting).key, Cause.STOPPED_BY_RM)
        elif waiting:
            yield SetPriority(app, self.chance.choice(waiting).key, self.chance.randint(-1, 5))

    def _more(self, app: str) -> Iterator[Event]:
        """What is declared for all, and orders about single asks."""
        chance = self.chance
        asks = list(self.part.applications[app].asks.values())
        own = (Requirement("app", "In", (app,)),)
        scope = (Requirement("PriorityClass", "In", (chance.choice(CLASSES),)),)
        node = chance.choice(list(self.part.nodes.nodes))
        size, key = chance.choice(self.sizes), f"f{chance.randrange(4)}"
        foreign = AskSpec(application="", key=key, resources=size, tags={TAG_FOREIGN: "default"}, node=node)
        most = Limits({"vcore": chance.randint(10, 60) * 1_000})
        quota = QuotaSpec(name="q", queue="root", resources=most, scopes=scope)
        choices: list[Event] = [
            SetBudget(BudgetSpec(name=chance.choice("ab"), selector=own, min_available=chance.randint(0, 3))),
            RemoveBudget(chance.choice("ab")),
            chance.choice([SetQuota(quota, "ann"), RemoveQuota("q", "ann")]),
            SetPriorityClass(PriorityClassSpec(name=chance.choice(CLASSES), value=chance.randint(-2, 5)), "ann"),
            chance.choice([AddAsks((foreign,)), Release("", foreign.key)]),
        ]
        if asks:
            ask = chance.choice(asks)
            begin_ms = chance.choice([0, self.now_ms + 3_000])
            choices += [
                ReserveAsk(app, ask.key, chance.random() < 0.75, "ann", "so"),
                Checkpoint(app, ask.key),
                SetConditions(app, ask.key, Conditions(held_by=chance.choice(["", "ann"]), begin_ms=begin_ms)),
                ChangeAsk(app, ask.key, chance.choice(self.sizes) if ask.pending else ask.spec.resources, None, "ann"),
            ]
        yield chance.choice(choices)

    def _application(self, asks: int) -> Iterator[Event]:
        app = self._name("a")
        spec = ApplicationSpec(id=app, queue=self._leaf(), user=f"u{self.chance.randrange(4)}")
        if self.chance.random() < 0.1:
            yield from self._gang(spec, self.chance.randint(2, 4))
            return
        yield AddApplication(spec)
        yield AddAsks(tuple(self._ask(app) for _ in range(asks)))

    def _gang(self, spec: ApplicationSpec, size: int) -> Iterator[Event]:
        style, timeout_ms = self.chance.choice(["Soft", "Hard"]), self.chance.choice([0, 5_000, 60_000])
        member = replace(self._ask(spec.id), task_group="g", idle=False, retry=None)
        whole = member.resources * size
        yield AddApplication(replace(spec, placeholder_ask=whole, gang_style=style, placeholder_timeout_ms=timeout_ms))
        yield AddAsks(tuple(replace(member, key=self._name("p"), placeholder=True) for _ in range(size)))
        yield AddAsks(tuple(replace(member, key=self._name("k")) for _ in range(size)))

    # -- what it is about -------------------------------------------------------------------------------------------

    def _name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def _leaf(self) -> str:
        return self.prefix + self.chance.choice(self.leaves)

    def _size(self) -> Resources:
        return Resources({name: self.chance.randint(3, 30) * 100 for name in ("vcore", "memory")})

    def _node(self) -> AddNode:
        capacity = Resources({"vcore": CAPACITY, "memory": CAPACITY})
        zone = {"zone": f"z{self.chance.randrange(3)}"}
        return AddNode(NodeSpec(id=self._name("n"), capacity=capacity, attributes=zone))

    def _ask(self, app: str) -> AskSpec:
        chance, nodes = self.chance, list(self.part.nodes.nodes)
        return AskSpec(
            application=app,
            key=self._name("k"),
            resources=chance.choice(self.sizes),
            priority=chance.randint(0, 3),
            time_limit_ms=chance.choice([None, None, 10_000, 60_000]),
            retry=RetrySpec(limit=2) if chance.random() < 0.2 else None,
            tags={TAG_REQUIRED_NODE: chance.choice(nodes)} if nodes and chance.random() < 0.03 else {},
            labels={"app": app},
            where=self._where(app) if self.is_constrained and chance.random() < 0.3 else Constraints(),
            allow_preempt_other=chance.random() < 0.9,
            idle=chance.random() < 0.05,
            priority_class=chance.choice(CLASSES) if self.number >= MORE_FROM and chance.random() < 0.3 else "",
        )

    def _where(self, app: str) -> Constraints:
        own = (Requirement("app", "In", (app,)),)
        apart, near = AffinityTerm(own, HOSTNAME), AffinityTerm(own, "zone")
        return self.chance.choice(
            [
                Constraints(anti_affinity=(apart,)),
                Constraints(affinity=(near,)),
                Constraints(spread=(SpreadTerm(own, "zone", 1),)),
            ]
        )

    def _file(self) -> ClusterSpec:
        """A queue file: other limits and properties each time, with the same queues."""
        leaves = tuple(self._queue(name) for name in self.leaves)
        if self.prefix != "root.":
            leaves = (QueueSpec(name="p", parent=True, queues=leaves, max=self._vcore(20, 60, 0.5)),)
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
        preemption = PreemptionSpec(rule=self.rule, enabled=self.chance.random() < 0.8)
        sort = NodeSortSpec(policy=self.chance.choice(["fair", "fair", "binpacking"]))
        part = PartitionSpec(root=root, preemption=preemption, node_sort=sort)
        values = {"low": -1, "high": 4, "meek": 3}
        classes = tuple(
            PriorityClassSpec(name=n, value=v, preemption_policy="Never" if n == "meek" else "PreemptLowerPriority")
            for n, v in values.items()
        )
        more = self.number >= MORE_FROM
        return ClusterSpec(
            partitions=(part,), priority_classes=classes if more else (), checksum=str(self.chance.random())
        )

    def _queue(self, name: str) -> QueueSpec:
        chance = self.chance
        limits: tuple[LimitSpec, ...] = ()
        if chance.random() < 0.25:
            most = Limits({"vcore": chance.randint(5, 20) * 1_000})
            limits = (LimitSpec(users=("*",), max_resources=most, max_applications=chance.choice([0, 3])),)
        return QueueSpec(
            name=name,
            max=self._vcore(5, 40, 0.3),
            guaranteed=self._vcore(2, 20, 0.4),
            limits=limits,
            max_applications=chance.choice([0, 0, 0, 5]),
            properties={key: chance.choice(texts) for key, (texts, p) in PROPERTIES.items() if chance.random() < p},
        )

    def _vcore(self, least: int, most: int, likely: float) -> Limits | None:
        chosen = self.chance.randint(least, most)
        return Limits({"vcore": chosen * 1_000}) if self.chance.random() < likely else None
