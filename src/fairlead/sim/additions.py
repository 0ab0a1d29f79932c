"""What a scenario may say beyond YuniKorn's words: classes, budgets, quotas, where an ask may run, how work ends.

Decides the fields of these steps and what they mean as events. Never runs anything. Invariant: whatever a step says
reaches an event or, where it names a key alone, `fairlead.sim.keys`; whether it is allowed is for the scheduler to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import field

from fairlead.core.model.constraints import (
    ANYWHERE,
    HOSTNAME,
    IN,
    AffinityTerm,
    Constraints,
    Requirement,
    SpreadTerm,
    Taint,
    Toleration,
)
from fairlead.core.model.events import (
    Event,
    RemoveBudget,
    RemovePriorityClass,
    RemoveQuota,
    SetBudget,
    SetPriorityClass,
    SetQuota,
)
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import BudgetSpec, ClusterSpec, PriorityClassSpec, QueueSpec, QuotaSpec, RetrySpec
from fairlead.sim.words import Amounts, Count, Millis, Name, Priority, Some, Step, Words

PRIORITY_CLASS = "PriorityClass"
"""The key of a quota's scopes."""

Policy = Literal["", "Never", "PreemptLowerPriority"]
SetOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class RequirementField(Words, frozen=True):
    """A condition on one label or attribute."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = "In"
    values: tuple[str, ...] = ()

    def requirement(self) -> Requirement:
        """The same in the core's words."""
        return Requirement(self.key, self.operator, self.values)


Selector = dict[str, str] | tuple[RequirementField, ...]
"""Labels with their values, or conditions."""


def requirements(selector: Selector) -> tuple[Requirement, ...]:
    """All of them have to hold."""
    if isinstance(selector, dict):
        return tuple(Requirement(key, IN, (value,)) for key, value in sorted(selector.items()))
    return tuple(condition.requirement() for condition in selector)


class TaintField(Words, frozen=True):
    """What keeps work away from a node."""

    key: Name
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    def taint(self) -> Taint:
        """The same in the core's words."""
        return Taint(self.key, self.value, self.effect)


class TolerationField(Words, frozen=True):
    """Which taints an ask puts up with."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class AffinityField(Words, frozen=True):
    """Work with these labels, in the same place of this kind."""

    labels: Selector
    topology_key: Name = HOSTNAME


class SpreadField(Words, frozen=True):
    """Work with these labels, evenly over the places of this kind."""

    labels: Selector
    topology_key: Name = HOSTNAME
    max_skew: Some = 1
    min_domains: Some = 1


class RetryField(Words, frozen=True):
    """Whether and when work that was broken off comes back."""

    limit: Count
    backoff_millis: Millis = 0
    never_on: tuple[int, ...] = ()


def _terms(said: AffinityField | tuple[AffinityField, ...]) -> tuple[AffinityTerm, ...]:
    terms = said if isinstance(said, tuple) else (said,)
    return tuple(AffinityTerm(requirements(term.labels), term.topology_key) for term in terms)


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
            "retry": retry and RetrySpec(limit=retry.limit, backoff_ms=retry.backoff_millis, never_on=retry.never_on),
        }

    @property
    def goes_beyond(self) -> bool:
        """Whether it says any of this."""
        return any(getattr(self, name) != default for name, default in _UNSAID.items())

    def _where(self) -> Constraints:
        spread = self.spread if isinstance(self.spread, tuple) else (self.spread,)
        said = (self.node_selector, self.affinity, self.anti_affinity, spread, self.tolerations, self.ports)
        if not any(said):
            return ANYWHERE
        return Constraints(
            selector=requirements(self.node_selector),
            tolerations=tuple(Toleration(t.key, t.operator, t.value, t.effect) for t in self.tolerations),
            affinity=_terms(self.affinity),
            anti_affinity=_terms(self.anti_affinity),
            spread=tuple(SpreadTerm(requirements(s.labels), s.topology_key, s.max_skew, s.min_domains) for s in spread),
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


_UNSAID: dict[str, Any] = {
    "labels": {},
    "priority_class": "",
    "preemption_policy": "",
    "grace_millis": None,
    "idle": False,
    "time_limit_millis": None,
    "node_selector": {},
    "affinity": (),
    "anti_affinity": (),
    "spread": (),
    "tolerations": (),
    "ports": (),
    "retry": None,
}
NamedStep = ReserveStep | SetPriorityStep | FinishStep | InterruptStep | GoneStep
AddedStep = PriorityClassStep | BudgetStep | QuotaStep | ConfirmStep | NamedStep


def _class_events(s: PriorityClassStep) -> tuple[Event, ...]:
    if s.action == "remove":
        return (RemovePriorityClass(s.name),)
    policy = {"preemption_policy": s.preemption_policy} if s.preemption_policy else {}
    spec = PriorityClassSpec(
        name=s.name,
        value=s.value,
        global_default=s.global_default,
        description=s.description,
        limited=s.limited,
        min_runtime_ms=s.min_runtime_millis,
        **policy,
    )
    return (SetPriorityClass(spec),)


def _budget_events(s: BudgetStep) -> tuple[Event, ...]:
    if s.action == "remove":
        return (RemoveBudget(s.name),)
    spec = BudgetSpec(
        name=s.name,
        selector=requirements(s.selector),
        min_available=s.min_available,
        max_unavailable=s.max_unavailable,
    )
    return (SetBudget(spec),)


def _quota_events(s: QuotaStep) -> tuple[Event, ...]:
    if s.action == "remove":
        return (RemoveQuota(s.name),)
    scopes = tuple(Requirement(PRIORITY_CLASS, scope.operator, scope.values) for scope in s.scopes)
    return (SetQuota(QuotaSpec(name=s.name, queue=s.queue, resources=Limits(s.resources), scopes=scopes)),)


ADDED_PROPERTIES = frozenset(
    {"resource.group", "wait.max", "backfill", "preemption.min.runtime", "preemption.evictions.max"}
)
"""Queue properties that YuniKorn does not know."""


def config_goes_beyond(spec: ClusterSpec) -> bool:
    """Whether a queue file says what YuniKorn does not know."""
    if spec.priority_classes or spec.budgets or spec.quotas:
        return True
    return any(p.preemption.rule != "guarantee" or _queue_goes_beyond(p.root) for p in spec.partitions)


def _queue_goes_beyond(queue: QueueSpec) -> bool:
    template = queue.child_template
    properties = (*queue.properties, *(template.properties if template is not None else ()))
    return not ADDED_PROPERTIES.isdisjoint(properties) or any(map(_queue_goes_beyond, queue.queues))


EVENTS: dict[type, Callable[[Any], tuple[Event, ...]]] = {
    PriorityClassStep: _class_events,
    BudgetStep: _budget_events,
    QuotaStep: _quota_events,
}
"""The events of the steps that need nothing but themselves."""
