"""Asks that begin to wait, change their place in line, and wait no longer.

Decides what follows in the books of application, queue and line. Never decides which ask runs. Invariant: a waiting ask
that is neither idle nor nominated is in the line of its application.
"""

from __future__ import annotations

from fairlead.core.acts import gangs, nominate, reserve_node, reserve_turn, shapes
from fairlead.core.acts.limit_groups import come_under_limits
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.specs import AskSpec


def line_up(partition: Partition, ask: Ask) -> None:
    """A waiting ask (not nominated) takes its place in line; idle work has lines of its own."""
    if ask.spec.idle:
        partition.idle.join(ask)
        return
    batch = ask.app.join(ask)
    partition.nodes.seeks(batch.demand, ask.created_ms)
    if batch.task_group:
        gangs.look_again(partition, ask.app)


def new_ask(partition: Partition, app: Application, spec: AskSpec) -> None:
    """Make an ask and put it in line."""
    ask = Ask(app, spec, partition.next_seq(), partition.now_ms)
    take_in(partition, ask)
    enqueue(partition, ask)


def take_in(partition: Partition, ask: Ask) -> None:
    """Its application has this ask from now on, whether it waits or runs; `forget_ask` is the reverse."""
    app = ask.app
    shapes.meet(partition, ask.spec.where)
    if ask.spec.attempt == 1:
        partition.note_arrival()
    app.asks[ask.key] = ask
    partition.admission.enter(ask)
    if ask.created_ms < app.submitted_ms:
        # It is as old as the oldest that it ever had; its place in line follows.
        app.submitted_ms, app.submitted_seq = ask.created_ms, 0
    if ask.spec.placeholder:
        app.task_group(ask.spec.task_group).count_in(ask)


def enqueue(partition: Partition, ask: Ask) -> None:
    """`ask` waits from now on: in its application's line, in the books of its queues, in their priorities."""
    app = ask.app
    queue = app.queue
    shapes.join(partition, ask)
    if ask.spec.labels:
        partition.nodes.terrain.label_keys.carries(ask, ask.spec.labels)
    if app.limit_group is None:
        come_under_limits(partition, app)
        partition.unseen[app] = None
    app.count_pending(ask)
    line_up(partition, ask)
    if queue.properties.wait_max_ms and not ask.spec.idle:
        reserve_turn.watch(partition, ask)
    queue.add_pending(ask.items)
    _priority_may_have_changed(app)
    queue.touch_app(app)


def dequeue(partition: Partition, ask: Ask) -> None:
    """`ask` waits no longer (its place in the books of the queues is the caller's business)."""
    app = ask.app
    if partition.reserving.of:
        reserve_turn.end(partition, ask, why="it waits no longer")
    app.uncount_pending(ask)
    if ask.spec.idle:
        partition.idle.leave(ask)
    app.leave(ask)
    shape = ask.shape
    assert shape is not None
    shape.pending -= 1
    if not shape.pending:
        shapes.forget(partition, shape)
    if ask.spec.labels:
        partition.nodes.terrain.label_keys.carries(ask, {})
    if app.priority not in app.by_priority:
        _priority_may_have_changed(app)
    if app.out_of_line or app.retried or ask.retried or app.queue.order_moves:
        app.queue.touch_app(app)


def take_out(partition: Partition, ask: Ask) -> None:
    """`ask` waits no longer, in no book, and nothing is kept for it: the reverse of `enqueue`."""
    nominate.lose(partition, ask)
    reserve_node.unreserve(partition, ask)
    dequeue(partition, ask)
    ask.app.queue.add_pending(ask.items, -1)


def describe(partition: Partition, ask: Ask, spec: AskSpec) -> None:
    """An ask without a node needs something else from now on. Of what is kept for it its turn alone stays, and all of
    it where nothing is otherwise that it depends on.
    """
    if not ask.pending:
        # Under way to a placeholder's place: of another size it waits again, and where it may not be there any more.
        is_as_large = spec.resources == ask.spec.resources
        ask.spec, ask.items = spec, spec.resources.items
        if not (is_as_large and gangs.may_go_on(partition, ask)):
            gangs.wait_again(partition, ask)
        return
    if _stays(partition, ask, spec):
        return
    partition.books_version += 1
    turns = {leaf: dict(own) for leaf, own in partition.reserving.of.items()}
    had_turn = partition.reserving.take(ask) is not None
    take_out(partition, ask)
    ask.spec, ask.items = spec, spec.resources.items
    enqueue(partition, ask)
    if had_turn:
        partition.reserving.of = turns  # All of them in the order in which they were given.


def _stays(partition: Partition, ask: Ask, spec: AskSpec) -> bool:
    """Whether nothing depends on what changes (its time limit, images, labels that nobody looks at): done then."""
    old, keys = ask.spec, partition.nodes.terrain.label_keys
    told_apart = any(old.labels.get(key) != spec.labels.get(key) for key in keys)
    if spec.resources != old.resources or spec.where != old.where or told_apart:
        return False
    keys.carries(ask, spec.labels)
    ask.spec = spec
    where = partition.admission.windows.narrow(partition, ask)
    if where != ask.where:
        return False
    ask.where = where
    return True


def _priority_may_have_changed(app: Application) -> None:
    new = app.highest_priority()
    if new != app.priority:
        old, app.priority = app.priority, new
        app.queue.change_priority(old, new)
        app.queue.touch_app(app)


def change_priority(partition: Partition, ask: Ask, priority: int) -> None:
    """Give a waiting ask another priority; the order changes at once."""
    if priority == ask.priority:
        return
    app, in_line = ask.app, ask.spec.idle or ask.batch is not None
    if ask.spec.idle:
        partition.idle.leave(ask)
    app.leave(ask)
    app.recount_priority(ask, priority)
    if ask.reserved_on is not None:
        partition.nodes.reserved_again[ask] = None
    if in_line:
        line_up(partition, ask)
    partition.books_version += 1  # What stands above it, or below, may be something else now.
    if ask.nomination is not None:
        # So may what takes the room that is kept for it because it requires the node.
        partition.nodes.reserved_again |= dict.fromkeys(ask.nomination.node.reservations)
    _priority_may_have_changed(app)
    app.queue.touch_app(app)
    if app.queue in partition.reserving.of:
        reserve_turn.reordered(partition, app.queue)


def drop_ask(partition: Partition, ask: Ask) -> None:
    """A waiting ask is withdrawn by its owner (or its application ended)."""
    dequeue(partition, ask)
    ask.app.queue.add_pending(ask.items, -1)
    nominate.withdraw(partition, ask)
    reserve_node.unreserve(partition, ask)
    forget_ask(partition, ask)
    if ask.spec.placeholder:
        gangs.placeholder_withdrawn(partition, ask)
    partition.books_version += 1  # What waited for its turn, or could not be whole with it, may be helped now.


def forget_ask(partition: Partition, ask: Ask) -> None:
    """Its application has it no longer; where only so many may be at a time there is room for another one."""
    app = ask.app
    del app.asks[ask.key]
    if app.spec.at_once:
        partition.held_asks.freed[app.id] = None
    partition.admission.leave(ask)
    shapes.part(partition, ask.spec.where)
