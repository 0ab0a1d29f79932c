"""Identity: to which application, queue, user and gang a pod says it belongs.

Decides how YuniKorn's labels and annotations are read, so that its manifests run unchanged. Never checks whether a
queue is there. YuniKorn's prefixed name comes before the old short ones, and as a label before it as an annotation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from fairlead.core.model.resources import NOTHING, Resources
from fairlead.kubernetes.objects import Affinity, Amounts, Pod, Spread, Toleration
from fairlead.kubernetes.translate.amounts import PODS, AmountError, amounts

T = TypeVar("T")

DOMAIN = "yunikorn.apache.org/"
APP_ID = f"{DOMAIN}app-id"
QUEUE = f"{DOMAIN}queue"
USER_INFO = f"{DOMAIN}user.info"
USER_NAME = f"{DOMAIN}username"
TASK_GROUP_NAME = f"{DOMAIN}task-group-name"
TASK_GROUPS = f"{DOMAIN}task-groups"
PARAMETERS = f"{DOMAIN}schedulingPolicyParameters"
PLACEHOLDER = f"{DOMAIN}placeholder"
ALLOW_PREEMPTION = f"{DOMAIN}allow-preemption"
ORIGINATOR = f"{DOMAIN}originator"
PARENT_QUEUE = f"{DOMAIN}parentqueue"
IDLE = "fairlead.io/idle"
"""Addition: `true` marks idle work."""
MIN_RUNTIME = "fairlead.io/min-runtime"
"""Addition, on a priority class: how long its pods run before they may be stopped for others."""
ARRIVAL = "fairlead.io/arrival"
"""Addition, written by the scheduler: the version of the cluster at which it first saw the pod."""
GANG_BEGUN = "fairlead.io/gang-begun"
"""Addition, written by the scheduler with its own identity, so that a copy does not say it: its gang was whole."""
GANG_GIVEN_UP = "fairlead.io/gang-given-up"
"""The same: its gang (`Soft`) was given up."""
MEMBER_DEADLINE = "fairlead.io/member-deadline-seconds"
"""Addition, written by the scheduler on a placeholder: how long what takes its place runs at most."""
MIRROR = "kubernetes.io/config.mirror"
"""Kubernetes' word on a pod that a node made by itself; the API server only shows it."""
NOBODY = "nobody"

APP_ID_OLD_LABELS = ("applicationId", "spark-app-selector")
APP_ID_LABELS = (APP_ID, *APP_ID_OLD_LABELS)
QUEUE_OLD_LABELS = ("queue",)
POD_GROUP_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
"""The pod group of the scheduler-plugins that a pod belongs to."""
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
"""The same of Volcano, as an annotation."""
OWNER_KINDS = frozenset(
    ("JAXJob", "JobSet", "MPIJob", "PaddleJob", "PyTorchJob", "RayCluster", "SparkApplication", "TFJob", "XGBoostJob")
)
"""Whose pods are one application each."""
OWNER_LABELS = (
    "jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name", "ray.io/cluster",
    "sparkoperator.k8s.io/app-name", "volcano.sh/job-name",
)  # fmt: skip
"""They name that owner, also where something else stands between it and its pods."""
JOB_NAME = "batch.kubernetes.io/job-name"
"""On the pods of a job: its name."""
EACH_ITS_OWN = "-uniqueautogen"
"""At the end of an application's name it stands for the pod's identity: YuniKorn's webhook cannot know it yet."""
LONGEST_VERSION = 20
"""Digits of a version; it has 64 bits."""
LONGEST = 64 * 1024
"""Characters of an annotation that are read."""
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
"""What the API takes as the value of a label."""
MOST_TOGETHER = 10_000
"""Pods that start together: more would keep the scheduler busy with what no cluster has room for."""
LONGEST_NUMBER = 9
"""Digits of a number in an annotation."""


class IdentityError(ValueError):
    """A label or annotation that cannot be read; the sentence names it."""


class Submitter(msgspec.Struct):
    """Who submitted the pod, as the admission webhook writes it."""

    user: str | None = None
    groups: list[str] | None = None
    """Programs in Go write null for a list without an entry."""


