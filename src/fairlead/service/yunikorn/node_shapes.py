"""Nodes and their utilisation in the JSON shapes of Apache YuniKorn's /ws/v1.

Decides names and the buckets of utilisation. Never filters by user. Invariant: every node that has a resource is in
exactly one of its ten buckets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.core.model.resources import pruned
from fairlead.service.yunikorn.app_shapes import allocation, foreign
from fairlead.service.yunikorn.shapes import RM_ID, Plain, filled, percentages

if TYPE_CHECKING:
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition

BUCKETS = tuple(f"{low}-{low + 10}%" for low in range(0, 100, 10))


def node(one: Node, partition_name: str) -> Plain:
    """A node with what runs on it."""
    attributes = {**one.attributes, "si/node-partition": f"[{RM_ID}]{partition_name}"}
    shown = {
        "nodeID": one.id,
        "hostName": one.attributes.get("si.io/hostname") or one.attributes.get("hostname", ""),
        "rackName": one.attributes.get("si.io/rackname", ""),
        "attributes": attributes,
        "capacity": pruned(one.total),
        "allocated": pruned(one.allocated),
        "occupied": pruned(one.occupied),
        "available": pruned(one.available),
        "utilized": percentages(one.allocated, one.total),
        "allocations": [allocation(each) for each in one.allocations],
        "foreignAllocations": [foreign(spec, at_ms) for spec, at_ms in one.foreign_notes.values()],
        "schedulable": one.schedulable,
        "isReserved": bool(one.reservations),
        "reservations": [each.key for each in one.reservations],
    }
    return filled(shown, "nodeID", "schedulable", "isReserved")


def utilizations(part: Partition) -> Plain:
    """How many nodes use how much, for each resource that some node has."""
    nodes = list(part.nodes.nodes.values())
    names = sorted({name for one in nodes for name, amount in one.total.items() if amount > 0})
    return {
        "clusterId": RM_ID,
        "partition": part.name,
        "utilizations": [{"type": name, "utilization": _buckets(nodes, name)} for name in names],
    }


def bucket_of(allocated: int, total: int) -> int:
    """The bucket of a share: 0 for up to 10 %, 9 for everything above 90 %."""
    tenths = -(-allocated * 10 // total)
    return min(max(tenths - 1, 0), 9)


def _buckets(nodes: list[Node], name: str) -> list[Plain]:
    found: list[list[str]] = [[] for _ in BUCKETS]
    for one in nodes:
        total = one.total.get(name, 0)
        if total > 0:
            found[bucket_of(one.allocated.get(name, 0), total)].append(one.id)
    shown: list[dict[str, Any]] = [
        filled({"bucketName": label, "numOfNodes": len(ids), "nodeNames": ids})
        for label, ids in zip(BUCKETS, found, strict=True)
    ]
    return shown
