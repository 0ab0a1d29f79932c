"""Gang deadlock: gangs that each hold a part of what the others lack, so that none of them is whole.

Decides, where a run found nothing more to do, which of the gangs that are not whole give their placeholders back: the
first in order (the higher effective priority, then the older) that can be whole by that gets through, and of those
behind it as few as it takes give way, the last first. (One that not even the empty cluster could hold gives way
wherever it stands.) It does not wait until other work has ended: many gangs that each hold a part would leave no room
for anything else meanwhile. Never stops real work.

Invariant: a gang that gave way holds nothing until the one that it gave way to is whole, gone, or cannot be whole any
more; it gives way to the same one twice at most, until capacity changes or an hour has passed, so that the rule cannot
go round in circles.
Whether a gang would be whole is worked out placeholder by placeholder, on the first node that has room; those for which
work was stopped have theirs.
"""

from __future__ import annotations

from collections.abc import Collection

from fairlead.core.acts import gangs, nominate, reserve_node
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import Book, add_to, fits_in, lacks, take_from
from fairlead.policy.eligibility.max_wait import waits_for_turn
from fairlead.policy.order.effective_priority import rank
from fairlead.policy.preemption.protection import look_again
from fairlead.policy.preemption.victims import by_node


def resolve_one(partition: Partition) -> bool:
    """Break one deadlock of gangs; whether anything was done. Called when nothing else can be."""
    held = [partition.applications[name] for name in partition.root.allocating_accepted]
    parted = _let_go(partition, held)
    waiting = sorted((app for app in held if _is_not_whole(app)), key=_place)
    # Until what others gave back for one of them has left, nothing more is asked for.
    is_leaving = any(any(later.placeholders.values()) for first in waiting for later in first.awaited_by)
    if len(waiting) < 2 or is_leaving:
        return parted
    for first in waiting:
        if any(waits_for_turn(partition, ask) for ask in _lacking(first)):
            continue  # Until that turn is over, room would be of no use to it.
        giving = _who_gives_way(partition, first, waiting)
        if giving:
            for later in giving:
                _give_way(partition, later, first)
            return True
    return parted


def _is_not_whole(app: Application) -> bool:
    """Whether it holds placeholders, and more of them are in line. One that gave way holds nothing that stays; one
    whose last placeholders are nominated is whole as soon as work has left that was told to.
    """
    if app.state is not State.ACCEPTED or app.gives_way_to is not None or not app.standing():
        return False
    return any(ask.spec.placeholder for batch in app.batches.values() for ask in batch.asks)


def _lacking(app: Application) -> list[Ask]:
    """Its placeholders that wait for room, in line or nominated, in order."""
    return [ask for ask in app.waiting_asks() if ask.spec.placeholder]


def _nominated(app: Application, *, gathers: bool) -> list[Ask]:
    """Those for which room is kept: for which work was stopped, or for which it only gathers."""
    lacking = ((ask, ask.nomination) for ask in _lacking(app))
    return [ask for ask, nomination in lacking if nomination is not None and nomination.gathers is gathers]


def _place(app: Application) -> tuple[int, int, int]:
    """Order among gangs that wait for room: 1. the higher priority as seen at the root, 2. submitted earlier,
    3. arrived earlier.

    By age alone a gang could give way to one that it stops again as soon as that is whole.
    """
    priority = max(ask.priority for ask in _lacking(app))
    return (-rank(app.queue, priority)[0], app.submitted_ms, app.seq)


def _let_go(partition: Partition, held: list[Application]) -> bool:
    """Nothing waits for a gang that lacks nothing any more, nor for one that not even the empty cluster could hold. In
    the place of what it was told to give up another one may come.
    """
    awaited = [app for app in held if app.awaited_by]
    in_vain = [app for app in awaited if not (_is_to_come(app) and _fits_alone(partition, app))]
    for app in in_vain:
        gangs.part_ways(app)
    return bool(in_vain)


def _is_to_come(app: Application) -> bool:
    """Whether some placeholder of it waits, or was told to go."""
    return any(a.pending or a.evict_cause is not None for a in app.asks.values() if a.spec.placeholder)


def _who_gives_way(partition: Partition, first: Application, waiting: list[Application]) -> list[Application]:
    """The gangs whose placeholders `first` needs to be whole, the last first; none if they do not suffice. `waiting` is
    in order.
    """
    before = waiting[: waiting.index(first)]
    giving: list[Application] = []
    for gang in reversed(waiting):
        if gang is first or (gang in before and _fits_alone(partition, gang)):
            continue
        if (until_ms := partition.disruption.stays_until(gang, first, partition.now_ms)) is not None:
            look_again(partition, until_ms)
            continue
        giving.append(gang)
        if _would_be_whole(partition, first, AsItIs(first, giving)):
            break
    else:
        return []
    for gang in list(giving):
        fewer = [other for other in giving if other is not gang]
        if fewer and _would_be_whole(partition, first, AsItIs(first, fewer)):
            giving = fewer
    return giving


