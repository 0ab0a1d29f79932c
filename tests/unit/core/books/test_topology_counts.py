"""Tallies by node and by domain: a view that follows every change equals one that is added up anew."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fairlead.core.books import topology_counts
from fairlead.core.books.node import Node
from fairlead.core.books.nodes import NodeTable
from fairlead.core.books.topology_counts import NOWHERE, Tally, TallyIndex, Topology, View
from fairlead.core.model.constraints import Requirement
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import NodeSortSpec, NodeSpec

WEB = (Requirement("app", "In", ("web",)),)


def table(*zones: str) -> NodeTable:
    """Nodes n0, n1, …, each in its zone; an empty name: in none."""
    made = NodeTable(NodeSortSpec())
    for i, zone in enumerate(zones):
        capacity = Resources({"vcore": 1})
        node = Node(NodeSpec(id=f"n{i}", capacity=capacity, attributes={"zone": zone} if zone else {}), i)
        node.set_capacity(capacity)
        made.add(node)
    made.columns.sync()
    return made


def test_the_values_of_an_attribute_are_numbered_domains() -> None:
    topology = Topology("zone", table("b", "", "a", "b").columns)
    assert (topology.of_row.tolist(), topology.domains) == ([1, NOWHERE, 2, 1], 3)


def test_a_view_counts_by_domain_and_nothing_where_the_attribute_is_missing() -> None:
    nodes = table("a", "", "a", "b")
    topology, tally = Topology("zone", nodes.columns), Tally()
    for name, count in (("n0", 2), ("n1", 5), ("n2", 1)):
        tally.add(nodes.nodes[name], count, nodes.columns.version)
    view = tally.view(topology)
    assert view.by_row().tolist() == [3, 0, 3, 0]
    assert [view.at(n) for n in nodes.nodes.values()] == [3, 0, 3, 0]
    assert (tally.total, view.there.tolist()) == (8, [NOWHERE, 1, 2])


def test_a_view_of_some_rows_counts_only_there() -> None:
    nodes = table("a", "a", "b")
    among = np.array([True, False, True])
    tally, topology = Tally(), Topology("zone", nodes.columns)
    for name in ("n0", "n1"):
        tally.add(nodes.nodes[name], 1, nodes.columns.version)
    view = tally.view(topology, among)
    assert view.counts.tolist() == [0, 1, 0]
    assert [view.domain_of(n) for n in nodes.nodes.values()] == [1, NOWHERE, 2]


def test_a_view_that_follows_equals_one_that_is_added_up() -> None:
    """Whatever starts and ends."""
    rng = random.Random(1)
    nodes = table(*(rng.choice(["", "a", "b", "c"]) for _ in range(12)))
    topology, tally = Topology("zone", nodes.columns), Tally()
    among = np.array([rng.random() < 0.5 for _ in range(12)])
    views = [tally.view(topology), tally.view(topology, among)]
    every = list(nodes.nodes.values())
    for _ in range(300):
        node = rng.choice(every)
        change = rng.choice([1, 1, -1])
        if tally.on_node.get(node, 0) + change >= 0:
            tally.add(node, change, nodes.columns.version)
    assert tally.view(topology) is views[0]
    assert tally.view(topology, among) is views[1]
    for view in views:
        assert view.counts.tolist() == View(tally, topology, view.among).counts.tolist()
    assert tally.total == sum(tally.on_node.values())
    assert 0 not in tally.on_node.values()


def test_views_of_rows_of_old_are_void() -> None:
    """What starts on a node without a row changes no view of before."""
    nodes = table("a")
    tally, old = Tally(), Topology("zone", nodes.columns)
    view = tally.view(old)
    capacity = Resources({"vcore": 1})
    new = Node(NodeSpec(id="n9", capacity=capacity, attributes={"zone": "b"}), 9)
    new.set_capacity(capacity)
    nodes.add(new)
    tally.add(new, 1, nodes.columns.version)
    nodes.columns.sync()
    now = Topology("zone", nodes.columns)
    assert tally.view(now) is not view
    assert tally.view(now).by_row().tolist() == [0, 1]


def test_no_more_views_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_counts, "VIEWS_KEPT", 2)
    nodes = table("a", "b")
    tally = Tally()
    tally.add(nodes.nodes["n0"], 1, nodes.columns.version)
    topologies = [Topology("zone", nodes.columns) for _ in range(3)]
    first = tally.view(topologies[0])
    for each in topologies[1:]:
        assert tally.view(each).counts.tolist() == [0, 1, 0]
    assert tally.view(topologies[0]) is not first


def test_a_tally_is_found_by_the_labels_that_it_is_about() -> None:
    index: TallyIndex[str] = TallyIndex()
    web = index.add("web", WEB)
    index.add("any", (Requirement("app", "Exists"),))
    assert {key for key, _ in index.matching({"app": "web"})} == {"web", "any"}
    assert [key for key, _ in index.matching({"app": "db"})] == ["any"]
    assert dict(index.matching({"app": "web"}))["web"] is web
    index.drop("any")
    assert not list(index.matching({"app": "db"}))
