"""Gang size: whether a gang could ever be whole.

Decides that nothing is stopped for placeholders whose gang is larger than all nodes together, a queue above it, or the
limit of its user or group, or of which one task group has more members that are alike than could stand on all nodes at
once: it would be stopped for nothing. Never keeps them from room that is free: nodes may come. Whether different ones,
which fit by themselves, do so together is not looked at.
Invariant: it depends on capacity, attributes, taints, maxima and limits, and on how many members there are; what makes
it possible wakes what waits.
"""

from __future__ import annotations

from fairlead.core.books.applications import Application
from fairlead.core.books.asks import Ask
from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import HOSTNAME, NODE_NAME
from fairlead.core.model.lifecycle import State
from fairlead.core.model.matching import matches
from fairlead.core.model.resources import Book, lacks
from fairlead.core.model.specs import AskSpec


class GangSizes:
    """What was found of gangs in one look at asks of one shape: of a task group with a thousand members but once."""

    __slots__ = ("_known", "_partition")

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._known: dict[tuple[Application, str], bool] = {}

    def are_too_large(self, ask: Ask) -> bool:
        """See `is_of_gang_too_large`."""
        if not ask.spec.placeholder:
            return False
        key = (ask.app, ask.spec.task_group)
        if key not in self._known:
            self._known[key] = is_of_gang_too_large(self._partition, ask)
        return self._known[key]


def is_of_gang_too_large(partition: Partition, ask: Ask) -> bool:
    """Whether it is a placeholder of a gang that cannot be whole as things are, whatever ends."""
    app = ask.app
    if not ask.spec.placeholder or app.state is not State.ACCEPTED:
        return False
    places = (*app.queue.lineage, *app.ceilings)
    whole = app.spec.placeholder_ask.items
    if beyond_all_nodes(partition, app) or any(lacks(place.max, {}, whole) for place in places):
        return True
    return members_beyond_nodes(partition, ask) is not None


def beyond_all_nodes(partition: Partition, app: Application) -> Book:
    """What a gang needs of that of which all nodes together have less; nothing where it is none."""
    total = partition.nodes.total
    return {name: amount for name, amount in app.spec.placeholder_ask.items if amount > total.get(name, 0)}


def members_beyond_nodes(partition: Partition, ask: Ask) -> tuple[int, int] | None:
    """How many members of its task group are like this placeholder, and how many of them could stand on all nodes
    together if nothing else ran; None where these are enough, or where it is not said how large the gang is.
    """
    app, where, group = ask.app, ask.spec.where, ask.spec.task_group
    if not app.spec.placeholder_ask or ask.required_node:
        return None
    most = app.groups[group].members
    ground = partition.nodes.terrain.ground(where)
    columns = partition.nodes.columns
    room = columns.copies(ground.named & ground.tolerated, ask.items, 1 if keeps_apart(ask.spec) else most)
    if room >= most:
        return None
    members = (other for other in app.asks.values() if other.spec.placeholder and other.spec.task_group == group)
    alike = sum(other.items == ask.items and other.spec.where == where for other in members)
    return (alike, room) if room < alike else None


def keeps_apart(spec: AskSpec) -> bool:
    """Whether no node can have two like this one."""
    return bool(apart_by(spec))


def apart_by(spec: AskSpec) -> tuple[object, ...]:
    """By what: no node can have two of which this is the same; nothing: any number."""
    own = [term for term in spec.where.anti_affinity if matches(term.selector, spec.labels)]
    return (*spec.where.ports, *(term for term in own if term.topology_key in (HOSTNAME, NODE_NAME)))
