"""Nodes, priority classes, disruption budgets and namespaces of the cluster in the core's words.

Decides what each means to the scheduler. Never decides what runs, and never looks at queues. A node that is going away
takes nothing new; one that is cordoned, or not ready, keeps work away by its taint, as everywhere. The API server
itself admits by class and quota: classes are known here for what pods do not say, and budgets for the choice of
victims. What a namespace says becomes tags of its applications, which count where a placement rule made their queue.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from fairlead.core.model.constraints import CORDONED, IN, NO_SCHEDULE, NODE_NAME, Requirement, Taint
from fairlead.core.model.properties import parse_duration_ms
from fairlead.core.model.specs import DEFAULT_PARTITION, BudgetSpec, NodeSpec, PriorityClassSpec
from fairlead.kubernetes.node_objects import NodeWithImages
from fairlead.kubernetes.objects import Node, PodDisruptionBudget, PriorityClass
from fairlead.kubernetes.translate.amounts import AmountError, amounts, resources
from fairlead.kubernetes.translate.constraints import CLUSTER, FEATURE, NAMESPACE, NOTHING, label_conditions
from fairlead.kubernetes.translate.identity import DOMAIN, MIN_RUNTIME, PARENT_QUEUE

NAMES_KEPT = 500
"""A node says 50 images unless it is told otherwise, the largest first, each with at most five names."""


def node_of(node: Node, partition: str = DEFAULT_PARTITION, marks: Mapping[str, str] | None = None) -> NodeSpec:
    """What a node is to the scheduler; `marks`: attributes beside its labels. Raises `AmountError`."""
    spec, status, name = node.spec, node.status, node.metadata.name
    taints = [Taint(t.key, t.value or "", t.effect or NO_SCHEDULE) for t in spec.taints or () if t.key != CORDONED]
    if spec.unschedulable:
        # Being cordoned is said by its own field; the taint follows a moment later.
        taints.append(Taint(CORDONED, "", NO_SCHEDULE))
    features = {FEATURE + each: "" for each in status.declared_features or ()}
    own = {**(node.metadata.labels or {}), **features, **(marks or {})}
    return NodeSpec(
        id=name,
        capacity=resources(status.allocatable or status.capacity),
        attributes={**own, CLUSTER: "", NODE_NAME: name},
        partition=partition,
        schedulable=not node.metadata.deletion_timestamp,
        taints=tuple(taints),
    )


def images_of(node: NodeWithImages) -> dict[str, int]:
    """The images of a node, by each of their names: their sizes in bytes. The first `NAMES_KEPT` names count."""
    found: dict[str, int] = {}
    for image in node.status.images or ():
        for name in image.names or ():
            if len(found) == NAMES_KEPT:
                return found
            found.setdefault(name, max(image.size_bytes, 0))
    return found


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
    if spec.min_available is None and spec.max_unavailable is None:
        return None
    namespace = meta.namespace or "default"
    conditions = NOTHING if spec.selector is None else label_conditions(spec.selector)
    return BudgetSpec(
        name=f"{namespace}/{meta.name}",
        selector=(*conditions, Requirement(NAMESPACE, IN, (namespace,))),
        min_available=spec.min_available,
        max_unavailable=spec.max_unavailable,
        namespace=namespace,
        left=given.status.disruptions_allowed if given.status.observed_generation is not None else None,
    )


log = logging.getLogger("fairlead.kubernetes")

QUOTA = f"{DOMAIN}namespace.quota"
QUOTA_CPU = f"{DOMAIN}namespace.max.cpu"
QUOTA_MEMORY = f"{DOMAIN}namespace.max.memory"
"""The two older words for a quota; `QUOTA` counts before them."""
GUARANTEED = f"{DOMAIN}namespace.guaranteed"
MAX_APPLICATIONS = f"{DOMAIN}namespace.maxApps"
LONGEST = 64 * 1024


def tags_of(notes: Mapping[str, str]) -> dict[str, str]:
    """The tags of an application whose namespace has these annotations. What cannot be read is said in the log."""
    quota = notes.get(QUOTA, "")
    if not quota:
        old = {"cpu": notes.get(QUOTA_CPU, ""), "memory": notes.get(QUOTA_MEMORY, "")}
        given = {name: value for name, value in old.items() if value}
        quota = msgspec.json.encode(given).decode() if given else ""
    found = {
        "namespace.parentqueue": notes.get(PARENT_QUEUE, ""),
        "namespace.resourcequota": _limits(QUOTA, quota),
        "namespace.resourceguaranteed": _limits(GUARANTEED, notes.get(GUARANTEED, "")),
        "namespace.resourcemaxapps": notes.get(MAX_APPLICATIONS, ""),
    }
    return {name: value for name, value in found.items() if value}


def _limits(name: str, text: str) -> str:
    """`{"cpu": "2"}` in the core's words and form."""
    if not text:
        return ""
    try:
        given = amounts(msgspec.json.decode(text[:LONGEST], type=dict[str, str | int | float]))
    except (msgspec.MsgspecError, AmountError) as e:
        log.warning("annotation %s of a namespace is passed over: %s", name, e)
        return ""
    return msgspec.json.encode({"resources": {key: {"value": value} for key, value in given.items()}}).decode()
