"""Changes: what starts an ask, as the events that bring it about.

Decides which events make a part as it says, how the queue file is edited for it, and how an ask takes its own place
with other words: the old one leaves the line, lest quotas count it still, the new one comes under a key of its own, and
the old one is withdrawn, so that its application goes on. It is as young as it is: that is what would happen to its
owner. Never judges whether a change helps (`unblock` tries them). Invariant: `events_of` is the only way in which a
change is tried, so what is promised of it can be tried by anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.model import specs
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import Constraints, Toleration
from fairlead.core.model.events import (
    AddAsks,
    Configure,
    Event,
    LabelNode,
    MoveApplication,
    Release,
    ReserveAsk,
    SetAtOnce,
    SetConditions,
    SetPriority,
    SetQuota,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Limits, Resources
from fairlead.insight.parts import AFTER, BEGIN, HOLD, IN_THE_FILE, OF_THE_ASK, TOLERATES, Part, What
from fairlead.insight.suppositions import more_nodes
from fairlead.insight.trial import Name
from fairlead.scheduler import Scheduler

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.core.model.constraints import Taint


# -- the events that make it so -----------------------------------------------------------------------------------


def events_of(scheduler: Scheduler, name: Name, parts: Sequence[Part]) -> list[Event]:
    """What has to happen so that these parts are as they say, for the ask `name`; for a time see `until_ms`."""
    partition, application, key = name
    book = scheduler.cluster.partitions[partition]
    events: list[Event] = []
    if any(part.what in IN_THE_FILE for part in parts):
        events.append(Configure(edited(current_spec(scheduler), partition, parts)))
    # What is released takes its turn before more of its application may be at once.
    events += _without_conditions(book, name, parts)
    for part in parts:
        make = _EVENTS.get(part.what)
        if make is not None:
            events += make(scheduler, name, part)
    events += _wider_quotas(scheduler, parts)
    events += _at_nodes(book, parts)
    smaller = {part.resource: part.value for part in parts if part.what is What.SMALLER}
    if smaller:
        spec = book.applications[application].asks[key].spec
        events.append(AddAsks((replace(spec, resources=Resources(spec.resources.as_dict() | smaller)),), partition))
    if any(part.what in OF_THE_ASK for part in parts):
        events += submitted_again(book, book.applications[application].asks[key], parts)
    # Last, so that the room is free when it can use it.
    events += [Release(*_other(part), partition=partition) for part in parts if part.what is What.CANCEL]
    return events


def until_ms(parts: Sequence[Part]) -> int | None:
    """Up to when the clock has to go on by itself, after the events; None: no time need pass."""
    return max((part.value for part in parts if part.what is What.TIME), default=None)


def _wider_quotas(scheduler: Scheduler, parts: Sequence[Part]) -> list[Event]:
    """A quota of the queue file is changed there; another one by order."""
    quotas = scheduler.cluster.admission.quotas
    wider: dict[str, specs.QuotaSpec] = {}
    for part in parts:
        found = quotas.get(part.text)
        if part.what is What.QUOTA and found is not None:
            spec = wider.get(part.text, found)
            most = Limits(spec.resources.as_dict() | {part.resource: part.value})
            wider[part.text] = replace(spec, resources=most)
    if not wider:
        return []
    events: list[Event] = [SetQuota(spec) for name, spec in wider.items() if not quotas.is_of_file(name)]
    if len(events) < len(wider):
        file = current_spec(scheduler)
        events.append(Configure(replace(file, quotas=tuple(wider.get(q.name, q) for q in file.quotas))))
    return events


def _other(part: Part) -> tuple[str, str]:
    """Application and key of the other work that a part is about."""
    application, _, key = part.subject.rpartition("/")
    return application, key


_EVENTS: dict[str, Callable[[Scheduler, Name, Part], list[Event]]] = {
    What.NODES: lambda scheduler, name, part: list(more_nodes(scheduler, name[0], part.subject, part.value)),
    What.TURN: lambda _, name, part: [ReserveAsk(*_other(part), on=False, partition=name[0])],
    What.QUEUE: lambda _, name, part: [MoveApplication(name[1], part.subject, partition=name[0])],
    What.PRIORITY: lambda _, name, part: [SetPriority(name[1], name[2], part.value, partition=name[0])],
    What.DRAIN: lambda _, name, part: [UndrainNode(part.subject, name[0])],
    What.AT_ONCE: lambda _, name, part: [SetAtOnce(part.subject, part.value, partition=name[0])],
}
"""Dimensions whose parts each mean events of their own."""


def _without_conditions(book: Partition, name: Name, parts: Sequence[Part]) -> Iterator[Event]:
    """What is not in line waits for less."""
    gone = {part.text for part in parts if part.what is What.CONDITION}
    held = book.held_asks.get(*name[1:])
    if gone and held is not None:
        now = held.conditions
        left = Conditions(
            held_by="" if HOLD in gone else now.held_by,
            begin_ms=0 if BEGIN in gone else now.begin_ms,
            after=() if AFTER in gone else now.after,
        )
        yield SetConditions(name[1], name[2], left, partition=name[0])


def _at_nodes(book: Partition, parts: Sequence[Part]) -> Iterator[Event]:
    """Room, attributes and taints: what is said of one node is said at once."""
    room: dict[str, dict[str, int]] = {}
    described: dict[str, list[Part]] = {}
    for part in parts:
        if part.what is What.NODE_ROOM:
            room.setdefault(part.subject, {})[part.resource] = part.value - part.now
        elif part.what in (What.ATTRIBUTE, What.TAINT):
            described.setdefault(part.subject, []).append(part)
    for node_id, extra in room.items():
        total = book.nodes.nodes[node_id].total
        capacity = {n: total.get(n, 0) + extra.get(n, 0) for n in dict.fromkeys([*total, *extra])}
        yield UpdateNode(node_id, Resources(capacity), book.name)
    for node_id, said in described.items():
        node = book.nodes.nodes[node_id]
        attributes, gone = dict(node.spec.attributes), {part.text for part in said if part.what is What.TAINT}
        for part in said:
            name, _, value = part.text.partition("=")
            if part.what is What.ATTRIBUTE and name.startswith("-"):
                attributes.pop(name[1:], None)
            elif part.what is What.ATTRIBUTE:
                attributes[name] = value
        taints = tuple(taint for taint in node.spec.taints if text_of(taint) not in gone)
        yield LabelNode(node_id, attributes, taints, book.name)


def text_of(taint: Taint) -> str:
    """A taint as one writes it: `key=value:effect`."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def current_spec(scheduler: Scheduler) -> specs.ClusterSpec:
    """The queue file in force."""
    cluster, declared = scheduler.cluster, scheduler.cluster.admission
    return specs.ClusterSpec(
        partitions=tuple(partition.spec for partition in cluster.partitions.values()),
        priority_classes=tuple(spec for spec in declared.classes if declared.classes.is_of_file(spec.name)),
        budgets=tuple(spec for spec in declared.budgets if declared.budgets.is_of_file(spec.name)),
        quotas=tuple(q.spec for q in declared.quotas.by_name() if declared.quotas.is_of_file(q.spec.name)),
        checksum=cluster.checksum,
        text=cluster.text,
    )


