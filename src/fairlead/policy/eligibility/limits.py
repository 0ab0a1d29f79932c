"""Limits: whether the limits of its user and group let an application run, and an ask start.

Decides what the trackers' ceilings mean for the walk: an accepted application whose user, group or queues run as many
as they may waits at a gate; an ask for which its user or group has no room left waits until that room is made. Never
evicts, and for work that a limit holds back none but idle work is. Keeps nothing but what is in the way, with the
demand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fairlead.core.books.application_limits import NONE_YIELDS, Yielding, awaited, begun, closed_place, is_closed
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Demand
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model.lifecycle import State
from fairlead.core.model.reasons import (
    ApplicationsAtMax,
    ApplicationsPromised,
    LimitApplications,
    LimitReached,
    QueueFull,
    QueuePromised,
    Reason,
)
from fairlead.core.model.resources import Book, Items


def may_run(app: Application, yielding: Yielding = NONE_YIELDS) -> bool:
    """Whether neither its queues nor its user nor its group hold it back, and it gave no way to another gang.

    Only accepted applications can be held back.
    """
    return closed_gate(app, yielding) is None


def leaves_places(app: Application, others: Collection[Application]) -> bool:
    """Whether those of `others` that do not run yet either still all have a place to run once `app` has begun."""
    waiting = {other: None for other in others if other is not app and other.state is State.ACCEPTED}
    if app.state is not State.ACCEPTED or not waiting:
        return True
    for place in (*app.queue.lineage, *app.ceilings):
        most = place.max_applications
        if not most or place.counts(app):
            continue
        here = [o for o in waiting if not place.counts(o) and (place in o.queue.lineage or place in o.ceilings)]
        # What is promised a place is counted already.
        if here and begun(place) + sum(each not in place.promised for each in (app, *here)) > most:
            return False
    return True


def closed_gate(app: Application, yielding: Yielding = NONE_YIELDS) -> Queue | Ceiling | None:
    """What holds an application back that does not run yet, and wakes what waits for that; None: it may run."""
    if app.state is not State.ACCEPTED:
        return None
    if app.gives_way_to is not None:
        return app.gives_way_to.queue  # When that ends, it waits with another demand (`gangs.part_ways`).
    return closed_place(app, yielding)


def full_ceiling(app: Application, items: Items) -> Ceiling | None:
    """The ceiling of its user or group that has no room for this amount, or None."""
    return app.allowance.short_of_room(items) if app.allowance is not None else None


def limit_of_user(ask: Ask, before: Ceiling | None = None) -> Ceiling | None:
    """The limit of its user or group that does not let one ask start now: its application, or this amount. The one
    that did `before`, if it does still.
    """
    if before is not None and before in ask.app.ceilings and _is_in_the_way(before, ask):
        return before
    closed = closed_gate(ask.app)
    return closed if isinstance(closed, Ceiling) else full_ceiling(ask.app, ask.items)


def _is_in_the_way(ceiling: Ceiling, ask: Ask) -> bool:
    return (ask.app.state is State.ACCEPTED and is_closed(ceiling, ask.app)) or ceiling.lacks(ask.items)


def is_at_closed_gate(demand: Demand, app: Application) -> bool:
    """Whether an application that does not run yet has to wait for a place; what closes the gate will wake it."""
    closed = closed_gate(app)
    if closed is None:
        return False
    demand.block(closed, at_gate=True)
    return True


def is_over_limit(demand: Demand) -> bool:
    """Whether the user or group of this demand has no room for it; that room will wake it.

    Of what is in the way a limit counts first: while there is one no work but idle is stopped for this demand, and
    when it moves something may be, though its queue is as full as before.
    """
    if demand.allowance is None:
        return False
    full = demand.allowance.short_of_room(demand.shape.items)
    if full is None:
        return False
    if demand.obstacle is None or demand.obstacle is demand.leaf:
        demand.block(full)
        demand.leaf.rest_beside(full)
    return True


def queue_full(queue: Queue, items: Items) -> Reason:
    """Why this much has no room under the maximum of a queue: the resources that are short, with their numbers."""
    return QueueFull(queue.path, *_short(queue.max or {}, queue.allocated, items))


def limit_reached(ceiling: Ceiling, items: Items) -> Reason:
    """Why an ask of this size waits for room under a ceiling: the resources that are short, with their numbers."""
    return LimitReached(ceiling.kind, ceiling.name, ceiling.queue, *_short(ceiling.max or {}, ceiling.allocated, items))


def _short(most: Mapping[str, int], used: Book, items: Items) -> tuple[Book, Book, Book]:
    """Of what is short: how much is needed, how much is free, and how much there may be."""
    needed, free = under(most, used, items)
    needed = {name: amount for name, amount in needed.items() if amount > free[name]}
    return needed, {name: free[name] for name in needed}, {name: most[name] for name in needed}


def applications_at_max(place: Queue | Ceiling, app: Application) -> Reason:
    """Why an application waits until one fewer runs in a queue or under a ceiling, or is promised to."""
    running, most = place.count_applications(), place.max_applications
    where = (place.kind, place.name, place.queue) if isinstance(place, Ceiling) else ("queue", "", place.path)
    if running < most:
        return ApplicationsPromised(*where, running, most, tuple(a.id for a in awaited(place, app)))
    if isinstance(place, Ceiling):
        return LimitApplications(*where, running, most)
    return ApplicationsAtMax(place.path, running, most)


def queue_promised(partition: Partition, queue: Queue, items: Items, ask: Ask | None = None) -> Reason:
    """Why what a queue has left is not for this amount: it is promised, to others than the ask."""
    others = (a for a in partition.nominations if a is not ask and queue in a.app.queue.lineage)
    needed, free = under(queue.max, queue.allocated, items)
    return QueuePromised(queue.path, needed, free, tuple(f"{a.app.id}/{a.key}" for a in others))


def under(most: Mapping[str, int] | None, used: Mapping[str, int], items: Items) -> tuple[Book, Book]:
    """What is needed of an amount and what is left of a maximum, for the resources that this names."""
    free = {name: most[name] - used.get(name, 0) for name, _ in items if most is not None and name in most}
    return {name: amount for name, amount in items if name in free}, free
