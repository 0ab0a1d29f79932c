"""What was under way before a restart: allocations that are leaving, and space that was held.

Decides whether a report of it still makes sense, and enters it into the books. Never decides what has to stop.
Invariant: after a restart nothing is told to stop for an ask whose victims are leaving already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.acts import allocations, nominate, reserve_node
from fairlead.core.model.events import Leaving, Nominated
from fairlead.core.model.resources import fits_in
from fairlead.policy.preemption.by_priority import plan_on, tell

if TYPE_CHECKING:
    from fairlead.core.books import Ask, Node, Partition


def leaving(partition: Partition, event: Leaving) -> None:
    """An allocation is on its way out: it is no victim any more. Unknown ones are passed over."""
    ask = partition.find_ask(event.application, event.key)
    if ask is None or ask.node is None or ask.evict_cause is not None:
        return
    allocations.leave(partition, ask, event.cause)


def nominated(partition: Partition, event: Nominated) -> None:
    """Hold space again for an ask that others were stopped for, if it fits there once these are gone.

    They may be gone already: then it is the next to be placed, before others of its rank take what was freed for it.
    What was to be stopped for it as well and was perhaps never told is found again by the rule itself, and told.
    """
    ask = partition.find_ask(event.application, event.key)
    node = partition.nodes.nodes.get(event.node)
    if ask is None or node is None or not ask.pending or ask.held_on is not None:
        return
    if not node.takes(ask) or node.reservations:
        return
    if ask.spec.idle:
        return  # It takes what others leave over when its turn comes: nothing is kept for it.
    leaving = tuple(a for a in node.allocations if a.evict_cause is not None)
    if fits_in(ask.items, node.free_for(ask, leaving)) and partition.nodes.suits(ask, node, leaving):
        _nominate(partition, ask, node, leaving)
        return
    plan = plan_on(partition, ask, node)
    if plan is None:
        return
    tell(partition, plan)
    _nominate(partition, ask, node, (*plan.victims, *plan.leaving))


def _nominate(partition: Partition, ask: Ask, node: Node, victims: tuple[Ask, ...]) -> None:
    ask.preempt_triggered = True
    reserve_node.unreserve(partition, ask)
    nominate.nominate(partition, ask, node, victims)
