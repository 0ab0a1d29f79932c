"""What the API server will add to the pods of a job counts while its room is reserved."""

from __future__ import annotations

from typing import Any

import pytest
from driven_jobs import QUEUES, Jobs, records, suspensions, template

from fairlead.kubernetes.kinds import JOBS, LIMIT_RANGES, NAMESPACES, NODES, PRIORITY_CLASSES, RUNTIME_CLASSES
from fairlead.kubernetes.reflector import Deleted
from fairlead.runtime import Refusal
from fairlead.service.kubernetes.pods import ClusterMoment


def job(cluster: Jobs, needs: dict[str, Any] | None = None, **spec: Any) -> None:
    """One pod, of one container that starts and one that runs."""
    made = template("1")
    for container in (runs := {"name": "c"}, starts := {"name": "i"}):
        container["resources"] = needs or {}
    made["spec"] |= {"containers": [runs], "initContainers": [starts], **spec}
    meta = {"name": "train", "namespace": "default", "uid": "j-train", "labels": {"fairlead.io/queue": "root.default"}}
    cluster.put(JOBS, {"metadata": meta, "spec": {"suspend": True, "parallelism": 1, "template": made}})


def limit_range(cluster: Jobs, cpu: str, namespace: str = "default", of: str = "Container") -> None:
    meta = {"name": "usual", "namespace": namespace, "uid": "l"}
    limits = [{"type": of, "default": {"cpu": "9"}, "defaultRequest": {"cpu": cpu}}]
    cluster.put(LIMIT_RANGES, {"metadata": meta, "spec": {"limits": limits}})


def needed(cluster: Jobs) -> int:
    (keeps,) = cluster.driver.informer.pod_store.by_uid.values()
    return keeps.spec.resources.as_dict().get("vcore", 0)


@pytest.mark.parametrize(
    ("needs", "vcore"),
    [
        ({}, 3_000),
        ({"requests": {"memory": "1Gi"}}, 3_000),
        ({"requests": {"cpu": "1"}}, 1_000),
        ({"limits": {"cpu": "2"}}, 2_000),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, 1_000),
    ],
)
def test_containers_that_say_nothing_get_what_the_namespace_says(needs: dict[str, Any], vcore: int) -> None:
    """A container's own limit is its request before that."""
    cluster = Jobs(QUEUES)
    limit_range(cluster, "3")
    limit_range(cluster, "7", namespace="other")
    job(cluster, needs)
    assert needed(cluster) == vcore


def test_a_limit_range_of_whole_pods_or_claims_adds_nothing() -> None:
    cluster = Jobs(QUEUES)
    limit_range(cluster, "3", of="Pod")
    job(cluster)
    assert needed(cluster) == 0


@pytest.mark.parametrize(
    ("container", "whole", "vcore"),
    [
        ({"requests": {"cpu": "1"}}, {"limits": {"cpu": "3"}}, 1_000),
        ({}, {"limits": {"cpu": "3"}}, 3_000),
        ({}, {"limits": {"cpu": "3"}, "requests": {"memory": "1Gi"}}, 3_000),
        ({}, {"limits": {"cpu": "3"}, "requests": {"cpu": "2"}}, 2_000),
    ],
)
def test_a_limit_of_the_pod_as_a_whole_is_its_request_where_no_container_has_one(
    container: dict[str, Any], whole: dict[str, Any], vcore: int
) -> None:
    """The API server fills that in before it looks at what the namespace says of containers."""
    cluster = Jobs(QUEUES)
    limit_range(cluster, "500m")
    job(cluster, container, resources=whole)
    assert needed(cluster) == vcore