def _give_way(partition: Partition, later: Application, first: Application) -> None:
    """`later` gives back what it holds and gets nothing until `first` is whole or gone."""
    name = f"{first.id}/{_lacking(first)[0].key}"
    gangs.give_way(later, first)
    partition.disruption.note_gave_way(later, first, partition.now_ms)
    for ask in later.waiting_asks():
        nominate.lose(partition, ask)
        reserve_node.unreserve(partition, ask)
    text = f"given back so that gang {first.id} gets through: both held a part of what the other lacks"
    gangs.give_back(partition, later, name, text)


# -- whether a gang would be whole --------------------------------------------------------------------------------


class Empty:
    """The cluster for one gang if all had ended that runs now, but for its own placeholders."""

    def __init__(self, partition: Partition, app: Application) -> None:
        self._partition, self._app = partition, app
        self._kept = by_node([*app.standing(), *_nominated(app, gathers=False)])

    def free_on(self, node: Node) -> Book | None:
        """What the node would have free."""
        free = dict(node.total)
        take_from(free, tuple(node.occupied.items()))
        for ask in self._kept.get(node, ()):
            take_from(free, ask.items)
        return free

    def used_of(self, place: Queue | Ceiling) -> Book:
        """What would be in use of a queue or limit."""
        return _held_by(self._app) if place in _places(self._app) else {}

    def gone(self) -> tuple[Ask, ...]:
        """What would not run, nor have room kept, any more and is therefore no neighbour."""
        nodes = self._partition.nodes.nodes.values()
        others = (ask for node in nodes for ask in (*node.allocations, *node.held))
        return tuple(ask for ask in others if ask.app is not self._app)


class AsItIs:
    """The cluster for one gang as it is, without the placeholders of the gangs that give way, and what is kept for
    them. Room that gathers for the gang itself is room for any of its members.
    """

    def __init__(self, app: Application, giving: Collection[Application]) -> None:
        self._app = app
        self._giving = giving
        self._given = by_node(
            [
                *(ask for other in giving for ask in other.standing()),
                *(ask for other in giving for ask in _lacking(other) if ask.nomination is not None),
                *_nominated(app, gathers=True),
            ]
        )

    def free_on(self, node: Node) -> Book | None:
        """What the node has free; None where it is set aside for others."""
        if any(ask.app is not self._app and ask.app not in self._giving for ask in node.reservations):
            return None
        free = dict(node.free)
        for ask in self._given.get(node, ()):
            add_to(free, ask.items)
        return free

    def used_of(self, place: Queue | Ceiling) -> Book:
        """What is in use of a queue, but for what was told to stop, or of a limit."""
        book = dict(place.allocated)
        if isinstance(place, Queue):  # Members for which that was stopped would count beside it.
            take_from(book, tuple(place.preempting.items()))
        for app in self._giving:
            if place in _places(app):
                take_from(book, tuple(_held_by(app).items()))
        return book

    def gone(self) -> tuple[Ask, ...]:
        """What would not run any more and is therefore no neighbour."""
        return tuple(ask for given in self._given.values() for ask in given)


def _held_by(app: Application) -> Book:
    """What its placeholders have; of those that were told to go others have it by now."""
    book: Book = {}
    for ask in app.standing():
        add_to(book, ask.items)
    return book


def _places(app: Application) -> tuple[Queue | Ceiling, ...]:
    """Every queue and limit that it counts in."""
    return (*app.queue.lineage, *app.ceilings)


def _would_be_whole(partition: Partition, app: Application, cluster: Empty | AsItIs) -> bool:
    """Whether all its placeholders that wait would find room in such a cluster."""
    waiting = _lacking(app)
    needed: Book = {}
    for ask in waiting:
        add_to(needed, ask.items)
    if any(lacks(place.max, cluster.used_of(place), tuple(needed.items())) for place in _places(app)):
        return False
    terrain = partition.nodes.terrain
    are_choosy = any(ask.where is not ANYWHERE for ask in waiting)
    gone = cluster.gone() if are_choosy or terrain.counted or terrain.repellers.tallies else ()
    free: dict[Node, Book | None] = {}
    placed = dict.fromkeys(_nominated(app, gathers=False))
    found = 0
    for ask in [ask for ask in waiting if ask not in placed]:
        node = _finds_room(partition, ask, cluster, free, gone)
        if node is None:
            break
        if are_choosy:
            terrain.suppose(ask.spec, node)  # The next one may keep apart from it.
        found += 1
    terrain.suppose_no_more()
    return found + len(placed) == len(waiting)


def _fits_alone(partition: Partition, app: Application) -> bool:
    """Whether the cluster could hold all of it if nothing else ran."""
    return _would_be_whole(partition, app, Empty(partition, app))


def _finds_room(
    partition: Partition,
    ask: Ask,
    cluster: Empty | AsItIs,
    free: dict[Node, Book | None],
    gone: tuple[Ask, ...],
) -> Node | None:
    """Give the ask the first node with room, which has less of it then; None: there is none."""
    for node in partition.nodes.nodes.values():
        if not node.takes(ask):
            continue
        if node not in free:
            free[node] = cluster.free_on(node)
        left = free[node]
        if left is not None and fits_in(ask.items, left) and partition.nodes.suits(ask, node, gone):
            take_from(left, ask.items)
            return node
    return None
