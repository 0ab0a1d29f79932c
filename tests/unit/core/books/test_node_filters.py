"""Which nodes selectors and tolerations allow: remembered, and worked out anew when the nodes change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead.core.books import node_filters
from fairlead.core.books.node import Node
from fairlead.core.books.node_filters import Grounds
from fairlead.core.books.nodes import NodeTable
from fairlead.core.model.constraints import NO_SCHEDULE, Constraints, Requirement, SpreadTerm, Taint, Toleration
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSortSpec, NodeSpec

BY_ZONE = SpreadTerm((), "zone")
SSD = Constraints(selector=(Requirement("disk", "In", ("ssd",)),))


def node(name: str, *taints: Taint, **attributes: str) -> Node:
    """With one core."""
    capacity = Resources({"vcore": 1})
    made = Node(NodeSpec(id=name, capacity=capacity, attributes=attributes, taints=taints), 1)
    made.set_capacity(capacity)
    return made


def grounds(*nodes: Node) -> tuple[NodeTable, Grounds]:
    table = NodeTable(NodeSortSpec())
    for each in nodes:
        table.add(each)
    return table, Grounds(table.columns)


def test_rows_are_named_by_selectors_and_open_to_what_tolerates_their_taints() -> None:
    gpu = Taint("gpu", "yes", NO_SCHEDULE)
    _, found = grounds(node("n1", disk="ssd"), node("n2", gpu, disk="ssd"), node("n3", disk="hdd"))
    ground = found.of(SSD)
    assert (ground.named.tolist(), ground.open.tolist()) == ([True, True, False], [True, False, False])
    tolerant = found.of(replace(SSD, tolerations=(Toleration("gpu", "Exists"),)))
    assert tolerant.open.tolist() == [True, True, False]


def test_a_term_of_the_node_will_do() -> None:
    """One of several."""
    terms = ((Requirement("disk", "In", ("ssd",)),), (Requirement("zone", "Exists"),))
    _, found = grounds(node("n1", disk="hdd"), node("n2", zone="a"), node("n3", disk="ssd"))
    assert found.of(Constraints(node_terms=terms)).named.tolist() == [False, True, True]


def test_an_answer_is_remembered_until_the_nodes_change() -> None:
    table, found = grounds(node("n1", disk="ssd"))
    first = found.of(SSD)
    assert found.of(replace(SSD, ports=("TCP/0.0.0.0/80",))) is first, "ports are no matter of the ground"
    table.add(node("n2", disk="ssd"))
    again = found.of(SSD)
    assert again is not first
    assert again.open.tolist() == [True, True]


def test_a_topology_is_remembered_until_the_nodes_change() -> None:
    table, found = grounds(node("n1", zone="a"), node("n2", zone="b"), node("n3"))
    first = found.topology("zone")
    assert found.topology("zone") is first
    assert (first.of_row.tolist(), first.domains) == ([1, 2, 0], 3)
    table.remove(table.nodes["n1"])
    assert found.topology("zone").of_row.tolist() == [1, 0]


def test_what_counts_for_spread_is_named_and_has_every_key() -> None:
    """Taints matter there where the term says so, and names do unless it says not, as in Kubernetes."""
    taint = Taint("gpu", "yes", NO_SCHEDULE)
    _, found = grounds(
        node("n1", disk="ssd", zone="a"), node("n2", taint, disk="ssd", zone="b"), node("n3", disk="ssd")
    )
    ground, zone = found.of(SSD), found.topology("zone")
    rows = ground.spread_over([zone], BY_ZONE)
    assert rows.tolist() == [True, True, False]
    assert ground.spread_over([zone], BY_ZONE) is rows
    assert ground.spread_over([], BY_ZONE).tolist() == [True, True, True]
    assert ground.named.tolist() == [True, True, True], "the answer for all must not change with it"
    assert ground.spread_over([zone], replace(BY_ZONE, only_tolerated=True)).tolist() == [True, False, False]
    of_tape = found.of(Constraints(selector=(Requirement("disk", "In", ("tape",)),)))
    assert of_tape.spread_over([zone], BY_ZONE).tolist() == [False, False, False]
    assert of_tape.spread_over([zone], replace(BY_ZONE, only_selected=False)).tolist() == [True, True, False]


def test_no_more_is_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_filters, "GROUNDS_KEPT", 2)
    _, found = grounds(node("n1", disk="ssd"))
    first = found.of(SSD)
    for value in ("a", "b"):
        found.of(Constraints(selector=(Requirement("disk", "In", (value,)),)))
    assert found.of(SSD) is not first
    assert found.of(SSD).open.tolist() == [True]
