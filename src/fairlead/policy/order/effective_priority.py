"""Standing: what is above what once queues have their say, with their offsets and fences.

Decides whether a waiting ask stands strictly above running (or nominated) work, and how work is ranked against other
work. Never decides what is stopped. Invariant: standing above is a strict order: nothing stands above itself by any
chain of others, so that no two pieces of work can preempt each other in turn.

Priorities are compared in the lowest queue that both are in, after the offsets and fences on both ways there.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.core.books.asks import Ask
from fairlead.core.books.nominations import kept_under
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Book, Items
from fairlead.policy.order.keys import application_key, queue_key

NOTHING: Book = {}
NOBODY = -(2**62)
EVERYBODY = 2**62
Rank = tuple[int, int]


Level = tuple[object, ...]
Path = tuple[Level, ...]
"""The place of an ask: its strength at the root, then from the root down the keys of each queue on its way, as it lets
the queue stand among its siblings, and its key in its leaf. The first part of each is what makes it strong; the others
only decide between equals.
"""
Strength = tuple[int, int]
"""What makes an ask strong, smaller first: how near the guarantee is that it is within (`owed_by`), minus its priority
as seen.
"""
NOT_OWED = 2**30
"""As the distance to a guarantee: it is within none."""


def seen_from(leaf: Queue) -> Iterator[tuple[Queue, int, bool]]:
    """How a priority of a leaf counts in each queue from there to the root, before that queue's own offset: with this
    much added or, where a fence is on the way (True), as this alone.
    """
    offset, fenced = 0, False
    for queue in leaf.lineage:
        yield queue, offset, fenced
        rules = queue.properties
        if rules.priority_fence:
            offset, fenced = rules.priority_offset, True
        else:
            offset += rules.priority_offset


def standing_by_queue(leaf: Queue, priority: int) -> dict[Queue, int]:
    """For each queue from the leaf to the root, the priority as seen there (before that queue's own offset)."""
    if not leaf.lineage[-1].shifts_priority:
        return dict.fromkeys(leaf.lineage, priority)
    return {queue: offset if fenced else priority + offset for queue, offset, fenced in seen_from(leaf)}


def below(seen: dict[Queue, int], leaf: Queue) -> int:
    """Work of `leaf` with a lower priority than this stands below what is seen so, where their queues meet."""
    root = leaf.lineage[-1]
    if not root.shifts_priority:
        return seen[root]
    queue, offset, fenced = next(step for step in seen_from(leaf) if step[0] in seen)
    if fenced:
        return EVERYBODY if seen[queue] > offset else NOBODY
    return seen[queue] - offset


def is_stronger(ask: Ask, other: Ask) -> bool:
    """Whether a waiting ask stands strictly above another one: 1. the nearer guarantee that it is within, 2. the higher
    priority where their queues meet.
    """
    return _stands_above(owed_by(ask.app.queue, ask.items), standing_by_queue(ask.app.queue, ask.priority), other)


def _stands_above(distance: int, seen: dict[Queue, int], other: Ask) -> bool:
    of_other = owed_by(other.app.queue, other.items)
    return distance < of_other if distance != of_other else other.priority < below(seen, other.app.queue)


def weaker_than(partition: Partition, ask: Ask) -> list[Ask]:
    """The nominated asks that do not keep it off: where rank decides, a stronger one may have what is kept for them.
    Idle work takes what is left over alone.
    """
    if not ask.app.queue.by_rank or ask.spec.idle or not partition.nominations:
        return []
    # What stands alike for all others finds the same: often hundreds of asks look, at hundreds of nominations.
    distance, known = owed_by(ask.app.queue, ask.items), partition.nominations.weaker_than(partition.books_version)
    key = (distance, height_of(ask.app.queue, ask.priority))
    if key not in known:
        known[key] = _weaker_than(partition, distance, standing_by_queue(ask.app.queue, ask.priority))
    return known[key]


def _weaker_than(partition: Partition, distance: int, seen: dict[Queue, int]) -> list[Ask]:
    found: list[Ask] = []
    known: dict[tuple[Queue, int, Items], bool] = {}
    for other in partition.nominations:
        # All of one queue, priority and size stand as one of them does: often there are hundreds (a daemon set).
        alike = (other.app.queue, other.priority, other.items)
        if alike not in known:
            known[alike] = _stands_above(distance, seen, other)
        if known[alike]:
            found.append(other)
    return found


def strength(ask: Ask) -> Strength:
    """The strength of a waiting ask against all others, as seen at the root."""
    return (owed_by(ask.app.queue, ask.items), -rank(ask.app.queue, ask.priority)[0])


def path_of(ask: Ask) -> Path:
    """The place of an ask among all."""
    seen = ask.priority
    path: Path = (place_in_leaf(ask),)
    for queue in ask.app.queue.lineage[:-1]:
        seen = queue.adjust(seen)
        path = ((-seen, *queue_key(queue)[1:]), *path)
    return (strength(ask), *path)


def place_in_leaf(ask: Ask) -> Level:
    """The last part of that path."""
    app = ask.app
    # The kept key is brought up to date for what is in line alone, and not there at all after a restart.
    in_line = app.batches and app.backoff_until_ms is None
    return (ask.line_key[0], app.order_key if in_line else application_key(app), ask.line_key)


def is_owed(leaf: Queue, items: Items) -> bool:
    """Whether an ask of this leaf for this amount is within the guarantees on its way to the root."""
    return owed_by(leaf, items) != NOT_OWED


def owed_by(leaf: Queue, items: Items, beside: Partition | None = None, but: tuple[Ask, ...] = ()) -> int:
    """How many queues lie between an ask and the nearest guarantee that it is within (0: its leaf has that); `NOT_OWED`
    where it is not within all guarantees on its way to the root: there is one for something of it, and each has room
    for the whole of it beside what runs there, idle work apart. What two queues have in common is no reason for either:
    of two in a guaranteed queue that which is guaranteed something itself is owed more.

    A small ask may be so where a bigger and stronger one of its own leaf is not, and starts first; `started_owed`
    keeps it from being stopped for that one. What is kept for others is counted only with `beside` (of all but those):
    the order of asks stays as it is while room is given to one or taken from another, else three asks could take room
    from each other in a circle.
    """
    nearest = NOT_OWED
    for distance, queue in enumerate(leaf.lineage if leaf.lineage[-1].owes else ()):
        guaranteed = queue.guaranteed
        if guaranteed is None:
            continue
        kept = kept_under(beside, queue, but) if beside is not None else NOTHING
        for name, amount in items:
            if amount > 0 and name in guaranteed:
                nearest = min(nearest, distance)
                used = queue.allocated.get(name, 0) - queue.preempting.get(name, 0) - queue.idle.get(name, 0)
                if used + kept.get(name, 0) + amount > guaranteed[name]:
                    return NOT_OWED
    return nearest


def rank(leaf: Queue, priority: int) -> Rank:
    """The place of work among all work: 1. its priority as seen at the root, 2. its own."""
    if not leaf.lineage[-1].shifts_priority:
        return priority, priority
    *_, (_, offset, fenced) = seen_from(leaf)
    return (offset if fenced else priority + offset), priority


def height_of(leaf: Queue, priority: int) -> object:
    """What is equally high stands above, and below, the same: without a fence on the way up all that counts is how high
    it is as seen at the root.
    """
    if any(queue.properties.priority_fence for queue in leaf.lineage):
        return leaf, priority
    return rank(leaf, priority)[0]


class Reach:
    """How far an ask reaches: what it may stop at all, guarantees of others apart (`protection.within_guarantees`)."""

    __slots__ = ("_below", "_owed", "fence", "key", "seen")

    def __init__(self, partition: Partition, ask: Ask) -> None:
        leaf = ask.app.queue
        self.seen = standing_by_queue(leaf, ask.priority)
        self.fence = search_root(leaf)
        self._below: dict[Queue, int] = {}
        self._owed = leaf.lineage[owed_by(leaf, ask.items, partition, (ask,)) + 1 :]
        """Queues in which it takes back what others have above their guarantee, whatever their priority: those above
        the first that guarantees something of what it asks for.
        """
        owed = (leaf, ask.priority, len(self._owed))
        self.key: object = owed if self._owed else (self.fence, height_of(leaf, ask.priority))
        """Asks for which it is the same reach equally far."""

    def below(self, leaf: Queue) -> int:
        """Work of `leaf` of a lower priority than this may be stopped; `NOBODY` where none may."""
        found = self._below.get(leaf)
        if found is None:
            if leaf.properties.preemption_policy == "disabled" or self.fence not in leaf.lineage:
                found = NOBODY
            elif self._owed and next(queue for queue in leaf.lineage if queue in self.seen) in self._owed:
                found = EVERYBODY
            else:
                found = below(self.seen, leaf)
            self._below[leaf] = found
        return found


def search_root(leaf: Queue) -> Queue:
    """The highest queue below which victims may be taken: the first with `preemption.policy: fence`, else the root."""
    return next(q for q in leaf.lineage if q.parent is None or q.properties.preemption_policy == "fence")
