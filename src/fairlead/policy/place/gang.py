"""Gang: real asks take the places that placeholders keep for them.

Decides which placeholder a waiting ask of the same task group replaces: one that is at least as large, in place where
the node suits the ask, else on another node with room. A placeholder that is too small for the ask is told to go.
Never places an ask for which nothing was kept. Invariant: an application is in `partition.swappable` whenever one of
its asks could replace a placeholder (it may be there in vain).
"""

from __future__ import annotations

from fairlead.core.acts import allocations, gangs
from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.demand import Shape
from fairlead.core.books.node import Node
from fairlead.core.books.partition import Partition
from fairlead.core.books.task_groups import TaskGroup
from fairlead.core.model.events import Cause
from fairlead.core.model.resources import fits_in
from fairlead.policy.order.keys import application_key, first_leaf_in_walk


def replace_one(partition: Partition) -> Ask | None:
    """Begin the next replacement in walk order; None when there is none. Headroom and limits are not looked at."""
    if partition.homeless and partition.homeless_at != partition.nodes.gains:
        for app in partition.homeless:
            gangs.look_again(partition, app)
        partition.homeless.clear()
    leaves = partition.swappable
    while leaves:
        leaf = first_leaf_in_walk(leaves)
        waiting = leaves[leaf]
        while waiting:
            app = min(waiting, key=application_key)
            is_there = partition.applications.get(app.id) is app and app.queue is leaf
            ask = _replace_in(partition, app) if is_there else None
            if ask is not None:
                return ask
            del waiting[app]
        del leaves[leaf]
    return None


def _replace_in(partition: Partition, app: Application) -> Ask | None:
    """The first ask in order that has a placeholder in a place that suits it; then the first for which another node has
    room. (YuniKorn's core tries another node for the first one alone: what comes behind one that fits nowhere waits.)
    """
    elsewhere: dict[Shape, tuple[Ask, Ask]] = {}
    for batch in list(app.line):
        group = app.groups.get(batch.task_group)
        if group is None or not group.standing:
            continue
        ask = batch.head
        found = _placeholder_for(partition, ask, group)
        if found is None:
            continue
        if found.node is not None and suits(partition, ask, found.node, found):
            gangs.begin_swap(partition, ask, found, found.node)
            return ask
        elsewhere.setdefault(batch.key[0], (ask, found))
    for shape, (ask, placeholder) in elsewhere.items():
        # It may have been told to go meanwhile: it is too small for what comes behind this ask.
        node = partition.nodes.unclaimed(shape, ask) if placeholder.evict_cause is None else None
        if node is not None:
            gangs.begin_swap(partition, ask, placeholder, node)
            return ask
    if elsewhere:
        partition.homeless[app] = None
        partition.homeless_at = partition.nodes.gains
    return None


def _placeholder_for(partition: Partition, ask: Ask, group: TaskGroup) -> Ask | None:
    """The first placeholder that the ask can replace in place, else the first that is large enough.

    Those that are too small and come before it in the group are told to go.
    """
    too_small, large_enough, in_place = [], None, None
    for placeholder in group.standing:
        if not fits_in(ask.items, dict(placeholder.items)):
            too_small.append(placeholder)
            continue
        large_enough = large_enough or placeholder
        if placeholder.node is not None and suits(partition, ask, placeholder.node, placeholder):
            in_place = placeholder
            break
    for placeholder in too_small:
        message = "cancel placeholder: resource incompatible"
        allocations.evict(partition, placeholder, Cause.TIMEOUT, ask.key, "placeholder", message)
    return in_place or large_enough


def suits(partition: Partition, ask: Ask, node: Node, placeholder: Ask) -> bool:
    """Whether the ask may run on this node, which is that of the placeholder, once that is gone."""
    may = ask.required_node in ("", node.id) and gangs.fits_in_place(ask, placeholder, node)
    return may and partition.nodes.suits(ask, node, (placeholder,))
