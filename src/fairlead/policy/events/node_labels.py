"""Labelling: what a node says about itself changes while work runs there.

Decides which running work has to go: what does not tolerate a `NoExecute` taint. All else that runs goes on, even where
it could not start any more; what was only under way to the node (nominated, or about to take a placeholder's place)
waits again if it could not. Never makes room for anybody. Invariant: work that leaves already is not told again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.acts import allocations, gangs, nominate
from fairlead.core.model.constraints import NO_EXECUTE, Taint
from fairlead.core.model.decisions import NodeRejected
from fairlead.core.model.events import Cause, LabelNode
from fairlead.core.model.matching import must_leave, taint_flaw
from fairlead.core.model.reasons import Refused
from fairlead.policy.place.gang import suits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition


def label_node(partition: Partition, event: LabelNode) -> None:
    """A node's attributes and taints are replaced; unknown nodes and taints without meaning are refused."""
    node = partition.nodes.nodes.get(event.id)
    bad = taints_flaw(event.taints) if node is not None else f"failed to find node {event.id}"
    if bad or node is None:
        partition.out.append(NodeRejected(event.id, Refused(bad), partition.name))
        return
    attributes = dict(event.attributes)
    if attributes == node.attributes and event.taints == node.spec.taints:
        return
    partition.nodes.describe(node, attributes, event.taints)
    partition.disruption.capacity_changed()
    partition.books_version += 1
    for ask in [a for a in node.held if a.held_on is node and not partition.nodes.suits(a, node, a.victims)]:
        nominate.withdraw(partition, ask)
    for ask, placeholder in gangs.under_way_to(node):
        if not suits(partition, ask, node, placeholder):
            gangs.wait_again(partition, ask)
    _evict_intolerant(partition, node)


def taints_flaw(taints: Iterable[Taint]) -> str:
    """What is wrong with the first bad one of some taints; nothing when all make sense."""
    return next((bad for bad in map(taint_flaw, taints) if bad), "")


def _evict_intolerant(partition: Partition, node: Node) -> None:
    taints = node.spec.taints
    named = ", ".join(f"{t.key}={t.value}" if t.value else t.key for t in taints if t.effect == NO_EXECUTE)
    if not named:
        return
    for ask in list(node.allocations):
        if ask.evict_cause is None and must_leave(taints, ask.spec.where.tolerations):
            message = f"node {node.id} has a {NO_EXECUTE} taint that it does not tolerate: {named}"
            allocations.evict(partition, ask, Cause.PREEMPTED_BY_SCHEDULER, rule="taint", message=message)
