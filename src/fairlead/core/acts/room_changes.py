"""Something general changed: nodes, shares, or anything at all.

Decides what is measured or looked at anew because of it. Never decides anything else. Invariant: looking again changes
no decision.
"""

from __future__ import annotations

from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue


def nodes_changed(partition: Partition) -> None:
    """The sum of the nodes is the root's maximum; every share is measured anew before it is next compared."""
    nodes_differ(partition)
    partition.root.max = dict(partition.nodes.total) if partition.nodes.nodes else None
    partition.shares_stale = True
    partition.root.loosened()


def nodes_differ(partition: Partition) -> None:
    """Some node has other room, or takes other work: what was stopped in vain, and whose turn is kept, may change."""
    partition.books_version += 1
    partition.disruption.capacity_changed()
    partition.reserving.look_again()


def reshare(partition: Partition) -> None:
    """What shares are measured against has changed: every queue finds its place again."""
    partition.shares_stale = False
    for queue in partition.root.walk():
        queue.share_terms = None
        queue.touch()


def wake_all(partition: Partition) -> None:
    """Something general changed: look at everything again."""
    partition.rested_at = None
    for shape in list(partition.nodes.unfit):
        partition.nodes.clear_unfit(shape)
    for ceiling in partition.trackers.ceilings.values():
        for demand in (*ceiling.waiting, *ceiling.gated):
            demand.wake()
    for node in partition.nodes.nodes.values():
        partition.nodes.reserved_again |= dict.fromkeys(node.reservations)
    for queue in partition.root.walk():
        queue.full.clear()
        queue.forget_lines()
        for demand in (*queue.waiting, *queue.gated):
            demand.wake()
        wake_leaf(queue)


def wake_leaf(leaf: Queue) -> None:
    """What waits in this leaf, if it is one, is looked at again."""
    for app in leaf.applications.values():
        for batch in app.batches.values():
            app.forget_attempts(batch)
        if app.pending_count:
            leaf.touch_app(app)
