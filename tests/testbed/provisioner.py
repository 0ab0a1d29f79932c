"""A small provisioner and volume controller beside the fake server: it makes and binds volumes, or refuses to.

Decides when a claim that names a node gets a volume there, as a driver in a cluster would. Looks at nothing but the
objects of the server.
"""

from __future__ import annotations

import asyncio
import copy
from typing import Any

from testbed.fake_server import FakeServer

SELECTED = "volume.kubernetes.io/selected-node"
PACE_S = 0.05


class Provisioner:
    """Looks round every moment."""

    def __init__(self, server: FakeServer, takes_s: float = 1.0) -> None:
        self.server = server
        self.takes_s = takes_s
        self.refuses: dict[str, None] = {}
        """Nodes for which no volume can be made: it takes the node off the claim again."""
        self.asleep = False
        self.elsewhere = ""
        """A node on which volumes can be used, whatever was asked for."""
        self._since: dict[str, float] = {}
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            if not self.asleep:
                for claim in self.server.all("persistentvolumeclaims"):
                    self._see_to(claim)
            await asyncio.sleep(PACE_S)

    def _see_to(self, claim: dict[str, Any]) -> None:
        if claim["spec"].get("volumeName"):
            return
        meta = claim["metadata"]
        kept = next((v for v in self.server.all("persistentvolumes") if _keeps(v, meta["uid"])), None)
        if kept is not None:
            self._bind(claim, kept["metadata"]["name"])
            return
        node = meta.get("annotations", {}).get(SELECTED)
        if not node:
            self._since.pop(meta["uid"], None)
            return
        now = asyncio.get_running_loop().time()
        if now - self._since.setdefault(meta["uid"], now) < self.takes_s:
            return
        if node in self.refuses or self.server.one("nodes", node, "") is None:
            changed = copy.deepcopy(claim)
            del changed["metadata"]["annotations"][SELECTED]
            self.server.put("persistentvolumeclaims", changed)
            return
        name = f"pv-{meta['uid']}"
        self.server.put("persistentvolumes", volume(name, self.elsewhere or node, meta, claim["spec"]))
        self._bind(claim, name)

    def _bind(self, claim: dict[str, Any], name: str) -> None:
        changed = copy.deepcopy(claim)
        changed["spec"]["volumeName"] = name
        changed["status"] = {"phase": "Bound"}
        self.server.put("persistentvolumeclaims", changed)


def _keeps(given: dict[str, Any], uid: str) -> bool:
    return bool(given["spec"].get("claimRef", {}).get("uid") == uid)


def volume(name: str, node: str, owner: dict[str, Any] | None = None, like: dict[str, Any] | None = None) -> Any:
    """A volume that can be used on one node; it belongs to a claim, or is free."""
    names = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": names}}, "capacity": {"storage": "1Gi"}}
    if like is not None:
        spec["storageClassName"] = like.get("storageClassName", "")
    if owner is not None:
        spec["claimRef"] = {"namespace": owner["namespace"], "name": owner["name"], "uid": owner["uid"]}
    phase = "Bound" if owner is not None else "Available"
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


def claim(name: str, of_class: str = "later", size: str = "1Gi") -> dict[str, Any]:
    """A claim without a volume."""
    spec = {"storageClassName": of_class, "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": {"phase": "Pending"}}


def storage_class(name: str = "later", provisioner: str = "disks.example", *zones: str) -> dict[str, Any]:
    """A class whose volumes come when a pod has a node; only in these zones, if any are named."""
    made: dict[str, Any] = {
        "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    if zones:
        made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": "zone", "values": list(zones)}]}]
    return made
