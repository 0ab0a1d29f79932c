"""Columns: the nodes of a partition as arrays of numbers, to look at all of them at once.

Decides nothing: it answers which rows have room for an amount, and which row of a choice comes first. Never changes a
node. Row i is the i-th node by id, so that of equal scores the first row wins. Invariant: after `sync` every row says
what its node says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairlead.core.model.resources import INT64_MAX, INT64_MIN, Items

if TYPE_CHECKING:
    from fairlead.core.books.node import Node

Mask = npt.NDArray[np.bool_]
Column = npt.NDArray[np.int64]


class Columns:
    """The nodes in rows; changed ones are written again when somebody looks."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self._nodes = nodes
        self._valid = False
        self.version = 0
        """Grows whenever rows are to be put together anew; what was worked out for other rows is void."""
        self.rows: list[Node] = []
        self.stale: dict[Node, None] = {}
        """Nodes whose row is to be written again."""
        self.scores: npt.NDArray[np.float64] = np.empty(0)
        self.open: Mask = np.empty(0, dtype=np.bool_)
        """Nodes that take new work and are not set aside."""
        self.common: Mask = np.empty(0, dtype=np.bool_)
        """Those of them that keep nothing away."""
        self.amounts: dict[str, Column] = {}
        """What is free, by name."""
        self._totals: dict[str, Column] = {}
        """What is there in total, by name; made when somebody asks."""
        self._least: dict[str, int] = {}
        """What each node has of that, or more."""

    def resized(self) -> None:
        """A node has more or less in total."""
        self._totals.clear()

    def forget(self) -> None:
        """A node joined or left, or says something else about itself: put the rows together anew."""
        self._valid = False
        self.version += 1

    def behind(self) -> int:
        """How many rows the next `sync` has to write, at most."""
        return len(self.stale) if self._valid else len(self._nodes)

    def sync(self) -> None:
        """Bring the rows up to date."""
        if not self._valid:
            self._build()
        else:
            for node in self.stale:
                self._write(node)
        self.stale.clear()

    def has_room(self, among: Mask, items: Items) -> Mask:
        """Which of these rows have so much free."""
        return _with_amount(self.amounts, among, items)

    def could_hold(self, among: Mask, items: Items) -> Mask:
        """Which of these rows have so much in total; what each node has so much of needs no look."""
        if not self._totals:
            self._count_totals()
        short = tuple((name, amount) for name, amount in items if self._least.get(name, 0) < amount)
        return _with_amount(self._totals, among, short) if short else among

    def copies(self, among: Mask, items: Items, at_most: int) -> int:
        """How often all of these rows together could hold so much in total, each of them `at_most` times."""
        if not self._totals:
            self._count_totals()
        times = np.where(among, at_most, 0)
        for name, amount in items:
            column = self._totals.get(name)
            if column is None:
                return 0
            np.minimum(times, column // amount, out=times)
        return int(times.sum())

    def tightest_first(self, among: Mask, items: Items) -> Iterator[Node]:
        """Of these rows, which could all hold the amount, those first that it would leave least of: summed over what is
        free there as parts of that, 0 where it asks for all of that or more, 1 where it asks for none; then by score
        and id.
        """
        chosen = among.nonzero()[0]
        if not len(chosen):
            return
        left, asked = np.zeros(len(chosen)), dict(items)
        for name in sorted(self.amounts):  # In an order that a restart does not change: what is added up is rounded.
            free = self.amounts[name].take(chosen)
            np.maximum(free, 0, out=free)
            rest = free - asked.get(name, 0)
            np.maximum(rest, 0, out=rest)
            left += rest / np.maximum(free, 1, out=free)
        scores = self.scores.take(chosen)
        least = (left == left[left.argmin()]).nonzero()[0]
        yield self.rows[int(chosen[least[scores.take(least).argmin()]])]
        for row in chosen[np.lexsort((scores, left))][1:]:
            yield self.rows[int(row)]

    def first(self, among: Mask) -> Node | None:
        """Of these rows the node with the smallest score, then the smallest id."""
        chosen = np.flatnonzero(among)
        if not len(chosen):
            return None
        return self.rows[int(chosen[np.argmin(self.scores[chosen])])]

    def _build(self) -> None:
        self.rows = sorted(self._nodes.values(), key=lambda n: n.id)
        size = len(self.rows)
        self.scores = np.zeros(size)
        self.open = np.zeros(size, dtype=np.bool_)
        self.common = np.zeros(size, dtype=np.bool_)
        self.amounts = {}
        for i, node in enumerate(self.rows):
            node.row = i
            self._write(node)
        self._totals.clear()
        self._valid = True

    def _count_totals(self) -> None:
        self._least.clear()
        for name in {name: None for node in self.rows for name in node.total}:
            amounts = [min(node.total.get(name, 0), INT64_MAX) for node in self.rows]
            self._totals[name] = np.array(amounts, dtype=np.int64)
            self._least[name] = min(amounts)

    def _write(self, node: Node) -> None:
        row = node.row
        self.scores[row] = node.score()
        self.open[row] = node.is_open
        self.common[row] = node.is_common
        for name in node.free:
            if name not in self.amounts:
                self.amounts[name] = np.zeros(len(self.rows), dtype=np.int64)
        for name, column in self.amounts.items():
            column[row] = max(min(node.free.get(name, 0), INT64_MAX), INT64_MIN)


def _with_amount(columns: dict[str, Column], among: Mask, items: Items) -> Mask:
    """Which of these rows have so much in the columns; a name that no node has is 0 everywhere."""
    fits = among.copy()
    for name, amount in items:
        column = columns.get(name)
        if column is None:
            return np.zeros_like(among)
        np.logical_and(fits, column >= amount, out=fits)
    return fits
