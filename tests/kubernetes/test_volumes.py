"""Volumes that wait for their consumer, on a real API server; the test itself is who makes volumes."""

from __future__ import annotations

import json

import pytest
from testbed.cluster import Cluster, Manifest, pod
from testbed.provisioner import SELECTED, claim, storage_class, volume

from fairlead.kubernetes.storage import NOBODY

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]


def _used(name: str) -> dict[str, object]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def _claim(name: str, of_class: str) -> Manifest:
    made = claim(name, of_class)
    del made["status"]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **made, "spec": {
        **made["spec"], "accessModes": ["ReadWriteOnce"],
    }}  # fmt: skip


def _class(name: str, provisioner: str) -> Manifest:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **storage_class(name, provisioner)}


def _volume(name: str, node: str, of_class: str) -> Manifest:
    made = volume(name, node, like={"storageClassName": of_class})
    del made["status"]
    more = {"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", **made, "spec": {**made["spec"], **more}}


def _patch(cluster: Cluster, what: str, name: str, change: Manifest, *options: str) -> None:
    cluster.plane.kubectl("patch", what, name, "--type=merge", "-p", json.dumps(change), *options)


def _bind(cluster: Cluster, name: str, volume_name: str) -> None:
    """What the controller of volumes does."""
    _patch(cluster, "pvc", name, {"spec": {"volumeName": volume_name}})
    status = {"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}}
    _patch(cluster, "pvc", name, status, "--subresource=status")


def test_an_ephemeral_volume_waits_for_the_claim_that_is_made_for_its_pod(cluster: Cluster) -> None:
    """Named after the pod and the volume; one of that name that is not its own will not do, as to kube-scheduler."""
    cluster.nodes(2)
    try:
        cluster.schedule()
        wish = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "s",
        }
        template = {"volumeClaimTemplate": {"spec": wish}}
        cluster.apply(pod("p", volumes=[{"name": "scratch", "ephemeral": template}]))
        cluster.until_told("p", "its volume claim default/p-scratch is not there")
        cluster.apply(_claim("p-scratch", "s"), _volume("v-p", "n1", "s"))
        _bind(cluster, "p-scratch", "v-p")
        cluster.until_told("p", "default/p-scratch was not made for it")
        uid = cluster.pods()["p"]["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        _patch(cluster, "pvc", "p-scratch", {"metadata": {"ownerReferences": [owner]}})
        assert cluster.until_placed("p") == {"p": "n1"}
    finally:
        _remove(cluster)


def _remove(cluster: Cluster) -> None:
    """Take claims and volumes away; what protects them is asleep here."""
    cluster.end()
    cluster.plane.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    for what in ("pvc", "pv"):
        for item in cluster.plane.get(what)["items"]:
            _patch(cluster, what, item["metadata"]["name"], {"metadata": {"finalizers": None}})
        cluster.plane.kubectl("delete", what, "--all", "--wait=false")


def test_a_claim_gets_its_volume_where_its_pod_has_a_place(cluster: Cluster) -> None:
    """A volume that is made, after one node was given back; and a local one that is there and is kept for its claim."""
    cluster.nodes(2)
    cluster.apply(_class("later", "disks.example"), _class("local", NOBODY), _volume("v1", "n1", "local"))
    _patch(cluster, "pv", "v1", {"status": {"phase": "Available"}}, "--subresource=status")
    cluster.apply(_claim("made", "later"), _claim("kept", "local"))
    try:
        running = cluster.schedule()
        cluster.apply(pod("p", **_used("made")), pod("q", **_used("kept")))

        def node() -> str:
            notes = cluster.plane.get("pvc", "made")["metadata"].get("annotations", {})
            return str(notes.get(SELECTED, ""))

        first = cluster.until(node, "a node on the claim")
        told = cluster.until_told("p", "waits there until a volume is bound to default/made")
        assert first in told
        assert cluster.condition("p")["reason"] == "WaitingForVolumes"
        assert told in cluster.fairlead(running, "why", "pod/p").replace("\n", " ")
        _patch(cluster, "pvc", "made", {"metadata": {"annotations": {SELECTED: None}}})
        second = cluster.until(node, "another node on the claim")
        assert second != first
        assert cluster.places() == {}
        cluster.apply(_volume("v-made", second, "later"))
        _bind(cluster, "made", "v-made")
        cluster.until(lambda: cluster.plane.get("pv", "v1")["spec"].get("claimRef"), "the claim that v1 is kept for")
        assert cluster.plane.get("pv", "v1")["spec"]["claimRef"]["name"] == "kept"
        _bind(cluster, "kept", "v1")
        assert cluster.until_placed("p", "q") == {"p": second, "q": "n1"}
    finally:
        _remove(cluster)
        cluster.plane.kubectl("delete", "storageclasses", "later", "local")
