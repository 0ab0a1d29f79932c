"""Changes: what could be otherwise, as values, as the events that bring it about, and in words.

Decides how each kind of change is written down (`Part`) and which events make it so. Never judges whether a change
helps (`unblock` tries them). Invariant: `events_of` is the only way in which a change is tried, so what is promised
of it can be tried by anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from fairlead.core.events import (
    AddAsks,
    AddNode,
    Configure,
    Event,
    MoveApplication,
    Release,
    SetPriority,
    UpdateNode,
)
from fairlead.core.quantities import format_amounts
from fairlead.core.resources import Limits, Resources
from fairlead.core.specs import ClusterSpec, LimitSpec, PartitionSpec, QueueSpec
from fairlead.insight.trial import Name
from fairlead.scheduler import Scheduler


class What(StrEnum):
    """The dimensions in which something can be otherwise."""

    PRIORITY = "priority"
    QUEUE_MAX = "queue-max"
    QUEUE_APPLICATIONS = "queue-applications"
    LIMIT = "limit"
    LIMIT_APPLICATIONS = "limit-applications"
    NODE_ROOM = "node-room"
    NODES = "nodes"
    CANCEL = "cancel"
    QUEUE = "queue"
    SMALLER = "smaller-request"


IN_THE_FILE = frozenset({What.QUEUE_MAX, What.QUEUE_APPLICATIONS, What.LIMIT, What.LIMIT_APPLICATIONS})
"""Changes of the queue file."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that would be otherwise: `value` instead of `now`."""

    what: What
    subject: str
    """The queue, the node, the ask, or the node that new ones would be like."""
    now: int
    value: int
    resource: str = ""
    who: str = ""
    """For limits: `user NAME` or `group NAME`, as the entry of the file names it."""

    @property
    def step(self) -> int:
        """The direction of the change."""
        return -1 if self.what is What.SMALLER else 1

    @property
    def is_counted(self) -> bool:
        """Whether one unit less of it makes sense."""
        return self.what not in (What.CANCEL, What.QUEUE)

    def less(self) -> Part:
        """The same by one unit less."""
        return replace(self, value=self.value - self.step)

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        plain: dict[str, Any] = {"what": str(self.what), "subject": self.subject, "now": self.now, "value": self.value}
        return plain | {k: v for k, v in (("resource", self.resource), ("who", self.who)) if v}


@dataclass(frozen=True, slots=True)
class Change:
    """A change that starts an ask: tried, and no part of it can be one unit less."""

    parts: tuple[Part, ...]
    node: str
    """Where it would run."""
    evicts: tuple[Name, ...] = ()
    """Who would be evicted on the way."""
    is_smallest: bool = False
    """Every smaller value was tried too (or could be told from one that was); else only the next smaller one was."""

    @property
    def dimension(self) -> str:
        """What would be otherwise; `+` where several things would have to be."""
        return "+".join(dict.fromkeys(str(part.what) for part in self.parts))

    def sentence(self) -> str:
        """One plain clause: `runs if …`."""
        text = "runs if " + " and ".join(_clauses(self.parts))
        if self.evicts:
            named = ", ".join(key for _, _, key in self.evicts[:3])
            more = f" and {len(self.evicts) - 3} more" if len(self.evicts) > 3 else ""
            text += f"; that would stop {named}{more}"
        return text

    def as_dict(self) -> dict[str, Any]:
        """As plain values, JSON-ready."""
        return {
            "dimension": self.dimension,
            "sentence": self.sentence(),
            "parts": [part.as_dict() for part in self.parts],
            "node": self.node,
            "evicts": [{"partition": p, "application": a, "key": k} for p, a, k in self.evicts],
            "smallest": self.is_smallest,
        }


# -- words --------------------------------------------------------------------------------------------------------


def _clauses(parts: Sequence[Part]) -> Iterable[str]:
    together: dict[tuple[What, str, str], list[Part]] = {}
    for part in parts:
        together.setdefault((part.what, part.subject, part.who), []).append(part)
    for same in together.values():
        yield _clause(same)


def _clause(parts: Sequence[Part]) -> str:
    first = parts[0]
    subject, now, value = first.subject, first.now, first.value
    amounts = format_amounts({p.resource: p.value for p in parts if p.resource})
    before = format_amounts({p.resource: p.now for p in parts if p.resource})
    match first.what:
        case What.PRIORITY:
            return f"its priority were {value} (now {now}; {value - 1} is not enough)"
        case What.QUEUE_MAX:
            return f"the maximum of {subject} were {amounts} (now {before})"
        case What.QUEUE_APPLICATIONS:
            return f"{subject} might run {value} applications (now {now})"
        case What.LIMIT:
            return f"the limit of {first.who} in {subject} were {amounts} (now {before})"
        case What.LIMIT_APPLICATIONS:
            return f"{first.who} might run {value} applications in {subject} (now {now})"
        case What.NODE_ROOM:
            return f"{amounts} were free on {subject} (now {before})"
        case What.NODES:
            return f"there were {'one more node' if value == 1 else f'{value} more nodes'} like {subject}"
        case What.CANCEL:
            return f"{subject.rpartition('/')[2]} were gone"
        case What.QUEUE:
            return f"it were in {subject}"
        case What.SMALLER:
            return f"it needed no more than {amounts} (now {before})"


# -- the events that make it so -----------------------------------------------------------------------------------


