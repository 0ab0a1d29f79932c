"""Priority classes, quotas and disruption budgets of a queue file: their keys, and whether they make sense.

Decides what may be written there and which entries cannot stand together. The rules for a single entry are the core's
own, the same as over the interface. Never acts on any. Their keys are Kubernetes' (`globalDefault`), where they come
from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fairlead.config import kinds
from fairlead.config.decode import Findings, child_path, read_text_map
from fairlead.config.yamltree import Node
from fairlead.core.books.budgets import budget_problem
from fairlead.core.books.class_quotas import SCOPE_KEY, quota_problem
from fairlead.core.books.classes import BUILT_IN, class_problem
from fairlead.core.model.constraints import IN, NOT_IN, Requirement
from fairlead.core.model.resources import UNLIMITED
from fairlead.core.model.specs import BudgetSpec, ClusterSpec, PartitionSpec, PriorityClassSpec, QueueSpec, QuotaSpec

S = TypeVar("S", PriorityClassSpec, QuotaSpec, BudgetSpec)


@dataclass(frozen=True, slots=True)
class Placed(Generic[S]):
    """One entry and where it was written."""

    spec: S
    path: str


def _class(*, path: str, name: str = "", value: int = 0, **given: Any) -> Placed[PriorityClassSpec]:
    return Placed(PriorityClassSpec(name=name, value=value, **given), path)


def _quota(*, path: str, name: str = "", queue: str = "", **given: Any) -> Placed[QuotaSpec]:
    return Placed(QuotaSpec(name=name, queue=queue, **{"resources": UNLIMITED} | given), path)


def _budget(*, path: str, name: str = "", **given: Any) -> Placed[BudgetSpec]:
    return Placed(BudgetSpec(name=name, **given), path)


def _condition(*, key: str = "", operator: str = "", values: tuple[str, ...] = ()) -> Requirement:
    return Requirement(key, operator, values)


def _of_class(*, key: str = SCOPE_KEY, **given: Any) -> Requirement:
    return _condition(key=key, **given)


def _labels(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, IN, (value,)) for key, value in sorted(labels.items()))


def _selected(*, labels: Mapping[str, str] = {}, conditions: tuple[Requirement, ...] = ()) -> tuple[Requirement, ...]:
    return (*_labels(labels), *conditions)


def _read_selector(found: Findings, node: Node, path: str) -> tuple[Requirement, ...]:
    """`matchLabels` and `matchExpressions`, or the labels themselves."""
    keys = [key.text for key, _ in node.pairs()] if node.kind == "mapping" else []
    if keys and not SELECTOR_KEYS.keys() & set(keys):
        return _labels(read_text_map(found, node, path))
    selected: tuple[Requirement, ...] = _SELECTOR.read(found, node, path)
    return selected


CLASS_KEYS = {
    "name": kinds.TEXT.required,
    "value": kinds.INTEGER.required,
    "globalDefault": kinds.TRUTH.as_("global_default"),
    "preemptionPolicy": kinds.choice("PreemptLowerPriority", "Never").filled.as_("preemption_policy"),
    "description": kinds.TEXT,
    "limited": kinds.TRUTH,
    "minRuntime": kinds.DURATION.as_("min_runtime_ms"),
}
_OPERATOR = kinds.choice("In", "NotIn", "Exists", "DoesNotExist").required
SCOPE_KEYS = {"scopeName": kinds.TEXT.filled.as_("key"), "operator": _OPERATOR, "values": kinds.TEXTS}
QUOTA_KEYS = {
    "name": kinds.TEXT.required,
    "queue": kinds.TEXT.required,
    "resources": kinds.AMOUNTS,
    "scopes": kinds.list_of(kinds.record("scope", SCOPE_KEYS, _of_class), "scopes"),
}
EXPRESSION_KEYS = {"key": kinds.TEXT.required, "operator": _OPERATOR, "values": kinds.TEXTS}
SELECTOR_KEYS = {
    "matchLabels": kinds.TEXT_MAP.as_("labels"),
    "matchExpressions": kinds.list_of(kinds.record("condition", EXPRESSION_KEYS, _condition), "conditions").as_(
        "conditions"
    ),
}
_SELECTOR = kinds.record("selector", SELECTOR_KEYS, _selected)
BUDGET_KEYS = {
    "name": kinds.TEXT.required,
    "selector": kinds.Kind(_read_selector, {"anyOf": [_SELECTOR.schema, kinds.TEXT_MAP.schema]}),
    "minAvailable": kinds.BOUND.as_("min_available"),
    "maxUnavailable": kinds.BOUND.as_("max_unavailable"),
    "namespace": kinds.TEXT,
}
ADMISSION_KEYS = {
    "priorityclasses": kinds.list_of(
        kinds.record("priorityclass", CLASS_KEYS, _class, placed=True), "priority classes"
    ),
    "quotas": kinds.list_of(kinds.record("quota", QUOTA_KEYS, _quota, placed=True), "quotas"),
    "budgets": kinds.list_of(kinds.record("budget", BUDGET_KEYS, _budget, placed=True), "disruption budgets"),
}
"""Keys at the top of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionDeclaration:
    """All of it as written."""

    priorityclasses: tuple[Placed[PriorityClassSpec], ...] = ()
    quotas: tuple[Placed[QuotaSpec], ...] = ()
    budgets: tuple[Placed[BudgetSpec], ...] = ()


