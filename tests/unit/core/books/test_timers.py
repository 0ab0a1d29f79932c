"""Timers: one of a kind and subject, in one order, and none that does not count any more."""

from __future__ import annotations

from fairlead.core.books.timers import Timers


def fired(timers: Timers, now_ms: int) -> list[str]:
    """The subjects of what is due, in order."""
    return [timer.subject for timer in iter(lambda: timers.pop_due(now_ms), None)]


def test_what_is_due_comes_by_time_and_then_in_the_order_in_which_it_was_set() -> None:
    """What is not due stays."""
    timers = Timers()
    for subject, due_ms in (("c", 20), ("a", 10), ("b", 10), ("d", 30)):
        timers.set(due_ms, "p", subject, "k")
    assert fired(timers, 20) == ["a", "b", "c"]
    assert (len(timers), timers.next_due_ms()) == (1, 30)


def test_a_timer_is_replaced_and_cancelled() -> None:
    """The entry that it left behind is passed over."""
    timers = Timers()
    timers.set(10, "p", "a", "k")
    timers.set(20, "p", "a", "k")
    timers.set(15, "p", "b", "k")
    timers.cancel("p", "b", "k")
    assert (timers.next_due_ms(), timers.due_ms("p", "a", "k"), timers.due_ms("p", "b", "k")) == (20, 20, None)
    assert fired(timers, 20) == ["a"]
    timers.cancel("p", "a", "k")
    assert (len(timers), timers.pending()) == (0, [])


def test_only_an_earlier_time_moves_one_that_is_set_earlier() -> None:
    """`set_earlier` never puts off."""
    timers = Timers()
    for due_ms in (20, 30, 10):
        timers.set_earlier(due_ms, "p", "a", "k")
    assert timers.due_ms("p", "a", "k") == 10


def test_what_is_left_over_does_not_pile_up() -> None:
    """A timer that is set again and again keeps no trace of each time."""
    timers = Timers()
    for due_ms in range(10_000, 0, -1):
        timers.set_earlier(due_ms, "p", "a", "k")
    assert len(timers._heap) < 100
    assert [timer.due_ms for timer in timers.pending()] == [1]


def test_timers_come_back_after_a_restart_without_those_of_a_partition_that_is_gone() -> None:
    """And are numbered on."""
    timers, again = Timers(), Timers()
    timers.set(10, "p", "a", "k")
    timers.set(10, "q", "b", "k")
    timers.drop("p")
    again.restore(timers.pending(), timers.last_seq)
    again.set(10, "q", "c", "k")
    assert [timer.seq for timer in again.pending()] == [2, 3]
