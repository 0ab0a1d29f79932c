"""A long course of events made from a number, and a digest of all that was decided: `python course.py NUMBER STEPS`.

Run as a program, so that the same course can be taken by processes that differ in nothing but how they hash.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator

from properties.worlds import LEAVES, WORLDS, world

from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    DrainNode,
    Event,
    Release,
    RemoveApplication,
    RemoveNode,
    SetPriority,
    UndrainNode,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_REQUIRED_NODE, ApplicationSpec, AskSpec, NodeSpec
from fairlead.journal.codec import encode_all
from fairlead.scheduler import Scheduler

NODES = 20


class Course:
    """One course under way."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.chance = random.Random(number)
        self.now_ms = 0
        self.made = 0
        self.scheduler = Scheduler(world(number % WORLDS), 0)
        self.digest = hashlib.sha256()
        self.counts: dict[str, int] = {}

    def run(self, steps: int) -> None:
        for number in range(NODES):
            self.handle(AddNode(NodeSpec(id=f"n{number}", capacity=self.amount(2, 8))))
        for _ in range(steps):
            self.now_ms += self.chance.choice([0, 1, 100, 3_000, 20_000])
            for event in self.events():
                self.handle(event)
            self.note(self.scheduler.schedule(self.now_ms, self.chance.choice([None, 1, 5])))

    def handle(self, event: Event) -> None:
        self.note(self.scheduler.handle(event, self.now_ms))

    def note(self, decisions: list[object]) -> None:
        self.digest.update(encode_all(decisions))
        for decision in decisions:
            name = type(decision).__name__
            self.counts[name] = self.counts.get(name, 0) + 1
            if isinstance(decision, Evict) and self.chance.random() < 0.8:
                self.handle(Release(decision.application, decision.key, decision.cause))

    def amount(self, low: int, high: int) -> Resources:
        return Resources({"vcore": self.chance.randint(low, high), "memory": self.chance.randint(0, high)})

    def name(self) -> str:
        self.made += 1
        return f"w{self.made}"

    def events(self) -> Iterator[Event]:
        """What happens next: mostly new work and ends of work."""
        apps = self.scheduler.cluster.partitions["default"].applications
        asks = [ask for app in apps.values() for ask in app.asks.values()]
        what = self.chance.randint(0, 19)
        if what < 8 or not asks:
            app = self.name()
            yield AddApplication(ApplicationSpec(id=app, queue=self.chance.choice(LEAVES), user=f"u{what % 3}"))
            yield AddAsks(tuple(self.ask(app) for _ in range(self.chance.randint(1, 4))))
        elif what < 14:
            for ask in self.chance.sample(asks, min(3, len(asks))):
                yield Release(ask.app.id, ask.key, Cause.FINISHED)
        elif what < 16:
            ask = self.chance.choice(asks)
            yield SetPriority(ask.app.id, ask.key, self.chance.randint(-10, 10))
        elif what == 16:
            yield Configure(world(self.chance.randrange(WORLDS)))
        elif what == 17:
            yield RemoveApplication(self.chance.choice(list(apps)))
        else:
            node = f"n{self.chance.randrange(NODES)}"
            yield self.chance.choice(
                [
                    DrainNode(node),
                    UndrainNode(node),
                    RemoveNode(node),
                    AddNode(NodeSpec(id=node, capacity=self.amount(2, 8))),
                ]
            )

    def ask(self, app: str) -> AskSpec:
        tags = {TAG_REQUIRED_NODE: f"n{self.chance.randrange(NODES)}"} if self.chance.random() < 0.1 else {}
        priority = self.chance.randint(-3, 3)
        return AskSpec(application=app, key=self.name(), resources=self.amount(1, 3), priority=priority, tags=tags)


if __name__ == "__main__":
    course = Course(int(sys.argv[1]))
    course.run(int(sys.argv[2]))
    print(course.digest.hexdigest(), *(f"{name}={count}" for name, count in sorted(course.counts.items())))
