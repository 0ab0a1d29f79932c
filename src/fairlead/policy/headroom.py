"""Headroom: whether something above the nodes is in the way of a demand.

Decides nothing but that: the limits of its user and group, the maxima of its queues (beside what is promised there to
asks for which space is held), the sum of all nodes. What is found is remembered with the demand, so that nobody looks
again until it moves. Never looks at single nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.claims import short_of_promised_limit, short_of_promised_room

if TYPE_CHECKING:
    from fairlead.core.applications import Ask
    from fairlead.core.demand import Demand
    from fairlead.core.partition import Partition


def is_held_back(partition: Partition, demand: Demand, ask: Ask) -> bool:
    """Whether a limit, a queue or the sum of all nodes has no room for this ask of the demand."""
    if demand.obstacle is not None:
        return True
    shape, allowance = demand.shape, demand.allowance
    assert shape is not None
    limit = allowance.short_of_room(shape.items) if allowance is not None else None
    full = limit if limit is not None else demand.leaf.short_of_room(shape.items)
    if full is None and partition.holds:
        full = short_of_promised_room(partition, demand.leaf, shape.items, ask) or short_of_promised_limit(
            partition, ask
        )
    if full is not None:
        demand.obstacle = full
        full.waiting[demand] = None
        return True
    if partition.nodes.sum_has_room(shape.items):
        return False
    partition.nodes.mark_unfit(shape, by_root=True)
    demand.wait_for_node()
    return True
