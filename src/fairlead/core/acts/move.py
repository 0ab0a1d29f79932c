"""Moving: an application goes to another leaf with all it has.

Decides what that means in the books of both queues. Never decides whether it may (`policy.events.orders`). Invariant:
the sums of every queue are right afterwards; the application keeps its state, its age, what runs and what waits.
"""

from __future__ import annotations

from fairlead.core.acts import application_steps, queue_removal, reserve_turn, waiting_asks
from fairlead.core.acts.limit_groups import decide_group
from fairlead.core.books.applications import Application
from fairlead.core.books.guarantees import forget_owed
from fairlead.core.books.idle_work import count_use, payer
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.lifecycle import LIVE


def move(partition: Partition, app: Application, leaf: Queue) -> None:
    """Put `app` into `leaf`. Space that was held or reserved for its asks is given up; they look for it anew."""
    waiting = app.waiting_asks()
    for ask in waiting:
        reserve_turn.end(partition, ask, why="it waits in another queue now")
        waiting_asks.take_out(partition, ask)
    for ask in app.asks.values():
        partition.admission.leave(ask)
    was_allocating = app.id in app.queue.allocating_accepted
    partition.trackers.leave(app)
    application_steps.leave_accepted(app)
    _leave(partition, app)
    app.queue = leaf
    leaf.applications[app.id] = app
    # In order of arrival, as they are after a restart: some rules go through them in this order.
    leaf.applications = dict(sorted(leaf.applications.items(), key=lambda item: item[1].seq))
    for ask in app.allocated_asks():
        payer(ask).add_allocated(ask.items)
        count_use(ask, 1)
        # What may be stopped on a node goes by the queue that the work is in.
        assert ask.node is not None
        partition.nodes.since_search[ask.node] = None
    if app.state in LIVE:
        leaf.count_running(1)
    forget_owed(app)
    for ask in app.asks.values():
        partition.admission.enter(ask)
    partition.trackers.join(app)
    if app.tracked:
        decide_group(partition, app)
    if was_allocating:
        application_steps.join_accepted(app)
    for ask in waiting:
        waiting_asks.enqueue(partition, ask)
    partition.books_version += 1


def _leave(partition: Partition, app: Application) -> None:
    old = app.queue
    del old.applications[app.id]
    for ask in app.allocated_asks():
        count_use(ask, -1)
        payer(ask).take_allocated(ask.items)
    if app.state in LIVE:
        old.count_running(-1)
    if app.touched:
        old.changed_apps.remove(app)
        app.touched = False
    app.order_key, app.stamp = (), 0
    queue_removal.clean_if_leaving(partition, old)
