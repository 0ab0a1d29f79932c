"""What was under way before a restart: allocations that are leaving, and space that was held.

Decides whether a report of it still makes sense, and enters it into the books. Never decides what has to stop.
Invariant: after a restart nothing is told to stop for an ask whose victims are leaving already.
"""

from __future__ import annotations

from fairlead.core.acts import allocations, nominate, reserve_node
from fairlead.core.books.partition import Partition
from fairlead.core.model.events import Leaving, Nominated
from fairlead.core.model.resources import fits_in
from fairlead.policy.preemption.by_priority import plan_on, tell


def leaving(partition: Partition, event: Leaving) -> None:
    """An allocation is on its way out: it is no victim any more. Unknown ones are passed over."""
    ask = partition.find_ask(event.application, event.key)
    if ask is not None and ask.node is not None and ask.evict_cause is None:
        allocations.leave(partition, ask, event.cause)


def nominated(partition: Partition, event: Nominated) -> None:
    """Hold space again for an ask that others were stopped for, if it fits there once these are gone (or now: then it
    is the next to be placed, before others of its rank take what was freed for it). What was to be stopped for it as
    well and was perhaps never told is found again by the rule itself, and told.
    """
    ask = partition.find_ask(event.application, event.key)
    node = partition.nodes.nodes.get(event.node)
    if ask is None or node is None or not ask.pending or ask.held_on is not None:
        return
    if ask.spec.idle or not node.takes(ask) or node.reservations:
        return  # (Idle work takes what others leave over when its turn comes: nothing is kept for it.)
    victims = tuple(a for a in node.allocations if a.evict_cause is not None)
    if not (fits_in(ask.items, node.free_for(ask, victims)) and partition.nodes.suits(ask, node, victims)):
        plan = plan_on(partition, ask, node)
        if plan is None:
            return
        tell(partition, plan)
        victims = (*plan.victims, *plan.leaving)
    ask.preempt_triggered = True
    reserve_node.unreserve(partition, ask)
    nominate.nominate(partition, ask, node, victims)
