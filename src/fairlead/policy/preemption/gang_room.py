"""Gang room: whether all of a gang that waits could have room if all work went that may be stopped for it.

Decides whether anything is worth being stopped for a placeholder by priority: where not all others of its gang that
wait could have room too, it would be stopped for nothing. `eligibility.gang_size` says the same of a gang for which
nothing is ever enough. Never finds the room, and keeps no placeholder from what is free. Invariant: it says no only
where nothing that may be stopped makes the gang whole as things are, or where the limit of its user or group leaves too
little (for that idle work alone is stopped). That it is within a guarantee once work of its own queue has gone is not
foreseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.demand import Shape
from fairlead.core.books.idle_work import payer
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import Book, Items, add_to, lacks, negative, take_from
from fairlead.policy.eligibility.gang_size import GangSizes, apart_by, keeps_apart
from fairlead.policy.order.effective_priority import Reach, weaker_than
from fairlead.policy.order.victim_index import Stoppable
from fairlead.policy.order.victim_levels import ROUNDING, Numbers
from fairlead.policy.preemption.side_by_side import Members, have_room


class GangRoom:
    """What was found of gangs in one look, in which nothing starts or is told to stop."""

    __slots__ = ("_could_be", "_partition", "_sizes", "_table", "in_vain")

    def __init__(self, partition: Partition, table: Stoppable) -> None:
        self._partition, self._table = partition, table
        self._sizes = GangSizes(partition)
        self._could_be: dict[Application, bool] = {}
        """Whether a gang could be whole."""
        self.in_vain: dict[Batch, None] = {}
        """Batches of which it is known that they would have work stopped for nothing."""

    def are_too_large(self, ask: Ask) -> bool:
        """Whether nothing is ever enough for the gang of this ask, and no room is kept that it could have."""
        return self._sizes.are_too_large(ask) and not weaker_than(self._partition, ask)

    def is_in_vain(self, ask: Ask, before_seq: int) -> bool:
        """Whether what would be stopped for this ask would be stopped for nothing. Never for one for which something
        was stopped already; that room gathers for it (`wait.max`) is no reason. `before_seq`: those of its batch that
        came before that would find the same.
        """
        app = ask.app
        is_gang = ask.spec.placeholder and app.state is State.ACCEPTED and bool(app.spec.placeholder_ask)
        if not is_gang or (ask.nomination is not None and not ask.nomination.gathers):
            return False
        if app not in self._could_be:
            self._could_be[app] = self._could_be_whole(app)
        batch = ask.batch
        if not self._could_be[app] and batch is not None and batch.newest_seq < before_seq:
            self.in_vain[batch] = None
        return not self._could_be[app]

    def _could_be_whole(self, app: Application) -> bool:
        """Shape by shape on the nodes, and all of it there, in the queues above, and within the limits."""
        waiting, needed = _waiting_by_shape(app), dict[str, int]()
        strongest = {shape: max(asks, key=attrgetter("priority")) for shape, asks in waiting.items()}
        # What one of them has stopped may leave room for others, too.
        may_go = MayGo(self._partition, list(strongest.values()))
        free, members = self._free(may_go), list[Members]()
        for shape, asks in waiting.items():
            ask = strongest[shape]
            each = Members(shape.items, len(asks), self._usable(shape, ask), apart_by(ask.spec))
            if _copies(shape, free, each) < len(asks):
                return False
            members.append(each)
            add_to(needed, tuple((name, amount * len(asks)) for name, amount in shape.items))
        if len(members) > 1 and not have_room(members, free):
            return False
        for ask, nomination in self._partition.nominations.of.items():
            if ask.app is app and not nomination.gathers:  # Else it is in line.
                add_to(needed, ask.items)
        items = tuple(needed.items())
        if any(lacks(ceiling.max, self._stays_under(ceiling), items) for ceiling in app.ceilings):
            return False
        above = [queue for queue in app.queue.lineage[:-1] if queue.max is not None]
        given = list(may_go.given(self._table)) if above else []
        return not any(lacks(queue.max, _stays_in(queue, given), items) for queue in above)

    def _stays_under(self, ceiling: Ceiling) -> Book:
        """What is in use of a limit without idle work: that alone gives back there."""
        book = dict(ceiling.allocated)
        for running in self._partition.idle.running:
            if ceiling in running.app.ceilings:
                take_from(book, running.items)
        return book

    def _free(self, may_go: MayGo) -> dict[str, Numbers]:
        """What is free on each node once all has gone that may."""
        self._table.keep_up(self._partition)
        room = self._table.room_beyond(may_go.stands_below, [*may_go.idle, *may_go.nominated])
        return {name: np.maximum(column, 0.0) for name, column in room.items()}

    def _usable(self, shape: Shape, ask: Ask) -> npt.NDArray[np.bool_]:
        """The nodes that suit the ask, but for their room, and where none like it of its gang is."""
        nodes = self._partition.nodes
        nodes.columns.sync()
        if shape.required_node:
            among = np.zeros_like(self._table.open)
            among[[node.row for node in (nodes.nodes.get(shape.required_node),) if node is not None]] = True
            return among
        ground = nodes.terrain.ground(shape.where)
        among = ground.named & ground.tolerated & self._table.open
        if keeps_apart(ask.spec):
            among[[place.row for place in _places_of(ask)]] = False
        return among


class MayGo:
    """What may be stopped for some asks, each of them or another."""

    def __init__(self, partition: Partition, asks: list[Ask]) -> None:
        self._reaches = [Reach(partition, ask) for ask in asks]
        self._all_idle = [a for a in partition.idle.running if a.evict_cause is None]
        self.idle = [a for a in self._all_idle if not self.stands_below(a.app.queue, a.priority)]
        """Idle work that only gives way because it is idle."""
        weaker = chain.from_iterable(weaker_than(partition, ask) for ask in asks)
        apps, held = {ask.app: None for ask in asks}, partition.nominations.of.items()
        own = (ask for ask, nomination in held if nomination.gathers and ask.app in apps)
        self.nominated = list(dict.fromkeys((*weaker, *own)))
        """What has room kept for it, and gives that up: room that gathers for one of them is theirs."""

    def stands_below(self, leaf: Queue, priority: int) -> bool:
        """Whether work of this priority there may be stopped for one of them."""
        return any(priority < reach.below(leaf) for reach in self._reaches)

    def given(self, table: Stoppable) -> Iterator[tuple[Queue, Items]]:
        """What it is, with the queue in whose books."""
        yield from table.sums(self.stands_below)
        for ask in self._all_idle:
            yield payer(ask), ask.items
            if self.stands_below(ask.app.queue, ask.priority):
                yield ask.app.queue, negative(ask.items)  # The table has it in its leaf.


def _stays_in(queue: Queue, given: list[tuple[Queue, Items]]) -> Book:
    """What is in use there without what leaves and what is given."""
    book = dict(queue.allocated)
    take_from(book, tuple(queue.preempting.items()))
    for where, items in given:
        if queue in where.lineage:
            take_from(book, items)
    return book


def _waiting_by_shape(app: Application) -> dict[Shape, list[Ask]]:
    """The placeholders in line."""
    found: dict[Shape, list[Ask]] = {}
    for batch in app.batches.values():
        asks = [ask for ask in batch.asks if ask.spec.placeholder] if not batch.task_group else []
        if asks:
            found.setdefault(batch.demand.shape, []).extend(asks)
    return found


def _places_of(ask: Ask) -> Iterator[Node]:
    """Where others like it, of its gang, stand or have room kept for them."""
    for other in ask.app.asks.values():
        is_in_line = other.nomination is not None and other.nomination.gathers
        node = other.node or (None if is_in_line else other.held_on)
        if node is not None and other.spec.placeholder and other.spec.where == ask.spec.where:
            yield node


def _copies(shape: Shape, room: dict[str, Numbers], members: Members) -> int:
    """How often this shape fits into the room of all nodes together that suit its members."""
    at_most = 1 if members.apart else members.count
    if not shape.items:
        return at_most
    if any(name not in room for name, _ in shape.items):
        return 0
    times = (np.floor(room[name] / amount + ROUNDING) for name, amount in shape.items)
    return int(np.where(members.usable, np.minimum(np.minimum.reduce(list(times)), at_most), 0.0).sum())
