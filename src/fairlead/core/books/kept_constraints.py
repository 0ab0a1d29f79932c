"""Promises: what asks for which space is held keep of a node beside room, until they run.

Decides that such an ask counts, towards all others, as if it ran there: its host ports are taken, its anti-affinity
keeps others away, what must not be with it stays away, and it counts for the spread of others. What wants to be with it
waits until it runs. What it wants to be with, or is spread among, may not start where that would shut it out. Never
decides what is promised to which. Invariant: an ask is never in its own way, and a promise that ends, or is touched by
a start or an end, wakes what it kept off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.books.label_keys import terms_of
from fairlead.core.books.topology_counts import NOWHERE
from fairlead.core.model.matching import PROMISED, SELECTOR, WINDOW, all_of, drawn_by, is_selected, matches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from fairlead.core.books import Ask, Node, NodeTable
    from fairlead.core.books.constraints_index import Terrain
    from fairlead.core.books.node_columns import Mask
    from fairlead.core.books.topology_counts import Counts, View
    from fairlead.core.model.constraints import AffinityTerm, SpreadTerm
    from fairlead.core.model.matching import Selector


def promise(nodes: NodeTable, ask: Ask, node: Node) -> None:
    """What `ask` needs on `node` beside room is kept for it."""
    terrain = nodes.terrain
    terrain.promised[ask] = node
    terrain.claimed(ask.spec.where, node, 1)
    if drawn_by(ask.spec.where):
        terrain.drawn[ask] = node
        terrain.beware()
    _wake_by_terms(nodes, ask, is_new=True)


def let_go(nodes: NodeTable, ask: Ask) -> None:
    """Nothing is kept for it any longer: what it kept off is looked at again (ports: with the room)."""
    terrain = nodes.terrain
    if ask not in terrain.promised:
        return
    terrain.claimed(ask.spec.where, terrain.promised.pop(ask), -1)
    if ask in terrain.drawn:
        _wake_matching(nodes, drawn_by(ask.spec.where))
        del terrain.drawn[ask]
        terrain.beware()
    _wake_by_terms(nodes, ask, is_new=False)


def _wake_by_terms(nodes: NodeTable, ask: Ask, *, is_new: bool) -> None:
    """Work whose terms are about such an ask: what is spread may be allowed more where others are more, too."""
    for shape in list(nodes.unfit):
        terms = shape.where.spread if is_new else terms_of(shape.where)
        if any(matches(term.selector, ask.spec.labels) for term in terms):
            nodes.clear_unfit(shape)


def awaited_by(terrain: Terrain, term: AffinityTerm | SpreadTerm, gone: Collection[Ask] = ()) -> Iterator[Node]:
    """Where asks are to start that a term is about."""
    for ask, node in terrain.promised.items():
        if ask not in gone and matches(term.selector, ask.spec.labels):
            yield node


def with_awaited(
    terrain: Terrain, view: View, counts: Counts, term: SpreadTerm, gone: Collection[Ask] = ()
) -> list[Counts]:
    """Work that a term is about by domain: what runs, and that with what is promised to start. It may, or may not."""
    awaited = list(awaited_by(terrain, term, gone)) if terrain.promised else None
    if not awaited:
        return [counts]
    then = counts.copy()
    for node in awaited:
        then[view.domain_of(node)] += 1
    return [counts, then]


# -- what it wants to be with, or is spread among -----------------------------------------------------------------


def spoils(terrain: Terrain, labels: Mapping[str, str], node: Node, gone: Collection[Ask] = ()) -> bool:
    """Whether the start of work with these labels on the node would shut out an ask that is to start."""
    for ask, there in terrain.drawn.items():
        if ask in gone:
            continue
        if _founds(terrain, ask, labels) and _is_elsewhere(_keys(ask), there, node):
            return True
        for view, domain in _full_domains(terrain, ask, labels, there, gone):
            if view.domain_of(node) == domain:
                return True
    return False


def spared_rows(nodes: NodeTable, labels: Mapping[str, str]) -> Mask:
    """The rows on which such work shuts none out: `spoils` for all nodes at once."""
    terrain = nodes.terrain
    rows = nodes.columns.rows
    mask: Mask = np.ones(len(rows), dtype=np.bool_)
    for ask, there in terrain.drawn.items():
        if _founds(terrain, ask, labels):
            apart = (not _is_elsewhere(_keys(ask), there, n) for n in rows)
            mask &= np.fromiter(apart, dtype=np.bool_, count=len(rows))
        for view, domain in _full_domains(terrain, ask, labels, there):
            there_too = view.topology.of_row == domain
            mask &= ~(there_too if view.among is None else there_too & view.among)
    return mask


def _founds(terrain: Terrain, ask: Ask, labels: Mapping[str, str]) -> bool:
    """Whether the ask is to be the first of its group, and work with these labels would be another first one."""
    terms = ask.spec.where.affinity
    if not terms:
        return False
    selector = all_of(terms)
    if not matches(selector, labels) or not matches(selector, ask.spec.labels):
        return False
    return not terrain.count_in(selector, _keys(ask), ask.victims)


def founded_elsewhere(
    terrain: Terrain, selector: Selector, keys: list[str], node: Node, gone: Collection[Ask] = ()
) -> bool:
    """Whether work that the selector is about is promised to start where it would not be with what starts here."""
    return any(
        ask not in gone and matches(selector, ask.spec.labels) and _is_elsewhere(keys, node, there)
        for ask, there in terrain.promised.items()
    )


def founding_rows(nodes: NodeTable, selector: Selector, keys: list[str]) -> Mask:
    """The rows of which that is not so: `founded_elsewhere` for all nodes at once."""
    rows = nodes.columns.rows
    if not nodes.terrain.promised:
        return np.ones(len(rows), dtype=np.bool_)
    apart = (not founded_elsewhere(nodes.terrain, selector, keys, n) for n in rows)
    return np.fromiter(apart, dtype=np.bool_, count=len(rows))


def _keys(ask: Ask) -> list[str]:
    return [term.topology_key for term in ask.spec.where.affinity]


def _is_elsewhere(keys: list[str], there: Node, node: Node) -> bool:
    """Whether the node counts for affinity by these keys, and is not with the one where the other is to start."""
    return any(k in node.labels for k in keys) and any(node.labels.get(k) != there.labels.get(k) for k in keys)


def _full_domains(
    terrain: Terrain, ask: Ask, labels: Mapping[str, str], there: Node, gone: Collection[Ask] = ()
) -> Iterator[tuple[View, int]]:
    """The domain in which it is to start, of each term of its spread that work with these labels counts for, and that
    has no more to spare there.
    """
    for term in ask.spec.where.spread:
        if not matches(term.selector, labels):
            continue
        view = terrain.spread_view(ask.spec.where, term)
        mine = view.domain_of(there)
        counts = view.counts.copy()
        for other in dict.fromkeys((*gone, *ask.victims)):  # Once these have left it starts.
            if other.node is not None and matches(term.selector, other.spec.labels):
                counts[view.domain_of(other.node)] -= 1
        counts[mine] += 1 + sum(view.domain_of(n) == mine for n in awaited_by(terrain, term, (ask, *gone)))
        then = int(counts[mine]) + matches(term.selector, ask.spec.labels)
        if mine != NOWHERE and then - terrain.fewest(view, counts, term) > term.max_skew:
            yield view, mine


def wake_the_kept_off(nodes: NodeTable, labels: Mapping[str, str]) -> None:
    """Work with these labels started or ended: what was kept off like it is looked at again."""
    selectors = {s: None for ask in nodes.terrain.drawn for s in drawn_by(ask.spec.where) if matches(s, labels)}
    _wake_matching(nodes, selectors)


def _wake_matching(nodes: NodeTable, selectors: Collection[Selector]) -> None:
    for shape in list(nodes.unfit) if selectors else ():
        labels = dict(shape.labels)
        if any(matches(selector, labels) for selector in selectors):
            nodes.clear_unfit(shape)


# -- in words -----------------------------------------------------------------------------------------------------


def filter_on(nodes: NodeTable, ask: Ask, node: Node) -> str | None:
    """The filter that keeps a waiting ask off the node; `PROMISED` where that is only what others are promised.

    On other nodes than its own an ask is kept off by what it is promised itself, as its equals are.
    """
    terrain, where, labels = nodes.terrain, ask.where, ask.spec.labels
    own = (ask,) if node is ask.held_on else ()
    found = terrain.misfit(where, labels, node, own)
    if found == SELECTOR and where is not ask.spec.where and is_selected(ask.spec.where, node.labels):
        return WINDOW
    if found is None or not terrain.promised:
        return found
    without = terrain.misfit(where, labels, node, tuple(terrain.promised))
    return PROMISED if without is None else without
