"""Nodes: what a node of the cluster is to the scheduler.

Decides capacity, attributes, taints and whether it takes new work. Never decides what runs there. A node that is
cordoned, or going away, takes nothing new; one that is not ready keeps work away by its taint, as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.core.model.constraints import HOSTNAME, Taint
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import DEFAULT_PARTITION, NodeSpec
from fairlead.kubernetes.objects import Node
from fairlead.kubernetes.translate.amounts import resources
from fairlead.kubernetes.translate.constraints import NODE_NAME

CORDONED = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node in the core's words."""

    id: str
    capacity: Resources
    attributes: dict[str, str]
    taints: tuple[Taint, ...]
    schedulable: bool

    def spec(self, partition: str = DEFAULT_PARTITION) -> NodeSpec:
        """The node as it registers."""
        return NodeSpec(
            id=self.id,
            capacity=self.capacity,
            attributes=self.attributes,
            partition=partition,
            schedulable=self.schedulable,
            taints=self.taints,
        )


def node_view(node: Node) -> NodeView:
    """What a node is to the scheduler. Raises `AmountError`."""
    spec, status, name = node.spec, node.status, node.metadata.name
    taints = tuple(
        Taint(t.key, t.value or "", t.effect or "NoSchedule")
        for t in (spec.taints if spec is not None else None) or ()
        # Being cordoned is said by its own field; the taint follows a moment later.
        if t.key != CORDONED
    )
    given = status.allocatable or status.capacity if status is not None else None
    attributes = {HOSTNAME: name, **(node.metadata.labels or {}), NODE_NAME: name}
    cordoned = spec is not None and bool(spec.unschedulable)
    return NodeView(name, resources(given), attributes, taints, not cordoned and not node.metadata.deletion_timestamp)
