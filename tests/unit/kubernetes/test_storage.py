"""Volume claims: a pod waits until they are bound, and goes where its volumes can be used."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from invariants.books import check_books

from fairlead.config import load_text
from fairlead.kubernetes import storage, suiting_volumes
from fairlead.kubernetes.acts import Bind, Explain, KeepVolume
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.kinds import CLAIMS, CSI_NODES, NODES, PODS, STORAGE_CLASSES, VOLUMES, Kind
from fairlead.kubernetes.reflector import Changed, Deleted

QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}, {name: fixed, value: root.default}]
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}


class Cluster:
    """Two nodes, and whatever a test puts."""

    def __init__(self, begin: bool = True) -> None:
        self.driver = Driver(load_text(QUEUES))
        self.version = 0
        if begin:
            self.driver.begin(0)
        for name in ("n1", "n2"):
            room = {"allocatable": {"cpu": "4", "pods": "9"}}
            self.put(NODES, name, labels={"zone": name[1]}, status=room)

    def put(self, kind: Kind, name: str, labels: dict[str, str] | None = None, owner: str = "", **parts: Any) -> None:
        self.version += 1
        owners = [{"kind": "Pod", "name": owner, "uid": f"u-{owner}", "controller": True}] if owner else []
        meta: dict[str, Any] = {"name": name, "uid": f"u-{name}", "resourceVersion": str(self.version)}
        meta |= {"labels": labels, "ownerReferences": owners}
        if kind.namespaced:
            meta["namespace"] = "default"
        self.driver.take(Changed(kind, msgspec.convert({"metadata": meta, **parts}, kind.type)), 0)

    def pod(self, name: str, cpu: str = "1", **spec: Any) -> None:
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
        self.put(PODS, name, spec={"schedulerName": "fairlead", "containers": containers, **spec})

    def claim(self, name: str = "disk", volume: str = "", owner: str = "") -> None:
        phase = "Bound" if volume else "Pending"
        self.put(CLAIMS, name, owner=owner, spec={"volumeName": volume or None}, status={"phase": phase})

    def volume(self, name: str, zone: str = "") -> None:
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
        affinity = {"required": {"nodeSelectorTerms": terms}} if zone else None
        self.put(VOLUMES, name, spec={"nodeAffinity": affinity})

    def acts(self) -> tuple[dict[str, str], dict[str, str]]:
        """Who was bound where, and who was told what."""
        self.driver.schedule(0)
        check_books(self.driver.scheduler)
        acts = self.driver.acts()
        bound = {act.pod.name: act.node for act in acts if isinstance(act, Bind)}
        return bound, {act.pod.name: act.message for act in acts if isinstance(act, Explain)}


def test_a_pod_waits_until_its_claim_is_there_and_bound() -> None:
    """It is told so each time; others are not held up."""
    cluster = Cluster()
    cluster.pod("waits", volumes=[CLAIM])
    cluster.pod("other")
    bound, told = cluster.acts()
    assert list(bound) == ["other"]
    assert "claim default/disk is not there" in told["waits"]
    cluster.claim()
    bound, told = cluster.acts()
    assert bound == {}
    assert "default/disk is not bound to a volume" in told["waits"]
    cluster.volume("v")
    cluster.claim(volume="v")
    assert list(cluster.acts()[0]) == ["waits"]


@pytest.mark.parametrize("volume_first", [True, False])
def test_a_volume_can_be_used_on_some_nodes(volume_first: bool) -> None:
    """Its node affinity counts beside the pod's own, whichever of claim and volume is heard of first."""
    cluster = Cluster()
    cluster.pod("there", volumes=[CLAIM])
    own = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1"]}]},
    ]}}}  # fmt: skip
    cluster.pod("nowhere", volumes=[CLAIM], affinity=own)
    steps = [lambda: cluster.volume("v", "2"), lambda: cluster.claim(volume="v")]
    for step in steps if volume_first else reversed(steps):
        step()
    assert cluster.acts()[0] == {"there": "n2"}


def test_a_claim_for_one_pod_alone() -> None:
    """A generic ephemeral volume: the claim is named after pod and volume, and belongs to the pod."""
    cluster = Cluster()
    cluster.pod("p", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}])
    assert "default/p-scratch is not there" in cluster.acts()[1]["p"]
    cluster.volume("v")
    for owner in ("", "another"):
        cluster.claim("p-scratch", "v", owner)
        bound, told = cluster.acts()
        assert bound == {}
        assert "default/p-scratch was not made for it" in told.get("p", "") or owner
    cluster.claim("p-scratch", "v", "p")
    assert list(cluster.acts()[0]) == ["p"]


