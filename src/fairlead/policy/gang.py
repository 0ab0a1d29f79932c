"""Gang: real asks take the places that placeholders keep for them.

Decides which placeholder a waiting ask of the same task group replaces: one that is at least as large, in place where
the node suits the ask, else on another node with room. A placeholder that is too small for the ask is told to go.
Never places an ask for which nothing was kept. Invariant: an application is in `partition.swappable` whenever one of
its asks could replace a placeholder (it may be there in vain).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core import gangs
from fairlead.core.events import Cause
from fairlead.core.queues import QueueState
from fairlead.core.resources import fits_in
from fairlead.policy.ordering import walk_key

if TYPE_CHECKING:
    from fairlead.core.applications import Application, Ask
    from fairlead.core.nodes import Node
    from fairlead.core.partition import Partition


def replace_one(partition: Partition) -> Ask | None:
    """Begin the next replacement in walk order; None when there is none. Headroom and limits are not looked at."""
    waiting = partition.swappable
    while waiting:
        app = next(iter(waiting)) if len(waiting) == 1 else min(waiting, key=walk_key)
        ask = _replace_in(partition, app) if _takes_part(partition, app) else None
        if ask is not None:
            return ask
        del waiting[app]
    return None


def _takes_part(partition: Partition, app: Application) -> bool:
    if partition.applications.get(app.id) is not app or not app.placeholder_count:
        return False
    return all(queue.state is not QueueState.STOPPED for queue in app.queue.lineage)


def _replace_in(partition: Partition, app: Application) -> Ask | None:
    """The first ask in order that has a placeholder in a place that suits it; then the first that can go elsewhere."""
    elsewhere: tuple[Ask, Ask] | None = None
    for batch in list(app.batches):
        group = app.groups.get(batch.task_group)
        if group is None or not group.standing:
            continue
        ask = batch.asks[0]
        for placeholder in list(group.standing):
            if not _covers(placeholder, ask):
                message = "cancel placeholder: resource incompatible"
                partition.evict(placeholder, Cause.TIMEOUT, ask.key, "placeholder", message)
                continue
            node = placeholder.node
            assert node is not None
            if suits(ask, node):
                gangs.begin_swap(partition, ask, placeholder, node)
                return ask
            if elsewhere is None:
                elsewhere = (ask, placeholder)
    if elsewhere is None:
        return None
    ask, placeholder = elsewhere
    for node in partition.nodes.in_order():
        if suits(ask, node) and fits_in(ask.items, node.free):
            gangs.begin_swap(partition, ask, placeholder, node)
            return ask
    return None


def _covers(placeholder: Ask, ask: Ask) -> bool:
    """Whether the ask is no larger than the placeholder in any resource."""
    return fits_in(ask.items, dict(placeholder.items))


def suits(ask: Ask, node: Node) -> bool:
    """Whether the ask may run on this node, room apart."""
    return ask.required_node in ("", node.id)
