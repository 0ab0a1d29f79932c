"""Idle work: it starts on what others leave over in its resource group, after all else.

Decides which waiting idle ask starts next and where: of all groups the first in order (retried, priority, creation)
that fits on a node, under the maxima of its group and above, and under its user's limits. Its own queue's maximum does
not count. Never starts one while an ask of its group has a reservation. Invariant: it is tried when nothing else could
be placed, so whatever it takes, nothing that is not idle could have used now.
"""

from __future__ import annotations

from fairlead.core.acts import allocations
from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Shape
from fairlead.core.books.idle_work import IdleKey, group_of, idle_key
from fairlead.core.books.node import Node
from fairlead.core.books.nominations import limit_short_of_kept, queue_short_of_kept
from fairlead.core.books.partition import Partition
from fairlead.core.books.user_limits import Allowance
from fairlead.policy.eligibility.limits import full_ceiling, may_run


def place_idle(partition: Partition) -> Ask | None:
    """Place the first idle ask in order that can start; None when none can."""
    best: tuple[IdleKey, Ask, Node] | None = None
    for (leaf, shape), asks in sorted(partition.idle.lines.items(), key=lambda line: idle_key(line[1][0])):
        if best is not None and idle_key(asks[0]) > best[0]:
            break
        group = group_of(leaf)
        if group.short_of_room(shape.items):
            continue
        if queue_short_of_kept(partition, group, shape.items):
            continue
        node = _node_for(partition, shape)
        ask = _first(partition, asks) if node is not None else None
        if node is not None and ask is not None and (best is None or idle_key(ask) < best[0]):
            best = (idle_key(ask), ask, node)
    if best is None:
        return None
    _, ask, node = best
    ask.attempted = True
    if not ask.required_node and ask.shape is not None and partition.nodes.has_wish(ask):
        node = partition.nodes.first_for(ask.shape, ask) or node
    allocations.place(partition, ask, node)
    return ask


def _first(partition: Partition, asks: list[Ask]) -> Ask | None:
    """The first of these asks whose application may run, and whose user has room, beside what is promised there."""
    full: dict[Allowance | None, None] = {}
    turns = partition.reserving
    for ask in asks:
        app = ask.app
        # It waits while an ask of its resource group has a reservation.
        if app.allowance in full or (turns.of and turns.within(group_of(app.queue), ask) is not None):
            continue
        if full_ceiling(app, ask.items) or limit_short_of_kept(partition, ask):
            full[app.allowance] = None
        elif may_run(app):
            return ask
    return None


def _node_for(partition: Partition, shape: Shape) -> Node | None:
    """The first node in order with room for the shape; None is remembered until a node gains."""
    nodes = partition.nodes
    if shape.unfit:
        return None
    if not nodes.sum_has_room(shape.items):
        nodes.mark_unfit(shape, by_root=True)
        return None
    node = nodes.unclaimed(shape)
    if node is None:
        nodes.mark_unfit(shape)
    return node
