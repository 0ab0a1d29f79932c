"""Fields of claims, volumes, and of what drivers can attach."""

from __future__ import annotations

from typing import Any

from testbed.fields.part import HOST, Manifest, Part, obeys

from fairlead.kubernetes.kinds import CLAIMS, CSI_NODES, STORAGE_CLASSES, VOLUMES
from fairlead.kubernetes.storage import NOBODY

ONCE = "ReadWriteOnce"


def volume(part: Part, name: str, node: str = "", **spec: Any) -> None:
    """A volume that can be used on one node, or everywhere; free, unless it is kept for a claim."""
    there = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [part.on(node)]}]}
    where = {"nodeAffinity": {"required": {"nodeSelectorTerms": [there]}}} if node else {}
    labels, phase = spec.pop("labels", {}), "Bound" if "claimRef" in spec else "Available"
    usual = {"accessModes": [ONCE], "capacity": {"storage": "1Gi"}, "storageClassName": part.name, **where}
    source = {} if "csi" in spec else {"hostPath": {"path": "/data"}}
    made = {"metadata": {"name": part.on(name), "labels": labels}, "spec": {**usual, **source, **spec}}
    part.put(VOLUMES, {**made, "status": {"phase": phase}})


def claim(part: Part, name: str, to: str = "", **spec: Any) -> None:
    """A claim; `to` a volume that it is bound to."""
    phase = spec.pop("phase", "Bound" if to else "Pending")
    usual = {"accessModes": [ONCE], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": part.name}
    meta: Manifest = {"name": part.on(name), "namespace": "default"}
    if to:
        meta["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        usual["volumeName"] = part.on(to)
    part.put(CLAIMS, {"metadata": meta, "spec": {**usual, **spec}, "status": {"phase": phase}})


def bound(part: Part, name: str, node: str = "", mode: str = ONCE, phase: str = "Bound", **spec: Any) -> None:
    """A claim and its volume."""
    ref = {"namespace": "default", "name": part.on(name)}
    volume(part, name, node, claimRef=ref, accessModes=[mode], **spec)
    claim(part, name, to=name, accessModes=[mode], phase=phase)


def using(part: Part, *names: str) -> Manifest:
    return {"volumes": [{"name": n, "persistentVolumeClaim": {"claimName": part.on(n)}} for n in names]}


@obeys("PodSpec.volumes", "Volume.persistentVolumeClaim", "PersistentVolumeClaimSpec.volumeName")
def claimed(part: Part, there: bool) -> None:
    part.nodes()
    bound(part, "data", "a")
    part.pod(**(using(part, "data") if there else {}))


@obeys("PersistentVolumeSpec.nodeAffinity")
def where_a_volume_is(part: Part, there: bool) -> None:
    part.nodes()
    bound(part, "data", "a" if there else "")
    part.pod(**using(part, "data"))


@obeys("PersistentVolumeClaimStatus.phase")
def lost(part: Part, there: bool) -> None:
    part.nodes()
    bound(part, "data", phase="Lost" if there else "Bound")
    part.pod(**using(part, "data"))


@obeys("PersistentVolumeClaimSpec.accessModes")
def for_one_pod(part: Part, there: bool) -> None:
    part.nodes()
    bound(part, "data", mode="ReadWriteOncePod" if there else ONCE)
    part.runs("a", **using(part, "data"))
    part.pod(**using(part, "data"))


# -- claims that wait for a pod -----------------------------------------------------------------------------------


def choice(part: Part, volume_a: Manifest, **of_claim: Any) -> None:
    """A volume on a that may suit, and one on b that does."""
    meta = {"metadata": {"name": part.name}}
    part.put(STORAGE_CLASSES, {**meta, "provisioner": NOBODY, "volumeBindingMode": "WaitForFirstConsumer"})
    part.nodes()
    volume(part, "a", "a", **volume_a)
    large = {"accessModes": [ONCE, "ReadWriteMany"], "capacity": {"storage": "9Gi"}, "labels": {"tier": "x"}}
    volume(part, "b", "b", **large)
    claim(part, "data", **of_claim)
    part.pod(**using(part, "data"))


@obeys("PersistentVolumeClaimSpec.resources")
def size_of_a_claim(part: Part, there: bool) -> None:
    choice(part, {}, resources={"requests": {"storage": "5Gi" if there else "1Gi"}})


@obeys("PersistentVolumeSpec.capacity")
def size_of_a_volume(part: Part, there: bool) -> None:
    choice(part, {"capacity": {"storage": "500Mi" if there else "1Gi"}})


@obeys("PersistentVolumeClaimSpec.selector")
def selector_of_a_claim(part: Part, there: bool) -> None:
    choice(part, {}, **({"selector": {"matchLabels": {"tier": "x"}}} if there else {}))


@obeys("PersistentVolumeClaimSpec.storageClassName", "PersistentVolumeSpec.storageClassName")
def class_of_a_volume(part: Part, there: bool) -> None:
    choice(part, {"storageClassName": "other"} if there else {})


@obeys("PersistentVolumeClaimSpec.volumeAttributesClassName", "PersistentVolumeSpec.volumeAttributesClassName")
def attributes_class_of_a_volume(part: Part, there: bool) -> None:
    by_a_driver = {"csi": {"driver": "csi.example.com", "volumeHandle": part.on("a")}}
    choice(part, {**by_a_driver, **({"volumeAttributesClassName": "gold"} if there else {})})


@obeys("PersistentVolumeClaimSpec.volumeMode", "PersistentVolumeSpec.volumeMode")
def mode_of_a_volume(part: Part, there: bool) -> None:
    choice(part, {"volumeMode": "Block" if there else "Filesystem"})


@obeys("PersistentVolumeSpec.accessModes")
def access_to_a_volume(part: Part, there: bool) -> None:
    choice(part, {"accessModes": [ONCE] if there else [ONCE, "ReadWriteMany"]}, accessModes=["ReadWriteMany"])


@obeys("PersistentVolumeSpec.claimRef")
def kept_for_another(part: Part, there: bool) -> None:
    choice(part, {"claimRef": {"namespace": "default", "name": "another"}} if there else {})


# -- how many can be attached -------------------------------------------------------------------------------------


def drivers(part: Part, driver: str, count: int, of_volumes: str = "csi.example.com") -> None:
    """A pod with one volume runs on a, which can have so many of a driver; on b there is room for more."""
    part.nodes()
    for node, most in (("a", count), ("b", 5)):
        entry = {"name": driver, "nodeID": node, "topologyKeys": [], "allocatable": {"count": most}}
        part.put(CSI_NODES, {"metadata": {"name": part.on(node)}, "spec": {"drivers": [entry]}})
    for name in ("one", "two"):
        bound(part, name, csi={"driver": of_volumes, "volumeHandle": part.on(name)})
    part.runs("a", **using(part, "one"))
    part.pod(**using(part, "two"))


@obeys("CSINodeDriver.allocatable")
def attached_at_most(part: Part, there: bool) -> None:
    drivers(part, "csi.example.com", 1 if there else 2)


@obeys("CSINodeDriver.name")
def name_of_a_driver(part: Part, there: bool) -> None:
    drivers(part, "csi.example.com" if there else "other.example.com", 1)


@obeys("PersistentVolumeSpec.csi")
def driver_of_a_volume(part: Part, there: bool) -> None:
    drivers(part, "csi.example.com", 1, "csi.example.com" if there else "other.example.com")
