"""The queue tree: what bubbles up, and what room is left."""

from __future__ import annotations

import pytest
from loose_books import tree

from fairlead.core.books.applications import NO_PRIORITY
from fairlead.core.books.queues import Queue
from fairlead.core.model.specs import PRIORITY_MAX

TWO = (("vcore", 2),)


def queues() -> tuple[Queue, Queue, Queue]:
    """Root, parent and leaf."""
    made = tree("root.p.a")
    return made["root"], made["root.p"], made["root.p.a"]


def test_what_starts_moves_from_waiting_to_used_up_to_the_root() -> None:
    root, parent, leaf = queues()
    leaf.add_pending(TWO)
    leaf.add_allocated(TWO, waited=True)
    assert [(q.allocated, q.pending_sum) for q in (root, parent, leaf)] == [({"vcore": 2}, 0)] * 3
    leaf.take_allocated(TWO)
    assert root.allocated == {"vcore": 0}


def test_the_first_queue_that_lacks_room_is_named() -> None:
    """From the leaf up, without the root: the sum of the nodes is asked elsewhere."""
    root, parent, leaf = queues()
    parent.max, leaf.max, root.max = {"vcore": 3}, {"vcore": 9}, {"vcore": 0}
    assert leaf.short_of_room(TWO) is None
    leaf.add_allocated(TWO)
    assert leaf.short_of_room(TWO) is parent
    assert leaf.short_of_room((("memory", 1),)) is None, "a maximum without a name is no limit"


def test_headroom_is_the_least_of_all_maxima_and_may_be_negative() -> None:
    root, parent, leaf = queues()
    root.max, parent.max, leaf.max = {"vcore": 9, "memory": 4}, {"vcore": 3}, None
    leaf.add_allocated((("vcore", 5),))
    assert leaf.headroom() == {"vcore": -2, "memory": 4}
    root.max = parent.max = None
    assert leaf.headroom() is None


def test_a_share_is_measured_against_the_maximum_of_the_nearest_that_has_one() -> None:
    root, parent, leaf = queues()
    root.max, parent.max = {"vcore": 10, "memory": 8}, {"vcore": 4}
    assert leaf.fair_max() == {"vcore": 4, "memory": 8}
    root.max = {}
    assert leaf.fair_max() == {}


def test_an_offset_is_added_on_the_way_up_and_a_fence_hides_what_is_inside() -> None:
    root, parent, leaf = queues()
    leaf.set_properties({"priority.offset": "2"})
    assert leaf.adjust(5) == 7
    leaf.set_properties({"priority.offset": "2", "priority.policy": "fence"})
    assert leaf.adjust(5) == 2
    assert leaf.adjust(NO_PRIORITY) == NO_PRIORITY
    parent.set_properties({"priority.offset": "10"})
    assert parent.adjust(PRIORITY_MAX) == PRIORITY_MAX, "it does not run over"
    assert root.adjust(3) == 3


def test_the_highest_priority_that_waits_is_reported_up_and_falls_again() -> None:
    root, parent, leaf = queues()
    parent.set_properties({"priority.offset": "1"})
    for priority in (3, 8):
        leaf.change_priority(NO_PRIORITY, priority)
    assert (leaf.reported, parent.reported, root.raw_priority) == (8, 9, 9)
    leaf.change_priority(8, NO_PRIORITY)
    assert (leaf.reported, parent.reported, root.raw_priority) == (3, 4, 4)
    leaf.change_priority(3, NO_PRIORITY)
    assert root.raw_priority == NO_PRIORITY


def test_what_was_told_to_stop_is_counted_up_to_the_root_until_it_is_gone() -> None:
    root, _, leaf = queues()
    leaf.add_part(TWO, 1, is_leaving=True)
    assert root.preempting == {"vcore": 2}
    leaf.add_part(TWO, -1, is_leaving=True)
    assert root.preempting == {}


def test_running_applications_are_counted_above_and_never_below_zero() -> None:
    root, _, leaf = queues()
    leaf.count_running(1)
    leaf.count_running(-1)
    leaf.count_running(-1)
    assert (root.running, leaf.running) == (0, 0)


@pytest.mark.parametrize(
    ("path", "found"), [("root.p.a", True), ("ROOT.P.A", True), ("root.p.b", False), ("p.a", False)]
)
def test_a_path_is_found_in_any_case(path: str, found: bool) -> None:
    root, _, leaf = queues()
    assert root.find(path) is (leaf if found else None)


def test_parents_come_first_in_a_walk() -> None:
    made = tree("root.b.x", "root.a")
    assert [q.path for q in made["root"].walk()] == ["root", "root.b", "root.b.x", "root.a"]
