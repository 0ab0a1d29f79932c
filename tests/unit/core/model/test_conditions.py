"""Conditions: when they are met, and what the start or the end of another application means for them."""

from __future__ import annotations

import pytest

from fairlead.core.model.conditions import (
    MET,
    Awaited,
    BeginsAt,
    Conditions,
    Dependency,
    NeverRuns,
    OnHold,
    Outcome,
    WaitsForOthers,
)

OPEN, MET_NOW, NEVER = "open", "met", "never"


@pytest.mark.parametrize(
    ("awaited", "started", "ok", "not_ok"),
    [
        (Awaited.STARTED, MET_NOW, MET_NOW, MET_NOW),
        (Awaited.OK, OPEN, MET_NOW, NEVER),
        (Awaited.ANY, OPEN, MET_NOW, MET_NOW),
        (Awaited.NOT_OK, OPEN, NEVER, MET_NOW),
    ],
)
def test_what_each_outcome_means(awaited: Awaited, started: str, ok: str, not_ok: str) -> None:
    """One that ended has started, or never will: who waits for the start waits no longer."""
    one = Conditions(after=(Dependency(application="7", awaited=awaited),))
    found = []
    for outcome in (Outcome.STARTED, Outcome.OK, Outcome.NOT_OK):
        left = one.when("7", outcome, "failed").after
        found.append(MET_NOW if not left else NEVER if left[0].never else OPEN)
    assert found == [started, ok, not_ok]


def test_they_are_met_when_nothing_is_in_the_way() -> None:
    """Time alone opens what is not on hold and waits for no other."""
    assert MET.met(0)
    later = Conditions(begin_ms=50)
    assert (later.met(49), later.met(50), later.due_ms()) == (False, True, 50)
    held = Conditions(held_by="ann", begin_ms=50)
    assert (held.met(60), held.due_ms()) == (False, None)
    waits = Conditions(after=(Dependency(application="7"),))
    assert (waits.met(60), waits.due_ms()) == (False, None)


def test_only_the_application_that_is_meant_counts() -> None:
    """Of the others each goes on being waited for."""
    both = Conditions(after=(Dependency(application="7"), Dependency(application="8")))
    left = both.when("7", Outcome.OK, "")
    assert [each.application for each in left.after] == ["8"]
    assert both.when("9", Outcome.NOT_OK, "failed") == both


def test_the_reason_is_what_takes_longest() -> None:
    """What can never run says so even while it is on hold."""
    lost = Dependency(application="7", never="failed")
    waits = tuple(Dependency(application=key, awaited=awaited) for key, awaited in zip("1234", Awaited, strict=True))
    assert Conditions(held_by="ann", begin_ms=9, after=(lost, *waits)).reason() == NeverRuns(
        ("7",), ("7 was to end well, and it failed",)
    )
    assert Conditions(held_by="ann", begin_ms=9, after=waits).reason() == OnHold("ann")
    assert Conditions(begin_ms=9, after=waits).reason() == WaitsForOthers(("1",), ("2",), ("3",), ("4",))
    assert Conditions(begin_ms=9).reason() == BeginsAt(9)


def test_the_reasons_in_words() -> None:
    """One sentence each; of many names the first few."""
    many = WaitsForOthers((), tuple(str(number) for number in range(10)), ("x",), ())
    assert many.sentence() == "waits for 0, 1, 2, 3, 4, 5, 6, 7 and 2 more to end well, for x to end"
    assert OnHold("ann").sentence() == "was put on hold by ann and waits until it is released"
    never = NeverRuns(("7", "8"), ("7 was to end well, and it failed", "8 was to start, and it was rejected"))
    assert never.sentence() == ("can never run: 7 was to end well, and it failed; 8 was to start, and it was rejected")
