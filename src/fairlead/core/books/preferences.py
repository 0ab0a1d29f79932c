"""Preferences: of the nodes on which an ask may start, those that it likes best.

Decides by points. Each kind of preference gives a row from 0 to 100, the best of the rows at hand 100 (none where they
are equal), and counts with Kubernetes' weight: taints that would rather be left alone 3, attributes 2, the company
of other work 2 (what it likes itself and what that likes of it, in one sum), an even spread 2. Images that nodes have
(`core.books.images`) come with points that are not stretched, and count 1. Never keeps an ask off a node. Invariant:
the answer is some of the rows that were given, and all of them where nothing is preferred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairlead.core.books.topology_counts import NOWHERE
from fairlead.core.model.matching import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairlead.core.books.demand import Shape
    from fairlead.core.books.node import Node
    from fairlead.core.books.node_columns import Mask
    from fairlead.core.books.nodes import NodeTable
    from fairlead.core.model.constraints import Constraints
    from fairlead.core.model.specs import AskSpec

Points = npt.NDArray[np.int64]
OF_TAINTS, OF_NODES, OF_WORK, OF_SPREAD, OF_IMAGES = 3, 2, 2, 2, 1
NOTHING_OF_ITS_OWN: Mapping[str, str] = {}


def first_fit(table: NodeTable, shape: Shape, spec: AskSpec | None, has_wish: bool) -> Node | None:
    """Of the open nodes that suit the shape and have room for it the first in order that it likes best.

    `spec` is one ask of the shape, and `has_wish` says whether its own labels or images tell nodes apart.
    """
    columns = table.columns
    columns.sync()
    mask = columns.has_room(columns.open & table.terrain.allowed(shape), shape.items)
    if mask is not None and (shape.where.prefers or table.discouraging or has_wish):
        mask = best(table, shape.where, mask, spec)
    return columns.first(mask)


def best(table: NodeTable, where: Constraints, mask: Mask, spec: AskSpec | None = None) -> Mask:
    """Those of the rows of `mask` that have the most points."""
    points: Points = np.zeros(len(mask), dtype=np.int64)
    for weight, liked in _liked(table, where, spec.labels if spec is not None else NOTHING_OF_ITS_OWN):
        points += weight * scaled(liked, mask)
    if spec is not None and spec.images and (has := table.images.points(spec.images)) is not None:
        points += OF_IMAGES * has
    most: Mask = points == points[mask].max(initial=0)
    return mask & most


def _liked(table: NodeTable, where: Constraints, labels: Mapping[str, str]) -> list[tuple[int, Points]]:
    """By kind: its weight, and how much each row is liked, in a measure of its own."""
    terrain, rows = table.terrain, table.columns.rows
    found = []
    if table.discouraging:
        found.append((OF_TAINTS, -terrain.ground(where).discouraging()))
    if where.preferred_nodes:
        found.append((OF_NODES, _of_rows(rows, lambda n: _likes(where, n))))
    if where.preferred_work or terrain.company.wishes.tallies:
        found.append((OF_WORK, company(table, where, labels)))
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


def company(table: NodeTable, where: Constraints, labels: Mapping[str, str]) -> Points:
    """For each row how well work with these constraints and labels and what runs there go together."""
    terrain = table.terrain
    liked = terrain.company.liking(labels, terrain, len(table.columns.rows))
    for wish in where.preferred_work:
        view = terrain.standing_of(wish.term.selector).view(terrain.topology(wish.term.topology_key))
        liked += wish.weight * view.by_row()
    return liked


def _likes(where: Constraints, node: Node) -> int:
    return sum(wish.weight for wish in where.preferred_nodes if matches(wish.term, node.labels))


def _of_rows(rows: list[Node], measure: Callable[[Node], int]) -> Points:
    return np.fromiter((measure(node) for node in rows), dtype=np.int64, count=len(rows))


def scaled(liked: Points, mask: Mask) -> Points:
    """From 0 to 100 among the rows of the mask."""
    here = liked[mask]
    if not len(here) or here.min() == here.max():
        return np.zeros(len(liked), dtype=np.int64)
    least, most = int(here.min()), int(here.max())
    scaled: Points = (liked - least) * 100 // (most - least)
    return scaled
