"""A signal some time before a time limit, as it is written."""

from __future__ import annotations

import pytest

from fairlead.wire.limit_signals import checked, parse, to_whom


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("USR1", "SIGUSR1@60"),
        ("sigusr1@300", "SIGUSR1@300"),
        ("B:10@5", "B:SIGUSR1@5"),
        ("A:TERM@1", "A:SIGTERM@1"),
        ("40@1", "40@1"),
    ],
)
def test_it_is_kept_in_one_way(text: str, kept: str) -> None:
    """Also what was kept once."""
    assert checked(text) == checked(checked(text)) == kept


@pytest.mark.parametrize("text", ["@60", "USR1@", "USR1@soon", "X:USR1@60", "USR9@60", "65", "0", "USR1@0", "1" * 5000])
def test_what_is_none_is_refused(text: str) -> None:
    """With what to write."""
    with pytest.raises(ValueError, match="write for example USR1@60"):
        checked(text)
    with pytest.raises(ValueError, match="write for example USR1@60"):
        parse(f"USR1@{10**12}")


def test_it_says_to_whom() -> None:
    """In words."""
    assert (to_whom("B:USR1"), to_whom("A:USR1")) == ("to its first process alone", "to all its processes")
