"""Routes about what is declared beside the tree of queues: priority classes, quotas by class, disruption budgets.

Decides who may change them (administrators) and how they look. Never decides whether one makes sense: the scheduler
does, by the same rules as for the queue file. What the queue file declares is changed there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import Path, Query
from msgspec.structs import asdict

from fairlead.core.books.admission import BUDGET, CLASS, QUOTA
from fairlead.core.books.class_quotas import SCOPE_KEY
from fairlead.core.books.classes import BUILT_IN
from fairlead.core.model import events
from fairlead.core.model.constraints import Requirement
from fairlead.core.model.names import SUBDOMAIN, SUBDOMAIN_RULE
from fairlead.core.model.resources import Limits, pruned
from fairlead.core.model.specs import BudgetSpec, PriorityClassSpec, QuotaSpec
from fairlead.runtime import Refusal, Turn
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import PagesOf, api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf
from fairlead.wire import declarations as wire
from fairlead.wire.fields import with_cpu, with_vcore
from fairlead.wire.jobs import Done

if TYPE_CHECKING:
    from fairlead.core.books.classes import PriorityClasses
    from fairlead.scheduler import Scheduler

T = TypeVar("T")
router = api("declarations")
Name = Annotated[str, Path(max_length=253, description="Its name.")]
Source = Annotated[
    Literal["built-in", "file", "api"] | None,
    Query(description="Only those from there."),
]


# -- what comes in ------------------------------------------------------------------------------------------------


def quota_spec(name: str, draft: wire.QuotaDraft) -> QuotaSpec:
    """A quota in the core's words."""
    scopes = tuple(Requirement(SCOPE_KEY, scope.operator, tuple(scope.values)) for scope in draft.scopes)
    return QuotaSpec(name=name, queue=draft.queue, resources=Limits(with_vcore(draft.resources)), scopes=scopes)


def budget_spec(name: str, draft: wire.BudgetDraft) -> BudgetSpec:
    """A disruption budget in the core's words."""
    return BudgetSpec(
        name=name,
        selector=tuple(Requirement(each.key, each.operator, tuple(each.values)) for each in draft.selector),
        min_available=draft.min_available,
        max_unavailable=draft.max_unavailable,
        namespace=draft.namespace,
    )


# -- what goes out ------------------------------------------------------------------------------------------------


def _class_view(classes: PriorityClasses, spec: PriorityClassSpec) -> wire.PriorityClass:
    source = "built-in" if spec in BUILT_IN else "file" if classes.is_of_file(spec.name) else "api"
    names = (name for name in wire.PriorityClass.__struct_fields__ if name != "source")
    return wire.PriorityClass(source=source, **{name: getattr(spec, name) for name in names})


def _conditions(requirements: tuple[Requirement, ...]) -> list[wire.Condition]:
    return [wire.Condition(key=r.key, operator=r.operator, values=list(r.values)) for r in requirements]


def class_views(scheduler: Scheduler) -> list[wire.PriorityClass]:
    """Every class, highest value first."""
    classes = scheduler.cluster.admission.classes
    return [_class_view(classes, spec) for spec in classes]


def quota_views(scheduler: Scheduler) -> list[wire.Quota]:
    """Every quota, by name."""
    quotas = scheduler.cluster.admission.quotas
    return [
        wire.Quota(
            name=quota.spec.name,
            queue=quota.spec.queue,
            resources=with_cpu(quota.spec.resources.as_dict()),
            scopes=_conditions(quota.spec.scopes),
            used=with_cpu(pruned(quota.used)),
            jobs=quota.works,
            source="file" if quotas.is_of_file(quota.spec.name) else "api",
        )
        for quota in quotas.by_name()
    ]


def budget_views(scheduler: Scheduler) -> list[wire.Budget]:
    """Every budget; what it has left is the least over all partitions, in each of which it holds for itself."""
    budgets = scheduler.cluster.admission.budgets
    left = [budgets.left(partition) for partition in scheduler.cluster.partitions.values()]
    return [
        wire.Budget(
            name=spec.name,
            selector=_conditions(spec.selector),
            min_available=spec.min_available,
            max_unavailable=spec.max_unavailable,
            namespace=spec.namespace,
            left=min((each[spec.name] for each in left), default=0),
            source="file" if budgets.is_of_file(spec.name) else "api",
        )
        for spec in budgets
    ]


_VIEWS: dict[str, Callable[[Scheduler], list[Any]]] = {
    CLASS: class_views,
    QUOTA: quota_views,
    BUDGET: budget_views,
}


async def _from(place: MachinePlace, kind: str, source: str | None) -> list[Any]:
    found = await place.look(lambda scheduler, _: _VIEWS[kind](scheduler))
    return [each for each in found if source in (None, each.source)]


