"""Foreign work: what another scheduler runs on our nodes.

Decides what follows when such work is reported, changes, or ends: it uses room and host ports, and counts for affinity,
anti-affinity and spread, in both directions, as work of our own does. Never stops it, and counts it in no queue.
Invariant: labels that its terms look at tell waiting asks apart for as long as it runs.
"""

from __future__ import annotations

from fairlead.core.acts import shapes
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.model.specs import AskSpec


def report(partition: Partition, node: Node, spec: AskSpec) -> None:
    """It runs on this node, as `spec` says, and no longer as was said before."""
    known = node.foreign.get(spec.key)
    if known is not None and known[0] == spec:
        return  # What is reported again is no change.
    shapes.meet(partition, spec.where)
    end(partition, spec.key)
    partition.nodes.set_foreign(node, spec, partition.now_ms)
    partition.books_version += 1
    partition.note_change()


def end(partition: Partition, key: str) -> None:
    """It runs no longer. Unknown work is passed over: its end may be reported twice."""
    spec = partition.nodes.end_foreign(key)
    if spec is not None:
        shapes.part(partition, spec.where)
        partition.books_version += 1
