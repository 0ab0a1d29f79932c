"""Which asks wait for the same reason: those that are alike for nodes, queues, limits and places to run.

Decides that what is in the way of one of them is in the way of the other. Never finds a reason (`policy.why.waiting`
does). Invariant: an ask of which something of its own counts (a node set aside for it, room kept for it, its gang, its
pause, a reservation in its queue) is like no other.
"""

from __future__ import annotations

from fairlead.core.books.application_limits import IS_PROMISED, has_to_enter
from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Shape
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.books.user_limits import Allowance

Alike = tuple["Queue", "Shape", "Allowance | None", int]


def alike(partition: Partition, ask: Ask) -> Alike | None:
    """What all asks that wait for the same reason as this one have in common; None: it is like no other."""
    app, shape = ask.app, ask.shape
    if shape is None or ask.batch is None or ask.where is not ask.spec.where:
        return None
    if ask.nomination is not None or ask.reserved_on is not None or partition.reserving.of:
        return None
    if app.groups or app.awaited_by or app.gives_way_to is not None or app.backoff_until_ms is not None:
        return None
    enters = has_to_enter(app)
    return (app.queue, shape, app.allowance, enters) if enters != IS_PROMISED else None