def test_devices_by_resource_claims_are_not_bound_blindly() -> None:
    """It waits and is told; one that was bound by somebody else uses its room."""
    cluster = Cluster()
    cluster.pod("p", resourceClaims=[{"name": "gpu"}])
    cluster.pod("runs", "4", nodeName="n1", resourceClaims=[{"name": "gpu"}])
    cluster.pod("other", "2")
    bound, told = cluster.acts()
    assert bound == {"other": "n2"}
    assert "resource claim gpu (resourceClaims) is not made yet" in told["p"]


def test_what_runs_runs_whatever_its_claims_are() -> None:
    """At a start: a bound pod is in the books at once, and one whose claim is bound enters."""
    cluster = Cluster(begin=False)
    cluster.volume("v", "1")
    cluster.claim(volume="v")
    cluster.pod("runs", "4", nodeName="n2", volumes=[{"name": "x", "persistentVolumeClaim": {"claimName": "lost"}}])
    cluster.pod("waits", "4", volumes=[CLAIM])
    cluster.driver.begin(0)
    assert cluster.acts()[0] == {"waits": "n1"}
    cluster.driver.take(Deleted(CLAIMS, "default", "disk", "u-disk"), 0)
    cluster.driver.take(Deleted(PODS, "default", "waits", "u-waits"), 0)
    assert cluster.acts() == ({}, {})


def test_a_claim_for_one_pod_is_used_by_one_pod() -> None:
    """Of two that want it the second waits until the first is gone, whichever node it could have."""
    cluster = Cluster()
    cluster.put(
        CLAIMS, "disk", spec={"volumeName": "v", "accessModes": ["ReadWriteOncePod"]}, status={"phase": "Bound"}
    )
    cluster.volume("v")
    cluster.pod("first", volumes=[CLAIM])
    cluster.pod("second", volumes=[CLAIM])
    assert list(cluster.acts()[0]) == ["first"]
    cluster.pod("first", nodeName="n1", volumes=[CLAIM])
    assert cluster.acts()[0] == {}
    cluster.driver.take(Deleted(PODS, "default", "first", "u-first"), 0)
    assert list(cluster.acts()[0]) == ["second"]


def test_a_claim_that_another_schedulers_pod_uses_is_taken() -> None:
    cluster = Cluster()
    cluster.put(
        CLAIMS, "disk", spec={"volumeName": "v", "accessModes": ["ReadWriteOncePod"]}, status={"phase": "Bound"}
    )
    cluster.volume("v")
    cluster.pod("theirs", schedulerName="other", nodeName="n1", volumes=[CLAIM])
    cluster.pod("ours", volumes=[CLAIM])
    assert cluster.acts()[0] == {}


@pytest.mark.parametrize(
    ("label", "value", "nodes"),
    [
        ("topology.kubernetes.io/zone", "b", ["n2", "n3"]),
        ("topology.kubernetes.io/zone", "b__c", ["n2", "n3"]),
        ("failure-domain.beta.kubernetes.io/zone", "a", ["n1", "n3"]),
        ("topology.kubernetes.io/region", "a", ["n3"]),
    ],
)
def test_a_volume_with_a_zone_by_label(label: str, value: str, nodes: list[str]) -> None:
    """It can be used in its zones, and where no zone is said at all (`n3`)."""
    cluster = Cluster()
    for name in ("n1", "n2", "n3"):
        zone = {"topology.kubernetes.io/zone": "ab"[int(name[1]) - 1]} if name != "n3" else None
        cluster.put(NODES, name, labels=zone, status={"allocatable": {"cpu": "4", "pods": "9"}})
    cluster.claim(volume="v")
    cluster.put(VOLUMES, "v", labels={label: value})
    for number in range(4):
        cluster.pod(f"p{number}", volumes=[CLAIM], cpu="2")
    assert sorted(set(cluster.acts()[0].values())) == nodes


def limited(cluster: Cluster, count: int, node: str = "n1") -> None:
    drivers = [{"name": "disk", "allocatable": {"count": count}}, {"name": "other"}]
    cluster.put(CSI_NODES, node, spec={"drivers": drivers})


