"""What is to be done at the API server: frozen values, each for one object.

Decides the words between the scheduler's decisions and the requests. Never sends anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairlead.kubernetes.kinds import PODS, Kind
from fairlead.kubernetes.translate.identity import TaskGroup
from fairlead.wire.stopped import in_brackets


@dataclass(frozen=True, slots=True)
class ObjectName:
    """One pod, job or volume claim, by its name and identity."""

    namespace: str
    name: str
    uid: str
    kind: Kind = PODS
    stands_for: ObjectName | None = None
    """It is no object at the API server, but keeps room for a pod of this job, which does not exist yet."""
    arrival: str = field(default="", compare=False)
    """Of a pod: the version of the cluster at which it was first seen."""
    gang_mark: str = field(default="", compare=False)
    """Of a pod: the annotation which says that its gang is waited for no longer."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """The pod uses a claim, which gets these devices (`status.allocation`) if it has none yet."""

    claim: ObjectName
    allocation: Mapping[str, Any] | None = None
    """None: it has them already."""


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind the pod to the node, once it is written down which devices its claims have there."""

    pod: ObjectName
    node: str
    devices: tuple[DeviceUse, ...] = ()


@dataclass(frozen=True, slots=True)
class ReturnDevices:
    """The pod uses the claim no longer, unless it was bound after all; one that nobody uses gives its devices back."""

    pod: ObjectName
    claim: ObjectName


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Mark the pod as disrupted, and delete it with its own grace."""

    pod: ObjectName
    node: str
    by: ObjectName | None
    """For whom; None: for nobody (a taint, a lowered quota)."""
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a placeholder at once."""

    pod: ObjectName


@dataclass(frozen=True, slots=True)
class Nominate:
    """Say on which node room is held for the pod; an empty `node` takes that back."""

    pod: ObjectName
    node: str


@dataclass(frozen=True, slots=True)
class Explain:
    """Say why the pod waits: condition `PodScheduled` is false, with this reason."""

    pod: ObjectName
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Record:
    """Leave an event with the pod."""

    pod: ObjectName
    reason: str
    """A fixed word in camel case, such as `Scheduled`."""
    message: str
    warning: bool = False
    related: ObjectName | None = None


@dataclass(frozen=True, slots=True)
class CreatePlaceholder:
    """Create a pod that keeps room for a member of a gang."""

    namespace: str
    name: str
    application: str
    queue: str
    group: TaskGroup
    owner: ObjectName
    """The pod with which it goes: that which declared the gang, or another one of its application."""
    priority_class: str
    user_info: str
    """The annotation with the user, passed on."""
    deadline_s: int | None = None
    """After how many seconds the API ends what takes its place; None: never, or it is not known."""


@dataclass(frozen=True, slots=True)
class DropPlaceholder:
    """Try no longer to create a placeholder: its gang is given up. One that was created meanwhile is deleted apart."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """Suspend a job, so that its pods are deleted; or let it go on (`suspend` is False)."""

    job: ObjectName
    suspend: bool


@dataclass(frozen=True, slots=True)
class SelectNode:
    """Say on a claim on which node its volume is wanted; for a pod that has its place there."""

    claim: ObjectName
    pod: ObjectName
    node: str


@dataclass(frozen=True, slots=True)
class DeselectNode:
    """Take that back, if it still says so."""

    claim: ObjectName
    node: str


@dataclass(frozen=True, slots=True)
class KeepVolume:
    """Keep a free volume for a claim; whoever binds volumes does the rest."""

    claim: ObjectName
    pod: ObjectName
    node: str
    volume: str
    volume_uid: str


PLACEMENT_REFUSED = "placement-refused"
"""The code of a pod that the API server has just refused to place."""
Placing = Bind | SelectNode | KeepVolume
"""What fails together with a placement."""
Act = (
    Placing | DeselectNode | ReturnDevices | EvictPod | DeletePod | Nominate | Explain | Record | CreatePlaceholder
    | DropPlaceholder | Suspend
)  # fmt: skip


def at_server(act: Act) -> Act | None:
    """What is to be done of an act at the API server: of one on a stand-in only that its job is told."""
    if isinstance(act, Record):
        related = act.related.stands_for or act.related if act.related is not None else None
        return replace(act, pod=act.pod.stands_for or act.pod, related=related)
    if isinstance(act, EvictPod) and act.by is not None and act.by.stands_for is not None:
        act = replace(act, by=act.by.stands_for)
    if isinstance(act, CreatePlaceholder | DropPlaceholder | DeselectNode | Suspend):
        return act
    return None if act.pod.stands_for is not None else act


def preempted(by: ObjectName | None, node: str, rule: str, message: str) -> str:
    """What the event of a pod or job says that had to make room."""
    whom = f" by {by}" if by is not None else ""
    return f"Preempted{whom} on node {node}{in_brackets(rule, winner=str(by or 'that one'))}: {message}"
