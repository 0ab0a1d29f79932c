"""Routes about what is declared beside the tree of queues: priority classes, quotas by class, disruption budgets.

Decides who may change them (administrators) and how they look. Never decides whether one makes sense: the scheduler
does, by the same rules as for the queue file. What the queue file declares is changed there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, BeforeValidator, Field

from fairlead.core import events
from fairlead.core.admission import BUDGET, CLASS, QUOTA
from fairlead.core.class_quotas import SCOPE_KEY
from fairlead.core.classes import BUILT_IN
from fairlead.core.constraints import Requirement
from fairlead.core.names import SUBDOMAIN_RULE, is_subdomain
from fairlead.core.resources import Limits, pruned
from fairlead.core.specs import BudgetSpec, PriorityClassSpec, QuotaSpec
from fairlead.runtime import Refusal, Turn
from fairlead.service.desk import CallerOf, Desk, DeskOf, plain
from fairlead.service.errors import documented
from fairlead.service.fields import Amount, Line, Text
from fairlead.service.models import Done, Strict

if TYPE_CHECKING:
    from fairlead.core.budgets import Budgets
    from fairlead.core.class_quotas import Quota
    from fairlead.core.classes import PriorityClasses
    from fairlead.scheduler import Scheduler

router = APIRouter(prefix="/api/v1", tags=["declarations"])
Plain = dict[str, Any]
Name = Annotated[str, Path(max_length=253, description="Its name.")]


# -- what comes in ------------------------------------------------------------------------------------------------


class ClassDraft(Strict):
    """A name for a priority."""

    value: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] = Field(description="The priority it stands for.")
    global_default: bool = Field(False, description="Jobs that name neither class nor priority get it.")
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    description: Line = ""
    limited: bool = Field(False, description="It may be used only where a quota selects it.")
    min_runtime_ms: Annotated[int, Field(ge=0, le=2**53)] = Field(
        0, description="Its jobs are nobody's victims before they have run for so long; 0: they may be at once."
    )

    def spec(self, name: str) -> PriorityClassSpec:
        """The same in the core's words."""
        return PriorityClassSpec(name=name, **self.model_dump())


