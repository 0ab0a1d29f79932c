"""Requests on claims and volumes: what the binder sends so that a pod's volumes are made or kept for it.

Decides how a node is written on a claim, and a claim on a volume. Never decides which. Invariant: what something
else has written there meanwhile is not overwritten.
"""

from __future__ import annotations

from typing import Any

from fairlead.kubernetes import acts
from fairlead.kubernetes import client as api
from fairlead.kubernetes.kinds import CLAIMS, VOLUMES
from fairlead.kubernetes.storage import SELECTED_NODE
from fairlead.kubernetes.storage_objects import PersistentVolume, PersistentVolumeClaim

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""On a volume: its claim was chosen by the machinery, which may take that back. Kubernetes' name."""


async def carry_out(client: api.Client, act: acts.SelectNode | acts.DeselectNode | acts.KeepVolume) -> None:
    """Whichever of the three it is."""
    if isinstance(act, acts.SelectNode):
        await select_node(client, act)
    elif isinstance(act, acts.DeselectNode):
        await deselect_node(client, act)
    else:
        await keep_volume(client, act)


async def select_node(client: api.Client, act: acts.SelectNode) -> None:
    """Whoever makes volumes begins when the claim names a node."""
    claim = await _claim(client, act.claim)
    chosen = (claim.metadata.annotations or {}).get(SELECTED_NODE, "")
    if chosen == act.node or claim.spec.volume_name:
        return
    if chosen:
        raise api.Conflict(409, "Selected", f"claim {act.claim} names node {chosen} by now")
    await _annotate(client, claim, act.claim, act.node)


async def deselect_node(client: api.Client, act: acts.DeselectNode) -> None:
    """Nothing more is begun there."""
    try:
        claim = await _claim(client, act.claim)
    except api.NotFound:
        return
    if (claim.metadata.annotations or {}).get(SELECTED_NODE) == act.node:
        await _annotate(client, claim, act.claim, None)


async def keep_volume(client: api.Client, act: acts.KeepVolume) -> None:
    """The controller of volumes binds the claim to the volume that is kept for it."""
    volume: PersistentVolume = await client.get(VOLUMES, act.volume)
    kept = volume.spec.claim_ref
    if kept is not None and kept.uid == act.claim.uid:
        return
    by_name = kept is not None and not kept.uid and (kept.namespace, kept.name) == (act.claim.namespace, act.claim.name)
    if volume.metadata.uid != act.volume_uid or (kept is not None and not by_name):
        raise api.Conflict(409, "Taken", f"volume {act.volume} belongs to somebody else by now")
    await _claim(client, act.claim)
    name = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": act.claim.namespace}
    change: dict[str, Any] = {
        "metadata": {**_this_one(volume), **({} if by_name else {"annotations": {BY_CONTROLLER: "yes"}})},
        "spec": {"claimRef": {**name, "name": act.claim.name, "uid": act.claim.uid}},
    }
    try:
        await client.patch(VOLUMES, act.volume, change)
    except api.Conflict as e:
        raise api.ServerFault(500, "Conflict", e.message) from None


async def _claim(client: api.Client, name: acts.ObjectName) -> PersistentVolumeClaim:
    """The claim; `NotFound` when there is another one of that name by now."""
    claim: PersistentVolumeClaim = await client.get(CLAIMS, name.name, name.namespace)
    if claim.metadata.uid != name.uid:
        raise api.NotFound(404, "NotFound", f"claim {name} is another one by now")
    return claim


async def _annotate(client: api.Client, claim: PersistentVolumeClaim, name: acts.ObjectName, node: str | None) -> None:
    change = {"metadata": {**_this_one(claim), "annotations": {SELECTED_NODE: node}}}
    try:
        await client.patch(CLAIMS, name.name, change, name.namespace)
    except api.Conflict as e:
        # It changed since it was read: read it again in a moment.
        raise api.ServerFault(500, "Conflict", e.message) from None


def _this_one(thing: PersistentVolume | PersistentVolumeClaim) -> dict[str, str]:
    return {"uid": thing.metadata.uid or "", "resourceVersion": thing.metadata.resource_version or ""}
