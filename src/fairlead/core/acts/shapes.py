"""Shaping: which waiting asks share a shape.

Decides that asks are equal while they need the same, have the same constraints, and differ in no label that counts. A
label begins to count when an ask comes whose affinity, anti-affinity or spread looks at it; then waiting asks that were
equal are told apart. Never changes what is waiting or in which order. Invariant: asks of one shape may run on the same
nodes.
"""

from __future__ import annotations

from fairlead.core.acts import waiting_asks
from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Shape, ShapeKey
from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import ANYWHERE, Constraints


def join(partition: Partition, ask: Ask) -> None:
    """`ask` waits from now on with the shape that it has; one object for all equal ones."""
    windows = partition.admission.windows
    ask.where = windows.narrow(partition, ask) if windows else ask.spec.where
    if ask.where is ANYWHERE and not ask.spec.labels:
        key: ShapeKey = (ask.items, ask.required_node)
    else:
        key = partition.nodes.terrain.shape_key(ask)
    found = partition.shapes.get(key)
    if found is None:
        found = partition.shapes[key] = Shape(key)
        partition.nodes.meet_shape(found)
    found.pending += 1
    if ask.created_ms < found.oldest_ms:
        found.oldest_ms = ask.created_ms
    ask.shape = found


def forget(partition: Partition, shape: Shape) -> None:
    """Nothing waits with this shape any longer."""
    partition.shapes.pop(shape.key, None)
    partition.nodes.forget_shape(shape)
    if not shape.is_plain or shape.watched:
        partition.nodes.terrain.forget(shape)


def meet(partition: Partition, where: Constraints) -> None:
    """An ask with these constraints is there from now on: the labels that its terms look at count."""
    if where is not ANYWHERE:
        for ask in partition.nodes.terrain.label_keys.look(where):
            regroup(partition, ask)


def part(partition: Partition, where: Constraints) -> None:
    """An ask with these constraints is gone: labels that no other looks at need not count any longer."""
    if where is not ANYWHERE:
        partition.nodes.terrain.label_keys.look_no_longer(where)


def regroup(partition: Partition, ask: Ask) -> None:
    """Put a waiting ask behind the shape that it has now."""
    app, old = ask.app, ask.shape
    assert old is not None
    in_line = ask.spec.idle or ask.batch is not None
    if ask.spec.idle:
        partition.idle.leave(ask)
    app.leave(ask)
    old.pending -= 1
    if not old.pending:
        forget(partition, old)
    join(partition, ask)
    if in_line:
        waiting_asks.line_up(partition, ask)
    if ask.reserved_on is not None:
        partition.nodes.reserved_again[ask] = None
    app.queue.touch_app(app)
