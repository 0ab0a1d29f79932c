"""Asks and batches: their order inside an application."""

from __future__ import annotations

import random

from loose_books import application, ask, tree

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Batch, counts_as_gone, creation_ms, line_group, line_order
from fairlead.core.books.demand import Demand, Shape
from fairlead.core.model.events import Cause
from fairlead.core.model.specs import TAG_CREATION_TIME, RetrySpec


def app(by_rank: bool = False) -> Application:
    """In a leaf of its own."""
    leaf = tree("root.a")["root.a"]
    leaf.by_rank = by_rank
    return application(leaf)


def order(own: Application) -> list[str]:
    """The keys of its asks, in order."""
    return [each.key for each in sorted(own.asks.values(), key=line_order)]


def test_by_guarantee_a_retry_goes_before_all_then_priority_then_age() -> None:
    own = app()
    ask(own, "low", priority=1)
    ask(own, "high", priority=5)
    ask(own, "old", priority=5, tags={TAG_CREATION_TIME: "-1"})
    ask(own, "again#2", priority=0, attempt=2, retry=RetrySpec(limit=3))
    assert order(own) == ["again#2", "old", "high", "low"]


def test_by_rank_priority_goes_before_all_then_a_retry() -> None:
    own = app(by_rank=True)
    ask(own, "low", priority=1)
    ask(own, "high", priority=5)
    ask(own, "again#2", priority=1, attempt=2, retry=RetrySpec(limit=3))
    assert order(own) == ["high", "again#2", "low"]


def test_of_equals_the_first_that_came_is_first() -> None:
    own = app()
    for key in ("z", "a", "m"):
        ask(own, key)
    assert order(own) == ["z", "a", "m"]


def test_a_creation_time_is_in_seconds_and_one_that_cannot_be_read_is_that_of_arrival() -> None:
    assert creation_ms("5", 99) == 5_000
    assert creation_ms("soon", 99) == creation_ms(None, 99) == 99


def test_only_real_asks_wait_for_placeholders() -> None:
    own = app()
    assert line_group(ask(own, "real", task_group="g")) == "g"
    assert line_group(ask(own, "placeholder", task_group="g", placeholder=True)) == ""


def test_what_was_told_to_stop_for_others_counts_as_gone_until_it_is_late() -> None:
    leaving = ask(app(), "k")
    assert not counts_as_gone(leaving)
    leaving.evict_cause = Cause.PREEMPTED_BY_SCHEDULER
    assert counts_as_gone(leaving)
    leaving.overdue = True
    assert not counts_as_gone(leaving)
    leaving.overdue, leaving.evict_cause = False, Cause.PLACEHOLDER_REPLACED
    assert not counts_as_gone(leaving), "its room is taken over as it is"


def test_a_batch_has_its_first_ask_at_its_head_whatever_comes_and_goes() -> None:
    """The same as sorting what is left."""
    own = app()
    shape = Shape(((("vcore", 1),), ""))
    batch = Batch(own, (shape, "", True, False), Demand(own.queue, shape, ("", None, 0)))
    chance, waiting = random.Random(4), []
    for at in range(300):
        if waiting and chance.random() < 0.45:
            gone = waiting.pop(0 if chance.random() < 0.7 else chance.randrange(len(waiting)))
            assert batch.remove(gone) == bool(waiting)
            assert gone.batch is None
        else:
            waiting.append(ask(own, f"k{at}", priority=chance.randrange(4), now_ms=chance.randrange(9)))
            batch.add(waiting[-1])
        waiting.sort(key=line_order)
        assert batch.asks == waiting
        if waiting:
            assert (batch.head, batch.line_key, len(batch)) == (waiting[0], waiting[0].line_key, len(waiting))
    assert batch.oldest_ms == 0
