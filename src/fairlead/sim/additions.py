"""What a scenario may say beyond YuniKorn's words: classes, budgets, quotas, where an ask may run, how work ends.

Decides the fields of these steps and what they mean as events. Never runs anything. Invariant: whatever a step says
reaches an event; one that names a key alone is about exactly one ask or allocation that is there. Whether it is allowed
is for the scheduler to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import field

from fairlead.core.model import constraints, events, specs
from fairlead.core.model.resources import Limits

if TYPE_CHECKING:
    from fairlead.core.books.asks import Ask
    from fairlead.core.books.partition import Partition
    from fairlead.scheduler import Scheduler


Priority = Annotated[int, msgspec.Meta(ge=specs.PRIORITY_MIN, le=specs.PRIORITY_MAX)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
Some = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Millis = Annotated[int, msgspec.Meta(ge=0, le=10**13)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Amounts = dict[str, int]
EPOCH_MS = 1_700_000_000_000
"""When virtual time begins (November 2023), so that creation times given in tags lie before it."""


class ScenarioError(ValueError):
    """A scenario that cannot be run as it stands; the text says where and why."""


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A value inside a step."""


class Step(Words, frozen=True, tag_field="op", kw_only=True):
    """What every step may carry; both fields matter only where a real clock runs."""

    no_settle: bool = False
    real: bool = False


PRIORITY_CLASS = "PriorityClass"
"""The key of a quota's scopes."""

Policy = Literal["", "Never", "PreemptLowerPriority"]
SetOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class RequirementField(Words, frozen=True):
    """A condition on one label or attribute."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = "In"
    values: tuple[str, ...] = ()

    def requirement(self) -> constraints.Requirement:
        """The same in the core's words."""
        return constraints.Requirement(self.key, self.operator, self.values)


Selector = dict[str, str] | tuple[RequirementField, ...]
"""Labels with their values, or conditions."""


def requirements(selector: Selector) -> tuple[constraints.Requirement, ...]:
    """All of them have to hold."""
    if isinstance(selector, dict):
        return tuple(constraints.Requirement(key, constraints.IN, (value,)) for key, value in sorted(selector.items()))
    return tuple(condition.requirement() for condition in selector)


class TaintField(Words, frozen=True):
    """What keeps work away from a node."""

    key: Name
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    def taint(self) -> constraints.Taint:
        """The same in the core's words."""
        return constraints.Taint(self.key, self.value, self.effect)


class TolerationField(Words, frozen=True):
    """Which taints an ask puts up with."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class AffinityField(Words, frozen=True):
    """Work with these labels, in the same place of this kind."""

    labels: Selector
    topology_key: Name = constraints.HOSTNAME


class SpreadField(Words, frozen=True):
    """Work with these labels, evenly over the places of this kind."""

    labels: Selector
    topology_key: Name = constraints.HOSTNAME
    max_skew: Some = 1
    min_domains: Some = 1


class RetryField(Words, frozen=True):
    """Whether and when work that was broken off comes back."""

    limit: Count
    backoff_millis: Millis = 0
    never_on: tuple[int, ...] = ()


def _terms(said: AffinityField | tuple[AffinityField, ...]) -> tuple[constraints.AffinityTerm, ...]:
    terms = said if isinstance(said, tuple) else (said,)
    return tuple(constraints.AffinityTerm(requirements(term.labels), term.topology_key) for term in terms)


class AskAdditions(Step, frozen=True, kw_only=True):
    """What an ask may say beyond YuniKorn's words."""

    labels: dict[str, str] = field(default_factory=dict)
    priority_class: str = ""
    preemption_policy: Policy = ""
    grace_millis: Millis | None = None
    idle: bool = False
    time_limit_millis: Millis | None = None
    node_selector: Selector = field(default_factory=dict)
    affinity: AffinityField | tuple[AffinityField, ...] = ()
    anti_affinity: AffinityField | tuple[AffinityField, ...] = ()
    spread: SpreadField | tuple[SpreadField, ...] = ()
    tolerations: tuple[TolerationField, ...] = ()
    ports: tuple[str, ...] = ()
    retry: RetryField | None = None

    def additions(self) -> dict[str, Any]:
        """The fields of an `AskSpec` that they stand for."""
        retry = self.retry
        return {
            "labels": self.labels,
            "priority_class": self.priority_class,
            "grace_ms": self.grace_millis,
            "idle": self.idle,
            "time_limit_ms": self.time_limit_millis,
            "where": self._where(),
            "retry": retry
            and specs.RetrySpec(limit=retry.limit, backoff_ms=retry.backoff_millis, never_on=retry.never_on),
        }

    @property
    def goes_beyond(self) -> bool:
        """Whether it says any of this."""
        unsaid = AskAdditions()
        names = set(AskAdditions.__struct_fields__).difference(Step.__struct_fields__)
        return any(getattr(self, name) != getattr(unsaid, name) for name in names)

    def _where(self) -> constraints.Constraints:
        spread = self.spread if isinstance(self.spread, tuple) else (self.spread,)
        said = (self.node_selector, self.affinity, self.anti_affinity, spread, self.tolerations, self.ports)
        if not any(said):
            return constraints.ANYWHERE
        return constraints.Constraints(
            selector=requirements(self.node_selector),
            tolerations=tuple(constraints.Toleration(t.key, t.operator, t.value, t.effect) for t in self.tolerations),
            affinity=_terms(self.affinity),
            anti_affinity=_terms(self.anti_affinity),
            spread=tuple(
                constraints.SpreadTerm(requirements(s.labels), s.topology_key, s.max_skew, s.min_domains)
                for s in spread
            ),
            ports=self.ports,
        )


