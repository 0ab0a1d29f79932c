"""A node's own books: what is free, what is kept, what others use, and how full it is."""

from __future__ import annotations

import pytest

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.queues import Queue
from fairlead.core.model.constraints import NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSortSpec, NodeSpec


def node(**amounts: int) -> Node:
    """An empty one."""
    made = Node(NodeSpec(id="n", capacity=Resources(amounts)), 1)
    made.set_capacity(Resources(amounts))
    return made


def ask(key: str, **amounts: int) -> Ask:
    """Of an application of its own."""
    root = Queue("root", None, 1, leaf=True, managed=True)
    app = Application(ApplicationSpec(id="a", queue="root"), root, 1, 0)
    return Ask(app, AskSpec(application="a", key=key, resources=Resources(amounts)), 1, 0)


def test_what_is_taken_is_not_available_until_it_is_given_back() -> None:
    there, work = node(vcore=4, memory=8), ask("k", vcore=1, memory=3)
    there.take(work)
    assert (there.available, there.allocated) == ({"vcore": 3, "memory": 5}, {"vcore": 1, "memory": 3})
    there.give_back(work)
    assert there.free == {"vcore": 4, "memory": 8}
    assert not there.allocations


def test_what_is_kept_is_free_for_the_nominated_ask_alone() -> None:
    there, nominated, other = node(vcore=4), ask("k", vcore=3), ask("o", vcore=2)
    there.hold(nominated)
    assert there.free == {"vcore": 1}
    assert there.available == {"vcore": 4}
    assert there.room_for(nominated)
    assert not there.room_for(other)
    there.take(other)
    assert there.free == {"vcore": -1}
    there.unhold(nominated)
    assert there.free == {"vcore": 2}


def test_work_of_others_occupies_what_it_reports_last() -> None:
    there = node(vcore=4)
    for key, amounts in (("x", {"vcore": 3}), ("x", {"vcore": 1}), ("y", {"gpu": 1})):
        there.foreign[key] = (AskSpec(application="", key=key, resources=Resources(amounts)), 0)
        there.recount_foreign()
    assert there.free == {"vcore": 3, "gpu": -1}
    del there.foreign["y"]
    there.recount_foreign()
    assert there.occupied == {"vcore": 1}


def test_a_new_size_of_running_work_counts_at_once() -> None:
    there, work = node(vcore=4), ask("k", vcore=1)
    there.take(work)
    there.hold(ask("kept", vcore=1))
    there.resize((("vcore", 1),), (("vcore", 3),))
    assert (there.available, there.free) == ({"vcore": 1}, {"vcore": 0})


@pytest.mark.parametrize(("used", "share"), [(0, 0.0), (2, 0.5), (6, 1.5)])
def test_the_score_is_the_weighted_share_in_use(used: int, share: float) -> None:
    there = node(vcore=4, memory=100)
    there.weigh(NodeSortSpec(weights={"vcore": 2.0}))
    there.take(ask("k", vcore=used, memory=50))
    assert there.score() == share


def test_a_node_of_which_nothing_counts_is_empty() -> None:
    there = node(vcore=4)
    there.weigh(NodeSortSpec(weights={"gpu": 1.0}))
    assert there.score() == 0.0


def test_a_taint_keeps_ordinary_work_away_unless_it_is_a_wish() -> None:
    there = node(vcore=1)
    assert there.is_common
    there.describe({"zone": "a"}, (Taint("k", "v", PREFER_NO_SCHEDULE),))
    assert there.is_common
    there.describe({"zone": "a"}, (Taint("k", "v", NO_SCHEDULE),))
    assert there.is_open
    assert not there.is_common
    assert there.labels["zone"] == "a"
