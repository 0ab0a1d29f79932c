"""Jobs that start as a whole, with Kubernetes' own job controller; and pod groups, by definitions of our own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from testbed.cluster import Cluster, Manifest, pod, priority_class
from testbed.control_plane import ControlPlane

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]


@pytest.fixture
def jobs(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster in which jobs get their pods."""
    cluster.plane.start_job_controller()
    try:
        yield cluster
    finally:
        cluster.plane.running.pop("job-controller").stop()


def job(name: str, parallelism: int, cpu: str, priority: str = "") -> Manifest:
    """A suspended job with the label by which it is started as a whole."""
    spec = pod("x", cpu, priority=priority)["spec"] if priority else pod("x", cpu)["spec"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": {"fairlead.io/queue": "root.default"}},
        "spec": {
            "suspend": True,
            "parallelism": parallelism,
            "completions": parallelism,
            "template": {"spec": {**spec, "restartPolicy": "Never"}},
        },
    }


def pods_of(cluster: Cluster, name: str) -> list[str]:
    """The pods of a job that have a node."""
    return [each for each in cluster.places() if each.startswith(f"{name}-")]


def test_a_job_is_admitted_preempted_as_a_whole_and_admitted_again(jobs: Cluster) -> None:
    """Nothing of it runs until all of it has room; what has a higher priority gets that room back as one."""
    jobs.nodes(1, cpu="2")
    jobs.apply(priority_class("urgent", 1000), job("train", 2, "2"))
    running = jobs.schedule()
    why = jobs.until(
        lambda: [e["note"] for e in jobs.events("train") if e["reason"] == "FailedScheduling"], "why it waits"
    )
    assert "cpu" in why[0]
    assert jobs.plane.get("job", "train")["spec"]["suspend"] is True
    jobs.nodes(2, cpu="2")
    jobs.until(lambda: len(pods_of(jobs, "train")) == 2, "both of its pods")
    jobs.apply(job("now", 1, "2", priority="urgent"))
    jobs.until(lambda: len(pods_of(jobs, "now")) == 1, "the urgent one")
    assert jobs.plane.get("job", "train")["spec"]["suspend"] is True
    jobs.until(lambda: not pods_of(jobs, "train"), "the end of its pods")
    described = jobs.plane.kubectl("describe", "job", "train")
    assert "Admitted" in described
    assert "Preempted by default/now" in described
    jobs.until(lambda: "default/train[" in jobs.fairlead(running, "ls"), "what stands in for its pods")
    assert "cpu" in jobs.fairlead(running, "why", "job/train")
    jobs.plane.kubectl("delete", "job", "now", "--cascade=background")
    (pod_of,) = pods_of(jobs, "now")
    jobs.plane.kubectl("delete", "pod", pod_of, "--wait=false")
    jobs.until(lambda: len(pods_of(jobs, "train")) == 2, "both of its pods again")


def definition(kind: str, group: str, version: str) -> Manifest:
    """A custom resource that takes whatever is written into it."""
    plural = f"{kind.lower()}s"
    schema: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.fixture
def pod_groups(plane: ControlPlane) -> Iterator[None]:
    """The server has pod groups of both kinds."""
    made = [
        definition("PodGroup", "scheduling.x-k8s.io", "v1alpha1"),
        definition("PodGroup", "scheduling.volcano.sh", "v1beta1"),
    ]
    plane.define(*made)
    yield
    plane.kubectl("delete", "crd", *(each["metadata"]["name"] for each in made))


@pytest.mark.parametrize(
    ("version", "mark"),
    [
        ("scheduling.x-k8s.io/v1alpha1", {"labels": {"scheduling.x-k8s.io/pod-group": "ring"}}),
        ("scheduling.volcano.sh/v1beta1", {"notes": {"scheduling.k8s.io/group-name": "ring"}}),
    ],
)
def test_a_pod_group_starts_together(cluster: Cluster, pod_groups: None, version: str, mark: dict[str, Any]) -> None:
    """As the scheduler-plugins and Volcano write it: two of three pods run never alone."""
    cluster.nodes(1, cpu="2")
    group = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "ring", "namespace": "default"}}
    cluster.apply({**group, "spec": {"minMember": 3}}, pod("a", **mark), pod("b", **mark))
    cluster.schedule()
    cluster.until_told("a", "2 of the 3 pods are there")
    cluster.apply(pod("c", **mark))
    cluster.until_told("a", "waits for room for 3 pods")
    assert not cluster.places()
    cluster.nodes(2, cpu="2")
    cluster.until_placed("a", "b", "c")


def test_what_the_server_adds_to_pods_is_room_that_is_kept(jobs: Cluster) -> None:
    """A request by a limit range, as the server completes that itself, and the overhead of a runtime class."""
    usual = {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "usual", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}}]},
    }  # fmt: skip
    box = {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "box"}, "handler": "box",
        "overhead": {"podFixed": {"cpu": "1"}},
    }  # fmt: skip
    made = job("train", 2, "1")
    made["spec"]["template"]["spec"] |= {"runtimeClassName": "box"}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
    jobs.nodes(2, cpu="2")
    jobs.apply(usual, box, made)
    try:
        running = jobs.schedule()
        jobs.until(lambda: "need cpu 6 together" in jobs.fairlead(running, "why", "job/train"), "why it waits")
        jobs.nodes(4, cpu="3")
        jobs.until(lambda: len(pods_of(jobs, "train")) == 2, "both of its pods")
    finally:
        jobs.plane.kubectl("delete", "limitrange/usual", "runtimeclass/box")
