"""Event records: events and decisions told in the words of Apache YuniKorn's event system.

Decides what a record holds, its numbers (type, change, detail), its JSON, and in which words it is told that something
above the nodes holds an ask back: it asks the rules of `policy` and never looks at nodes, so that this costs no more
than the depth of the queue; and what a node, a queue or a new configuration gives to tell, compared with what it noted
itself. Which records there are of applications is for `insight.history_writer`. Invariant: a record is a tuple, made
once and never changed, and becomes JSON only when somebody reads it; the obstacle that is named is the first that the
walk would meet; applying the same configuration again gives no record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.core.books.application_limits import closed_place
from fairlead.core.books.user_limits import Ceiling
from fairlead.core.model import decisions as d
from fairlead.core.model import events as e
from fairlead.core.model.lifecycle import State
from fairlead.core.model.resources import Book, Items, Resources, add_to
from fairlead.policy.eligibility.limits import full_ceiling

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.decisions import Decision
    from fairlead.core.model.resources import Limits
    from fairlead.core.model.specs import LimitSpec, PartitionSpec, QueueSpec

LONGEST_MESSAGE = 1024


class Type(IntEnum):
    """What a record is about."""

    REQUEST = 1
    APP = 2
    NODE = 3
    QUEUE = 4
    USERGROUP = 5


class Change(IntEnum):
    """What happened to it."""

    NONE = 0
    SET = 1
    ADD = 2
    REMOVE = 3


class Detail(IntEnum):
    """What exactly."""

    NONE = 0
    REQUEST_CANCEL = 100
    REQUEST_TIMEOUT = 102
    APP_ALLOC = 200
    APP_REQUEST = 201
    APP_REJECT = 202
    APP_NEW = 203
    APP_ACCEPTED = 204
    APP_STARTING = 205
    APP_RUNNING = 206
    APP_COMPLETING = 207
    APP_COMPLETED = 208
    APP_FAILING = 209
    APP_FAILED = 210
    APP_RESUMING = 211
    APP_EXPIRED = 212
    APP_CANNOTRUN_QUEUE = 213
    APP_RUNNABLE_QUEUE = 214
    APP_CANNOTRUN_QUOTA = 215
    APP_RUNNABLE_QUOTA = 216
    NODE_DECOMMISSION = 300
    NODE_SCHEDULABLE = 302
    NODE_ALLOC = 303
    NODE_CAPACITY = 304
    NODE_RESERVATION = 306
    QUEUE_DYNAMIC = 401
    QUEUE_TYPE = 402
    QUEUE_MAX = 403
    QUEUE_GUARANTEED = 404
    QUEUE_APP = 405
    QUEUE_PREEMPTION = 407
    ALLOC_CANCEL = 500
    ALLOC_PREEMPT = 501
    ALLOC_TIMEOUT = 502
    ALLOC_REPLACED = 503
    ALLOC_NODEREMOVED = 504
    UG_USER_LIMIT = 600
    UG_GROUP_LIMIT = 601
    UG_APP_LINK = 602
    UG_USER_RESOURCE = 603
    UG_GROUP_RESOURCE = 604


class Record(NamedTuple):
    """One record. `owner` is the application whose business it is (empty: everybody's); it is not shown."""

    at_ms: int
    type: int
    change: int
    detail: int
    object: str
    reference: str = ""
    message: str = ""
    amount: Items = ()
    owner: str = ""


def as_json(record: Record) -> dict[str, Any]:
    """A record in YuniKorn's JSON shape: what is zero or empty is left out, the amount is always there."""
    amounts = {name: {"value": value} if value else {} for name, value in record.amount}
    shown: dict[str, Any] = {
        "type": int(record.type),
        "objectID": record.object,
        "message": cut(record.message),
        "timestampNano": record.at_ms * 1_000_000,
        "eventChangeType": int(record.change),
        "eventChangeDetail": int(record.detail),
        "referenceID": record.reference,
    }
    shown = {name: value for name, value in shown.items() if value}
    return shown | {"resource": {"resources": amounts} if amounts else {}}


def amounts(items: Items) -> str:
    """An amount as YuniKorn writes it into messages: `map[memory:10 vcore:1000]`."""
    return "map[" + " ".join(f"{name}:{value}" for name, value in items) + "]"


def cut(message: str) -> str:
    """A message of at most 1024 characters; the end of a longer one is three dots."""
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 3] + "..."


# -- what holds an ask back ---------------------------------------------------------------------------------------


class Obstacle(NamedTuple):
    """One obstacle. `begins` and `ends` tell it of the application as a whole; `text` and `after` of one ask."""

    stops_application: bool
    begins: int = 0
    ends: int = 0
    text: str = ""
    after: str = ""
    """What is said of the ask when it is out of the way; `{}` stands for its key."""

    def over(self, key: str) -> str:
        """What is said of the ask `key` when the obstacle is out of the way."""
        return self.after.format(key)


AT_MOST_IN_QUEUE = Obstacle(True, Detail.APP_CANNOTRUN_QUEUE, Detail.APP_RUNNABLE_QUEUE)
AT_MOST_OF_USER = Obstacle(True, Detail.APP_CANNOTRUN_QUOTA, Detail.APP_RUNNABLE_QUOTA)


def obstacle_of(ask: Ask) -> Obstacle | None:
    """What holds a waiting ask back above the nodes, or None."""
    app = ask.app
    if app.state is State.ACCEPTED:
        closed = closed_place(app)
        if closed is not None:
            return AT_MOST_OF_USER if isinstance(closed, Ceiling) else AT_MOST_IN_QUEUE
    ceiling = full_ceiling(app, ask.items)
    if ceiling is not None:
        limit = ceiling.max or {}
        left = tuple((name, limit[name] - ceiling.allocated.get(name, 0)) for name in sorted(limit))
        text = f"exceeds the available user quota (requested {amounts(ask.items)}, available {amounts(left)})"
        return Obstacle(
            False, text=f"Request '{ask.key}' {text}", after="Request '{}' fits in the available user quota"
        )
    if app.queue.short_of_room(ask.items) is not None:
        room = tuple(sorted((app.queue.headroom() or {}).items()))
        path = app.queue.path
        text = f"does not fit in queue '{path}' (requested {amounts(ask.items)}, available {amounts(room)})"
        after = f"has become schedulable in queue '{path}'".replace("{", "{{").replace("}", "}}")
        return Obstacle(False, text=f"Request '{ask.key}' {text}", after=f"Request '{{}}' {after}")
    return None


# -- nodes, queues and limits: everything around the applications -----------------------------------------------------


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
