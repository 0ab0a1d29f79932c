"""Idle work in the books of its queues, when the queues themselves change.

Decides what is counted where before and after the queue file changed, and finds what runs again after a restart. Never
places or stops anything. Invariant: between `uncount` and `recount` no queue's book holds idle work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.books.asks import counts_as_gone
from fairlead.core.books.idle_work import group_of, payer
from fairlead.core.model.resources import Book, add_to

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition


def uncount(partition: Partition) -> None:
    """The file is about to change, and with it, maybe, who is whose group: idle work leaves the books of the queues."""
    for ask in partition.idle.every():
        _count(ask, -1)


def recount(partition: Partition) -> None:
    """The file has changed: idle work counts where it belongs by now."""
    for ask in partition.idle.every():
        _count(ask, 1)


def _count(ask: Ask, sign: int) -> None:
    queue = payer(ask)
    for above in queue.lineage:
        for name, amount in ask.items:
            above.allocated[name] = above.allocated.get(name, 0) + sign * amount
        above.touch()
    if counts_as_gone(ask):
        queue.add_preempting(ask.items, sign)


def use_by_queue(partition: Partition) -> dict[str, Book]:
    """What idle work uses in each queue below its resource group, by path: it is in no book of these queues."""
    use: dict[str, Book] = {}
    for ask in partition.idle.every():
        group = group_of(ask.app.queue)
        for queue in ask.app.queue.lineage:
            if queue is group:
                break
            add_to(use.setdefault(queue.path, {}), ask.items)
    return use


def load(partition: Partition) -> None:
    """Make the running ones again from the nodes (after a restart)."""
    for node in partition.nodes.nodes.values():
        for ask in node.allocations:
            if ask.spec.idle:
                partition.idle.settle(ask, node)
