"""Work that is put on hold and released, for the comparison of two simulators: drawn, and in our words."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from reference.plain_line import Job
from reference.plain_simulator import Order

from fairlead.core.model.conditions import MET, Conditions
from fairlead.core.model.events import SetConditions

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition


def holds(chance: random.Random, jobs: Iterable[Job]) -> Iterator[Order]:
    """Some jobs are put on hold, and released later."""
    for job in jobs:
        if not job.gang and chance.random() < 0.4:
            at_ms = job.at_ms + 500 + 1000 * chance.choice([0, 1, 5, 20])
            yield Order(at_ms, job=job.name, is_hold=True)
            yield Order(at_ms + 1000 * chance.choice([1, 5, 20, 90]), job=job.name, is_hold=False)


def held_or_released(partition: Partition, order: Order) -> list[SetConditions]:
    """What waits of it is put on hold, or what is on hold waits again."""
    if not order.is_hold:
        on_hold = [held for held in partition.held_asks.of(order.job) if held.conditions.held_by]
        return [SetConditions(order.job, held.spec.key, MET) for held in on_hold]
    job = partition.applications.get(order.job)
    waiting = [key for key, ask in job.asks.items() if ask.pending] if job is not None else []
    return [SetConditions(order.job, key, Conditions(held_by="ann")) for key in waiting]
