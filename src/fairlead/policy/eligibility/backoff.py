"""Back-off: an application with too many asks that fit on no node rests for a while.

Decides when an application rests (its queue's `application.unschedasks.backoff`) and wakes it when the rest is over.
Never looks at nodes; it counts the asks whose shape fits on none. Invariant: a resting application has a timer.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Batch, LineKey
from fairlead.core.books.demand import Shape
from fairlead.core.books.partition import Partition
from fairlead.core.books.timers import BACKOFF
from fairlead.core.model.resources import Items
from fairlead.policy.eligibility.headroom import is_held_back
from fairlead.policy.eligibility.max_wait import waits_for_turn


def rests_before(partition: Partition, batch: Batch, nearest: Callable[[Items], int] = lambda _: 0) -> bool:
    """Whether the application rests because of what had its turn before this batch in it; it does from now on.

    `nearest`: where guarantees come before rank, how near a guarantee is that has room for this much; what is within a
    nearer one has its turn first.
    """
    app = batch.app
    turn = (nearest(batch.head.items), batch.head.line_key)
    missed = _missed(partition, app, lambda shape, key: (nearest(shape.items), key) < turn)
    if len(missed) < app.queue.properties.backoff_threshold:
        return False
    _back_off(partition, app, len(missed))
    return True


def rest_all(partition: Partition) -> bool:
    """Nothing more can be placed: let rest what has missed often enough and has some ask (waiting or running) behind
    that; True when something rests now.
    """
    found = False
    # In order of arrival: so are the timers that are set, also after a restart.
    for app in sorted(partition.uncounted, key=lambda app: app.seq):
        threshold = app.queue.properties.backoff_threshold
        if not threshold or partition.applications.get(app.id) is not app:
            del partition.uncounted[app]
            continue
        if app.rests(partition.now_ms):
            continue
        missed = _missed(partition, app, lambda *_: True)
        if len(missed) >= threshold and any(a.line_key > missed[threshold - 1] for a in app.asks.values()):
            _back_off(partition, app, len(missed))
            found = True
    return found


def _missed(partition: Partition, app: Application, counts: Callable[[Shape, LineKey], bool]) -> list[LineKey]:
    """The asks of the application, of those that count, for which no node has room, in order. What is in the way above
    the nodes does not count. Of one batch no more count than it takes to rest.
    """
    missed: list[LineKey] = []
    for batch in app.batches.values():
        shape = batch.demand.shape
        if not batch.stamp or not shape.unfit or shape.required_node:
            continue
        if waits_for_turn(partition, batch.head):
            continue  # It is put aside when it is looked at.
        if is_held_back(partition, batch.demand, batch.head) or shape.blocked_by_root:
            continue
        keys = [a.line_key for a in batch.asks[: app.queue.properties.backoff_threshold]]
        missed += [key for key in keys if counts(shape, key)]
    return sorted(missed)


def _back_off(partition: Partition, app: Application, missed: int) -> None:
    """Let the application rest from now on."""
    app.unschedulable = missed
    app.backoff_until_ms = partition.now_ms + app.queue.properties.backoff_delay_ms
    partition.timers.set(app.backoff_until_ms, partition.name, app.id, BACKOFF)
    app.queue.touch_app(app)
    # No room is kept for what rests, and what left a node to it may have that: the next run sees to both.
    if app.queue in partition.reserving.of or _had_nodes_left_to_it(partition, app):
        partition.books_version += 1


def _had_nodes_left_to_it(partition: Partition, app: Application) -> bool:
    """Whether others, for which a node was set aside or room is kept, may have left it to an ask that requires it."""
    required = (partition.nodes.nodes.get(batch.demand.shape.required_node) for batch in app.batches.values())
    return any(node.reservations or node.held for node in required if node is not None)


def on_timer(partition: Partition, app: Application) -> None:
    """The rest is over: the application is looked at again."""
    if app.backoff_until_ms is None or app.rests(partition.now_ms):
        return
    # Others may be stopped for it again, though nothing else has changed.
    partition.books_version += 1
    if app.pending_count:
        app.queue.touch_app(app)
