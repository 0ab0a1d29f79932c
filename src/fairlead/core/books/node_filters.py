"""Ground: what nodes are to constraints whatever runs on them.

Decides which nodes selectors, tolerations and devices allow, and which domains an attribute has; both are remembered
until the nodes change. Knows nothing of work (`core.books.constraints_index` does). Invariant: what is handed out holds
for the rows of now.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.books.topology_counts import NOWHERE, Counts, Topology
from fairlead.core.model.constraints import Constraints, SpreadTerm, Toleration
from fairlead.core.model.matching import Selector, discouraging, has_devices, is_selected, is_tolerated

if TYPE_CHECKING:
    from fairlead.core.books.node import Node
    from fairlead.core.books.node_columns import Columns, Mask

GROUNDS_KEPT = 512
"""So many different sets of selectors and tolerations are remembered with the nodes that they allow."""

GroundKey = tuple[Selector, tuple[Selector, ...], tuple[Toleration, ...], str]


class Ground:
    """The nodes that selectors and tolerations allow, which depends on nothing that runs."""

    __slots__ = ("_discouraging", "_nodes", "_spread", "_tolerations", "named", "open", "tolerated", "version")

    def __init__(self, where: Constraints, nodes: list[Node], version: int) -> None:
        self.version = version
        count = len(nodes)
        self.named: Mask = np.fromiter((is_selected(where, n.labels) for n in nodes), dtype=np.bool_, count=count)
        """Rows that the selectors name."""
        tolerated = (not n.keeps_away or is_tolerated(n.spec.taints, where.tolerations) for n in nodes)
        self.tolerated: Mask = np.fromiter(tolerated, dtype=np.bool_, count=count)
        self.open: Mask = self.named & self.tolerated
        if where.devices:
            self.open &= np.fromiter((has_devices(where, n.labels) for n in nodes), dtype=np.bool_, count=count)
        self._spread: dict[tuple[bool, bool, tuple[str, ...]], Mask] = {}
        self._nodes, self._tolerations = nodes, where.tolerations
        self._discouraging: Counts | None = None

    def discouraging(self) -> Counts:
        """For each row, how many of its taints would rather have it left alone, and are not tolerated."""
        if self._discouraging is None:
            found = (discouraging(n.spec.taints, self._tolerations) if n.spec.taints else 0 for n in self._nodes)
            self._discouraging = np.fromiter(found, dtype=np.int64, count=len(self._nodes))
        return self._discouraging

    def spread_over(self, topologies: Iterable[Topology], term: SpreadTerm) -> Mask:
        """Rows that count for a spread term of an ask whose terms have these topologies: those with all the keys."""
        topologies = tuple(topologies)
        key = (term.only_selected, term.only_tolerated, tuple(t.key for t in topologies))
        found = self._spread.get(key)
        if found is None:
            found = self.named.copy() if term.only_selected else np.ones_like(self.named)
            if term.only_tolerated:
                found &= self.tolerated
            for topology in topologies:
                found &= topology.of_row != NOWHERE
            self._spread[key] = found
        return found


class Grounds:
    """The grounds and topologies of one table of nodes."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._of: dict[GroundKey, Ground] = {}
        self._topologies: dict[str, Topology] = {}

    def of(self, where: Constraints) -> Ground:
        """The ground of these constraints."""
        columns = self._columns
        columns.sync()
        key = (where.selector, where.node_terms, where.tolerations, where.devices)
        found = self._of.get(key)
        if found is None or found.version != columns.version:
            if found is None and len(self._of) >= GROUNDS_KEPT:
                self._of.clear()
            found = self._of[key] = Ground(where, columns.rows, columns.version)
        return found

    def topology(self, key: str) -> Topology:
        """The present domains of an attribute."""
        columns = self._columns
        columns.sync()
        found = self._topologies.get(key)
        if found is None or found.version != columns.version:
            if found is None and len(self._topologies) >= GROUNDS_KEPT:
                self._topologies.clear()
            found = self._topologies[key] = Topology(key, columns)
        return found
