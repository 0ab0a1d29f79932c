"""The clock that never goes back."""

from __future__ import annotations

import pytest

from fairlead.runtime import Clock

YEAR_MS = 365 * 86_400_000


class Hands:
    """The two clocks of a machine, set by hand."""

    def __init__(self, wall: int = 1_000_000, steady: int = 50) -> None:
        self.wall, self.steady = wall, steady

    def clock(self, not_before_ms: int = 0) -> Clock:
        return Clock(not_before_ms, wall=lambda: self.wall, steady=lambda: self.steady)

    def pass_ms(self, milliseconds: int) -> None:
        self.wall += milliseconds
        self.steady += milliseconds


def test_it_follows_the_machine() -> None:
    """When nobody touches the machine's clock, both show the same."""
    hands = Hands()
    clock = hands.clock()
    hands.pass_ms(250)
    assert clock.now() == hands.wall


def test_a_jump_forward_is_followed_at_once() -> None:
    """A machine that slept wakes up at the right time."""
    hands = Hands()
    clock = hands.clock()
    hands.wall += 3_600_000
    assert clock.now() == hands.wall


@pytest.mark.parametrize("back_ms", [1000, 10 * YEAR_MS])
def test_a_clock_that_was_set_back_goes_on_at_its_rate(back_ms: int) -> None:
    """Ten seconds take ten seconds; how far it is ahead is known. It is right again when the other has caught up."""
    hands = Hands(wall=20 * YEAR_MS)
    clock = hands.clock()
    before = clock.now()
    hands.wall -= back_ms
    for _ in range(100):
        hands.pass_ms(100)
        clock.now()
    assert clock.now() == before + 10_000
    assert clock.ahead_ms == back_ms
    hands.wall += back_ms
    hands.pass_ms(100)
    assert (clock.now(), clock.ahead_ms) == (hands.wall, 0)
    assert not clock.jumped or back_ms > 1000


@pytest.mark.parametrize("rate", [0, 0.5])
def test_a_clock_that_stands_or_is_slow_does_not_slow_it_down(rate: float) -> None:
    """A minute takes a minute."""
    hands = Hands()
    clock = hands.clock()
    before = clock.now()
    for _ in range(600):
        hands.steady += 100
        hands.wall += int(100 * rate)
        clock.now()
    assert clock.now() == before + 60_000
    assert clock.ahead_ms == 60_000 - int(60_000 * rate)


def test_a_jump_by_years_is_known_for_a_day() -> None:
    """Nothing is old because of it."""
    hands = Hands()
    clock = hands.clock()
    hands.wall += 10 * YEAR_MS
    clock.now()
    assert clock.jumped
    hands.pass_ms(86_400_000)
    clock.now()
    assert not clock.jumped


def test_it_begins_no_earlier_than_the_journal() -> None:
    """After a restart with a wrong clock, time goes on from the newest record, and does go on."""
    hands = Hands(wall=5_000)
    clock = hands.clock(not_before_ms=9_000)
    assert clock.now() == 9_000
    hands.pass_ms(100)
    assert clock.now() == 9_100


def test_time_moves_on_even_when_it_is_asked_often() -> None:
    """Nothing is lost between two readings."""
    hands = Hands(wall=5_000)
    clock = hands.clock(not_before_ms=9_000)
    for _ in range(100):
        hands.pass_ms(1)
        clock.now()
    assert clock.now() == 9_100