class PriorityClassStep(Step, frozen=True, tag="priority-class"):
    """A priority class is set, or removed."""

    name: str
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""
    description: str = ""
    limited: bool = False
    min_runtime_millis: int = 0
    action: Literal["", "remove"] = ""


class BudgetStep(Step, frozen=True, tag="budget"):
    """A disruption budget is set, or removed."""

    name: str
    selector: Selector = field(default_factory=dict)
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    action: Literal["", "remove"] = ""


class ScopeField(Words, frozen=True):
    """One condition of a quota on the priority class."""

    operator: SetOperator
    values: tuple[str, ...] = ()


class QuotaStep(Step, frozen=True, tag="quota"):
    """A quota by priority class is set, or removed."""

    name: str
    queue: str = ""
    resources: Amounts = field(default_factory=dict)
    scopes: tuple[ScopeField, ...] = ()
    action: Literal["", "remove"] = ""


class WindowStep(Step, frozen=True, tag="window"):
    """A time in which nodes are kept free is declared, or taken back. It starts so long after the beginning."""

    name: str
    starts_millis: int = 0
    length_millis: int = 0
    every_millis: int = 0
    nodes: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    stop_running: bool = False
    action: Literal["", "remove"] = ""


class KeyStep(Step, frozen=True, kw_only=True):
    """A step about one ask or allocation. Its key alone has to tell which one, unless `app` does."""

    key: Name
    app: str = ""


class ReserveStep(KeyStep, frozen=True, tag="reserve"):
    """An administrator has room kept for a waiting ask, or no longer."""

    on: bool


class SetPriorityStep(KeyStep, frozen=True, tag="set-priority"):
    """An administrator changes the priority of a waiting ask."""

    priority: Priority


class FinishStep(KeyStep, frozen=True, tag="finish"):
    """What runs ends by itself: well, or with another exit status."""

    exit_code: int = 0


class InterruptStep(KeyStep, frozen=True, tag="interrupt"):
    """What runs is broken off from outside."""


class ConfirmStep(Step, frozen=True, tag="confirm"):
    """From now on evicted work is gone after its grace (`auto`), or when a `gone` says so (`manual`)."""

    mode: Literal["auto", "manual"] = "auto"


class GoneStep(KeyStep, frozen=True, tag="gone"):
    """What was told to stop has stopped."""


NamedStep = ReserveStep | SetPriorityStep | FinishStep | InterruptStep | GoneStep
AddedStep = PriorityClassStep | BudgetStep | QuotaStep | WindowStep | ConfirmStep | NamedStep


def _class_events(s: PriorityClassStep) -> tuple[events.Event, ...]:
    if s.action == "remove":
        return (events.RemovePriorityClass(s.name),)
    policy = {"preemption_policy": s.preemption_policy} if s.preemption_policy else {}
    spec = specs.PriorityClassSpec(
        name=s.name,
        value=s.value,
        global_default=s.global_default,
        description=s.description,
        limited=s.limited,
        min_runtime_ms=s.min_runtime_millis,
        **policy,
    )
    return (events.SetPriorityClass(spec),)


