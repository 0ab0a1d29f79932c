"""Company: what running work would rather have of newcomers.

Decides how much each node is liked for a newcomer by the work that runs there and in the same domains: a preferred term
of that counts with its weight for work that it is about, a required affinity term with `WEIGHT_OF_REQUIRED`. What the
newcomer itself prefers is the matter of `core.books.preferences`. Never keeps anything off a node. Invariant: what is
counted is what runs now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.books.topology_counts import Counts, TallyIndex
from fairlead.core.model.constraints import WEIGHT_OF_REQUIRED
from fairlead.core.model.matching import Selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.books.constraints_index import Terrain
    from fairlead.core.books.node import Node
    from fairlead.core.model.constraints import Constraints

CompanyKey = tuple[Selector, str, int]
"""The work it is about, the topology key, and the weight."""


class Company:
    """The terms of all running work by what they are about; how often each holds, and where."""

    def __init__(self) -> None:
        self.wishes: TallyIndex[CompanyKey] = TallyIndex()

    def count(self, where: Constraints, node: Node, change: int, version: int) -> None:
        """Work with these constraints runs on the node from now on (1), or no longer (-1)."""
        wishes = [(term, WEIGHT_OF_REQUIRED) for term in where.affinity]
        wishes += [(wish.term, wish.weight) for wish in where.preferred_work]
        for term, weight in wishes:
            self.wishes.count((term.selector, term.topology_key, weight), term.selector, node, change, version)

    def awaits(self, labels: Mapping[str, str]) -> bool:
        """Whether anything that runs would rather have work with these labels near, or not near."""
        return bool(self.wishes.tallies) and any(True for _ in self.wishes.matching(labels))

    def liking(self, labels: Mapping[str, str], terrain: Terrain, rows: int) -> Counts:
        """For each of so many rows how much the work there would like to have work with these labels."""
        liked: Counts = np.zeros(rows, dtype=np.int64)
        for key, tally in self.wishes.matching(labels):
            liked += key[2] * tally.view(terrain.topology(key[1])).by_row()
        return liked
