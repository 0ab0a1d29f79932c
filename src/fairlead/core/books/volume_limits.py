"""Volume limits: how many volumes of one driver can be attached to a node at once.

Decides from what runs whether the volumes of an ask can be attached beside those that are. A volume that several works
on a node use is attached once. Never knows what a volume is. Invariant: what is counted is what runs or is promised a
node; a partition in which nothing has such volumes keeps nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.constraints import VOLUME_LIMIT
from fairlead.core.model.matching import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.core.books.node import Node
    from fairlead.core.books.node_columns import Mask
    from fairlead.core.books.nodes import NodeTable
    from fairlead.core.model.constraints import Constraints

Volumes = tuple[str, ...]
"""Each as `name@driver`."""


class VolumeLimits:
    """What is attached to the nodes of one table."""

    def __init__(self) -> None:
        self.attached: dict[str, dict[Node, dict[str, int]]] = {}
        """By driver and node: how many works use each volume."""

    def claimed(self, volumes: Volumes, node: Node, change: int) -> None:
        """Work with these volumes is on the node from now on (1), or no longer (-1)."""
        for volume in dict.fromkeys(volumes):
            driver = driver_of(volume)
            of_driver = self.attached.setdefault(driver, {})
            here = of_driver.setdefault(node, {})
            here[volume] = here.get(volume, 0) + change
            if not here[volume]:
                del here[volume]
            if not here:
                del of_driver[node]
            if not of_driver:
                del self.attached[driver]

    def exceeded(self, where: Constraints, node: Node, gone: Iterable[Constraints] = ()) -> bool:
        """Whether some driver could not attach all its volumes to the node, if work with `gone` left it."""
        leaving: dict[str, int] = {}
        for other in gone:
            for volume in dict.fromkeys(other.volumes):
                leaving[volume] = leaving.get(volume, 0) + 1
        for driver in dict.fromkeys(map(driver_of, where.volumes)):
            limit = limit_of(node, driver)
            if limit is None:
                continue
            users = self.attached.get(driver, {}).get(node, {})
            stay = {volume for volume, count in users.items() if count > leaving.get(volume, 0)}
            wanted = {volume for volume in where.volumes if driver_of(volume) == driver and volume not in stay}
            if wanted and len(stay) + len(wanted) > limit:
                return True
        return False

    def rows(self, where: Constraints, nodes: list[Node]) -> Mask:
        """The rows on which its volumes can be attached."""
        return ~np.fromiter((self.exceeded(where, node) for node in nodes), dtype=np.bool_, count=len(nodes))


def wake_sharing(table: NodeTable, volumes: Volumes) -> None:
    """These are attached somewhere, or no longer: what fits nowhere and uses them too is looked at again."""
    for shape in [s for s in table.unfit if any(volume in volumes for volume in s.where.volumes)]:
        table.clear_unfit(shape)


def is_beyond(where: Constraints, node: Node) -> bool:
    """Whether it has more volumes of some driver than the node takes, whatever leaves it."""
    return VolumeLimits().exceeded(where, node)


def driver_of(volume: str) -> str:
    """The driver that attaches the volume."""
    return volume.rpartition("@")[2]


def limit_of(node: Node, driver: str) -> int | None:
    """How many volumes of a driver the node takes; None: nobody said."""
    return whole_number(node.labels.get(VOLUME_LIMIT + driver))
