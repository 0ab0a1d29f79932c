"""Nominated asks: place those for which victims were told to stop, as soon as the space they left is enough.

Decides only for asks that hold space, in the order in which they got it. Never takes other space than what an ordinary
placement could take too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core import claims
from fairlead.core.decisions import LoopBroken
from fairlead.core.disruption import FRUITLESS_MAX
from fairlead.core.promises import is_promised
from fairlead.core.resources import fits_in, take_from
from fairlead.policy.limits import full_ceiling, may_run
from fairlead.policy.turns import gathers_room

if TYPE_CHECKING:
    from fairlead.core.applications import Ask
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition


def place_nominated(partition: Partition) -> Ask | None:
    """Place the first nominated ask whose space is free by now; None when none can be placed yet."""
    for ask in list(partition.holds):
        node = ask.held_on
        assert node is not None
        if node.schedulable and _has_room(node, ask) and partition.nodes.suits(ask, node) and _may_run(partition, ask):
            partition.place(ask, node)
            return ask
        if not _something_leaves(partition, ask) and not gathers_room(partition, ask):
            # The victims are gone and it still cannot run (its queue filled up, the node shrank): start over.
            claims.unhold(partition, ask)
            _note_fruitless(partition, ask, node)
    return None


def _something_leaves(partition: Partition, ask: Ask) -> bool:
    """Whether what it waits for is still to come: work that was told to stop, on its node or in its full queue.

    What some node uses beyond what it has is missing in the sum of all: that can be full with room on the node.
    """
    if any(victim.evict_cause for victim in ask.victims):
        return True
    full = ask.app.queue.short_of_room(ask.items)
    if full is None and not partition.nodes.sum_has_room(ask.items):
        full = partition.root
    return full is not None and any(full.preempting.get(name, 0) for name, _ in ask.items)


def _note_fruitless(partition: Partition, ask: Ask, node: Node) -> None:
    """Work was stopped for nothing. Whoever takes the room each time, stopping more of it will not help."""
    if not ask.preempt_triggered:
        return
    ask.preempt_triggered = False
    if partition.disruption.note_fruitless(ask, node, partition.now_ms):
        partition.out.append(LoopBroken(ask.app.id, ask.key, node.id, "", FRUITLESS_MAX))


def _has_room(node: Node, ask: Ask) -> bool:
    """Whether it fits beside those for which space was held before; the victims of later ones may still be there."""
    left = dict(node.available)
    for holder, items in node.held.items():
        if holder is ask:
            break
        take_from(left, items)
    return fits_in(ask.items, left)


def _may_run(partition: Partition, ask: Ask) -> bool:
    app = ask.app
    if not may_run(app) or full_ceiling(app, ask.items) is not None:
        return False
    if app.queue.short_of_room(ask.items) is not None or not partition.nodes.sum_has_room(ask.items):
        return False
    # Room that only gathered is taken where that leaves enough for those for whom work was stopped.
    if is_promised(partition.nodes, ask):
        return True
    return claims.short_of_promised_room(partition, partition.root, ask.items, ask) is None
