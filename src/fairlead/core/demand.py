"""Shapes and demands: what is asked for, so that equal asks are looked at once.

A *shape* is everything about an ask that decides on which node it fits; it is shared by the whole partition. A
*demand* is one shape in one leaf (behind one gate): everything about an ask that decides whether it could be placed
now. When a demand meets an obstacle, the applications that have nothing else to offer are parked behind it, and nobody
looks at them again until that obstacle moves. Decides only who is worth looking at; never the order, never a
placement.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from fairlead.core.constraints import ANYWHERE, Constraints
from fairlead.core.lifecycle import State
from fairlead.core.resources import Items

if TYPE_CHECKING:
    from fairlead.core.applications import Application, Ask, Batch
    from fairlead.core.queues import Queue
    from fairlead.core.tallies import Tally
    from fairlead.core.trackers import Allowance

Labels = tuple[tuple[str, str], ...]
ShapeKey = tuple[Items, str] | tuple[Items, str, Constraints, Labels]


class Shape:
    """Resources and node constraints of an ask; one object for all that are equal in a partition."""

    __slots__ = (
        "blocked_by_root",
        "is_plain",
        "items",
        "key",
        "labels",
        "may_reserve",
        "pending",
        "required_node",
        "resting",
        "unfit",
        "waiting",
        "wakes_at_once",
        "watched",
        "where",
    )

    def __init__(self, key: ShapeKey) -> None:
        self.key = key
        self.items, self.required_node = key[:2]
        self.is_plain = len(key) == 2
        """It has no constraints, and no label that matters to anybody."""
        self.where: Constraints = ANYWHERE
        self.labels: Labels = ()
        """Those of its labels that some term looks at, sorted."""
        if len(key) == 4:
            self.where, self.labels = key[2:]
        self.watched: tuple[Tally, ...] = ()
        """While it is unfit: the running work whose start or end may change that (`core.terrain`)."""
        self.pending = 0
        """Waiting asks of this shape, over all applications; the partition drops the shape at 0."""
        self.unfit = False
        """No node had room when last looked, and none that could take it gained room since."""
        self.blocked_by_root = False
        """It was unfit because of the sum of all nodes, not because of each single one."""
        self.may_reserve = False
        """It is unfit, but some node may be set aside for it (not known otherwise)."""
        self.waiting: dict[Demand, None] = {}
        """Demands to wake up when it may fit again."""
        self.resting: dict[Batch, None] = {}
        """Batches that make no attempt to preempt while no node could hold the shape (`core.oversize`)."""
        self.wakes_at_once = False
        """Some ask of it sought a node of its own, or had one: whoever waits is woken as soon as it may fit."""


class Demand:
    """One shape in one leaf, or (shape None) everything behind a gate of that leaf."""

    __slots__ = (
        "allowance",
        "candidate",
        "key",
        "leaf",
        "obstacle",
        "parked",
        "pending",
        "reserved",
        "seekers",
        "shape",
        "uncounted",
        "untimed",
    )

    def __init__(self, leaf: Queue, shape: Shape | None, key: object, allowance: Allowance | None = None) -> None:
        self.leaf = leaf
        self.shape = shape
        self.key = key
        self.allowance = allowance
        """The limits of the user and group that it is for; None: no limit holds for them."""
        self.pending = 0
        """Batches of applications that refer to it; the leaf drops it at 0."""
        self.obstacle: object | None = None
        """What is in the way above the nodes (a queue at its maximum, a limit); None: nothing known."""
        self.parked: list[tuple[object, int, Application]] = []
        """Heap of `(application key, park stamp, application)`; an entry counts while the stamp is the application's.
        """
        self.seekers: list[tuple[object, int, Application]] = []
        """Those of the parked ones with an ask that waits long enough to have a node set aside for it; a heap too."""
        self.reserved: dict[Ask, dict[Ask, None]] = {}
        """Asks that have a node set aside, each with the list of those to try again that it is put on when woken."""
        self.candidate: Application | None = None
        """The application that was let out of the heap since the obstacle moved."""
        self.untimed = False
        """Somebody is parked who has no timer for preemption, because a limit was in the way: it stops nobody then."""
        self.uncounted = False
        """Somebody is parked who does not rest (`policy.backoff`) because what was in the way was not the nodes."""

    @property
    def is_blocked(self) -> bool:
        """Whether looking at it again would be a waste."""
        if self.obstacle is not None:
            return True
        return self.shape is not None and self.shape.unfit and not (self.shape.may_reserve and self.seekers)

    def park(self, app: Application) -> None:
        """Put an application that has nothing else to offer behind this demand."""
        heappush(self.parked, (app.order_key, app.park_stamp, app))

    def seek(self, app: Application) -> None:
        """An application parked behind this demand would have a node set aside if there is one."""
        assert self.shape is not None
        self.shape.wakes_at_once = True
        heappush(self.seekers, (app.order_key, app.park_stamp, app))

    def best_parked(self) -> Application | None:
        """Take out the first application in order that is still parked; of an unfit shape, one that seeks a node."""
        heap = self.seekers if self.shape is not None and self.shape.unfit else self.parked
        while heap:
            _, stamp, app = heappop(heap)
            # Who is touched goes back into the line by itself, if it still has something to offer.
            if app.park_stamp == stamp and not app.touched:
                return app
            self._drop(stamp, app, heap)
        return None

    def touch_untimed(self) -> None:
        """The limit that was in the way has moved: who was parked behind it without a timer is looked at again."""
        self.untimed = False
        for _, stamp, app in self.parked:
            timer_ms = app.attempt_timer_ms
            if app.park_stamp == stamp and (
                timer_ms is None or any(b.demand is self and b.attempt_ms < timer_ms for b in app.batches)
            ):
                self.leaf.touch_app(app)

    def touch_uncounted(self) -> None:
        """Now the nodes are in the way: who is parked here is looked at again, and may have to rest."""
        self.uncounted = False
        for _, stamp, app in self.parked:
            if app.park_stamp == stamp:
                self.leaf.touch_app(app)

    def has_parked_before(self, key: tuple[object, ...]) -> bool:
        """Whether somebody is parked here who comes before an application with this key."""
        heap = self.seekers if self.shape is not None and self.shape.unfit else self.parked
        while heap and (heap[0][2].park_stamp != heap[0][1] or heap[0][2].touched):
            _, stamp, app = heappop(heap)
            self._drop(stamp, app, heap)
        return bool(heap) and heap[0][0] < key  # type: ignore[operator]

    def _drop(self, stamp: int, app: Application, heap: list[tuple[object, int, Application]]) -> None:
        """An entry is taken out that does not count now; if another demand let the application out it may come back."""
        if app.park_stamp == stamp and app.let_out_by:
            app.let_out_by = [*app.let_out_by, self] if heap is self.parked else []

    def wait_for_node(self) -> None:
        """No node has room: wake this demand when its shape may fit again."""
        shape = self.shape
        assert shape is not None
        if self not in shape.waiting:
            shape.waiting[self] = None
            for queue in self.leaf.lineage:
                queue.dozing[shape] = queue.dozing.get(shape, 0) + 1

    def wait_no_longer(self) -> None:
        """It need not be woken any longer when its shape may fit again."""
        shape = self.shape
        if shape is None or self not in shape.waiting:
            return
        del shape.waiting[self]
        for queue in self.leaf.lineage:
            left = queue.dozing[shape] - 1
            if left:
                queue.dozing[shape] = left
            else:
                del queue.dozing[shape]

    def wake(self) -> None:
        """The obstacle may have moved: the leaf looks again at its next visit."""
        self.obstacle = None
        for ask, again in self.reserved.items():
            again[ask] = None
        if self.parked:
            self.leaf.open_demands[self] = None
            self.leaf.wake()

    def serves(self, app: Application) -> bool:
        """Whether `app` still has asks of this demand in line."""
        if self.shape is None:
            return app.state is State.ACCEPTED and app.pending_count > 0
        return any(batch.demand is self for batch in app.batches)
