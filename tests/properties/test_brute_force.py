"""Changes that would start an ask, found by trying everything: what `why` calls complete has missed none of them.

The states are small, so that every value of a kind of change can be tried: all priorities at which anything changes,
all wider maximums, the end of each work that runs, each queue, more nodes like each that is there, every smaller size.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import pytest
from properties.course import Course
from properties.mixed import Mixed
from properties.test_questions import KINDS, PART, not_refused, starts_with, states, waiting

from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.specs import PRIORITY_MAX
from fairlead.insight.changes import spec_of_queue
from fairlead.insight.parts import Part, What
from fairlead.insight.trial import Name
from fairlead.insight.unblock import ways

WIDER = 10
NODES = 4
CANCELS = 12


def priorities(partition: Partition, ask: Ask) -> Iterator[tuple[Part, ...]]:
    """One above each that there is, seen through every sum of offsets."""
    known = {other.priority for app in partition.applications.values() for other in app.asks.values()}
    offsets = {0}
    for queue in partition.root.walk():
        offsets |= {sum(above.properties.priority_offset for above in queue.lineage[:n]) for n in range(5)}
    tried = {p + up - down + more for p in known for up in offsets for down in offsets for more in (0, 1)}
    for value in sorted(value for value in tried if ask.priority < value <= PRIORITY_MAX):
        yield (Part(What.PRIORITY, ask.key, ask.priority, value),)


def maximums(partition: Partition, ask: Ask) -> Iterator[tuple[Part, ...]]:
    """Each maximum of each queue on the way to the root, wider by one and more."""
    for queue in ask.app.queue.lineage[:-1]:
        if spec_of_queue(partition.spec.root, queue.path) is not None:
            for name, most in (queue.max or {}).items():
                for more in range(1, WIDER + 1):
                    yield (Part(What.QUEUE_MAX, queue.path, most, most + more, name),)


def ends(partition: Partition, ask: Ask) -> Iterator[tuple[Part, ...]]:
    """Each work that runs and is not of its own application."""
    running = [a for node in partition.nodes.nodes.values() for a in node.allocations if a.app is not ask.app]
    for other in running[:CANCELS]:
        if other.evict_cause is None:
            yield (Part(What.CANCEL, f"{other.app.id}/{other.key}", 0, 1),)


def queues(partition: Partition, ask: Ask) -> Iterator[tuple[Part, ...]]:
    """Each other leaf."""
    for queue in partition.root.walk():
        if queue.is_leaf and queue.managed and queue is not ask.app.queue:
            yield (Part(What.QUEUE, queue.path, 0, 1),)


def nodes(partition: Partition, ask: Ask) -> Iterator[tuple[Part, ...]]:
    """More like each."""
    for node_id in partition.nodes.nodes if not ask.required_node else ():
        for count in range(1, NODES + 1):
            yield (Part(What.NODES, node_id, 0, count),)


def sizes(partition: Partition, ask: Ask) -> Iterator[tuple[Part, ...]]:
    """Every size that is smaller, but something of everything."""
    del partition
    items = [(name, amount) for name, amount in ask.items if amount > 0]
    for values in product(*(range(1, amount + 1) for _, amount in items)):
        parts = [
            Part(What.SMALLER, ask.key, amount, value, name)
            for (name, amount), value in zip(items, values, strict=True)
            if value < amount
        ]
        if parts:
            yield tuple(parts)


EVERYTHING = {
    "priority": priorities,
    "queue-max": maximums,
    "cancel": ends,
    "queue": queues,
    "nodes": nodes,
    "smaller-request": sizes,
}


@dataclass
class Missed:
    """What was compared."""

    asks: int = 0
    complete: int = 0
    tried: int = 0
    helped: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[str] = field(default_factory=Counter)
    where: list[str] = field(default_factory=list)
    stuck: int = 0
    """That do not start by themselves, and for which there is no change."""


def compare(course: Course | Mixed, missed: Missed, most: int) -> None:
    """Some asks of a state, in every way."""
    scheduler = course.scheduler
    state, names = scheduler.dump(), waiting(scheduler)
    random.Random(course.number).shuffle(names)
    partition = scheduler.cluster.partitions[PART]
    for name in names[:most]:
        found = ways(scheduler, name, fork=False)
        missed.asks += 1
        if found.by_itself is not None or not found.is_complete:
            continue
        missed.complete += 1
        missed.stuck += not found.changes and found.never is None
        told = {change.dimension for change in found.changes if change.at_once}
        ask = partition.applications[name[1]].asks[name[2]]
        for kind, every in EVERYTHING.items():
            helps = next(
                (parts for parts in every(partition, ask) if _starts(course, state, name, parts, missed)), None
            )
            if helps is not None:
                missed.helped[kind] += 1
                if kind not in told:
                    missed.by_kind[kind] += 1
                    missed.where.append(f"{course.number} {name} {helps}")


def _starts(
    course: Course | Mixed, state: dict[str, object], name: Name, parts: tuple[Part, ...], missed: Missed
) -> bool:
    missed.tried += 1
    return not_refused(course.scheduler, parts) and starts_with(course.scheduler, state, name, parts)


def compared(kind: str, numbers: range, most: int) -> Missed:
    """All of these states."""
    missed = Missed()
    for course in states(kind, numbers):
        compare(course, missed, most)
    print(
        f"\n{kind}: {missed.asks} asks, of {missed.complete} everything was tried, and again by {missed.tried} trials; "
        f"helped {dict(missed.helped)}, missed {dict(missed.by_kind)}, no change and no reason {missed.stuck}"
    )
    return missed


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_where_everything_was_tried_nothing_is_missed(kind: str) -> None:
    """On some random states."""
    missed = compared(kind, range(9_000, 9_030), 2)
    assert missed.helped.total() > 5
    assert missed.where == []


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tenth", range(10))
def test_nothing_is_missed_on_many_states(kind: str, tenth: int) -> None:
    """A tenth of 500 random states of each kind."""
    missed = compared(kind, range(9_000 + tenth * 50, 9_050 + tenth * 50), 2)
    assert missed.where == []
