"""What administrators declare beside the tree: counted once, changed by the file or by order, read back whole."""

from __future__ import annotations

import json

import pytest
from loose_books import application, ask, tree
from priority_clusters import PriorityCluster

from fairlead.core.books.admission import BUDGET, CLASS, QUOTA, WINDOW, Admission
from fairlead.core.model.constraints import Requirement
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import (
    BudgetSpec,
    ClusterSpec,
    PartitionSpec,
    PriorityClassSpec,
    QueueSpec,
    QuotaSpec,
    WindowSpec,
)

PARTS = (PartitionSpec(root=QueueSpec(name="root", parent=True)),)
HIGH = PriorityClassSpec(name="high", value=100)
FOUR = QuotaSpec(name="four", queue="root.a", resources=Limits({"vcore": 4}))
KEEP = BudgetSpec(name="keep", selector=(Requirement("app", "In", ("web",)),), min_available=1)
NIGHT = WindowSpec(name="night", starts_ms=10, length_ms=5)


def test_an_ask_without_a_class_is_looked_at_only_where_something_asks() -> None:
    admission = Admission()
    assert not admission.is_asked
    admission.classes.set(HIGH)
    assert not admission.is_asked
    admission.quotas.set(FOUR)
    assert admission.is_asked
    admission.quotas.remove("four")
    admission.classes.set(PriorityClassSpec(name="usual", value=1, global_default=True))
    assert admission.is_asked


def test_an_ask_counts_once_while_it_is_there() -> None:
    admission = Admission()
    admission.quotas.set(FOUR)
    one = ask(application(tree("root.a")["root.a"]), "k", {"vcore": 3})
    [quota] = admission.quotas.by_name()
    admission.enter(one)
    assert (quota.used, quota.works) == ({"vcore": 3}, 1)
    admission.resized(one, (("vcore", 3),), (("vcore", 2),))
    assert (quota.used, quota.works) == ({"vcore": 2}, 1)
    one.items = (("vcore", 2),)
    admission.leave(one)
    assert (quota.used, quota.works) == ({"vcore": 0}, 0)


def test_budgets_are_told_of_work_where_their_counts_were_asked_for() -> None:
    """Elsewhere it costs nothing: the first question counts what is there."""
    c = PriorityCluster()
    c.fill("web", 1, labels={"app": "web"})
    part = c.s.cluster.partitions["default"]
    admission = part.admission
    admission.budgets.set(KEEP)
    assert not admission.budgets.counted
    assert admission.budgets.left(part) == {"keep": 0}
    c.fill("web2", 1, labels={"app": "web"})
    assert admission.budgets.left(part) == {"keep": 1}
    c.finished("web")
    assert admission.budgets.left(part) == {"keep": 0}


@pytest.mark.parametrize(
    ("kind", "spec"), [(CLASS, HIGH), (QUOTA, FOUR), (BUDGET, KEEP), (WINDOW, NIGHT)], ids=lambda x: str(x)[:14]
)
def test_each_kind_has_its_book_and_is_read_back(kind: str, spec: object) -> None:
    admission = Admission()
    admission.of(kind).set(spec)
    again = Admission()
    again.load(json.loads(json.dumps(admission.dump())))
    assert json.dumps(again.dump()) == json.dumps(admission.dump()) != json.dumps(Admission().dump())


def test_a_state_that_knew_nothing_of_it_is_read_as_empty() -> None:
    admission = Admission()
    admission.load(None)
    assert admission.dump() == Admission().dump()


def test_the_file_says_what_changes() -> None:
    """Kind, name and change of whatever differs; what is as before is not named."""
    admission = Admission()
    first = ClusterSpec(partitions=PARTS, priority_classes=(HIGH,), quotas=(FOUR,), budgets=(KEEP,))
    assert admission.configure(first) == [
        (CLASS, "high", "added"),
        (QUOTA, "four", "added"),
        (BUDGET, "keep", "added"),
    ]
    higher = PriorityClassSpec(name="high", value=200)
    then = ClusterSpec(partitions=PARTS, priority_classes=(higher,), quotas=(FOUR,))
    assert admission.configure(then) == [(CLASS, "high", "changed"), (BUDGET, "keep", "removed")]


def test_all_that_is_wrong_in_a_file_is_said() -> None:
    bad = ClusterSpec(
        partitions=PARTS,
        quotas=(QuotaSpec(name="four", queue="root.a", resources=Limits({})),),
        budgets=(BudgetSpec(name="keep"),),
    )
    problems = Admission().file_problems(bad)
    assert len(problems) == 2
    assert "four" in problems[0]
    assert "keep" in problems[1]
