"""Terrain: which nodes suit an ask with constraints, as things stand.

Decides for one node, or for all of them at once, whether selectors, taints, host ports, affinity, anti-affinity (also
that of running work against a newcomer) and spread let an ask in; room is the matter of `core.nodes`. Never places
anything. Invariant: both ways give the same answer, and a shape that suits no node is looked at again when a node or
running work changes so that it may.

The rules are Kubernetes' own: work that was told to stop counts until it is gone; several affinity terms look at work
that matches all of them; the first of a group that has affinity to itself may start anywhere that has the topology
keys; spread counts only nodes that the selectors name and that have all its keys, whatever their taints.

Nobody pays who does not use it: for plain asks the heap of nodes answers, which leaves out nodes with taints.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.constraints import ANYWHERE, HOSTNAME, AffinityTerm, Constraints, SpreadTerm, Toleration
from fairlead.core.suitability import (
    AFFINITY,
    ANTI_AFFINITY,
    PORTS,
    REPELLED,
    SELECTOR,
    SPREAD,
    TAINT,
    Selector,
    collide,
    is_selected,
    is_tolerated,
    matches,
    port_of,
)
from fairlead.core.tallies import NOWHERE, Counts, SelectorIndex, Tally, Topology, View

if TYPE_CHECKING:
    from fairlead.core.applications import Ask
    from fairlead.core.columns import Mask
    from fairlead.core.demand import Shape, ShapeKey
    from fairlead.core.nodes import Node, NodeTable

UNUSED_KEPT = 64
"""Tallies that no waiting shape needs are kept up to this many: counting from the start costs more than keeping."""
GROUNDS_KEPT = 512
"""So many different sets of selectors and tolerations are remembered with the nodes that they allow."""

GroundKey = tuple[Selector, tuple[Selector, ...], tuple[Toleration, ...]]
RepellerKey = tuple[Selector, str]
Test = Callable[["Ask"], bool]


class Ground:
    """The nodes that selectors and tolerations allow, which depends on nothing that runs."""

    __slots__ = ("_spread", "named", "open", "version")

    def __init__(self, where: Constraints, nodes: list[Node], version: int) -> None:
        self.version = version
        count = len(nodes)
        self.named: Mask = np.fromiter((is_selected(where, n.labels) for n in nodes), dtype=np.bool_, count=count)
        """Rows that the selectors name."""
        tolerated = (not n.keeps_away or is_tolerated(n.spec.taints, where.tolerations) for n in nodes)
        self.open: Mask = self.named & np.fromiter(tolerated, dtype=np.bool_, count=count)
        self._spread: dict[tuple[str, ...], Mask] = {}

    def spread_over(self, topologies: Iterable[Topology]) -> Mask:
        """Rows that count for spread: named, and with all the keys."""
        topologies = tuple(topologies)
        keys = tuple(t.key for t in topologies)
        found = self._spread.get(keys)
        if found is None:
            found = self.named.copy()
            for topology in topologies:
                found &= topology.of_row != NOWHERE
            self._spread[keys] = found
        return found


class Terrain:
    """Constraints against the nodes of one table and what runs on them."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.wary = False
        """Some running work keeps away even work without labels: nobody is plain."""
        self.label_keys: dict[str, None] = {}
        """Labels of work that some term has ever looked at: asks that differ in others alone are equal."""
        self.standing: SelectorIndex[Selector] = SelectorIndex()
        """How much running work matches a selector."""
        self.counted = self.standing.tallies
        """While this is empty, nobody wants to know what starts and ends without constraints of its own."""
        self.repellers: SelectorIndex[RepellerKey] = SelectorIndex()
        """How much running work has an anti-affinity term, by (selector, topology key)."""
        self.ports: dict[tuple[str, str], dict[str, Tally]] = {}
        """Running work by the host port that it uses, and the address."""
        self._users: dict[Selector, int] = {}
        """Of each selector that is counted, how many shapes need it."""
        self._topologies: dict[str, Topology] = {}
        self._grounds: dict[GroundKey, Ground] = {}

    # -- asks -----------------------------------------------------------------------------------------------------

    def learn(self, where: Constraints) -> list[str]:
        """Labels that count from now on because terms of `where` look at them; those that did not before."""
        new = []
        terms: tuple[AffinityTerm | SpreadTerm, ...] = (*where.affinity, *where.anti_affinity, *where.spread)
        for term in terms:
            for condition in term.selector:
                if condition.key not in self.label_keys:
                    self.label_keys[condition.key] = None
                    new.append(condition.key)
        return new

    def shape_key(self, ask: Ask) -> ShapeKey:
        """What the shape of an ask with constraints or labels depends on."""
        seen = self.label_keys
        labels = tuple(sorted((k, v) for k, v in ask.spec.labels.items() if k in seen)) if seen else ()
        if not labels and ask.spec.where is ANYWHERE:
            return (ask.items, ask.required_node)
        return (ask.items, ask.required_node, ask.spec.where, labels)

    def need(self, shape: Shape) -> None:
        """A shape is new: what it counts is kept for as long as it waits."""
        for selector in _selectors(shape.where):
            self._users[selector] = self._users.get(selector, 0) + 1

    def need_no_longer(self, shape: Shape) -> None:
        """A shape is gone."""
        self.unwatch(shape)
        for selector in _selectors(shape.where):
            left = self._users[selector] - 1
            if left:
                self._users[selector] = left
            else:
                del self._users[selector]
        tallies = self.counted
        if len(tallies) > len(self._users) + UNUSED_KEPT:
            for selector in [s for s in tallies if s not in self._users]:
                self.standing.drop(selector)

    # -- what runs ------------------------------------------------------------------------------------------------

    def started(self, ask: Ask, node: Node) -> None:
        """`ask` runs on `node` from now on."""
        self._count(ask, node, 1)

    def ended(self, ask: Ask, node: Node) -> None:
        """`ask` no longer runs on `node`."""
        self._count(ask, node, -1)

    def _count(self, ask: Ask, node: Node, change: int) -> None:
        version, where = self._table.columns.version, ask.spec.where
        if self.counted:
            for _, tally in self.standing.matching(ask.spec.labels):
                tally.add(node, change, version)
                self._wake(tally, drawn_only=change > 0)
                self._table.gains += 1
        if where is ANYWHERE:
            return
        for term in dict.fromkeys(where.anti_affinity):
            self._repel(term, node, change)
        for key, address in dict.fromkeys(map(port_of, where.ports)):
            users = self.ports.setdefault(key, {})
            tally = users.get(address) or users.setdefault(address, Tally(()))
            tally.add(node, change, version)
            if not tally.total:
                del users[address]
            if not users:
                del self.ports[key]
        self._table.gains += 1

    def _repel(self, term: AffinityTerm, node: Node, change: int) -> None:
        key = (term.selector, term.topology_key)
        tally = self.repellers.tallies.get(key) or self.repellers.add(key, term.selector)
        tally.add(node, change, self._table.columns.version)
        if change < 0:
            self._wake(tally)
        if not tally.total:
            self.repellers.drop(key)
        if not tally.total or change > 0:
            self.wary = any(True for _ in self.repellers.matching({}))

    # -- who waits for a change -----------------------------------------------------------------------------------

    def watch(self, shape: Shape) -> None:
        """`shape` fits nowhere: look at it again when running work that matters for it changes."""
        labels = dict(shape.labels)
        watched = [self._standing_of(selector) for selector in _selectors(shape.where)]
        watched += (tally for _, tally in self.repellers.matching(labels))
        shape.watched = tuple(watched)
        for tally in watched:
            tally.watchers[shape] = None

    def unwatch(self, shape: Shape) -> None:
        """It need not be looked at because of running work any longer."""
        for tally in shape.watched:
            tally.watchers.pop(shape, None)
        shape.watched = ()

    def _wake(self, tally: Tally, drawn_only: bool = False) -> None:
        for shape in list(tally.watchers):
            if not drawn_only or shape.where.affinity or shape.where.spread:
                self._table.clear_unfit(shape)

    def domains_changed(self) -> None:
        """A node came or went: what is spread over the others may be allowed more."""
        for shape in [s for s in self._table.unfit if s.where.spread]:
            self._table.clear_unfit(shape)

    # -- one node -------------------------------------------------------------------------------------------------

    def may_let(self, shape: Shape, node: Node) -> bool:
        """Whether the node suits the shape as far as what runs elsewhere does not matter."""
        if shape.is_plain:
            return not node.keeps_away
        where = shape.where
        if not is_selected(where, node.labels) or not is_tolerated(node.spec.taints, where.tolerations):
            return False
        return not where.ports or not self._port_taken(where, node, ())

    def misfit(
        self, where: Constraints, labels: Mapping[str, str], node: Node, gone: Collection[Ask] = ()
    ) -> str | None:
        """The first of `FILTERS` that keeps work with these constraints and labels off the node; None: it suits.

        `gone` is running work that is taken to have ended: so preemption asks whether a node would do without it.
        """
        if where is not ANYWHERE and not is_selected(where, node.labels):
            return SELECTOR
        if node.keeps_away and not is_tolerated(node.spec.taints, where.tolerations):
            return TAINT
        if where.ports and self._port_taken(where, node, gone):
            return PORTS
        if where.affinity and not self._is_drawn(where, labels, node, gone):
            return AFFINITY
        if where.anti_affinity and any(
            self._present(self._standing_of(t.selector), t.topology_key, node, gone, _matching(t.selector))
            for t in where.anti_affinity
        ):
            return ANTI_AFFINITY
        if self.repellers.tallies and any(
            self._present(tally, key[1], node, gone, _having(key)) for key, tally in self.repellers.matching(labels)
        ):
            return REPELLED
        if where.spread and not all(self._spreads(where, term, labels, node, gone) for term in where.spread):
            return SPREAD
        return None

    def _present(self, tally: Tally, topology_key: str, node: Node, gone: Collection[Ask], counts: Test) -> int:
        """How much of a tally is in the node's domain, those gone left out."""
        if not tally.total:
            return 0
        found = tally.view(self._topology(topology_key)).at(node)
        if not found or not gone:
            return found
        here = node.labels.get(topology_key)
        return found - sum(1 for a in gone if a.node and a.node.labels.get(topology_key) == here and counts(a))

    def _port_taken(self, where: Constraints, node: Node, gone: Collection[Ask]) -> bool:
        for tally, address in self._colliding(where):
            used = tally.on_node.get(node, 0)
            if used and used > sum(1 for a in gone if a.node is node and address in map(port_of, a.spec.where.ports)):
                return True
        return False

    def _colliding(self, where: Constraints) -> Iterator[tuple[Tally, tuple[tuple[str, str], str]]]:
        for port in where.ports:
            key, address = port_of(port)
            for theirs, tally in self.ports.get(key, {}).items():
                if collide(address, theirs):
                    yield tally, (key, theirs)

    def _is_drawn(self, where: Constraints, labels: Mapping[str, str], node: Node, gone: Collection[Ask]) -> bool:
        selector = _all_of(where.affinity)
        tally, counts = self._standing_of(selector), _matching(selector)
        keys = [term.topology_key for term in where.affinity]
        if any(key not in node.labels for key in keys):
            return False
        if all(self._present(tally, key, node, gone, counts) for key in keys):
            return True
        left = self._counted(tally, keys) - sum(
            1 for a in gone for key in keys if a.node and key in a.node.labels and counts(a)
        )
        return not left and matches(selector, labels)

    def _counted(self, tally: Tally, keys: list[str]) -> int:
        """How often its work is in some domain of these keys."""
        if not tally.total:
            return 0
        return sum(int(tally.view(self._topology(key)).counts.sum()) for key in keys)

    def _spreads(
        self, where: Constraints, term: SpreadTerm, labels: Mapping[str, str], node: Node, gone: Collection[Ask]
    ) -> bool:
        view = self._spread_view(where, term)
        domain = int(view.topology.of_row[node.row])
        if domain == NOWHERE:
            return False
        counts = view.counts
        leaving = [a for a in gone if a.node and matches(term.selector, a.spec.labels)]
        if leaving:
            counts = counts.copy()
            for a in leaving:
                assert a.node is not None
                assert view.among is not None
                if view.among[a.node.row]:
                    counts[view.topology.of_row[a.node.row]] -= 1
        return int(counts[domain]) + matches(term.selector, labels) - self._fewest(view, counts, term) <= term.max_skew

    def _spread_view(self, where: Constraints, term: SpreadTerm) -> View:
        topologies = [self._topology(t.topology_key) for t in where.spread]
        among = self._ground(where).spread_over(topologies)
        return self._standing_of(term.selector).view(self._topology(term.topology_key), among)

    def _fewest(self, view: View, counts: Counts, term: SpreadTerm) -> int:
        """The least that any domain with nodes that count has."""
        if len(view.there) < term.min_domains or not len(view.there):
            return 0
        return int(counts[view.there].min())

    # -- all nodes ------------------------------------------------------------------------------------------------

    def first_fit(self, shape: Shape) -> Node | None:
        """The first open node in order that suits the shape and has room for it."""
        columns = self._table.columns
        columns.sync()
        return columns.first(columns.has_room(columns.open & self.allowed(shape), shape.items))

    def allowed(self, shape: Shape) -> Mask:
        """The rows that suit the shape: `misfit` for all nodes at once."""
        where, labels = shape.where, dict(shape.labels)
        mask = self._ground(where).open.copy()
        for tally, _ in self._colliding(where):
            mask &= tally.view(self._topology(HOSTNAME)).by_row() == 0
        if where.affinity:
            mask &= self._drawn_rows(where, labels)
        for term in where.anti_affinity:
            tally = self._standing_of(term.selector)
            if tally.total:
                mask &= tally.view(self._topology(term.topology_key)).by_row() == 0
        if self.repellers.tallies:
            for key, tally in self.repellers.matching(labels):
                mask &= tally.view(self._topology(key[1])).by_row() == 0
        for spread in where.spread:
            view = self._spread_view(where, spread)
            most = spread.max_skew + self._fewest(view, view.counts, spread) - matches(spread.selector, labels)
            mask &= (view.topology.of_row != NOWHERE) & (view.by_row() <= most)
        return mask

    def _drawn_rows(self, where: Constraints, labels: Mapping[str, str]) -> Mask:
        selector = _all_of(where.affinity)
        tally = self._standing_of(selector)
        keys = [term.topology_key for term in where.affinity]
        topologies = [self._topology(key) for key in keys]
        rows: Mask = np.ones(len(self._table.columns.rows), dtype=np.bool_)
        for topology in topologies:
            rows &= topology.of_row != NOWHERE
        if not self._counted(tally, keys) and matches(selector, labels):
            return rows
        for topology in topologies:
            rows &= tally.view(topology).by_row() > 0
        return rows

    # -- what is remembered ---------------------------------------------------------------------------------------

    def _standing_of(self, selector: Selector) -> Tally:
        """Running work that matches a selector; counted once, kept up to date from then on."""
        found = self.counted.get(selector)
        if found is None:
            found = self.standing.add(selector, selector)
            for node in self._table.nodes.values():
                count = sum(1 for a in node.allocations if matches(selector, a.spec.labels))
                if count:
                    found.add(node, count, self._table.columns.version)
        return found

    def _topology(self, key: str) -> Topology:
        columns = self._table.columns
        columns.sync()
        found = self._topologies.get(key)
        if found is None or found.version != columns.version:
            if found is None and len(self._topologies) >= GROUNDS_KEPT:
                self._topologies.clear()
            found = self._topologies[key] = Topology(key, columns)
        return found

    def _ground(self, where: Constraints) -> Ground:
        columns = self._table.columns
        columns.sync()
        key = (where.selector, where.node_terms, where.tolerations)
        found = self._grounds.get(key)
        if found is None or found.version != columns.version:
            if found is None and len(self._grounds) >= GROUNDS_KEPT:
                self._grounds.clear()
            found = self._grounds[key] = Ground(where, columns.rows, columns.version)
        return found


# -- what terms look at -------------------------------------------------------------------------------------------


def _all_of(terms: tuple[AffinityTerm, ...]) -> Selector:
    """The selector of work that matches every one of the terms."""
    return terms[0].selector if len(terms) == 1 else tuple(dict.fromkeys(c for term in terms for c in term.selector))


def _selectors(where: Constraints) -> dict[Selector, None]:
    """What has to be counted so that it is known where work with these constraints may run."""
    found: dict[Selector, None] = {}
    if where.affinity:
        found[_all_of(where.affinity)] = None
    found |= dict.fromkeys(term.selector for term in where.anti_affinity)
    found |= dict.fromkeys(term.selector for term in where.spread)
    return found


def _matching(selector: Selector) -> Test:
    return lambda ask: matches(selector, ask.spec.labels)


def _having(key: RepellerKey) -> Test:
    return lambda ask: any((t.selector, t.topology_key) == key for t in ask.spec.where.anti_affinity)
