"""Kept room: which of the places that are kept on a node it would not give anew.

Decides only that; `workloads` has those look for another one. Invariant: of what is too much for a node that has become
smaller, the youngest goes, and no more than has to.
"""

from __future__ import annotations

from fairlead.core.books.partition import Partition
from fairlead.core.model.resources import add_to


def not_kept(partition: Partition, name: str) -> list[str]:
    """The keys of placeholders on a node that has become too small for all that is there, or does not suit them."""
    node = partition.nodes.nodes.get(name)
    if node is None:
        return []
    left, found = dict(node.available), []
    for ask in [each for each in reversed(node.allocations) if each.spec.placeholder]:
        lacks = any(left.get(resource, 0) < 0 for resource, _ in ask.items)
        if lacks or not (node.takes(ask) and partition.nodes.suits(ask, node, (ask,))):
            add_to(left, ask.items)
            found.append(ask.key)
    return found
