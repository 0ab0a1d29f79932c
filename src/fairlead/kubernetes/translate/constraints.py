"""Constraints: where a pod may run, in the core's words.

Decides how selectors, affinities, tolerations, spreads and ports of a pod are said as `core.model.constraints`; what a
pod would merely prefer as well, which chooses among nodes and filters none. Namespaces become a label of each ask
(`NAMESPACE`), and a condition on it in each term, so that the core needs no notion of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from fairlead.core.model.constraints import (
    ANYWHERE,
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NODE_NAME,
    OPERATORS,
    WEIGHT_OF_REQUIRED,
    AffinityTerm,
    Constraints,
    PreferredNodes,
    PreferredWork,
    Requirement,
    SpreadTerm,
    Toleration,
)
from fairlead.kubernetes import objects

NAMESPACE = "fairlead.io/namespace"
"""A label that every ask of a pod has: its namespace."""
CLAIM = "claim.fairlead.io/"
"""Before the name of a volume claim: a label of each ask of a pod that uses it."""
LEAVING = "fairlead.io/leaving"
"""A label that an ask of a pod has while the pod is being deleted: it counts for no spread any more."""
FEATURE = "feature.fairlead.io/"
"""Before the name of what a node declares that it can do: an attribute of it."""
CLUSTER = "fairlead.io/cluster"
"""An attribute that is the same on all nodes."""
NOTHING = (Requirement("fairlead.io/nothing", EXISTS),)
"""Selects nothing."""
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"

NamespacesOf = Callable[[objects.LabelSelector], tuple[str, ...]]
"""The names of the namespaces whose labels a selector selects."""


class ConstraintError(ValueError):
    """Something about where a pod may run makes no sense; the sentence says what."""


def pod_constraints(pod: objects.Pod, namespaces_of: NamespacesOf) -> Constraints:
    """All filters of a pod. Raises `ConstraintError`."""
    spec = pod.spec
    affinity = spec.affinity or objects.Affinity()
    own = affinity.node_affinity
    found = Constraints(
        selector=(
            *(Requirement(k, IN, (v,)) for k, v in sorted((spec.node_selector or {}).items())),
            *(Requirement(FEATURE + name, EXISTS) for name in _features(spec)),
        ),
        node_terms=tuple(node_terms(own.required if own is not None else None)),
        tolerations=tuple(_toleration(t) for t in spec.tolerations or ()),
        affinity=tuple(_pod_terms(affinity.pod_affinity, pod, namespaces_of)),
        anti_affinity=tuple(_pod_terms(affinity.pod_anti_affinity, pod, namespaces_of)),
        spread=tuple(_spread(pod, HARD)),
        ports=tuple(_ports(spec)),
        preferred_nodes=tuple(
            PreferredNodes(wish.weight, _node_term(wish.preference))
            for wish in (own.preferred if own is not None else None) or ()
        ),
        preferred_work=(
            *_preferred_work(affinity.pod_affinity, 1, pod, namespaces_of),
            *_preferred_work(affinity.pod_anti_affinity, -1, pod, namespaces_of),
        ),
        preferred_spread=tuple(_spread(pod, SOFT)),
    )
    return ANYWHERE if found == ANYWHERE else found


def _features(spec: objects.PodSpec) -> Iterator[str]:
    """What its node has to declare that it can do. The API server takes no such pod where nodes declare nothing."""
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    if any(rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules or ()):
        yield "RestartAllContainersOnContainerExits"
    if spec.host_network and spec.host_users is False:
        yield "UserNamespacesHostNetworkSupport"


def claims_on_node(pod: objects.Pod, namespaces_of: NamespacesOf) -> Constraints:
    """What a pod that runs takes of its node beside room, keeps away from it, and would rather have there.

    Whom it had to be with it now likes, with the weight that such a term of running work has. Raises `ConstraintError`.
    """
    affinity = pod.spec.affinity or objects.Affinity()
    return Constraints(
        anti_affinity=tuple(_pod_terms(affinity.pod_anti_affinity, pod, namespaces_of)),
        ports=tuple(_ports(pod.spec)),
        preferred_work=(
            *(
                PreferredWork(WEIGHT_OF_REQUIRED, term)
                for term in _pod_terms(affinity.pod_affinity, pod, namespaces_of)
            ),
            *_preferred_work(affinity.pod_affinity, 1, pod, namespaces_of),
            *_preferred_work(affinity.pod_anti_affinity, -1, pod, namespaces_of),
        ),
    )


def alone_with(namespace: str, claim: str) -> AffinityTerm:
    """That no other pod uses this volume claim, wherever it runs."""
    return AffinityTerm((Requirement(CLAIM + claim, EXISTS), Requirement(NAMESPACE, IN, (namespace,))), CLUSTER)


def selects_namespaces(pod: objects.Pod) -> bool:
    """Whether what the pod asks for depends on the labels of namespaces."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    sides = [side for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if side is not None]
    terms = [term for side in sides for term in side.required or ()]
    terms += [wish.pod_affinity_term for side in sides for wish in side.preferred or ()]
    return any(term.namespace_selector is not None for term in terms)