def test_a_node_attaches_so_many_volumes_of_a_driver() -> None:
    """Those of pods that ran before count, of whatever scheduler; a limit that is raised lets the next one in."""
    cluster = Cluster()
    only = {"zone": "1"}
    for number in range(3):
        cluster.claim(f"c{number}", f"v{number}")
        cluster.put(VOLUMES, f"v{number}", spec={"csi": {"driver": "disk", "volumeHandle": str(number)}})
    disks = [[{"name": "data", "persistentVolumeClaim": {"claimName": f"c{number}"}}] for number in range(3)]
    cluster.pod("theirs", cpu="100m", schedulerName="other", nodeName="n1", volumes=disks[0])
    cluster.pod("runs", nodeName="n1", volumes=disks[0])
    limited(cluster, 1)
    cluster.pod("waits", volumes=disks[1], nodeSelector=only)
    cluster.pod("shares", volumes=disks[0], nodeSelector=only)
    assert list(cluster.acts()[0]) == ["shares"]
    limited(cluster, 2)
    assert list(cluster.acts()[0]) == ["waits"]
    cluster.pod("last", volumes=disks[2], nodeSelector=only, cpu="100m")
    assert cluster.acts()[0] == {}
    cluster.driver.take(Deleted(CSI_NODES, "", "n1", "u-n1"), 0)
    assert list(cluster.acts()[0]) == ["last"]


def test_a_volume_that_is_to_be_made_counts_for_its_provisioner() -> None:
    """What is known of it only after its pod runs counts from then on."""
    cluster = Cluster()
    cluster.put(STORAGE_CLASSES, "later", provisioner="disk", volumeBindingMode="WaitForFirstConsumer")
    for name in ("n1", "n2"):
        limited(cluster, 0 if name == "n2" else 1, name)
    cluster.claim("known", "v")
    cluster.pod("runs", nodeName="n1", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "known"}}])
    cluster.put(VOLUMES, "v", spec={"csi": {"driver": "disk", "volumeHandle": "1"}})
    cluster.put(CLAIMS, "disk", spec={"storageClassName": "later"}, status={"phase": "Pending"})
    cluster.pod("waits", volumes=[CLAIM])
    assert cluster.acts()[0] == {}
    partition = cluster.driver.scheduler.cluster.partitions["default"]
    assert {driver for driver, _ in partition.nodes.terrain.volumes.attached} == {"disk"}


def test_a_volume_that_its_pod_waited_for_on_its_node_counts_there() -> None:
    """One that was there before, of a class that makes none: only when the claim has it is its driver known."""
    cluster = Cluster()
    only = {"zone": "1"}
    limited(cluster, 1)
    cluster.put(STORAGE_CLASSES, "made", provisioner=storage.NOBODY, volumeBindingMode="WaitForFirstConsumer")
    for number in range(2):
        disk = {"csi": {"driver": "disk", "volumeHandle": str(number)}, "storageClassName": "made"}
        cluster.put(VOLUMES, f"v{number}", spec=disk, status={"phase": "Available"})
        cluster.put(CLAIMS, f"c{number}", spec={"storageClassName": "made"}, status={"phase": "Pending"})
    disks = [[{"name": "data", "persistentVolumeClaim": {"claimName": f"c{number}"}}] for number in range(2)]
    cluster.pod("first", volumes=disks[0], nodeSelector=only)
    cluster.acts()
    cluster.claim("c0", "v0")
    assert cluster.acts()[0] == {"first": "n1"}
    cluster.pod("first", volumes=disks[0], nodeSelector=only, nodeName="n1")
    cluster.claim("c1", "v1")
    cluster.pod("second", volumes=disks[1], nodeSelector=only)
    assert cluster.acts()[0] == {}


