"""What a queue file may say that the scheduler does not act on yet: refused with its place, never ignored.

Decides which features are still missing. Each has one function in `NOT_YET`; when a feature lands, its function goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairlead.config.problems import Problem, in_text_order
from fairlead.config.tree import PlacedPartition, places_of
from fairlead.core.model.specs import ClusterSpec

Finding = tuple[str, str]
"""Path and what is missing there."""


def group_resolver(partition: PlacedPartition) -> Iterator[Finding]:
    """Groups looked up by the scheduler itself."""
    if partition.spec.user_group_resolver:
        yield (
            f"{partition.path}.usergroupresolver",
            "groups are not looked up; they come with the submission. Remove it",
        )


NOT_YET: tuple[Callable[[PlacedPartition], Iterator[Finding]], ...] = (group_resolver,)


def not_yet(spec: ClusterSpec, source: str = "<text>", *, knows_groups: bool = False) -> list[Problem]:
    """An error for every place of the configuration that would be ignored, sorted by place; empty when none is.

    `knows_groups`: for a place that takes the groups of its users from the system's group database, which is what
    `usergroupresolver: {type: os}` asks for.
    """
    found, partitions = places_of(spec, source)
    for partition in partitions:
        for feature in NOT_YET:
            if feature is group_resolver and knows_groups and partition.spec.user_group_resolver == "os":
                continue
            for path, message in feature(partition):
                found.add(path, f"not yet: {message}")
    return in_text_order(found.problems)
