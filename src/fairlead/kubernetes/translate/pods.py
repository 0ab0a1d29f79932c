"""Pods: what a pod is to the scheduler.

Decides whether a pod is ours to place, somebody else's, or over; and what application and ask it means. Never decides
where it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache

from fairlead.core.model.resources import NOTHING
from fairlead.core.model.specs import (
    TAG_CREATION_TIME,
    TAG_FOREIGN,
    TAG_REQUIRED_NODE,
    TAG_START_TIME,
    ApplicationSpec,
    AskSpec,
)  # fmt: skip
from fairlead.kubernetes.objects import Pod, PriorityClass
from fairlead.kubernetes.translate import identity
from fairlead.kubernetes.translate.amounts import pod_needs
from fairlead.kubernetes.translate.cluster import min_runtime_ms as min_runtime_of
from fairlead.kubernetes.translate.cluster import tags_of
from fairlead.kubernetes.translate.constraints import (
    CLAIM,
    LEAVING,
    NAMESPACE,
    NamespacesOf,
    claims_on_node,
    pod_constraints,
)

GRACE_S = 30
"""What a pod that names no grace has, in seconds."""
DISKS = {
    "aws_elastic_block_store": "awsElasticBlockStore",
    "gce_persistent_disk": "gcePersistentDisk",
    "iscsi": "iscsi",
    "rbd": "rbd",
}
"""Volumes that several pods of a node may not use together, in ways of their own; and the API's name of the field."""
KEPT = 4_096
"""Lists of images, and labels, that are remembered: a cluster has far fewer different ones than pods."""
TAG_NAMESPACE = "namespace"
TAG_POD = "kubernetes.io/meta/podName"
TAG_POD_NAMESPACE = "kubernetes.io/meta/namespace"
GANG_FAILED = "GangFailed"
"""The reason in the condition of a pod whose gang (`Hard`) has failed, by which that is known again after a restart."""
FOREIGN_STATIC = "static"
FOREIGN = "default"


class Standing(Enum):
    """What a pod is to us."""

    OURS = "ours"
    """Ours to place, or placed by us."""
    FOREIGN = "foreign"
    """Placed by somebody else: it uses room."""
    ELSEWHERE = "elsewhere"
    """Somebody else's to place."""
    GATED = "gated"
    """Ours, but not to be placed yet."""
    OVER = "over"
    """It uses nothing any more."""


def standing(pod: Pod, scheduler_name: str) -> Standing:
    """What a pod is to the scheduler of this name."""
    spec, status = pod.spec, pod.status
    if status.phase in ("Succeeded", "Failed"):
        return Standing.OVER
    if (spec.scheduler_name or "default-scheduler") != scheduler_name or identity.is_mirror(pod):
        return Standing.FOREIGN if spec.node_name else Standing.ELSEWHERE
    if spec.scheduling_gates and not spec.node_name:
        return Standing.GATED
    if pod.metadata.deletion_timestamp and not spec.node_name:
        return Standing.OVER
    return Standing.OURS


def how_ended(pod: Pod) -> str:
    """How one that is over ended: `succeeded`, `failed` or `deleted`."""
    return pod.status.phase.lower() if pod.status.phase in ("Succeeded", "Failed") else "deleted"


def application_of(pod: Pod, namespace_notes: Mapping[str, str]) -> ApplicationSpec:
    """The application that a pod belongs to, as its first pod declares it. Raises `IdentityError`, `AmountError`."""
    user, groups = identity.user_of(pod)
    gang = identity.gang_of(pod)
    tags = {TAG_NAMESPACE: pod.metadata.namespace or "default", **tags_of(namespace_notes)}
    return ApplicationSpec(
        id=identity.application_id(pod),
        queue=identity.queue_of(pod) or namespace_notes.get(identity.QUEUE, ""),
        user=user,
        groups=groups,
        tags=tags,
        placeholder_ask=gang.size if gang is not None else NOTHING,
        gang_style="Hard" if gang is not None and gang.hard else "Soft",
        placeholder_timeout_ms=gang.timeout_ms if gang is not None else 0,
    )


