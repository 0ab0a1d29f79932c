"""The home partition: what a scheduler of one machine or cluster asks of a queue file beyond what every reader does.

Decides whether a file has the partition that the nodes are in. Never refuses a file: for other uses it is good.
"""

from __future__ import annotations

from fairlead.config.problems import ERROR, Problem
from fairlead.config.tree import places_of
from fairlead.core.model.specs import DEFAULT_PARTITION, ClusterSpec


def homeless(spec: ClusterSpec, source: str = "<text>", *, severity: str = ERROR) -> list[Problem]:
    """The problem of a file without the partition of the machine or cluster; empty when it has it."""
    if any(partition.name == DEFAULT_PARTITION for partition in spec.partitions):
        return []
    found, partitions = places_of(spec, source)
    found.add(
        f"{partitions[0].path}.name" if partitions else "partitions",
        f"no partition is named {DEFAULT_PARTITION}, and a machine or cluster is in that one, so its service refuses "
        f"the file; rename one to {DEFAULT_PARTITION}, or add it",
        severity=severity,
    )
    return found.problems