def test_labels_that_a_term_names_by_key_count() -> None:
    """Pods of one job keep others away, and not each other: the API server writes the labels into selectors."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", labels={"zone": "a"})
    every = {"matchExpressions": [{"key": "job-name", "operator": "Exists"}]}
    term = {"topologyKey": "zone", "labelSelector": every, "mismatchLabelKeys": ["job-name"]}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    made = template("1")
    made["spec"]["affinity"] = apart
    for name, size in (("large", 3), ("small", 1)):
        made = {**made, "metadata": {"labels": {"job-name": name}}}
        meta = {"name": name, "uid": f"j-{name}", "labels": {"fairlead.io/queue": "root.default"}}
        cluster.put(JOBS, {"metadata": meta, "spec": {"suspend": True, "parallelism": size, "template": made}})
    assert suspensions(cluster.acts()) == {"large": False}
    assert cluster.used("n1") == 3_000


def test_what_a_runtime_costs_and_where_it_is_counts() -> None:
    """Only a node with that runtime will do, which others are kept away from by a taint."""
    cluster = Jobs(QUEUES)
    room = {"allocatable": {"cpu": "2", "pods": "9"}}
    taints = [{"key": "sandbox", "effect": "NoSchedule"}]
    meta = {"name": "boxed", "uid": "u-boxed", "labels": {"runtime": "sandbox"}}
    cluster.put(NODES, {"metadata": meta, "spec": {"taints": taints}, "status": room})
    scheduling = {"nodeSelector": {"runtime": "sandbox"}, "tolerations": [{"key": "sandbox", "operator": "Exists"}]}
    overhead = {"podFixed": {"cpu": "500m"}}
    cluster.put(RUNTIME_CLASSES, {"metadata": {"name": "box"}, "overhead": overhead, "scheduling": scheduling})
    cluster.node("plain", "8")
    job(cluster, {"requests": {"cpu": "1"}}, runtimeClassName="box")
    assert suspensions(cluster.acts()) == {"train": False}
    assert (cluster.used("boxed"), cluster.used("plain")) == (1_500, 0)


def test_what_changes_while_a_job_waits_counts_from_then_on() -> None:
    """Both are watched apart from jobs, and people correct them."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    limit_range(cluster, "5")
    job(cluster, runtimeClassName="box")
    assert suspensions(cluster.acts()) == {}
    limit_range(cluster, "4")
    cluster.put(RUNTIME_CLASSES, {"metadata": {"name": "box"}, "overhead": {"podFixed": {"cpu": "1"}}})
    assert suspensions(cluster.acts()) == {}
    assert needed(cluster) == 5_000
    cluster.put(RUNTIME_CLASSES, {"metadata": {"name": "box"}})
    assert needed(cluster) == 4_000
    assert suspensions(cluster.acts()) == {"train": False}


def test_what_changes_nothing_leaves_a_job_where_it_stands() -> None:
    """It does not give back what it has, nor its place in line."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    job(cluster, {"requests": {"cpu": "1"}})
    assert cluster.waiting()
    before = list(cluster.driver.informer.waiting)
    limit_range(cluster, "4")
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "other", "uid": "o"}, "value": 7})
    assert list(cluster.driver.informer.waiting) == before


def test_a_job_whose_pods_the_server_would_refuse_takes_no_room() -> None:
    """It names a class that is not there; with it, it starts, and one that waits is looked at when its class goes."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    job(cluster, {"requests": {"cpu": "1"}}, priorityClassName="urgent", runtimeClassName="box")
    acts = cluster.acts()
    assert suspensions(acts) == {}
    assert records(acts, "NotAdmitted") == [
        "there is no priority class urgent, and without it no pod of it can be made"
    ]
    urgent = {"metadata": {"name": "urgent", "uid": "u"}, "value": 7}
    cluster.put(PRIORITY_CLASSES, urgent)
    acts = cluster.acts()
    assert cluster.used("n1") == 0
    with pytest.raises(Refusal, match="default/train is not admitted: there is no runtime class box"):
        ClusterMoment(cluster.driver).why("default/train")
    cluster.pod("before", "2", node="n1", priority=9)
    cluster.put(RUNTIME_CLASSES, {"metadata": {"name": "box"}})
    assert (suspensions(cluster.acts()), cluster.waiting()) == ({}, 1)
    cluster.driver.take(Deleted(PRIORITY_CLASSES, "", "urgent", "u"), cluster.now)
    assert (suspensions(cluster.acts()), cluster.waiting()) == ({}, 0)
    cluster.put(PRIORITY_CLASSES, urgent)
    cluster.gone("before")
    assert suspensions(cluster.acts()) == {"train": False}


