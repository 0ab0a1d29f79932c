"""The lines: which child of a queue, and which application of a leaf, is looked at next.

Decides nothing new: it keeps the orders of `ordering` in heaps, and changes them only where something changed. An
entry of a heap counts while it is the one its queue or application points to; left-overs are skipped. Invariant: the
head of a line is what sorting everything afresh would put first among those worth looking at.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from fairlead.core.queues import QueueState
from fairlead.policy.ordering import application_key, queue_key
from fairlead.policy.stoppable import Stoppable

if TYPE_CHECKING:
    from fairlead.core.applications import Application
    from fairlead.core.demand import Demand
    from fairlead.core.queues import Queue


class Lines:
    """The kept orders of one partition."""

    __slots__ = ("_pushes", "stoppable")

    def __init__(self) -> None:
        self._pushes = 0
        self.stoppable = Stoppable()
        """What runs, as a table for preemption by priority; nothing is in it where that is not the rule."""

    # -- queues ---------------------------------------------------------------------------------------------------

    def children(self, queue: Queue) -> list[tuple[object, ...]]:
        """The heap of the queue's children that wait and are awake, brought up to date."""
        heap = queue.heap
        changed = queue.changed_children
        if not changed:
            return heap
        for child in changed:
            child.touched = False
            if child.asleep or child.state is QueueState.STOPPED or not child.has_pending:
                self._leave_alone(child)
                continue
            self._pushes += 1
            entry = (queue_key(child), self._pushes, child)
            child.entry = entry
            if heap and heap[0][2] is child:
                heapreplace(heap, entry)
            else:
                heappush(heap, entry)
        changed.clear()
        if len(heap) > 4 * len(queue.children) + 32:
            heap[:] = [e for e in heap if e[-1].entry is e]  # type: ignore[attr-defined]
            heapify(heap)
        return heap

    def next_child(self, queue: Queue) -> Queue | None:
        """The child to look at next, or None when none is worth it."""
        heap = self.children(queue)
        while heap:
            entry = heap[0]
            child: Queue = entry[2]  # type: ignore[assignment]
            if child.entry is entry:
                return child
            heappop(heap)
        return None

    def send_to_sleep(self, queue: Queue) -> None:
        """Nothing below this queue can be placed: leave it alone until something wakes it."""
        queue.asleep = True
        queue.entry = None

    def _leave_alone(self, queue: Queue) -> None:
        """Nothing waits below this queue: it sleeps with all below it, for a queue is awake only in an awake one."""
        queue.entry = None
        if not queue.asleep:
            queue.asleep = True
            for child in queue.children.values():
                self._leave_alone(child)

    # -- applications ---------------------------------------------------------------------------------------------

    def applications(self, leaf: Queue) -> list[tuple[object, ...]]:
        """The heap of the leaf's applications that have something to offer, brought up to date."""
        if leaf.open_demands:
            self._open(leaf)
        changed = leaf.changed_apps
        heap = leaf.heap
        if not changed:
            return heap
        for app in changed:
            app.touched = False
            app.park_stamp += 1
            if not app.pending_count or app.id not in leaf.applications:
                app.entry = None
                continue
            key = application_key(app)
            app.order_key = key
            self._pushes += 1
            entry = (key, self._pushes, app)
            app.entry = entry
            if heap and heap[0][2] is app:
                heapreplace(heap, entry)
            else:
                heappush(heap, entry)
        changed.clear()
        if len(heap) > 4 * len(leaf.applications) + 32:
            heap[:] = [e for e in heap if e[-1].entry is e]  # type: ignore[attr-defined]
            heapify(heap)
        return heap

    def next_application(self, leaf: Queue) -> Application | None:
        """The application to look at next, or None when none has anything to offer."""
        while True:
            heap = self.applications(leaf)
            while heap:
                entry = heap[0]
                app: Application = entry[2]  # type: ignore[assignment]
                if app.entry is entry:
                    return app
                heappop(heap)
            if not leaf.open_demands:
                return None
            # Whoever was let out of the heap of parked ones has been placed in another way: let out the next.

    def park(self, app: Application, demands: list[Demand]) -> None:
        """Nothing of this application can be placed: leave it alone until one of the demands is woken."""
        app.entry = None
        app.park_stamp += 1
        for demand in demands:
            demand.park(app)

    def _open(self, leaf: Queue) -> None:
        """Let the first parked application of every demand that may fit again back into the line."""
        for demand in list(leaf.open_demands):
            if demand.is_blocked:
                del leaf.open_demands[demand]
                if demand.obstacle is None and demand.shape is not None:
                    demand.shape.waiting[demand] = None
                continue
            candidate = demand.candidate
            if candidate is not None and candidate.entry is not None and demand.serves(candidate):
                # What it got meanwhile may have put it behind one that is still parked.
                key = application_key(candidate) if candidate.touched else candidate.order_key
                if not demand.has_parked_before(key):
                    continue
            candidate = demand.candidate = demand.best_parked()
            if candidate is None:
                del leaf.open_demands[demand]
            else:
                leaf.touch_app(candidate)
