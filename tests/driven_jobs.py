"""Jobs and pod groups of an API server, given to a driver as changes; the job controller is the test."""

from __future__ import annotations

from typing import Any

from driven_cluster import PRIORITY, Cluster, binds

from fairlead.kubernetes.acts import Record, Suspend, at_server
from fairlead.kubernetes.kinds import JOBS, POD_GROUPS, PODS

QUEUES = PRIORITY.replace(
    "queues: [{name: default}]", "queues: [{name: default}, {name: a, resources: {max: {vcore: 4}}}]"
)


def template(cpu: str, priority_class: str = "", scheduler: str = "fairlead") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "schedulerName": scheduler,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
    }
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"metadata": {"labels": {"app": "train"}}, "spec": spec}


class Jobs(Cluster):
    """A cluster with jobs; its job controller is `make_pods`."""

    def job(
        self,
        name: str,
        parallelism: int = 2,
        cpu: str = "2",
        *,
        suspend: bool = True,
        queue: str = "root.default",
        **more: Any,
    ) -> None:
        meta = {"name": name, "namespace": "default", "uid": f"j-{name}", "labels": {"fairlead.io/queue": queue}}
        meta |= {"annotations": more.pop("notes", {})}
        spec = {"suspend": suspend, "parallelism": parallelism, "template": template(cpu, **more.pop("template", {}))}
        status = more.pop("status", {})
        self.put(JOBS, {"metadata": meta, "spec": {**spec, **more}, "status": status})

    def member(self, job: str, number: int, cpu: str = "2", node: str = "", priority: int = 0) -> None:
        self.pod(f"{job}-{number}", cpu, priority, node, ownerReferences=owned(job))

    def in_group(self, name: str, group: str, cpu: str = "1", **more: Any) -> None:
        self.pod(name, cpu, labels={"scheduling.x-k8s.io/pod-group": group}, **more)

    def group(self, name: str, size: int) -> None:
        meta = {"name": name, "namespace": "default", "uid": f"g-{name}"}
        self.put(POD_GROUPS, {"metadata": meta, "spec": {"minMember": size}})

    def acts(self) -> list[Any]:
        """As the API server hears of them, until nothing more follows."""
        found = []
        while acts := super().acts():
            found += [act for act in map(at_server, acts) if act is not None]
        return found

    def waiting(self) -> int:
        return len(self.driver.informer.waiting)


def suspensions(acts: list[Any]) -> dict[str, bool]:
    return {act.job.name: act.suspend for act in acts if isinstance(act, Suspend)}


def records(acts: list[Any], reason: str) -> list[str]:
    return [act.message for act in acts if isinstance(act, Record) and act.reason == reason]


def owned(job: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"j-{job}", "controller": True}]


def at_work(parallelism: int = 2, completions: int | None = 5, **more: Any) -> Jobs:
    """A job with so many pods at a time that run, and as much other work that waits for their room."""
    cluster = Jobs(QUEUES)
    for number in range(parallelism):
        cluster.node(f"n{number}", "2")
    cluster.job("train", parallelism, completions=completions, **more)
    cluster.acts()
    cluster.job("train", parallelism, completions=completions, suspend=False, **more)
    for number in range(parallelism):
        cluster.member("train", number)
    cluster.bind_all(cluster.acts())
    for number in range(parallelism):
        cluster.pod(f"other{number}", "2")
    assert binds(cluster.acts()) == {}
    return cluster


def end(cluster: Jobs, name: str, phase: str = "Succeeded") -> None:
    cluster.put(PODS, cluster.things["pods", name] | {"status": {"phase": phase}})
