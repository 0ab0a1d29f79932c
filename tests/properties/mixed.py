"""States in which every policy is at work, to ask questions about: `policies` made to happen to one scheduler.

Decides how far a course goes and how deep the tree of queues is. Who is told to stop may take his time. Never watches a
law: `test_policies` does. Invariant: the same number gives the same state.
"""

from __future__ import annotations

from dataclasses import replace

from properties.policies import LEAVES, Happenings, world

from fairlead.core.decisions import Decision, Evict
from fairlead.core.events import AddApplication, Configure, Event, MoveApplication
from fairlead.core.partition import Partition
from fairlead.core.resources import Resources
from fairlead.core.specs import ClusterSpec, QueueSpec
from fairlead.scheduler import Scheduler

STEPS = (6, 45)
TOP, BOTTOM = "root.c", "root.c.d.e"


class Mixed(Happenings):
    """One course under way."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.is_deep = number % 4 == 0
        spec = world(self.chance)
        self.scheduler = Scheduler(deeper(spec) if self.is_deep else spec, 0)
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
                self.note(self.scheduler.schedule(self.now_ms, self.chance.choice([None, None, 1, 3])))

    def handle(self, event: Event) -> None:
        event = self._further_down(event) if self.is_deep else event
        self.note(self.scheduler.handle(event, self.now_ms))

    def _further_down(self, event: Event) -> Event:
        """What goes to the queue at the top of the deep part goes to its only leaf."""
        if isinstance(event, AddApplication) and event.application.queue == TOP:
            return AddApplication(replace(event.application, queue=BOTTOM))
        if isinstance(event, MoveApplication) and event.queue == TOP:
            return replace(event, queue=BOTTOM)
        return replace(event, spec=deeper(event.spec)) if isinstance(event, Configure) else event

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
    course = Mixed(number)
    course.run(course.chance.randint(*STEPS))
    return course
