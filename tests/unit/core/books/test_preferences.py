"""Which of several suitable nodes an ask likes best; it is kept off none by that."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, labelled

from fairlead.core.books.constraints_index import Terrain
from fairlead.core.books.preferences import first_fit
from fairlead.core.model.constraints import (
    PREFER_NO_SCHEDULE,
    AffinityTerm,
    Constraints,
    PreferredNodes,
    PreferredWork,
    Requirement,
    SpreadTerm,
    Taint,
    Toleration,
)
from fairlead.core.model.decisions import AskRejected
from fairlead.core.model.events import LabelNode, RemoveNode

SSD = (Requirement("disk", "In", ("ssd",)),)
LIKES_SSD = Constraints(preferred_nodes=(PreferredNodes(10, SSD),))
LEAVE_ME = Taint("quiet", "", PREFER_NO_SCHEDULE)


def cluster() -> PriorityCluster:
    """`n1` in zone `a`, `n2` and `n3` in `b`; the order of nodes begins with `n1`."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4, "n3": 4})
    for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "b")):
        c.handle(LabelNode(name, {"zone": zone, "disk": "ssd" if name == "n3" else "hdd"}))
    return c


def test_a_liked_node_comes_first_and_another_will_do() -> None:
    c = cluster()
    assert c.fill("one", 4, where=LIKES_SSD) == "n3"
    assert c.fill("two", 4, where=LIKES_SSD) == "n1"


def test_where_all_nodes_are_disliked_the_least_disliked_will_do() -> None:
    """It does not wait: a preference keeps nothing off a node."""
    c = cluster()
    hdd = (Requirement("disk", "In", ("hdd",)),)
    dislikes = Constraints(preferred_nodes=(PreferredNodes(-5, hdd), PreferredNodes(-9, SSD)))
    assert c.fill("one", 4, where=dislikes) == "n1"
    assert c.fill("two", 4, where=dislikes) == "n2"
    assert c.fill("three", 4, where=dislikes) == "n3"


@pytest.mark.plain
def test_where_no_node_has_room_constraints_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take several times as long as room, and on a full cluster many find none, one after the other."""
    c = cluster()
    for key in ("one", "two", "three"):
        c.fill(key, 3)
    c.submit("waits", 2, where=LIKES_SSD)
    c.run()
    table = c.s.cluster.partitions["default"].nodes
    [shape] = table.unfit
    asked: list[object] = []
    allowed = Terrain.allowed
    monkeypatch.setattr(Terrain, "allowed", lambda self, shape: asked.append(shape) or allowed(self, shape))
    assert (first_fit(table, shape, None, False), asked) == (None, [])
    c.finished("three")
    asked.clear()
    assert first_fit(table, shape, None, False) is table.nodes["n3"]
    assert asked == [shape]


def test_the_heavier_wish_wins() -> None:
    c = cluster()
    in_a = PreferredNodes(11, (Requirement("zone", "In", ("a",)),))
    where = Constraints(preferred_nodes=(PreferredNodes(10, SSD), in_a))
    assert c.fill("one", 1, where=where) == "n1"


def test_a_wish_that_hardly_tells_nodes_apart_counts_little() -> None:
    """Attributes count by their part of the most, as in kube-scheduler: 11 beside 10 is not all beside nothing."""
    c = cluster()
    c.fill("web", 1, where=LIKES_SSD, labels={"app": "web"})
    anywhere = PreferredNodes(10, (Requirement("zone", "Exists", ()),))
    in_a = PreferredNodes(1, (Requirement("zone", "In", ("a",)),))
    near = PreferredWork(5, AffinityTerm(labelled("web"), "zone"))
    assert c.fill("one", 1, where=Constraints(preferred_nodes=(anywhere, in_a), preferred_work=(near,))) == "n2"


def test_company_that_is_liked_and_company_that_is_not() -> None:
    """In the whole domain of the term."""
    c = cluster()
    c.fill("web", 1, where=LIKES_SSD, labels={"app": "web"})
    term = AffinityTerm(labelled("web"), "zone")
    assert c.fill("with", 1, where=Constraints(preferred_work=(PreferredWork(5, term),))) == "n2"
    assert c.fill("apart", 3, where=Constraints(preferred_work=(PreferredWork(-5, term),))) == "n1"


def test_what_runs_likes_only_work_of_the_labels_that_it_names() -> None:
    """Idle work is looked for by its shape, in which labels do not count, and was taken for work without any."""
    c = cluster()
    unlabelled = AffinityTerm((Requirement("app", "DoesNotExist"),), "zone")
    likes = Constraints(selector=SSD, preferred_work=(PreferredWork(5, unlabelled),))
    assert c.fill("one", 1, where=likes) == "n3"
    wish = Constraints(preferred_nodes=(PreferredNodes(1, (Requirement("disk", "In", ("none",)),)),))
    assert c.fill("two", 1, where=wish, labels={"app": "web"}, idle=True) == "n1"
    assert c.fill("three", 1, where=wish, idle=True) == "n2"


def test_an_even_spread_is_liked() -> None:
    """And a node without the key least of all, though it may be taken."""
    c = cluster()
    c.handle(LabelNode("n1", {}))
    c.fill("web", 1, labels={"app": "web"}, where=LIKES_SSD)
    spread = Constraints(preferred_spread=(SpreadTerm(labelled("web"), "zone"),))
    assert c.fill("one", 3, where=spread, labels={"app": "web"}) == "n2"
    assert c.fill("two", 3, where=spread, labels={"app": "web"}) == "n3"
    assert c.fill("three", 4, where=spread, labels={"app": "web"}) == "n1"


def test_a_taint_that_would_rather_have_a_node_left_alone() -> None:
    """It is the last for all that does not tolerate it, for plain work too; until it is taken away."""
    c = cluster()
    c.handle(LabelNode("n1", {"zone": "a"}, (LEAVE_ME,)))
    assert c.fill("plain", 1) == "n2"
    assert c.fill("tolerant", 1, where=Constraints(tolerations=(Toleration("quiet", "Exists"),))) == "n1"
    for name in ("n2", "n3"):
        c.handle(RemoveNode(name))
    assert c.fill("last", 1) == "n1"
    c.handle(LabelNode("n1", {"zone": "a"}))
    assert not c.s.cluster.partitions["default"].nodes.discouraging


def test_a_wish_that_makes_no_sense_is_refused() -> None:
    c = cluster()
    c.submit("bad", 1, where=Constraints(preferred_nodes=(PreferredNodes(1, (Requirement("", "In", ("x",)),)),)))
    assert [d.reason.sentence() for d in c.decided if isinstance(d, AskRejected)] == [
        "preferred_nodes: a condition has no key"
    ]
