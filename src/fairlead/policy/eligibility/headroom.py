"""Headroom: whether something above the nodes is in the way of a demand, or of one ask.

Decides nothing but that: a closed gate, the limits of its user and group, the maxima of its queues (beside what is kept
there for nominated asks), the sum of all nodes. What is found for a demand is remembered with it or the queue, so that
it is not looked at again until that moves. Never looks at single nodes.
"""

from __future__ import annotations

from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Demand
from fairlead.core.books.nominations import limit_short_of_kept, queue_short_of_kept
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.policy.eligibility.limits import closed_gate, full_ceiling, is_at_closed_gate, is_over_limit


def is_held_back(partition: Partition, demand: Demand, ask: Ask) -> bool:
    """Whether a gate, a limit, a queue or the sum of all nodes has no room for this ask of the demand."""
    return demand.obstacle is not None or is_full_above(demand) or is_short(partition, demand, ask)


def is_short(partition: Partition, demand: Demand, ask: Ask) -> bool:
    """The same for a demand that nothing is known to be in the way of: what is found is remembered."""
    if demand.enters and is_at_closed_gate(demand, ask.app):
        return True
    if demand.allowance is not None and is_over_limit(demand):
        return True
    shape, leaf = demand.shape, demand.leaf
    full = leaf.short_of_room(shape.items)
    if full is None and partition.nominations.of:
        full = queue_short_of_kept(partition, leaf, shape.items, (ask,))
        if full is None and (ceiling := limit_short_of_kept(partition, ask)) is not None:
            demand.block(ceiling)
            return True
    if full is not None:
        _rest(demand, full)
        return True
    if partition.nodes.sum_has_room(shape.items):
        return False
    partition.nodes.mark_short(shape)
    return True


def _rest(demand: Demand, full: Queue) -> None:
    """It rests until this queue has room, and with it all else that waits there and lacks room under its maximum: in a
    full queue in which many sizes wait, one look serves all of them.
    """
    if full is demand.leaf:
        demand.block(full)
        full.rest_beside(full)
        return
    for shape in (demand.shape, *(each for each in full.ready if full.lacks(each.items))):
        full.full[shape] = None
        shape.held_up = True


def is_full_above(demand: Demand) -> bool:
    """Whether a queue above is known to have no room for it."""
    shape = demand.shape
    for queue in demand.leaf.lineage:
        if queue.full and shape in queue.full:
            return True
    return False


def obstacle_above(partition: Partition, ask: Ask) -> Queue | Ceiling | None:
    """What has no room for one ask, which need not be in line: a gate, a limit, a queue, or the sum of all nodes (the
    root's maximum); None: nothing. It is not remembered.
    """
    app, items = ask.app, ask.items
    above = closed_gate(app) or full_ceiling(app, items) or app.queue.short_of_room(items)
    if above is None and partition.nominations.of:
        above = queue_short_of_kept(partition, app.queue, items, (ask,)) or limit_short_of_kept(partition, ask)
    if above is None and not partition.nodes.sum_has_room(items):
        return partition.root
    return above
