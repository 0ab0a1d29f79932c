"""Search class: which waiting asks stand for each other where room is to be made by priority.

Decides that a search finds something for each of some asks or for none of them, whatever their leaves, apart from their
priorities and from what was stopped for them before. Never searches. Invariant: what differs for a search between two
leaves on the way to the root is in their classes.

Leaves are alike when nothing on their way to the root limits them, and a priority counts for as much at the root. What
is outside its guarantees, and would be with all gone that may be on any one node, is like what has none. Idle work
gives back what is promised by each rule.
"""

from __future__ import annotations

from fairlead.core.books.demand import Demand
from fairlead.core.books.idle_work import group_of
from fairlead.core.books.partition import Partition
from fairlead.core.books.queues import Queue
from fairlead.core.model.resources import Items
from fairlead.policy.order.victim_index import Stoppable
from fairlead.policy.preemption.candidates import room_within


def class_of(partition: Partition, demand: Demand, table: Stoppable) -> tuple[object, ...]:
    """The class of all that waits with a demand."""
    leaf, shift = demand.leaf, 0
    own = (leaf, demand)
    if demand.enters:
        return own
    for queue in leaf.lineage[:-1]:
        rules = queue.properties
        if queue.max is not None or rules.priority_fence or rules.preemption_policy != "default":
            return own
        if partition.idle.running and queue.guaranteed is not None:
            return own
        shift += rules.priority_offset
    if leaf.under_guarantee and not _stays_outside(leaf, demand.shape.items, table):
        return own
    return (demand.shape, demand.allowance, group_of(leaf), shift)


def _stays_outside(leaf: Queue, items: Items, table: Stoppable) -> bool:
    """Whether an ask for this amount is within no guarantee, nor would be if work were stopped on one
    node.
    """
    could_be = True
    rooms = [(queue, room_within(queue, items)) for queue in leaf.lineage if queue.guaranteed]
    for queue, room in rooms:
        if room and min(room.values()) >= 0:
            return False
        could_be = could_be and all(-left <= table.most_on_a_node(queue, name) for name, left in room.items())
    return not could_be or not any(room for _, room in rooms)
