"""The clock that never goes back."""

from __future__ import annotations

from fairlead.runtime import Clock


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


def test_a_clock_that_was_set_back_runs_at_half_speed_until_it_is_right() -> None:
    """Set back by a second, two seconds later it is right again, and on the way it only went forward."""
    hands = Hands()
    clock = hands.clock()
    shown = [clock.now()]
    hands.wall -= 1000
    for _ in range(20):
        hands.pass_ms(100)
        shown.append(clock.now())
    assert shown == sorted(shown)
    assert shown[10] == shown[0] + 500
    assert shown[-1] == hands.wall
    hands.pass_ms(100)
    assert clock.now() == hands.wall


def test_it_begins_no_earlier_than_the_journal() -> None:
    """After a restart with a wrong clock, time goes on from the newest record, and does go on."""
    hands = Hands(wall=5_000)
    clock = hands.clock(not_before_ms=9_000)
    assert clock.now() == 9_000
    hands.pass_ms(100)
    assert clock.now() == 9_050


def test_time_moves_on_even_when_it_is_asked_often() -> None:
    """Half a millisecond is not lost between two readings."""
    hands = Hands(wall=5_000)
    clock = hands.clock(not_before_ms=9_000)
    for _ in range(100):
        hands.pass_ms(1)
        clock.now()
    assert clock.now() == 9_050
