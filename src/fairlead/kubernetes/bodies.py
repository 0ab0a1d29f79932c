"""What requests carry: the bodies of the changes that we make at the API server. Pure.

Decides how an act is written as JSON. Never sends it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.core.model import reasons
from fairlead.kubernetes.acts import (
    PLACEMENT_REFUSED,
    Bind,
    CreatePlaceholder,
    EvictPod,
    Explain,
    Nominate,
    ObjectName,
    Record,
    Suspend,
)
from fairlead.kubernetes.gangs import FAILED, RESERVES
from fairlead.kubernetes.storage import NOT_UNDERSTOOD
from fairlead.kubernetes.translate import identity
from fairlead.kubernetes.translate.pods import GANG_FAILED
from fairlead.kubernetes.volume_binder import AWAITED
from fairlead.kubernetes.workload_phase import GROUP_WAITS

CONTROLLER = "fairlead"
IMAGE = "busybox:stable"
"""What a placeholder runs unless told otherwise: it only sleeps."""
HELD_BACK: tuple[type[reasons.Reason], ...] = (
    reasons.ApplicationsAtMax, reasons.ApplicationsPromised, reasons.ClassNotAllowed, reasons.HeldForReservation,
    reasons.LimitApplications, reasons.LimitPromised, reasons.LimitReached, reasons.NextInLine, reasons.QueueFull,
    reasons.QueuePromised, reasons.QuotaExceeded, reasons.Refused, reasons.SubmitDenied, reasons.WaitingForPlaceholder,
)  # fmt: skip
"""Why a pod waits that no further node would help."""
BEHIND = "room-claimed"
"""The code of a pod that lacks a node, and whose queue or limit has room left for those alone that wait before it."""
SKIPPED = frozenset(
    {
        *(each.code for each in HELD_BACK),
        *(BEHIND, RESERVES, GROUP_WAITS, NOT_UNDERSTOOD, "application-refused", "unreadable"),
    }
)
WORDS = {
    AWAITED: "WaitingForVolumes",
    PLACEMENT_REFUSED: "SchedulerError",
    FAILED: GANG_FAILED,
    **dict.fromkeys(SKIPPED, "SchedulingSkipped"),
}
"""Reasons of the condition that call no autoscaler, by the code of why a pod waits: kube-scheduler's, YuniKorn's."""
NOTE_MAX = 1024
"""Bytes of the text of an event that the API takes."""


def disruption(act: EvictPod, stamp: str) -> dict[str, Any]:
    """The condition that says why a pod is about to be deleted; only for that very pod."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{CONTROLLER}: {act.message}",
        "lastTransitionTime": stamp,
    }
    return {"metadata": {"uid": act.pod.uid}, "status": {"conditions": [condition]}}


def nomination(act: Nominate) -> dict[str, Any]:
    """The node on which room is held for a pod, or none."""
    return {"metadata": that_pod(act.pod), "status": {"nominatedNodeName": act.node or None}}


def unscheduled(act: Explain, stamp: str) -> dict[str, Any]:
    """The condition that says why a pod waits. Its reason is the word that cluster autoscalers look for, unless no
    further node would help: it waits on its node for volumes, or its queue or a limit holds it back.
    """
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": WORDS.get(act.code, "Unschedulable"),
        "message": act.message,
        "lastTransitionTime": stamp,
    }
    return {"metadata": that_pod(act.pod), "status": {"conditions": [condition]}}


def binding(act: Bind) -> dict[str, Any]:
    """The node of a pod; only for that very pod. Annotations of a binding become the pod's."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": act.pod.name, "namespace": act.pod.namespace, **that_pod(act.pod)},
        "target": {"apiVersion": "v1", "kind": "Node", "name": act.node},
    }


def that_pod(pod: ObjectName) -> dict[str, Any]:
    """The very pod that is meant, with what is to be known of it after a restart: when it was first seen (what we write
    ourselves gives it another version), and that its gang has begun or was given up.
    """
    notes = {identity.ARRIVAL: pod.arrival} if pod.arrival else {}
    if pod.gang_mark:
        notes[pod.gang_mark] = pod.uid
    return {"uid": pod.uid, **({"annotations": notes} if notes else {})}


def suspension(act: Suspend) -> dict[str, Any]:
    """Whether a job may have pods; only for that very job."""
    return {"metadata": {"uid": act.job.uid}, "spec": {"suspend": act.suspend}}


def event(act: Record, number: int, stamp: str, instance: str) -> dict[str, Any]:
    """An event about a pod or job."""
    body: dict[str, Any] = {
        "metadata": {"name": f"{act.pod.name[:230].rstrip('-.')}.{number:x}", "namespace": act.pod.namespace},
        "eventTime": stamp,
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
        "action": "Scheduling",
        "reason": act.reason,
        "note": act.message.encode()[:NOTE_MAX].decode("utf-8", "ignore"),
        "type": "Warning" if act.warning else "Normal",
        "regarding": _reference(act.pod),
    }
    if act.related is not None:
        body["related"] = _reference(act.related)
    return body


def placeholder(act: CreatePlaceholder, scheduler_name: str, image: str = IMAGE) -> dict[str, Any]:
    """A pod that keeps room: it needs what a member needs, may run where a member may, and goes with its owner."""
    group = act.group
    resources = {name: str(value) for name, value in (group.min_resource or {}).items()}
    labels, belongs = _belonging(act)
    notes = {
        **(group.annotations or {}),
        **belongs,
        identity.PLACEHOLDER: "true",
        identity.TASK_GROUP_NAME: group.name,
        **({identity.USER_INFO: act.user_info} if act.user_info else {}),
        **({identity.MEMBER_DEADLINE: str(act.deadline_s)} if act.deadline_s else {}),
    }
    spec: dict[str, Any] = {
        "schedulerName": scheduler_name,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "containers": [{
            "name": "placeholder",
            "image": image,
            "command": ["sleep", "2147483647"],
            "resources": {"requests": resources, "limits": resources},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }],
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"},
        },
    }  # fmt: skip
    if act.priority_class:
        spec["priorityClassName"] = act.priority_class
    where = {
        "nodeSelector": group.node_selector,
        "tolerations": group.tolerations,
        "affinity": group.affinity,
        "topologySpreadConstraints": group.topology_spread_constraints,
    }
    spec.update({name: msgspec.to_builtins(value) for name, value in where.items() if value})
    owner = {"apiVersion": "v1", "kind": "Pod", "name": act.owner.name, "uid": act.owner.uid}
    return {
        "metadata": {
            "name": act.name,
            "namespace": act.namespace,
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _belonging(act: CreatePlaceholder) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations that name application and queue: what is no value of a label is read as an annotation."""
    labels: dict[str, str] = dict(act.group.labels or {})
    notes: dict[str, str] = {}
    for name, value in (
        (identity.APP_ID, act.application), ("applicationId", act.application), (identity.QUEUE, act.queue),
    ):  # fmt: skip
        if value:
            if identity.LABEL_VALUE.fullmatch(value):
                labels[name] = value
            else:
                labels.pop(name, None)
                notes[name] = value
    return labels, notes


def _reference(thing: ObjectName) -> dict[str, str]:
    kind = thing.kind
    which = {"apiVersion": kind.group_version, "kind": kind.name}
    return {**which, "namespace": thing.namespace, "name": thing.name, "uid": thing.uid}
