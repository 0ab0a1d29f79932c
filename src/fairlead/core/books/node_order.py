"""The order of nodes: kept by (score, id), and for amounts that are asked for again and again also by what has room.

Decides only which node comes first; a node knows its score, `core.books.nodes` what may run there. Never
changes a node's books. Invariant: the answer is that of walking all common nodes by (score, id).

One heap has all common nodes and answers while its first ones have room. Where those are full (as they are when the
fullest come first), all nodes are searched at once in columns; an amount for which that happens often gets an order of
its own, which a node without room for it leaves until it changes. Such an order reads in a log what changed since it
was last asked, so that one that nobody asks costs nothing; and the cost of a search does not grow with the number of
nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from fairlead.core.model.resources import Items, fits_in

if TYPE_CHECKING:
    from fairlead.core.books.node import Node
    from fairlead.core.books.node_columns import Columns

TOPS_TRIED = 4
"""How many of the best nodes are tried one by one before all are searched at once."""
FEW_NODES = 12
"""Up to this many nodes the order of all is simply walked to its end."""
SEARCHES = 8
"""After so many searches of all nodes an amount gets an order of its own."""
ROW_COST = 4
"""Writing a row of the columns anew costs as much as passing over so many nodes in a heap."""
ORDERS_KEPT = 32
"""So many amounts are remembered: each order reads every change, so that many more would cost more than searching."""
TRIES = 16
"""After so many full nodes, and a quarter of the heap, all of those in the heap are taken out at once."""
NODES_TO_READ = 32
"""Reading one change costs as much as searching so many more nodes at once."""
WORTH_KEEPING = 8
"""An order that is there is kept until reading what changed would cost as much as so many searches of all nodes."""
SPARE = 64
"""The log is cut when it has twice as many entries as there are nodes and this many more; heaps, four times."""

Entry = tuple[float, str, int, "Node"]
"""Score, id and stamp of a node, and the node; it counts as long as the stamp is the node's."""


@dataclass(slots=True, eq=False)
class RoomOrder:
    """The common nodes in order, but for those that were found without room for one amount and did not change since."""

    items: Items
    searches: int
    """So often were all nodes searched for it, each time soon after the last."""
    read: int
    """How much of the log."""
    heap: list[Entry] = field(default_factory=list)
    is_kept: bool = False
    """The heap is true up to where the log was read."""