_Set = events.SetPriorityClass | events.SetQuota | events.SetBudget
_Remove = events.RemovePriorityClass | events.RemoveQuota | events.RemoveBudget


async def _set(place: MachinePlace, kind: str, name: str, event: _Set, shape: type[T]) -> T:
    def act(turn: Turn) -> None:
        if kind == BUDGET and not SUBDOMAIN.fullmatch(name):
            raise Refusal("invalid", f"{name[:60]!r} is no name for a disruption budget; {SUBDOMAIN_RULE}")
        reason = turn.scheduler.cluster.admission.of(kind).why_not_set(event.spec)
        if reason is not None:
            raise Refusal("invalid", reason.sentence())
        turn.event(event)

    await place.do(act)
    views = await place.look(lambda scheduler, _: _VIEWS[kind](scheduler))
    found = next((view for view in views if view.name == name), None)
    if not isinstance(found, shape):
        raise Refusal("conflict", f"{kind.replace('-', ' ')} {name!r} is gone again")
    return found


async def _remove(place: MachinePlace, kind: str, name: str, event: _Remove) -> Done:
    def act(turn: Turn) -> None:
        if all(view.name != name for view in _VIEWS[kind](turn.scheduler)):
            raise Refusal("not-found", f"there is no {kind.replace('-', ' ')} {name!r}")
        reason = turn.scheduler.cluster.admission.of(kind).why_not_remove(name)
        if reason is not None:
            raise Refusal("conflict", reason.sentence())
        turn.event(event)

    await place.do(act)
    return Done(ok=True)


# -- the routes -----------------------------------------------------------------------------------------------------


@router.get("/priority-classes")
async def list_priority_classes(place: MachineOf, page: PagesOf, source: Source = None) -> wire.PriorityClassPage:
    """The priority classes that new jobs may name, highest value first."""
    return page.of(wire.PriorityClassPage, await _from(place, CLASS, source), lambda each: (-each.value, each.name))


@router.put("/priority-classes/{name}", responses=documented(409))
async def set_priority_class(
    name: Name, body: wire.ClassDraft, place: MachineOf, caller: CallerOf
) -> wire.PriorityClass:
    """Make or change a priority class; work that was admitted before keeps what it has (administrators)."""
    caller.require_admin("change priority classes")
    spec = PriorityClassSpec(name=name, **asdict(body))
    return await _set(place, CLASS, name, events.SetPriorityClass(spec, caller.user), wire.PriorityClass)


@router.delete("/priority-classes/{name}", responses=documented(404, 409))
async def remove_priority_class(name: Name, place: MachineOf, caller: CallerOf) -> Done:
    """Remove a priority class; new work cannot name it any more (administrators)."""
    caller.require_admin("remove priority classes")
    return await _remove(place, CLASS, name, events.RemovePriorityClass(name, caller.user))


@router.get("/quotas")
async def list_quotas(place: MachineOf, page: PagesOf, source: Source = None) -> wire.QuotaPage:
    """The quotas by priority class, and what has been admitted under each, by name."""
    return page.of(wire.QuotaPage, await _from(place, QUOTA, source), lambda each: each.name)


@router.put("/quotas/{name}", responses=documented(409))
async def set_quota(name: Name, body: wire.QuotaDraft, place: MachineOf, caller: CallerOf) -> wire.Quota:
    """Make or change a quota by priority class; what was admitted before stays (administrators)."""
    caller.require_admin("change quotas")
    return await _set(place, QUOTA, name, events.SetQuota(quota_spec(name, body), caller.user), wire.Quota)


@router.delete("/quotas/{name}", responses=documented(404, 409))
async def remove_quota(name: Name, place: MachineOf, caller: CallerOf) -> Done:
    """Remove a quota (administrators)."""
    caller.require_admin("remove quotas")
    return await _remove(place, QUOTA, name, events.RemoveQuota(name, caller.user))


@router.get("/budgets")
async def list_budgets(place: MachineOf, page: PagesOf, source: Source = None) -> wire.BudgetPage:
    """The disruption budgets by name, and how much each lets stop now."""
    return page.of(wire.BudgetPage, await _from(place, BUDGET, source), lambda each: each.name)


@router.put("/budgets/{name}", responses=documented(409))
async def set_budget(name: Name, body: wire.BudgetDraft, place: MachineOf, caller: CallerOf) -> wire.Budget:
    """Make or change a disruption budget (administrators)."""
    caller.require_admin("change disruption budgets")
    return await _set(place, BUDGET, name, events.SetBudget(budget_spec(name, body), caller.user), wire.Budget)


@router.delete("/budgets/{name}", responses=documented(404, 409))
async def remove_budget(name: Name, place: MachineOf, caller: CallerOf) -> Done:
    """Remove a disruption budget (administrators)."""
    caller.require_admin("remove disruption budgets")
    return await _remove(place, BUDGET, name, events.RemoveBudget(name, caller.user))