def edited(spec: specs.ClusterSpec, partition: str, parts: Sequence[Part]) -> specs.ClusterSpec:
    """The queue file as those of the parts that are about it would leave it."""

    def edited_partition(one: specs.PartitionSpec) -> specs.PartitionSpec:
        root = one.root
        for part in parts:
            if part.what not in IN_THE_FILE:
                continue
            root = edit_queue(root, part.subject, lambda queue, part=part: _edited_queue(queue, part))  # type: ignore[misc]
        return replace(one, root=root)

    return replace(spec, partitions=tuple(edited_partition(p) if p.name == partition else p for p in spec.partitions))


def edit_queue(root: specs.QueueSpec, path: str, edit: Callable[[specs.QueueSpec], specs.QueueSpec]) -> specs.QueueSpec:
    """The tree with one queue edited. Raises KeyError when the file has no such queue."""
    _, _, rest = path.lower().partition(".")
    if not rest:
        return edit(root)
    name = rest.partition(".")[0]
    if all(child.name.lower() != name for child in root.queues):
        raise KeyError(path)
    children = (edit_queue(c, rest, edit) if c.name.lower() == name else c for c in root.queues)
    return replace(root, queues=tuple(children))


def spec_of_queue(root: specs.QueueSpec, path: str) -> specs.QueueSpec | None:
    """What the file says about a queue; None: it does not name it."""
    spec: specs.QueueSpec | None = root
    for name in path.lower().split(".")[1:]:
        spec = next((child for child in spec.queues if child.name.lower() == name), None) if spec else None
    return spec


