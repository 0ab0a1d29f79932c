"""Claims: space and nodes that are kept for an ask that does not run yet.

Decides what a hold (space that victims leave) and a reservation (a whole node out of the ordinary order) mean in the
books, and wakes whoever waited when one ends. Never decides who gets one. Invariant: an ask with a claim waits, and
node and partition know of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.decisions import Reserved, Unreserved

if TYPE_CHECKING:
    from fairlead.core.applications import Ask
    from fairlead.core.demand import Demand
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition

RESERVATION_MS = 60 * 60_000
"""A reserved node that its ask has had no use for since then (its queue or user is full) is given up."""


def hold(partition: Partition, ask: Ask, node: Node, victims: tuple[Ask, ...]) -> None:
    """Keep the space that `victims` leave on `node` for `ask`."""
    node.hold(ask)
    ask.held_on, ask.victims = node, victims
    partition.holds[ask] = None
    partition.nodes.touch(node)
    partition.out.append(Reserved(ask.app.id, ask.key, node.id))


def unhold(partition: Partition, ask: Ask) -> None:
    """Keep space for `ask` no longer (it runs, is gone, or somebody more important took the space)."""
    node = ask.held_on
    if node is None:
        return
    node.unhold(ask)
    ask.held_on, ask.victims = None, ()
    del partition.holds[ask]
    partition.nodes.gained(node)
    partition.books_version += 1
    partition.out.append(Unreserved(ask.app.id, ask.key, node.id))


def reserve(partition: Partition, ask: Ask, node: Node) -> None:
    """Take the node out of the ordinary order for this ask (YuniKorn's reservation)."""
    node.reservations[ask] = partition.now_ms
    ask.reserved_on = node
    partition.nodes.reserved_again[ask] = None
    partition.timers.set(partition.now_ms + RESERVATION_MS, partition.name, ask.app.id, 0, "reservation")
    partition.reservations += 1
    partition.books_version += 1
    partition.nodes.touch(node)
    partition.out.append(Reserved(ask.app.id, ask.key, node.id))


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
    partition.out.append(Unreserved(ask.app.id, ask.key, node.id))
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
        ask.watches += (demand,)