class NodeOrder:
    """The common nodes of one table in order, and the orders for single amounts."""

    __slots__ = ("_columns", "_heap", "_log", "_nodes", "_rooms", "_stamp", "changed")

    def __init__(self, nodes: dict[str, Node], columns: Columns) -> None:
        self.changed: dict[Node, None] = {}
        """Nodes whose score, room or openness changed since they were put in their place."""
        self._nodes = nodes
        self._columns = columns
        self._heap: list[Entry] = []
        self._stamp = 0
        self._rooms: dict[Items, RoomOrder] = {}
        self._log: list[Entry] = []
        """What was entered since the last cut, as long as there are orders that read it."""

    def _enter(self) -> None:
        """Each common node that changed stands where it belongs now, and nowhere else."""
        heap, changed = self._heap, self.changed
        are_many, has_grown = len(changed) > len(heap), False
        while changed:
            node, _ = changed.popitem()
            if not node.schedulable or node.reservations or node.keeps_away:
                node.stamp = 0
                continue
            self._stamp += 1
            node.stamp = self._stamp
            entry = (node.score(), node.id, node.stamp, node)
            if self._rooms:
                self._log.append(entry)
            if are_many:
                heap.append(entry)
            elif heap and heap[0][3] is node:
                heapreplace(heap, entry)
            else:
                heappush(heap, entry)
                has_grown = True
        if are_many or (has_grown and len(heap) > 4 * len(self._nodes) + SPARE):
            _tidy(heap)
        if self._log and len(self._log) > 2 * len(self._nodes) + SPARE:
            self._cut_log()

    def first_fit(self, items: Items) -> Node | None:
        """The first common node with room for the amount."""
        if self.changed:
            self._enter()
        heap = self._heap
        aside: list[Entry] = []
        own: RoomOrder | None = None
        tries = 0
        found: Node | None = None
        while heap:
            entry = heap[0]
            node = entry[3]
            if node.stamp != entry[2]:
                heappop(heap)
                continue
            free = node.free
            for name, amount in items:
                if amount > free.get(name, 0):
                    break
            else:
                found = node
                break
            if not aside:
                own = self._rooms.get(items) if self._rooms else None
                tries = TOPS_TRIED if len(self._nodes) > FEW_NODES else FEW_NODES + 1
            if own is not None and own.is_kept:
                if not self._is_behind(own, WORTH_KEEPING):
                    return self._first_of(own)
                own.heap.clear()
                own.is_kept, own.searches = False, 0
            aside.append(heappop(heap))
            if len(aside) >= tries:
                found = self._search(items)
                break
        for entry in aside:
            heappush(heap, entry)
        return found

    def _search(self, items: Items) -> Node | None:
        """First fit over all columns at once; the order of the amount when that is asked often, or would cost more."""
        own = self._rooms.get(items)
        if own is None:
            own = self._follow(items)
        elif self._is_behind(own, 1):
            own.searches = 0
        if own is None or own.searches < SEARCHES:
            if own is not None:
                own.searches, own.read = own.searches + 1, len(self._log)
            columns = self._columns
            columns.sync()
            return columns.first(columns.has_room(columns.common, items))
        # The nodes just tried are not in the heap, and have no room either.
        own.heap = self._heap.copy()
        own.is_kept, own.read = True, len(self._log)
        return self._first_of(own)

    def _follow(self, items: Items) -> RoomOrder | None:
        """Count how often this amount is asked for; None while so many others are asked for all the time."""
        is_dear = self._columns.behind() * ROW_COST > len(self._nodes)
        if len(self._rooms) >= ORDERS_KEPT:
            other = self._rooms.pop(next(iter(self._rooms)))
            if not self._is_behind(other, WORTH_KEEPING if other.is_kept else 1):
                self._rooms[other.items] = other  # The next time another one is looked at.
                return None
            is_dear = False
        own = self._rooms[items] = RoomOrder(items, SEARCHES if is_dear else 0, len(self._log))
        return own

    def _is_behind(self, order: RoomOrder, times: int) -> bool:
        """Whether so much changed since it was last asked that reading that costs more than so many searches of all."""
        return (len(self._log) - order.read - times * SPARE) * NODES_TO_READ > times * len(self._nodes)

    def _first_of(self, order: RoomOrder) -> Node | None:
        """The first node that has room for the amount of the order."""
        if order.read < len(self._log):
            self._read_on(order)
        heap, items = order.heap, order.items
        tries = TRIES + len(heap) // 4
        while heap:
            entry = heap[0]
            node = entry[3]
            if node.stamp == entry[2] and fits_in(items, node.free):
                return node
            tries -= 1
            if tries:
                heappop(heap)
            else:
                heap[:] = [e for e in heap if e[3].stamp == e[2] and fits_in(items, e[3].free)]
                heapify(heap)
        return None

    def _read_on(self, order: RoomOrder) -> None:
        log, heap = self._log, order.heap
        for at in range(order.read, len(log)):
            entry = log[at]
            node = entry[3]
            # Of a node that changed often only the last entry counts.
            if node.stamp != entry[2] or not fits_in(order.items, node.free):
                continue
            if heap and heap[0][3] is node:
                heapreplace(heap, entry)
            else:
                heappush(heap, entry)
        order.read = len(log)
        if len(heap) > 4 * len(self._nodes) + SPARE:
            _tidy(heap)

    def _cut_log(self) -> None:
        """Orders that somebody asked lately read it to its end; the others are forgotten."""
        for order in list(self._rooms.values()):
            if self._is_behind(order, WORTH_KEEPING):
                del self._rooms[order.items]
            elif order.is_kept:
                self._read_on(order)
            order.read = 0
        self._log.clear()


def _tidy(heap: list[Entry]) -> None:
    """Take out the entries that do not count."""
    heap[:] = [entry for entry in heap if entry[3].stamp == entry[2]]
    heapify(heap)
