"""Disruption budgets: what they let stop, what they count, and what is refused."""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, labelled

from fairlead.core.books.budgets import budget_problem, scaled
from fairlead.core.model.constraints import Requirement
from fairlead.core.model.decisions import DeclarationChanged, DeclarationRejected
from fairlead.core.model.events import AddApplication, AddAsks, Configure, RemoveBudget, SetBudget
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, BudgetSpec, ClusterSpec
from fairlead.scheduler import Scheduler


def left(spec: BudgetSpec, running: int, waiting: int = 0) -> int:
    """How many more of so many works of the application `web` it lets stop."""
    c = PriorityCluster(nodes={"n1": running}, budgets=(spec,))
    for i in range(running + waiting):
        c.submit(f"web{i}", 1, labels={"app": "web"})
    c.run()
    return c.s.cluster.admission.budgets.left(c.s.cluster.partitions["default"])[spec.name]


@pytest.mark.parametrize(
    ("bound", "running", "waiting", "expected"),
    [
        ({"min_available": 3}, 5, 0, 2),
        ({"min_available": 6}, 5, 0, 0),
        ({"min_available": "50%"}, 7, 0, 3),
        ({"min_available": "100%"}, 7, 0, 0),
        ({"max_unavailable": 2}, 5, 0, 2),
        ({"max_unavailable": 2}, 5, 1, 1),
        ({"max_unavailable": 2}, 5, 3, 0),
        ({"max_unavailable": "30%"}, 7, 0, 3),
        ({"max_unavailable": "0%"}, 7, 0, 0),
    ],
)
def test_how_many_may_stop(bound: dict[str, int | str], running: int, waiting: int, expected: int) -> None:
    """Parts are of all that is expected, rounded up for both bounds, as Kubernetes does."""
    spec = BudgetSpec(name="keep", selector=labelled("web"), **bound)  # type: ignore[arg-type]
    assert left(spec, running, waiting) == expected


def test_parts_are_rounded_up() -> None:
    """30 % of 7 is 3, 50 % of 7 is 4, nothing of nothing is nothing."""
    assert [scaled("30%", 7), scaled("50%", 7), scaled("50%", 0), scaled(4, 7)] == [3, 4, 0, 4]


def test_other_work_does_not_count() -> None:
    """By labels, and by the namespace of the application."""
    c = PriorityCluster(nodes={"n1": 8})
    c.handle(SetBudget(BudgetSpec(name="web", selector=labelled("web"), max_unavailable=5, namespace="shop")))
    for app, namespace in (("one", "shop"), ("two", "office")):
        c.handle(AddApplication(ApplicationSpec(id=app, queue="root.a", tags={"namespace": namespace})))
        for i, value in enumerate(("web", "web", "db")):
            resources = Resources({"vcore": 1000})
            c.handle(AddAsks((AskSpec(application=app, key=f"{app}{i}", resources=resources, labels={"app": value}),)))
    c.run()
    partition = c.s.cluster.partitions["default"]
    assert c.s.cluster.admission.budgets.left(partition) == {"web": 2}, "no more than run can stop"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (BudgetSpec(name="", min_available=1), "no name"),
        (BudgetSpec(name="x"), "not both or neither"),
        (BudgetSpec(name="x", min_available=1, max_unavailable=1), "not both or neither"),
        (BudgetSpec(name="x", min_available=-1), "-1 is below 0"),
        (BudgetSpec(name="x", min_available="half"), "neither a whole number nor a part"),
        (BudgetSpec(name="x", max_unavailable="101%"), "neither a whole number nor a part"),
        (BudgetSpec(name="x", max_unavailable=1, selector=(Requirement("app", "Is", ("a",)),)), "not an operator"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(spec: BudgetSpec, words: str) -> None:
    """By order, and nothing changes."""
    assert words in (budget_problem(spec) or ("", ""))[1]
    s = Scheduler()
    (refused,) = s.handle(SetBudget(spec), 0)
    assert isinstance(refused, DeclarationRejected)
    assert words in refused.reason.sentence()
    assert not s.cluster.admission.budgets


def test_a_budget_is_made_changed_and_removed_by_order() -> None:
    """Each change is said; the same again is none."""
    s = Scheduler()
    first, second = BudgetSpec(name="x", min_available=1), BudgetSpec(name="x", min_available=2)
    said = [s.handle(event, 0) for event in (SetBudget(first), SetBudget(first), SetBudget(second), RemoveBudget("x"))]
    assert [[d.change for d in one if isinstance(d, DeclarationChanged)] for one in said] == [
        ["added"],
        [],
        ["changed"],
        ["removed"],
    ]


def test_budgets_of_the_file_belong_to_the_file() -> None:
    """They come and go with it and cannot be changed by order; those made by order stay."""
    s = Scheduler(ClusterSpec(budgets=(BudgetSpec(name="filed", min_available=1),)))
    (refused,) = s.handle(RemoveBudget("filed"), 0)
    assert isinstance(refused, DeclarationRejected)
    s.handle(SetBudget(BudgetSpec(name="ordered", min_available=1)), 0)
    s.handle(Configure(ClusterSpec()), 0)
    assert [spec.name for spec in s.cluster.admission.budgets] == ["ordered"]


def test_budgets_survive_a_restart() -> None:
    """Dumped and loaded they are the same, file or not."""
    s = Scheduler(ClusterSpec(budgets=(BudgetSpec(name="filed", min_available="10%", selector=labelled("a")),)))
    s.handle(SetBudget(BudgetSpec(name="ordered", max_unavailable=1)), 0)
    again = Scheduler.load(s.dump())
    assert list(again.cluster.admission.budgets) == list(s.cluster.admission.budgets)
    assert isinstance(again.handle(RemoveBudget("filed"), 0)[0], DeclarationRejected)
