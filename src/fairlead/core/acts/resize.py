"""An ask or an allocation changes in place: its size, or its labels, constraints, images and protection.

Decides what follows in the books of its node, its queues, its limits, its quotas and budgets, and for what runs beside
it or waits. Never refuses: what runs may go over any limit by it. Never stops what may not be where it is any more:
constraints are for the start. Invariant: all sums are right afterwards, whatever waits for the room is looked at, and
what waits with other labels keeps its place in line.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead.core.acts import quota_clocks, shapes, waiting_asks
from fairlead.core.books import idle_work
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.books.usage_history import Consumption
from fairlead.core.model.resources import add_to, negative
from fairlead.core.model.specs import AskSpec


def resize(partition: Partition, ask: Ask, spec: AskSpec) -> None:
    """An ask or allocation changes its size in place; a running one may go over any limit."""
    old, new = ask.items, spec.resources.items
    partition.admission.resized(ask, old, new)
    # Only the amount can change: what else the report says is not what it was submitted with.
    spec = replace(ask.spec, resources=spec.resources)
    if ask.node is None:
        waiting_asks.describe(partition, ask, spec)
        return
    app, queue = ask.app, idle_work.payer(ask)
    idle_work.count_use(ask, -1)
    ask.spec, ask.items = spec, new
    idle_work.count_use(ask, 1)
    ask.node.resize(old, new)
    partition.nodes.suspects[ask.node] = None
    book = app.placeholders if spec.placeholder else app.allocated
    if app.consumed is None:
        app.consumed = Consumption()
    app.consumed.note_peak(app.allocated)
    add_to(book, negative(old))
    add_to(book, new)
    if app.allowance is not None:
        app.allowance.add(app.id, new)
        app.allowance.take(old)
    queue.add_allocated(new)
    queue.take_allocated(old)
    quota_clocks.forced(partition, queue)
    if app.pending_count:
        app.queue.touch_app(app)
    partition.books_version += 1
    partition.nodes.gained(ask.node)


def relabel(partition: Partition, ask: Ask, spec: AskSpec) -> None:
    """`ask` has the labels, constraints, images and protection of `spec` from now on, which is else as it was."""
    old = ask.spec
    shapes.meet(partition, spec.where)
    partition.admission.leave(ask)
    if ask.node is not None:
        partition.nodes.terrain.count(old, ask.node, -1)
        ask.spec = spec
        partition.nodes.terrain.count(spec, ask.node, 1)
        partition.nodes.gained(ask.node)  # A host port, or a place for a volume, may be free now.
    else:
        waiting_asks.describe(partition, ask, spec)
    partition.admission.enter(ask)
    shapes.part(partition, old.where)
    partition.books_version += 1
