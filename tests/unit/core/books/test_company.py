"""What running work would rather have of newcomers: it chooses among suitable nodes."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, labelled

from fairlead.core.model.constraints import ANYWHERE, AffinityTerm, Constraints, PreferredWork, Requirement
from fairlead.core.model.events import AddAsks, Cause, LabelAsk, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_FOREIGN, AskSpec
from fairlead.scheduler import Scheduler

WEB = {"app": "web"}


def liking(weight: int, key: str = "zone") -> Constraints:
    """Would rather have web servers in its domain; below 0 rather not."""
    return Constraints(preferred_work=(PreferredWork(weight, AffinityTerm(labelled("web"), key)),))


def cluster() -> PriorityCluster:
    """`n1` in zone `a`, `n2` and `n3` in `b`; the order of nodes begins with the emptiest, then with `n1`."""
    c = PriorityCluster(nodes={})
    for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "b")):
        c.node(name, 4, zone=zone)
    return c


def on(node: str) -> Constraints:
    return Constraints(selector=(Requirement("kubernetes.io/hostname", "In", (node,)),))


def with_on(node: str, where: Constraints) -> Constraints:
    return Constraints(selector=on(node).selector, preferred_work=where.preferred_work, affinity=where.affinity)


@pytest.mark.parametrize(
    ("where", "found"),
    [(ANYWHERE, "n1"), (liking(5), "n2"), (liking(5, "kubernetes.io/hostname"), "n3"), (liking(-5), "n1")],
)
def test_what_runs_likes_a_newcomer_near_or_not(where: Constraints, found: str) -> None:
    """In the whole domain of its term; the newcomer itself wants nothing."""
    c = cluster()
    c.fill("old", 1, where=with_on("n3", where))
    assert c.fill("web", 1, labels=WEB) == found


def test_work_that_nothing_is_about_goes_where_it_went() -> None:
    c = cluster()
    c.fill("old", 1, where=with_on("n3", liking(5)))
    assert c.fill("db", 1, labels={"app": "db"}) == "n1"
    assert c.fill("plain", 1) == "n2"


def test_a_required_term_of_what_runs_counts_a_little() -> None:
    """Less than a weight above 1 against the newcomer."""
    c = cluster()
    c.fill("web", 1, labels=WEB, where=on("n3"))
    c.fill("with", 1, where=Constraints(affinity=(AffinityTerm(labelled("web")),)))
    assert c.fill("next", 1, labels=WEB) == "n3"
    c.fill("rather-not", 1, where=with_on("n3", liking(-2, "kubernetes.io/hostname")))
    assert c.fill("last", 1, labels=WEB) == "n1"


def test_both_sides_are_one_sum() -> None:
    """What it likes of those that run, and what those like of it."""
    c = cluster()
    c.fill("old", 1, labels={"app": "db"}, where=with_on("n3", liking(-7)))
    to_db = PreferredWork(5, AffinityTerm(labelled("db"), "zone"))
    assert c.fill("web", 1, labels=WEB, where=Constraints(preferred_work=(to_db,))) == "n1"
    to_db = PreferredWork(8, AffinityTerm(labelled("db"), "zone"))
    assert c.fill("web2", 1, labels=WEB, where=Constraints(preferred_work=(to_db,))) == "n2"


def test_a_term_that_all_work_meets_is_about_work_without_labels_too() -> None:
    c = cluster()
    everything = PreferredWork(5, AffinityTerm((), "kubernetes.io/hostname"))
    c.fill("old", 1, where=Constraints(selector=on("n3").selector, preferred_work=(everything,)))
    assert c.fill("plain", 1) == "n3"


def test_it_ends_with_the_work_and_changes_with_its_terms() -> None:
    c = cluster()
    c.fill("old", 1, where=with_on("n3", liking(5, "kubernetes.io/hostname")))
    company = c.s.cluster.partitions["default"].nodes.terrain.company
    assert company.awaits(WEB)
    c.handle(LabelAsk("old", "old", {}, with_on("n3", liking(-5, "kubernetes.io/hostname"))))
    assert c.fill("web", 1, labels=WEB) == "n1"
    c.handle(Release("old", "old", Cause.FINISHED))
    assert not company.wishes.tallies
    assert not company.awaits(WEB)


def test_it_is_known_again_after_a_restart() -> None:
    c = cluster()
    c.fill("old", 1, where=with_on("n3", liking(5, "kubernetes.io/hostname")))
    c.s = Scheduler.load(c.s.dump())
    assert c.fill("web", 1, labels=WEB) == "n3"


def test_work_of_other_schedulers_likes_as_well() -> None:
    c = cluster()
    tags = {TAG_FOREIGN: "default"}
    small = Resources({"vcore": 100})
    theirs = AskSpec(application="", key="theirs", resources=small, node="n3", tags=tags, where=liking(3))
    c.handle(AddAsks((theirs,)))
    assert c.fill("web", 1, labels=WEB) == "n2"
