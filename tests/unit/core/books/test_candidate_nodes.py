"""Where a shape may have room that fitted nowhere a moment ago: on the nodes that gained, and on no others."""

from __future__ import annotations

from loose_books import node

from fairlead.core.books.candidate_nodes import MANY, Narrow, has_room
from fairlead.core.books.demand import Shape
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec

TWO = (("vcore", 2),)


def test_a_shape_is_looked_for_where_room_was_made() -> None:
    narrow, shape = Narrow(), Shape((TWO, ""))
    gained, small = node("gained", vcore=4), node("small", vcore=1)
    narrow.room_on[shape] = {gained: None}
    narrow.gained(small)
    assert narrow.room_on == {shape: {gained: None}}
    assert narrow.with_room(shape) == [gained]


def test_a_node_that_lost_its_room_counts_no_more() -> None:
    """The shapes that fit nowhere then are named."""
    narrow, shape = Narrow(), Shape((TWO, ""))
    there = node("n", vcore=2)
    narrow.room_on[shape] = {there: None}
    assert narrow.lost(there) == []
    there.foreign["x"] = (AskSpec(application="", key="x", resources=Resources({"vcore": 1})), 0)
    there.recount_foreign()
    assert narrow.lost(there) == [shape]
    assert narrow.room_on == {}


def test_where_many_gained_it_is_searched_as_any_other() -> None:
    narrow, shape = Narrow(), Shape((TWO, ""))
    narrow.room_on[shape] = {node("n", vcore=2): None}
    for at in range(MANY):
        narrow.gained(node(f"n{at}", vcore=2))
    assert shape not in narrow.room_on


def test_a_node_that_left_is_no_place() -> None:
    narrow, shape = Narrow(), Shape((TWO, ""))
    gone, stays = node("gone", vcore=2), node("stays", vcore=2)
    narrow.room_on[shape] = {gone: None}
    narrow.gained(stays)
    narrow.removed(gone)
    assert narrow.with_room(shape) == [stays]


def test_a_node_that_is_set_aside_or_drained_has_no_room() -> None:
    there, shape = node("n", vcore=2), Shape((TWO, ""))
    assert has_room(shape, there)
    there.schedulable = False
    assert not has_room(shape, there)