class ConditionDraft(Strict):
    """A condition on a label."""

    key: Annotated[Line, Field(min_length=1)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = "In"
    values: Annotated[list[Line], Field(max_length=1000)] = Field(default_factory=list)

    def requirement(self) -> Requirement:
        """The same in the core's words."""
        return Requirement(self.key, self.operator, tuple(self.values))


class ScopeDraft(Strict):
    """A condition on the priority class."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[list[Line], Field(max_length=1000)] = Field(default_factory=list)


class QuotaDraft(Strict):
    """What all admitted work of a queue and below that matches may ask for."""

    queue: Line = Field(description="The whole path of the queue.")
    resources: Annotated[dict[Text, Amount], Field(max_length=64)] = Field(default_factory=dict)
    scopes: Annotated[list[ScopeDraft], Field(max_length=100)] = Field(
        default_factory=list, description="All have to hold; none: all work."
    )

    def spec(self, name: str) -> QuotaSpec:
        """The same in the core's words."""
        scopes = tuple(Requirement(SCOPE_KEY, scope.operator, tuple(scope.values)) for scope in self.scopes)
        return QuotaSpec(name=name, queue=self.queue, resources=Limits(self.resources), scopes=scopes)


_PART = re.compile(r"(100|[0-9]{1,2})%")


def _bound(value: object) -> object:
    """A number of jobs, or a part of them. Raises `ValueError`."""
    if type(value) is int and 0 <= value < 2**31:
        return value
    if isinstance(value, str) and _PART.fullmatch(value):
        return value
    shown = repr(value) if isinstance(value, int | float | str) else "something else"
    raise ValueError(f"must be a number of jobs, such as 2, or a part of them from 0% to 100%, not {shown[:40]}")


Bound = Annotated[int | str, BeforeValidator(_bound)]


class BudgetDraft(Strict):
    """How much of the work with these labels must stay; exactly one of the two bounds."""

    selector: Annotated[list[ConditionDraft], Field(max_length=100)] = Field(description="All have to hold.")
    min_available: Bound | None = Field(None, description="So many must stay, or such a part, as 50%.")
    max_unavailable: Bound | None = Field(None, description="So many may stop at once, or such a part.")
    namespace: Line = ""

    def spec(self, name: str) -> BudgetSpec:
        """The same in the core's words."""
        return BudgetSpec(
            name=name,
            selector=tuple(condition.requirement() for condition in self.selector),
            min_available=self.min_available,
            max_unavailable=self.max_unavailable,
            namespace=self.namespace,
        )


# -- what goes out ------------------------------------------------------------------------------------------------


class ClassView(BaseModel):
    """A priority class. `source`: `built-in`, `file` (the queue file) or `api`."""

    name: str
    value: int
    global_default: bool
    preemption_policy: str
    description: str
    limited: bool
    min_runtime_ms: int
    source: str


class Classes(BaseModel):
    """Every class, highest value first."""

    priority_classes: list[ClassView]


class Condition(BaseModel):
    """A condition on a label or class."""

    key: str
    operator: str
    values: list[str]


class QuotaView(BaseModel):
    """A quota, and what has been admitted under it."""

    name: str
    queue: str
    resources: dict[str, int]
    scopes: list[Condition]
    used: dict[str, int]
    jobs: int
    source: str


class Quotas(BaseModel):
    """Every quota, by name."""

    quotas: list[QuotaView]


class BudgetView(BaseModel):
    """A disruption budget. `left`: how many more jobs it lets stop now."""

    name: str
    selector: list[Condition]
    min_available: int | str | None
    max_unavailable: int | str | None
    namespace: str
    left: int
    source: str


class Budgets_(BaseModel):  # noqa: N801 (the core's word is taken)
    """Every disruption budget."""

    budgets: list[BudgetView]


def _class_view(classes: PriorityClasses, spec: PriorityClassSpec) -> Plain:
    source = "built-in" if spec in BUILT_IN else "file" if classes.is_of_file(spec.name) else "api"
    names = ("name", "value", "global_default", "preemption_policy", "description", "limited", "min_runtime_ms")
    return {name: getattr(spec, name) for name in names} | {"source": source}


def _conditions(requirements: tuple[Requirement, ...]) -> list[Plain]:
    return [{"key": r.key, "operator": r.operator, "values": list(r.values)} for r in requirements]


def _quota_view(quota: Quota, of_file: bool) -> Plain:
    spec = quota.spec
    return {
        "name": spec.name,
        "queue": spec.queue,
        "resources": spec.resources.as_dict(),
        "scopes": _conditions(spec.scopes),
        "used": pruned(quota.used),
        "jobs": quota.works,
        "source": "file" if of_file else "api",
    }


def _budget_view(budgets: Budgets, spec: BudgetSpec, left: int) -> Plain:
    return {
        "name": spec.name,
        "selector": _conditions(spec.selector),
        "min_available": spec.min_available,
        "max_unavailable": spec.max_unavailable,
        "namespace": spec.namespace,
        "left": left,
        "source": "file" if budgets.is_of_file(spec.name) else "api",
    }


def class_views(scheduler: Scheduler) -> list[Plain]:
    """Every class, highest value first."""
    classes = scheduler.cluster.admission.classes
    return [_class_view(classes, spec) for spec in classes]


def quota_views(scheduler: Scheduler) -> list[Plain]:
    """Every quota, by name."""
    quotas = scheduler.cluster.admission.quotas
    return [_quota_view(quota, quotas.is_of_file(quota.spec.name)) for quota in quotas]


def budget_views(scheduler: Scheduler) -> list[Plain]:
    """Every budget; what it has left is the least over all partitions, in each of which it holds for itself."""
    budgets = scheduler.cluster.admission.budgets
    specs = sorted(budgets, key=lambda spec: spec.name)
    left = [budgets.left(partition) for partition in scheduler.cluster.partitions.values()]
    return [_budget_view(budgets, spec, min((each[spec.name] for each in left), default=0)) for spec in specs]


_VIEWS: dict[str, Callable[[Scheduler], list[Plain]]] = {
    CLASS: class_views,
    QUOTA: quota_views,
    BUDGET: budget_views,
}


async def _list(desk: Desk, kind: str, heading: str) -> Response:
    return plain({heading: await desk.read(lambda scheduler, _: _VIEWS[kind](scheduler))})


_Set = events.SetPriorityClass | events.SetQuota | events.SetBudget
_Remove = events.RemovePriorityClass | events.RemoveQuota | events.RemoveBudget


def _book(scheduler: Scheduler, kind: str) -> Any:
    admission = scheduler.cluster.admission
    return {CLASS: admission.classes, QUOTA: admission.quotas, BUDGET: admission.budgets}[kind]


async def _set(desk: Desk, kind: str, name: str, event: _Set) -> Response:
    def act(turn: Turn) -> None:
        if kind == BUDGET and not is_subdomain(name):
            raise Refusal("invalid", f"{name[:60]!r} is no name for a disruption budget; {SUBDOMAIN_RULE}")
        reason = _book(turn.scheduler, kind).why_not_set(event.spec)
        if reason is not None:
            raise Refusal("invalid", reason.sentence())
        turn.event(event)

    await desk.do(act)
    views = await desk.read(lambda scheduler, _: _VIEWS[kind](scheduler))
    return plain(next((view for view in views if view["name"] == name), {}))


async def _remove(desk: Desk, kind: str, name: str, event: _Remove) -> Response:
    def act(turn: Turn) -> None:
        if all(view["name"] != name for view in _VIEWS[kind](turn.scheduler)):
            raise Refusal("not-found", f"there is no {kind.replace('-', ' ')} {name!r}")
        reason = _book(turn.scheduler, kind).why_not_remove(name)
        if reason is not None:
            raise Refusal("conflict", reason.sentence())
        turn.event(event)

    await desk.do(act)
    return plain({"ok": True})


# -- the routes -----------------------------------------------------------------------------------------------------


@router.get("/priority-classes", response_model=Classes, responses=documented())
async def list_priority_classes(desk: DeskOf, caller: CallerOf) -> Response:
    """The priority classes that new work may name."""
    del caller
    return await _list(desk, CLASS, "priority_classes")


@router.put("/priority-classes/{name}", response_model=ClassView, responses=documented(409))
async def set_priority_class(name: Name, body: ClassDraft, desk: DeskOf, caller: CallerOf) -> Response:
    """Make or change a priority class; work that was admitted before keeps what it has (administrators)."""
    caller.require_admin("change priority classes")
    return await _set(desk, CLASS, name, events.SetPriorityClass(body.spec(name), caller.user))


@router.delete("/priority-classes/{name}", response_model=Done, responses=documented(404, 409))
async def remove_priority_class(name: Name, desk: DeskOf, caller: CallerOf) -> Response:
    """Remove a priority class; new work cannot name it any more (administrators)."""
    caller.require_admin("remove priority classes")
    return await _remove(desk, CLASS, name, events.RemovePriorityClass(name, caller.user))


@router.get("/quotas", response_model=Quotas, responses=documented())
async def list_quotas(desk: DeskOf, caller: CallerOf) -> Response:
    """The quotas by priority class, and what has been admitted under each."""
    del caller
    return await _list(desk, QUOTA, "quotas")


@router.put("/quotas/{name}", response_model=QuotaView, responses=documented(409))
async def set_quota(name: Name, body: QuotaDraft, desk: DeskOf, caller: CallerOf) -> Response:
    """Make or change a quota by priority class; what was admitted before stays (administrators)."""
    caller.require_admin("change quotas")
    return await _set(desk, QUOTA, name, events.SetQuota(body.spec(name), caller.user))


@router.delete("/quotas/{name}", response_model=Done, responses=documented(404, 409))
async def remove_quota(name: Name, desk: DeskOf, caller: CallerOf) -> Response:
    """Remove a quota (administrators)."""
    caller.require_admin("remove quotas")
    return await _remove(desk, QUOTA, name, events.RemoveQuota(name, caller.user))


@router.get("/budgets", response_model=Budgets_, responses=documented())
async def list_budgets(desk: DeskOf, caller: CallerOf) -> Response:
    """The disruption budgets, and how much each lets stop now."""
    del caller
    return await _list(desk, BUDGET, "budgets")


@router.put("/budgets/{name}", response_model=BudgetView, responses=documented(409))
async def set_budget(name: Name, body: BudgetDraft, desk: DeskOf, caller: CallerOf) -> Response:
    """Make or change a disruption budget (administrators)."""
    caller.require_admin("change disruption budgets")
    return await _set(desk, BUDGET, name, events.SetBudget(body.spec(name), caller.user))


@router.delete("/budgets/{name}", response_model=Done, responses=documented(404, 409))
async def remove_budget(name: Name, desk: DeskOf, caller: CallerOf) -> Response:
    """Remove a disruption budget (administrators)."""
    caller.require_admin("remove disruption budgets")
    return await _remove(desk, BUDGET, name, events.RemoveBudget(name, caller.user))
