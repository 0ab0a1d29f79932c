"""The lines: which child of a queue, and which batch of a leaf, is looked at next.

Decides nothing new: it keeps the orders of `policy.order.keys` in heaps, and changes them only where something changed.
An entry of a heap counts while its number is the one that its queue, demand or batch has; left-overs are skipped. A key
that got worse is noticed when its entry comes to the head; one that got better is put in anew at once. Invariant: the
head of a line is what sorting everything afresh would put first among what is worth looking at.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from itertools import islice
from operator import attrgetter
from typing import Any

from fairlead.core.books.application_limits import has_to_enter
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Batch
from fairlead.core.books.demand import Demand, Entry, Shape
from fairlead.core.books.partition import Partition
from fairlead.core.books.queue_line import ChildEntry
from fairlead.core.books.queues import Queue
from fairlead.policy.eligibility.attempt_times import RESERVE_AFTER_MS, note_attempt
from fairlead.policy.eligibility.headroom import is_full_above
from fairlead.policy.eligibility.max_wait import waits_for_turn
from fairlead.policy.order.effective_priority import NOT_OWED, owed_by
from fairlead.policy.order.keys import application_key, batch_key, child_entry
from fairlead.policy.order.victim_index import Stoppable

_by_arrival = attrgetter("seq")
FEW_APPLICATIONS = 3
"""So many applications without anything that may fit are passed over before demands are looked at."""
FEW_BATCHES = 16
"""So many batches of each of these are looked at, where demands can be looked up by shape."""
FEW_SHAPES = 8
"""Where no more shapes than these may fit, a leaf's demands are looked up by shape instead of by their order."""
ASIDE_COST = 4
"""Setting a demand aside that does not fit costs as much as looking up so many shapes that may."""