class TaskGroup(msgspec.Struct, rename="camel", frozen=True):
    """One group of a gang: how many equal pods must start together, and what each needs."""

    name: str
    min_member: int
    min_resource: Amounts = None
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: list[Spread] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None

    @property
    def needs(self) -> Resources:
        """What one of its pods needs. Raises `AmountError`."""
        book = amounts(self.min_resource)
        book[PODS] = book.get(PODS, 0) + 1
        return Resources(book)


@dataclass(frozen=True, slots=True)
class Gang:
    """What a pod declares about the gang of its application."""

    groups: tuple[TaskGroup, ...]
    hard: bool
    timeout_ms: int
    """0: not given."""

    @property
    def size(self) -> Resources:
        """What all members need together. Raises `AmountError`."""
        total = NOTHING
        for group in self.groups:
            total += group.needs * group.min_member
        return total


def arrival_of(pod: Pod) -> str:
    """The version of the cluster at which the pod was first seen: as is written on it, else that which it has now.

    A pod that nobody has touched yet has the version of its creation. Empty: that is no number.
    """
    for version in ((pod.metadata.annotations or {}).get(ARRIVAL), pod.metadata.resource_version):
        if version and version.isdecimal() and len(version) <= LONGEST_VERSION:
            return version
    return ""


def version_of(text: str | None) -> int:
    """A version of the cluster as a number; 0: that is none."""
    return int(text) if text and text.isdecimal() and len(text) <= LONGEST_VERSION else 0


def application_id(pod: Pod) -> str:
    """The application that the pod names, else that of its owner, else one for all such pods of its namespace."""
    named = _named(pod, APP_ID, APP_ID_OLD_LABELS)
    if named.endswith(EACH_ITS_OWN):
        return f"{named.removesuffix(EACH_ITS_OWN)}-{pod.metadata.uid or ''}"
    return named or owner_application(pod) or f"yunikorn-{pod.metadata.namespace or 'default'}-autogen"


def group_application(namespace: str, name: str) -> str:
    """The application of all pods of one pod group, or of one owner such as a RayCluster.

    No namespace has a dot in its name: `a` with `b-c` and `a-b` with `c` are two.
    """
    return f"{namespace}.{name}"


def pod_group_application(namespace: str, name: str, *, of_volcano: bool) -> str:
    """The application of a pod group; one of each kind may have the same name, in which no colon can be."""
    return group_application(namespace, f"{name}:volcano" if of_volcano else name)


def owner_application(pod: Pod) -> str:
    """The application of a pod that is part of a known kind of job of several pods; else nothing."""
    meta = pod.metadata
    owner = next((o.name for o in meta.owner_references or () if o.controller and o.kind in OWNER_KINDS), None)
    name = owner or _label(pod, OWNER_LABELS)
    return group_application(meta.namespace or "default", name) if name else ""


def pod_group_of(pod: Pod) -> str:
    """The name of the pod group that a pod says it belongs to, Volcano's word first; may be nothing."""
    return _volcano_group_of(pod) or _label(pod, POD_GROUP_LABELS)


def application_of_group(pod: Pod) -> str:
    """The application of that pod group; nothing without one."""
    group, namespace = pod_group_of(pod), pod.metadata.namespace or "default"
    return pod_group_application(namespace, group, of_volcano=bool(_volcano_group_of(pod))) if group else ""


def _volcano_group_of(pod: Pod) -> str:
    return (pod.metadata.annotations or {}).get(VOLCANO_GROUP, "")


def queue_of(pod: Pod) -> str:
    """The queue that the pod asks for; may be nothing: placement rules decide then."""
    return _named(pod, QUEUE, QUEUE_OLD_LABELS)


def user_of(pod: Pod) -> tuple[str, tuple[str, ...]]:
    """User and groups, as the webhook wrote them, or the user by label. Raises `IdentityError`."""
    text = (pod.metadata.annotations or {}).get(USER_INFO)
    if text:
        said = _json(text, Submitter, USER_INFO)
        return said.user or NOBODY, tuple(said.groups or ())
    return _label(pod, (USER_NAME,)) or NOBODY, ()


def task_group_name(pod: Pod) -> str:
    """The task group that the pod belongs to; may be nothing."""
    return (pod.metadata.annotations or {}).get(TASK_GROUP_NAME, "")


