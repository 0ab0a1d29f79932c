"""Beside other schedulers, and with pods, namespaces and budgets that change: what comes out as with kube-scheduler."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testbed.cluster import Cluster, Manifest, pod, priority_class
from testbed.control_plane import node_manifest

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]
WEB = {"app": "web"}


def theirs(name: str, node: str = "n0", **more: Any) -> Manifest:
    """A pod that another scheduler has placed."""
    return pod(name, "100m", schedulerName="default-scheduler", nodeName=node, **more)


def with_web(kind: str) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": WEB}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_pods_of_another_scheduler_are_seen_whole(cluster: Cluster) -> None:
    """Their host ports, their anti-affinity, and their labels; each of them when they come and when they go."""
    port = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    cluster.nodes(1)
    cluster.apply(theirs("server", **port), theirs("loner", **with_web("podAntiAffinity")))
    cluster.schedule()
    cluster.apply(
        pod("port", "100m", **port),
        pod("web", "100m", labels=WEB),
        pod("friend", "100m", **with_web("podAffinity")),
        pod("free", "100m"),
    )
    cluster.until_placed("free")
    cluster.until_told("port", "host ports in use")
    cluster.until_told("web", "keeps it away")
    cluster.until_told("friend", "wants to be with")
    for name in ("server", "loner"):
        cluster.plane.kubectl("delete", "pod", name, "--wait=false")
    cluster.until_placed("port", "web", "friend")


def test_changes_are_noticed(cluster: Cluster) -> None:
    """A toleration that a waiting pod gets, labels of running pods of both schedulers, and of a namespace."""
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    cluster.apply(node_manifest("n0", taints=[taint]), node_manifest("n1"))
    by_team = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    by_team["namespaceSelector"] = {"matchLabels": {"team": "beside"}}
    required = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [by_team]}}
    cluster.apply(theirs("theirs", "n1"), theirs("db", "n1", labels={"app": "db"}))
    cluster.schedule()
    cluster.apply(
        pod("tolerant", "100m", nodeSelector={"kubernetes.io/hostname": "n0"}),
        pod("friend", "100m", **with_web("podAffinity")),
        pod("team", "100m", affinity=required),
    )
    for name, text in (("tolerant", "taint"), ("friend", "wants to be with"), ("team", "wants to be with")):
        cluster.until_told(name, text)
    more = json.dumps({"spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}})
    cluster.plane.kubectl("patch", "pod", "tolerant", "--type=strategic", "-p", more)
    cluster.plane.kubectl("label", "pod", "theirs", "app=web")
    cluster.plane.kubectl("label", "namespace", "default", "team=beside")
    try:
        places = cluster.until_placed("tolerant", "friend", "team")
    finally:
        cluster.plane.kubectl("label", "namespace", "default", "team-")
    assert (places["tolerant"], places["friend"], places["team"]) == ("n0", "n1", "n1")


def test_a_budget_leaves_what_its_controller_counted(cluster: Cluster) -> None:
    """Nothing may be disrupted of `web`, as one of its pods is not healthy: the dearer pod elsewhere is stopped."""
    cluster.nodes(2, cpu="3")
    spec = {"minAvailable": 2, "selector": {"matchLabels": WEB}}
    meta = {"name": "web", "namespace": "default"}
    cluster.apply(
        priority_class("high", 1000), priority_class("middle", 500), priority_class("low", 10),
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec},
        *(pod(f"web-{n}", labels=WEB, priority="low", nodeSelector={"kubernetes.io/hostname": "n0"}) for n in range(3)),
        pod("dear", "3", priority="middle", nodeSelector={"kubernetes.io/hostname": "n1"}),
    )  # fmt: skip
    counted = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2}
    status = json.dumps({"status": {**counted, "expectedPods": 3}})
    cluster.plane.kubectl("patch", "pdb", "web", "--subresource=status", "--type=merge", "-p", status)
    cluster.schedule()
    cluster.until_placed("dear", "web-0", "web-1", "web-2")
    cluster.apply(pod("needs", "1", priority="high"))
    assert cluster.until_placed("needs")["needs"] == "n1"
    assert {"web-0", "web-1", "web-2"} <= set(cluster.places())


def test_a_resize_counts_what_runs(cluster: Cluster) -> None:
    """A refused one what was granted; a shrink that is not done yet what is in use."""
    cluster.nodes(1)
    cluster.schedule()
    cluster.apply(pod("grows", "1"))
    cluster.until_placed("grows")
    cluster.until(lambda: cluster.pods()["grows"]["status"].get("phase") == "Running", "it runs")

    def resize(wants: str, has: str, why: str = "") -> None:
        container = {"name": "sleep", "resources": {"requests": {"cpu": wants, "memory": "64Mi"}}}
        change = json.dumps({"spec": {"containers": [container]}})
        cluster.plane.kubectl("patch", "pod", "grows", "--subresource=resize", "-p", change)
        amounts = {"cpu": has, "memory": "64Mi"}
        state = {"name": "sleep", "ready": True, "restartCount": 0, "image": "busybox", "imageID": "x"}
        status: dict[str, Any] = {
            "containerStatuses": [{**state, "allocatedResources": amounts, "resources": {"requests": amounts}}]
        }
        if why:
            status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": why}]
        cluster.plane.kubectl(
            "patch", "pod", "grows", "--subresource=status", "--type=strategic", "-p", json.dumps({"status": status})
        )

    resize("4", "1", "Infeasible")  # What no node could hold a server of today refuses itself.
    cluster.apply(pod("beside", "2"))
    cluster.until_placed("beside")
    cluster.plane.kubectl("delete", "pod", "beside", "--wait=false")
    resize("1", "3", "Deferred")
    cluster.until(lambda: "beside" not in cluster.pods(), "it is gone")
    cluster.apply(pod("small", "1"), pod("waits", "1"))
    cluster.until(lambda: len({"small", "waits"} & set(cluster.places())) == 1, "room for one")
    (last,) = {"small", "waits"} - set(cluster.places())
    cluster.until_told(last, "")
    resize("1", "1", "Deferred")
    cluster.until_placed("small", "waits")
