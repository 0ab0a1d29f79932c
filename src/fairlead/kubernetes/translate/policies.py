"""Policies: priority classes and disruption budgets of the cluster in the core's words.

Decides what each means to the scheduler. The API server itself admits by class and quota, so classes are known here for
what pods do not say (whether their class lets them be preempted), and budgets for the choice of victims.
"""

from __future__ import annotations

from fairlead.core.model.constraints import IN, Requirement
from fairlead.core.model.properties import parse_duration_ms
from fairlead.core.model.specs import BudgetSpec, PriorityClassSpec
from fairlead.kubernetes.objects import PodDisruptionBudget, PriorityClass
from fairlead.kubernetes.translate.constraints import NAMESPACE, NOTHING, label_conditions
from fairlead.kubernetes.translate.identity import MIN_RUNTIME


def class_of(given: PriorityClass) -> PriorityClassSpec:
    """A priority class."""
    return PriorityClassSpec(
        name=given.metadata.name,
        value=given.value,
        global_default=bool(given.global_default),
        preemption_policy=given.preemption_policy or "PreemptLowerPriority",
        description=given.description or "",
        min_runtime_ms=min_runtime_ms(given) or 0,
    )


def min_runtime_ms(given: PriorityClass) -> int | None:
    """How long pods of this class run before they may be stopped for others; None: its annotation is no duration."""
    text = (given.metadata.annotations or {}).get(MIN_RUNTIME)
    return parse_duration_ms(text) if text is not None else 0


def budget_of(given: PodDisruptionBudget) -> BudgetSpec | None:
    """A disruption budget, selecting in its own namespace alone; None when it bounds nothing.

    Raises `ConstraintError`.
    """
    spec, meta = given.spec, given.metadata
    if spec is None or (spec.min_available is None and spec.max_unavailable is None):
        return None
    namespace = meta.namespace or "default"
    conditions = NOTHING if spec.selector is None else label_conditions(spec.selector)
    return BudgetSpec(
        name=f"{namespace}/{meta.name}",
        selector=(*conditions, Requirement(NAMESPACE, IN, (namespace,))),
        min_available=spec.min_available,
        max_unavailable=spec.max_unavailable,
        namespace=namespace,
    )