def check_admission(found: Findings, declaration: AdmissionDeclaration, partitions: Sequence[PartitionSpec]) -> None:
    """Every entry by itself, then names that stand twice, two defaults, and what an entry speaks of in vain."""
    _each(found, declaration.priorityclasses, class_problem)
    _each(found, declaration.quotas, quota_problem)
    _each(found, declaration.budgets, budget_problem)
    _one_default(found, declaration.priorityclasses)
    known = {entry.spec.name for entry in declaration.priorityclasses} | {spec.name for spec in BUILT_IN}
    queues = set().union(*(_paths(p.root, "root") for p in partitions))
    for quota in declaration.quotas:
        _warn_of_quota(found, quota, known, queues)
    by_guarantee = all(partition.preemption.rule == "guarantee" for partition in partitions)
    if declaration.budgets and by_guarantee and not found.failed:
        text = "preemption by guarantee looks at no budgets; with preemption.rule priority or both they count"
        found.warn("budgets", text)


def _each(found: Findings, entries: tuple[Placed[S], ...], problem_of: Callable[[S], tuple[str, str] | None]) -> None:
    seen: dict[str, str] = {}
    for entry in entries:
        name = entry.spec.name
        problem = problem_of(entry.spec)
        unread = found.any_below(f"{entry.path}.resources")
        if problem is not None and not found.any_at(entry.path) and not (unread and problem[0] == "resources"):
            at, message = problem
            found.add(f"{entry.path}.{at}" if at else entry.path, message)
        if name in seen:
            message = f"there is another one named {name} ({seen[name]}); rename or remove one"
            found.add(f"{entry.path}.name", message)
        seen.setdefault(name, entry.path)


def _one_default(found: Findings, classes: tuple[Placed[PriorityClassSpec], ...]) -> None:
    defaults = [entry for entry in classes if entry.spec.global_default]
    for entry in defaults[1:]:
        message = f"a second global default (the first: {defaults[0].spec.name}); at most one class can be it"
        found.add(f"{entry.path}.globalDefault", message)


def _paths(queue: QueueSpec, path: str) -> set[str]:
    return {path}.union(*(_paths(child, f"{path}.{child.name.lower()}") for child in queue.queues))


def _warn_of_quota(found: Findings, quota: Placed[QuotaSpec], known: set[str], queues: set[str]) -> None:
    spec = quota.spec
    if spec.queue.lower().startswith("root") and spec.queue.lower() not in queues:
        message = f"the file has no queue {spec.queue[:60]}; the quota counts when placement makes it"
        found.warn(f"{quota.path}.queue", message + found.did_you_mean(spec.queue.lower(), queues))
    for index, scope in enumerate(spec.scopes):
        for name in scope.values if scope.operator in (IN, NOT_IN) else ():
            if name not in known:
                at = child_path(f"{quota.path}.scopes[{index}]", "values")
                found.warn(at, f"the file has no priority class {name[:60]}{found.did_you_mean(name, known)}")


def shown(spec: ClusterSpec, quantities: Callable[[Any, str], dict[str, str]]) -> dict[str, Any]:
    """The three lists as they would be written, those that are empty left out; `quantities` shows amounts at a path."""
    lists = {
        "PriorityClasses": [_shown_class(c) for c in spec.priority_classes],
        "Quotas": [
            _shown_quota(q, quantities(q.resources, f"quotas[{i}].resources")) for i, q in enumerate(spec.quotas)
        ],
        "Budgets": [_shown_budget(b) for b in spec.budgets],
    }
    return {name: entries for name, entries in lists.items() if entries}


def _shown_class(spec: PriorityClassSpec) -> dict[str, Any]:
    return {"name": spec.name, "value": spec.value} | _filled(
        globalDefault=spec.global_default,
        preemptionPolicy=spec.preemption_policy,
        description=spec.description,
        limited=spec.limited,
        minRuntime=f"{spec.min_runtime_ms}ms" if spec.min_runtime_ms else "",
    )


def _shown_quota(spec: QuotaSpec, resources: dict[str, str]) -> dict[str, Any]:
    scopes = [{"operator": s.operator} | _filled(values=list(s.values)) for s in spec.scopes]
    return {"name": spec.name, "queue": spec.queue} | _filled(resources=resources, scopes=scopes)


def _shown_budget(spec: BudgetSpec) -> dict[str, Any]:
    conditions = [{"key": r.key, "operator": r.operator} | _filled(values=list(r.values)) for r in spec.selector]
    bounds = {"minAvailable": spec.min_available, "maxUnavailable": spec.max_unavailable}
    return (
        {"name": spec.name}
        | _filled(selector=_filled(matchExpressions=conditions))
        | {name: bound for name, bound in bounds.items() if bound is not None}
        | _filled(namespace=spec.namespace)
    )


def _filled(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}
