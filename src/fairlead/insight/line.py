"""The line: all that waits for room, in the order in which it is looked at, and where its priority comes from.

Decides nothing: the orders are those of `policy.order`. Never changes anything, and reads what the scheduler keeps
sorted no further than it was asked for: the front of a long line costs no more than that of a short one. Only what is
in no kept order is sorted anew: what has to rest, and what changed since the last run. Invariant: within a leaf, and
between leaves, the first of the line is what the scheduler would look at first if everything fitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from heapq import heappop, heappush, heapreplace, merge, nsmallest
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from fairlead.core.books.idle_work import idle_key
from fairlead.core.model.resources import add_to
from fairlead.policy.order.effective_priority import is_owed, owed_by, path_of, place_in_leaf, rank
from fairlead.policy.order.keys import application_key, ask_key, queue_key
from fairlead.wire.pages import Step

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.demand import Demand
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.resources import Book, Items

Key = tuple[object, ...]
Keyed = tuple[Key, "Ask"]
"""An ask with its key among those of its leaf; no two have the same."""


def in_line(partition: Partition, most: int) -> list[Ask]:
    """The first asks of the line, at most so many: idle work is looked at when nothing else could be placed."""
    beside: dict[Queue, list[Ask]] = {}
    for ask in _kept_for(partition):
        beside.setdefault(ask.app.queue, []).append(ask)
    leaves = (_of_leaf(leaf, beside.get(leaf, ()), most) for leaf in partition.root.walk() if leaf.is_leaf)
    idle = merge(*partition.idle.lines.values(), key=idle_key)
    return list(islice(chain(merge(*leaves, key=_place), idle), most))


def waiting(partition: Partition) -> int:
    """How many asks are in line."""
    return sum(shape.pending for shape in partition.shapes.values())


def pending(partition: Partition) -> dict[Queue, tuple[Book, int]]:
    """Of each queue, parents first, what waits in it and below, and how many asks that are.

    What is alike is added up at once, and each application is looked at once at most, however deep its queue is.
    """
    beside: dict[Queue, Counter[Items]] = {}
    for ask in _beside_batches(partition):
        beside.setdefault(ask.app.queue, Counter())[ask.items] += 1
    found: dict[Queue, tuple[Book, int]] = {}
    for queue in reversed(list(partition.root.walk())):  # Those below before those above.
        alike = beside.get(queue, Counter())
        for shape, demands in queue.demands.items():
            alike[shape.items] += sum(demand.asks for demand in demands.values())
        book: Book = {}
        for items, count in alike.items():
            add_to(book, tuple((name, amount * count) for name, amount in items))
        below = [found[child] for child in queue.children.values()]
        for theirs, _ in below:
            add_to(book, tuple(theirs.items()))
        found[queue] = book, alike.total() + sum(count for _, count in below)
    return dict(reversed(found.items()))


def _beside_batches(partition: Partition) -> Iterator[Ask]:
    """What waits and is not with what is like it: room is kept for it, or it is idle work."""
    yield from _kept_for(partition)
    for asks in partition.idle.lines.values():
        yield from asks


def _kept_for(partition: Partition) -> Iterator[Ask]:
    return (ask for ask in partition.nominations if ask.batch is None)


# -- in order -------------------------------------------------------------------------------------------------------


def before(ask: Ask) -> list[Ask]:
    """What waits in the queue of a waiting ask and comes before it, in order."""
    mine, found = _key_among_all(ask), []
    for app in ask.app.queue.applications.values():
        if app.pending_count:
            others = (other for other in app.asks.values() if other.pending)
            found += [(key, other) for other in others if (key := _key_among_all(other)) < mine]
    found.sort(key=lambda row: row[0])
    return [other for _, other in found]


def _of_leaf(leaf: Queue, beside: Iterable[Ask], most: int) -> Iterator[Ask]:
    """What waits in a leaf, in order; of what is in no kept order at most so many."""
    demands, apps = leaf.every_demand(), leaf.applications.values()
    is_kept = not leaf.changed_apps and all(demand.live == demand.pending for demand in demands)
    loose = frozenset(() if is_kept else (app for app in apps if app.touched or app.out_of_line))
    better = (batch for demand in leaf.improved for batch in demand.improved if batch.app not in loose)
    apart = chain((batch for app in loose for batch in app.batches.values()), better)
    others = ((_key(ask), ask) for ask in chain(beside, *(batch.asks[:most] for batch in apart)))
    for _, ask in merge(*(_of_demand(demand, loose) for demand in demands), nsmallest(most, others)):
        yield ask


def _of_demand(demand: Demand, loose: Collection[Application]) -> Iterator[Keyed]:
    """What is in line with a demand, in order, but for what is in the wrong place there."""
    leaf = demand.leaf
    near: list[tuple[Key, Ask, Iterator[Ask]]] = []
    first = (owed_by(leaf, demand.shape.items),) if leaf.by_rank else ()
    for key, _, batch in demand.entries():
        # It may come later than its entry says, not earlier: what comes before that is next.
        while near and near[0][0] < (*first, *key):
            yield _next(near)
        if batch.app not in loose and batch not in demand.improved:
            asks = iter(batch.asks)
            head = next(asks)
            heappush(near, (_key(head), head, asks))
    while near:
        yield _next(near)


def _next(near: list[tuple[Key, Ask, Iterator[Ask]]]) -> Keyed:
    """Take the first; of its batch the next one takes its place."""
    key, ask, others = near[0]
    following = next(others, None)
    if following is None:
        heappop(near)
    else:
        heapreplace(near, (_key(following), following, others))
    return key, ask


def _key_among_all(ask: Ask) -> Key:
    """Its place in its leaf: idle work comes after all else, whatever its priority."""
    return (True, *idle_key(ask)) if ask.spec.idle else (False, *_key(ask))


def _key(ask: Ask) -> Key:
    """Its place in its leaf but for idle work. By rank what is owed is before what is not, as in `path_of`."""
    leaf = ask.app.queue
    if leaf.by_rank:
        return (owed_by(leaf, ask.items), *place_in_leaf(ask))
    return ask_key(ask, _application_key(ask.app))


def _application_key(app: Application) -> Key:
    return application_key(app) if app.touched or not app.order_key else app.order_key


def _place(ask: Ask) -> Any:
    """By rank: as its turn comes. Otherwise: as the walk from the root comes to it, level by level."""
    leaf = ask.app.queue
    if leaf.by_rank:
        return path_of(ask)
    return (*(queue_key(queue) for queue in reversed(leaf.lineage[:-1])), _key(ask))


# -- one of them ----------------------------------------------------------------------------------------------------


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
