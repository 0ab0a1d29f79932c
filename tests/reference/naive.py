"""A scheduler written from the specification in the plainest way: everything is sorted again for every placement.

It keeps no orders and remembers nothing of what it looked at, so it is slow and easy to believe. The production
scheduler must place the same asks on the same nodes in the same order. It knows queues with maxima, guarantees,
priorities and `maxapplications`, both orders of applications and of nodes; no gangs, reservations, placement rules,
limits of users or preemption. Complete ties go by creation: queues in the order of the file, applications and asks in
order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fairlead.core.model import events
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import NodeSortSpec, PartitionSpec, QueueSpec

Amount = dict[str, int]
Placement = tuple[str, str, str]
"""Application, key, node."""

LOWEST, HIGHEST = -(2**31), 2**31 - 1
NOTHING_WAITS = LOWEST
NOT_INHERITED = ("priority.policy", "priority.offset", "preemption.policy")


def total(amounts: list[Amount]) -> Amount:
    """The sum, without zeros."""
    names = {name for amount in amounts for name in amount}
    summed = {name: sum(amount.get(name, 0) for amount in amounts) for name in sorted(names)}
    return {name: value for name, value in summed.items() if value}


def usable(limits: Limits | None) -> Amount | None:
    """What a maximum or guarantee says; all zero means that it is not set."""
    return limits.as_dict() if limits is not None and any(value > 0 for _, value in limits) else None


@dataclass
class Ask:
    key: str
    amount: Amount
    priority: int
    created_ms: int
    arrival: int
    node: str = ""


@dataclass
class Application:
    id: str
    queue: Queue
    submitted_ms: int
    arrival: int
    state: str = "new"
    told: bool = False
    """Its age is what a tag says: whole seconds, so that two may be of one age."""
    asks: dict[str, Ask] = field(default_factory=dict)

    def waiting(self) -> list[Ask]:
        """Asks that wait: 1. higher priority, 2. created earlier, 3. arrived earlier."""
        return sorted(
            (a for a in self.asks.values() if not a.node), key=lambda a: (-a.priority, a.created_ms, a.arrival)
        )

    def pending(self) -> Amount:
        return total([a.amount for a in self.waiting()])

    def allocated(self) -> Amount:
        return total([a.amount for a in self.asks.values() if a.node])

    def priority(self) -> int:
        return max((a.priority for a in self.waiting()), default=NOTHING_WAITS)

    def settle(self) -> None:
        """Nothing waits and nothing runs: it completes."""
        if self.state in ("accepted", "running") and not self.asks:
            self.state = "completing"


@dataclass
class Queue:
    name: str
    parent: Queue | None
    number: int
    children: dict[str, Queue] = field(default_factory=dict)
    applications: dict[str, Application] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    max: Amount | None = None
    guaranteed: Amount | None = None
    max_applications: int = 0

    def configure(self, spec: QueueSpec) -> None:
        above = self.parent.properties if self.parent else {}
        passed_on = {key: text for key, text in above.items() if key not in NOT_INHERITED}
        self.properties = {**passed_on, **spec.properties}
        if self.parent:
            self.max, self.guaranteed = usable(spec.max), usable(spec.guaranteed)
        self.max_applications = spec.max_applications
        for child in spec.queues:
            if child.name not in self.children:
                self.children[child.name] = Queue(child.name, self, len(self.children))
            self.children[child.name].configure(child)

    def below(self) -> Iterator[Application]:
        yield from self.applications.values()
        for child in self.children.values():
            yield from child.below()

    def up(self) -> list[Queue]:
        return [self, *(self.parent.up() if self.parent else [])]

    def pending(self) -> Amount:
        return total([app.pending() for app in self.below()])

    def allocated(self) -> Amount:
        return total([app.allocated() for app in self.below()])

    def by_priority(self) -> bool:
        return self.properties.get("application.sort.priority", "enabled") == "enabled"

    def reports(self) -> int:
        """The highest priority below with the offset; behind a fence the offset alone."""
        parts = [app.priority() for app in self.applications.values()]
        highest = max([*parts, *(child.reports() for child in self.children.values())], default=NOTHING_WAITS)
        if highest == NOTHING_WAITS:
            return NOTHING_WAITS
        offset = int(self.properties.get("priority.offset", "0"))
        if self.properties.get("priority.policy") == "fence":
            return offset
        return max(LOWEST, min(HIGHEST, highest + offset))

    def fair_max(self) -> Amount:
        if self.parent is None:
            return dict(self.max or {})
        above = self.parent.fair_max()
        return {**above, **(self.max or {})} if above else {}

    def share(self) -> float:
        """The largest part of its guarantee, else of its fair maximum, that is in use."""
        largest = 0.0
        for name, used in self.allocated().items():
            due = {**self.fair_max(), **(self.guaranteed or {})}.get(name)
            if due is not None:
                largest = max(largest, used / due if due > 0 else 1.0)
        return largest

    def children_in_order(self) -> list[Queue]:
        """Those that wait: by priority and share (or share and priority), then who waits for more, then the oldest."""

        def key(child: Queue) -> tuple[object, ...]:
            first, second = -child.reports(), child.share()
            more = -sum(child.pending().values())
            return (first, second, more, child.number) if self.by_priority() else (second, first, more, child.number)

        return sorted((c for c in self.children.values() if c.pending()), key=key)

    def applications_in_order(self) -> list[Application]:
        """Those that wait: by priority and age, or by priority and shares; without priority that comes second."""
        fair = self.properties.get("application.sort.policy") == "fair"

        def shares(app: Application) -> list[float]:
            due = self.guaranteed or {}
            used = app.allocated().items()
            return sorted((n / due[name] if due.get(name) else float(n) for name, n in used), reverse=True)

        def key(app: Application) -> tuple[object, ...]:
            age = (app.submitted_ms, app.arrival)
            if fair:
                return (
                    (-app.priority(), shares(app), age) if self.by_priority() else (shares(app), -app.priority(), age)
                )
            if self.by_priority():
                return (-app.priority(), age)
            came = 0 if app.told else app.arrival
            return (app.submitted_ms, came, -app.priority(), app.arrival)

        return sorted((a for a in self.applications.values() if a.waiting()), key=key)

    def may_start_another(self) -> bool:
        """No queue on the way to the root runs as many applications as it may."""
        for queue in self.up():
            running = sum(app.state == "running" for app in queue.below())
            if queue.max_applications and running >= queue.max_applications:
                return False
        return True

    def admits(self, amount: Amount) -> bool:
        """Every maximum on the way has room; the root's is what the nodes have, and a name it does not know is none."""
        for queue in self.up():
            used = queue.allocated()
            for name, n in amount.items():
                most = (queue.max or {}).get(name, 0 if queue.parent is None else None)
                if most is not None and used.get(name, 0) + n > most:
                    return False
        return True


