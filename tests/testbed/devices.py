"""Devices for the fake server and the real one: manifests, and a small controller of claims beside the fake one.

Decides when a claim is made from a template, and when one that is used no more gives its devices back, as Kubernetes'
own controller does. Looks at nothing but the objects of the server.
"""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from testbed.fake_server import FakeServer

Manifest = dict[str, Any]
DRIVER = "gpu.example.com"
GROUP = "resource.k8s.io/v1"
PACE_S = 0.05


def device_class(name: str = "gpu", *selectors: str) -> Manifest:
    """A class of devices; of this driver, unless selectors say otherwise."""
    expressions = selectors or (f'device.driver == "{DRIVER}"',)
    return {
        "apiVersion": GROUP, "kind": "DeviceClass", "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": e}} for e in expressions]},
    }  # fmt: skip


def device(name: str, model: str = "small", memory: str = "10Gi", **more: Any) -> Manifest:
    """One device."""
    return {
        "name": name, "attributes": {"model": {"string": model}, "even": {"bool": name[-1] in "02468"}},
        "capacity": {"memory": {"value": memory}}, **more,
    }  # fmt: skip


def device_slice(node: str, *devices: Manifest, name: str = "", generation: int = 1, **where: Any) -> Manifest:
    """A slice of one node's devices, or of those that `where` says (`allNodes`, `nodeSelector`)."""
    reached = where or {"nodeName": node}
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "devices": list(devices), **reached}
    return {"apiVersion": GROUP, "kind": "ResourceSlice", "metadata": {"name": name or f"s-{node}"}, "spec": spec}


def request(name: str = "gpu", of_class: str = "gpu", count: int = 1, *selectors: str, **more: Any) -> Manifest:
    """A request for exactly that many devices; 0: all."""
    mode: Manifest = {"allocationMode": "ExactCount", "count": count} if count else {"allocationMode": "All"}
    cel = [{"cel": {"expression": e}} for e in selectors]
    return {"name": name, "exactly": {"deviceClassName": of_class, **mode, "selectors": cel, **more}}


def claim(name: str, *requests: Manifest, **more: Any) -> Manifest:
    """A claim."""
    meta = {"name": name, "namespace": "default"}
    devices = {"requests": list(requests) or [request()], **more}
    return {"apiVersion": GROUP, "kind": "ResourceClaim", "metadata": meta, "spec": {"devices": devices}}


def claimed(*names: str, template: str = "") -> Manifest:
    """The part of a pod that names claims, or a template."""
    if template:
        return {"resourceClaims": [{"name": template, "resourceClaimTemplateName": template}]}
    return {"resourceClaims": [{"name": name, "resourceClaimName": name} for name in names]}


class ClaimController:
    """Looks round every moment."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.templates: dict[str, Manifest] = {}
        """What claims are made from, by name."""
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            for pod in self.server.all("pods"):
                self._make(pod)
            for one in self.server.all("resourceclaims"):
                self._free(one)
            await asyncio.sleep(PACE_S)

    def _make(self, pod: Manifest) -> None:
        made = [status["name"] for status in pod["status"].get("resourceClaimStatuses", ())]
        for given in pod["spec"].get("resourceClaims", ()):
            template = self.templates.get(given.get("resourceClaimTemplateName", ""))
            if template is None or given["name"] in made:
                continue
            meta, changed = pod["metadata"], copy.deepcopy(pod)
            one = copy.deepcopy(template)
            one["metadata"] = {
                "name": f"{meta['name']}-{given['name']}", "namespace": meta["namespace"],
                "ownerReferences": [{"kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}],
            }  # fmt: skip
            self.server.put("resourceclaims", one)
            status = {"name": given["name"], "resourceClaimName": one["metadata"]["name"]}
            changed["status"].setdefault("resourceClaimStatuses", []).append(status)
            self.server.put("pods", changed)

    def _free(self, one: Manifest) -> None:
        status = one.get("status") or {}
        users = status.get("reservedFor") or []
        left = [user for user in users if self._is_alive(user)]
        owners = {owner["uid"] for owner in one["metadata"].get("ownerReferences", ())}
        if owners and not owners & {pod["metadata"]["uid"] for pod in self.server.all("pods")}:
            self.server.remove("resourceclaims", one["metadata"]["name"])
        elif len(left) < len(users):
            changed = copy.deepcopy(one)
            changed["status"] = {**status, "reservedFor": left} if left else {}
            self.server.put("resourceclaims", changed)

    def _is_alive(self, user: Manifest) -> bool:
        pod = self.server.one("pods", user["name"])
        return (
            pod is not None
            and pod["metadata"]["uid"] == user["uid"]
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
        )
