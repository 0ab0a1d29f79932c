"""A cluster as a place: manifests through kubectl, our command as a process, and what the API server says was done.

Decides how a workload is written as manifests. One request is in flight at a time (`--at-once 1`), so that the server
hears of placements in the order in which they were decided, save for pods to which something was told before (why they
wait, where room is held): that is sent first, and others get in between. What plays the nodes stands still
meanwhile: it would bring pods back to life that have just ended; and pods have no grace, so that they go at once.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from typing import Any

from places.course import PLACEHOLDER, Course, Decided, Happening
from places.workload import PODS_MAX, JobWords, NodeWords, Workload
from testbed.cluster import Cluster, Manifest, Running, pod, priority_class
from testbed.control_plane import ControlPlane, node_manifest
from testbed.watching import Listener

PATIENCE_S = 60.0
MARK = "places/job"
"""The label by which pods of the workload are told from placeholders."""
YUNIKORN = "yunikorn.apache.org/"


class Onlooker:
    """Watches all pods from outside; what it sees is put down in order."""

    def __init__(self, plane: ControlPlane) -> None:
        self.decided = Decided()
        self._here: dict[str, dict[str, Any]] = {}
        self._listener = Listener(plane, self._take)
        self.close = self._listener.stop

    def _take(self, kind: str, item: Manifest) -> None:
        uid, labels = item["metadata"]["uid"], item["metadata"]["labels"]
        before = self._here.get(uid, {})
        self._here[uid] = item
        name = item["metadata"]["name"] if MARK in labels else f"{labels['applicationId']}{PLACEHOLDER}"
        node = item["spec"].get("nodeName", "")
        if node and not before.get("spec", {}).get("nodeName"):
            self.decided.place(name, node)
            if _was_told(before):
                self.decided.loose.add(name)
        if kind == "DELETED" and MARK in labels:
            conditions = item.get("status", {}).get("conditions", ())
            if any(each["type"] == "DisruptionTarget" for each in conditions):
                self.decided.stop(name)


def _was_told(item: Manifest) -> bool:
    status = item.get("status", {})
    return bool(status.get("nominatedNodeName") or status.get("conditions"))


def run(cluster: Cluster, workload: Workload, expected: Course) -> Course:
    """Do what the course says, waiting each time until as much was decided as elsewhere.

    What comes first is there before the scheduler is: it has to take all of it in before it decides.
    """
    assert [j.name for j in expected[0][0].submit] == sorted(j.name for j in expected[0][0].submit), "a list is sorted"
    kwok = cluster.plane.running["kwok"].process
    kwok.send_signal(signal.SIGSTOP)
    cluster.apply(*(_node(node) for node in workload.nodes), *_classes(workload))
    onlooker = Onlooker(cluster.plane)
    course: Course = []
    running: Running | None = None
    try:
        for happening, elsewhere in expected:
            decided = onlooker.decided = Decided()
            known = _known(running) if running is not None and not len(elsewhere) else 0
            _happen(cluster, happening)
            if running is None:
                running = cluster.schedule(workload.queues, "--at-once", "1")
            change = len(happening.submit) - bool(happening.end)
            end = time.monotonic() + PATIENCE_S
            while len(decided) < len(elsewhere) or (not len(elsewhere) and _known(running) != known + change):
                if time.monotonic() > end:
                    return [*course, (happening, decided)]
                time.sleep(0.02)
            _come_back(cluster, workload, decided)
            course.append((happening, decided))
        time.sleep(1.5)
        return course
    finally:
        onlooker.close()
        kwok.send_signal(signal.SIGCONT)


def _happen(cluster: Cluster, happening: Happening) -> None:
    manifests = [each for job in happening.submit for each in pods(job)]
    if manifests:
        cluster.plane.kubectl("create", "-f", "-", manifest=manifests)
    else:
        done = '{"status": {"phase": "Succeeded"}}'
        cluster.plane.kubectl("patch", "pod", happening.end, "--subresource=status", "--type=merge", "-p", done)


def _come_back(cluster: Cluster, workload: Workload, decided: Decided) -> None:
    """Idle work that was stopped goes back to its queue: on a cluster its owner makes the pod anew."""
    for name in decided.stopped:
        job = workload.job_of(name)
        if job.idle:
            again = [each for each in pods(job) if each["metadata"]["name"] == name]
            cluster.plane.kubectl("create", "-f", "-", manifest=again)


def _known(running: Running) -> int:
    """How many pods the scheduler knows: whether it has heard of what happened."""
    lines = running.read("/metrics").splitlines()
    return int(sum(float(line.split()[1]) for line in lines if line.startswith("fairlead_kubernetes_pods{")))


# -- manifests ---------------------------------------------------------------------------------------------------------


def pods(job: JobWords) -> Iterator[Manifest]:
    """The pods of a job, in YuniKorn's words where Kubernetes has none."""
    notes = {f"{YUNIKORN}user.info": json.dumps({"user": job.user, "groups": [job.user]})}
    if job.spare:
        notes[f"{YUNIKORN}allow-preemption"] = "false"
    if job.gang:
        needs = {"cpu": str(job.vcore)}
        group = {"name": "all", "minMember": len(job.names), "minResource": needs, "nodeSelector": job.select}
        notes |= {f"{YUNIKORN}task-group-name": "all", f"{YUNIKORN}task-groups": json.dumps([group])}
    labels = {"applicationId": job.name, "queue": job.queue, MARK: job.name, **job.labels}
    if job.idle:
        labels["fairlead.io/idle"] = "true"
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 0}
    if job.cls:
        spec["priority"] = job.cls
    if job.select:
        spec["nodeSelector"] = job.select
    if job.tolerate:
        spec["tolerations"] = [{"key": key, "operator": "Exists"} for key in job.tolerate]
    if job.apart:
        terms = [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {key: value}}}
            for key, value in sorted(job.apart.items())
        ]
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    resources = {"resources": {"requests": {"cpu": str(job.vcore)}}}
    for name in job.names:
        yield pod(name, labels=dict(labels), notes=dict(notes), container=dict(resources), **spec)


def _node(node: NodeWords) -> Manifest:
    taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.taints]
    more: dict[str, Any] = {"taints": taints} if taints else {}
    return node_manifest(node.name, cpu=str(node.vcore), pods=PODS_MAX, labels=node.labels, **more)


def _classes(workload: Workload) -> Iterator[Manifest]:
    for given in workload.classes:
        made = priority_class(given["name"], given["value"], given.get("preemptionPolicy", "PreemptLowerPriority"))
        yield made | {"globalDefault": given.get("globalDefault", False)}
