"""States in which every policy is at work, to ask questions about: `policies` made to happen to one scheduler.

Decides how far a course goes and how deep the tree of queues is. Who is told to stop may take his time. Never watches a
law: `test_policies` does. Invariant: the same number gives the same state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from properties.policies import LEAVES, Happenings, world

from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import Constraints, Toleration
from fairlead.core.model.decisions import Decision, Evict
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Configure,
    Event,
    MoveApplication,
    ReserveAsk,
    SetWindow,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, QueueSpec, WindowSpec
from fairlead.scheduler import Scheduler

STEPS = (6, 45)


@dataclass(frozen=True)
class About:
    """What a course has more of than others."""

    properties: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Of leaves: each is set with one of these values more often than not."""
    rule: str = ""
    guarantees: bool = False
    small: bool = False
    """Nodes are small, so that much waits."""
    fussy: bool = False
    """Many taints and selectors."""
    meek: bool = False
    """Much work that stops nobody."""
    turns: bool = False
    """A turn is kept at the end."""
    late: bool = False
    """Important work comes at the end."""
    ends: bool = False
    """And something is over after that."""


TURNS = (("wait.max", ("10s", "60s")), ("backfill", ("easy", "none")))
REST = (("application.unschedasks.backoff", ("1", "1", "2")), ("application.unschedasks.backoff.delay", ("5s", "30s")))
FENCES = (("preemption.policy", ("fence", "disabled", "default")), ("preemption.delay", ("1ms", "1s")))
YOUNG = (("preemption.min.runtime", ("10s", "60s")), ("preemption.evictions.max", ("0", "1", "2")))
ABOUT = (
    About(),
    About(properties=TURNS, turns=True, ends=True),
    About(),
    About(properties=REST, small=True, late=True, ends=True),
    About(properties=FENCES, rule="guarantee", guarantees=True, small=True, late=True),
    About(rule="priority", meek=True, small=True, late=True),
    About(fussy=True),
    About(properties=YOUNG, rule="priority", small=True, late=True),
    About(properties=TURNS, turns=True, small=True),
)
TOP, BOTTOM = "root.c", "root.c.d.e"


