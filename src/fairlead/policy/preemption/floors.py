"""Floors: which waiting asks need no search, since nothing that stands below them could make room for them.

Decides from standing, guarantees and room on nodes; what else protects work would only leave less. Never chooses nodes
or victims (`plan`). Invariant: a search for an ask that is at or below a floor would find no plan; one for an ask above
may find none either.

There are four. What a leaf stands above at all, as work or by what is kept for weaker asks: a minimum. The same of a
full queue on the way, in which something has to go. Where no offset or fence is on the way to the root, how high that
has to be which makes room for a shape on some node: mostly little of a low priority runs, and stopping all of that
makes room for nothing that waits. And, for what is within a guarantee, whether any node has room for a shape once all
is gone that no guarantee protects.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Demand, Shape
from fairlead.core.books.guarantees import is_owed_leaf, owed_leaves
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Items, fits_in
from fairlead.policy.order.effective_priority import (
    EVERYBODY,
    NOBODY,
    is_owed,
    is_stronger,
    rank,
    seen_from,
    standing_by_queue,
)
from fairlead.policy.order.pick import Lines
from fairlead.policy.order.victim_index import Guards, Stoppable
from fairlead.policy.order.victim_levels import Rooms
from fairlead.policy.preemption.victims import by_node

ON_GROUND = NOBODY + 1
NO_ROOF = EVERYBODY + 1


class Floors:
    """The floors of one partition, for as long as nothing starts, is told to stop, or is nominated."""

    def __init__(self, partition: Partition, table: Stoppable) -> None:
        table.keep_up(partition)
        self.partition, self.table = partition, table
        self._kept = by_node(partition.nominations)
        """Asks for which room is kept."""
        self._without_kept: Rooms | None = None
        """What would be free without that, if it was asked."""
        self._least_kept = min((rank(a.app.queue, a.priority)[0] for a in partition.nominations), default=EVERYBODY)
        """The lowest of those, as seen at the root."""
        self._standing: dict[Queue, int] | None = None
        """By queue the lowest standing, as seen there, of what could be taken from below it; None: nobody asked yet."""
        self._of_shape: dict[Shape, int] = {}
        self._of_amounts: list[tuple[Items, int]] = []
        """How high it has to be which makes room for these amounts."""
        self._beyond: dict[Shape, bool] = {}
        """Whether some node has room for a shape without what is within guarantees, as far as it was asked."""
        self._tops: dict[Queue, int] = {}
        """How high the floor of a shape has to be for a leaf, as far as it was asked (`_top_of`)."""

    def those_above(self, lines: Lines) -> Iterator[Demand]:
        """What is in line and has room nowhere, or is held back, and may be above a floor."""
        root = self.partition.root
        is_low = not root.shifts_priority and root.raw_priority <= self.of_leaf(root)
        if is_low and not self.partition.disruption.leave_by:
            promised = (ask.app.queue for ask in self.partition.nominations)
            for leaf in dict.fromkeys((*owed_leaves(root), *promised)):
                for demand in leaf.every_demand():
                    if demand.live and (demand.shape.unfit or demand.shape.held_up):
                        yield demand
            return
        for demand in lines.those_held_up():
            if not self.is_all_below(demand):
                yield demand

    def is_all_below(self, demand: Demand) -> bool:
        """Whether all that waits in the leaf of a demand, and has its shape, is at or below a floor."""
        top = self._tops.get(demand.leaf)
        if top is None:
            top = self._tops[demand.leaf] = self._top_of(demand.leaf)
        if top == ON_GROUND:
            return not self._may_take_what_leaves(demand.shape)
        return top <= self.of_shape(demand.shape) or top <= self.of_full(demand)

    def _top_of(self, leaf: Queue) -> int:
        """The highest priority that waits in a leaf; `ON_GROUND`: none stands above anything; `NO_ROOF`: some may be
        owed something, or take idle work back, or has room kept for it, or counts for something else at the root.
        """
        if self.partition.idle.running or leaf.promised or is_owed_leaf(leaf):
            return NO_ROOF
        if leaf.raw_priority <= self.of_leaf(leaf):
            return ON_GROUND
        return leaf.raw_priority if not _is_shifted(leaf) else NO_ROOF

    def is_below(self, ask: Ask, shape: Shape) -> bool:
        """Whether an ask of this shape is at or below a floor."""
        partition, leaf = self.partition, ask.app.queue
        if partition.idle.running:
            return False
        if is_owed(leaf, ask.items):
            return self._is_all_guarded(ask, shape)
        if ask.nomination is not None:
            # What is kept for it it may exchange for what others leave.
            return ask.priority <= self.of_leaf(leaf) and not partition.disruption.leave_by
        if ask.priority <= self.of_leaf(leaf):
            return not self._may_take_what_leaves(shape)
        return ask.priority <= self.of_shape(shape) and not _is_shifted(leaf)

    def of_leaf(self, leaf: Queue) -> int:
        """Only a priority above this stands above anything."""
        if self.partition.idle.running:
            return NOBODY
        if not self.partition.root.shifts_priority:
            return min(self.table.lowest(), self._least_kept)
        return min(self._as_seen_in(leaf), default=EVERYBODY)

    def of_full(self, demand: Demand) -> int:
        """Only a standing above this may have room made in the queues on the way that are known to be full; `NOBODY`:
        none is, or some of it leaves.
        """
        leaf, shape = demand.leaf, demand.shape
        floor = NOBODY
        for queue in leaf.lineage:
            is_full = shape in queue.full or (queue is leaf and demand in leaf.waiting)
            if is_full and not any(queue.preempting.values()):
                floor = max(floor, self._lowest_below().get(queue, EVERYBODY))
        return floor

    def of_shape(self, shape: Shape) -> int:
        """Only a standing above this, as seen at the root, may have room made for the shape somewhere; `NOBODY`: some
        node has it, or will once what was told to stop is gone.
        """
        found = self._of_shape.get(shape)
        if found is None:
            found = NOBODY if self._is_drained(shape) else self._of_amount(shape.items)
            if self._least_kept < found:
                if self._without_kept is None:
                    self._without_kept = self.table.rooms(self._kept)
                found = min(found, max(self._least_kept, self._lowest_that_helps(shape.items, self._without_kept)))
            self._of_shape[shape] = found
        return found

    def _is_all_guarded(self, ask: Ask, shape: Shape) -> bool:
        """Whether all that an ask within a guarantee could take back is within guarantees itself, and makes no room.

        Only where nothing stands below it, and only one queue on its way has a guarantee: what it may have stopped is
        outside that queue then, and the same for all such asks.
        """
        leaf = ask.app.queue
        if ask.nomination is not None or ask.priority > self.of_leaf(leaf):
            return False
        if sum(queue.guaranteed is not None for queue in leaf.lineage) > 1:
            return False
        if any(is_stronger(ask, other) for other in self.partition.nominations):
            return False
        return not (self._is_drained(shape) or self._has_room_beyond_guarantees(shape))

    def _is_drained(self, shape: Shape) -> bool:
        """Whether it requires a node that is drained: of those the table says nothing."""
        node = self.partition.nodes.nodes.get(shape.required_node) if shape.required_node else None
        return node is not None and not node.schedulable

    def _has_room_beyond_guarantees(self, shape: Shape) -> bool:
        found = self._beyond.get(shape)
        if found is None:
            levels = self.table.by_level(None, self.table.needs(shape.items, {}), Guards(self.partition))
            found = self._beyond[shape] = any(next(nodes, None) is not None for _, nodes in levels)
        return found

    def _of_amount(self, items: Items) -> int:
        """The lowest work that makes room for this much, with all below it: no less than for less, no more than for
        more. So of many sizes few have to be worked out.
        """
        least, most = NOBODY, self.partition.root.raw_priority
        amounts = dict(items)
        for other, floor in self._of_amounts:
            if floor > least and fits_in(other, amounts):
                least = floor
            if floor < most and fits_in(items, dict(other)):
                most = floor
        if least < most:
            least = self._lowest_that_helps(items, self.table.rooms())
            self._of_amounts.append((items, least))
        return least

    def _lowest_that_helps(self, items: Items, rooms: Rooms) -> int:
        """The lowest work that makes room for this much together with all below it."""
        place = rooms.lowest_for(items, self.partition.root.raw_priority)
        return EVERYBODY if place is None else place[0] if place else NOBODY

    def _may_take_what_leaves(self, shape: Shape) -> bool:
        """Whether work that was told to stop may leave more room than is kept for others, and enough for the shape."""
        return bool(self.partition.disruption.leave_by) and self.of_shape(shape) == NOBODY

    # -- offsets and fences ---------------------------------------------------------------------------------------

    def _lowest_below(self) -> dict[Queue, int]:
        if self._standing is not None:
            return self._standing
        least: dict[Queue, int] = {}
        nominated = [(a.app.queue, a.priority) for a in self.partition.nominations]
        for leaf, priority in (*self.table.running_groups(), *nominated):
            least[leaf] = min(priority, least.get(leaf, EVERYBODY))
        lowest = self._standing = {}
        for leaf, priority in least.items():
            for queue, standing in standing_by_queue(leaf, priority).items():
                lowest[queue] = min(standing, lowest.get(queue, EVERYBODY))
        return lowest

    def _as_seen_in(self, leaf: Queue) -> Iterator[int]:
        for queue, offset, fenced in seen_from(leaf):
            lowest = self._lowest_below().get(queue)
            if lowest is not None:
                if not fenced:
                    yield lowest - offset
                elif offset > lowest:
                    yield NOBODY


def _is_shifted(leaf: Queue) -> bool:
    """Whether a priority counts for something else on the way from a leaf to the root."""
    if not leaf.lineage[-1].shifts_priority:
        return False
    return any(queue.properties.priority_fence or queue.properties.priority_offset for queue in leaf.lineage[:-1])
