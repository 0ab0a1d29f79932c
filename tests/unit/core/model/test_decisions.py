"""Decisions: values that can be compared, put in a set, and told apart."""

from __future__ import annotations

from dataclasses import fields

from fairlead.core.model import decisions
from fairlead.core.model.decisions import DECISIONS, Allocated, Decision, Evict
from fairlead.core.model.events import Cause


def test_all_that_can_be_decided_is_listed() -> None:
    """What is not on the list could be neither written down nor told."""
    named = {name for name, k in vars(decisions).items() if isinstance(k, type) and issubclass(k, Decision)}
    assert {kind.__name__ for kind in DECISIONS} == {name for name in named if name[0] != "_"} - {"Decision"}
    assert len(DECISIONS) == len({kind.__name__ for kind in DECISIONS}) > 10


def test_equal_decisions_are_equal_values() -> None:
    """Also those that are made often, and for that are frozen to the type checker alone."""
    assert Allocated("a", "k", "n") == Allocated("a", "k", "n", "default")
    assert len({Allocated("a", "k", "n"), Allocated("a", "k", "n"), Allocated("a", "k", "m")}) == 2


def test_no_decision_keeps_a_dict_of_its_own() -> None:
    """There are many of them."""
    assert all(not hasattr(kind.__new__(kind), "__dict__") for kind in DECISIONS)


def test_what_is_stopped_for_nothing_in_particular_says_so() -> None:
    """By an empty name, and no broken budget."""
    order = Evict("a", "k", "n", Cause.TIMEOUT)
    assert (order.on_behalf_of, order.rule, order.violates) == ("", "", ())
    assert [f.name for f in fields(Evict)][:4] == ["application", "key", "node", "cause"]
