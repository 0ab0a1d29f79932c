"""Records about nodes, queues and limits: everything around the applications.

Decides what a node, a queue or a new configuration gives to tell. Never looks at the books; what it has to compare with
it notes itself. Invariant: applying the same configuration again gives no record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.core.model import decisions as d
from fairlead.core.model import events as e
from fairlead.core.model.resources import Book, Items, Resources, add_to
from fairlead.insight.history_records import Change, Detail, Record, Type, amounts

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.decisions import Decision
    from fairlead.core.model.resources import Limits
    from fairlead.core.model.specs import LimitSpec, PartitionSpec, QueueSpec

Named = dict[tuple[Detail, str, str], "LimitSpec"]
"""A limit by kind, name of the user or group, and path of the queue."""


class ClusterHistory:
    """What the records about nodes and queues are made from."""

    def __init__(self) -> None:
        self.capacities: dict[tuple[str, str], Items] = {}
        """By partition and node."""
        self.specs: dict[str, PartitionSpec] = {}
        self.dynamic: set[tuple[str, str]] = set()
        """Queues that placement made, by partition and path."""

    def begin_with(self, partition: Partition) -> None:
        """Take note of what a partition has already."""
        self.specs[partition.name] = partition.spec
        self.dynamic |= {(partition.name, q.path) for q in partition.root.walk() if not q.managed}
        for node in partition.nodes.nodes.values():
            self.capacities[partition.name, node.id] = tuple(node.total.items())

    def of_event(self, at_ms: int, event: Any, decisions: Sequence[Decision]) -> list[Record]:
        """What an event tells that was not refused."""
        tell = _EVENTS.get(type(event))
        if tell is None or any(isinstance(x, d.NodeRejected | d.ConfigurationRejected) for x in decisions):
            return []
        return list(tell(self, at_ms, event))

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _node_in(self, at_ms: int, event: e.AddNode) -> Iterator[Record]:
        node = event.node
        yield _schedulable(at_ms, node.id, node.schedulable)
        text, amount = "Node added to the scheduler", node.capacity.items
        yield Record(at_ms, Type.NODE, Change.ADD, Detail.NONE, node.id, "", text, amount)
        self.capacities[node.partition, node.id] = amount
        yield self._root(at_ms, node.partition)

    def _node_changed(self, at_ms: int, event: e.UpdateNode) -> Iterator[Record]:
        amount = self.capacities[event.partition, event.id] = event.capacity.items
        yield Record(at_ms, Type.NODE, Change.SET, Detail.NODE_CAPACITY, event.id, amount=amount)
        yield self._root(at_ms, event.partition)

    def _node_closed(self, at_ms: int, event: e.DrainNode) -> Iterator[Record]:
        yield _schedulable(at_ms, event.id, False)

    def _node_opened(self, at_ms: int, event: e.UndrainNode) -> Iterator[Record]:
        yield _schedulable(at_ms, event.id, True)

    def _node_out(self, at_ms: int, event: e.RemoveNode) -> Iterator[Record]:
        amount, text = self.capacities.pop((event.partition, event.id), ()), "Node removed from the scheduler"
        yield Record(at_ms, Type.NODE, Change.REMOVE, Detail.NODE_DECOMMISSION, event.id, "", text, amount)
        yield self._root(at_ms, event.partition)

    def _root(self, at_ms: int, partition: str) -> Record:
        """The nodes changed: the root's maximum is their new sum."""
        total: Book = {}
        for (of, _), items in self.capacities.items():
            if of == partition:
                add_to(total, items)
        return Record(at_ms, Type.QUEUE, Change.SET, Detail.QUEUE_MAX, "root", amount=Resources(total).items)

    # -- queues ---------------------------------------------------------------------------------------------------

    def queue(self, at_ms: int, x: d.QueueChanged, by_configuration: bool) -> list[Record]:
        """A queue came or went; that it drains or takes work again is no record."""
        key = (x.partition, x.queue)
        if x.change == "added" and not by_configuration:
            self.dynamic.add(key)
        change = {"added": Change.ADD, "removed": Change.REMOVE}.get(x.change)
        if change is None:
            return []
        detail = Detail.QUEUE_DYNAMIC if key in self.dynamic else Detail.NONE
        if x.change == "removed":
            self.dynamic.discard(key)
        return [Record(at_ms, Type.QUEUE, change, detail, x.queue)]

    def quota(self, at_ms: int, x: d.QuotaEnforced) -> Record:
        """A queue had to give back what it has above its maximum."""
        spec = self.specs.get(x.partition)
        queue = dict(_walk(spec.root, "root")).get(x.queue) if spec is not None else None
        text = f"Quota preemption: {amounts(x.excess.items)} to give back, {x.victims} allocations told to stop"
        amount = _set(queue.max) if queue is not None else ()
        return Record(at_ms, Type.QUEUE, Change.SET, Detail.QUEUE_PREEMPTION, x.queue, "", text, amount)

    def _configured(self, at_ms: int, event: e.Configure) -> Iterator[Record]:
        old, new = self.specs, {spec.name: spec for spec in event.spec.partitions}
        self.specs = new
        self.capacities = {key: items for key, items in self.capacities.items() if key[0] in new}
        self.dynamic = {key for key in self.dynamic if key[0] in new}
        for spec in event.spec.partitions:
            yield from _differences(at_ms, old.get(spec.name), spec)