class Lines:
    """The kept orders of one partition."""

    __slots__ = ("_aside", "_many", "_state", "partition", "stoppable")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._many: dict[Queue, list[Entry]] = {}
        """By leaf of which many shapes may fit, a heap of the first entries of their demands."""
        self._aside: dict[Queue, int] = {}
        """So many of its demands were set aside before, looking for one after the other."""
        self._state: tuple[int, ...] = ()
        """In which state of things both are known (`_state_now`)."""
        self.stoppable = Stoppable()
        """What runs, as a table for preemption by priority; nothing is in it where rank does not decide."""

    # -- bringing up to date --------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Give every application that changed its place in line."""
        changed = self.partition.root.changed_leaves
        if not changed:
            return
        # In order of arrival, whatever came first: so are the timers that are set on the way, also after a restart.
        if len(changed) > 1:
            changed.sort(key=_by_arrival)
        for leaf in changed:
            if len(leaf.changed_apps) > 1:
                leaf.changed_apps.sort(key=_by_arrival)
            for app in leaf.changed_apps:
                app.touched = False
                if app.queue is leaf and app.batches:
                    self._settle(app)
            leaf.changed_apps.clear()
        changed.clear()

    def _settle(self, app: Application) -> None:
        if app.rests(self.partition.now_ms):
            for batch in app.batches.values():
                self.put_aside(batch)
            return
        leaf = app.queue
        if leaf.properties.backoff_threshold:
            self.partition.uncounted[app] = None
        key, before = application_key(app), app.order_key
        if key != before:
            app.order_key = key
            if not leaf.by_rank:
                self._rank(app)
            if not before or key < before:
                for batch in app.batches.values():
                    if leaf.by_rank:
                        app.out_of_line[batch] = None
                    elif batch.stamp:
                        batch.demand.improved[batch] = leaf.improved[batch.demand] = None
        if app.out_of_line:
            waiting = list(app.out_of_line)
            app.out_of_line.clear()
            enters = has_to_enter(app)
            for batch in waiting:
                self._line_up(batch, enters)

    def _rank(self, app: Application) -> None:
        """Give an application its place among those of its leaf."""
        leaf = app.queue
        heap, root = leaf.apps_heap, self.partition.root
        root.stamps = app.stamp = root.stamps + 1
        entry = app.order_key + (app.stamp, app)  # noqa: RUF005 (half the time, for each placement)
        if heap and heap[0][-1] is app:
            heapreplace(heap, entry)
            return
        heappush(heap, entry)
        if len(heap) > 2 * len(leaf.applications) + 16:
            heap[:] = [each for each in heap if each[-1].stamp == each[-2]]
            heapify(heap)

    def _line_up(self, batch: Batch, enters: int) -> None:
        """Put a batch in its place, if any of its asks may start at all; `enters`: see `has_to_enter`."""
        if not self.is_eligible(batch):
            self.put_aside(batch)
            return
        app, demand = batch.app, batch.demand
        if demand.enters != enters:
            demand = app.refile(batch)  # It needs a place to run now, or has one.
        demand.put(batch_key(batch), app.queue.next_stamp(), batch)
        demand.tried = -1
        self.partition.nodes.seeks(demand, batch.oldest_ms)
        if not app.queue.by_rank:
            note_attempt(self.partition, batch)

    def those_held_up(self) -> Iterator[Demand]:
        """What is in line with a shape that no node takes, or that something above may be in the way of."""
        nodes = self.partition.nodes
        for shape in (*nodes.unfit, *nodes.fitting):
            if shape.held_up and not shape.unfit:
                shape.held_up = any(demand.obstacle is not None or is_full_above(demand) for demand in shape.demands)
            if shape.unfit or shape.held_up:
                yield from [demand for demand in shape.demands if demand.live]

    def bring_up(self, demand: Demand) -> None:
        """Put anew what comes earlier in the line of a demand than its entries say."""
        leaf = demand.leaf
        if demand.improved:
            demand.seeker = None  # Some of these may seek a node before it.
        improved, demand.improved = demand.improved, {}
        leaf.improved.pop(demand, None)
        for batch in improved:
            demand.put(batch_key(batch), leaf.next_stamp(), batch)

    def put_aside(self, batch: Batch) -> None:
        """A batch is not in line until its application is looked at again."""
        batch.demand.take_out(batch)
        batch.demand.leaf.drop_due(batch)
        batch.app.out_of_line[batch] = None

    def is_eligible(self, batch: Batch) -> bool:
        """Whether its first ask may start as far as its application and the turns of others are concerned."""
        app, group = batch.app, batch.key[1]
        if group and app.stands_in(group):
            return False
        if app.rests(self.partition.now_ms):
            return False
        return not self.partition.reserving.of or not waits_for_turn(self.partition, batch.head)

    # -- queues ---------------------------------------------------------------------------------------------------

    def children(self, queue: Queue) -> list[ChildEntry]:
        """The heap of the queue's children that have something to offer, brought up to date."""
        heap = queue.child_heap
        if not queue.changed_children:
            return heap
        root = self.partition.root
        for child in queue.changed_children:
            child.touched = False
            if not child.pending_sum or not (child.ready or child.due_below):
                child.stamp = 0
                continue
            root.stamps = child.stamp = root.stamps + 1
            entry = child_entry(child, child.stamp)
            if heap and heap[0][5] is child:
                heapreplace(heap, entry)
                continue
            heappush(heap, entry)
            if len(heap) > 2 * len(queue.children) + 8:
                heap[:] = [entry for entry in heap if entry[5].stamp == entry[4]]
                heapify(heap)
        queue.changed_children.clear()
        return heap

    def may_offer(self, queue: Queue) -> bool:
        """Whether something below may be placeable, or is to be looked at for another reason."""
        if queue.due_below:
            return True
        ready, nodes = queue.ready, self.partition.nodes
        fitting = nodes.fitting
        if len(fitting) < len(ready):
            for shape in fitting:
                if shape in ready and shape not in queue.full:
                    return True
        else:
            for shape in ready:
                if not shape.unfit and shape not in queue.full:
                    return True
        latest = self.partition.now_ms - RESERVE_AFTER_MS
        if nodes.seekable_ms <= latest and not queue.by_rank:
            for shape, since_ms in nodes.seekable.items():
                is_open = since_ms <= latest and shape in ready and shape not in queue.full
                if is_open and (not queue.is_leaf or self._seeks(queue, shape)):
                    return True
        return False

    def _seeks(self, leaf: Queue, shape: Shape) -> bool:
        """Whether something of this shape in a leaf may have waited long enough to have a node set aside."""
        for demand in leaf.demands[shape].values():
            if demand.seek_ms <= self.partition.now_ms:
                return True
        return False

    # -- leaves ---------------------------------------------------------------------------------------------------

    def first_that_may_fit(self, leaf: Queue) -> Batch | None:
        """The first batch of the leaf whose shape may fit on some node and under every maximum."""
        fitting = self._fitting_under(leaf)
        few = len(fitting) <= FEW_SHAPES
        if not few and self._many.get(leaf) and self._state == self._state_now():
            return self._first_of_many(leaf, fitting)
        if fitting and not leaf.by_rank:
            batch = self._first_of_applications(leaf, fitting, FEW_BATCHES if few else None)
            if batch is not None:
                return batch
        return self._first_by_shape(leaf, fitting) if few else self._first_of_demands(leaf, fitting)

    def _fitting_under(self, leaf: Queue) -> dict[Shape, None]:
        """The shapes that may fit on some node and under every maximum from this leaf up; where none of those is known
        to be too full for any, also shapes that nothing in the leaf has.
        """
        fitting = self.partition.nodes.fitting
        for queue in leaf.lineage:
            if queue.full:
                fitting = {each: None for each in leaf.ready if each in fitting and each not in queue.full}
        return fitting

    def _first_of_demands(self, leaf: Queue, fitting: dict[Shape, None]) -> Batch | None:
        """In their order, as long as that is shorter than to look at all that may fit: all looks in one state count."""
        if self._state != self._state_now():
            self._many, self._aside = {}, {}
        for demand in list(leaf.improved):
            self.bring_up(demand)
        aside: list[tuple[tuple[object, ...], int, Demand]] = []
        found: Batch | None = None
        heap = leaf.heap
        most = max(len(fitting) // ASIDE_COST - self._aside.get(leaf, 0), 0)
        while heap and len(aside) <= most:
            top = heap[0]
            demand = top[2]
            if demand.stamp != top[1]:
                heappop(heap)
                continue
            first = self.first(demand)
            if first is None:
                heappop(heap)
            elif demand.stamp != top[1]:
                continue
            elif first[0] != top[0]:
                heappop(heap)
                leaf.rank(demand)
            elif demand.shape not in fitting:
                aside.append(heappop(heap))
            else:
                found = first[2]
                break
        for top in aside:
            heappush(heap, top)
        self._aside[leaf] = self._aside.get(leaf, 0) + len(aside)
        if len(aside) > most:
            self._many[leaf] = self._entries(leaf, fitting)
            heapify(self._many[leaf])
            found = self._first_of_many(leaf, fitting)
        self._state = self._state_now()
        return found

    def _first_of_many(self, leaf: Queue, fitting: dict[Shape, None]) -> Batch | None:
        """The first of those that are kept and may fit still: while nothing moves one after the other finds no node."""
        heap = self._many[leaf]
        while heap:
            _, stamp, batch = heap[0]
            demand = batch.demand
            may_fit = demand.shape in fitting and demand.obstacle is None
            if may_fit and batch.stamp == stamp:
                return batch
            heappop(heap)
            if may_fit and (entry := self.first(demand)) is not None:
                heappush(heap, entry)
        return None

    def _state_now(self) -> tuple[int, ...]:
        """What changes whenever something is put in line, or may fit that did not."""
        partition = self.partition
        return partition.root.stamps, partition.nodes.gains, partition.books_version, partition.now_ms

    def first_owed(self, leaf: Queue) -> Batch | None:
        """The same, of what is within the guarantees on its way: first what has the nearest (`owed_by`)."""
        owed: dict[int, dict[Shape, None]] = {}
        fitting = self._fitting_under(leaf)
        for shape in leaf.ready:
            if shape in fitting and (nearest := owed_by(leaf, shape.items)) != NOT_OWED:
                owed.setdefault(nearest, {})[shape] = None
        found = (self._first_by_shape(leaf, owed[nearest]) for nearest in sorted(owed))
        return next((batch for batch in found if batch is not None), None)

    def _first_of_applications(self, leaf: Queue, fitting: dict[Shape, None], most: int | None) -> Batch | None:
        """The first batch that may fit of the first application that has one, if it is among the first few, and among
        the first `most` batches of that: mostly a shorter way than demands. None says nothing.
        """
        heap = leaf.apps_heap
        aside: list[tuple[Any, ...]] = []
        found: Batch | None = None
        while heap and len(aside) < FEW_APPLICATIONS:
            top = heap[0]
            app: Application = top[-1]
            if app.stamp != top[-2]:
                heappop(heap)
                continue
            if not app.batches:
                heappop(heap)
                app.order_key = ()  # It is put in its place anew when something of it waits again.
                continue
            found = self._first_in(app, fitting, most)
            if found is not None or (most is not None and len(app.line) > most):
                break
            aside.append(heappop(heap))
        for top in aside:
            heappush(heap, top)
        return found

    def _first_in(self, app: Application, fitting: dict[Shape, None], most: int | None) -> Batch | None:
        """The first batch of an application that is in line and may fit, of so many."""
        watched = self.partition.reserving.of or app.groups
        for batch in islice(app.line, most):
            if batch.stamp and batch.key[0] in fitting and batch.demand.obstacle is None:
                if not watched or self.is_eligible(batch):
                    return batch
                self.put_aside(batch)
        return None

    def _first_by_shape(self, leaf: Queue, shapes: dict[Shape, None]) -> Batch | None:
        entries = self._entries(leaf, shapes)
        return min(entries)[2] if entries else None

    def _entries(self, leaf: Queue, shapes: dict[Shape, None]) -> list[Entry]:
        """The first entry of each demand of the leaf with one of these shapes, and without an obstacle."""
        demands = [each for shape in shapes if shape in leaf.ready for each in leaf.demands[shape].values()]
        unblocked = [each for each in demands if each.live and each.obstacle is None]
        return [entry for each in unblocked if (entry := self.first(each)) is not None]

    def first(self, demand: Demand) -> Entry | None:
        """The first entry of a demand whose key is of now and whose batch may start."""
        if demand.improved:
            self.bring_up(demand)
        line = demand.line
        while line:
            entry = line[0]
            key, stamp, batch = entry
            if batch.stamp != stamp:
                heappop(line)
                continue
            # The parts of its key (`batch_key`): mostly the same objects as then.
            if key[-1] is not batch.line_key or key[-2] is not batch.app.order_key:
                now = batch_key(batch)
                if now != key:
                    entry = (now, stamp, batch)
                    heapreplace(line, entry)  # A better key was settled before.
                    if line[0][1] != stamp:
                        continue
            if (batch.key[1] or self.partition.reserving.of) and not self.is_eligible(batch):
                self.put_aside(batch)
            else:
                return entry
        return None
