"""What is said to keep an ask from having work stopped, and to spare work, held against what the scheduler does stop,
over random courses under every rule.

Before each scheduling call every ask that waits is asked about. When the first that the call decides is that some work
has to go for one of them, that ask was not said to be kept from it, and none of its victims to be spared.
"""

from __future__ import annotations

import random

import pytest
from priority_clusters import PriorityCluster, cores
from properties.mixed import STEPS
from properties.test_reasons import RULES, Ruled

from fairlead.core.books.asks import Ask
from fairlead.core.model.decisions import Decision, Evict
from fairlead.core.model.events import Event
from fairlead.core.model.specs import QueueSpec
from fairlead.policy.why.spared import Keeps, Spares, looked_at, why_nothing_stops
from fairlead.scheduler import Scheduler

STOPPED_BY = ("guarantee", "priority")
Said = dict[tuple[str, str], tuple[Keeps | None, dict[str, Spares]]]


class Asked:
    """What was answered, and how often it was held against what came."""

    def __init__(self) -> None:
        self.held = 0
        self.answers: set[Keeps | Spares] = set()

    def schedule(self, s: Scheduler, now_ms: int, limit: int | None = None) -> list[Decision]:
        """A scheduling call, and what was said before it."""
        fallen_due, before = s.schedule(now_ms, 0), s.dump()
        apps = s.cluster.partitions["default"].applications
        asks = [ask for app in apps.values() for ask in app.asks.values()]
        said = {(ask.app.id, ask.key): self._said(s, ask) for ask in asks if ask.pending}
        idle = {ask.key for ask in asks if ask.spec.idle}
        bound = {(ask.app.id, ask.key) for ask in asks if ask.required_node}
        assert s.dump() == before, "asking changed the state"
        decided = s.schedule(now_ms, limit)
        told = [each for each in decided if isinstance(each, Evict)]
        if told and told[0] is decided[0] and told[0].rule in STOPPED_BY:
            first, (app, _, key) = told[0], told[0].on_behalf_of.rpartition("/")
            if (name := (app or key, key)) not in bound:
                of_one = [each for each in told if (each.on_behalf_of, each.rule) == (first.on_behalf_of, first.rule)]
                self._hold(said[name], [each.key for each in of_one], idle)
        return fallen_due + decided

    def _said(self, s: Scheduler, ask: Ask) -> tuple[Keeps | None, dict[str, Spares]]:
        part = s.cluster.partitions["default"]
        looked, nothing = looked_at(part, ask), why_nothing_stops(part, ask)
        if nothing is not None:
            self.answers |= {nothing.because} if nothing.because is not None else nothing.spared.keys()
            assert sum(nothing.spared.values()) <= nothing.running
            assert nothing.until_ms is None or nothing.until_ms > part.now_ms
        running = (a for node in part.nodes.every() for a in node.allocations)
        spared = {a.key: why for a in running if (why := looked.spares(a)) is not None}
        is_in_vain = nothing is not None and nothing.because is Keeps.GANG
        return (Keeps.GANG if is_in_vain else looked.keeps()[0]), spared

    def _hold(self, said: tuple[Keeps | None, dict[str, Spares]], victims: list[str], idle: set[str]) -> None:
        because, spared = said
        for key in victims:
            assert because is None or key in idle, because  # Idle work gives way whatever keeps an ask from other work.
            assert key not in spared, (key, spared[key])
            self.held += 1


class Course(Ruled):
    """One in which everything happens."""

    def __init__(self, number: int, rule: str, asked: Asked) -> None:
        self.asked = asked
        super().__init__(number, rule)

    def decide(self, event: Event | None, limit: int | None = None) -> list[Decision]:
        if event is not None:
            return super().decide(event, limit)
        return self.asked.schedule(self.scheduler, self.now_ms, limit)


@pytest.mark.parametrize("rule", RULES)
def test_what_is_stopped_was_not_said_to_be_spared(rule: str) -> None:
    asked = Asked()
    for number in range(40):
        course = Course(number, rule, asked)
        course.run(course.chance.randint(*STEPS))
        course.finish()
    assert asked.held > 0
    assert len(asked.answers) > 5, asked.answers


def below_guarantee(seed: int, rule: str, asked: Asked) -> None:
    """Low work of queues with small guarantees, of others, and of their own fills the nodes; then more comes."""
    chance = random.Random(f"spared-{seed}")
    at_once = {"preemption.delay": "1ms"}
    queues = [
        QueueSpec(
            name=name,
            guaranteed=cores(chance.randint(1, 6)) if chance.random() < 0.7 else None,
            max=cores(chance.randint(4, 12)) if chance.random() < 0.3 else None,
            properties=at_once | chance.choice([{}, {}, {"preemption.policy": chance.choice(["fence", "disabled"])}]),
        )
        for name in "abc"
    ]
    c = PriorityCluster(*queues, rule=rule, nodes={f"n{i}": chance.randint(1, 5) for i in range(3)})
    for i in range(chance.randint(4, 14)):
        willing = {"idle": True} if chance.random() < 0.1 else {"allow_preempt_self": chance.random() < 0.3}
        c.submit(f"w{i}", chance.choice([1, 1, 2]), chance.randint(0, 2), f"root.{chance.choice('aabc')}", **willing)
        c.run(chance.randint(1, 2_000))
    for i in range(chance.randint(1, 5)):
        c.submit(f"x{i}", chance.choice([1, 2, 3]), chance.randint(0, 3), f"root.{chance.choice('abc')}")
        for _ in range(3):
            c.now_ms += chance.randint(1, 9_000)
            for told in [d for d in asked.schedule(c.s, c.now_ms) if isinstance(d, Evict)]:
                if chance.random() < 0.7:
                    c.gone(told.key)


@pytest.mark.parametrize("rule", RULES)
def test_what_is_taken_back_was_not_said_to_be_spared(rule: str) -> None:
    asked = Asked()
    for seed in range(60):
        below_guarantee(seed, rule, asked)
    assert asked.held > 5
    assert len(asked.answers) > 4, asked.answers
