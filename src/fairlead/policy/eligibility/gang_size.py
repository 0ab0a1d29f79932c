"""Gang size: whether a gang could ever be whole.

Decides that nothing is stopped for placeholders whose gang is larger than all nodes together, a queue above it, or the
limit of its user or group: it would be stopped for nothing. Never keeps them from room that is free: nodes may come.
Invariant: it depends on capacity, maxima and limits alone, and each of them wakes what waits when it is raised.
"""

from __future__ import annotations

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import Book, lacks


def is_of_gang_too_large(partition: Partition, ask: Ask) -> bool:
    """Whether it is a placeholder of a gang that cannot be whole as things are, whatever ends."""
    app = ask.app
    if not ask.spec.placeholder or app.state is not State.ACCEPTED:
        return False
    places = (*app.queue.lineage, *app.ceilings)
    whole = app.spec.placeholder_ask.items
    return bool(beyond_all_nodes(partition, app)) or any(lacks(place.max, {}, whole) for place in places)


def beyond_all_nodes(partition: Partition, app: Application) -> Book:
    """What a gang needs of that of which all nodes together have less; nothing where it is none."""
    total = partition.nodes.total
    return {name: amount for name, amount in app.spec.placeholder_ask.items if amount > total.get(name, 0)}
