"""Idle work: asks that run on what others leave over, who waits and who runs, and whose books they count in.

Decides in which queue's books an idle allocation counts: in those of its resource group and above, never in those of
the queues below, so that it takes nothing from any other quota. Never places or stops anything. Invariant: every idle
ask of a live application that waits is in `lines`, every one that has a node is in `running`.

The resource group of a leaf is the nearest queue above it with the property `resource.group: "true"`, else the root.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from operator import attrgetter
from typing import TYPE_CHECKING

from fairlead.core.books.asks import counts_as_gone
from fairlead.core.model.resources import add_to, fits_in, negative

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Node, Queue, Shape
    from fairlead.core.model.resources import Book, Items

IdleKey = tuple[bool, int, int, int]
"""Order of idle asks in their whole resource group; see `idle_key`."""


def idle_key(ask: Ask) -> IdleKey:
    """Order of idle asks: 1. retried first, 2. higher priority, 3. created earlier, 4. arrived earlier."""
    return (not ask.spec.retried, -ask.priority, ask.created_ms, ask.seq)


class IdleWork:
    """The idle asks of one partition."""

    def __init__(self) -> None:
        self.lines: dict[tuple[Queue, Shape], list[Ask]] = {}
        """What waits, by leaf and shape, in order: one look for a node serves all of a line."""
        self.running: dict[Ask, None] = {}
        """What runs, in no order that counts."""
        self._rooms: list[Book] = []
        """What each node with some of that, not set aside, would have free without it, at a version of the books."""
        self._rooms_version = -1
        self._fits: dict[Items, bool] = {}
        """By amount whether one of these has room for it."""

    def join(self, ask: Ask) -> None:
        """An idle ask waits from now on."""
        assert ask.shape is not None
        insort(self.lines.setdefault((ask.app.queue, ask.shape), []), ask, key=idle_key)

    def leave(self, ask: Ask) -> None:
        """It waits no longer (or is about to change its place)."""
        assert ask.shape is not None
        key = (ask.app.queue, ask.shape)
        asks = self.lines[key]
        del asks[bisect_left(asks, idle_key(ask), key=idle_key)]
        if not asks:
            del self.lines[key]

    def by_arrival(self) -> list[Ask]:
        """What runs, the oldest ask first: also after a restart."""
        return sorted(self.running, key=attrgetter("seq"))

    def may_make_room(self, items: Items, version: int) -> bool:
        """Whether some node that is not set aside would have room for this much if all idle work there were gone;
        `version`: of the books.
        """
        if self._rooms_version != version:
            rooms: dict[Node, Book] = {}
            for ask in self.running:
                if (node := ask.node) is not None and not node.reservations:
                    add_to(rooms.setdefault(node, dict(node.free)), ask.items)
            self._rooms, self._rooms_version, self._fits = list(rooms.values()), version, {}
        found = self._fits.get(items)
        if found is None:
            found = self._fits[items] = any(fits_in(items, room) for room in self._rooms)
        return found

    def count(self, sign: int) -> None:
        """The queue file is about to change, and with it, maybe, which queue is a resource group: all that runs leaves
        the books of the queues (-1); or it has changed: all counts where it belongs by now (1).
        """
        for ask in self.running:
            queue = payer(ask)
            for above in queue.lineage:
                add_to(above.allocated, ask.items if sign > 0 else negative(ask.items))
            count_use(ask, sign)

    def use_by_queue(self) -> dict[str, Book]:
        """What runs in each queue below its resource group, by path: it is in no book of these queues."""
        use: dict[str, Book] = {}
        for ask in self.running:
            lineage = ask.app.queue.lineage
            for queue in lineage[: lineage.index(payer(ask))]:
                add_to(use.setdefault(queue.path, {}), ask.items)
        return use


def group_of(leaf: Queue) -> Queue:
    """The resource group that idle work of this leaf borrows in."""
    for queue in leaf.lineage[1:]:
        if queue.properties.resource_group:
            return queue
    return leaf.lineage[-1]


def payer(ask: Ask) -> Queue:
    """The lowest queue in whose books an allocation counts: its leaf, or its resource group when it is idle."""
    return group_of(ask.app.queue) if ask.spec.idle else ask.app.queue


def start(ask: Ask) -> None:
    """A waiting idle ask becomes one in use, in the books of the queues."""
    ask.app.queue.add_pending(ask.items, -1)
    payer(ask).add_allocated(ask.items)
    count_use(ask, 1)


def count_use(ask: Ask, sign: int) -> None:
    """Of work in use that enters the books of queues (-1: leaves them): what part of theirs it is, where it counts.
    Before that changes it is taken out, and put in again afterwards.
    """
    is_leaving = counts_as_gone(ask)
    if is_leaving or ask.spec.idle:
        payer(ask).add_part(ask.items, sign, is_leaving)
