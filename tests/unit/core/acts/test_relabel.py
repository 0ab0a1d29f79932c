"""Asks and allocations that get other labels or constraints in place."""

from __future__ import annotations

from priority_clusters import PriorityCluster, labelled

from fairlead.core.model.constraints import ANYWHERE, AffinityTerm, Constraints, Requirement
from fairlead.core.model.decisions import AskRejected
from fairlead.core.model.events import LabelAsk, ReserveAsk
from fairlead.core.model.specs import BudgetSpec

WITH_WEB = Constraints(affinity=(AffinityTerm(labelled("web")),))
NOT_WITH_WEB = Constraints(anti_affinity=(AffinityTerm(labelled("web")),))
NOWHERE = Constraints(selector=(Requirement("disk", "In", ("tape",)),))


def relabel(c: PriorityCluster, key: str, app: str = "", where: Constraints = ANYWHERE) -> None:
    c.handle(LabelAsk(key, key, {"app": app} if app else {}, where))


def test_what_waits_may_go_elsewhere_now_and_keeps_its_place() -> None:
    c = PriorityCluster()
    c.submit("first", 3, where=NOWHERE)
    c.submit("second", 3, where=NOWHERE)
    assert c.run() == ([], [])
    relabel(c, "second")
    relabel(c, "first")
    assert c.run() == (["first@n1"], [])


def test_what_runs_is_somebody_elses_company_now() -> None:
    c = PriorityCluster()
    c.fill("runs", 1)
    c.submit("with", 1, where=WITH_WEB)
    assert c.run() == ([], [])
    relabel(c, "runs", "web")
    assert c.run() == (["with@n1"], [])


def test_what_runs_no_longer_keeps_others_away() -> None:
    c = PriorityCluster()
    c.fill("runs", 1, where=NOT_WITH_WEB)
    c.submit("a", 1, labels={"app": "web"})
    assert c.run() == ([], [])
    relabel(c, "runs")
    assert c.run() == (["a@n1"], [])


def test_what_is_nominated_is_looked_at_from_the_start() -> None:
    c = PriorityCluster()
    c.fill("low", 4)
    c.submit("high", 4, 9)
    assert c.run()[1] == ["low"]
    relabel(c, "high", where=NOWHERE)
    assert c.nominated() == {}
    c.gone("low")
    assert c.run() == ([], [])


def test_a_reservation_stays() -> None:
    c = PriorityCluster()
    c.fill("runs", 3)
    c.submit("big", 4)
    c.handle(ReserveAsk("big", "big", on=True))
    relabel(c, "big", "web")
    part = c.s.cluster.partitions["default"]
    assert part.reserving.get(part.applications["big"].asks["big"]) is not None


def test_budgets_follow() -> None:
    c = PriorityCluster(budgets=(BudgetSpec(name="web", selector=labelled("web"), min_available=1),))
    c.fill("one", 1, labels={"app": "web"})
    c.fill("two", 1)
    part, budgets = c.s.cluster.partitions["default"], c.s.cluster.admission.budgets
    assert budgets.left(part) == {"web": 0}
    relabel(c, "two", "web")
    assert budgets.left(part) == {"web": 1}
    relabel(c, "one")
    assert budgets.left(part) == {"web": 0}


def test_what_makes_no_sense_is_refused_and_the_unknown_passed_over() -> None:
    c = PriorityCluster()
    c.submit("a", 1)
    relabel(c, "a", where=Constraints(ports=("80",)))
    relabel(c, "unknown", "web")
    assert [(d.key, d.reason.sentence()) for d in c.decided if isinstance(d, AskRejected)] == [
        ("a", "ports: '80' is not protocol/ip/port, such as TCP/0.0.0.0/8080")
    ]
    assert c.run() == (["a@n1"], [])


def test_what_runs_is_protected_otherwise_from_now_on() -> None:
    """For longer, and no longer; what the event does not say stays as it was."""
    c = PriorityCluster()
    c.fill("low", 4)
    c.handle(LabelAsk("low", "low", min_runtime_ms=10_000, allow_preempt_self=False))
    c.submit("high", 4, priority=9)
    assert c.run() == ([], [])
    relabel(c, "low", "web")
    assert c.run() == ([], [])
    c.handle(LabelAsk("low", "low", min_runtime_ms=0))
    assert c.run() == ([], ["low"])
