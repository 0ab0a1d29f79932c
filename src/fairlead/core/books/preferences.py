"""Preferences: of the nodes on which an ask may start, those that it likes best.

Decides by points. Each kind of preference gives a row from 0 to 100, the best of the rows at hand 100 (none where they
are equal), and counts with Kubernetes' weight: taints that would rather be left alone 3, attributes 2, the company
of other work 2, an even spread 2. Never keeps an ask off a node. Invariant: the answer is some of the rows that were
given, and all of them where nothing is preferred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairlead.core.books.topology_counts import NOWHERE
from fairlead.core.model.matching import matches

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.core.books.demand import Shape
    from fairlead.core.books.node import Node
    from fairlead.core.books.node_columns import Mask
    from fairlead.core.books.nodes import NodeTable
    from fairlead.core.model.constraints import Constraints

Points = npt.NDArray[np.int64]
OF_TAINTS, OF_NODES, OF_WORK, OF_SPREAD = 3, 2, 2, 2


def first_fit(table: NodeTable, shape: Shape) -> Node | None:
    """Of the open nodes that suit the shape and have room for it the first in order that it likes best."""
    columns = table.columns
    columns.sync()
    mask = columns.has_room(columns.open & table.terrain.allowed(shape), shape.items)
    if mask is not None and (shape.where.prefers or table.discouraging):
        mask = best(table, shape.where, mask)
    return columns.first(mask)


def best(table: NodeTable, where: Constraints, mask: Mask) -> Mask:
    """Those of the rows of `mask` that have the most points."""
    points: Points = np.zeros(len(mask), dtype=np.int64)
    for weight, liked in _liked(table, where):
        points += weight * _scaled(liked, mask)
    most: Mask = points == points[mask].max(initial=0)
    return mask & most


def _liked(table: NodeTable, where: Constraints) -> list[tuple[int, Points]]:
    """By kind: its weight, and how much each row is liked, in a measure of its own."""
    terrain, rows = table.terrain, table.columns.rows
    found = []
    if table.discouraging:
        found.append((OF_TAINTS, -terrain.ground(where).discouraging()))
    if where.preferred_nodes:
        found.append((OF_NODES, _of_rows(rows, lambda n: _likes(where, n))))
    if where.preferred_work:
        liked = np.zeros(len(rows), dtype=np.int64)
        for wish in where.preferred_work:
            view = terrain.standing_of(wish.term.selector).view(terrain.topology(wish.term.topology_key))
            liked += wish.weight * view.by_row()
        found.append((OF_WORK, liked))
    if where.preferred_spread:
        crowd = np.zeros(len(rows), dtype=np.int64)
        without: Mask = np.zeros(len(rows), dtype=np.bool_)
        for term in where.preferred_spread:
            topology = terrain.topology(term.topology_key)
            crowd += terrain.standing_of(term.selector).view(topology).by_row()
            without |= topology.of_row == NOWHERE
        crowd[without] = crowd.max(initial=0) + 1
        found.append((OF_SPREAD, -crowd))
    return found


def _likes(where: Constraints, node: Node) -> int:
    return sum(wish.weight for wish in where.preferred_nodes if matches(wish.term, node.labels))


def _of_rows(rows: list[Node], measure: Callable[[Node], int]) -> Points:
    return np.fromiter((measure(node) for node in rows), dtype=np.int64, count=len(rows))


def _scaled(liked: Points, mask: Mask) -> Points:
    """From 0 to 100 among the rows of the mask."""
    here = liked[mask]
    if not len(here) or here.min() == here.max():
        return np.zeros(len(liked), dtype=np.int64)
    least, most = int(here.min()), int(here.max())
    scaled: Points = (liked - least) * 100 // (most - least)
    return scaled
