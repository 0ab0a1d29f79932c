"""The lines: which child of a queue, and which application of a leaf, is looked at next.

Decides nothing new: it keeps the orders of `ordering` in heaps, and changes them only where something changed. An
entry of a heap counts while its stamp is the one its queue or application remembers; left-overs are skipped.
Invariant: the head of a line is what sorting everything afresh would put first among those worth looking at.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from fairlead.policy.ordering import WAITS, application_key, queue_key
from fairlead.policy.stoppable import Stoppable

if TYPE_CHECKING:
    from fairlead.core.applications import Application
    from fairlead.core.demand import Demand
    from fairlead.core.dozing import Dozing
    from fairlead.core.queues import Queue


class Lines:
    """The kept orders of one partition."""

    __slots__ = ("_pushes", "stoppable")

    def __init__(self) -> None:
        self._pushes = 0
        self.stoppable = Stoppable()
        """What runs, as a table for preemption by priority; nothing is in it where that is not the rule."""

    # -- queues ---------------------------------------------------------------------------------------------------

    def next_child(self, queue: Queue) -> Queue | None:
        """The child to look at next, or None when none is worth it."""
        if queue.changed_children:
            self._reorder(queue)
        heap = queue.heap
        while heap:
            entry = heap[0]
            child: Queue = entry[-1]  # type: ignore[assignment]
            if child.entry == entry[-2]:
                return child
            heappop(heap)
        return None

    def _reorder(self, queue: Queue) -> None:
        """Bring the heaps of the queue's children up to date: of those that wait and are awake, and of the dozers."""
        awake, pushes = queue.heap, self._pushes
        for child in queue.changed_children:
            child.touched = False
            if child.asleep and not child.dozing:
                self._leave_alone(child)
                continue
            key = queue_key(child)
            if not key[WAITS]:
                self._leave_alone(child)
                continue
            pushes += 1
            child.entry = pushes
            entry = (*key, pushes, child)
            heap = queue.dozers if child.asleep else awake
            if heap and heap[0][-1] is child:
                heapreplace(heap, entry)
            else:
                heappush(heap, entry)
        self._pushes = pushes
        queue.changed_children.clear()
        if len(awake) + len(queue.dozers) > 4 * len(queue.children) + 32:
            for heap in (awake, queue.dozers):
                heap[:] = [e for e in heap if e[-1].entry == e[-2]]  # type: ignore[attr-defined]
                heapify(heap)

    def rouse_next(self, queue: Queue, dozing: Dozing) -> None:
        """Wake the first child that dozes and may have something to offer, if it comes before those awake."""
        first = self.next_child(queue)
        heap = queue.dozers
        aside = []
        while heap:
            entry = heap[0]
            child: Queue = entry[-1]  # type: ignore[assignment]
            if child.entry != entry[-2] or not child.asleep:
                heappop(heap)
            elif first is not None and queue.heap[0] < entry:
                break
            elif dozing.concerns(child):
                child.asleep = False
                heappush(queue.heap, heappop(heap))
                break
            else:
                aside.append(heappop(heap))
        for entry in aside:
            heappush(heap, entry)

    def send_to_sleep(self, queue: Queue, version: int) -> None:
        """Nothing below this queue can be placed: leave it alone until something wakes it.

        `version`: what is fresh (`core.dozing`) up to this has been looked at.
        """
        queue.asleep = True
        queue.entry = None
        queue.dozed_at = version
        if queue.dozing:
            queue.touch()

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
        heap = leaf.heap
        if not leaf.changed_apps:
            return heap
        pushes = self._pushes
        for app in leaf.changed_apps:
            app.touched = False
            if not app.let_out_by:
                app.park_stamp += 1
            if not app.pending_count or app.id not in leaf.applications:
                app.entry = None
                continue
            key = app.order_key = application_key(app)
            pushes += 1
            app.entry = pushes
            entry = (key, pushes, app)
            if heap and heap[0][2] is app:
                heapreplace(heap, entry)
            else:
                heappush(heap, entry)
        self._pushes = pushes
        leaf.changed_apps.clear()
        if len(heap) > 4 * len(leaf.applications) + 32:
            heap[:] = [e for e in heap if e[-1].entry == e[-2]]  # type: ignore[attr-defined]
            heapify(heap)
        return heap

    def next_application(self, leaf: Queue) -> Application | None:
        """The application to look at next, or None when none has anything to offer."""
        while True:
            heap = self.applications(leaf)
            while heap:
                entry = heap[0]
                app: Application = entry[2]  # type: ignore[assignment]
                if app.entry == entry[1]:
                    return app
                heappop(heap)
            if not leaf.open_demands:
                return None
            # Whoever was let out of the heap of parked ones has been placed in another way: let out the next.

    def park(self, app: Application, demands: list[Demand]) -> None:
        """Nothing of this application can be placed: leave it alone until one of the demands is woken."""
        app.entry = None
        app.park_stamp += 1
        app.let_out_by = []
        for demand in demands:
            demand.park(app)

    def put_back(self, app: Application) -> None:
        """Park an application again that was let out in vain: behind all its other demands it still is."""
        app.entry = None
        for demand in app.let_out_by:
            demand.park(app)
            if demand.obstacle is None:
                demand.wait_for_node()
        app.let_out_by = []

    def _open(self, leaf: Queue) -> None:
        """Let the first parked application of every demand that may fit again back into the line."""
        for demand in list(leaf.open_demands):
            if demand.is_blocked:
                _close(demand)
                continue
            candidate = demand.candidate
            if candidate is not None and candidate.entry is not None and demand.serves(candidate):
                # What it got meanwhile may have put it behind one that is still parked.
                key = application_key(candidate) if candidate.touched else candidate.order_key
                if not demand.has_parked_before(key):
                    continue
            candidate = demand.candidate = demand.best_parked()
            if candidate is None:
                _close(demand)
            else:
                _let_out(candidate, demand)


def _close(demand: Demand) -> None:
    """Nobody behind this demand can be let out: look at it again when its obstacle moves, or a node may have room.

    Of an unfit shape nobody may be left who seeks a node, while others are still parked.
    """
    del demand.leaf.open_demands[demand]
    if demand.obstacle is None and demand.shape is not None and demand.shape.unfit:
        demand.wait_for_node()
        if demand.untimed:
            demand.touch_untimed()
        if demand.uncounted and not demand.shape.blocked_by_root:
            demand.touch_uncounted()


def _let_out(app: Application, demand: Demand) -> None:
    """Put an application back in line; who let it out is remembered while it is parked everywhere else."""
    is_parked = app.entry is None or bool(app.let_out_by)
    seeks = demand.shape is not None and demand.shape.unfit
    by = [*app.let_out_by, demand] if is_parked and not seeks else []
    demand.leaf.touch_app(app)
    app.let_out_by = by
