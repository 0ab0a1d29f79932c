"""Preempt on a required node: an ask that may run on one node only takes its place there from less important work.

Decides which allocations of that node are stopped so that the ask fits; guarantees, fences and delays do not count
here, because the ask has nowhere else to go. Never stops work of higher priority, other work that needs this node, or
anything unless the ask then fits, nor what started while the ask waited before anything but new work came. Invariant:
nothing is stopped that the ask could fit without, taken in this order.
"""

from __future__ import annotations

from collections.abc import Collection

from fairlead.core.acts import nominate
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.model.resources import Book, add_to, fits_in, take_from
from fairlead.policy.order.victim_index import leaves_for_others
from fairlead.policy.preemption.protection import in_time
from fairlead.policy.preemption.victims import reluctance, stop_for


def preempt_on_required_node(partition: Partition, ask: Ask, node: Node) -> None:
    """Tell work on `node` to stop until `ask`, which is reserved there, fits; once for each ask. Where that is not
    enough, what is kept there for others goes too: they would be stopped as soon as they had started.
    """
    if ask.preempt_triggered or _will_fit(partition, ask, node):
        return
    nominees = [each for each in node.held if each.nomination is not None]
    young = [each for each in node.allocations if partition.is_young(each, ask)]
    victims = _victims(partition, ask, node, spared=young)
    victims = victims or _victims(partition, ask, node, nominees, spared=young, leaves=False)
    if young and not victims:
        partition.nodes.spares_young[ask] = None
    message = f"preempting allocations to free up resources to run daemon set ask: {ask.key}"
    for victim in victims:
        if victim in nominees:
            nominate.lose(partition, victim)
        else:
            stop_for(partition, ask, victim, "required-node", message)
            victim.evicted_for = ask
    ask.preempt_triggered = bool(victims)


def take_kept_room(partition: Partition, ask: Ask, node: Node) -> bool:
    """Give an ask that requires the node the room that is kept there for others, if it then fits; True when it does.

    Only of those whose work it may stop: it would be absurd to stop that, and leave the room unused meanwhile.
    """
    nominees = [a for a in node.held if a.nomination is not None and a.priority <= ask.priority]
    nominees.sort(key=lambda a: (a.priority, -a.seq))
    taken = _enough_of(partition, ask, node, nominees)
    for nominee in taken:
        nominate.lose(partition, nominee)
    return bool(taken)


def would_stop(partition: Partition, ask: Ask, node: Node, newcomer: Ask) -> bool:
    """Whether the ask, which is about to have its turn on this node, would stop the newcomer if that started there, or
    stop for want of the newcomer's room what has only started in this call.
    """
    if ask.preempt_triggered:
        return False
    # What else is promised room there starts in this call too, or gives way like the newcomer.
    newcomers = (newcomer, *(each for each in node.held if each is not newcomer))
    if _will_fit(partition, ask, node, newcomers):
        return False
    victims = _victims(partition, ask, node, newcomers)
    # What started earlier in the same millisecond counts as of this call: it is spared once too often.
    return any(victim is newcomer or victim.allocated_ms == partition.now_ms for victim in victims)


def _will_fit(partition: Partition, ask: Ask, node: Node, newcomers: Collection[Ask] = ()) -> bool:
    """Whether it fits as things are, beside the `newcomers`, or once what was told to stop has left."""
    return any(
        fits_in(ask.items, _room_beside(node, ask, newcomers, leaving)) and partition.nodes.suits(ask, node, leaving)
        for leaving in ([], _leaving(partition, ask, node))
    )


def _leaving(partition: Partition, ask: Ask, node: Node) -> list[Ask]:
    """What was told to stop on the node, and whose room is counted on: it is gone before the ask reaches into a
    window.
    """
    return in_time(partition, ask, [each for each in node.allocations if leaves_for_others(each)], node)


def _room_beside(node: Node, ask: Ask, newcomers: Collection[Ask], leaving: Collection[Ask]) -> Book:
    """What the node has for the ask beside the newcomers, with what those leave that were told to stop, but for what
    others need of that which require the node too.
    """
    free = dict(node.free)
    for each in newcomers:
        if each not in node.held:  # What is held for it is not free in any case.
            take_from(free, each.items)
    left: Book = {}
    for each in leaving:
        add_to(left, each.items)
    for other in node.reservations if left else ():
        if other is not ask and other.preempt_triggered:
            take_from(left, other.items)
    add_to(free, tuple((name, amount) for name, amount in left.items() if amount > 0))
    return free


def _victims(
    partition: Partition,
    ask: Ask,
    node: Node,
    newcomers: Collection[Ask] = (),
    *,
    spared: Collection[Ask] = (),
    leaves: bool = True,
) -> list[Ask]:
    """What has to stop on the node, but for what is `spared`, and of the `newcomers` as if these had started there, so
    that the ask fits, beside what `leaves` it anyway.
    """
    names = {name for name, _ in ask.items}
    found = [
        a
        for a in in_time(partition, ask, [*node.allocations, *newcomers], node)
        if not a.required_node
        and a.priority <= ask.priority
        and a.evict_cause is None
        and a not in spared
        and any(name in names for name, _ in a.items)
    ]
    found.sort(key=reluctance)
    return _enough_of(partition, ask, node, found, newcomers, _leaving(partition, ask, node) if leaves else ())


def _enough_of(
    partition: Partition,
    ask: Ask,
    node: Node,
    found: list[Ask],
    newcomers: Collection[Ask] = (),
    leaving: Collection[Ask] = (),
) -> list[Ask]:
    """The first of these without which the ask fits; none when it does not without all of them. `newcomers`: as if
    these had started there as well; `leaving`: as if these had left.
    """
    free = _room_beside(node, ask, newcomers, leaving)
    taken: list[Ask] = []
    for victim in found:
        add_to(free, victim.items)
        taken.append(victim)
        gone = [*leaving, *(each for each in taken if each.held_on is node or each not in newcomers)]
        if fits_in(ask.items, free) and partition.nodes.suits(ask, node, gone):
            return taken
    return []