def ask_of(
    pod: Pod, namespaces_of: NamespacesOf, classes: Mapping[str, PriorityClass], images: bool = False
) -> AskSpec:
    """The ask of one of our pods; with its node if it is bound.

    Raises `IdentityError`, `AmountError`, `ConstraintError`. The key is the pod's identity, the priority what the API
    server resolved. `classes` are priority classes by name. `images`: what it runs is to count.
    """
    spec, meta = pod.spec, pod.metadata
    group = identity.task_group_name(pod)
    tags = {TAG_POD: meta.name, TAG_POD_NAMESPACE: meta.namespace or "default"}
    created = seconds(meta.creation_timestamp)
    if created is not None:
        tags[TAG_CREATION_TIME] = str(created)
    began = seconds(pod.status.start_time) if spec.node_name else None
    if began is not None:
        tags[TAG_START_TIME] = str(began)
    required = required_node(pod)
    if required:
        tags[TAG_REQUIRED_NODE] = required
    grace, deadline_s = spec.termination_grace_period_seconds, identity.deadline_s(pod)
    willing, min_runtime_ms = protection(identity.preemption_word(pod), spec.priority_class_name or "", classes)
    return AskSpec(
        application=identity.application_id(pod),
        key=meta.uid or "",
        resources=pod_needs(pod),
        priority=spec.priority or 0,
        priority_resolved=spec.priority is not None,
        tags=tags,
        node=spec.node_name or "",
        task_group=group,
        placeholder=identity.is_placeholder(pod) and bool(group),
        originator=identity.is_originator(pod),
        allow_preempt_self=willing,
        allow_preempt_other=spec.preemption_policy != "Never",
        grace_ms=(GRACE_S if grace is None else max(grace, 0)) * 1000,
        time_limit_ms=deadline_s * 1000 if deadline_s else None,
        labels=pod_labels(pod),
        where=pod_constraints(pod, namespaces_of),
        images=pod_images(pod) if images else (),
        min_runtime_ms=min_runtime_ms,
        idle=identity.is_idle(pod),
    )


def protection(word: str | None, class_name: str, classes: Mapping[str, PriorityClass]) -> tuple[bool, int]:
    """Whether a pod with this word of its own and this class is as good a victim as others, and for how many
    milliseconds it runs before it is one at all.
    """
    named = classes.get(class_name)
    if named is None:
        return identity.preempt_self(word, None), 0
    return identity.preempt_self(word, named.metadata.annotations), min_runtime_of(named) or 0


def foreign_ask(pod: Pod, namespaces_of: NamespacesOf) -> AskSpec:
    """What somebody else's pod uses of its node, and keeps away from it. Raises `AmountError`, `ConstraintError`."""
    spec, meta = pod.spec, pod.metadata
    owners = meta.owner_references or ()
    static = any(owner.kind == "Node" for owner in owners)
    return AskSpec(
        application="",
        key=meta.uid or "",
        resources=pod_needs(pod),
        priority=spec.priority or 0,
        tags={TAG_FOREIGN: FOREIGN_STATIC if static else FOREIGN},
        node=spec.node_name or "",
        labels=pod_labels(pod),
        where=claims_on_node(pod, namespaces_of),
    )


def pod_labels(pod: Pod) -> Mapping[str, str]:
    """The labels that selectors look at; among them its namespace, its volume claims, and that it is being deleted."""
    claims = {CLAIM + name: "" for _, name in claims_of(pod)}
    if pod.metadata.deletion_timestamp:
        claims[LEAVING] = ""
    labels = {**(pod.metadata.labels or {}), **claims, NAMESPACE: pod.metadata.namespace or "default"}
    return _alike(tuple(labels.items()))