_EVENTS: dict[type, Callable[[ClusterHistory, int, Any], Iterator[Record]]] = {
    e.AddNode: ClusterHistory._node_in,
    e.UpdateNode: ClusterHistory._node_changed,
    e.DrainNode: ClusterHistory._node_closed,
    e.UndrainNode: ClusterHistory._node_opened,
    e.RemoveNode: ClusterHistory._node_out,
    e.Configure: ClusterHistory._configured,
}


def _schedulable(at_ms: int, node: str, is_open: bool) -> Record:
    text = f"schedulable: {'true' if is_open else 'false'}"
    return Record(at_ms, Type.NODE, Change.SET, Detail.NODE_SCHEDULABLE, node, "", text)


# -- two configurations -------------------------------------------------------------------------------------------


def _differences(at_ms: int, old: PartitionSpec | None, new: PartitionSpec) -> Iterator[Record]:
    """What is different in `new` (`old` None: the partition is new)."""
    before = dict(_walk(old.root, "root")) if old is not None else {}
    after = dict(_walk(new.root, "root"))
    for path, spec in after.items():
        yield from _of_queue(at_ms, path, before.get(path), spec)
    had, has = _limits(before), _limits(after)
    for (detail, name, path), limit in has.items():
        if had.get((detail, name, path)) != limit:
            amount = limit.max_resources.items if limit.max_resources is not None else ()
            yield Record(at_ms, Type.USERGROUP, Change.SET, detail, name, path, "", amount)
    for detail, name, path in had:
        if (detail, name, path) not in has:
            yield Record(at_ms, Type.USERGROUP, Change.REMOVE, detail, name, path)


def _of_queue(at_ms: int, path: str, old: QueueSpec | None, new: QueueSpec) -> Iterator[Record]:
    is_leaf = not new.parent and not new.queues
    if old is not None and is_leaf != (not old.parent and not old.queues):
        text = f"leaf queue: {'true' if is_leaf else 'false'}"
        yield Record(at_ms, Type.QUEUE, Change.SET, Detail.QUEUE_TYPE, path, "", text)
    if path == "root":
        return
    for detail, was, now in (
        (Detail.QUEUE_MAX, old.max if old is not None else None, new.max),
        (Detail.QUEUE_GUARANTEED, old.guaranteed if old is not None else None, new.guaranteed),
    ):
        if _set(was) != _set(now):
            yield Record(at_ms, Type.QUEUE, Change.SET, detail, path, amount=_set(now))


def _set(limits: Limits | None) -> Items:
    return limits.items if limits is not None and limits.is_set else ()


def _walk(queue: QueueSpec, path: str) -> Iterator[tuple[str, QueueSpec]]:
    yield path, queue
    for child in queue.queues:
        yield from _walk(child, f"{path}.{child.name.lower()}")


def _limits(queues: dict[str, QueueSpec]) -> Named:
    found: Named = {}
    for path, queue in queues.items():
        for limit in queue.limits:
            found |= {(Detail.UG_USER_LIMIT, name, path): limit for name in limit.users}
            found |= {(Detail.UG_GROUP_LIMIT, name, path): limit for name in limit.groups}
    return found
