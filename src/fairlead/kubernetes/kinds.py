"""The kinds of objects that are watched, read or written, and where the API server keeps them.

Decides paths. Never sends a request.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.kubernetes import device_objects, job_objects, node_objects, objects, storage_objects
from fairlead.kubernetes.lease_objects import Lease
from fairlead.kubernetes.translate.queues import QueueObject


class Kind(msgspec.Struct, frozen=True):
    """A kind of object: its type here, and where it is found."""

    type: type[Any]
    name: str
    """As in a manifest: `Pod`."""
    group_version: str
    """`v1` or `scheduling.k8s.io/v1`."""
    plural: str
    namespaced: bool
    optional: bool = False
    """Some clusters do not have it: its definition comes with an extension."""

    def type_with(self, images: bool) -> Any:
        """How it is read where images of nodes are wanted, or are not."""
        return node_objects.NodeWithImages if images and self.type is objects.Node else self.type

    @property
    def title(self) -> str:
        """How it is called in logs and figures: `pods`, `podgroups.scheduling.volcano.sh`."""
        return f"{self.plural}.{self.group_version.partition('/')[0]}" if self.optional else self.plural

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """The path of all objects, those of a namespace, one object, or a part of it such as `status`."""
        root = "/api/" if "/" not in self.group_version else "/apis/"
        parts = [root + self.group_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, sub) if part]
        return "/".join(parts)


PODS = Kind(objects.Pod, "Pod", "v1", "pods", True)
NODES = Kind(objects.Node, "Node", "v1", "nodes", False)
NAMESPACES = Kind(objects.Namespace, "Namespace", "v1", "namespaces", False)
CONFIG_MAPS = Kind(objects.ConfigMap, "ConfigMap", "v1", "configmaps", True)
PRIORITY_CLASSES = Kind(objects.PriorityClass, "PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", False)
BUDGETS = Kind(objects.PodDisruptionBudget, "PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", True)
CLAIMS = Kind(storage_objects.PersistentVolumeClaim, "PersistentVolumeClaim", "v1", "persistentvolumeclaims", True)
VOLUMES = Kind(storage_objects.PersistentVolume, "PersistentVolume", "v1", "persistentvolumes", False)
STORAGE_CLASSES = Kind(storage_objects.StorageClass, "StorageClass", "storage.k8s.io/v1", "storageclasses", False)
CSI_NODES = Kind(storage_objects.CSINode, "CSINode", "storage.k8s.io/v1", "csinodes", False)
DEVICE_CLASSES = Kind(
    device_objects.DeviceClass, "DeviceClass", "resource.k8s.io/v1", "deviceclasses", False, optional=True
)
RESOURCE_SLICES = Kind(
    device_objects.ResourceSlice, "ResourceSlice", "resource.k8s.io/v1", "resourceslices", False, optional=True
)
RESOURCE_CLAIMS = Kind(
    device_objects.ResourceClaim, "ResourceClaim", "resource.k8s.io/v1", "resourceclaims", True, optional=True
)
LEASES = Kind(Lease, "Lease", "coordination.k8s.io/v1", "leases", True)
EVENTS = Kind(objects.Thing, "Event", "events.k8s.io/v1", "events", True)
JOBS = Kind(job_objects.Job, "Job", "batch/v1", "jobs", True)
LIMIT_RANGES = Kind(job_objects.LimitRange, "LimitRange", "v1", "limitranges", True)
RUNTIME_CLASSES = Kind(job_objects.RuntimeClass, "RuntimeClass", "node.k8s.io/v1", "runtimeclasses", False)
JOB_SETS = Kind(job_objects.JobSet, "JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", True, optional=True)
POD_GROUPS = Kind(job_objects.PodGroup, "PodGroup", "scheduling.x-k8s.io/v1alpha1", "podgroups", True, optional=True)
VOLCANO_GROUPS = Kind(
    job_objects.PodGroup, "PodGroup", "scheduling.volcano.sh/v1beta1", "podgroups", True, optional=True
)
QUEUES = Kind(QueueObject, "Queue", "fairlead.io/v1alpha1", "queues", False, optional=True)
