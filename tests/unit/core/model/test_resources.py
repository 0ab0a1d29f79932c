"""Amounts and limits: what fits, what is lacking, and what is no amount."""

from __future__ import annotations

import pytest

from fairlead.core.model.resources import (
    INT64_MAX,
    Resources,
    add_to,
    amount_flaw,
    fits_in,
    lacks,
    negative,
)


@pytest.mark.parametrize(
    ("most", "used", "need", "too_much"),
    [
        (None, {"vcore": 9}, {"vcore": 1}, False),
        ({"vcore": 10}, {"vcore": 9}, {"vcore": 1}, False),
        ({"vcore": 10}, {"vcore": 9}, {"vcore": 2}, True),
        ({"vcore": 0}, {}, {"vcore": 1}, True),
        ({"memory": 1}, {"vcore": 9}, {"vcore": 5}, False),
        ({"vcore": 1}, {"vcore": 9}, {"vcore": -1}, False),
    ],
)
def test_a_maximum_lacks_room(
    most: dict[str, int] | None, used: dict[str, int], need: dict[str, int], too_much: bool
) -> None:
    """For what it names, beside what is used; who needs nothing of that is not kept out, however much it is over."""
    assert lacks(most, used, Resources(need).items) is too_much


def test_what_is_absent_is_nothing_in_room_and_unlimited_under_a_headroom() -> None:
    """The two ways to look at one amount."""
    items = Resources({"vcore": 1}).items
    assert not fits_in(items, {})
    assert not lacks({}, {}, items)


def test_the_negative_takes_away_what_was_added() -> None:
    """To the last unit; zeros may stay."""
    book: dict[str, int] = {}
    items = Resources({"vcore": 3, "memory": 5}).items
    add_to(book, items)
    add_to(book, negative(items))
    assert not any(book.values())


@pytest.mark.parametrize(
    ("amounts", "flaw"),
    [
        ({"vcore": 1}, ""),
        ({"": 1}, "has no name"),
        ({"vcore": -1}, "vcore is negative (-1)"),
        ({"vcore": INT64_MAX + 1}, "vcore is larger than"),
    ],
)
def test_what_is_no_amount_is_told(amounts: dict[str, int], flaw: str) -> None:
    """With its name."""
    said = amount_flaw(Resources(amounts))
    assert flaw in said
    assert bool(said) == bool(flaw)
