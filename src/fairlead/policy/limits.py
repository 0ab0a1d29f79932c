"""Limits: whether the limits of its user and group let an application run, and an ask start.

Decides what the trackers' ceilings mean for the walk: an accepted application whose user, group or queues run as many
as they may waits at a gate; an ask for which its user or group has no room left waits until that room is made. Never
evicts, and nobody is evicted for work that a limit holds back. Keeps nothing but what is in the way, with the demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.lifecycle import State
from fairlead.core.reasons import LimitApplications, LimitReached

if TYPE_CHECKING:
    from fairlead.core.applications import Application
    from fairlead.core.demand import Demand
    from fairlead.core.reasons import Reason
    from fairlead.core.resources import Items
    from fairlead.core.trackers import Ceiling


def may_run(app: Application) -> bool:
    """Whether neither its queues nor its user nor its group hold it back; only accepted applications can be."""
    if app.state is not State.ACCEPTED:
        return True
    return app.queue.gate_closed(app.id) is None and closing_ceiling(app) is None


def closing_ceiling(app: Application) -> Ceiling | None:
    """The ceiling of its user or group under which as many applications run as may, or None."""
    return app.allowance.closed_by(app.id) if app.allowance is not None else None


def full_ceiling(app: Application, items: Items) -> Ceiling | None:
    """The ceiling of its user or group that has no room for this amount, or None."""
    return app.allowance.short_of_room(items) if app.allowance is not None else None


def closed_gate(app: Application) -> Demand | None:
    """The gate at which an accepted application has to wait, or None; what closes it will wake it."""
    full = app.queue.gate_closed(app.id)
    if full is not None:
        gate = app.queue.gate()
        gate.obstacle = full
        full.waiting[gate] = None
        return gate
    ceiling = closing_ceiling(app)
    if ceiling is not None:
        gate = ceiling.gate(app.queue)
        gate.obstacle = ceiling
        ceiling.waiting[gate] = None
        return gate
    return None


def is_over_limit(demand: Demand) -> bool:
    """Whether the user or group of this demand has no room for it; that room will wake it."""
    if demand.allowance is None or demand.shape is None:
        return False
    full = demand.allowance.short_of_room(demand.shape.items)
    if full is None:
        return False
    if demand.obstacle is None:
        demand.obstacle = full
        full.waiting[demand] = None
    return True


def limit_reached(ceiling: Ceiling, items: Items) -> Reason:
    """Why an ask of this size waits for room under a ceiling: the resources that are short, with their numbers."""
    limit = ceiling.max or {}
    free = {name: limit[name] - ceiling.used.get(name, 0) for name, _ in items if name in limit}
    needed = {name: amount for name, amount in items if name in free and amount > free[name]}
    short = {name: free[name] for name in needed}
    most = {name: limit[name] for name in needed}
    return LimitReached(ceiling.kind, ceiling.name, ceiling.queue, needed, short, most)


def limit_applications(ceiling: Ceiling) -> Reason:
    """Why an application waits until one fewer runs under a ceiling."""
    running = len(ceiling.applications)
    return LimitApplications(ceiling.kind, ceiling.name, ceiling.queue, running, ceiling.max_applications)
