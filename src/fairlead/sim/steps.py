"""The scenario file: its steps as typed values, and the events that they stand for.

Decides what a scenario may say and refuses everything else with the place (unknown fields, wrong types, numbers out of
range). Never runs anything. Invariant: every field that is accepted reaches an event, apart from the two that only
concern a real clock (`noSettle`, `real`), which mean nothing in virtual time. What goes beyond YuniKorn's words is in
`fairlead.sim.additions`; steps that name a key alone are looked up there when they are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import field

from fairlead.core.model import events
from fairlead.core.model.resources import NOTHING, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec, QueueSpec
from fairlead.sim.additions import EVENTS as ADDED_EVENTS
from fairlead.sim.additions import (
    AddedStep,
    Amounts,
    AskAdditions,
    Count,
    Millis,
    Name,
    Priority,
    ScenarioError,
    Some,
    Step,
    TaintField,
)


class NodeStep(Step, frozen=True, tag="node"):
    """A node comes, changes or goes; without `action` it comes."""

    id: Name
    resources: Amounts | None = None
    action: Literal["", "drain", "undrain", "update", "remove", "create-drain", "label"] = ""
    """`label` replaces attributes and taints."""
    attributes: dict[str, str] = field(default_factory=dict)
    taints: tuple[TaintField, ...] = ()


class AppStep(Step, frozen=True, tag="app"):
    """An application is submitted; `millis` is how long its placeholders may wait."""

    id: Name
    queue: str = ""
    user: str = "testuser"
    groups: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    placeholder_ask: Amounts = field(default_factory=dict)
    gang_style: str = ""
    millis: Millis = 0


class RemoveAppStep(Step, frozen=True, tag="remove-app"):
    """An application is taken out."""

    id: Name


class AskStep(AskAdditions, frozen=True, tag="ask"):
    """One ask, or `count` equal ones in one request."""

    app: Name
    key: Name
    resources: Amounts
    count: Some | None = None
    priority: Priority = 0
    tags: dict[str, str] = field(default_factory=dict)
    task_group: str = ""
    placeholder: bool = False
    originator: bool = False
    no_preempt_self: bool = False
    preempt_other: bool = True
    node: str = ""


class ReleaseStep(Step, frozen=True, tag="release"):
    """The resource manager stopped an allocation or withdraws an ask; an empty key means all of the application."""

    app: Name
    key: str = ""


class ConfigStep(Step, frozen=True, tag="config"):
    """The queue file is replaced while running."""

    config: str


class SleepStep(Step, frozen=True, tag="sleep"):
    """Time passes."""

    millis: Millis


class ScheduleStep(Step, frozen=True, tag="schedule"):
    """Up to `steps` scheduling runs, each of which allocates (or replaces) at most one ask."""

    steps: Count
    action: Literal["", "settle"] = ""


AnyStep = NodeStep | AppStep | RemoveAppStep | AskStep | ReleaseStep | ConfigStep | SleepStep | ScheduleStep | AddedStep


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One scenario: a queue file, what happens, and (where recorded) what is expected of it."""

    config: str
    steps: list[AnyStep]
    name: str = ""
    category: str = ""
    compare: Literal["exact", "set", "coarse"] = "exact"
    expect: dict[str, Any] | None = None
    note: str = ""


_decoder = msgspec.json.Decoder(Scenario)


def read_scenarios(lines: Iterator[bytes], source: str) -> Iterator[Scenario]:
    """The scenarios of a file of JSON lines, one at a time; blank lines are skipped.

    Raises `ScenarioError` with `source:line` on the first line that is not a scenario.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as e:
            what = "the JSON ends before it is whole" if str(e) == "Input data was truncated" else str(e)
            raise ScenarioError(f"{source}:{number}: {what}") from None


def events_of(step: AnyStep) -> tuple[events.Event, ...]:
    """The events that a step stands for; none for those that the runner does itself, because they take time or name
    nothing but a key.
    """
    make = _EVENTS.get(type(step))
    return make(step) if make else ()


def goes_beyond(step: AnyStep) -> bool:
    """Whether a step says what YuniKorn has no words for."""
    if isinstance(step, NodeStep):
        return bool(step.taints) or step.action == "label"
    return step.goes_beyond if isinstance(step, AskStep) else isinstance(step, AddedStep)


ADDED_PROPERTIES = frozenset(
    {"resource.group", "wait.max", "backfill", "preemption.min.runtime", "preemption.evictions.max"}
)
"""Queue properties that YuniKorn does not know, beside those of jobs (`job.`)."""


def config_goes_beyond(spec: ClusterSpec) -> bool:
    """Whether a queue file says what YuniKorn does not know."""
    if spec.priority_classes or spec.budgets or spec.quotas:
        return True
    return any(p.preemption.rule != "guarantee" or p.state_aware or _queue_goes_beyond(p.root) for p in spec.partitions)


def _queue_goes_beyond(queue: QueueSpec) -> bool:
    template = queue.child_template
    properties = (*queue.properties, *(template.properties if template is not None else ()))
    added = any(name in ADDED_PROPERTIES or name.startswith("job.") for name in properties)
    return added or any(map(_queue_goes_beyond, queue.queues))


def _node_events(s: NodeStep) -> tuple[events.Event, ...]:
    capacity = Resources(s.resources or {})
    match s.action:
        case "drain":
            return (events.DrainNode(s.id),)
        case "undrain":
            return (events.UndrainNode(s.id),)
        case "remove":
            return (events.RemoveNode(s.id),)
        case "update":
            return (events.UpdateNode(s.id, capacity),) if s.resources is not None else ()
    taints = tuple(t.taint() for t in s.taints)
    if s.action == "label":
        return (events.LabelNode(s.id, s.attributes, taints),)
    node = NodeSpec(
        id=s.id,
        capacity=capacity,
        attributes=s.attributes,
        schedulable=s.action != "create-drain",
        taints=taints,
    )
    return (events.AddNode(node),)


def _app_events(s: AppStep) -> tuple[events.Event, ...]:
    spec = ApplicationSpec(
        id=s.id,
        queue=s.queue,
        user=s.user or "testuser",
        groups=s.groups,
        tags=s.tags,
        placeholder_ask=Resources(s.placeholder_ask),
        gang_style=s.gang_style or "Soft",
        placeholder_timeout_ms=s.millis,
    )
    return (events.AddApplication(spec),)


def _ask_events(s: AskStep) -> tuple[events.Event, ...]:
    keys = [s.key] if s.count is None else [f"{s.key}-{i}" for i in range(s.count)]
    amount = Resources(s.resources) if s.resources else NOTHING
    more = s.additions()
    asks = tuple(
        AskSpec(
            application=s.app,
            key=key,
            resources=amount,
            priority=s.priority,
            tags=s.tags,
            node=s.node,
            task_group=s.task_group,
            placeholder=s.placeholder,
            originator=s.originator,
            allow_preempt_self=not s.no_preempt_self,
            allow_preempt_other=s.preempt_other and s.preemption_policy != "Never",
            **more,
        )
        for key in keys
    )
    return (events.AddAsks(asks),)


_EVENTS: dict[type, Callable[[Any], tuple[events.Event, ...]]] = {
    NodeStep: _node_events,
    AppStep: _app_events,
    AskStep: _ask_events,
    RemoveAppStep: lambda s: (events.RemoveApplication(s.id),),
    ReleaseStep: lambda s: (events.Release(s.app, s.key),),
    **ADDED_EVENTS,
}
