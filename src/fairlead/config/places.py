"""The places of a loaded configuration, found again in its text.

Decides nothing: it pairs each partition of a `ClusterSpec` with the queues as they stand in the file, for those who
report about a configuration that has loaded. A spec that was not read from a text has made-up places.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.config.declare import declared
from fairlead.config.decode import Findings
from fairlead.config.tree import PlacedQueue, placed, root_of
from fairlead.config.yamltree import compose
from fairlead.core.specs import ClusterSpec, PartitionSpec


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """One partition, its place, and its placed queues."""

    spec: PartitionSpec
    path: str
    root: PlacedQueue


def places_of(spec: ClusterSpec, source: str = "<text>") -> tuple[Findings, tuple[PlacedPartition, ...]]:
    """Fresh findings that know the places of the spec's text, and its partitions with theirs."""
    found = Findings(source)
    node = compose(spec.text).root if spec.text else None
    if node is None:
        made_up = [
            PlacedPartition(p, f"partitions[{i}]", placed(p.root, f"partitions[{i}].queues[0]"))
            for i, p in enumerate(spec.partitions)
        ]
        return found, tuple(made_up)
    declaration = declared(found, node)
    found.problems.clear()
    pairs = zip(spec.partitions, declaration.partitions, strict=True)
    return found, tuple(
        PlacedPartition(partition, written.path, root_of(written) or placed(partition.root, f"{written.path}.queues"))
        for partition, written in pairs
    )
