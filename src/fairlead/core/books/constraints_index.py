"""Terrain: which nodes suit an ask with constraints, as things stand.

Decides for one node, or for all of them at once, whether selectors, taints, host ports, affinity, anti-affinity (also
that of running work against a newcomer) and spread let an ask in; room is the matter of `core.books.nodes`. Never
places anything. Invariant: both ways give the same answer, and a shape that suits no node is looked at again when a
node or running work changes so that it may.

The rules are Kubernetes' own: work that was told to stop counts until it is gone; several affinity terms look at work
that matches all of them; the first of a group that has affinity to itself may start anywhere that has the topology
keys; spread counts nodes that have all its keys, and of these those that its terms say.

What does not use it does not pay: for plain asks the heap of nodes answers, which leaves out nodes with taints.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.books import kept_constraints
from fairlead.core.books.label_keys import LabelKeys
from fairlead.core.books.node_filters import Grounds
from fairlead.core.books.preferences import Company
from fairlead.core.books.topology_counts import NOWHERE, Counts, Tally, TallyIndex, View
from fairlead.core.books.volume_limits import VolumeLimits
from fairlead.core.model.constraints import ANYWHERE, AffinityTerm, Constraints, SpreadTerm
from fairlead.core.model.matching import (
    AFFINITY,
    ANTI_AFFINITY,
    NO_DEVICES,
    PORTS,
    PROMISED,
    REPELLED,
    SELECTOR,
    SPREAD,
    TAINT,
    VOLUMES,
    Selector,
    all_of,
    collide,
    counted_for,
    drawn_by,
    has_devices,
    is_selected,
    is_tolerated,
    looked_at,
    matches,
    port_of,
)

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Node, NodeTable, Shape
    from fairlead.core.books.demand import ShapeKey
    from fairlead.core.books.node_columns import Mask
    from fairlead.core.model.specs import AskSpec

SPARE = 64
"""Tallies that no waiting shape needs are dropped when there are twice as many as were needed when last looked, and
this many more: counting from the start costs more than keeping.
"""

RepellerKey = tuple[Selector, str]
Test = Callable[["Ask"], bool]


class Terrain:
    """Constraints against the nodes of one table and what runs on them."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.wary = False
        """Some running work keeps away even work without labels: nothing is plain."""
        self.label_keys = LabelKeys()
        """Labels of work that some term looks at: asks that differ in others alone are equal."""
        self.standing: TallyIndex[Selector] = TallyIndex()
        """How much running work matches a selector."""
        self.counted = self.standing.tallies
        """While this is empty, nothing depends on what starts and ends without constraints of its own."""
        self.repellers: TallyIndex[RepellerKey] = TallyIndex()
        """How much running work has an anti-affinity term, by (selector, topology key)."""
        self.ports: dict[tuple[str, str], dict[str, Tally]] = {}
        """Running work by the host port that it uses, and the address."""
        self.volumes, self.company = VolumeLimits(), Company()
        self.promised: dict[Ask, Node] = {}
        """Asks that count on a node as if they ran there (`core.books.kept_constraints`)."""
        self.drawn: dict[Ask, Node] = {}  # Those of them that want to be with certain work, or are spread among it.
        self._supposed: list[tuple[AskSpec, Node]] = []
        """What is taken to run there for as long as something is tried."""
        self._tidy_at = SPARE
        """When more selectors are counted than these, those that no waiting shape needs are dropped."""
        grounds = Grounds(table.columns)
        self.ground, self.topology = grounds.of, grounds.topology

    # -- asks -----------------------------------------------------------------------------------------------------

    def shape_key(self, ask: Ask) -> ShapeKey:
        """What the shape of an ask with constraints or labels depends on."""
        seen = self.label_keys
        labels = tuple(sorted((k, v) for k, v in ask.spec.labels.items() if k in seen)) if seen else ()
        if not labels and ask.where is ANYWHERE:
            return (ask.items, ask.required_node)
        return (ask.items, ask.required_node, ask.where, labels)

    def forget(self, shape: Shape) -> None:
        """A shape is gone; what is counted for those that wait is kept."""
        self.unwatch(shape)
        if len(self.counted) > self._tidy_at:
            waiting = (*self._table.fitting, *self._table.unfit)
            needed = {selector: None for each in waiting for selector in counted_for(each.where)}
            for selector in [s for s in self.counted if s not in needed]:
                self.standing.drop(selector)
            self._tidy_at = 2 * len(self.counted) + SPARE

    # -- what runs ------------------------------------------------------------------------------------------------

    def count(self, spec: AskSpec, node: Node, change: int) -> None:
        """Work that this describes, of whatever scheduler, runs on `node` from now on (1), or no longer (-1)."""
        if self.drawn:
            kept_constraints.wake_the_kept_off(self._table, spec.labels)
        if self.counted:
            for _, tally in self.standing.matching(spec.labels):
                tally.add(node, change, self._table.columns.version)
                self._wake(tally, drawn_only=change > 0)
                self._table.gains += 1
        if spec.where is not ANYWHERE:
            self.claimed(spec.where, node, change)
            self.company.count(spec.where, node, change, self._table.columns.version)

    def suppose(self, spec: AskSpec, node: Node) -> None:
        """Work is taken to run there until `suppose_no_more`, also by what is counted for the first time meanwhile."""
        self._supposed.append((spec, node))
        self.count(spec, node, 1)

    def suppose_no_more(self) -> None:
        """Nothing is taken to run that does not."""
        for spec, node in self._supposed:
            self.count(spec, node, -1)
        self._supposed.clear()

    def claimed(self, where: Constraints, node: Node, change: int) -> None:
        """Its ports and its anti-affinity count there from now on (1), or no longer (-1)."""
        version = self._table.columns.version
        for term in dict.fromkeys(where.anti_affinity):
            tally = self.repellers.count((term.selector, term.topology_key), term.selector, node, change, version)
            if change < 0:
                self._wake(tally)
            if not tally.total or change > 0:
                self.beware()
        for key, address in dict.fromkeys(map(port_of, where.ports)):
            users = self.ports.setdefault(key, {})
            tally = users.setdefault(address, Tally())
            tally.add(node, change, version)
            if not tally.total:
                del users[address]
            if not users:
                del self.ports[key]
        if where.volumes:
            self.volumes.claimed(where.volumes, node, change)
            for shape in [s for s in self._table.unfit if any(volume in where.volumes for volume in s.where.volumes)]:
                self._table.clear_unfit(shape)
        self._table.gains += 1

    def beware(self) -> None:
        """Work without labels is watched as well if some terms are about it."""
        of_drawn = any(matches(selector, {}) for ask in self.drawn for selector in drawn_by(ask.spec.where))
        self.wary = of_drawn or any(True for _ in self.repellers.matching({}))

    # -- what waits for a change ----------------------------------------------------------------------------------

    def watch(self, shape: Shape) -> None:
        """`shape` fits nowhere: look at it again when running work that matters for it changes."""
        labels = dict(shape.labels)
        watched = [self.standing_of(selector) for selector in looked_at(shape.where)]
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

    def domain_lost(self) -> None:
        """A node left: what is spread over the others may be allowed more. (One that comes is empty.)"""
        for shape in [s for s in self._table.unfit if s.where.spread or self.drawn]:
            self._table.clear_unfit(shape)

    # -- one node -------------------------------------------------------------------------------------------------

    def misfit_here(self, where: Constraints, node: Node, gone: Collection[Ask] = ()) -> str | None:
        """The first filter that keeps it off the node for which what runs elsewhere does not matter."""
        if where is not ANYWHERE and not is_selected(where, node.labels):
            return SELECTOR
        if node.keeps_away and not is_tolerated(node.spec.taints, where.tolerations):
            return TAINT
        if where.devices and not has_devices(where, node.labels):
            return NO_DEVICES
        return PORTS if where.ports and self._port_taken(where, node, gone) else None

    def misfit(
        self, where: Constraints, labels: Mapping[str, str], node: Node, gone: Collection[Ask] = ()
    ) -> str | None:
        """The first filter that keeps work with these constraints and labels off the node; None: it suits.

        `gone` is running work that is taken to have ended: so preemption asks whether a node would do without it. Of
        asks among them does not count what they are promised.
        """
        here = self.misfit_here(where, node, gone)
        if here is not None:
            return here
        if where.volumes and self.volumes.exceeded(where, node, [a.spec.where for a in gone if self._at(a) is node]):
            return VOLUMES
        if where.affinity and not self._is_drawn(where, labels, node, gone):
            return AFFINITY
        if where.anti_affinity and any(
            self._present(self.standing_of(t.selector), t.topology_key, node, gone, _matching(t.selector))
            or (self.promised and self._is_awaited_near(t, node, gone))
            for t in where.anti_affinity
        ):
            return ANTI_AFFINITY
        if self.repellers.tallies and any(
            self._present(tally, key[1], node, gone, _having(key)) for key, tally in self.repellers.matching(labels)
        ):
            return REPELLED
        if where.spread and not all(self._spreads(where, term, labels, node, gone) for term in where.spread):
            return SPREAD
        return PROMISED if self.drawn and kept_constraints.spoils(self, labels, node, gone) else None

    def _present(self, tally: Tally, topology_key: str, node: Node, gone: Collection[Ask], counts: Test) -> int:
        """How much of a tally is in the node's domain, those gone left out."""
        if not tally.total:
            return 0
        found = tally.view(self.topology(topology_key)).at(node)
        if not found or not gone:
            return found
        here = node.labels.get(topology_key)
        return found - sum(1 for a in gone if (n := self._at(a)) and n.labels.get(topology_key) == here and counts(a))

    def _is_awaited_near(self, term: AffinityTerm, node: Node, gone: Collection[Ask]) -> bool:
        """Whether something that the term is about is promised to start in the node's domain."""
        here = node.labels.get(term.topology_key)
        there = (n.labels.get(term.topology_key) for n in kept_constraints.awaited_by(self, term, gone))
        return here is not None and any(domain == here for domain in there)

    def _at(self, ask: Ask) -> Node | None:
        """Where it counts: where it runs, or is promised to."""
        return ask.node if ask.node is not None else self.promised.get(ask)

    def _port_taken(self, where: Constraints, node: Node, gone: Collection[Ask]) -> bool:
        for tally, address in self._colliding(where):
            used = tally.on_node.get(node, 0)
            if used and used > sum(self._at(a) is node and address in map(port_of, a.spec.where.ports) for a in gone):
                return True
        return False

    def _colliding(self, where: Constraints) -> Iterator[tuple[Tally, tuple[tuple[str, str], str]]]:
        for port in where.ports:
            key, address = port_of(port)
            for theirs, tally in self.ports.get(key, {}).items():
                if collide(address, theirs):
                    yield tally, (key, theirs)

    def _is_drawn(self, where: Constraints, labels: Mapping[str, str], node: Node, gone: Collection[Ask]) -> bool:
        selector = all_of(where.affinity)
        tally, counts = self.standing_of(selector), _matching(selector)
        keys = [term.topology_key for term in where.affinity]
        if any(key not in node.labels for key in keys):
            return False
        if all(self._present(tally, key, node, gone, counts) for key in keys):
            return True
        is_first = not self.count_in(selector, keys, gone) and matches(selector, labels)
        return is_first and not kept_constraints.founded_elsewhere(self, selector, keys, node, gone)

    def count_in(self, selector: Selector, keys: list[str], gone: Collection[Ask] = ()) -> int:
        """How often work that the selector is about is in some domain of these keys, those gone left out."""
        tally = self.standing_of(selector)
        if not tally.total:
            return 0
        found = sum(int(tally.view(self.topology(key)).counts.sum()) for key in keys)
        counts = _matching(selector)
        return found - sum(1 for a in gone for key in keys if a.node and key in a.node.labels and counts(a))

    def _spreads(
        self, where: Constraints, term: SpreadTerm, labels: Mapping[str, str], node: Node, gone: Collection[Ask]
    ) -> bool:
        view = self.spread_view(where, term)
        domain = int(view.topology.of_row[node.row])
        if domain == NOWHERE:
            return False
        counts = view.counts
        left = [a.node for a in gone if a.node and matches(term.selector, a.spec.labels)]
        if left:
            counts = counts.copy()
            for other in left:
                counts[view.domain_of(other)] -= 1
        mine = matches(term.selector, labels)
        return all(
            int(each[domain]) + mine - self.fewest(view, each, term) <= term.max_skew
            for each in kept_constraints.with_awaited(self, view, counts, term, gone)
        )

    def spread_view(self, where: Constraints, term: SpreadTerm) -> View:
        """What the term is about, by its domains, as far as nodes count for these constraints."""
        among = self.ground(where).spread_over([self.topology(t.topology_key) for t in where.spread], term)
        return self.standing_of(term.selector).view(self.topology(term.topology_key), among)

    def fewest(self, view: View, counts: Counts, term: SpreadTerm) -> int:
        """The least that any domain with nodes that count has."""
        if len(view.there) < term.min_domains or not len(view.there):
            return 0
        return int(counts[view.there].min())

    # -- all nodes ------------------------------------------------------------------------------------------------

    def allowed(self, shape: Shape) -> Mask:
        """The rows that suit the shape: `misfit` for all nodes at once."""
        where, labels = shape.where, dict(shape.labels)
        mask = self.ground(where).open.copy()
        for tally, _ in self._colliding(where):
            mask[[node.row for node in tally.on_node]] = False
        if where.volumes:
            mask &= self.volumes.rows(where, self._table.columns.rows)
        if where.affinity:
            mask &= self._drawn_rows(where, labels)
        for term in where.anti_affinity:
            tally = self.standing_of(term.selector)
            if tally.total:
                mask &= tally.view(self.topology(term.topology_key)).by_row() == 0
            for node in kept_constraints.awaited_by(self, term):
                domains = self.topology(term.topology_key).of_row
                mask &= (domains != domains[node.row]) | (domains == NOWHERE)
        for key, tally in self.repellers.matching(labels):
            mask &= tally.view(self.topology(key[1])).by_row() == 0
        for spread in where.spread:
            view = self.spread_view(where, spread)
            mask &= view.topology.of_row != NOWHERE
            more = spread.max_skew - matches(spread.selector, labels)
            for counts in kept_constraints.with_awaited(self, view, view.counts, spread):
                mask &= counts[view.topology.of_row] <= self.fewest(view, counts, spread) + more
        return mask & kept_constraints.spared_rows(self._table, labels) if self.drawn else mask

    def _drawn_rows(self, where: Constraints, labels: Mapping[str, str]) -> Mask:
        selector = all_of(where.affinity)
        tally = self.standing_of(selector)
        keys = [term.topology_key for term in where.affinity]
        topologies = [self.topology(key) for key in keys]
        rows: Mask = np.logical_and.reduce([topology.of_row != NOWHERE for topology in topologies])
        if not self.count_in(selector, keys) and matches(selector, labels):
            return rows & kept_constraints.founding_rows(self._table, selector, keys)
        for topology in topologies:
            rows &= tally.view(topology).by_row() > 0
        return rows

    # -- what is remembered ---------------------------------------------------------------------------------------

    def standing_of(self, selector: Selector) -> Tally:
        """Running work that matches a selector; counted once, kept up to date from then on."""
        found = self.counted.get(selector)
        if found is None:
            found = self.standing.add(selector, selector)
            for node in self._table.nodes.values():
                supposed = (spec for spec, at in self._supposed if at is node)
                count = sum(1 for spec in (*node.running(), *supposed) if matches(selector, spec.labels))
                if count:
                    found.add(node, count, self._table.columns.version)
        return found


# -- what is counted ----------------------------------------------------------------------------------------------


def _matching(selector: Selector) -> Test:
    return lambda ask: ask.node is not None and matches(selector, ask.spec.labels)


def _having(key: RepellerKey) -> Test:
    return lambda ask: any((t.selector, t.topology_key) == key for t in ask.spec.where.anti_affinity)
