"""Priority classes, quotas and disruption budgets of a queue file: their keys, and whether they make sense.

Decides what may be written there and which entries cannot stand together. The rules for a single entry are the core's
own, the same as over the interface. Never acts on any. Their keys are Kubernetes' (`globalDefault`), where they come
from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fairlead.config.decode import (
    Findings,
    Reader,
    child_path,
    list_of,
    read_bound,
    read_duration,
    read_integer,
    read_limits,
    read_record,
    read_text,
    read_text_map,
    read_texts,
    read_truth,
)
from fairlead.config.problems import Stage
from fairlead.config.yamltree import Node
from fairlead.core.budgets import flaw as budget_flaw
from fairlead.core.class_quotas import SCOPE_KEY, quota_problem
from fairlead.core.classes import BUILT_IN, class_problem
from fairlead.core.constraints import IN, NOT_IN, Requirement
from fairlead.core.resources import UNLIMITED
from fairlead.core.specs import BudgetSpec, ClusterSpec, PartitionSpec, PriorityClassSpec, QueueSpec, QuotaSpec

S = TypeVar("S", PriorityClassSpec, QuotaSpec, BudgetSpec)


@dataclass(frozen=True, slots=True)
class Placed(Generic[S]):
    """One entry and where it was written."""

    spec: S
    path: str


def _class(found: Findings, node: Node, path: str) -> Placed[PriorityClassSpec]:
    given = read_record(found, node, path, CLASS_KEYS)
    _require(found, given, path, "name", "value")
    policy = given.get("preemptionPolicy")
    more = {"preemption_policy": policy} if policy else {}
    spec = PriorityClassSpec(
        name=given.get("name", ""),
        value=given.get("value", 0),
        global_default=given.get("globalDefault", False),
        description=given.get("description", ""),
        limited=given.get("limited", False),
        min_runtime_ms=given.get("minRuntime", 0),
        **more,
    )
    return Placed(spec, path)


def _quota(found: Findings, node: Node, path: str) -> Placed[QuotaSpec]:
    given = read_record(found, node, path, QUOTA_KEYS)
    _require(found, given, path, "name", "queue")
    spec = QuotaSpec(
        name=given.get("name", ""),
        queue=given.get("queue", ""),
        resources=given.get("resources") or UNLIMITED,
        scopes=given.get("scopes", ()),
    )
    return Placed(spec, path)


def _scope(found: Findings, node: Node, path: str) -> Requirement:
    given = read_record(found, node, path, SCOPE_KEYS)
    _require(found, given, path, "operator")
    return Requirement(given.get("scopeName") or SCOPE_KEY, given.get("operator", ""), given.get("values", ()))


def _budget(found: Findings, node: Node, path: str) -> Placed[BudgetSpec]:
    given = read_record(found, node, path, BUDGET_KEYS)
    _require(found, given, path, "name")
    spec = BudgetSpec(
        name=given.get("name", ""),
        selector=given.get("selector", ()),
        min_available=given.get("minAvailable"),
        max_unavailable=given.get("maxUnavailable"),
        namespace=given.get("namespace", ""),
    )
    return Placed(spec, path)


def _selector(found: Findings, node: Node, path: str) -> tuple[Requirement, ...]:
    """`matchLabels` and `matchExpressions`, or the labels themselves."""
    keys = [key.text for key, _ in node.pairs()] if node.kind == "mapping" else []
    if keys and not SELECTOR_KEYS.keys() & set(keys):
        return _labels(read_text_map(found, node, path))
    given = read_record(found, node, path, SELECTOR_KEYS)
    return (*_labels(given.get("matchLabels", {})), *given.get("matchExpressions", ()))


def _labels(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, IN, (value,)) for key, value in sorted(labels.items()))


def _expression(found: Findings, node: Node, path: str) -> Requirement:
    given = read_record(found, node, path, EXPRESSION_KEYS)
    _require(found, given, path, "key", "operator")
    return Requirement(given.get("key", ""), given.get("operator", ""), given.get("values", ()))


def _require(found: Findings, given: Mapping[str, Any], path: str, *names: str) -> None:
    if missing := [name for name in names if name not in given]:
        found.add(path, f"needs {' and '.join(missing)}", stage=Stage.SYNTAX)


CLASS_KEYS: dict[str, Reader] = {
    "name": read_text,
    "value": read_integer,
    "globalDefault": read_truth,
    "preemptionPolicy": read_text,
    "description": read_text,
    "limited": read_truth,
    "minRuntime": read_duration,
}
SCOPE_KEYS: dict[str, Reader] = {"scopeName": read_text, "operator": read_text, "values": read_texts}
QUOTA_KEYS: dict[str, Reader] = {
    "name": read_text,
    "queue": read_text,
    "resources": read_limits,
    "scopes": list_of(_scope, "scopes"),
}
EXPRESSION_KEYS: dict[str, Reader] = {"key": read_text, "operator": read_text, "values": read_texts}
SELECTOR_KEYS: dict[str, Reader] = {
    "matchLabels": read_text_map,
    "matchExpressions": list_of(_expression, "conditions"),
}
BUDGET_KEYS: dict[str, Reader] = {
    "name": read_text,
    "selector": _selector,
    "minAvailable": read_bound,
    "maxUnavailable": read_bound,
    "namespace": read_text,
}
ADMISSION_KEYS: dict[str, Reader] = {
    "priorityclasses": list_of(_class, "priority classes"),
    "quotas": list_of(_quota, "quotas"),
    "budgets": list_of(_budget, "disruption budgets"),
}
"""Keys at the top of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionDeclaration:
    """All of it as written."""

    classes: tuple[Placed[PriorityClassSpec], ...] = ()
    quotas: tuple[Placed[QuotaSpec], ...] = ()
    budgets: tuple[Placed[BudgetSpec], ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> AdmissionDeclaration:
        """From the values of the top of the file, by key."""
        return cls(
            classes=given.get("priorityclasses", ()), quotas=given.get("quotas", ()), budgets=given.get("budgets", ())
        )

    def put_into(self, spec: dict[str, Any]) -> None:
        """Add them to the fields of a `ClusterSpec`."""
        spec["priority_classes"] = tuple(entry.spec for entry in self.classes)
        spec["quotas"] = tuple(entry.spec for entry in self.quotas)
        spec["budgets"] = tuple(entry.spec for entry in self.budgets)


def check_admission(found: Findings, declaration: AdmissionDeclaration, partitions: Iterable[PartitionSpec]) -> None:
    """Every entry by itself, then names that stand twice, two defaults, and what an entry speaks of in vain."""
    _each(found, declaration.classes, class_problem)
    _each(found, declaration.quotas, quota_problem)
    _each(found, declaration.budgets, _budget_problem)
    _one_default(found, declaration.classes)
    known = {entry.spec.name for entry in declaration.classes} | {spec.name for spec in BUILT_IN}
    queues = set().union(*(_paths(p.root, "root") for p in partitions))
    for quota in declaration.quotas:
        _warn_of_quota(found, quota, known, queues)


def _budget_problem(spec: BudgetSpec) -> tuple[str, str] | None:
    problem = budget_flaw(spec)
    return ("", problem) if problem else None


def _each(found: Findings, entries: tuple[Placed[S], ...], problem_of: Callable[[S], tuple[str, str] | None]) -> None:
    seen: dict[str, str] = {}
    for entry in entries:
        name = entry.spec.name
        problem = problem_of(entry.spec)
        unread = found.report_unread(f"{entry.path}.resources", Stage.SYNTAX, -1)
        told = any(p.path == entry.path for p in found.problems)
        if problem is not None and not told and not (unread and problem[0] == "resources"):
            at, message = problem
            found.add(f"{entry.path}.{at}" if at else entry.path, message, stage=Stage.SYNTAX)
        if name in seen:
            message = f"there is another one named {name} ({seen[name]}); rename or remove one"
            found.add(f"{entry.path}.name", message, stage=Stage.SYNTAX)
        seen.setdefault(name, entry.path)


def _one_default(found: Findings, classes: tuple[Placed[PriorityClassSpec], ...]) -> None:
    defaults = [entry for entry in classes if entry.spec.global_default]
    for entry in defaults[1:]:
        message = f"a second global default (the first: {defaults[0].spec.name}); at most one class can be it"
        found.add(f"{entry.path}.globalDefault", message, stage=Stage.SYNTAX)


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
