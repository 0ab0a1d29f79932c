"""Claims: space and nodes that are kept for an ask that does not run yet.

Decides what a hold (space that victims leave) and a reservation (a whole node out of the ordinary order) mean in the
books, and wakes whoever waited when one ends. Never decides who gets one. Invariant: an ask with a claim waits and has
no other claim, and node and partition know of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core import promises
from fairlead.core.decisions import Reserved, Unreserved
from fairlead.core.resources import add_to, take_from

if TYPE_CHECKING:
    from fairlead.core.applications import Ask
    from fairlead.core.demand import Demand
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue
    from fairlead.core.resources import Book, Items
    from fairlead.core.trackers import Ceiling

RESERVATION_MS = 60 * 60_000
"""A reserved node that its ask has had no use for since then (its queue or user is full) is given up."""


def hold(partition: Partition, ask: Ask, node: Node, victims: tuple[Ask, ...], *, gathers: bool = False) -> None:
    """Keep the space that `victims` leave on `node` for `ask`, and no other space any longer.

    Unless room only `gathers` there, it is a promise, also where nobody has to go: what it took from a weaker ask the
    weaker one would take back else, and so on for ever.
    """
    unhold(partition, ask)
    unreserve(partition, ask)
    node.hold(ask)
    ask.held_on, ask.victims = node, victims
    # Noted now: who has left is not known any more after a restart.
    ask.took_back = bool(victims) and all(victim.spec.idle for victim in victims)
    partition.holds[ask] = None
    if not gathers:
        promises.promise(partition.nodes, ask, node)
    partition.disruption.keep(ask)
    partition.books_version += 1
    partition.nodes.touch(node)
    partition.out.append(Reserved(ask.app.id, ask.key, node.id, partition.name))


def unhold(partition: Partition, ask: Ask) -> None:
    """Keep space for `ask` no longer (it runs, is gone, or somebody more important took the space)."""
    node = ask.held_on
    if node is None:
        return
    node.unhold(ask)
    ask.held_on, ask.victims, ask.took_back = None, (), False
    del partition.holds[ask]
    promises.let_go(partition.nodes, ask)
    partition.disruption.let_go(ask)
    partition.root.wake_waiting()
    partition.nodes.gained(node)
    partition.books_version += 1
    partition.out.append(Unreserved(ask.app.id, ask.key, node.id, partition.name))
    if ask.pending:
        # A node may be set aside for it now: while space was held it sought none.
        ask.app.queue.touch_app(ask.app)


def promised(partition: Partition, place: Queue | Ceiling, but: Ask | None = None) -> Book:
    """What asks under this queue or limit will need for which space is held, `but` one."""
    if place is partition.root:
        return _promised_of_nodes(partition, but)
    kept = partition.disruption.kept.get(place)
    if kept is None or but is None or place not in partition.disruption.keeps(but):
        return kept or {}
    book = dict(kept)
    take_from(book, but.items)
    return book


def _promised_of_nodes(partition: Partition, but: Ask | None) -> Book:
    """What such asks will need of all nodes together. As long as no node uses more than it has, the single nodes say
    enough; what one uses beyond is missing in the sum. Room that only gathers is nobody's promise.
    """
    book: Book = {}
    for ask in partition.holds if is_overdrawn(partition) else ():
        if ask is not but and promises.is_promised(partition.nodes, ask):
            add_to(book, ask.items)
    return book


def is_overdrawn(partition: Partition) -> bool:
    """Whether more runs on some node than it has: work was reported or grew there, or the node shrank."""
    suspects = partition.nodes.suspects
    for node in list(suspects):
        if any(amount > node.total.get(name, 0) for name, amount in node.allocated.items()):
            return True
        del suspects[node]
    return False


def short_of_promised_room(partition: Partition, leaf: Queue, items: Items, but: Ask | None = None) -> Queue | None:
    """The first queue from `leaf` up that has no room for this amount beside the asks for which space is held.

    What was told to stop for them counts as gone already: its room under the maximum is promised to them too. `but` is
    the ask itself, which may be one of them.
    """
    for queue in leaf.lineage:
        most = queue.max
        book = promised(partition, queue, but) if most is not None else None
        if most is None or not book:
            continue
        for name, amount in items:
            used = queue.allocated.get(name, 0) - queue.preempting.get(name, 0) + book.get(name, 0)
            if name in most and amount > 0 and used + amount > most[name]:
                return queue
    return None


def short_of_promised_limit(partition: Partition, ask: Ask) -> Ceiling | None:
    """The first limit of its user or group without room for this ask beside the others for which space is held."""
    allowance = ask.app.allowance
    for ceiling in allowance.ceilings if allowance is not None else ():
        book, limit = promised(partition, ceiling, ask), ceiling.max
        if not book or limit is None:
            continue
        for name, amount in ask.items:
            if name in limit and amount > 0 and ceiling.used.get(name, 0) + book.get(name, 0) + amount > limit[name]:
                return ceiling
    return None


def reserve(partition: Partition, ask: Ask, node: Node) -> None:
    """Take the node out of the ordinary order for this ask (YuniKorn's reservation); it keeps no other space."""
    unhold(partition, ask)
    node.reservations[ask] = partition.now_ms
    ask.reserved_on = node
    partition.nodes.reserved_again[ask] = None
    partition.timers.set(partition.now_ms + RESERVATION_MS, partition.name, ask.app.id, 0, "reservation")
    partition.reservations += 1
    partition.books_version += 1
    partition.nodes.touch(node)
    partition.out.append(Reserved(ask.app.id, ask.key, node.id, partition.name))


def unreserve(partition: Partition, ask: Ask) -> None:
    """The node goes back into the ordinary order."""
    node = ask.reserved_on
    if node is None:
        return
    del node.reservations[ask]
    ask.reserved_on = None
    partition.nodes.reserved_again.pop(ask, None)
    for demand in ask.watches:
        demand.reserved.pop(ask, None)
    ask.watches = ()
    partition.reservations -= 1
    partition.books_version += 1
    partition.nodes.gained(node)
    partition.out.append(Unreserved(ask.app.id, ask.key, node.id, partition.name))
    if not ask.pending:
        return
    if ask.preempt_triggered:
        # What others were stopped for is lost: without this it could never have room made for it again.
        ask.app.may_preempt_again(ask)
    # Another node may be set aside for it.
    ask.app.queue.touch_app(ask.app)


def watch(partition: Partition, ask: Ask, demand: Demand) -> None:
    """Try the node that is reserved for `ask` again when `demand` is woken."""
    if ask not in demand.reserved:
        demand.reserved[ask] = partition.nodes.reserved_again
        if demand.shape is not None:
            demand.shape.wakes_at_once = True
        ask.watches += (demand,)
