"""Nominations made and taken back: what is kept, what is said, and what is looked at again."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.acts.nominate import nominate, withdraw
from fairlead.core.books.application_limits import ENTERS, IS_PROMISED
from fairlead.core.books.asks import Ask
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import Reserved, Unreserved
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec


def waiting() -> tuple[Partition, Ask, Node]:
    """A full node, and an ask of a queue with a maximum."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(9)))
    c.fill("runs", 4, 9)
    c.submit("w", 2)
    c.run()
    part = c.s.cluster.partitions["default"]
    return part, part.applications["w"].asks["w"], part.nodes.nodes["n1"]


@pytest.mark.parametrize("gathers", [False, True])
def test_room_is_kept_on_the_node_and_under_every_maximum(gathers: bool) -> None:
    """A nominated ask leaves the line, unless room only gathers for it."""
    part, ask, node = waiting()
    nominate(part, ask, node, (), gathers=gathers)
    assert node.free == {"vcore": -2000}
    assert part.nominations.kept == {queue: {"vcore": 2000} for queue in ask.app.queue.lineage}
    assert (ask.batch is not None) is gathers
    assert part.out == [Reserved("w", "w", "n1")]


def test_nothing_is_kept_when_it_is_over_and_the_ask_is_in_line_again() -> None:
    part, ask, node = waiting()
    nominate(part, ask, node, ())
    withdraw(part, ask)
    assert (node.free, part.nominations.kept, ask.nomination) == ({"vcore": 0}, {}, None)
    assert ask.batch is not None
    assert ask.app.touched
    assert part.out[-1] == Unreserved("w", "w", "n1")


def test_a_second_nomination_replaces_the_first() -> None:
    part, ask, node = waiting()
    nominate(part, ask, node, (), gathers=True)
    nominate(part, ask, node, ())
    assert node.free == {"vcore": -2000}
    assert ask.nomination is not None
    assert not ask.nomination.gathers


def test_both_are_a_change_of_the_books() -> None:
    """What was looked at in vain is looked at again."""
    part, ask, node = waiting()
    version = part.books_version
    nominate(part, ask, node, ())
    assert part.books_version > version
    version = part.books_version
    withdraw(part, ask)
    assert part.books_version > version


def test_room_at_the_root_is_looked_at_again() -> None:
    """What nominated asks need of all nodes together is less now."""
    part, ask, node = waiting()
    nominate(part, ask, node, (), gathers=True)
    assert ask.shape is not None
    part.root.full[ask.shape] = None
    withdraw(part, ask)
    assert part.root.full == {}


def test_what_stood_in_line_meanwhile_may_seek_a_node() -> None:
    part, ask, node = waiting()
    nominate(part, ask, node, (), gathers=True)
    assert ask.batch is not None
    assert ask.shape is not None
    ask.batch.demand.seek_ms = 2**62
    part.nodes.seekable[ask.shape] = 2**62
    withdraw(part, ask)
    assert ask.batch.demand.seek_ms == 0
    assert part.nodes.seekable == {ask.shape: ask.created_ms}


def test_to_withdraw_what_is_not_nominated_changes_nothing() -> None:
    part, ask, _ = waiting()
    version = part.books_version
    withdraw(part, ask)
    assert (part.out, part.books_version) == ([], version)


def test_what_else_an_application_has_in_line_waits_with_those_that_need_a_place_when_its_own_is_given_back() -> None:
    """Its place to run was kept with the room for one ask; the books say for the other that it passes the gate."""
    c = PriorityCluster(QueueSpec(name="a", max_applications=2), QueueSpec(name="b"))
    c.fill("low", 4, 0, "root.b")
    c.handle(AddApplication(ApplicationSpec(id="two", queue="root.a")))
    for count in (2, 5):
        size = Resources({"vcore": count * 1000})
        c.handle(AddAsks((AskSpec(application="two", key=f"k{count}", resources=size, priority=5),)))
    assert c.run() == ([], ["low"])
    app = c.s.cluster.partitions["default"].applications["two"]
    assert [batch.demand.enters for batch in app.batches.values()] == [IS_PROMISED]
    c.handle(Release("two", "k2", Cause.STOPPED_BY_RM))
    c.run()
    assert [batch.demand.enters for batch in app.batches.values()] == [ENTERS]
