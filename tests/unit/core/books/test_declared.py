"""Declared things of any kind: what the file owns, what an order may change, and what is said of each change."""

from __future__ import annotations

import pytest

from fairlead.core.books.admission import BUDGET, CLASS, QUOTA, Admission
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import BudgetSpec, PriorityClassSpec, QuotaSpec

THINGS = {
    CLASS: (PriorityClassSpec(name="a", value=1), PriorityClassSpec(name="a", value=2)),
    QUOTA: (
        QuotaSpec(name="a", queue="root.q", resources=Limits({"vcore": 1})),
        QuotaSpec(name="a", queue="root.q", resources=Limits({"vcore": 2})),
    ),
    BUDGET: (BudgetSpec(name="a", min_available=1), BudgetSpec(name="a", min_available=2)),
}


@pytest.mark.parametrize("kind", THINGS)
def test_an_order_makes_changes_and_removes(kind: str) -> None:
    """The same again changes nothing."""
    book, (one, other) = Admission().of(kind), THINGS[kind]
    assert [book.set(one), book.set(one), book.set(other)] == ["added", "", "changed"]
    assert book.why_not_set(one) is book.why_not_remove("a") is None
    book.remove("a")
    assert "there is no" in str(book.why_not_remove("a"))
    assert book.set(one) == "added"


@pytest.mark.parametrize("kind", THINGS)
def test_what_the_file_declares_changes_with_the_file_alone(kind: str) -> None:
    """It takes over what was made by order, and what it leaves out is gone."""
    book, (one, other) = Admission().of(kind), THINGS[kind]
    book.set(one)
    assert book.configure([other]) == [("a", "changed")]
    assert book.is_of_file("a")
    assert "in the queue file; change it there" in str(book.why_not_set(one))
    assert "in the queue file; remove it there" in str(book.why_not_remove("a"))
    assert book.configure([other]) == []
    assert book.configure([]) == [("a", "removed")]
    assert not book.is_of_file("a")


@pytest.mark.parametrize("kind", THINGS)
def test_what_was_made_by_order_outlives_a_file_that_does_not_name_it(kind: str) -> None:
    """A file is about its own things only."""
    book, (one, _) = Admission().of(kind), THINGS[kind]
    book.set(one)
    assert book.configure([]) == []
    assert book.set(one) == ""


@pytest.mark.parametrize("kind", THINGS)
def test_it_comes_back_as_it_was_written_down(kind: str) -> None:
    """With what belongs to the file."""
    admission, again = Admission(), Admission()
    admission.of(kind).configure([THINGS[kind][0]])
    again.load(admission.dump())
    assert again.dump() == admission.dump()
    assert again.of(kind).is_of_file("a")
