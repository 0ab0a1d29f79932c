"""Node reservations: a whole node that is taken out of the ordinary order for an ask (YuniKorn's reservation).

Decides what that means in the books, and wakes whatever waited when it ends. Never decides which ask gets one.
Invariant: an ask with a reserved node waits, is not nominated, and node and partition know of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.acts import nominate
from fairlead.core.books.timers import RESERVATION
from fairlead.core.model.decisions import Reserved, Unreserved

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Ceiling, Node, Partition, Queue, Shape

RESERVATION_MS = 60 * 60_000
"""A reserved node that its ask has had no use for since then (its queue or user is full) is given up."""


def reserve(partition: Partition, ask: Ask, node: Node) -> None:
    """Take the node out of the ordinary order for this ask (YuniKorn's reservation); it keeps no other space."""
    nominate.withdraw(partition, ask)
    node.reservations[ask] = partition.now_ms
    ask.reserved_on = node
    partition.nodes.reserved_again[ask] = None
    partition.timers.set_earlier(partition.now_ms + RESERVATION_MS, partition.name, ask.app.id, RESERVATION)
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
    partition.nodes.spares_young.pop(ask, None)
    unwatch(ask)
    partition.reservations -= 1
    partition.books_version += 1
    partition.nodes.gained(node)
    partition.out.append(Unreserved(ask.app.id, ask.key, node.id, partition.name))
    if ask.preempt_triggered:
        forget_victims(partition, ask)
    if not ask.pending:
        return
    if ask.preempt_triggered:
        # What others were stopped for is lost: without this it could never have room made for it again.
        ask.app.may_preempt_again(ask)
    # Another node may be set aside for it.
    if ask.batch is not None:
        partition.nodes.seeks(ask.batch.demand, ask.created_ms)
    ask.app.queue.touch_app(ask.app)


def forget_victims(partition: Partition, ask: Ask) -> None:
    """What was stopped for a plan that an ask gives up is no concern of the next one, be it late."""
    for victim in (*partition.disruption.leave_by, *partition.disruption.overdue):
        if victim.evicted_for is ask:
            victim.evicted_for = None


def watch(partition: Partition, ask: Ask, above: Queue | Ceiling | Shape) -> None:
    """Try the node that is reserved for `ask` again when this moves."""
    above.watched_by(ask, partition.nodes.reserved_again)
    ask.watches.append(above)


def unwatch(ask: Ask) -> None:
    """Nothing but its own node has it tried again."""
    for above in ask.watches:
        above.watched_no_more(ask)
    ask.watches.clear()
