"""Whatever starts does so within every maximum and limit above it, and on a node that has room."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.core.books.idle_work import payer
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import Allocated, Decision


def check_bounds(partition: Partition, decided: Iterable[Decision]) -> None:
    """After a scheduling call, which makes no room: what it started left no queue, limit or node above its bound.
    Work that takes the place of its placeholder uses no more than that did.
    """
    for started in decided:
        if not isinstance(started, Allocated):
            continue
        ask = partition.find_ask(started.application, started.key)
        if ask is None or ask.node is None or ask.stood_in_ms is not None:
            continue
        for place in (*payer(ask).lineage, *ask.app.ceilings):
            for name, amount in ask.items:
                most = (place.max or {}).get(name)
                used = place.allocated.get(name, 0)
                assert not amount or most is None or used <= most, f"{ask} is above {place}: {name} {used} of {most}"
        for name, amount in ask.items:
            used, total = ask.node.allocated.get(name, 0), ask.node.total.get(name, 0)
            assert not amount or used <= total, f"{ask} is more than its node has: {name} {used} of {total}"
