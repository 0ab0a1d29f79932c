"""Ground: what nodes are to constraints whatever runs on them.

Decides which nodes selectors, tolerations and devices allow, and which domains an attribute has; both are remembered
until the nodes change. Knows nothing of work (`core.books.constraints_index` does). Invariant: what is handed out holds
for the rows of now.
"""

from __future__ import annotations

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

    __slots__ = ("_spread", "discouraging", "named", "open", "tolerated")

    def __init__(self, where: Constraints, nodes: list[Node]) -> None:
        count, tolerations = len(nodes), where.tolerations
        self.named: Mask = np.fromiter((is_selected(where, n.labels) for n in nodes), dtype=np.bool_, count=count)
        """Rows that the selectors name."""
        tolerated = (not n.keeps_away or is_tolerated(n.spec.taints, tolerations) for n in nodes)
        self.tolerated: Mask = np.fromiter(tolerated, dtype=np.bool_, count=count)
        self.open: Mask = self.named & self.tolerated
        if where.devices:
            self.open &= np.fromiter((has_devices(where, n.labels) for n in nodes), dtype=np.bool_, count=count)
        alone = (discouraging(n.spec.taints, tolerations) if n.spec.taints else 0 for n in nodes)
        self.discouraging: Counts = np.fromiter(alone, dtype=np.int64, count=count)
        """For each row, how many of its taints would rather have it left alone, and are not tolerated."""
        self._spread: dict[tuple[bool, bool, tuple[str, ...]], Mask] = {}

    def spread_over(self, topologies: list[Topology], term: SpreadTerm) -> Mask:
        """Rows that count for a spread term of an ask whose terms have these topologies: those with all the keys."""
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
        self._version = -1
        """The version of the columns for which these hold."""
        self._of: dict[GroundKey, Ground] = {}
        self._topologies: dict[str, Topology] = {}

    def _begin_anew(self) -> None:
        self._columns.sync()
        self._version = self._columns.version
        self._of.clear()
        self._topologies.clear()

    def of(self, where: Constraints) -> Ground:
        """The ground of these constraints."""
        if self._version != self._columns.version:
            self._begin_anew()
        key = (where.selector, where.node_terms, where.tolerations, where.devices)
        found = self._of.get(key)
        if found is None:
            if len(self._of) >= GROUNDS_KEPT:
                self._of.clear()
            found = self._of[key] = Ground(where, self._columns.rows)
        return found

    def topology(self, key: str) -> Topology:
        """The present domains of an attribute."""
        if self._version != self._columns.version:
            self._begin_anew()
        found = self._topologies.get(key)
        if found is None:
            if len(self._topologies) >= GROUNDS_KEPT:
                self._topologies.clear()
            found = self._topologies[key] = Topology(key, self._columns)
        return found
