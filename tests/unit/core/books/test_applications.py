"""Applications: what waits in batches and in which order, what is counted, and what is looked at again."""

from __future__ import annotations

from typing import Any

from loose_books import application, ask, node, tree

from fairlead.core.books.applications import NO_PRIORITY, Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Demand, Shape
from fairlead.core.model.lifecycle import State, Step
from fairlead.core.model.specs import TAG_CREATION_TIME

SHAPE = Shape(((("vcore", 1),), ""))
OTHER = Shape(((("vcore", 2),), ""))


def app_and_demand(shape: Shape = SHAPE) -> tuple[Application, Demand]:
    app = application(tree("root.a")["root.a"])
    return app, app.queue.demand(shape, ("", None, 0))


def wait(app: Application, demand: Demand, key: str, **spec: Any) -> Ask:
    """It waits with this demand."""
    made = ask(app, key, **spec)
    made.shape = demand.shape
    app.count_pending(made)
    assert app.join(made).demand is demand
    return made


def remembered(app: Application, demand: Demand) -> None:
    """Everything was looked at in vain."""
    app.out_of_line.clear()
    demand.tried = 7
    for batch in app.batches.values():
        batch.attempt_ms = 2**62


def test_asks_that_are_alike_wait_in_one_batch_the_first_in_order_ahead() -> None:
    app, demand = app_and_demand()
    low, high = wait(app, demand, "low", priority=1), wait(app, demand, "high", priority=5)
    [batch] = app.batches.values()
    assert (list(batch.asks), batch.head, app.first_ask()) == ([high, low], high, high)
    assert (demand.pending, app.line) == (1, [batch])


def test_batches_stand_by_their_first_asks() -> None:
    app, demand = app_and_demand()
    small = wait(app, demand, "small", priority=1)
    large = wait(app, app.queue.demand(OTHER, ("", None, 0)), "large", priority=5)
    assert [batch.head for batch in app.line] == [large, small]
    app.leave(large)
    assert [batch.head for batch in app.line] == [small]


def test_what_comes_is_looked_at_whatever_was_known_before() -> None:
    """It may stop what the others of its kind may not."""
    app, demand = app_and_demand()
    first = wait(app, demand, "first", priority=5)
    remembered(app, demand)
    wait(app, demand, "second")
    assert demand.tried == -1
    assert first.batch is not None
    assert list(app.out_of_line) == [first.batch], "it may try earlier than the first"


def test_when_the_first_of_a_batch_goes_the_next_may_have_others_stopped() -> None:
    app, demand = app_and_demand()
    first, second = wait(app, demand, "first", priority=5), wait(app, demand, "second")
    remembered(app, demand)
    app.leave(second)
    assert demand.tried == 7, "the first one is there still"
    wait(app, demand, "third")
    remembered(app, demand)
    app.leave(first)
    assert demand.tried == -1


def test_with_its_last_ask_a_batch_goes_and_with_it_its_demand() -> None:
    app, demand = app_and_demand()
    only = wait(app, demand, "only")
    app.leave(only)
    app.leave(only)
    assert (app.batches, app.line, app.out_of_line, app.queue.every_demand()) == ({}, [], {}, [])


def test_what_lost_its_nomination_may_have_others_stopped_once_more() -> None:
    app, demand = app_and_demand()
    only = wait(app, demand, "only")
    only.preempt_triggered = True
    remembered(app, demand)
    app.may_preempt_again(only)
    assert not only.preempt_triggered
    assert only.batch is not None
    first_ms = only.created_ms + app.queue.properties.preemption_delay_ms
    assert (only.batch.attempt_ms, demand.tried, list(app.out_of_line)) == (first_ms, -1, [only.batch])


def test_its_priority_is_the_highest_that_waits_and_idle_work_has_none() -> None:
    app, demand = app_and_demand()
    assert app.highest_priority() == NO_PRIORITY
    low, high = wait(app, demand, "low", priority=1), wait(app, demand, "high", priority=5)
    app.count_pending(ask(app, "idle", priority=9, idle=True))
    assert (app.highest_priority(), app.by_priority, app.pending_count) == (5, {1: 1, 5: 1}, 3)
    app.uncount_pending(high)
    assert app.highest_priority() == 1
    app.recount_priority(low, -3)
    assert (app.highest_priority(), app.by_priority) == (-3, {-3: 1})


def test_what_runs_is_counted_and_placeholders_apart() -> None:
    app, _ = app_and_demand()
    real, placeholder = ask(app, "real"), ask(app, "p", placeholder=True, task_group="g")
    for each in (real, placeholder):
        each.node = node("n", vcore=4)
        app.count_allocated(each)
    assert (app.allocated, app.placeholders) == ({"vcore": 1}, {"vcore": 1})
    assert (app.allocations, app.placeholder_count, app.allocated_asks()) == (2, 1, [real, placeholder])
    app.uncount_allocated(real)
    assert (app.allocated, app.allocations) == ({}, 1)


def test_a_step_of_its_life_is_taken_once_and_noted() -> None:
    app, _ = app_and_demand()
    assert app.advance(Step.RUN, 5) is State.NEW
    assert (app.state, app.state_log[-1]) == (State.ACCEPTED, (5, State.ACCEPTED))


def test_an_ask_is_as_old_as_its_tag_says() -> None:
    app, _ = app_and_demand()
    assert ask(app, "k", tags={TAG_CREATION_TIME: "3"}, now_ms=9_000).created_ms == 3_000
