"""Volume limits: how many volumes of one driver can be attached to a node at once.

Decides from what runs whether the volumes of an ask can be attached beside those that are. A volume that several works
on a node use is attached once. Never knows what a volume is. Invariant: what is counted is what runs or is promised a
node; a partition in which nothing has such volumes keeps nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.constraints import VOLUME_LIMIT
from fairlead.core.model.matching import whole_number
from fairlead.core.model.resources import Book, take_from

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.core.books.node import Node
    from fairlead.core.books.node_columns import Mask
    from fairlead.core.model.constraints import Constraints

Volumes = tuple[str, ...]
"""Each as `name@driver`."""


class VolumeLimits:
    """What is attached to the nodes of one table."""

    def __init__(self) -> None:
        self.attached: dict[tuple[str, Node], Book] = {}
        """By driver and node: how many works use each volume."""

    def claimed(self, volumes: Volumes, node: Node, change: int) -> None:
        """Work with these volumes is on the node from now on (1), or no longer (-1)."""
        for volume in dict.fromkeys(volumes):
            here = self.attached.setdefault((driver_of(volume), node), {})
            take_from(here, ((volume, -change),))  # That drops zeros.
            if not here:
                del self.attached[driver_of(volume), node]

    def exceeded(self, where: Constraints, node: Node, gone: Iterable[Constraints] = ()) -> bool:
        """Whether some driver could not attach all its volumes to the node, if work with `gone` left it."""
        leaving = Counter(volume for other in gone for volume in dict.fromkeys(other.volumes))
        for driver in dict.fromkeys(map(driver_of, where.volumes)):
            limit = whole_number(node.labels.get(VOLUME_LIMIT + driver))
            if limit is None:
                continue  # Nobody said.
            users = self.attached.get((driver, node), {})
            stay = {volume for volume, count in users.items() if count > leaving.get(volume, 0)}
            wanted = {volume for volume in where.volumes if driver_of(volume) == driver and volume not in stay}
            if wanted and len(stay) + len(wanted) > limit:
                return True
        return False

    def rows(self, where: Constraints, nodes: list[Node]) -> Mask:
        """The rows on which its volumes can be attached."""
        return ~np.fromiter((self.exceeded(where, node) for node in nodes), dtype=np.bool_, count=len(nodes))


def is_beyond(where: Constraints, node: Node) -> bool:
    """Whether it has more volumes of some driver than the node takes, whatever leaves it."""
    return VolumeLimits().exceeded(where, node)


def driver_of(volume: str) -> str:
    """The driver that attaches the volume."""
    return volume.rpartition("@")[2]
