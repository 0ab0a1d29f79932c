"""Headroom: whether something above the nodes is in the way of a demand.

Decides nothing but that: the limits of its user and group, the maxima of its queues, the sum of all nodes. What is
found is remembered with the demand, so that nobody looks again until it moves. Never looks at single nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.demand import Demand
    from fairlead.core.partition import Partition


def is_held_back(partition: Partition, demand: Demand) -> bool:
    """Whether a limit, a queue or the sum of all nodes has no room for what this demand asks for."""
    if demand.obstacle is not None:
        return True
    shape, allowance = demand.shape, demand.allowance
    assert shape is not None
    limit = allowance.short_of_room(shape.items) if allowance is not None else None
    full = limit if limit is not None else demand.leaf.short_of_room(shape.items)
    if full is not None:
        demand.obstacle = full
        full.waiting[demand] = None
        return True
    if partition.nodes.sum_has_room(shape.items):
        return False
    partition.nodes.mark_unfit(shape, by_root=True)
    partition.nodes.wait_for(shape, demand)
    return True
