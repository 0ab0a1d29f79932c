"""Fitting: where the next ask of a batch would start, if anywhere.

Decides nothing about the order of turns and places nothing; what it finds in the way is remembered with the demand.
Invariant: what is remembered to be in the way is forgotten when that moves (`core.books.demand`).
"""

from __future__ import annotations

from fairlead.core.books.asks import Batch
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.policy.eligibility.headroom import is_full_above, is_short


def may_fit_still(batch: Batch) -> bool:
    """Whether nothing was found to be in the way of a batch that might fit when last looked."""
    demand = batch.demand
    return bool(batch.stamp) and not demand.shape.unfit and demand.obstacle is None and not is_full_above(demand)


def node_for(partition: Partition, batch: Batch) -> Node | None:
    """The node for the first ask of a batch whose shape may fit, or None; then what is in the way is remembered."""
    demand = batch.demand
    if is_short(partition, demand, batch.head):
        return None
    shape = demand.shape
    if shape.required_node:
        node = partition.nodes.required(shape)
        # It may be set aside for others that do not require it.
        if node is not None and any(holder.required_node for holder in node.reservations):
            node = None
    else:
        node = partition.nodes.first_for(shape, batch.head)
    if node is None:
        partition.nodes.mark_unfit(shape)
    return node