class Mixed(Happenings):
    """One course under way."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.is_deep = number % 4 == 0
        self.about = ABOUT[number % len(ABOUT)]
        self.scheduler = Scheduler(self._file(world(self.chance)), 0)
        for _ in range(self.chance.randint(1, 4)):
            self.handle(self.fresh_node())

    @property
    def part(self) -> Partition:
        return self.scheduler.cluster.partitions["default"]

    @property
    def leaves(self) -> tuple[str, ...]:
        return tuple(queue.path for queue in self.part.root.walk() if queue.is_leaf) or LEAVES

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.now_ms += self.chance.choice([0, 0, 500, 1_000, 5_000, 20_000])
            for event in self.events(self.part):
                self.handle(event)
            if self.chance.random() < 0.8:
                self.note(self.decide(None, self.chance.choice([None, None, 1, 3])))

    def handle(self, event: Event) -> None:
        if isinstance(event, Configure):
            event = replace(event, spec=self._file(event.spec))
        event = self._further_down(event) if self.is_deep else event
        self.note(self.decide(event))

    def decide(self, event: Event | None, limit: int | None = None) -> list[Decision]:
        """What follows from an event, or from scheduling."""
        if event is not None:
            return self.scheduler.handle(event, self.now_ms)
        return self.scheduler.schedule(self.now_ms, limit)

    def _further_down(self, event: Event) -> Event:
        """What goes to the queue at the top of the deep part goes to its only leaf."""
        if isinstance(event, AddApplication) and event.application.queue == TOP:
            return AddApplication(replace(event.application, queue=BOTTOM))
        if isinstance(event, MoveApplication) and event.queue == TOP:
            return replace(event, queue=BOTTOM)
        return event

    def _file(self, spec: ClusterSpec) -> ClusterSpec:
        """The queue file, with more of what this course is about."""
        part = spec.partitions[0]
        preemption = replace(part.preemption, rule=self.about.rule or part.preemption.rule)
        part = replace(part, root=self._emphasised(part.root), preemption=preemption)
        spec = replace(spec, partitions=(part,))
        return deeper(spec) if self.is_deep else spec

    def _emphasised(self, queue: QueueSpec) -> QueueSpec:
        """The same queue with the properties and guarantees that the course is about, now and then."""
        if queue.queues:
            return replace(queue, queues=tuple(map(self._emphasised, queue.queues)))
        more = {name: self.chance.choice(texts) for name, texts in self.about.properties if self.chance.random() < 0.6}
        guaranteed = queue.guaranteed
        if self.about.guarantees:
            # Few and small ones, so that there is work above them that may be stopped.
            guaranteed = Limits({"vcore": 1}) if self.chance.random() < 0.4 else None
        return replace(queue, properties=dict(queue.properties) | more, guaranteed=guaranteed)

    def capacity(self) -> Resources:
        return Resources({"vcore": self.chance.randint(2, 4), "memory": 4}) if self.about.small else super().capacity()

    def fresh_node(self) -> AddNode:
        event = super().fresh_node()
        if self.about.fussy and self.chance.random() < 0.6:
            return AddNode(replace(event.node, taints=(self.chance.taint(),)))
        return event

    def ask(self, app: str, shape: Resources, idle: bool = False) -> AskSpec:
        spec = super().ask(app, shape, idle)
        if self.about.turns and spec.time_limit_ms is None:
            # Only where all limits are declared it is known when the one with the turn can start.
            spec = replace(spec, time_limit_ms=30_000)
        if self.about.fussy and self.chance.random() < 0.5:
            where = replace(spec.where, selector=(self.chance.of_node(),))
            return replace(spec, where=where)
        if self.about.meek and self.chance.random() < 0.5:
            if self.chance.random() < 0.5:
                return replace(spec, priority=0, priority_class="meek")
            return replace(spec, priority=4, priority_class="", allow_preempt_other=False)
        return spec

    def finish(self) -> None:
        """What the course is about comes late, so that it is in the way of somebody when the question is asked."""
        chance, about = self.chance, self.about
        waiting = [a for app in self.part.applications.values() for a in app.asks.values() if a.pending]
        if about.turns and waiting:
            # The largest has its turn kept; small work that came later could pass it.
            largest = max(waiting, key=lambda a: (sum(n for _, n in a.items), a.priority))
            self.handle(ReserveAsk(largest.app.id, largest.key, True, "ann", "because"))
            self.late(
                largest.app.queue.path, priority=largest.priority - 1, time_limit_ms=chance.choice([None, 60_000])
            )
        if about.late:
            for _ in range(2):
                meek = {"allow_preempt_other": False} if about.meek else {}
                self.late(chance.choice(self.leaves), priority=chance.randint(3, 9), **meek)
        self.note(self.decide(None))
        self.now_ms += 2_000 if about.guarantees else 0
        self.note(self.decide(None))
        running = [a for node in self.part.nodes.nodes.values() for a in node.allocations]
        if about.ends and running:
            self.handle(self.end(chance.choice(running)))
            self.note(self.decide(None))

    def late(self, queue: str, **more: Any) -> None:
        """New work of one size that may run anywhere."""
        app, size = self.name("late"), self.chance.choice([Resources({"vcore": 1}), Resources({"vcore": 2})])
        self.handle(AddApplication(ApplicationSpec(id=app, queue=queue, user="cleo")))
        more |= {"where": Constraints(tolerations=(Toleration("", "Exists"),))}
        asks = [AskSpec(application=app, key=self.name("k"), resources=size, **more) for _ in range(2)]
        self.handle(AddAsks(tuple(asks)))

    def note(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Evict):
                self.orders.append(decision)
        self.orders = [order for order in self.orders if self._is_stopping(order)]

    def _is_stopping(self, order: Evict) -> bool:
        app = self.part.applications.get(order.application)
        ask = app.asks.get(order.key) if app is not None else None
        return ask is not None and ask.evict_cause is not None

    def amount(self, low: int, high: int) -> Resources:
        return Resources({"vcore": self.chance.randint(low, high), "memory": self.chance.randint(0, high)})


class Wider(Mixed):
    """The same with what came later: mostly guarantees and priorities at once (`both`), windows, arrays."""

    def _file(self, spec: ClusterSpec) -> ClusterSpec:
        spec = super()._file(spec)
        part = spec.partitions[0]
        if self.number % 3:
            part = replace(part, preemption=replace(part.preemption, rule="both", enabled=True))
        return replace(spec, partitions=(part,))

    def submit(self, part: Partition) -> Iterator[Event]:
        for event in super().submit(part):
            if isinstance(event, AddApplication) and not event.application.placeholder_ask:
                at_once = self.chance.choice([0] * 11 + [1, 2])
                yield AddApplication(replace(event.application, at_once=at_once))
            else:
                yield event

    def finish(self) -> None:
        if self.number % 4 == 1:
            self.handle(self.window())
        super().finish()
        if self.number % 4 == 3:
            self.handle(self.window())
            self.note(self.decide(None))

    def window(self) -> SetWindow:
        """Of all nodes or one, for all work or not that of one queue; open, or soon."""
        chance, nodes = self.chance, list(self.part.nodes.nodes)
        spec = WindowSpec(
            name="w",
            starts_ms=self.now_ms + 1_000 * chance.randint(-3, 40),
            length_ms=chance.choice([5_000, 20_000]),
            nodes=() if chance.random() < 0.4 or not nodes else (chance.choice(nodes),),
            queues=() if chance.random() < 0.6 else (chance.choice(self.leaves),),
            stop_running=chance.random() < 0.3,
        )
        return SetWindow(spec)


def deeper(spec: ClusterSpec) -> ClusterSpec:
    """The same with queue `root.c` as the top of two more levels."""
    part = spec.partitions[0]
    top = part.root.queues[-1]
    leaf = replace(top, name="e", max=None, limits=())
    middle = QueueSpec(name="d", parent=True, queues=(leaf,))
    queues = (*part.root.queues[:-1], replace(top, parent=True, queues=(middle,), guaranteed=None, properties={}))
    return replace(spec, partitions=(replace(part, root=replace(part.root, queues=queues)),))


def mixed(number: int) -> Mixed:
    """The course of this number, somewhere on its way."""
    return _under_way(Mixed(number))


def wider(number: int) -> Mixed:
    """The same of one with more in it."""
    return _under_way(Wider(number))


def _under_way(course: Mixed) -> Mixed:
    course.run(course.chance.randint(*STEPS))
    course.finish()
    return course
