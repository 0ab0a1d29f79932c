"""Places: each node as a waiting ask sees it: whether it may go there, and what is missing.

Decides the order of nodes by how little is missing. Never changes anything; which nodes suit at all is what the
scheduler's own filters say. Invariant: a place that is open and lacks nothing is one that the scheduler could choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING

from fairlead.core.books.kept_constraints import filter_on
from fairlead.core.model.matching import AFFINITY, ANTI_AFFINITY, PORTS, PROMISED, REPELLED, SPREAD, VOLUMES, WINDOW
from fairlead.wire.verdicts import NodeCount

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.node import Node
    from fairlead.core.books.partition import Partition


DRAINING = "draining"
RESERVED = "set aside for others"
NOT_REQUIRED = "not the node it has to run on"
RULED_OUT = "ruled out by "
"""Followed by the filter (`core.model.matching`)."""


_NOT_ANEW = (PORTS, VOLUMES, AFFINITY, ANTI_AFFINITY, REPELLED, SPREAD, WINDOW, PROMISED)
_OF_THIS_ONE = frozenset(f"{RULED_OUT}{name}" for name in _NOT_ANEW)
"""By what runs on a node, or by its name: a new one like it may be free of that."""


@dataclass(frozen=True, slots=True)
class Place:
    """One node as the ask sees it."""

    node: Node
    missing: dict[str, int]
    """What the ask needs beyond what is free, for the resources that are short."""
    closed: str = ""
    """Why it is out of the question whatever is free there; empty: it is not."""

    @property
    def is_open(self) -> bool:
        """Whether the ask could be placed here if there were room."""
        return not self.closed

    @property
    def suits(self) -> bool:
        """Whether nodes like this one would do."""
        return self.closed in ("", DRAINING, RESERVED)

    @property
    def would_suit_anew(self) -> bool:
        """Whether a new node like this one might do, without what runs here, under another name."""
        return self.suits or self.closed in _OF_THIS_ONE

    def lack(self, ask: Ask) -> float:
        """What is missing as a part of what is needed, summed."""
        needed = dict(ask.items)
        return sum(amount / needed[name] for name, amount in self.missing.items())


@dataclass(frozen=True, slots=True)
class Survey:
    """All nodes as the ask sees them, and those that come closest."""

    nodes: NodeCount
    closest: tuple[Place, ...]
    """Those that lack least, open ones first, and of these those that are large enough."""
    full: tuple[Place, ...]
    """Open ones that lack something, and of these those that lack least."""


def survey(partition: Partition, ask: Ask, most: int) -> Survey:
    """What can be said of all nodes, with at most so many of them named: without an object for each of many nodes."""
    rows: list[tuple[bool, bool, float, str, Node]] = []
    closed: dict[str, int] = {}
    opened = with_room = large_enough = 0
    needed = [(name, amount) for name, amount in ask.items if amount > 0]
    for node in partition.nodes.nodes.values():
        free, own, lack = node.free, dict(node.held.get(ask, ())), 0.0
        for name, amount in needed:
            missing = amount - free.get(name, 0) - own.get(name, 0)
            if missing > 0:
                lack += missing / amount
        why = _closed(partition, node, ask)
        if why:
            closed[why] = closed.get(why, 0) + 1
        else:
            opened += 1
            with_room += not lack
            large_enough += node.fits_total(ask.items)
        rows.append((bool(why), not node.fits_total(ask.items), lack, node.id, node))
    short = [row for row in rows if row[2] and not row[0]]
    return Survey(
        NodeCount(len(rows), opened, with_room, large_enough, dict(sorted(closed.items()))),
        tuple(place_of(partition, row[4], ask) for row in nsmallest(most, rows)),
        tuple(place_of(partition, row[4], ask) for row in nsmallest(most, short)),
    )


def places(partition: Partition, ask: Ask) -> list[Place]:
    """Every node, those that lack least first (open ones before closed ones)."""
    found = [place_of(partition, node, ask) for node in partition.nodes.nodes.values()]
    found.sort(key=lambda p: (bool(p.closed), p.lack(ask), p.node.id))
    return found


def place_of(partition: Partition, node: Node, ask: Ask) -> Place:
    """One node."""
    free, own = node.free, dict(node.held.get(ask, ()))
    missing = {
        name: amount - free.get(name, 0) - own.get(name, 0)
        for name, amount in ask.items
        if amount > 0 and amount > free.get(name, 0) + own.get(name, 0)
    }
    return Place(node, missing, _closed(partition, node, ask))


def _closed(partition: Partition, node: Node, ask: Ask) -> str:
    if ask.required_node not in ("", node.id):
        return NOT_REQUIRED
    filtered = filter_on(partition.nodes, ask, node)
    if filtered is not None:
        return f"{RULED_OUT}{filtered}"
    if ask.required_node:
        return ""  # Such an ask goes to its node even when that is drained or set aside.
    if not node.schedulable:
        return DRAINING
    if node.reservations and ask not in node.reservations:
        return RESERVED
    return ""
