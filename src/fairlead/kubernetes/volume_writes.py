"""What is written on claims and volumes: the node on which a volume is wanted, and for which claim a volume is kept.

Decides how that is asked of the server, each time by what the server has at that moment. Never decides which node or
volume, and never tries again by itself. Invariant: what somebody else has written meanwhile is not overwritten.
"""

from __future__ import annotations

from typing import Any

from fairlead.kubernetes.acts import DeselectNode, KeepVolume, ObjectName, SelectNode
from fairlead.kubernetes.client import Client, Conflict, NotFound, ServerFault
from fairlead.kubernetes.kinds import CLAIMS, VOLUMES
from fairlead.kubernetes.objects import PersistentVolume, PersistentVolumeClaim
from fairlead.kubernetes.storage import SELECTED_NODE

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""On a volume: its claim was chosen by the machinery, which may take that back. Kubernetes' name."""


async def select_node(client: Client, act: SelectNode) -> None:
    """Whoever makes volumes begins when the claim names a node."""
    claim = await _claim(client, act.claim)
    chosen = (claim.metadata.annotations or {}).get(SELECTED_NODE, "")
    if chosen == act.node or claim.spec.volume_name:
        return
    if chosen:
        raise Conflict(409, "Selected", f"claim {act.claim} names node {chosen} by now")
    await _annotate(client, claim, act.claim, act.node)


async def deselect_node(client: Client, act: DeselectNode) -> None:
    """Nothing more is begun there."""
    try:
        claim = await _claim(client, act.claim)
    except NotFound:
        return
    if (claim.metadata.annotations or {}).get(SELECTED_NODE) == act.node:
        await _annotate(client, claim, act.claim, None)


async def keep_volume(client: Client, act: KeepVolume) -> None:
    """The controller of volumes binds the claim to the volume that is kept for it."""
    volume: PersistentVolume = await client.get(VOLUMES, act.volume)
    kept = volume.spec.claim_ref
    if kept is not None and kept.uid == act.claim.uid:
        return
    if volume.metadata.uid != act.volume_uid or kept is not None:
        raise Conflict(409, "Taken", f"volume {act.volume} belongs to somebody else by now")
    await _claim(client, act.claim)
    name = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": act.claim.namespace}
    change: dict[str, Any] = {
        "metadata": {**_this_one(volume), "annotations": {BY_CONTROLLER: "yes"}},
        "spec": {"claimRef": {**name, "name": act.claim.name, "uid": act.claim.uid}},
    }
    try:
        await client.patch(VOLUMES, act.volume, change)
    except Conflict as e:
        raise ServerFault(500, "Conflict", e.message) from None


async def _claim(client: Client, name: ObjectName) -> PersistentVolumeClaim:
    """The claim; `NotFound` when there is another one of that name by now."""
    claim: PersistentVolumeClaim = await client.get(CLAIMS, name.name, name.namespace)
    if claim.metadata.uid != name.uid:
        raise NotFound(404, "NotFound", f"claim {name} is another one by now")
    return claim


async def _annotate(client: Client, claim: PersistentVolumeClaim, name: ObjectName, node: str | None) -> None:
    change = {"metadata": {**_this_one(claim), "annotations": {SELECTED_NODE: node}}}
    try:
        await client.patch(CLAIMS, name.name, change, name.namespace)
    except Conflict as e:
        # It changed since it was read: read it again in a moment.
        raise ServerFault(500, "Conflict", e.message) from None


def _this_one(thing: PersistentVolume | PersistentVolumeClaim) -> dict[str, str]:
    return {"uid": thing.metadata.uid or "", "resourceVersion": thing.metadata.resource_version or ""}
