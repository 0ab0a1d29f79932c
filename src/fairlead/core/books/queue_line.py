"""The line of a queue: its place in the tree, and what it has to offer below it.

Decides which demands are ready, and which places in line have to be worked out anew. Never decides the order itself
(`policy.order.pick`). Invariant: `ready` counts, shape by shape, the demands below that have something in line and no
obstacle.
"""

from __future__ import annotations

from heapq import heapify, heappush
from typing import TYPE_CHECKING, Any, cast

from fairlead.core.books.demand import Demand, DemandKey, Obstacle

if TYPE_CHECKING:
    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Batch
    from fairlead.core.books.demand import Shape
    from fairlead.core.books.queues import Queue


ChildEntry = tuple[object, object, int, int, int, "Queue"]
"""A queue's key (`policy.order.keys.queue_key`), stamp and queue: a key inside the tuple would be compared twice."""


class QueueLine(Obstacle):
    """What waits in one queue and below, in order."""

    __slots__ = (
        "applications",
        "apps_heap",
        "changed_apps",
        "changed_children",
        "changed_leaves",
        "child_heap",
        "children",
        "demands",
        "due",
        "due_below",
        "heap",
        "improved",
        "is_leaf",
        "lineage",
        "parent",
        "ready",
        "stamp",
        "stamps",
        "tidy_at",
        "touched",
    )

    def __init__(self, parent: Queue | None, *, leaf: bool) -> None:
        super().__init__()
        self.parent = parent
        self.is_leaf = leaf
        self.children: dict[str, Queue] = {}
        self.applications: dict[str, Application] = {}
        own = cast("Queue", self)
        self.lineage: tuple[Queue, ...] = (own,) if parent is None else (own, *parent.lineage)
        """This queue, its parent, …, the root."""
        self.demands: dict[Shape, dict[DemandKey, Demand]] = {}
        """Of a leaf: what is asked for, by shape and key."""
        self.ready: dict[Shape, int] = {}
        """By shape how many demands here and below have something in line and no obstacle."""
        self.due: dict[Batch, None] = {}
        """Of a leaf: batches that may have others stopped by guarantee now."""
        self.due_below = 0
        """How many leaves here and below have some."""
        self.child_heap: list[ChildEntry] = []
        """Of a parent: its children that have something to offer."""
        self.heap: list[tuple[tuple[object, ...], int, Demand]] = []
        """Of a leaf: its demands that are ready."""
        self.tidy_at = 64
        """When this has more entries those that do not count are taken out."""
        self.improved: dict[Demand, None] = {}
        """Of a leaf: demands with batches that come earlier than their entries say."""
        self.apps_heap: list[tuple[Any, ...]] = []
        """Of a leaf that orders applications as a whole: what is in line, as key, stamp and application."""
        self.changed_children: list[Queue] = []
        self.changed_apps: list[Application] = []
        self.changed_leaves: list[Queue] = []
        """Of the root: leaves with applications whose place in line is to be worked out anew."""
        self.stamp = 0
        """The number of its entry among its siblings; 0: it has none."""
        self.stamps = 0
        """Of the root: the last number that an entry of any line got."""
        self.touched = False

    def next_stamp(self) -> int:
        """A number for one more entry of a line; all lines of a partition count together."""
        root = self.lineage[-1]
        root.stamps += 1
        return root.stamps

    def touch(self) -> None:
        """Something its place among its siblings depends on has changed."""
        if not self.touched and self.parent is not None:
            self.touched = True
            self.parent.changed_children.append(self.lineage[0])

    def touch_app(self, app: Application) -> None:
        """The application's place in line may have changed, or it has something new to offer."""
        if not app.touched:
            app.touched = True
            if not self.changed_apps:
                self.lineage[-1].changed_leaves.append(self.lineage[0])
            self.changed_apps.append(app)

    def forget_lines(self) -> None:
        """What comes before what may be decided by other criteria now: keys made before cannot be compared with new
        ones. The caller touches every child and every application that waits.
        """
        self.child_heap.clear()
        self.heap.clear()
        self.improved.clear()
        self.apps_heap.clear()
        for app in self.applications.values():
            app.order_key = ()
            app.stamp = 0
            for batch in app.batches.values():
                batch.demand.take_out(batch)
                app.out_of_line[batch] = None
        for demand in self.every_demand():
            demand.line.clear()
            demand.improved.clear()
            demand.stamp = 0
        for child in self.children.values():
            child.stamp = 0

    def every_demand(self) -> list[Demand]:
        """All demands of this leaf."""
        return [demand for own in self.demands.values() for demand in own.values()]

    def demand(self, shape: Shape, key: DemandKey) -> Demand:
        """The demand of this leaf for `key`, made when it is new."""
        own = self.demands.setdefault(shape, {})
        found = own.get(key)
        if found is None:
            found = own[key] = Demand(self.lineage[0], shape, key)
            shape.demands[found] = None
            # A queue that is full for the shape knows that longer than anything of it waits below.
            if any(shape in queue.full for queue in self.lineage):
                shape.held_up = True
        return found

    def drop_demand(self, demand: Demand) -> None:
        """Forget a demand that no batch has any longer."""
        own = self.demands[demand.shape]
        del own[demand.key]
        del demand.shape.demands[demand]
        if not own:
            del self.demands[demand.shape]
        demand.stamp = 0
        self.improved.pop(demand, None)
        if demand.obstacle is not None:
            demand.unblock()

    def offer(self, demand: Demand) -> None:
        """A demand of this leaf has something in line and no obstacle from now on."""
        shape = demand.shape
        for queue in self.lineage:
            count = queue.ready.get(shape, 0)
            if not count:
                queue.touch()
            queue.ready[shape] = count + 1
        self.rank(demand)

    def rest_beside(self, obstacle: Obstacle) -> None:
        """What else waits in this leaf and lacks room under the same maximum, its own or that of a user or group, rests
        too until that has room. What has to enter is left out: a closed gate counts first, and it is another one.
        """
        for shape in [each for each in self.ready if obstacle.lacks(each.items)]:
            for demand in list(self.demands[shape].values()):
                if demand.live and demand.obstacle is None and not demand.enters:
                    over = demand.allowance.short_of_room(shape.items) if demand.allowance is not None else None
                    if (over or self) is obstacle:
                        demand.block(obstacle)

    def offer_no_more(self, demand: Demand) -> None:
        """It has nothing in line any longer, or something is in the way."""
        shape = demand.shape
        demand.stamp = 0
        for queue in self.lineage:
            left = queue.ready[shape] - 1
            if left:
                queue.ready[shape] = left
            else:
                del queue.ready[shape]
                if not queue.ready:
                    queue.touch()

    def rank(self, demand: Demand) -> None:
        """The first entry of a demand that is ready has become another one: its place in this leaf follows."""
        first = demand.first()
        if first is None:
            return
        demand.stamp = self.next_stamp()
        heap = self.heap
        heappush(heap, (first[0], demand.stamp, demand))
        if len(heap) > self.tidy_at:
            heap[:] = [entry for entry in heap if entry[2].stamp == entry[1]]
            heapify(heap)
            self.tidy_at = 2 * len(heap) + 64

    def note_due(self, batch: Batch) -> None:
        """A batch of this leaf may have others stopped by guarantee now."""
        if not self.due:
            for queue in self.lineage:
                queue.due_below += 1
                queue.touch()
        self.due[batch] = None

    def drop_due(self, batch: Batch) -> None:
        """It may not any longer."""
        if batch in self.due:
            del self.due[batch]
            if not self.due:
                for queue in self.lineage:
                    queue.due_below -= 1
