"""Columns: the nodes of a partition as arrays of numbers, to look at all of them at once.

Decides nothing: it answers which rows have room for an amount, and which row of a choice comes first. Never changes a
node. Row i is the i-th node by id, so that of equal scores the first row wins. Invariant: after `sync` every row says
what its node says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairlead.core.model.resources import INT64_MAX, INT64_MIN, Items

if TYPE_CHECKING:
    from fairlead.core.books.node import Node

Mask = npt.NDArray[np.bool_]


class Columns:
    """The nodes in rows; changed ones are written again when somebody looks."""

    __slots__ = ("_nodes", "_score", "_valid", "amounts", "common", "open", "rows", "scores", "stale", "version")

    def __init__(self, nodes: dict[str, Node], score: Callable[[Node], float]) -> None:
        self._nodes = nodes
        self._score = score
        self._valid = False
        self.version = 0
        """Grows whenever rows are put together anew; what was worked out for other rows is void."""
        self.rows: list[Node] = []
        self.stale: list[Node] = []
        """Nodes whose row is to be written again."""
        self.scores: npt.NDArray[np.float64] = np.empty(0)
        self.open: Mask = np.empty(0, dtype=np.bool_)
        """Nodes that take new work and are not set aside."""
        self.common: Mask = np.empty(0, dtype=np.bool_)
        """Those of them that keep nobody away."""
        self.amounts: dict[str, npt.NDArray[np.int64]] = {}

    def forget(self) -> None:
        """A node joined or left, or says something else about itself: put the rows together anew."""
        self._valid = False

    def behind(self) -> int:
        """How many rows the next `sync` has to write, at most."""
        return len(self.stale) if self._valid else len(self._nodes)

    def sync(self) -> None:
        """Bring the rows up to date."""
        if not self._valid:
            self._build()
        for node in self.stale:
            node.row_stale = False
            if node.row >= 0 and self._nodes.get(node.id) is node:
                self._write(node)
        self.stale.clear()

    def has_room(self, among: Mask, items: Items) -> Mask | None:
        """Which of these rows have so much free; None: none, because no node has one of the names."""
        fits = among.copy()
        for name, amount in items:
            column = self.amounts.get(name)
            if column is None:
                return None
            np.logical_and(fits, column >= amount, out=fits)
        return fits

    def first(self, among: Mask | None) -> Node | None:
        """Of these rows the node with the smallest score, then the smallest id."""
        chosen = np.flatnonzero(among) if among is not None else ()
        if not len(chosen):
            return None
        return self.rows[int(chosen[np.argmin(self.scores[chosen])])]

    def _build(self) -> None:
        self.rows = sorted(self._nodes.values(), key=lambda n: n.id)
        size = len(self.rows)
        self.scores = np.zeros(size)
        self.open = np.zeros(size, dtype=np.bool_)
        self.common = np.zeros(size, dtype=np.bool_)
        names = sorted({n: None for node in self.rows for n in node.free})
        self.amounts = {n: np.zeros(size, dtype=np.int64) for n in names}
        for i, node in enumerate(self.rows):
            node.row = i
            self._write(node)
        self._valid = True
        self.version += 1

    def _write(self, node: Node) -> None:
        row = node.row
        self.scores[row] = self._score(node)
        self.open[row] = node.is_open
        self.common[row] = node.is_common
        for name, column in self.amounts.items():
            column[row] = max(min(node.free.get(name, 0), INT64_MAX), INT64_MIN)
        for name in node.free:
            if name not in self.amounts:
                column = self.amounts[name] = np.zeros(len(self.rows), dtype=np.int64)
                column[row] = max(min(node.free[name], INT64_MAX), INT64_MIN)
