"""Guarantees: in which queues something that waits may be within all guarantees on its way, where these count for rank.

Decides that from what queues use and what waits there, and keeps it with each parent, so that neither a turn nor a
search looks at queues one by one. Never decides what is owed to one ask (`policy.order.effective_priority`). Invariant:
`owed_below` of a queue has exactly the children for which `may_be_owed` holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.books.applications import NO_PRIORITY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.books.applications import Application
    from fairlead.core.books.queues import Queue
    from fairlead.core.model.resources import Items


def may_be_owed(queue: Queue) -> bool:
    """Whether something waits here or below that may be within all guarantees on its way up to this queue: it has one
    here, below or above, and none of them is used up.
    """
    if queue.raw_priority == NO_PRIORITY or not (queue.under_guarantee if queue.is_leaf else queue.owed_below):
        return False
    if queue.guaranteed is None:
        return True
    used = queue.allocated
    for name, due in queue.guaranteed.items():
        if used.get(name, 0) < due + queue.preempting.get(name, 0) + queue.idle.get(name, 0):
            return True
    return False


def note_owed(queue: Queue) -> None:
    """That may have changed: it is kept with the parent, and what follows with those above."""
    parent = queue.parent
    while parent is not None:
        is_owed = may_be_owed(queue)
        if is_owed == (queue in parent.owed_below):
            return
        if is_owed:
            parent.owed_below[queue] = None
        else:
            del parent.owed_below[queue]
        queue, parent = parent, parent.parent


def find_owed(queue: Queue) -> None:
    """Work it out anew for the children of a queue."""
    queue.owed_below = {child: None for child in queue.children.values() if may_be_owed(child)}


def find_guarantees(queue: Queue, counts: bool) -> None:
    """Work out below and above which queues there are guarantees, from this queue down, and what follows for those
    above. They count for rank or not (`preemption.rule: both`). Where something waits below, the caller has the rest
    worked out anew (`reconfigure.recount_priorities`).
    """
    _find_below(queue, counts)
    for above in queue.lineage[1:]:
        above.owes = above.owes or queue.owes
    note_owed(queue)


def _find_below(queue: Queue, counts: bool) -> None:
    is_above = queue.parent is not None and queue.parent.under_guarantee
    queue.under_guarantee = counts and (is_above or queue.guaranteed is not None)
    for child in queue.children.values():
        _find_below(child, counts)
    queue.owes = counts and (queue.guaranteed is not None or any(child.owes for child in queue.children.values()))


def may_count(leaf: Queue, items: Items) -> bool:
    """Whether some guarantee on the way from a leaf to the root counts, and is about something of this amount."""
    if not leaf.under_guarantee:
        return False
    return any(name in (queue.guaranteed or {}) for queue in leaf.lineage for name, amount in items if amount > 0)


def forget_owed(app: Application) -> None:
    """Its guarantees may be others now: what started within one that counts no more for it did not start so."""
    for ask in app.asks.values():
        ask.started_owed = ask.started_owed and may_count(app.queue, ask.items)


def owed_leaves(queue: Queue) -> Iterator[Queue]:
    """The leaves below in which something may be owed."""
    for child in queue.owed_below:
        if child.is_leaf:
            yield child
        else:
            yield from owed_leaves(child)


def is_owed_leaf(leaf: Queue) -> bool:
    """Whether this leaf is one of them."""
    return all(queue.parent is None or queue in queue.parent.owed_below for queue in leaf.lineage)
