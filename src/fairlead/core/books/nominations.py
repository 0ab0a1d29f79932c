"""Nominations: what is kept for asks that do not run yet, because work was stopped for them or they waited too long.

Decides what a nomination keeps until its ask runs: room on one node, room under every maximum and limit above, a place
for its application among those that may run, and what it needs of the node beside room (`core.books.kept_constraints`).
Never decides which ask gets one. Invariant: every nominated ask waits, and all that is kept is the sum of what
nominations keep; this is the only book of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.books.application_limits import give_place_back, keep_place
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.model.resources import add_to, lacks, take_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.books import Ceiling, Partition, Queue
    from fairlead.core.model.resources import Book, Items


@dataclass(slots=True, eq=False)
class Nomination:
    """What is kept for one ask."""

    ask: Ask
    node: Node
    """Where room is kept for it."""
    victims: tuple[Ask, ...]
    """What was told to stop so that it can run."""
    gathers: bool
    """Room gathers there because it waited too long (`wait.max`): room is all that is kept of the node."""
    places: tuple[Queue | Ceiling, ...] = ()
    """The queues, and the limits, under which room and a place to run are kept for it."""

    @property
    def is_coming(self) -> bool:
        """Whether something that was told to stop for it is still there."""
        return any(victim.evict_cause is not None for victim in self.victims)

    @property
    def is_stuck(self) -> bool:
        """Whether something that was told to stop for it should have left."""
        return any(victim.overdue for victim in self.victims)


class Nominations:
    """The nominations of one partition, in the order in which they were made."""

    def __init__(self) -> None:
        self.of: dict[Ask, Nomination] = {}
        self.kept: dict[Queue | Ceiling, Book] = {}
        """Room under maxima and limits that nominated asks will need: the sum over `of`. For the root: `kept_under`."""
        self._weaker: dict[object, list[Ask]] = {}
        self._weaker_at = -1

    def __bool__(self) -> bool:
        return bool(self.of)

    def __iter__(self) -> Iterator[Ask]:
        """The nominated asks, in order."""
        return iter(self.of)

    def weaker_than(self, version: int) -> dict[object, list[Ask]]:
        """Those below something, by how high that stands, as far as it was asked at this version of the books."""
        if version != self._weaker_at:
            self._weaker_at, self._weaker = version, {}
        return self._weaker

    def keep_room(self, nomination: Nomination) -> None:
        """Keep room for it where its application is now."""
        ask = nomination.ask
        nomination.places = (*ask.app.queue.lineage, *ask.app.ceilings)
        for place in nomination.places:
            add_to(self.kept.setdefault(place, {}), ask.items)
        keep_place(ask.app, nomination.places)

    def give_room_back(self, nomination: Nomination) -> None:
        """Keep it no longer: what waits for that room is looked at again."""
        ask = nomination.ask
        for place in nomination.places:
            book = self.kept[place]
            take_from(book, ask.items)
            if not any(book.values()):
                del self.kept[place]
            place.wake_waiting()
        give_place_back(ask.app, nomination.places)

    def keep_anew(self) -> None:
        """The configuration changed: the same asks keep room where they are under now."""
        for nomination in self.of.values():
            give_place_back(nomination.ask.app, nomination.places)
        self.kept.clear()
        for nomination in self.of.values():
            self.keep_room(nomination)


def kept_under(partition: Partition, place: Queue | Ceiling, but: tuple[Ask, ...] = ()) -> Book:
    """What nominated asks under this queue or limit will need, but for some."""
    if place is partition.root:
        book: Book = {}
        for ask in kept_of_nodes(partition):
            if ask not in but:
                add_to(book, ask.items)
        return book
    kept = partition.nominations.kept.get(place)
    if kept is None:
        return {}
    for ask in but:
        if ask.nomination is not None and place in ask.nomination.places:
            kept = dict(kept)
            take_from(kept, ask.items)
    return kept


def kept_of_nodes(partition: Partition) -> list[Ask]:
    """The nominated asks that need something of all nodes together. As long as no node uses more than it has, the
    single nodes say enough; what one uses beyond is missing in the sum. Room that only gathers is promised to none.
    """
    if not is_overdrawn(partition):
        return []
    return [ask for ask, nomination in partition.nominations.of.items() if not nomination.gathers]


def is_overdrawn(partition: Partition) -> bool:
    """Whether more runs on some node than it has: work was reported or grew there, or the node shrank."""
    suspects = partition.nodes.suspects
    for node in list(suspects):
        if any(amount > node.total.get(name, 0) for name, amount in node.allocated.items()):
            return True
        del suspects[node]
    return False


def queue_short_of_kept(partition: Partition, leaf: Queue, items: Items, but: tuple[Ask, ...] = ()) -> Queue | None:
    """The first queue from `leaf` up that has no room for this amount beside what is kept there for nominated asks.

    What was told to stop for them counts as gone already: its room under the maximum is kept for them too. What is kept
    for `but` does not count: the ask itself may be one of them.
    """
    for queue in leaf.lineage if partition.nominations.of else ():
        if queue.max is None or not (book := kept_under(partition, queue, but)):
            continue
        for name, amount in items:
            used = queue.allocated.get(name, 0) - queue.preempting.get(name, 0) + book.get(name, 0)
            if name in queue.max and amount > 0 and used + amount > queue.max[name]:
                return queue
    return None


def gets_room_above(partition: Partition, ask: Ask) -> bool:
    """Whether a queue above, or all nodes together, lack room for it yet, and work that was told to stop leaves some.

    What some node uses beyond what it has is missing in the sum of all: that can be full with room on a node.
    """
    full = ask.app.queue.short_of_room(ask.items)
    if full is None and not partition.nodes.sum_has_room(ask.items):
        full = partition.root
    return full is not None and any(full.preempting.get(name, 0) for name, _ in ask.items)


def something_leaves(partition: Partition, ask: Ask) -> bool:
    """Whether what it waits for is still to come: work that was told to stop, on its node or in its full queue."""
    return (ask.nomination is not None and ask.nomination.is_coming) or gets_room_above(partition, ask)


def limit_short_of_kept(partition: Partition, ask: Ask, but: tuple[Ask, ...] = ()) -> Ceiling | None:
    """The first limit of its user or group without room for this ask beside other asks that are nominated, but some."""
    for ceiling in ask.app.ceilings if partition.nominations.of else ():
        if ceiling.max is not None and (book := dict(kept_under(partition, ceiling, (ask, *but)))):
            add_to(book, tuple(ceiling.allocated.items()))
            if lacks(ceiling.max, book, ask.items):
                return ceiling
    return None
