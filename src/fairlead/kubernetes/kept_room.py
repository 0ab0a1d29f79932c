"""Kept room: which nodes are other than before, and which of the places that are kept there they would not give anew.

Decides only that; `workloads` has those look for another one. Invariant: of what is too much for a node that has become
smaller, the youngest goes, and no more than has to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.books.partition import Partition
from fairlead.core.model.resources import add_to
from fairlead.kubernetes.reflector import Change, Changed, Deleted

if TYPE_CHECKING:
    from fairlead.core.model.specs import NodeSpec
    from fairlead.kubernetes.cluster_store import ClusterStore


class ChangedNodes:
    """The nodes that have come, gone or changed since they were last looked at; most say the same again and again."""

    def __init__(self, around: ClusterStore) -> None:
        self._around = around
        self._known: dict[str, NodeSpec] = {}
        self._changed: dict[str, None] = {}

    def take(self, change: Change) -> None:
        """The cluster store has taken a change of a node."""
        if isinstance(change, Changed | Deleted):
            name = change.object.metadata.name if isinstance(change, Changed) else change.name
            before, now = self._known.pop(name, None), self._around.nodes.get(name)
            if now is not None:
                self._known[name] = now
            if now != before:
                self._changed[name] = None

    def take_changed(self) -> list[str]:
        """Their names, each once; from now on they have been looked at."""
        found = list(self._changed)
        self._changed.clear()
        return found


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
