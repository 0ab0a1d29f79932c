"""Times and durations in words."""

from __future__ import annotations

import pytest

from fairlead import times
from fairlead.cli.values import parse_duration


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (-5, "0.0s"),
        (0, "0.0s"),
        (450, "0.5s"),
        (9_999, "10.0s"),
        (10_000, "10s"),
        (10_500, "10s"),
        (61_000, "1m 1s"),
        (3_600_000, "1h"),
        (3_900_000, "1h 5m"),
        (3_599_999, "59m 59s"),
        (90_000_000, "1d 1h"),
        (86_400_000 + 59_000, "1d"),
    ],
)
def test_a_duration_has_two_units_at_most(ms: int, said: str) -> None:
    assert times.duration(ms) == said


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0s"),
        (500, "500ms"),
        (1_500, "1.5s"),
        (60_500, "1m 0.5s"),
        (5_400_000, "1h 30m"),
        (86_400_001, "1d 0.001s"),
        (90 * 86_400_000, "90d"),
    ],
)
def test_an_exact_duration_can_be_typed_again(ms: int, said: str) -> None:
    assert times.duration_exactly(ms) == said
    assert parse_duration(said, "here") == ms