def events_of(scheduler: Scheduler, name: Name, parts: Sequence[Part]) -> list[Event]:
    """What has to happen so that these parts are as they say, for the ask `name`."""
    partition, application, key = name
    book = scheduler.cluster.partitions[partition]
    events: list[Event] = []
    in_file = [part for part in parts if part.what in IN_THE_FILE]
    if in_file:
        events.append(Configure(_edited(current_spec(scheduler), partition, in_file)))
    room: dict[str, dict[str, int]] = {}
    smaller: dict[str, int] = {}
    for part in parts:
        match part.what:
            case What.NODE_ROOM:
                room.setdefault(part.subject, {})[part.resource] = part.value - part.now
            case What.SMALLER:
                smaller[part.resource] = part.value
            case What.NODES:
                events += _more_nodes(scheduler, partition, part)
            case What.CANCEL:
                app, _, ended = part.subject.rpartition("/")
                events.append(Release(app, ended, partition=partition))
            case What.QUEUE:
                events.append(MoveApplication(application, part.subject, partition=partition))
            case What.PRIORITY:
                events.append(SetPriority(application, key, part.value, partition=partition))
            case _:
                pass
    for node_id, extra in room.items():
        total = book.nodes.nodes[node_id].total
        capacity = {n: total.get(n, 0) + extra.get(n, 0) for n in dict.fromkeys([*total, *extra])}
        events.append(UpdateNode(node_id, Resources(capacity), partition))
    if smaller:
        spec = book.applications[application].asks[key].spec
        events.append(AddAsks((replace(spec, resources=Resources(spec.resources.as_dict() | smaller)),), partition))
    return events


def _more_nodes(scheduler: Scheduler, partition: str, part: Part) -> list[Event]:
    nodes = scheduler.cluster.partitions[partition].nodes.nodes
    like = nodes[part.subject]
    names = (f"{part.subject}-more-{number}" for number in range(1, len(nodes) + part.value + 1))
    free = [name for name in names if name not in nodes][: part.value]
    spec = replace(like.spec, capacity=Resources(like.total), schedulable=True)
    return [AddNode(replace(spec, id=name)) for name in free]


def current_spec(scheduler: Scheduler) -> ClusterSpec:
    """The queue file in force."""
    cluster, declared = scheduler.cluster, scheduler.cluster.admission
    return ClusterSpec(
        partitions=tuple(partition.spec for partition in cluster.partitions.values()),
        priority_classes=tuple(spec for spec in declared.classes if declared.classes.is_of_file(spec.name)),
        budgets=tuple(spec for spec in declared.budgets if declared.budgets.is_of_file(spec.name)),
        quotas=tuple(q.spec for q in declared.quotas if declared.quotas.is_of_file(q.spec.name)),
        checksum=cluster.checksum,
        text=cluster.text,
    )


def _edited(spec: ClusterSpec, partition: str, parts: Sequence[Part]) -> ClusterSpec:
    return replace(
        spec, partitions=tuple(_edited_part(p, parts) if p.name == partition else p for p in spec.partitions)
    )


def _edited_part(spec: PartitionSpec, parts: Sequence[Part]) -> PartitionSpec:
    root = spec.root
    for part in parts:
        root = edit_queue(root, part.subject, lambda queue, part=part: _edited_queue(queue, part))  # type: ignore[misc]
    return replace(spec, root=root)


def edit_queue(root: QueueSpec, path: str, edit: Callable[[QueueSpec], QueueSpec]) -> QueueSpec:
    """The tree with one queue edited. Raises KeyError when the file has no such queue."""
    _, _, rest = path.lower().partition(".")
    if not rest:
        return edit(root)
    name = rest.partition(".")[0]
    if all(child.name.lower() != name for child in root.queues):
        raise KeyError(path)
    children = (edit_queue(c, rest, edit) if c.name.lower() == name else c for c in root.queues)
    return replace(root, queues=tuple(children))


def spec_of_queue(root: QueueSpec, path: str) -> QueueSpec | None:
    """What the file says about a queue; None: it does not name it."""
    spec: QueueSpec | None = root
    for name in path.lower().split(".")[1:]:
        spec = next((child for child in spec.queues if child.name.lower() == name), None) if spec else None
    return spec


def _edited_queue(queue: QueueSpec, part: Part) -> QueueSpec:
    if part.what is What.QUEUE_MAX:
        return replace(queue, max=_with(queue.max, part))
    if part.what is What.QUEUE_APPLICATIONS:
        return replace(queue, max_applications=part.value)
    kind, _, name = part.who.partition(" ")
    limits = tuple(_edited_limit(limit, part) if names(limit, kind, name) else limit for limit in queue.limits)
    return replace(queue, limits=limits)


def names(limit: LimitSpec, kind: str, name: str) -> bool:
    """Whether an entry of `limits` names this user or group (`*` for everybody else)."""
    return name in (limit.users if kind == "user" else limit.groups)


def _edited_limit(limit: LimitSpec, part: Part) -> LimitSpec:
    if part.what is What.LIMIT_APPLICATIONS:
        return replace(limit, max_applications=part.value)
    return replace(limit, max_resources=_with(limit.max_resources, part))


def _with(limits: Limits | None, part: Part) -> Limits:
    return Limits((limits.as_dict() if limits is not None else {}) | {part.resource: part.value})
