"""What those who act on a queue file ask of it beyond what every reader does.

Decides whether a file has the partition that the nodes of a machine or cluster are in, and which features the scheduler
does not act on yet: such a file is refused with the place, never ignored. Never acts on a file.
"""

from __future__ import annotations

from fairlead.config.decode import ERROR, Problem, in_text_order
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


def not_yet(spec: ClusterSpec, source: str = "<text>", *, knows_groups: bool = False) -> list[Problem]:
    """An error for every place of the configuration that would be ignored, sorted by place; empty when none is.

    `knows_groups`: for a place that takes the groups of its users from the system's group database, which is what
    `usergroupresolver: {type: os}` asks for.
    """
    found, partitions = places_of(spec, source)
    for partition in partitions:
        if partition.spec.user_group_resolver not in ("", "os" if knows_groups else ""):
            found.add(
                f"{partition.path}.usergroupresolver",
                "not yet: groups are not looked up; they come with the submission. Remove it",
            )
    return in_text_order(found.problems)
