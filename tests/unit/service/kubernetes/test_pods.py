"""What is shown of a pod, as its condition at the API server says it."""

from __future__ import annotations

import pytest
from driven_cluster import Cluster
from driven_jobs import QUEUES, Jobs

from fairlead.kubernetes.kinds import JOBS, POD_GROUPS
from fairlead.kubernetes.reflector import Deleted
from fairlead.runtime import Refusal
from fairlead.service.kubernetes.pods import ClusterMoment


def test_who_asks_for_a_pod_of_a_group_that_gathers_hears_what_it_waits_for() -> None:
    """And not that its placement was refused: it was never tried."""
    cluster = Cluster()
    cluster.put(
        POD_GROUPS,
        {"metadata": {"name": "ring", "namespace": "default", "uid": "g-ring"}, "spec": {"minMember": 3}},
    )
    cluster.pod("a", labels={"scheduling.x-k8s.io/pod-group": "ring"})
    said = ClusterMoment(cluster.driver).why("default/a")
    assert said.reason is not None
    assert said.reason.code == "group-waits"
    assert said.sentence == "1 of the 3 pods are there with which pod group ring starts"


def test_who_asks_for_a_pod_whose_place_was_refused_hears_why() -> None:
    """That it was refused is not enough: a right may lack, or a webhook of somebody else may not like it."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("a")
    cluster.acts()
    cluster.driver.bind_failed("u-a", "n1", "denied by policy", 0)
    sentence = "a place on n1 was refused, and it is tried again after a pause: denied by policy"
    assert ClusterMoment(cluster.driver).why("default/a").sentence == sentence
    cluster.driver.try_again("u-a", 1_000)
    assert ClusterMoment(cluster.driver).why("default/a").sentence != sentence


def test_what_was_in_the_way_before_is_not_said_of_a_pod_that_waits_for_something_else() -> None:
    """Its place was refused, and meanwhile a queue file came that has no queue for its application."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("a")
    cluster.acts()
    cluster.driver.bind_failed("u-a", "n1", "denied by policy", 0)
    cluster.driver.informer.refused["yunikorn-default-autogen"] = "there is no queue for it"
    cluster.driver.try_again("u-a", 1_000)
    assert ClusterMoment(cluster.driver).why("default/a").sentence == "there is no queue for it"


def test_who_asks_for_a_pod_that_cannot_be_read_hears_why() -> None:
    """As its condition has it; once it is gone there is no such pod."""
    cluster = Cluster()
    labels, notes = {"scheduling.x-k8s.io/pod-group": "ring"}, {"fairlead.io/idle": "true"}

    def said() -> str:
        with pytest.raises(Refusal) as refusal:
            ClusterMoment(cluster.driver).why("default/a")
        return refusal.value.message

    cluster.pod("a", labels=labels, annotations=notes)
    assert said().startswith("pod default/a is passed over: idle work starts with no pod group")
    cluster.gone("a")
    assert said() == "no pod default/a waits or runs under this scheduler"
    cluster.pod("a", labels=labels, annotations=notes)
    cluster.pod("a", labels=labels)
    assert ClusterMoment(cluster.driver).why("default/a").state == "waiting"


def test_who_asks_for_a_job_that_is_not_admitted_hears_why() -> None:
    """It has no pods, and nothing keeps room for it."""
    cluster = Jobs(QUEUES)
    cluster.job("train", template={"scheduler": "other"})
    with pytest.raises(Refusal) as refusal:
        ClusterMoment(cluster.driver).why("default/train")
    assert refusal.value.message == (
        "default/train is not admitted: its pods name the scheduler other: "
        "set schedulerName: fairlead in its pod template"
    )


def test_of_a_job_without_pods_it_is_said_why_it_has_none() -> None:
    """That no pod of its name waits or runs is no answer for whoever asks about the job."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    cluster.job("train", 0)
    said = []

    def ask() -> None:
        with pytest.raises(Refusal) as told:
            ClusterMoment(cluster.driver).why("default/train")
        said.append(str(told.value).removeprefix("default/train "))

    ask()
    cluster.job("train", 1)
    cluster.acts()
    cluster.job("train", 2)
    ask()
    cluster.job("train", 2, suspend=False)
    cluster.job("train", 2)
    cluster.acts()
    cluster.driver.take(Deleted(JOBS, "default", "train", "j-train"), 0)
    cluster.job("train", 2, suspend=False)
    ask()
    assert [text.partition(",")[0] for text in said] == [
        "needs no pods: its parallelism is 0", "is being suspended", "may have pods",
    ]  # fmt: skip


def test_who_asks_for_a_job_hears_of_the_first_of_its_pods_that_waits() -> None:
    """Also of one that does not start as a whole: no pod of that name was there."""
    cluster = Cluster()
    cluster.node("n1", cpu="1")
    labels = {"batch.kubernetes.io/job-name": "train"}
    for name in ("train-a", "train-b"):
        cluster.pod(name, labels=labels)
    cluster.acts()
    said = ClusterMoment(cluster.driver).why("default/train")
    assert (said.key, said.state) == ("default/train-b", "waiting")
    cluster.gone("train-b")
    assert ClusterMoment(cluster.driver).why("default/train").key == "default/train-a"
    with pytest.raises(Refusal, match="no pod other/train"):
        ClusterMoment(cluster.driver).why("other/train")


def test_who_asks_for_a_pod_with_gates_hears_of_them() -> None:
    """It is ours, but nobody looks at it yet."""
    cluster = Cluster()
    cluster.pod("a", spec={"schedulingGates": [{"name": "quota/check"}, {"name": "later"}]})
    with pytest.raises(Refusal, match=r"pod default/a is passed over: it has scheduling gates \(quota/check, later\)"):
        ClusterMoment(cluster.driver).why("default/a")
    cluster.pod("a")
    assert ClusterMoment(cluster.driver).why("default/a").state == "waiting"
