"""The kinds of objects that are watched, read or written, and where the API server keeps them.

Decides paths. Never sends a request.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.kubernetes.objects import (
    ConfigMap,
    Lease,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    StorageClass,
    Thing,
)


class Kind(msgspec.Struct, frozen=True):
    """A kind of object: its type here, and where it is found."""

    type: type[Any]
    name: str
    """As in a manifest: `Pod`."""
    group_version: str
    """`v1` or `scheduling.k8s.io/v1`."""
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """The path of all objects, those of a namespace, one object, or a part of it such as `status`."""
        root = "/api/" if "/" not in self.group_version else "/apis/"
        parts = [root + self.group_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, sub) if part]
        return "/".join(parts)


PODS = Kind(Pod, "Pod", "v1", "pods", True)
NODES = Kind(Node, "Node", "v1", "nodes", False)
NAMESPACES = Kind(Namespace, "Namespace", "v1", "namespaces", False)
CONFIG_MAPS = Kind(ConfigMap, "ConfigMap", "v1", "configmaps", True)
PRIORITY_CLASSES = Kind(PriorityClass, "PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", False)
BUDGETS = Kind(PodDisruptionBudget, "PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", True)
CLAIMS = Kind(PersistentVolumeClaim, "PersistentVolumeClaim", "v1", "persistentvolumeclaims", True)
VOLUMES = Kind(PersistentVolume, "PersistentVolume", "v1", "persistentvolumes", False)
STORAGE_CLASSES = Kind(StorageClass, "StorageClass", "storage.k8s.io/v1", "storageclasses", False)
LEASES = Kind(Lease, "Lease", "coordination.k8s.io/v1", "leases", True)
EVENTS = Kind(Thing, "Event", "events.k8s.io/v1", "events", True)
