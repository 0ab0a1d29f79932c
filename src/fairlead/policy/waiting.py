"""Waiting: the one reason why an ask does not run now, with its numbers.

Decides nothing that changes anything: it asks the same questions as `allocate`, in the same order, of the state as it
is. Never reads what the kept orders remember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core import reasons
from fairlead.core.lifecycle import State
from fairlead.core.resources import fits_in

if TYPE_CHECKING:
    from fairlead.core.applications import Ask
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition
    from fairlead.core.queues import Queue
    from fairlead.core.reasons import Reason


def why_waiting(partition: Partition, ask: Ask) -> Reason:
    """The first thing in the way, from the general to the particular."""
    nodes = partition.nodes.nodes
    if not nodes:
        return reasons.NoNodes(partition.name)
    needed = dict(ask.items)
    if ask.held_on is not None:
        leaving = tuple(v.key for v in ask.victims if v.evict_cause is not None)
        if leaving:
            return reasons.WaitingForVictims(ask.held_on.id, leaving)
    app = ask.app
    if app.state is State.ACCEPTED and (closed := app.queue.gate_closed(app.id)) is not None:
        return reasons.ApplicationsAtMax(closed.path, closed.running, closed.max_applications)
    if not any(n.fits_total(ask.items) for n in nodes.values()):
        largest = {r: max(n.total.get(r, 0) for n in nodes.values()) for r in needed}
        return reasons.TooBigForEveryNode(needed, largest, len(nodes))
    full = app.queue.short_of_room(ask.items)
    if full is not None:
        return _queue_full(full, needed)
    root = partition.root
    assert root.max is not None
    free = {r: root.max.get(r, 0) - root.allocated.get(r, 0) for r in needed}
    if any(amount > free[r] for r, amount in needed.items()):
        return reasons.ClusterFull(needed, free, {r: root.max.get(r, 0) for r in needed})
    return _no_node(partition, ask) or reasons.NextInLine(app.queue.path)


def _queue_full(queue: Queue, needed: dict[str, int]) -> Reason:
    assert queue.max is not None
    free = {r: queue.max[r] - queue.allocated.get(r, 0) for r in needed if r in queue.max}
    short = {r: left for r, left in free.items() if needed[r] > left}
    return reasons.QueueFull(queue.path, {r: needed[r] for r in short}, short, {r: queue.max[r] for r in short})


def _no_node(partition: Partition, ask: Ask) -> Reason | None:
    if ask.required_node:
        named = partition.nodes.nodes.get(ask.required_node)
        if named is None:
            return reasons.RequiredNodeUnknown(ask.required_node)
        candidates = [named]
    else:
        candidates = [n for n in partition.nodes.every() if n.is_open]
    if any(fits_in(ask.items, n.free) or (n is ask.held_on and n.room_for(ask)) for n in candidates):
        return None
    closest = min(candidates, key=lambda n: (_shortage(n, ask), n.id), default=None)
    free = {r: closest.available.get(r, 0) for r, _ in ask.items} if closest else {}
    held = {r: closest.available.get(r, 0) - closest.free.get(r, 0) for r, _ in ask.items} if closest else {}
    return reasons.NoNodeHasRoom(
        needed=dict(ask.items),
        free=free,
        node=closest.id if closest else "",
        open_nodes=len(candidates),
        nodes=len(partition.nodes.nodes),
        held={r: v for r, v in held.items() if v},
    )


def _shortage(node: Node, ask: Ask) -> float:
    """How much of what the ask needs is missing on the node, summed over the resources as parts of the need."""
    return sum(max(amount - node.free.get(r, 0), 0) / amount for r, amount in ask.items)
