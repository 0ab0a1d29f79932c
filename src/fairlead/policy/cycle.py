"""The cycle: the steps of one scheduling run, least disruptive first.

Decides the order of the steps and when a run is over; each step decides in its own module. A run places at most one
ask; a later step is only tried when the earlier ones found nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.policy.allocate import RESERVED, allocate_one
from fairlead.policy.gang import replace_one
from fairlead.policy.nominate import place_nominated
from fairlead.policy.preempt import preempt_one
from fairlead.policy.reserve import place_reserved

if TYPE_CHECKING:
    from fairlead.core.partition import Partition
    from fairlead.policy.line import Lines


def run_once(partition: Partition, lines: Lines) -> bool:
    """One scheduling run. True when an ask was placed (making room for one does not count)."""
    if partition.holds and place_nominated(partition):
        return True
    if partition.reservations and place_reserved(partition) is not None:
        return True
    if partition.swappable and replace_one(partition) is not None:
        return True
    outcome = allocate_one(partition, lines)
    if outcome is not None:
        return outcome is not RESERVED
    preempt_one(partition)
    return False
