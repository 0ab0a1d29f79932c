"""Allocate: give the next ask in line the first node that has room.

Decides one placement at a time: the queue by priority and fair share, in it the application, in it the ask, for it the
node; the first that can be placed is. Never evicts, never holds anything back. What meets an obstacle is left alone
until that obstacle moves, which changes nothing about who is placed, only how often one looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.lifecycle import State
from fairlead.core.resources import fits_in

if TYPE_CHECKING:
    from fairlead.core.applications import Application, Ask, Batch
    from fairlead.core.demand import Demand, Shape
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue
    from fairlead.core.resources import Items
    from fairlead.policy.line import Lines


def allocate_one(partition: Partition, lines: Lines) -> Ask | None:
    """Place the next ask that can be placed; None when there is none."""
    if partition.root.max is None or partition.root.asleep:
        return None
    return _from_queue(partition, lines, partition.root)


def _from_queue(partition: Partition, lines: Lines, queue: Queue) -> Ask | None:
    if queue.is_leaf:
        return _from_leaf(partition, lines, queue)
    while (child := lines.next_child(queue)) is not None:
        placed = _from_queue(partition, lines, child)
        if placed is not None:
            return placed
    lines.send_to_sleep(queue)
    return None


def _from_leaf(partition: Partition, lines: Lines, leaf: Queue) -> Ask | None:
    while (app := lines.next_application(leaf)) is not None:
        placed = _from_application(partition, lines, app)
        if placed is not None:
            return placed
    lines.send_to_sleep(leaf)
    return None


def _from_application(partition: Partition, lines: Lines, app: Application) -> Ask | None:
    if app.state is State.ACCEPTED:
        closed = app.queue.gate_closed(app.id)
        if closed is not None:
            gate = app.queue.gate()
            gate.obstacle = closed
            closed.waiting[gate] = None
            lines.park(app, [gate])
            return None
    for batch in app.batches:
        node = node_for(partition, batch)
        if node is not None:
            ask = batch.asks[0]
            ask.attempted = True
            partition.place(ask, node)
            return ask
    lines.park(app, _demands(app))
    return None


def _demands(app: Application) -> list[Demand]:
    return list({batch.demand: None for batch in app.batches})


def node_for(partition: Partition, batch: Batch) -> Node | None:
    """The node for the first ask of a batch, or None; then what is in the way is remembered with its demand."""
    demand = batch.demand
    if demand.obstacle is not None:
        return None
    shape = demand.shape
    assert shape is not None
    if shape.unfit:
        partition.nodes.wait_for(shape, demand)
        return None
    full = demand.leaf.short_of_room(shape.items)
    if full is not None:
        demand.obstacle = full
        full.waiting[demand] = None
        return None
    node = _first_node(partition, shape)
    if node is None:
        partition.nodes.wait_for(shape, demand)
    return node


def _first_node(partition: Partition, shape: Shape) -> Node | None:
    """The first node in order with room for the shape; None marks the shape as unfit until a node gains."""
    if not root_has_room(partition.root, shape.items):
        partition.nodes.mark_unfit(shape, by_root=True)
        return None
    if shape.required_node:
        node = partition.nodes.nodes.get(shape.required_node)
        if node is not None and not fits_in(shape.items, node.free):
            node = None
    else:
        node = partition.nodes.first_fit(shape.items)
    if node is None:
        partition.nodes.mark_unfit(shape)
    return node


def root_has_room(root: Queue, items: Items) -> bool:
    """Whether all nodes together have this much unused; a name that no node has is 0."""
    limit, used = root.max or {}, root.allocated
    for name, amount in items:
        if used.get(name, 0) + amount > limit.get(name, 0):
            return False
    return True