def test_a_job_that_comes_before_its_namespace_waits_for_what_that_says() -> None:
    """They are watched apart: the queue that was made for it had no quota then, or it went to another one."""
    rules = "placementrules: [{name: provided, create: true, parent: {name: tag, value: namespace.parentqueue}}, "
    cluster = Jobs(
        QUEUES.replace("placementrules: [", rules).replace(
            "{name: default}", "{name: default}, {name: lab, parent: true}"
        )
    )
    cluster.node("n1", "9")
    cluster.put(NAMESPACES, {"metadata": {"name": "other", "uid": "o"}})
    cluster.job("train", queue="mine")
    acts = cluster.acts()
    assert suspensions(acts) == {}
    assert records(acts, "NotAdmitted") == ["its namespace default is not known yet"]
    notes = {"yunikorn.apache.org/parentqueue": "root.lab", "yunikorn.apache.org/namespace.quota": '{"cpu": "5"}'}
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "uid": "d", "annotations": notes}})
    assert suspensions(cluster.acts()) == {"train": False}
    queue = cluster.driver.scheduler.cluster.partitions["default"].root.children["lab"].children["mine"]
    assert (queue.allocated["vcore"], queue.max["vcore"]) == (4000, 5000)


def test_what_a_job_waits_with_follows_the_labels_of_namespaces() -> None:
    """Its pods are to stand beside what runs in the namespaces of a team, and one is of that team only later."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", labels={"kubernetes.io/hostname": "n1"})
    team = {"matchLabels": {"team": "a"}}
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "namespaceSelector": team}
    beside = {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "topologyKey": "kubernetes.io/hostname"}]}
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "uid": "d"}})
    cluster.pod("web", labels={"app": "web"}, node="n1")
    job(cluster, affinity={"podAffinity": beside})
    assert suspensions(cluster.acts()) == {}
    before = list(cluster.driver.informer.waiting)
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "uid": "d", "annotations": {"anything": "else"}}})
    assert list(cluster.driver.informer.waiting) == before
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "uid": "d", "labels": {"team": "a"}}})
    assert suspensions(cluster.acts()) == {"train": False}


@pytest.mark.parametrize("more", [{"parallelism": 0}, {"suspend": False}])
def test_what_was_wrong_with_a_job_is_forgotten_when_it_starts_no_pods_or_somebody_let_it_go(more: Any) -> None:
    """It was said to be not admitted; and what completes templates is looked at again in peace."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    cluster.job("train", template={"priority_class": "urgent"})
    assert records(cluster.acts(), "NotAdmitted")
    cluster.job("train", template={"priority_class": "urgent"}, **more)
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "other", "uid": "o"}, "value": 7})
    assert suspensions(cluster.acts()) == {}
    with pytest.raises(Refusal, match=r"default/train (needs no pods|may have pods)"):
        ClusterMoment(cluster.driver).why("default/train")


def test_a_job_of_idle_work_is_not_admitted() -> None:
    """Room is not kept for what gives its own back; it asked for it each minute, and named a task group."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    cluster.job("train")
    job = cluster.things["jobs", "train"]
    job["spec"]["template"]["metadata"]["labels"]["fairlead.io/idle"] = "true"
    cluster.put(JOBS, job)
    acts = cluster.acts()
    assert suspensions(acts) == {}
    (said,) = records(acts, "NotAdmitted")
    assert said == "idle work starts with no job as a whole: leave out fairlead.io/idle, or fairlead.io/queue"
    assert cluster.waiting() == 0