def _budget_events(s: BudgetStep) -> tuple[events.Event, ...]:
    if s.action == "remove":
        return (events.RemoveBudget(s.name),)
    spec = specs.BudgetSpec(
        name=s.name,
        selector=requirements(s.selector),
        min_available=s.min_available,
        max_unavailable=s.max_unavailable,
    )
    return (events.SetBudget(spec),)


def _quota_events(s: QuotaStep) -> tuple[events.Event, ...]:
    if s.action == "remove":
        return (events.RemoveQuota(s.name),)
    scopes = tuple(constraints.Requirement(PRIORITY_CLASS, scope.operator, scope.values) for scope in s.scopes)
    return (events.SetQuota(specs.QuotaSpec(name=s.name, queue=s.queue, resources=Limits(s.resources), scopes=scopes)),)


def _window_events(s: WindowStep) -> tuple[events.Event, ...]:
    if s.action == "remove":
        return (events.RemoveWindow(s.name),)
    spec = specs.WindowSpec(
        name=s.name,
        starts_ms=EPOCH_MS + s.starts_millis,
        length_ms=s.length_millis,
        every_ms=s.every_millis,
        nodes=s.nodes,
        queues=s.queues,
        users=s.users,
        stop_running=s.stop_running,
    )
    return (events.SetWindow(spec),)


EVENTS: dict[type, Callable[[Any], tuple[events.Event, ...]]] = {
    PriorityClassStep: _class_events,
    BudgetStep: _budget_events,
    QuotaStep: _quota_events,
    WindowStep: _window_events,
}
"""The events of the steps that need nothing but themselves."""


WHO = "scenario"
"""Who orders what a step says an administrator orders."""


def event_of(scheduler: Scheduler, step: KeyStep) -> events.Event:
    """The event that the step stands for. Raises `ScenarioError` when there is nothing that it could be about."""
    ask = named(scheduler, step)
    app = ask.app.id
    match step:
        case ReserveStep():
            return events.ReserveAsk(app, ask.key, step.on, WHO)
        case SetPriorityStep():
            return events.SetPriority(app, ask.key, step.priority, WHO)
        case FinishStep():
            return events.Release(app, _running(ask).key, events.Cause.FINISHED, exit_code=step.exit_code)
        case InterruptStep():
            return events.Release(app, _running(ask).key, events.Cause.INTERRUPTED)
        case GoneStep() if ask.evict_cause is not None:
            return events.Release(app, ask.key, ask.evict_cause)
    raise ScenarioError(f"{ask.key} was not told to stop; 'gone' is for what was")


def named(scheduler: Scheduler, step: KeyStep) -> Ask:
    """The ask or allocation with the step's key. Raises `ScenarioError` unless there is exactly one."""
    found = _with_key(scheduler.cluster.partitions.get(specs.DEFAULT_PARTITION), step)
    if len(found) == 1:
        return found[0]
    of_app = f" of application {step.app}" if step.app else ""
    if not found:
        raise ScenarioError(f"nothing with the key {step.key}{of_app} waits or runs")
    apps = ", ".join(a.app.id for a in found)
    raise ScenarioError(f"the key {step.key} is that of {len(found)} asks (applications {apps}); say which with 'app'")


def key_of(scheduler: Scheduler, name: str) -> str:
    """The key in `application/key` or `key`, as an eviction names whom it makes room for."""
    partition = scheduler.cluster.partitions.get(specs.DEFAULT_PARTITION)
    at = name.find("/")
    while partition is not None and at >= 0:
        app = partition.applications.get(name[:at])
        if app is not None and name[at + 1 :] in app.asks:
            return name[at + 1 :]
        at = name.find("/", at + 1)
    return name


def _with_key(partition: Partition | None, step: KeyStep) -> list[Ask]:
    if partition is None:
        return []
    apps = partition.applications.values()
    return [app.asks[step.key] for app in apps if step.key in app.asks and step.app in ("", app.id)]


def _running(ask: Ask) -> Ask:
    if ask.node is None:
        raise ScenarioError(f"{ask.key} waits; only what runs can finish or be interrupted")
    return ask
