"""Tallies: how much running work of one kind is on each node and in each topology domain.

Decides only how to count: a tally is kept up to date by every start and end of work, and a view adds it up by the
values of one attribute of the nodes. Never looks at what wants to know. Invariant: a view that is of the columns'
version equals the sum over the nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from fairlead.core.model.matching import Selector
from fairlead.core.model.selector_index import SelectorIndex

if TYPE_CHECKING:
    from fairlead.core.books import Node, Shape
    from fairlead.core.books.node_columns import Columns, Mask

K = TypeVar("K", bound=Hashable)
Counts = npt.NDArray[np.int64]
NOWHERE = 0
"""The domain of nodes that lack the attribute."""
VIEWS_KEPT = 64


class Topology:
    """The values of one attribute as numbered domains of the rows."""

    __slots__ = ("domains", "key", "of_row", "version")

    def __init__(self, key: str, columns: Columns) -> None:
        self.key = key
        self.version = columns.version
        numbers: dict[str | None, int] = {None: NOWHERE}
        domains = [numbers.setdefault(node.labels.get(key), len(numbers)) for node in columns.rows]
        self.of_row = np.array(domains, dtype=np.int64)
        self.domains = len(numbers)


class View:
    """A tally by domain, over all rows or (`among`) some of them; domain 0 counts nothing."""

    __slots__ = ("among", "counts", "there", "topology")

    def __init__(self, tally: Tally, topology: Topology, among: Mask | None) -> None:
        self.topology, self.among = topology, among
        self.counts: Counts = np.zeros(topology.domains, dtype=np.int64)
        self.there: Counts = np.unique(topology.of_row if among is None else topology.of_row[among])
        """The domains that have such rows."""
        for node, count in tally.on_node.items():
            self.add(node, count)

    def add(self, node: Node, change: int) -> None:
        """So much more on this node."""
        domain = self.domain_of(node)
        if domain != NOWHERE:
            self.counts[domain] += change

    def domain_of(self, node: Node) -> int:
        """Where work on this node counts; `NOWHERE` if it does not."""
        counts_here = self.among is None or self.among[node.row]
        return int(self.topology.of_row[node.row]) if counts_here else NOWHERE

    def by_row(self) -> Counts:
        """For each row how much there is in its domain; 0 where the attribute is missing."""
        return self.counts[self.topology.of_row]

    def at(self, node: Node) -> int:
        """How much there is in the domain of this node."""
        return int(self.counts[self.topology.of_row[node.row]])


@dataclass(slots=True, eq=False)
class Tally:
    """Running work of one kind, by node."""

    total: int = 0
    on_node: dict[Node, int] = field(default_factory=dict)
    watchers: dict[Shape, None] = field(default_factory=dict)
    """Shapes that fit nowhere and depend on this."""
    _views: list[View] = field(default_factory=list)

    def add(self, node: Node, change: int, version: int) -> None:
        """So much more on this node; views of the columns' `version` follow, older ones are void."""
        self.total += change
        left = self.on_node.get(node, 0) + change
        if left:
            self.on_node[node] = left
        else:
            del self.on_node[node]
        if self._views:
            self._views = [view for view in self._views if view.topology.version == version]
            for view in self._views:
                view.add(node, change)

    def view(self, topology: Topology, among: Mask | None = None) -> View:
        """It by domain of a topology of the present rows; `among` must be one object for as long as it is the same."""
        for view in self._views:
            if view.topology is topology and view.among is among:
                return view
        kept = [view for view in self._views if view.topology.version == topology.version]
        self._views = kept if len(kept) < VIEWS_KEPT else []
        found = View(self, topology, among)
        self._views.append(found)
        return found


class TallyIndex(Generic[K]):
    """Tallies by selector, with a quick way to those that match given labels."""

    def __init__(self) -> None:
        self.tallies: dict[K, Tally] = {}
        """By what tells them apart: the selector, or selector and topology key."""
        self._selectors: SelectorIndex[K] = SelectorIndex()

    def add(self, key: K, selector: Selector) -> Tally:
        """A new tally."""
        tally = self.tallies[key] = Tally()
        self._selectors.add(key, selector)
        return tally

    def count(self, key: K, selector: Selector, node: Node, change: int, version: int) -> Tally:
        """So much more on this node (`Tally.add`); a tally is made when it is new, and dropped when nothing is left."""
        tally = self.tallies.get(key) or self.add(key, selector)
        tally.add(node, change, version)
        if not tally.total:
            self.drop(key)
        return tally

    def drop(self, key: K) -> None:
        """A tally that is needed no longer."""
        del self.tallies[key]
        self._selectors.drop(key)

    def matching(self, labels: Mapping[str, str]) -> Iterator[tuple[K, Tally]]:
        """Those whose selector matches, with their keys, in no order that reaches a decision."""
        for key in self._selectors.matching(labels):
            yield key, self.tallies[key]
