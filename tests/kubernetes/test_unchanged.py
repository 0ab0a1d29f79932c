"""Manifests written for YuniKorn run as they are, by its scheduler's name: whatever they use to say whose a pod is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testbed.cluster import Cluster, Manifest, Running, pod

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]

NAME = "yunikorn"
Y = "yunikorn.apache.org/"
QUEUES = """
partitions:
  - name: default
    placementrules:
      - {name: user, create: false}
      - {name: provided, create: true}
      - {name: tag, value: namespace, create: true}
    queues:
      - {name: root, submitacl: "*", queues: [{name: ada_dot_l}]}
"""


def theirs(name: str, **more: Any) -> Manifest:
    """A pod for YuniKorn's scheduler."""
    return pod(name, more.pop("cpu", "100m"), schedulerName=NAME, **more)


def namespace(name: str, **notes: str) -> Manifest:
    annotations = {Y + key.replace("__", "."): value for key, value in notes.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


def _queues(running: Running) -> dict[str, str]:
    """The queue of each application."""
    told = json.loads(running.read("/ws/v1/partition/default/applications/active"))
    return {each["applicationID"]: each["queueName"] for each in told}


def test_whose_a_pod_is(cluster: Cluster) -> None:
    """By old labels, new labels, annotations, Spark's label, the user, or its namespace; for all of them a node."""
    cluster.nodes(1, cpu="8")
    cluster.apply(namespace("lab"))
    ada = {f"{Y}user.info": json.dumps({"user": "ada.l", "groups": ["staff"]})}
    cluster.apply(
        theirs("old", labels={"applicationId": "old", "queue": "root.sandbox"}),
        theirs("new", labels={f"{Y}app-id": "new", f"{Y}queue": "root.sandbox", "applicationId": "x", "queue": "x"}),
        theirs(
            "noted", labels={"applicationId": "x", "queue": "x"}, notes={f"{Y}app-id": "noted", f"{Y}queue": "sand"}
        ),
        theirs("spark", labels={"spark-app-selector": "spark-1", "queue": "root.sandbox"}),
        theirs("user", labels={"applicationId": "hers", "queue": "root.sandbox"}, notes=ada),
        theirs("plain", namespace="lab"),
    )
    running = cluster.schedule(QUEUES, "--scheduler-name", NAME)
    cluster.until_placed("old", "new", "noted", "spark", "user")
    cluster.until_placed("plain", namespace="lab")
    assert _queues(running) == {
        "old": "root.sandbox",
        "new": "root.sandbox",
        "noted": "root.sand",
        "spark-1": "root.sandbox",
        "hers": "root.ada_dot_l",
        "yunikorn-lab-autogen": "root.lab",
    }


def test_a_namespace_states_its_quota(cluster: Cluster) -> None:
    """The queue that is made for it has that maximum, and a parent if it names one."""
    cluster.nodes(1, cpu="8")
    cluster.apply(namespace("small", namespace__quota=json.dumps({"cpu": "200m"})))
    cluster.apply(*(theirs(f"p-{n}", namespace="small", labels={"applicationId": f"a-{n}"}) for n in range(3)))
    cluster.schedule(QUEUES, "--scheduler-name", NAME)
    cluster.until(lambda: len(cluster.places("small")) == 2, "two of three")
    (waits,) = {f"p-{n}" for n in range(3)} - set(cluster.places("small"))
    cluster.until_told(waits, "root.small", namespace="small")


def test_a_driver_declares_the_gang_of_its_executors(cluster: Cluster) -> None:
    """Two groups, empty words for what is not restricted, and executors that only name their group."""
    cluster.nodes(2, cpu="2")
    nothing: dict[str, Any] = {"nodeSelector": {}, "tolerations": [], "affinity": {}, "topologySpreadConstraints": []}
    groups = [
        {"name": "driver", "minMember": 1, "minResource": {"cpu": "1", "memory": "64Mi"}, **nothing},
        {"name": "executor", "minMember": 2, "minResource": {"cpu": "1", "memory": "64Mi"}},
    ]
    said = {
        f"{Y}schedulingPolicyParameters": "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard",
        f"{Y}task-group-name": "driver",
        f"{Y}task-groups": json.dumps(groups, indent=2),
    }
    labels = {"spark-app-selector": "spark-7", "queue": "root.sandbox"}
    cluster.schedule(QUEUES, "--scheduler-name", NAME)
    cluster.apply(theirs("driver", cpu="1", labels=labels, notes=said))
    cluster.until_placed("driver")
    only = {f"{Y}task-group-name": "executor"}
    cluster.apply(*(theirs(f"exec-{n}", cpu="1", labels=labels, notes=only) for n in range(2)))
    cluster.until_placed("exec-0", "exec-1")
    cluster.until(lambda: set(cluster.pods()) == {"driver", "exec-0", "exec-1"}, "the end of the placeholders")


def test_a_claim_is_waited_for(cluster: Cluster) -> None:
    """A pod whose volume is not there is not bound blindly; with the volume it goes where that can be used."""
    cluster.nodes(2)
    meta = {"name": "disk", "namespace": "default"}
    claim = {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v",
    }  # fmt: skip
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}]
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "local": {"path": "/mnt"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }  # fmt: skip
    wants = [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]
    cluster.apply(theirs("writer", volumes=wants, labels={"applicationId": "w", "queue": "root.sandbox"}))
    cluster.schedule(QUEUES, "--scheduler-name", NAME)
    try:
        cluster.until_told("writer", "claim default/disk is not there")
        cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim}, volume)
        cluster.until_told("writer", "is not bound to a volume")
        bound = '{"status": {"phase": "Bound"}}'  # as the volume controller does, which is not here
        cluster.plane.kubectl("patch", "pvc", "disk", "--subresource=status", "--type=merge", "-p", bound)
        assert cluster.until_placed("writer") == {"writer": "n1"}
    finally:
        for thing in (("pvc", "disk"), ("pv", "v")):
            cluster.plane.kubectl(
                "patch", *thing, "--type=merge", "-p", '{"metadata": {"finalizers": null}}', check=False
            )
            cluster.plane.kubectl("delete", *thing, "--wait=false", "--ignore-not-found")
