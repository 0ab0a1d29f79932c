"""The line: all that waits for room, in the order in which it is looked at, and where its priority comes from.

Decides nothing: the orders are those of `policy.order`. Never changes anything, so it sorts anew what the scheduler
keeps sorted; of a leaf it takes no more than was asked for. Invariant: within a leaf, and between leaves, the first of
the line is what the scheduler would look at first if everything fitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING, Any

from fairlead.core.model.resources import add_to
from fairlead.policy.order.effective_priority import is_owed, path_of, rank
from fairlead.policy.order.keys import application_key, ask_key, queue_key
from fairlead.wire.pages import Step

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask, Batch
    from fairlead.core.books.demand import Shape
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.resources import Book, Items

Key = tuple[object, ...]


def in_line(partition: Partition, most: int) -> list[Ask]:
    """The first asks of the line, at most so many."""
    found = [ask for leaf in partition.root.walk() if leaf.is_leaf for ask in _first_of(leaf, most)]
    return nsmallest(most, found, _place)


def waiting(partition: Partition) -> int:
    """How many asks are in line."""
    return sum(app.pending_count for app in partition.applications.values())


def pending(root: Queue) -> dict[Queue, tuple[Book, int]]:
    """Of each queue, parents first, what waits in it and below, and how many asks that are.

    What is alike is added up at once, and each application is looked at once, however deep its queue is.
    """
    found: dict[Queue, tuple[Book, int]] = {}
    for queue in reversed(list(root.walk())):  # Those below before those above.
        alike: dict[Shape, int] = {}
        shapes: Counter[Items] = Counter()
        for app in queue.applications.values():
            if app.pending_count:
                for batch in app.batches.values():
                    shape = batch.demand.shape
                    alike[shape] = alike.get(shape, 0) + len(batch)
        shapes.update(ask.items for ask in _beside_batches(queue))
        for shape, count in alike.items():
            shapes[shape.items] += count
        book: Book = {}
        for items, count in shapes.items():
            add_to(book, tuple((name, amount * count) for name, amount in items))
        below = [found[child] for child in queue.children.values()]
        for theirs, _ in below:
            add_to(book, tuple(theirs.items()))
        found[queue] = book, shapes.total() + sum(count for _, count in below)
    return dict(reversed(found.items()))


def _first_of(leaf: Queue, most: int) -> list[Ask]:
    """The first asks of a leaf, in order, at most so many."""
    others = ((ask_key(ask, _application_key(ask.app)), ask) for ask in _beside_batches(leaf))
    # Of those that are alike only the first can be the first.
    found = [
        (ask_key(ask, _application_key(batch.app)), ask)
        for _, batch in nsmallest(most, _batches(leaf))
        for ask in batch.asks[:most]
    ]
    return [ask for _, ask in nsmallest(most, chain(found, others))]


def _batches(leaf: Queue) -> Iterator[tuple[Key, Batch]]:
    """What waits in a leaf, what is alike together, each with the key of its first; no two have the same."""
    by_rank = leaf.by_rank
    for app in leaf.applications.values():
        if app.pending_count:
            key = _application_key(app)
            for batch in app.batches.values():
                first = batch.line_key
                yield ((first[0], key, first) if by_rank else (key, first)), batch


def _beside_batches(leaf: Queue) -> Iterator[Ask]:
    """What waits and is not with what is like it: room is kept for it, or it may run on one node only."""
    for app in leaf.applications.values():
        waiting = app.pending_count
        if waiting != len(app.batches) and waiting != sum(map(len, app.batches.values())):
            yield from (ask for ask in app.asks.values() if ask.pending and ask.batch is None)


def _application_key(app: Application) -> tuple[object, ...]:
    return application_key(app) if app.touched or not app.order_key else app.order_key


def _place(ask: Ask) -> Any:
    """By rank: as its turn comes. Otherwise: as the walk from the root comes to it, level by level."""
    leaf = ask.app.queue
    if leaf.by_rank:
        return path_of(ask)
    return (*(queue_key(queue) for queue in reversed(leaf.lineage[:-1])), ask_key(ask, _application_key(ask.app)))


def kept(partition: Partition) -> Iterator[tuple[Ask, Node]]:
    """What waits and has room kept for it, with the node: by a nomination, or because the whole node is set aside."""
    for ask, nomination in partition.nominations.of.items():
        yield ask, nomination.node
    for node in partition.nodes.nodes.values():
        for ask in node.reservations:
            yield ask, node


def leaving(ask: Ask) -> int:
    """How many that were told to stop for it are still there."""
    return sum(victim.evict_cause is not None for victim in ask.victims)


def steps(ask: Ask) -> list[Step]:
    """What each queue from the leaf up to below the root makes of its priority."""
    found, seen = [], ask.priority
    for queue in ask.app.queue.lineage[:-1]:
        rules = queue.properties
        seen = queue.adjust(seen)
        found.append(Step(queue.path, rules.priority_offset, rules.priority_fence, seen))
    return found


def effective(ask: Ask) -> int:
    """Its priority as seen at the root."""
    return rank(ask.app.queue, ask.priority)[0]


def owed(ask: Ask) -> bool:
    """Whether it goes before others because of a guarantee."""
    return ask.app.queue.by_rank and is_owed(ask.app.queue, ask.items)
