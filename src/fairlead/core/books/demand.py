"""Shapes and demands: what is asked for, so that equal asks are looked at once.

A *shape* is everything about an ask that decides on which node it fits; it is shared by the whole partition. A *demand*
is one shape in one leaf, for the same limits: everything about an ask that decides whether it could be placed now. Its
line holds the batches that wait, by the key that `policy.order.pick` gives them. What fits on a node, or under the
maximum of a queue, is asked of the shape and the queue when a walk comes by (`Shape.unfit`, `Queue.full`). What else is
in the way (a limit of a user, a closed gate, the maximum of the leaf itself) blocks the demand as its *obstacle*, until
that moves. Decides only what is worth looking at; never the order, never a placement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from fairlead.core.model.constraints import ANYWHERE, Constraints
from fairlead.core.model.resources import Book, Items, lacks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.books.applications import Application
    from fairlead.core.books.asks import Ask, Batch
    from fairlead.core.books.queues import Queue
    from fairlead.core.books.topology_counts import Tally
    from fairlead.core.books.user_limits import Allowance

Labels = tuple[tuple[str, str], ...]
ShapeKey = tuple[Items, str] | tuple[Items, str, Constraints, Labels]
DemandKey = tuple[str, "Allowance | None", int]
"""Task group, limits, and whether they have to enter (`application_limits.has_to_enter`)."""
Entry = tuple[tuple[object, ...], int, "Batch"]
"""Key, stamp and batch; it counts while the stamp is the batch's."""
FEW = 32
"""So many entries are put in order at once."""


@dataclass(slots=True, eq=False)
class Shape:
    """Resources and node constraints of an ask; one object for all that are equal in a partition."""

    key: ShapeKey
    items: Items = field(init=False)
    required_node: str = field(init=False)
    is_plain: bool = field(init=False)
    """It has no constraints, and no label that matters to anybody."""
    where: Constraints = ANYWHERE
    labels: Labels = ()
    """Those of its labels that some term looks at, sorted."""
    watched: tuple[Tally, ...] = ()
    """While it is unfit: the running work whose start or end may change that (`core.books.constraints_index`)."""
    pending: int = 0
    """Waiting asks of this shape, over all applications; the partition drops the shape at 0."""
    demands: dict[Demand, None] = field(default_factory=dict)
    """What waits with it, leaf by leaf."""
    oldest_ms: int = 2**62
    """No ask that waits with it was created before this time."""
    unfit: bool = False
    """No node had room when last looked, and none that could take it gained room since."""
    held_up: bool = False
    """A queue or limit may be in the way of one of its demands; never forgotten where one is."""
    blocked_by_root: bool = False
    """It was unfit because of the sum of all nodes, not because of each single one."""
    reserved: dict[Queue, dict[Ask, None]] = field(default_factory=dict)
    """By leaf, asks with a reserved node that are tried again when it may fit elsewhere."""
    resting: dict[Batch, None] = field(default_factory=dict)
    """Batches that make no attempt to preempt while no node could hold the shape (`core.acts.infeasible`)."""

    def __post_init__(self) -> None:
        self.items, self.required_node = self.key[:2]
        self.is_plain = len(self.key) == 2
        if len(self.key) == 4:
            self.where, self.labels = self.key[2:]

    def watched_by(self, ask: Ask, _again: dict[Ask, None]) -> None:
        """An ask with a reserved node is tried again when it may fit elsewhere (`NodeTable.clear_unfit`)."""
        self.reserved.setdefault(ask.app.queue, {})[ask] = None

    def watched_no_more(self, ask: Ask) -> None:
        """It is no longer."""
        leaf = ask.app.queue
        self.reserved[leaf].pop(ask)
        if not self.reserved[leaf]:
            del self.reserved[leaf]

    def demands_in_line(self) -> list[Demand]:
        """Every demand that waits with it and may be looked at."""
        return [demand for demand in self.demands if demand.live]