def test_volumes_are_not_looked_through_for_each_claim_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each volume once for all claims that want the same, not users times volumes for each event."""
    looks: list[object] = []
    unchanged = suiting_volumes.matches

    def counted(*asked: Any) -> bool:
        looks.append(asked)
        return unchanged(*asked)

    monkeypatch.setattr(suiting_volumes, "matches", counted)
    cluster = Cluster()
    cluster.put(STORAGE_CLASSES, "local", provisioner=storage.NOBODY, volumeBindingMode="WaitForFirstConsumer")
    local = {"storageClassName": "local", "nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1"]}]},
    ]}}}  # fmt: skip
    for number in range(30):
        cluster.put(VOLUMES, f"v{number}", spec=local, status={"phase": "Available"})
        cluster.put(CLAIMS, f"c{number}", spec={"storageClassName": "local"}, status={"phase": "Pending"})
        cluster.pod(f"p{number}", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": f"c{number}"}}])
    looks.clear()
    other = {"namespace": "other", "name": "c", "uid": "u"}
    cluster.put(VOLUMES, "v0", spec={**local, "claimRef": other}, status={"phase": "Available"})
    assert len(looks) < 60
    cluster.put(VOLUMES, "v0", spec={**local, "claimRef": None}, status={"phase": "Available"})
    for number in range(1, 30):
        cluster.driver.take(Deleted(VOLUMES, "", f"v{number}", f"u-v{number}"), 0)
    assert "no free volume of class local" not in str(cluster.acts()[1])
    cluster.driver.take(Deleted(VOLUMES, "", "v0", "u-v0"), 0)
    assert "no free volume of class local" in cluster.acts()[1]["p1"]


def test_a_volume_that_is_made_for_one_claim_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20,000 volumes each that was made, bound or removed took 20 ms, as all claims and volumes were looked at."""
    looks: list[object] = []
    monkeypatch.setattr(suiting_volumes, "matches", lambda *asked: looks.append(asked) or True)
    cluster = Cluster()
    cluster.put(STORAGE_CLASSES, "fast", provisioner="disk", volumeBindingMode="WaitForFirstConsumer")
    for number in range(30):
        cluster.put(VOLUMES, f"v{number}", spec={"storageClassName": "fast"}, status={"phase": "Available"})
        cluster.put(CLAIMS, f"c{number}", spec={"storageClassName": "fast"}, status={"phase": "Pending"})
        cluster.pod(f"p{number}", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": f"c{number}"}}])
    looks.clear()
    book = cluster.driver.informer.storage
    for phase in ("Pending", "Bound"):
        meta = {"name": "made", "uid": "u-made"}
        spec = {"storageClassName": "fast", "claimRef": {"namespace": "default", "name": "c0", "uid": "u-c0"}}
        made = msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": phase}}, VOLUMES.type)
        assert book.take(Changed(VOLUMES, made)) == (["u-p0"] if phase == "Pending" else [])
    cluster.put(CLAIMS, "c0", spec={"storageClassName": "fast", "volumeName": "made"}, status={"phase": "Bound"})
    assert book.take(Deleted(VOLUMES, "", "made", "u-made")) == ["u-p0"]
    cluster.put(CLAIMS, "c30", spec={"storageClassName": "fast"}, status={"phase": "Pending"})
    cluster.pod("p30", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c30"}}])
    assert looks == []


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(("wanted", "chosen"), [("gold", "n2"), ("", "n1")])
def test_a_volume_of_another_attributes_class_is_not_chosen(wanted: str, chosen: str, kept: bool) -> None:
    """As kube-scheduler: none is a class of its own, and one that is kept for the claim is passed over as well."""
    cluster = Cluster()
    local = {"provisioner": storage.NOBODY, "volumeBindingMode": storage.WAITS}
    for_all = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}
    cluster.put(STORAGE_CLASSES, "local", **local)
    for name, attributes in (("n1", None), ("n2", "gold")):
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [name[1]]}]}]
        affinity = {"required": {"nodeSelectorTerms": terms}}
        given = {"nodeAffinity": affinity, "capacity": {"storage": "9Gi"}, "volumeAttributesClassName": attributes}
        if kept and name != chosen:
            given["claimRef"] = {"namespace": "default", "name": "disk", "uid": "u-disk"}
        cluster.put(VOLUMES, f"v-{name}", spec={**for_all, **given}, status={"phase": "Available"})
    wish = {**for_all, "resources": {"requests": {"storage": "5Gi"}}, "volumeAttributesClassName": wanted}
    cluster.put(CLAIMS, "disk", spec=wish, status={"phase": "Pending"})
    cluster.pod("p", volumes=[CLAIM])
    cluster.driver.schedule(0)
    assert [(act.node, act.volume) for act in cluster.driver.acts() if isinstance(act, KeepVolume)] == [
        (chosen, f"v-{chosen}")
    ]
