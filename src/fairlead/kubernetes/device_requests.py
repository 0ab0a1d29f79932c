"""Requests on resource claims: what the binder sends so that a pod may use the devices of its claims.

Decides how devices and users are written on a claim, and how both are taken off again. Never decides which devices.
Invariants: a claim keeps the devices that something else has given it; what changed since it was read is read again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.kubernetes import acts
from fairlead.kubernetes import client as api
from fairlead.kubernetes.devices.claims import MOST_USERS
from fairlead.kubernetes.kinds import PODS, RESOURCE_CLAIMS
from fairlead.kubernetes.objects import Pod

FINALIZER = "resource.kubernetes.io/delete-protection"
"""A claim with devices stays until it is used no more; Kubernetes' controller of claims sees to that."""
Document = dict[str, Any]


async def use(client: api.Client, pod: acts.ObjectName, wanted: acts.DeviceUse) -> None:
    """The pod stands on the claim, which has its devices. `Conflict` when something else is in the way."""
    claim = await _read(client, wanted.claim)
    meta, status = claim["metadata"], claim.get("status") or {}
    users, allocation = status.get("reservedFor") or [], status.get("allocation")
    if allocation is None and wanted.allocation is None:
        raise api.Conflict(409, "Lost", f"resource claim {wanted.claim} has no devices any more")
    if allocation is not None and wanted.allocation is not None and _devices(allocation) != _devices(wanted.allocation):
        raise api.Conflict(409, "Taken", f"resource claim {wanted.claim} has other devices by now")
    if any(user.get("uid") == pod.uid for user in users):
        return
    if len(users) >= MOST_USERS:
        raise api.Conflict(409, "Full", f"resource claim {wanted.claim} is used by {MOST_USERS} pods already")
    if meta.get("deletionTimestamp"):
        raise api.Conflict(409, "Leaving", f"resource claim {wanted.claim} is being deleted")
    if allocation is None and FINALIZER not in (finalizers := meta.get("finalizers") or []):
        claim = await _patch(client, claim, {}, {"finalizers": [*finalizers, FINALIZER]})
    user = {"resource": PODS.plural, "name": pod.name, "uid": pod.uid}
    change: Document = {"reservedFor": [*users, user]}
    if allocation is None:
        change["allocation"] = wanted.allocation
    await _patch(client, claim, change)


async def give_back(client: api.Client, act: acts.ReturnDevices) -> str:
    """The pod stands on the claim no more, unless it is bound; the claim's version since, or nothing: it is gone."""
    try:
        pod: Pod = await client.get(PODS, act.pod.name, act.pod.namespace)
        if pod.metadata.uid == act.pod.uid and pod.spec.node_name:
            return ""
    except api.NotFound:
        pass
    try:
        claim = await _read(client, act.claim)
    except api.NotFound:
        return ""
    status = claim.get("status") or {}
    users = status.get("reservedFor") or []
    left = [user for user in users if user.get("uid") != act.pod.uid]
    if not left and status.get("allocation") is not None:
        claim = await _patch(client, claim, {"reservedFor": None, "allocation": None, "devices": None})
    elif len(left) < len(users):
        claim = await _patch(client, claim, {"reservedFor": left})
    return str(claim["metadata"].get("resourceVersion") or "")


async def _read(client: api.Client, name: acts.ObjectName) -> Document:
    """The claim whole, for what others have written on it; `NotFound` when there is another one of that name by now."""
    claim: Document = msgspec.json.decode(await client.send("GET", RESOURCE_CLAIMS.path(name.namespace, name.name)))
    if claim["metadata"].get("uid") != name.uid:
        raise api.NotFound(404, "NotFound", f"resource claim {name} is another one by now")
    return claim


async def _patch(client: api.Client, claim: Document, status: Document, meta: Document | None = None) -> Document:
    """Change the status, or else the metadata, of that very version; the claim as it is since."""
    own = claim["metadata"]
    this = {"uid": own["uid"], "resourceVersion": own["resourceVersion"]}
    body: Document = {"metadata": {**this, **(meta or {})}, **({"status": status} if status else {})}
    path = RESOURCE_CLAIMS.path(own["namespace"], own["name"], "status" if status else "")
    try:
        answer = await client.send("PATCH", path, body=body, content_type=api.MERGE_PATCH)
    except api.Conflict as e:
        # It changed since it was read: read it again in a moment.
        raise api.ServerFault(500, "Conflict", e.message) from None
    changed: Document = msgspec.json.decode(answer)
    return changed


def _devices(allocation: Any) -> set[tuple[str, str, str]]:
    results = (allocation.get("devices") or {}).get("results") or []
    return {(result["driver"], result["pool"], result["device"]) for result in results}