@dataclass
class Node:
    id: str
    capacity: Amount
    open: bool
    foreign: dict[str, Amount] = field(default_factory=dict)


class NaiveScheduler:
    """The same two calls as the production scheduler has; it answers with placements only."""

    def __init__(self, spec: PartitionSpec) -> None:
        self.root = Queue("root", None, 0)
        self.nodes: dict[str, Node] = {}
        self.applications: dict[str, Application] = {}
        self.arrivals = 0
        self.now_ms = 0
        self.sort: NodeSortSpec = spec.node_sort
        self.configure(spec)

    def configure(self, spec: PartitionSpec) -> None:
        self.sort = spec.node_sort
        self.root.configure(spec.root)

    # -- scheduling --

    def schedule(self, limit: int | None = None) -> list[Placement]:
        """Place one ask after the other."""
        placed: list[Placement] = []
        while limit is None or len(placed) < limit:
            one = self.place_in(self.root) if self.nodes else None
            if one is None:
                break
            placed.append(one)
        return placed

    def place_in(self, queue: Queue) -> Placement | None:
        for child in queue.children_in_order():
            if (placed := self.place_in(child)) is not None:
                return placed
        for app in queue.applications_in_order():
            if (placed := self.place_from(app)) is not None:
                return placed
        return None

    def place_from(self, app: Application) -> Placement | None:
        if app.state == "accepted" and not app.queue.may_start_another():
            return None
        for ask in app.waiting():
            if not app.queue.admits(ask.amount):
                continue
            fitting = [node for node in self.nodes_in_order() if self.fits(ask, node) and self.suits(app, ask, node)]
            if fitting:
                ask.node = self.preferred(app, ask, fitting).id
                app.state = "running"
                return app.id, ask.key, ask.node
        return None

    def fits(self, ask: Ask, node: Node) -> bool:
        free = self.free(node)
        return node.open and all(n <= free.get(name, 0) for name, n in ask.amount.items())

    def preferred(self, app: Application, ask: Ask, nodes: list[Node]) -> Node:
        """Which of the nodes on which it may run, in order: here nothing is preferred."""
        return nodes[0]

    def suits(self, app: Application, ask: Ask, node: Node) -> bool:
        """Whether the ask may run there, room apart: here nothing has constraints."""
        return True

    def free(self, node: Node) -> Amount:
        """What nobody uses; may be below zero."""
        here = [a.amount for app in self.applications.values() for a in app.asks.values() if a.node == node.id]
        used = total([*here, *node.foreign.values()])
        return {name: node.capacity.get(name, 0) - used.get(name, 0) for name in {*node.capacity, *used}}

    def nodes_in_order(self) -> list[Node]:
        """Emptiest or fullest first, then by id."""

        def score(node: Node) -> float:
            free, weights = self.free(node), self.sort.weights
            known = [name for name in sorted(node.capacity) if node.capacity[name] and weights.get(name, 0) > 0]
            used = 0.0
            for name in known:
                used += (1.0 - free[name] / node.capacity[name]) * weights[name]
            usage = used / sum(weights[name] for name in known) if known else 0.0
            return usage if self.sort.policy == "fair" else 1.0 - usage

        return sorted(self.nodes.values(), key=lambda node: (score(node), node.id))

    # -- events --

    def handle(self, event: events.Event, now_ms: int) -> None:
        self.now_ms = now_ms
        getattr(self, type(event).__name__)(event)
        self.root.max = total([node.capacity for node in self.nodes.values()]) if self.nodes else None

    def next_arrival(self) -> int:
        self.arrivals += 1
        return self.arrivals

    def Configure(self, event: events.Configure) -> None:
        self.configure(event.spec.partitions[0])

    def AddNode(self, event: events.AddNode) -> None:
        node = event.node
        self.nodes.setdefault(node.id, Node(node.id, node.capacity.as_dict(), node.schedulable))

    def UpdateNode(self, event: events.UpdateNode) -> None:
        if event.id in self.nodes:
            self.nodes[event.id].capacity = event.capacity.as_dict()

    def DrainNode(self, event: events.DrainNode) -> None:
        if event.id in self.nodes:
            self.nodes[event.id].open = False

    def UndrainNode(self, event: events.UndrainNode) -> None:
        if event.id in self.nodes:
            self.nodes[event.id].open = True

    def RemoveNode(self, event: events.RemoveNode) -> None:
        if self.nodes.pop(event.id, None) is not None:
            self.drop(lambda app, ask: ask.node == event.id)

    def AddApplication(self, event: events.AddApplication) -> None:
        spec = event.application
        queue = self.root
        for name in spec.queue.split(".")[1:]:
            queue = queue.children[name]
        app = Application(spec.id, queue, self.now_ms, self.next_arrival())
        self.applications[spec.id] = queue.applications[spec.id] = app

    def RemoveApplication(self, event: events.RemoveApplication) -> None:
        app = self.applications.pop(event.id, None)
        if app is not None:
            del app.queue.applications[app.id]

    def AddAsks(self, event: events.AddAsks) -> None:
        for spec in event.asks:
            if not spec.application:
                self.nodes[spec.node].foreign[spec.key] = spec.resources.as_dict()
                continue
            app = self.applications[spec.application]
            if spec.key in app.asks:
                app.asks[spec.key].amount = spec.resources.as_dict()
                continue
            created = int(spec.tags["creationTime"]) * 1000 if "creationTime" in spec.tags else self.now_ms
            ask = Ask(spec.key, spec.resources.as_dict(), spec.priority, created, self.next_arrival(), spec.node)
            app.asks[spec.key] = ask
            if created < app.submitted_ms:
                app.submitted_ms, app.told = created, True
            app.state = {"new": "accepted", "completing": "running"}.get(app.state, app.state)
            if spec.node:
                app.state = "running"

    def Release(self, event: events.Release) -> None:
        app = self.applications.get(event.application)
        if app is not None and not event.key and app.state == "completing":
            # Emptying one that is about to complete anyway: it completes at once.
            self.RemoveApplication(events.RemoveApplication(app.id))
        self.drop(lambda app, ask: app.id == event.application and event.key in ("", ask.key))

    def SetPriority(self, event: events.SetPriority) -> None:
        for ask in self.applications[event.application].waiting():
            if event.key in ("", ask.key):
                ask.priority = event.priority

    def drop(self, gone: Callable[[Application, Ask], Any]) -> None:
        for app in self.applications.values():
            left = {key: ask for key, ask in app.asks.items() if not gone(app, ask)}
            if len(left) < len(app.asks):
                app.asks = left
                app.settle()
