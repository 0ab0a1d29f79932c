"""Nominated asks: place those for which room is kept, as soon as it is enough.

Decides for nominated asks only. Never takes other space than what an ordinary placement could take too.
"""

from __future__ import annotations

from fairlead.core.acts import allocations, nominate
from fairlead.core.books import nominations
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask, counts_as_gone
from fairlead.core.books.demand import Shape
from fairlead.core.books.eviction_history import FRUITLESS_MAX
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.decisions import LoopBroken
from fairlead.core.model.resources import add_to, fits_in, take_from
from fairlead.policy.eligibility.limits import full_ceiling, may_run
from fairlead.policy.eligibility.max_wait import gathers_room
from fairlead.policy.order.effective_priority import is_stronger, weaker_than
from fairlead.policy.order.pick import Lines
from fairlead.policy.place.reserved import where_it_stays


def place_nominated(partition: Partition, lines: Lines) -> Ask | None:
    """Place the first nominated ask, in the order of nominations, whose space is free by now; None when there is none.

    So it is in YuniKorn's walk, where room is kept only for what takes it back from idle work or waited too long. None
    starts where one that requires the node would stop it in this call: that takes the room in its own turn.
    """
    for ask in list(partition.nominations):
        node = Places(partition).of(ask)
        if node is not None:
            stays = where_it_stays(partition, lines, ask, node, or_else=_may_go_elsewhere(partition, ask))
            if stays is not None:
                allocations.place(partition, ask, stays)
                return ask
        elif not nominations.something_leaves(partition, ask) and not gathers_room(partition, ask):
            start_over(partition, ask)
    return None


Alike = tuple[Queue, Shape, int, bool]
"""Leaf, shape and priority of a nominated ask, and whether room only gathers for it."""


class Places:
    """Where nominated asks can start, as things are: what is the same for all that are alike is found once."""

    __slots__ = ("_has_room_above", "_may_run", "_nowhere_else", "_partition")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._may_run: dict[tuple[Application, Alike], bool] = {}
        self._has_room_above: dict[tuple[Application, Alike], bool] = {}
        """Beside all that is kept for others."""
        self._nowhere_else: dict[Alike, None] = {}
        """Where only room counts: those that have room on no node but maybe their own."""

    def of(self, ask: Ask) -> Node | None:
        """Where a nominated ask can start now: the node where room is kept for it, else where there is room now."""
        partition, shape, nomination = self._partition, ask.shape, ask.nomination
        assert shape is not None
        assert nomination is not None
        alike, node = (ask.app.queue, shape, ask.priority, nomination.gathers), nomination.node
        if (ask.app, alike) not in self._may_run:
            self._may_run[ask.app, alike] = _may_run(partition, ask)
            self._has_room_above[ask.app, alike] = _has_room_above(partition, ask, [])
        if not self._may_run[ask.app, alike]:
            return None
        if not self._has_room_above[ask.app, alike] and not _leaves_room_above(partition, ask):
            return None
        if node.takes(ask) and _has_room(node, ask) and _suits(partition, ask, node):
            return node
        if shape.required_node or alike in self._nowhere_else:
            return None
        found = self._elsewhere(ask, alike)
        if found is None and partition.nodes.only_room_counts(shape):
            self._nowhere_else[alike] = None
        return found

    def _elsewhere(self, ask: Ask, alike: Alike) -> Node | None:
        partition, shape = self._partition, alike[1]
        weaker = weaker_than(partition, ask)
        if (kept := _kept_for_weaker(partition, ask, weaker)) is not None:
            return kept
        if not _may_go_elsewhere(partition, ask):
            return None
        if partition.nodes.only_room_counts(shape):
            return partition.nodes.first_for(shape, ask) if not shape.unfit else None
        # What is kept for itself elsewhere is not in its way, as it is in that of its equals; nor, where rank decides,
        # what is kept elsewhere for weaker ones.
        return partition.nodes.first_of(partition.nodes.with_room(ask, weaker), ask)


def _may_go_elsewhere(partition: Partition, ask: Ask) -> bool:
    """Whether it may start in room that is not kept for it: no more than others leave. Room that only gathers is in the
    way of none for which work was stopped.
    """
    if ask.nomination is not None and ask.nomination.gathers:
        return True  # What it leaves to those that go before it was looked at (`_leaves_room_above`).
    but = (ask, *_gathering(partition, ask))
    return nominations.queue_short_of_kept(partition, ask.app.queue, ask.items, but) is None


def _kept_for_weaker(partition: Partition, ask: Ask, weaker: list[Ask]) -> Node | None:
    """Of the nodes with room for the ask, if what is kept there for weaker ones does not count, that it likes best."""
    places = {other.nomination.node: None for other in weaker if other.nomination is not None}
    found = [n for n in places if n.is_open and _has_room(n, ask) and partition.nodes.suits(ask, n, weaker)]
    return partition.nodes.first_of(found, ask)