def is_placeholder(pod: Pod) -> bool:
    """Whether the pod only keeps room for a member of a gang."""
    return (pod.metadata.annotations or {}).get(PLACEHOLDER) == "true"


def is_mirror(pod: Pod) -> bool:
    """Whether the pod only shows what a node has started by itself: to delete it ends nothing."""
    return MIRROR in (pod.metadata.annotations or {})


def deadline_s(pod: Pod) -> int | None:
    """After how many seconds the API ends the pod, or what takes its place if it only keeps room; None: never."""
    if not is_placeholder(pod):
        return pod.spec.active_deadline_seconds
    return whole((pod.metadata.annotations or {}).get(MEMBER_DEADLINE, ""))


def is_originator(pod: Pod) -> bool:
    """Whether the pod is the one that its application began with (a driver), by its own word."""
    return (pod.metadata.annotations or {}).get(ORIGINATOR) == "true"


def is_idle(pod: Pod) -> bool:
    """Whether the pod is idle work, which gives back what it borrowed."""
    return ((pod.metadata.labels or {}) | (pod.metadata.annotations or {})).get(IDLE) == "true"


def gang_of(pod: Pod) -> Gang | None:
    """What the pod declares about its application's gang; None when it declares none, or one without members.

    Raises `IdentityError`.
    """
    notes = pod.metadata.annotations or {}
    text = notes.get(TASK_GROUPS)
    if not text:
        return None
    groups = _json(text, tuple[TaskGroup, ...], TASK_GROUPS)
    names = [group.name for group in groups]
    for group in groups:
        if not group.name or group.min_member < 0:
            raise IdentityError(f"{TASK_GROUPS}: each group needs a name and a minMember of at least 0")
        try:
            if not amounts(group.min_resource):
                raise IdentityError(f"{TASK_GROUPS}: group {group.name!r} has no minResource")
        except AmountError as e:
            raise IdentityError(f"{TASK_GROUPS}: group {group.name!r}: {e}") from e
    if len(dict.fromkeys(names)) < len(names):
        raise IdentityError(f"{TASK_GROUPS}: the names of the groups must differ")
    size = sum(group.min_member for group in groups)
    if not size:
        return None
    if size > MOST_TOGETHER:
        raise IdentityError(f"{TASK_GROUPS}: together {size} pods; a gang has at most {MOST_TOGETHER}")
    words = parameters(notes.get(PARAMETERS, ""))
    return Gang(groups, words.get("gangSchedulingStyle") == "Hard", timeout_ms(words))


def parameters(text: str) -> Mapping[str, str]:
    """`key=value` pairs with blanks between them; others are passed over."""
    pairs = (word.partition("=") for word in text.split())
    return {key: value for key, sign, value in pairs if sign}


def preempt_self(word: str | None, class_annotations: Mapping[str, str] | None) -> bool:
    """Whether a pod may be taken as a victim: by its own `preemption_word`, else by that of its priority class."""
    said = (class_annotations or {}).get(ALLOW_PREEMPTION) if word is None else word
    return said != "false"


def preemption_word(pod: Pod) -> str | None:
    """What the pod itself says of that; None: nothing."""
    return (pod.metadata.annotations or {}).get(ALLOW_PREEMPTION)


def timeout_ms(words: Mapping[str, str]) -> int:
    """How long placeholders wait for their gang, by its `parameters`; 0: not given."""
    return (whole(words.get("placeholderTimeoutInSeconds", "")) or 0) * 1000


def whole(text: str) -> int | None:
    """A whole number of at most nine plain digits; None for anything else that somebody writes."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def _named(pod: Pod, name: str, old_labels: tuple[str, ...]) -> str:
    """What a label, an annotation, or one of the old labels says, in this order."""
    return _label(pod, (name,)) or (pod.metadata.annotations or {}).get(name, "") or _label(pod, old_labels)


def _label(pod: Pod, names: tuple[str, ...]) -> str:
    labels = pod.metadata.labels or {}
    return next((labels[name] for name in names if labels.get(name)), "")


def _json(text: str, kind: type[T], name: str) -> T:
    try:
        return msgspec.json.decode(text[:LONGEST], type=kind)
    except msgspec.MsgspecError as e:
        raise IdentityError(f"annotation {name} cannot be read: {e}") from e