def _edited_queue(queue: specs.QueueSpec, part: Part) -> specs.QueueSpec:
    if part.what is What.QUEUE_MAX:
        return replace(queue, max=_with(queue.max, part))
    if part.what is What.QUEUE_APPLICATIONS:
        return replace(queue, max_applications=part.value)
    if part.what is What.GUARANTEED:
        return replace(queue, guaranteed=_with(queue.guaranteed, part))
    if part.what is What.PROPERTY:
        name, _, value = part.text.partition("=")
        kept = {key: text for key, text in queue.properties.items() if key != name.removeprefix("-")}
        return replace(queue, properties=kept if name.startswith("-") else kept | {name: value})
    kind, _, name = part.who.partition(" ")
    limits = tuple(_edited_limit(limit, part) if names(limit, kind, name) else limit for limit in queue.limits)
    return replace(queue, limits=limits)


def names(limit: specs.LimitSpec, kind: str, name: str) -> bool:
    """Whether an entry of `limits` names this user or group (`*` for everybody else)."""
    return name in (limit.users if kind == "user" else limit.groups)


def _edited_limit(limit: specs.LimitSpec, part: Part) -> specs.LimitSpec:
    if part.what is What.LIMIT_APPLICATIONS:
        return replace(limit, max_applications=part.value)
    return replace(limit, max_resources=_with(limit.max_resources, part))


def _with(limits: Limits | None, part: Part) -> Limits:
    return Limits((limits.as_dict() if limits is not None else {}) | {part.resource: part.value})


AGAIN = "~again"
"""How the key of the new ask ends."""


def renamed(name: Name, parts: Sequence[Part]) -> Name:
    """The name under which the ask is known once these parts are as they say."""
    if any(part.what in OF_THE_ASK for part in parts):
        return (name[0], name[1], f"{name[2]}{AGAIN}")
    return name


def submitted_again(book: Partition, ask: Ask, parts: Sequence[Part]) -> list[Event]:
    """The ask takes its own place with these parts as they say, its size and priority included."""
    spec, partition = replace(ask.spec, key=f"{ask.key}{AGAIN}"), book.name
    for part in parts:
        spec = _said_otherwise(spec, part)
    # Its class may mean another priority by now, or be gone.
    is_known = book.admission.classes.get(spec.priority_class) is not None
    spec = replace(spec, priority=0) if is_known else replace(spec, priority_class="")
    leaves = SetConditions(ask.app.id, ask.key, Conditions(held_by=spec.key), partition=partition)
    events: list[Event] = [leaves, AddAsks((spec,), partition)]
    priority = next((part.value for part in parts if part.what is What.PRIORITY), ask.priority)
    if priority != ask.spec.priority or spec.priority_class != ask.spec.priority_class:
        events.append(SetPriority(ask.app.id, spec.key, priority, partition=partition))
    events.append(Release(ask.app.id, ask.key, partition=partition))
    return events


def _said_otherwise(spec: specs.AskSpec, part: Part) -> specs.AskSpec:
    if part.what is What.SMALLER:
        return replace(spec, resources=Resources(spec.resources.as_dict() | {part.resource: part.value}))
    if part.what is What.WHERE:
        return replace(spec, where=_without(spec.where, part.text))
    if part.what is What.SHORTER:
        return replace(spec, time_limit_ms=part.value)
    if part.what is What.PLAIN:
        return replace(spec, idle=False)
    if part.what is What.STOPS_OTHERS:
        # The class would forbid it again: it keeps the priority alone.
        return replace(spec, allow_preempt_other=True, priority_class="")
    if part.what is What.ANY_NODE:
        return replace(spec, tags={name: value for name, value in spec.tags.items() if name != specs.TAG_REQUIRED_NODE})
    if part.what is What.ALONE:
        return replace(spec, task_group="", placeholder=False)
    return spec


def _without(where: Constraints, text: str) -> Constraints:
    if text.startswith(TOLERATES):
        named, _, effect = text.removeprefix(TOLERATES).rpartition(":")
        key, _, value = named.partition("=")
        return replace(where, tolerations=(*where.tolerations, Toleration(key, "Equal", value, effect)))
    if text == "selector":
        return replace(where, selector=(), node_terms=())
    if text == "affinity":
        return replace(where, affinity=())
    if text == "anti-affinity":
        return replace(where, anti_affinity=())
    if text == "spread":
        return replace(where, spread=())
    return replace(where, ports=())