def _suits(partition: Partition, ask: Ask, node: Node) -> bool:
    """Whether nothing but room keeps it off its node, where what is kept for those that come after it does not."""
    return partition.nodes.suits(ask, node) or partition.nodes.suits(ask, node, _behind(partition, ask))


def _goes_before(other: Ask, ask: Ask, *, is_earlier: bool) -> bool:
    """Whether what is kept for another nominee is kept from this one: for one that is nominated earlier; where rank
    decides for no weaker one, and for a stronger one whenever that was.
    """
    if not ask.app.queue.by_rank:
        return is_earlier
    return is_stronger(other, ask) or (is_earlier and not is_stronger(ask, other))


def _behind(partition: Partition, ask: Ask) -> list[Ask]:
    """All other nominees that do not go before it."""
    found, is_earlier = list[Ask](), True
    for other in partition.nominations:
        if other is ask:
            is_earlier = False
        elif not _goes_before(other, ask, is_earlier=is_earlier):
            found.append(other)
    return found


def _has_room_above(partition: Partition, ask: Ask, behind: list[Ask]) -> bool:
    """Whether queues and limits have room for it beside what is kept there for all others but these."""
    if nominations.queue_short_of_kept(partition, ask.app.queue, ask.items, (ask, *behind)) is not None:
        return False
    return nominations.limit_short_of_kept(partition, ask, tuple(behind)) is None


def _leaves_room_above(partition: Partition, ask: Ask) -> bool:
    """Whether they have it beside what is kept there for those that go before it: they empty for these, and it takes
    none of that. Room that only gathers is in the way of none for which work was stopped.
    """
    return _has_room_above(partition, ask, _behind(partition, ask) + _gathering(partition, ask))


def _gathering(partition: Partition, ask: Ask) -> list[Ask]:
    """Those for which room only gathers, where work was stopped for this one."""
    held = partition.nominations.of
    if not partition.reserving.of or held[ask].gathers:
        return []
    return [other for other, its in held.items() if its.gathers]


def yield_room(partition: Partition, node: Node) -> None:
    """Work has started in room that was kept for weaker asks: those that will lack it, when all has left that was told
    to for others (be it overdue), wait in line again.
    """
    left = dict(node.free)
    for running in node.allocations if node.held else ():
        if counts_as_gone(running) or running.overdue:
            add_to(left, running.items)
    while any(amount < 0 for amount in left.values()):
        nominees = [a for a in node.held if a.nomination is not None]
        if not nominees:
            return
        weakest = nominees[0]
        for other in nominees[1:]:
            if not is_stronger(other, weakest):
                weakest = other
        add_to(left, node.held[weakest])
        nominate.lose(partition, weakest)


def start_over(partition: Partition, ask: Ask) -> None:
    """What a nominated ask waited for is gone, and it still cannot run (its queue filled up, the node shrank): it waits
    in line again. If work was stopped for it, that was for nothing: whatever takes the room each time, stopping more of
    it will not help.
    """
    node = ask.held_on
    assert node is not None
    nominate.withdraw(partition, ask)
    if not ask.preempt_triggered:
        return
    ask.preempt_triggered = False
    if partition.disruption.note_fruitless(ask, node, partition.now_ms):
        partition.out.append(LoopBroken(ask.app.id, ask.key, node.id, "", FRUITLESS_MAX, partition.name))


def _has_room(node: Node, ask: Ask) -> bool:
    """Whether it fits beside the asks for which room was kept before; where rank decides, weaker ones do not count, and
    stronger ones do whenever they came.
    """
    if len(node.held) == (ask in node.held) or not fits_in(ask.items, node.available):
        return fits_in(ask.items, node.available)
    left = dict(node.available)
    is_earlier = True
    for holder, items in node.held.items():
        if holder is ask:
            is_earlier = False
        elif holder.replaces is not None or _goes_before(holder, ask, is_earlier=is_earlier):
            take_from(left, items)
    return fits_in(ask.items, left)


def _may_run(partition: Partition, ask: Ask) -> bool:
    app = ask.app
    if not may_run(app) or full_ceiling(app, ask.items) is not None:
        return False
    if app.queue.short_of_room(ask.items) is not None or not partition.nodes.sum_has_room(ask.items):
        return False
    # Room that only gathered is taken where that leaves enough for those for which work was stopped.
    if ask.nomination is None or not ask.nomination.gathers:
        return True
    return nominations.queue_short_of_kept(partition, partition.root, ask.items, (ask,)) is None
