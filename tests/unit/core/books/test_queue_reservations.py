"""Kept turns: what waits for which, in one leaf."""

from __future__ import annotations

from loose_books import application, ask, tree

from fairlead.core.books.asks import Ask
from fairlead.core.books.queue_reservations import Reservation, Reserving
from fairlead.core.books.user_limits import Allowance, Ceiling
from fairlead.core.model.specs import LimitSpec

BY_ORDER = Reservation(0, "ann", "because", by_itself=False)
BY_WAITING = Reservation(0, "", "it waited", by_itself=True)


def some() -> dict[str, Ask]:
    """Asks of applications of their own in `root.a`, by name; `other` is in `root.b`."""
    queues = tree("root.a", "root.b")
    made = {
        name: ask(application(queues["root.a"], name), name, priority=priority)
        for name, priority in (("high", 9), ("holder", 5), ("equal", 5), ("low", 1))
    }
    return made | {"other": ask(application(queues["root.b"], "other"), "other", priority=-1)}


def held_back(reserving: Reserving, asks: dict[str, Ask]) -> set[str]:
    """The names of those that wait for a turn."""
    return {name for name, each in asks.items() if reserving.holder(each) is not None}


def test_an_order_holds_back_what_has_a_lower_priority_in_its_leaf() -> None:
    asks, reserving = some(), Reserving()
    reserving.put(asks["holder"], BY_ORDER)
    assert held_back(reserving, asks) == {"low"}


def test_what_waited_too_long_is_passed_by_nothing_that_comes_later() -> None:
    """Small work of the same priority could pass it for ever."""
    asks, reserving = some(), Reserving()
    reserving.put(asks["holder"], BY_WAITING)
    assert held_back(reserving, asks) == {"equal", "low"}


def test_what_its_own_application_puts_first_is_not_held_back() -> None:
    """A further attempt, by guarantee: else each would wait for the other."""
    asks, reserving = some(), Reserving()
    again = ask(asks["holder"].app, "again#2", priority=1, attempt=2)
    assert again.line_key < asks["holder"].line_key
    for reservation in (BY_ORDER, BY_WAITING):
        reserving.put(asks["holder"], reservation)
        assert reserving.holder(again) is None


def test_what_has_the_turn_waits_for_no_turn_of_its_own() -> None:
    asks, reserving = some(), Reserving()
    reserving.put(asks["low"], BY_ORDER)
    assert reserving.holder(asks["low"]) is None
    assert reserving.get(asks["low"]) is BY_ORDER


def test_a_turn_that_is_taken_back_holds_nothing_back() -> None:
    asks, reserving = some(), Reserving()
    reserving.put(asks["holder"], BY_ORDER)
    assert reserving.take(asks["holder"]) is BY_ORDER
    assert reserving.take(asks["holder"]) is None
    assert held_back(reserving, asks) == set()
    assert not reserving.of


def test_a_turn_is_within_each_queue_above_it() -> None:
    asks, reserving = some(), Reserving()
    reserving.put(asks["holder"], BY_ORDER)
    leaf, other = asks["holder"].app.queue, asks["other"].app.queue
    idle = asks["other"]
    assert reserving.within(leaf, idle) is reserving.within(leaf.lineage[-1], idle) is asks["holder"]
    assert reserving.within(other, idle) is None


def test_a_turn_that_a_limit_is_in_the_way_of_holds_back_what_counts_there_alone() -> None:
    """Other work would make no room under it."""
    asks, reserving = some(), Reserving()
    limit = Ceiling("user", "sue", "root", LimitSpec(users=("sue",)))
    reserving.put(asks["holder"], Reservation(0, "", "it waited", by_itself=True, limit=limit))
    assert held_back(reserving, asks) == set()
    assert reserving.within(asks["holder"].app.queue, asks["low"]) is None
    asks["low"].app.allowance = Allowance(("root.a", "sue", ""), (limit,))
    assert held_back(reserving, asks) == {"low"}
    assert reserving.within(asks["holder"].app.queue, asks["low"]) is asks["holder"]
    assert reserving.holds_back_under_limit(asks["low"])
    assert not reserving.holds_back_under_limit(asks["equal"])


def test_a_leaf_without_a_bound_is_forgotten() -> None:
    asks, reserving = some(), Reserving()
    leaf = asks["holder"].app.queue
    reserving.overdue[leaf] = reserving.bounded[leaf] = None
    reserving.forget(leaf)
    assert reserving.dump() == {"of": [], "overdue": [], "bounded": []}
