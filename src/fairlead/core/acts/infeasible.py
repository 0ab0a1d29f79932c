"""Oversize: work that may preempt, and that no node, or no queue above it, could hold even when empty.

Decides what rests because of that, and what is woken when a node comes that could, or a maximum is raised. What rests
waits for no time, for nothing that ends makes room for it. Never decides what preempts (`policy.preemption.when`).
Invariant: while a batch of a shape rests, no node that takes work could hold the shape, and the table knows the shape;
while a batch rests in its leaf, the maximum of the leaf or of a queue above it is less than one of its asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model.resources import lacks

if TYPE_CHECKING:
    from fairlead.core.books import Batch, Node, NodeTable, Queue, Shape

ATTEMPT_EVERY_MS = 15_000
"""An ask that may cause others to be stopped tries that again after this time."""


def rest_if_too_large(table: NodeTable, batch: Batch) -> bool:
    """Whether no node, or some maximum, could hold an ask of this batch; then they rest from now on."""
    shape = batch.key[0]
    if shape in table.oversize or not any(_could_hold(node, shape) for node in table.nodes.values()):
        rest(table, batch)
    elif exceeds(batch):
        rest_in_leaf(batch)
    else:
        return False
    return True


def rest(table: NodeTable, batch: Batch) -> None:
    """The asks of this batch make no attempt until a node comes that could hold them."""
    shape = batch.key[0]
    table.oversize[shape] = None
    shape.resting[batch] = None


def widened(table: NodeTable, node: Node, now_ms: int) -> None:
    """The node joined, got another capacity, or takes work again: wake what rested and would fit there."""
    for shape in [s for s in table.oversize if _could_hold(node, s)]:
        del table.oversize[shape]
        resting, shape.resting = shape.resting, {}
        for batch in resting:
            _wake(batch, now_ms)


def exceeds(batch: Batch) -> bool:
    """Whether an ask of the batch is larger than the maximum of its queue, or of one above it (without the root)."""
    return any(lacks(queue.max, {}, batch.key[0].items) for queue in batch.demand.leaf.lineage[:-1])


def rest_in_leaf(batch: Batch) -> None:
    """The asks of this batch make no attempt until they fit under every maximum."""
    batch.demand.leaf.resting[batch] = None


def raised(queue: Queue, now_ms: int) -> None:
    """Maxima here or below may be others: wake what rested because of them and would fit now."""
    for leaf in queue.walk():
        for batch in [b for b in leaf.resting if not exceeds(b)]:
            del leaf.resting[batch]
            _wake(batch, now_ms)


def _wake(batch: Batch, now_ms: int) -> None:
    """When each ask tries next is as if it had tried in vain all the time."""
    app = batch.app
    app.forget_attempts(batch)
    for ask in batch.asks:
        known_ms = ask.preempt_checked_ms
        if known_ms is None:
            known_ms = ask.created_ms + app.queue.properties.preemption_delay_ms
        if known_ms < now_ms:
            # Its last attempt was at the last of its times before now; one that falls on now is still to come.
            ask.preempt_checked_ms = now_ms - 1 - (now_ms - 1 - known_ms) % ATTEMPT_EVERY_MS
    app.queue.touch_app(app)


def _could_hold(node: Node, shape: Shape) -> bool:
    return node.schedulable and node.fits_total(shape.items)
