"""Effective priorities, and what is within guarantees, worked out from the queue file in the plainest way."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.core.books.asks import Ask
from fairlead.core.books.queues import Queue

WITHIN_NONE = 1_000
"""As the distance to a guarantee: it is within none."""


def standings(left: Ask, right: Ask) -> tuple[int, int]:
    """Both priorities as seen in the lowest queue that both are in."""

    def way(ask: Ask) -> dict[str, int]:
        seen, found = ask.priority, {}
        for queue in ask.app.queue.lineage:
            found[queue.path] = seen
            rules = queue.properties
            seen = rules.priority_offset if rules.priority_fence else seen + rules.priority_offset
        return found

    mine, theirs = way(left), way(right)
    common = next(path for path in mine if path in theirs)
    return mine[common], theirs[common]


def within_guarantees(ask: Ask, less: Ask | None) -> tuple[int, int]:
    """How far up the nearest guarantee is that `ask` is within, as it is within all on its way to the root: surely, and
    possibly; `WITHIN_NONE` if it is not.

    Some queue guarantees something of what it asks for, and in every one that does less is in use. In between lie idle
    work, which is in some books and counts for no guarantee, and work that is leaving.
    """
    surely = possibly = True
    nearest = WITHIN_NONE
    for distance, queue in enumerate(ask.app.queue.lineage):
        used, leaving = dict(queue.allocated), _leaving(queue)
        if less is not None and queue in counted_in(less):
            add_up(used, less.items, -1)
        for name, amount in ask.items:
            most = (queue.guaranteed or {}).get(name)
            if most is None or not amount:
                continue
            nearest = min(nearest, distance)
            surely &= used.get(name, 0) + amount <= most
            possibly &= used.get(name, 0) + amount - leaving.get(name, 0) <= most
    return (nearest if surely else WITHIN_NONE, nearest if possibly else WITHIN_NONE)


def may_be_owed(ask: Ask) -> bool:
    """Whether guarantees count for the rank, and it may be within one: an allocation, when it was started."""
    less = ask if ask.node is not None else None
    return ask.app.queue.lineage[-1].owes and within_guarantees(ask, less)[1] != WITHIN_NONE


def counted_in(ask: Ask) -> tuple[Queue, ...]:
    """The queues in whose books an allocation is: from its leaf up, idle work from its resource group up."""
    lineage = ask.app.queue.lineage
    if not ask.spec.idle:
        return lineage
    groups = (at for at, queue in enumerate(lineage) if at and queue.properties.resource_group)
    return lineage[next(groups, -1) :]


def _leaving(queue: Queue) -> dict[str, int]:
    """What idle work below a queue has, and what has been told to stop."""
    found: dict[str, int] = {}
    for leaf in queue.walk():
        for app in leaf.applications.values():
            for ask in app.asks.values():
                if ask.node is not None and (ask.spec.idle or ask.evict_cause is not None):
                    add_up(found, ask.items)
    return found


def add_up(book: dict[str, int], items: Iterable[tuple[str, int]], times: int = 1) -> None:
    for name, amount in items:
        book[name] = book.get(name, 0) + times * amount


# -- what is in the way before any node is looked at -----------------------------------------------------------------
