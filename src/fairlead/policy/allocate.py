"""Allocate: give the next ask in line the first node that has room.

Decides one placement at a time: the queue by priority and fair share, in it the application, in it the ask, for it the
node; the first that can be placed is. An ask in turn that cannot be placed may have room made for it (`preempt`), which
ends the run. What meets an obstacle is left alone until that obstacle moves, which changes nothing about who is placed,
only how often one looks.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from fairlead.core.applications import Ask
from fairlead.core.claims import short_of_promised_limit, short_of_promised_room
from fairlead.core.lifecycle import State
from fairlead.core.resources import fits_in
from fairlead.core.trackers import decide_group, decide_groups
from fairlead.policy.limits import closed_gate, is_over_limit
from fairlead.policy.misses import End, Misses
from fairlead.policy.preempt import Attempts, is_due, wake_when_due
from fairlead.policy.reserve import clear_for, watch_ages
from fairlead.policy.turns import waits_for_turn

if TYPE_CHECKING:
    from fairlead.core.applications import Application, Batch
    from fairlead.core.demand import Demand, Shape
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue
    from fairlead.policy.line import Lines


class Reserved(Enum):
    """The run ended with a node set aside for an ask, and nothing placed."""

    RESERVED = "reserved"


RESERVED = Reserved.RESERVED
Outcome = Ask | Reserved | None


def allocate_one(partition: Partition, lines: Lines) -> Outcome:
    """Place the next ask that can be placed, or make room for it (`RESERVED`); None when neither can be done."""
    if partition.root.max is None:
        return None
    if not partition.root.asleep:
        outcome = _from_tree(partition, lines)
        if outcome is not None:
            return outcome
    if partition.unseen:
        decide_groups(partition)
    return None


def _from_tree(partition: Partition, lines: Lines) -> Outcome:
    """Down to the leaf that is next; up again, and to the next one, when nothing there can be placed."""
    dozing = partition.nodes.dozing
    queue: Queue | None = partition.root
    while queue is not None:
        version = dozing.version
        if queue.is_leaf:
            if dozing.fresh:
                dozing.rouse_in(queue)
            outcome = _from_leaf(partition, lines, queue)
            if outcome is not None:
                return outcome
        else:
            if dozing.fresh:
                lines.rouse_next(queue, dozing)
            child = lines.next_child(queue)
            if child is not None:
                queue = child
                continue
        lines.send_to_sleep(queue, version)
        if queue.parent is None and dozing.fresh:
            dozing.rouse_all()
        queue = queue.parent if queue.asleep else queue
    return None


def _from_leaf(partition: Partition, lines: Lines, leaf: Queue) -> Outcome:
    attempts = Attempts()
    while (app := lines.next_application(leaf)) is not None:
        if app.let_out_by:
            if _was_let_out_in_vain(partition, app):
                wake_when_due(partition, app)
                lines.put_back(app)
                continue
            app.let_out_by = []
        placed = _from_application(partition, lines, app, attempts)
        if placed is not None:
            return placed
    return None


def _from_application(partition: Partition, lines: Lines, app: Application, attempts: Attempts) -> Outcome:
    if app.limit_group is None:
        decide_group(partition, app)
    if _sits_out(partition, lines, app):
        return None
    misses = end = None
    reserving = app.queue in partition.reserving.of
    for batch in app.batches:
        if batch.key[2] and app.stands_in(batch.key[2]):
            continue
        if reserving and waits_for_turn(partition, batch.asks[0]):
            continue
        if misses is not None:
            end = misses.due_before(batch.line_key)
            if end is not None:
                break
        node = node_for(partition, batch)
        if node is not None:
            ask = batch.asks[0]
            ask.attempted = True
            partition.place(ask, node)
            return ask
        if misses is None:
            misses = Misses(partition, app, attempts)
        end = misses.add(batch)
        if end is not None:
            break
    else:
        end = misses.due_at_end() if misses is not None else None
    if end is End.RESERVED:
        return RESERVED
    _park(partition, lines, app, resting=end is End.RESTING)
    return None


def _was_let_out_in_vain(partition: Partition, app: Application) -> bool:
    """Whether somebody else took what the application was let out for, and nothing is due that its misses lead to."""
    if app.queue.properties.backoff_threshold or not all(demand.is_blocked for demand in app.let_out_by):
        return False
    return not is_due(partition, app)


def _sits_out(partition: Partition, lines: Lines, app: Application) -> bool:
    """Whether the application waits at a gate or rests, so that none of its asks has its turn."""
    gate = closed_gate(app) if app.state is State.ACCEPTED else None
    resting = app.backoff_until_ms is not None and app.backoff_until_ms > partition.now_ms
    if gate is not None or resting:
        lines.park(app, [gate] if gate is not None else [])
        return True
    return False


def _park(partition: Partition, lines: Lines, app: Application, resting: bool) -> None:
    """Nothing of this application can be placed: see to it that it is looked at again when that may change."""
    if resting:
        lines.park(app, [])
        return
    wake_when_due(partition, app)
    lines.park(app, _demands(partition, app))
    watch_ages(partition, app)


def _demands(partition: Partition, app: Application) -> list[Demand]:
    """What the application waits with, but for asks that wait for placeholders (replacing those is another step) and
    those that another's reservation holds back (its end wakes all).
    """
    waits = [batch for batch in app.batches if not batch.key[2] or not app.stands_in(batch.key[2])]
    if app.queue in partition.reserving.of:
        waits = [batch for batch in waits if not waits_for_turn(partition, batch.asks[0])]
    return list({batch.demand: None for batch in waits})


def node_for(partition: Partition, batch: Batch) -> Node | None:
    """The node for the first ask of a batch, or None; then what is in the way is remembered with its demand."""
    demand = batch.demand
    if demand.obstacle is not None:
        return None
    shape = demand.shape
    assert shape is not None
    if shape.unfit:
        demand.wait_for_node()
        return None
    if demand.allowance is not None and is_over_limit(demand):
        return None
    full = demand.leaf.short_of_room(shape.items)
    if full is not None:
        demand.obstacle = full
        full.waiting[demand] = None
        return None
    if partition.holds:
        full = short_of_promised_room(partition, demand.leaf, shape.items, batch.asks[0])
        if full is not None:
            demand.obstacle = full
            full.waiting[demand] = None
            return None
        ceiling = short_of_promised_limit(partition, batch.asks[0])
        if ceiling is not None:
            demand.obstacle = ceiling
            ceiling.waiting[demand] = None
            return None
    node = _first_node(partition, batch, shape)
    if node is None:
        demand.wait_for_node()
    return node


def _first_node(partition: Partition, batch: Batch, shape: Shape) -> Node | None:
    """The first node in order with room for the shape; None marks the shape as unfit until a node gains.

    A node that is set aside for others is cleared for an ask that requires it, but not for one that has space there.
    """
    if not partition.nodes.sum_has_room(shape.items):
        partition.nodes.mark_unfit(shape, by_root=True)
        return None
    if shape.required_node:
        node = partition.nodes.nodes.get(shape.required_node)
        if node is not None and not partition.nodes.lets(shape, node):
            node = None
        if node is not None:
            if node.reservations and node.fits_total(shape.items) and any(a.held_on is None for a in batch.asks):
                clear_for(partition, node)
            if node.reservations or not fits_in(shape.items, node.free):
                node = None
    else:
        node = partition.nodes.first_for(shape)
    if node is None:
        partition.nodes.mark_unfit(shape)
    return node