class Demand:
    """One shape in one leaf, under the same limits: what waits with it, in order."""

    __slots__ = (
        "allowance",
        "asks",
        "deferred",
        "enters",
        "improved",
        "key",
        "leaf",
        "line",
        "live",
        "obstacle",
        "pending",
        "seek_ms",
        "seeker",
        "shape",
        "stamp",
        "tried",
    )

    def __init__(self, leaf: Queue, shape: Shape, key: DemandKey) -> None:
        self.leaf = leaf
        self.shape = shape
        self.key = key
        self.allowance: Allowance | None = key[1]
        """The limits of the user and group that it is for; None: no limit holds for them."""
        self.enters = key[2]
        """Whether it is of applications that need a place among those that may run (`has_to_enter`)."""
        self.pending = 0
        """Batches that refer to it; the leaf drops it at 0."""
        self.asks = 0
        """How many asks these are: what waits in a leaf is summed up by this, not ask by ask."""
        self.line: list[Entry] = []
        """Heap of the batches in line."""
        self.live = 0
        """How many batches are in line."""
        self.improved: dict[Batch, None] = {}
        """Batches in line that come earlier than their entries say: put anew when the demand is next looked at."""
        self.stamp = 0
        """The number of its entry in the heap of its leaf; 0: it has none."""
        self.obstacle: Obstacle | None = None
        """What is in the way above the nodes and wakes it when that moves; None: nothing known."""
        self.deferred: dict[Batch, None] = {}
        """Batches that would have others stopped by guarantee, but for a limit or gate that is in the way."""
        self.tried = -1
        """The state of things in which nothing could be stopped for its first ask (`reclaim_idle.note_tried`)."""
        self.seek_ms = 0
        """None of its asks waits long enough to have a node set aside before this time."""
        self.seeker: tuple[tuple[object, ...], Ask, int] | None = None
        """The first that does, its place in line, and until when that is so; None: not known (`place.reserved`)."""

    # -- the line -------------------------------------------------------------------------------------------------

    def put(self, key: tuple[object, ...], stamp: int, batch: Batch) -> None:
        """The batch is in line under this key from now on, and under no other."""
        line = self.line
        is_first = not self.live
        if not batch.stamp:
            self.live += 1
        batch.stamp = stamp
        heappush(line, (key, stamp, batch))
        if len(line) > 4 * self.live + 32:
            line[:] = [each for each in line if each[2].stamp == each[1]]
            heapify(line)
        if self.obstacle is None:
            if is_first:
                self.leaf.offer(self)
            elif line[0][1] == stamp or ((first := self.first()) is not None and first[1] == stamp):
                self.leaf.rank(self)

    def take_out(self, batch: Batch) -> None:
        """The batch is in line no longer."""
        if batch.stamp:
            batch.stamp = 0
            self.improved.pop(batch, None)
            self.live -= 1
            if not self.live:
                # None of them counts any more; what they hold is free at once, without a search for circles.
                self.line.clear()
                if self.obstacle is None:
                    self.leaf.offer_no_more(self)

    def hold(self, batch: Batch) -> None:
        """The batch waits with this demand from now on, in no line yet."""
        self.pending += 1
        self.asks += len(batch)

    def forget(self, batch: Batch) -> None:
        """The batch waits with this demand no longer."""
        self.take_out(batch)
        self.leaf.drop_due(batch)
        self.deferred.pop(batch, None)
        self.pending -= 1
        self.asks -= len(batch)
        if not self.pending:
            self.leaf.drop_demand(self)

    def first(self) -> Entry | None:
        """The first entry that counts."""
        line = self.line
        while line:
            entry = line[0]
            if entry[2].stamp == entry[1]:
                return entry
            heappop(line)
        return None

    def entries(self) -> Iterator[Entry]:
        """All that count, in order; mostly the first few are enough, so no more is put in order."""
        if self.first() is None:
            return
        if len(self.line) <= FEW:
            self.line.sort()  # It is a heap still.
            yield from [entry for entry in self.line if entry[2].stamp == entry[1]]
            return
        line = self.line[:]
        nearest = [(line[0], 0)]
        while nearest:
            entry, at = heappop(nearest)
            if entry[2].stamp == entry[1]:
                yield entry
            for below in range(2 * at + 1, min(2 * at + 3, len(line))):
                heappush(nearest, (line[below], below))

    # -- obstacles ------------------------------------------------------------------------------------------------

    def block(self, obstacle: Obstacle, at_gate: bool = False) -> None:
        """This is in the way (its maximum, or how many applications it lets run): it rests until that moves."""
        if self.obstacle is not None:
            self.unblock()
        elif self.live:
            self.leaf.offer_no_more(self)
        self.obstacle = obstacle
        self.shape.held_up = True
        (obstacle.gated if at_gate else obstacle.waiting)[self] = None

    def unblock(self) -> None:
        """Forget what is in the way, without looking again."""
        known = self.obstacle
        assert known is not None
        known.waiting.pop(self, None)
        known.gated.pop(self, None)
        self.obstacle = None

    def wake(self) -> None:
        """What was in the way may have moved: it is looked at again."""
        if self.obstacle is not None:
            self.unblock()
            self.tried = -1
            if self.live:
                self.leaf.offer(self)
        for batch in self.deferred:
            self.leaf.note_due(batch)
        self.deferred.clear()


