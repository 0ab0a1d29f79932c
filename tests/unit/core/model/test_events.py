"""Events: frozen, without a time, each known by name."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from fairlead.core.model import events
from fairlead.core.model.events import EVENTS, Cause, DrainNode, Event, Release


def test_all_that_can_happen_is_listed() -> None:
    """What is not on the list could not be journalled."""
    named = {name for name, kind in vars(events).items() if isinstance(kind, type) and issubclass(kind, Event)}
    assert {kind.__name__ for kind in EVENTS} == {name for name in named if name[0] != "_"} - {"Event"}
    assert len(EVENTS) == len({kind.__name__ for kind in EVENTS}) > 20


def test_no_event_has_a_time_of_its_own() -> None:
    """The caller says when."""
    timed = [kind.__name__ for kind in EVENTS if any(f.name in ("now_ms", "time_ms", "at_ms") for f in fields(kind))]
    assert timed == []


def test_an_event_cannot_be_changed() -> None:
    """What was written down is what is handled."""
    with pytest.raises(FrozenInstanceError):
        DrainNode("n").id = "m"  # type: ignore[misc]


def test_equal_facts_are_equal_events() -> None:
    """So that journals can be compared."""
    assert Release("a", "k", Cause.FINISHED, exit_code=0) == Release("a", "k", Cause.FINISHED, exit_code=0)
    assert Release("a", "k", Cause.FINISHED) != Release("a", "k", Cause.INTERRUPTED)


def test_a_cause_is_the_word_that_goes_out() -> None:
    """YuniKorn's clients read the first four."""
    assert all(cause.value == cause.name for cause in Cause)
