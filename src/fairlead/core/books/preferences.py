"""Preferences: of the nodes on which an ask may start, those that it likes best.

Decides by points. Each kind of preference gives a row from 0 to 100 and counts with Kubernetes' weight. By taints that
would rather be left alone (3) and by attributes (2) a row has its part of the most that one of the rows at hand has; by
the company of other work (2: what it likes itself and what that likes of it, in one sum) and by an even spread (2) the
best of them has 100, and the worst nothing. Images that nodes have (`core.books.images`) come with points of their own,
and count 1. Never keeps an ask off a node. Invariant: the answer is some of the rows that were given, and all of them
where nothing is preferred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.books.topology_counts import NOWHERE, Counts, TallyIndex
from fairlead.core.model.constraints import WEIGHT_OF_REQUIRED
from fairlead.core.model.matching import Selector, matches
from fairlead.core.model.resources import INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.books.demand import Shape
    from fairlead.core.books.node import Node
    from fairlead.core.books.node_columns import Mask
    from fairlead.core.books.nodes import NodeTable
    from fairlead.core.model.constraints import Constraints
    from fairlead.core.model.specs import AskSpec

Points = Counts
OF_TAINTS, OF_NODES, OF_WORK, OF_SPREAD, OF_IMAGES = 3, 2, 2, 2, 1
CompanyKey = tuple[Selector, str, int]
"""The work it is about, the topology key, and the weight."""


class Company:
    """What running work would rather have of newcomers: all its terms by what they are about, how often each holds, and
    where. A preferred term counts with its weight for work that it is about, a required affinity term with
    `WEIGHT_OF_REQUIRED`.
    """

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
        return any(True for _ in self.wishes.matching(labels))


def first_fit(table: NodeTable, shape: Shape, spec: AskSpec | None, has_wish: bool) -> Node | None:
    """Of the open nodes that suit the shape and have room for it the first in order that it likes best.

    `spec` is one ask of the shape (None: any whose labels and images tell no nodes apart), and `has_wish` says whether
    its own do.
    """
    columns = table.columns
    columns.sync()
    mask = columns.has_room(columns.open, shape.items)
    if not mask.any():
        return None  # Where the cluster is full, that is found much sooner than where the constraints let it in.
    mask &= table.terrain.allowed(shape)
    if shape.where.prefers or table.discouraging or has_wish:
        mask = best(table, shape.where, mask, spec)
    return columns.first(mask)


def best_of(table: NodeTable, nodes: list[Node], where: Constraints, spec: AskSpec) -> list[Node]:
    """Those of these nodes that have the most points."""
    columns = table.columns
    columns.sync()
    mask: Mask = np.zeros(len(columns.rows), dtype=np.bool_)
    mask[[node.row for node in nodes]] = True
    return [columns.rows[row] for row in np.flatnonzero(best(table, where, mask, spec))]


def best(table: NodeTable, where: Constraints, mask: Mask, spec: AskSpec | None = None) -> Mask:
    """Those of the rows of `mask` that have the most points."""
    points: Points = np.zeros(len(mask), dtype=np.int64)
    for weight, liked in _liked(table, where, spec.labels if spec is not None else None, mask):
        points += weight * liked
    if spec is not None and spec.images and (has := table.images.points(spec.images)) is not None:
        points += OF_IMAGES * has
    # Below 0 as well: of nodes that are all disliked one is still the best.
    most: Mask = points == points[mask].max(initial=INT64_MIN)
    return mask & most


def _liked(
    table: NodeTable, where: Constraints, labels: Mapping[str, str] | None, mask: Mask
) -> list[tuple[int, Points]]:
    """By kind: its weight, and the points of each row, by what the rows of the mask have."""
    terrain, rows = table.terrain, table.columns.rows
    found = []
    if table.discouraging:
        found.append((OF_TAINTS, 100 - _part_of_most(terrain.ground(where).discouraging, mask)))
    if where.preferred_nodes:
        found.append((OF_NODES, nodes_liked(table, where, mask)))
    if where.preferred_work or terrain.company.wishes.tallies:
        found.append((OF_WORK, scaled(company(table, where, labels), mask)))
    if where.preferred_spread:
        crowd = np.zeros(len(rows), dtype=np.int64)
        without: Mask = np.zeros(len(rows), dtype=np.bool_)
        for term in where.preferred_spread:
            topology = terrain.topology(term.topology_key)
            crowd += terrain.standing_of(term.selector).view(topology).by_row()
            without |= topology.of_row == NOWHERE
        crowd[without] = crowd.max(initial=0) + 1
        found.append((OF_SPREAD, scaled(-crowd, mask)))
    return found


def nodes_liked(table: NodeTable, where: Constraints, mask: Mask) -> Points:
    """For each row how far it is a node that these constraints prefer, in hundredths of the best of the mask."""
    rows = table.columns.rows
    liked = (sum(wish.weight for wish in where.preferred_nodes if matches(wish.term, node.labels)) for node in rows)
    return _part_of_most(np.fromiter(liked, dtype=np.int64, count=len(rows)), mask)


def company(table: NodeTable, where: Constraints, labels: Mapping[str, str] | None) -> Points:
    """For each row how well work with these constraints and labels and what runs there go together. Without labels
    (None): work that nothing which runs has a wish about, whatever its labels are.
    """
    terrain = table.terrain
    liked: Points = np.zeros(len(table.columns.rows), dtype=np.int64)
    for (_, topology_key, weight), tally in terrain.company.wishes.matching(labels) if labels is not None else ():
        liked += weight * tally.view(terrain.topology(topology_key)).by_row()
    for wish in where.preferred_work:
        view = terrain.standing_of(wish.term.selector).view(terrain.topology(wish.term.topology_key))
        liked += wish.weight * view.by_row()
    return liked


def _part_of_most(amounts: Points, mask: Mask) -> Points:
    """In hundredths of the most that a row of the mask has."""
    most = int(amounts[mask].max(initial=0))
    return amounts * 100 // most if most else amounts


def scaled(liked: Points, mask: Mask) -> Points:
    """From 0 for the least of the rows of the mask to 100 for the most."""
    here = liked[mask]
    if not len(here) or here.min() == here.max():
        return np.zeros_like(liked)
    least, most = int(here.min()), int(here.max())
    return (liked - least) * 100 // (most - least)