class Obstacle:
    """What may be in the way of demands above the nodes: a queue, or a limit of a user or group there."""

    __slots__ = ("allocated", "full", "gated", "max", "max_applications", "promised", "reserved", "waiting")

    def __init__(self) -> None:
        self.max: dict[str, int] | None = None
        """What may be in use here; None: any amount."""
        self.allocated: Book = {}
        """What is in use here."""
        self.full: dict[Shape, None] = {}
        """Of a queue: shapes for which this maximum has no room, as far as is known; emptied whenever room is made."""
        self.max_applications = 0
        """So many applications may count here; 0: any number."""
        self.waiting: dict[Demand, None] = {}
        """Demands that are woken when room is made under its maximum (of a queue: those of the leaf itself)."""
        self.gated: dict[Demand, None] = {}
        """Demands that are woken when an application less counts here."""
        self.reserved: dict[Ask, dict[Ask, None]] = {}
        """Asks with a reserved node that are tried there again when either happens: each with the list of those."""
        self.promised: dict[Application, int] = {}
        """Applications with nominated asks, and how many of those: their place is kept (`application_limits`)."""

    def lacks(self, items: Items) -> bool:
        """Whether the maximum has no room for this amount."""
        return lacks(self.max, self.allocated, items)

    def count_applications(self) -> int:
        """How many applications count here, those apart that are kept a place."""
        raise NotImplementedError

    def counts(self, app: Application) -> bool:
        """Whether an application that is accepted only is one of these."""
        raise NotImplementedError

    def wake_waiting(self) -> None:
        """Room was made: wake every demand that would get past this maximum now."""
        self.full.clear()
        self._try_reserved()
        for demand in list(self.waiting):
            if not self.lacks(demand.shape.items):
                demand.wake()

    def open_gate(self) -> None:
        """One application less counts here: wake those that may not run because of it."""
        self._try_reserved()
        for demand in list(self.gated):
            demand.wake()

    def watched_by(self, ask: Ask, again: dict[Ask, None]) -> None:
        """An ask with a reserved node is put into `again` when room is made here, or a place for an application."""
        self.reserved[ask] = again

    def watched_no_more(self, ask: Ask) -> None:
        """It is no longer."""
        self.reserved.pop(ask)

    def _try_reserved(self) -> None:
        for ask, again in self.reserved.items():
            again[ask] = None
