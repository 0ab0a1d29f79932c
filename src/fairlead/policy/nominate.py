"""Nominated asks: place those for which victims were told to stop, as soon as the space they left is enough.

Decides only for asks that hold space, in the order in which they got it. Never takes other space than what an ordinary
placement could take too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core import claims
from fairlead.policy.limits import full_ceiling, may_run

if TYPE_CHECKING:
    from fairlead.core.applications import Ask
    from fairlead.core.partition import Partition


def place_nominated(partition: Partition) -> Ask | None:
    """Place the first nominated ask whose space is free by now; None when none can be placed yet."""
    for ask in list(partition.holds):
        node = ask.held_on
        assert node is not None
        if node.schedulable and node.room_for(ask) and _may_run(partition, ask):
            partition.place(ask, node)
            return ask
        if not any(victim.evict_cause for victim in ask.victims):
            # The victims are gone and it still cannot run (its queue filled up, the node shrank): start over.
            claims.unhold(partition, ask)
    return None


def _may_run(partition: Partition, ask: Ask) -> bool:
    app = ask.app
    if not may_run(app) or full_ceiling(app, ask.items) is not None:
        return False
    return app.queue.short_of_room(ask.items) is None and partition.nodes.sum_has_room(ask.items)
