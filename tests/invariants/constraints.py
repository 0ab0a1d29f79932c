"""The check of the terrain: what is counted as work comes and goes is counted a second time from what is there.

Decides nothing and changes nothing; a violation is an AssertionError that names the place. Part of
`invariants.books`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.books.label_keys import keys_of
from fairlead.core.model.constraints import ANYWHERE
from fairlead.core.model.matching import Selector, drawn_by, matches, port_of

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Node, Partition
    from fairlead.core.books.constraints_index import Terrain
    from fairlead.core.books.label_keys import LabelKeys
    from fairlead.core.books.nodes import NodeTable
    from fairlead.core.books.topology_counts import Tally
    from fairlead.core.model.specs import AskSpec


def check_terrain(partition: Partition) -> None:
    """Assert that tallies, the memory of what fits nowhere, and the shapes of waiting asks agree with what is there."""
    check_images(partition.nodes)
    terrain = partition.nodes.terrain
    running = [(spec, node) for node in partition.nodes.nodes.values() for spec in node.running()]
    _check_tallies(terrain, running, list(terrain.promised.items()))
    for ask, node in terrain.promised.items():
        assert ask.held_on is node, f"{ask} is promised {node}, and has its space on {ask.held_on}"
    for ask, nomination in partition.nominations.of.items():
        assert (ask in terrain.promised) != nomination.gathers, f"{ask} is nominated, and what it needs is not kept"
    for shape in partition.nodes.unfit:
        assert partition.shapes.get(shape.key) is shape, f"shape {shape.key} fits nowhere and waits no more"
    for app in partition.applications.values():
        for ask in app.asks.values():
            if ask.pending:
                assert ask.shape is partition.shapes.get(terrain.shape_key(ask)), f"{ask} waits with a foreign shape"
    others = [spec for node in partition.nodes.nodes.values() for spec, _ in node.foreign.values()]
    asks = [ask for app in partition.applications.values() for ask in app.asks.values()]
    _check_label_keys(terrain.label_keys, asks, others)
    for shape in partition.shapes.values():
        if shape.is_plain and not terrain.wary:
            continue
        rows, allowed = partition.nodes.columns, terrain.allowed(shape)
        for node in rows.rows:
            suits = partition.nodes.lets(shape, node)
            assert suits == allowed[node.row], f"{node}: one way it suits {shape.where} {shape.labels}, one way not"


def _check_label_keys(known: LabelKeys, asks: list[Ask], others: list[AskSpec]) -> None:
    """Assert that this is what all asks in the books look at and carry."""
    lookers: dict[str, int] = dict.fromkeys(known._lookers, 0)
    carriers: dict[str, dict[Ask, None]] = {}
    for spec in [*(ask.spec for ask in asks), *others]:
        for key in keys_of(spec.where):
            lookers[key] = lookers.get(key, 0) + 1
    for ask in asks:
        for key in ask.spec.labels if ask.pending else ():
            carriers.setdefault(key, {})[ask] = None
    assert known._carriers == carriers, f"{known._carriers} are known to wait with labels, {carriers} do"
    assert known._lookers == lookers, f"{known._lookers} look at labels, {lookers} are there"
    unused = [key for key, count in lookers.items() if not count and key not in carriers]
    assert not unused, f"labels {unused} count for nothing"


def _check_tallies(terrain: Terrain, running: list[tuple[AskSpec, Node]], awaited: list[tuple[Ask, Node]]) -> None:
    for selector, tally in terrain.standing.tallies.items():
        _same(tally, [node for spec, node in running if matches(selector, spec.labels)], selector)
    claiming = running + [(ask.spec, node) for ask, node in awaited]
    kept_away: dict[tuple[Selector, str], list[Node]] = {}
    for spec, node in claiming:
        for term in dict.fromkeys(spec.where.anti_affinity):
            kept_away.setdefault((term.selector, term.topology_key), []).append(node)
    assert set(kept_away) == set(terrain.repellers.tallies), "terms of running work are not those that are counted"
    for key, tally in terrain.repellers.tallies.items():
        _same(tally, kept_away[key], key)
    drawn = {ask: node for ask, node in awaited if drawn_by(ask.spec.where)}
    assert terrain.drawn == drawn, f"{list(terrain.drawn)} are known to be drawn, {list(drawn)} are"
    feared = [selector for selector, _ in kept_away] + [s for ask in drawn for s in drawn_by(ask.spec.where)]
    assert terrain.wary == any(matches(selector, {}) for selector in feared), "wary for nothing, or not at all"
    ports: dict[object, list[Node]] = {}
    for spec, node in claiming:
        if spec.where is not ANYWHERE:
            for port in dict.fromkeys(map(port_of, spec.where.ports)):
                ports.setdefault(port, []).append(node)
    counted = {(key, address): tally for key, users in terrain.ports.items() for address, tally in users.items()}
    assert set(ports) == set(counted), f"host ports {sorted(map(str, ports))} are in use, not those counted"
    for port, tally in counted.items():
        _same(tally, ports[port], port)
    likes: dict[object, list[Node]] = {}
    for spec, node in running:
        for term in spec.where.affinity:
            likes.setdefault((term.selector, term.topology_key, 1), []).append(node)
        for wish in spec.where.preferred_work:
            likes.setdefault((wish.term.selector, wish.term.topology_key, wish.weight), []).append(node)
    assert set(likes) == set(terrain.company.wishes.tallies), "what running work likes is not what is counted"
    for wanted, tally in terrain.company.wishes.tallies.items():
        _same(tally, likes[wanted], wanted)


def check_images(nodes: NodeTable) -> None:
    """Assert that images are known by the nodes that have them."""
    holders: dict[str, set[Node]] = {}
    for node, images in nodes.images.of_node.items():
        assert nodes.nodes.get(node.id) is node, f"{node} is gone, and its images are known"
        for image in images:
            holders.setdefault(image.name, set()).add(node)
    known = {name: set(image.nodes) for name, image in nodes.images.by_name.items()}
    assert known == holders, f"images are known on {known}, and are on {holders}"


def _same(tally: Tally, nodes: list[Node], what: object) -> None:
    count = {node: nodes.count(node) for node in dict.fromkeys(nodes)}
    assert tally.on_node == count, f"{what}: counted {tally.on_node}, there are {count}"
    assert tally.total == len(nodes), f"{what}: {tally.total} counted in all, {len(nodes)} there"
