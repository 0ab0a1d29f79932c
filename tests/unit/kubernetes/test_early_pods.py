"""Pods that are heard of before their job, with the real scheduler behind a driver: both are watched apart."""

from __future__ import annotations

import pytest
from driven_cluster import binds
from driven_jobs import QUEUES, Jobs, owned, template

from fairlead.kubernetes.kinds import JOB_SETS, JOBS
from fairlead.kubernetes.reflector import Deleted, Synced
from fairlead.runtime.refusals import Refusal
from fairlead.service.kubernetes.pods import ClusterMoment


def pending(cluster: Jobs, queue: str) -> int:
    root = cluster.driver.scheduler.cluster.partitions["default"].root
    return sum(app.pending_count for app in root.children[queue].applications.values())


def used(cluster: Jobs, queue: str) -> int:
    return cluster.driver.scheduler.cluster.partitions["default"].root.children[queue].allocated.get("vcore", 0)


def test_a_pod_that_is_heard_of_before_its_job_waits_for_it_and_runs_in_its_queue() -> None:
    """It ran in its namespace's queue for as long as it lived, and the job had no part in it."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    cluster.member("train", 0)
    cluster.member("train", 1)
    assert binds(cluster.acts()) == {}
    with pytest.raises(Refusal, match="its job is not known yet"):
        ClusterMoment(cluster.driver).pod("default/train-0")
    cluster.job("train", queue="root.a", suspend=False)
    cluster.bind_all(cluster.acts())
    assert (used(cluster, "default"), used(cluster, "a")) == (0, 4_000)


def test_a_pod_of_a_job_without_our_label_goes_on_once_that_is_known() -> None:
    """Nothing else is known of such a job; the pods that come behind it wait no more."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    cluster.member("plain", 0)
    assert binds(cluster.acts()) == {}
    plain = {"metadata": {"name": "plain", "namespace": "default", "uid": "j-plain"}, "spec": {"parallelism": 2}}
    cluster.put(JOBS, plain)
    cluster.member("plain", 1)
    assert sorted(binds(cluster.acts())) == ["plain-0", "plain-1"]


def test_an_early_pod_that_is_gone_or_has_a_node_waits_no_more() -> None:
    """What has a node uses its room, whatever is known of its job; what is gone does not come with the job."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    for number in range(3):
        cluster.member("train", number, "1")
    cluster.gone("train-0")
    cluster.member("train", 1, "1", node="n1")
    cluster.pod("train-2", "1", ownerReferences=owned("train"), deletionTimestamp="2026-01-01T00:00:00Z")
    assert cluster.used("n1") == 1_000
    cluster.job("train", suspend=False)
    assert binds(cluster.acts()) == {}
    assert list(cluster.driver.informer.pod_store.by_uid) == ["u-train-1"]


def test_the_job_of_another_kind_of_the_same_name_is_not_waited_for() -> None:
    """Volcano's are called so too, and are not watched."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    theirs = [{**owner, "apiVersion": "batch.volcano.sh/v1alpha1"} for owner in owned("train")]
    cluster.pod("p", ownerReferences=theirs)
    assert binds(cluster.acts()) == {"p": "n1"}


def test_a_pod_that_waits_goes_on_waiting_when_its_job_is_gone() -> None:
    """It goes with its job, or is left to itself by whoever deleted that: until then nothing of it is forgotten."""
    cluster = Jobs(QUEUES)
    cluster.job("train", suspend=False)
    cluster.member("train", 0)
    cluster.driver.take(Deleted(JOBS, "default", "train", "j-train"), 0)
    cluster.member("train", 0)
    assert cluster.waiting() == 1


def test_a_pod_that_is_heard_of_before_its_set_of_jobs_is_part_of_it_while_it_waits() -> None:
    """A cluster may have no such sets, so it is not waited for. What has a node stays in the queue that it came to."""
    cluster = Jobs(QUEUES)
    labels = {"jobset.sigs.k8s.io/jobset-name": "sweep", "jobset.sigs.k8s.io/replicatedjob-name": "w"}
    for number in range(2):
        cluster.pod(f"w-{number}", "2", labels=labels)
    assert pending(cluster, "default") == 2
    meta = {"name": "sweep", "namespace": "default", "uid": "s-1", "labels": {"fairlead.io/queue": "root.a"}}
    jobs = [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 1, "template": template("2")}}}]
    cluster.put(JOB_SETS, {"metadata": meta, "spec": {"suspend": False, "replicatedJobs": jobs}})
    cluster.pod("w-1", "2", labels=labels)
    assert (pending(cluster, "default"), pending(cluster, "a")) == (1, 1)
    cluster.node("n1")
    cluster.bind_all(cluster.acts())
    cluster.pod("w-0", "2", node="n1", labels=labels)
    assert (used(cluster, "default"), used(cluster, "a")) == (2_000, 2_000)


@pytest.mark.parametrize("served", [True, False])
def test_the_pod_of_a_job_of_a_set_waits_for_news_of_the_set_where_there_may_be_any(served: bool) -> None:
    """It was placed by the queue of its namespace, or kept waiting there, though the set starts as a whole."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    cluster.driver.take(Synced(JOB_SETS, served), 0)
    labels = {"jobset.sigs.k8s.io/jobset-name": "sweep", "jobset.sigs.k8s.io/replicatedjob-name": "w"}
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "sweep", "uid": "s-1"}
    meta = {"name": "sweep-w-0", "namespace": "default", "uid": "j-sweep-w-0", "labels": labels}
    meta["ownerReferences"] = [{**owner, "controller": True}]
    cluster.pod("w", "2", labels=labels, ownerReferences=owned("sweep-w-0"))
    cluster.put(JOBS, {"metadata": meta, "spec": {"parallelism": 1, "template": template("2")}})
    assert binds(cluster.acts()) == ({} if served else {"w": "n1"})
    if served:
        why = cluster.driver.informer.pod_store.passed_over["default", "w"]
        assert why == "the JobSet of its job is not known yet"
        meta = {"name": "sweep", "namespace": "default", "uid": "s-1", "labels": {"fairlead.io/queue": "root.a"}}
        jobs = [{"name": "w", "replicas": 1, "template": {"spec": {"parallelism": 1, "template": template("2")}}}]
        cluster.put(JOB_SETS, {"metadata": meta, "spec": {"suspend": False, "replicatedJobs": jobs}})
        assert binds(cluster.acts()) == {"w": "n1"}
        assert used(cluster, "a") == 2_000
