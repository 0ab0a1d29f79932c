"""Shapes: which waiting asks are equal, and when they are told apart."""

from __future__ import annotations

from priority_clusters import PriorityCluster, labelled

from fairlead.core.acts import reserve_node
from fairlead.core.acts.shapes import meet
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import AffinityTerm, Constraints
from fairlead.core.model.events import Cause, Release

FAR_FROM_WEB = Constraints(anti_affinity=(AffinityTerm(labelled("web"), "zone"),))


def full() -> tuple[PriorityCluster, Partition]:
    """A node that is full of work that nothing may stop."""
    c = PriorityCluster()
    c.fill("runs", 4, 9)
    return c, c.s.cluster.partitions["default"]


def ask(part: Partition, key: str) -> Ask:
    return part.applications[key].asks[key]


def test_asks_for_the_same_share_a_shape_whatever_their_labels_as_long_as_these_do_not_matter() -> None:
    c, part = full()
    c.submit("one", 2, labels={"app": "web"})
    c.submit("two", 2, queue="root.b")
    c.submit("more", 3)
    assert ask(part, "one").shape is ask(part, "two").shape is not ask(part, "more").shape
    assert [shape.pending for shape in part.shapes.values()] == [2, 1]


def test_a_label_begins_to_count_when_something_looks_at_it() -> None:
    """What was equal is told apart, and is looked at where it stands now."""
    c, part = full()
    c.submit("one", 2, labels={"app": "web"})
    c.submit("two", 2)
    c.run()
    c.submit("shy", 1, where=FAR_FROM_WEB)
    one, two = ask(part, "one"), ask(part, "two")
    assert one.shape is not two.shape
    assert one.shape is not None
    assert one.shape.labels == (("app", "web"),)
    assert one.app.touched, "it is looked at behind its new shape"
    assert one.shape.oldest_ms == one.created_ms


def test_what_is_told_apart_and_has_a_node_set_aside_is_tried_there_again() -> None:
    """What suits it may be something else now."""
    c, part = full()
    c.submit("one", 2, labels={"app": "web"})
    c.run()
    reserve_node.reserve(part, ask(part, "one"), part.nodes.nodes["n1"])
    part.nodes.reserved_again.clear()
    meet(part, FAR_FROM_WEB)
    assert list(part.nodes.reserved_again) == [ask(part, "one")]


def test_idle_work_is_told_apart_too() -> None:
    c, part = full()
    c.submit("one", 2, labels={"app": "web"}, idle=True)
    c.submit("two", 2, idle=True)
    c.submit("shy", 1, where=FAR_FROM_WEB)
    assert ask(part, "one").shape is not ask(part, "two").shape
    assert len(part.idle.lines) == 2


def test_a_shape_goes_with_the_last_that_waits_with_it() -> None:
    c, part = full()
    c.submit("one", 2)
    c.submit("two", 2)
    c.run()
    shape = ask(part, "one").shape
    assert shape in part.nodes.unfit
    c.handle(Release("one", "one", Cause.STOPPED_BY_RM))
    assert list(part.shapes.values()) == [shape]
    c.handle(Release("two", "two", Cause.STOPPED_BY_RM))
    assert (part.shapes, part.nodes.unfit, part.nodes.fitting) == ({}, {}, {})


def test_a_new_shape_may_fit_until_it_was_looked_for() -> None:
    c, part = full()
    c.submit("one", 2)
    assert list(part.nodes.fitting) == [ask(part, "one").shape]
    c.run()
    assert list(part.nodes.unfit) == [ask(part, "one").shape]