@lru_cache(maxsize=KEPT)
def _alike(labels: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Pods with the same labels share them."""
    return dict(labels)


def pod_images(pod: Pod) -> tuple[str, ...]:
    """The images of all containers, sorted, as nodes call them."""
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    return _as_nodes_say(tuple(container.image or "" for container in containers))


@lru_cache(maxsize=KEPT)
def _as_nodes_say(names: tuple[str, ...]) -> tuple[str, ...]:
    """Without a tag or digest it is the tag `latest`. Pods with the same images share one tuple."""
    return tuple(sorted(name if ":" in name.rpartition("/")[2] else f"{name}:latest" for name in names))


def claims_of(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Namespace and name of the volume claims that a pod names, or that are made for it alone."""
    namespace = pod.metadata.namespace or "default"
    given = (volume.persistent_volume_claim for volume in pod.spec.volumes or ())
    return (*((namespace, claim.claim_name) for claim in given if claim is not None), *own_claims_of(pod))


def own_claims_of(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Those that are made for it alone, named after it and its volume."""
    namespace = pod.metadata.namespace or "default"
    named = (v for v in pod.spec.volumes or () if v.persistent_volume_claim is None and v.ephemeral is not None)
    return tuple((namespace, f"{pod.metadata.name}-{volume.name}") for volume in named)


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A resource claim of a pod."""

    claim: tuple[str, str] | None
    """Namespace and name; None: it is not made yet."""
    name: str = ""
    """As the pod calls it."""
    template: str = ""
    """What it is made from, for this pod alone."""


def device_claims_of(pod: Pod) -> tuple[PodClaim, ...]:
    """The resource claims that a pod names, or that are made for it, but for those that turned out not to be needed."""
    namespace, found = pod.metadata.namespace or "default", []
    if not pod.spec.resource_claims:
        return ()
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
    for given in pod.spec.resource_claims:
        if given.resource_claim_name is not None:
            found.append(PodClaim((namespace, given.resource_claim_name), given.name))
        elif given.name not in made:
            found.append(PodClaim(None, given.name, given.resource_claim_template_name or ""))
        elif (name := made[given.name]) is not None:
            found.append(PodClaim((namespace, name), given.name, given.resource_claim_template_name or ""))
    return tuple(found)


def not_understood(pod: Pod) -> str:
    """What the pod asks for by a field that is not understood here, as a sentence that names it; or nothing."""
    if pod.spec.scheduling_group is not None:
        return "it belongs to a group by schedulingGroup, which is not understood here: use a PodGroup"
    for volume in pod.spec.volumes or ():
        for field, name in DISKS.items():
            if getattr(volume, field) is not None:
                return f"its volume {volume.name} is a disk by {name}, which is not understood here: use a claim for it"
    return ""


def required_node(pod: Pod) -> str:
    """The one node that a daemon's pod is made for; nothing for all other pods."""
    spec = pod.spec
    if not any(o.kind == "DaemonSet" for o in pod.metadata.owner_references or ()):
        return ""
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    terms = (required.node_selector_terms if required is not None else None) or []
    names = [
        e.values[0]
        for term in terms
        for e in term.match_fields or ()
        if e.key == "metadata.name" and e.operator == "In" and e.values and len(e.values) == 1
    ]
    return names[0] if len(names) == 1 and len(terms) == 1 else ""


def is_disrupted(pod: Pod) -> bool:
    """Whether a scheduler marked the pod as stopped to make room for another."""
    conditions = pod.status.conditions or ()
    return any(c.type == "DisruptionTarget" and c.reason == "PreemptionByScheduler" for c in conditions)


def gang_failure(pod: Pod) -> str:
    """How a scheduler said that the gang of a waiting pod has failed, as a sentence; empty: nobody did."""
    conditions = () if pod.spec.node_name else pod.status.conditions or ()
    said = (c.message for c in conditions if c.type == "PodScheduled" and c.reason == GANG_FAILED)
    return next(filter(None, said), "")


def gang_mark(pod: Pod) -> str:
    """The annotation by which a scheduler said that the gang of this very pod is waited for no longer; empty: none."""
    notes, uid = pod.metadata.annotations or {}, pod.metadata.uid or "?"
    return next((each for each in (identity.GANG_GIVEN_UP, identity.GANG_BEGUN) if notes.get(each) == uid), "")


def seconds(stamp: str | None) -> int | None:
    """An instant of the API as whole seconds since 1970; None when there is none or it cannot be read."""
    if not stamp:
        return None
    try:
        return int(datetime.fromisoformat(stamp).timestamp())
    except ValueError:
        return None