def selects(selector: objects.LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a selector selects these labels; without a selector nothing is, by an empty one everything."""
    from fairlead.core.model.matching import matches

    return selector is not None and matches(label_conditions(selector), labels)


def label_conditions(selector: objects.LabelSelector) -> tuple[Requirement, ...]:
    """The conditions of a label selector, all of which must hold. Raises `ConstraintError`."""
    named = [Requirement(k, IN, (v,)) for k, v in sorted((selector.match_labels or {}).items())]
    return (*named, *(_requirement(e) for e in selector.match_expressions or ()))


def _requirement(expression: objects.Expression, key: str | None = None) -> Requirement:
    if expression.operator not in OPERATORS:
        raise ConstraintError(
            f"{expression.operator!r} is not an operator of a selector; known: {', '.join(OPERATORS)}"
        )
    return Requirement(key or expression.key, expression.operator, tuple(expression.values or ()))


def node_terms(selector: objects.NodeSelector | None) -> Iterator[tuple[Requirement, ...]]:
    """The terms of which one must hold. A term without a condition selects no node, as in Kubernetes."""
    yield from map(_node_term, (selector.node_selector_terms if selector is not None else None) or ())


def _node_term(term: objects.NodeTerm) -> tuple[Requirement, ...]:
    labels = [_requirement(e) for e in term.match_expressions or ()]
    by_name = [_requirement(e, NODE_NAME) for e in term.match_fields or () if e.key == "metadata.name"]
    return (*labels, *by_name) or NOTHING


def _toleration(given: objects.Toleration) -> Toleration:
    return Toleration(given.key or "", given.operator or "Equal", given.value or "", given.effect or "")


def _pod_terms(
    affinity: objects.PodAffinity | None, pod: objects.Pod, namespaces_of: NamespacesOf
) -> Iterator[AffinityTerm]:
    for term in (affinity.required if affinity is not None else None) or ():
        yield _pod_term(term, pod, namespaces_of)


def _preferred_work(
    affinity: objects.PodAffinity | None, sign: int, pod: objects.Pod, namespaces_of: NamespacesOf
) -> Iterator[PreferredWork]:
    for wish in (affinity.preferred if affinity is not None else None) or ():
        yield PreferredWork(sign * wish.weight, _pod_term(wish.pod_affinity_term, pod, namespaces_of))


def _pod_term(term: objects.PodTerm, pod: objects.Pod, namespaces_of: NamespacesOf) -> AffinityTerm:
    if term.label_selector is None:
        return AffinityTerm(NOTHING, term.topology_key)
    conditions = [*label_conditions(term.label_selector), *_namespaces(term, pod, namespaces_of)]
    return AffinityTerm(tuple(conditions), term.topology_key)


def _namespaces(term: objects.PodTerm, pod: objects.Pod, namespaces_of: NamespacesOf) -> Iterator[Requirement]:
    """In which namespaces the term looks: those it names and selects, its own where it says neither."""
    selector = term.namespace_selector
    if selector is not None and not selector.match_labels and not selector.match_expressions:
        return
    names = dict.fromkeys(term.namespaces or ())
    if selector is not None:
        names |= dict.fromkeys(namespaces_of(selector))
    elif not names:
        names = {pod.metadata.namespace or "default": None}
    yield Requirement(NAMESPACE, IN, tuple(sorted(names))) if names else NOTHING[0]


def _spread(pod: objects.Pod, kind: str) -> Iterator[SpreadTerm]:
    """Either what must hold, or what is preferred.

    By `matchLabelKeys` only pods that have the same value as this one are counted, and pods that are being deleted are
    not. A selector without a condition counts nothing here, as in kube-scheduler (elsewhere it selects everything).
    """
    labels = pod.metadata.labels or {}
    for given in pod.spec.topology_spread_constraints or ():
        if (given.when_unsatisfiable or HARD) != kind:
            continue
        conditions = () if given.label_selector is None else label_conditions(given.label_selector)
        same = [Requirement(k, IN, (labels[k],)) for k in given.match_label_keys or () if k in labels]
        own = Requirement(NAMESPACE, IN, (pod.metadata.namespace or "default",)), Requirement(LEAVING, DOES_NOT_EXIST)
        yield SpreadTerm(
            (*conditions, *same, *own) if conditions or same else NOTHING,
            given.topology_key,
            given.max_skew,
            given.min_domains or 1,
            only_selected=given.node_affinity_policy != "Ignore",
            only_tolerated=given.node_taints_policy == "Honor",
        )


def _ports(spec: objects.PodSpec) -> Iterator[str]:
    sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    for container in (*(spec.containers or ()), *sidecars):
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else None)
            if number:
                yield f"{port.protocol or 'TCP'}/{port.host_ip or '0.0.0.0'}/{number}"
