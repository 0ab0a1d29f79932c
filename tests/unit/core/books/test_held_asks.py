"""Held asks: what is kept out of the line, who waits for which application, and what is written down of it."""

from __future__ import annotations

import json

from invariants.admission import check_held_asks

from fairlead.core.books.held_asks import HeldAsks
from fairlead.core.model.conditions import Conditions, Dependency
from fairlead.core.model.reasons import AttemptHeldBack, BeginsAt, OnHold
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import AskSpec, RetrySpec


def spec(key: str, attempt: int = 1) -> AskSpec:
    retry = RetrySpec(limit=3) if attempt > 1 else None
    return AskSpec(application="a", key=key, resources=Resources({"vcore": 1}), attempt=attempt, retry=retry)


def waits_for(*applications: str) -> Conditions:
    return Conditions(after=tuple(Dependency(application=each) for each in applications))


def test_who_waits_for_an_application_is_known() -> None:
    """Until it is taken out, its conditions change, or what it waits for can never be."""
    held = HeldAsks()
    held.add("a", spec("1"), waits_for("x", "y"))
    held.add("b", spec("2"), waits_for("x"))
    assert [(app, one.spec.key) for app, one in held.awaiting("x")] == [("a", "1"), ("b", "2")]
    held.take("a", "1")
    assert (held.awaiting("y"), [app for app, _ in held.awaiting("x")]) == ([], ["b"])
    one = held.get("b", "2")
    assert one is not None
    held.change("b", one, Conditions(after=(Dependency(application="x", never="failed"),)))
    assert held.awaiting("x") == []
    check_held_asks(held)


def test_what_is_met_is_taken_out_in_its_order() -> None:
    """The rest stays, and says when it is due."""
    held = HeldAsks()
    held.add("a", spec("1"), Conditions(begin_ms=20))
    held.add("a", spec("2"), Conditions(begin_ms=10))
    held.add("a", spec("3"), Conditions(held_by="ann"))
    assert held.next_due_ms("a") == 10
    assert [each.key for each in held.take_met("a", 10)] == ["2"]
    assert (held.next_due_ms("a"), held.has("a"), [each.spec.key for each in held.of("a")]) == (20, True, ["1", "3"])
    held.drop("a")
    assert (bool(held), held.next_due_ms("a")) == (False, None)


def test_an_attempt_in_its_back_off_says_so() -> None:
    """Unless somebody put it on hold meanwhile."""
    held = HeldAsks()
    held.add("a", spec("1#2", attempt=2), Conditions(begin_ms=20))
    held.add("a", spec("2"), Conditions(begin_ms=20))
    attempt, plain = held.of("a")
    assert (attempt.reason(), plain.reason()) == (AttemptHeldBack("1#2", 2, 4, 20), BeginsAt(20))
    held.change("a", attempt, Conditions(begin_ms=20, held_by="ann"))
    assert attempt.reason() == OnHold("ann")


def test_it_comes_back_as_it_was_written_down() -> None:
    """With who waits for what."""
    held = HeldAsks()
    held.add("a", spec("1"), waits_for("x"))
    held.add("a", spec("2"), Conditions(held_by="ann", begin_ms=7))
    rows = json.loads(json.dumps(held.dump()))
    again = HeldAsks.load(rows)
    assert again.dump() == held.dump()
    assert [one.spec.key for _, one in again.awaiting("x")] == ["1"]
    check_held_asks(again)
