"""Jobs admitted as a whole by `suspend`, with the real scheduler behind a driver."""

from __future__ import annotations

from typing import Any

import pytest
from driven_cluster import binds
from driven_jobs import QUEUES, Jobs, at_work, end, owned, records, suspensions, template

from fairlead.core.model.events import SetWindow
from fairlead.core.model.specs import WindowSpec
from fairlead.insight.forecast import forecast
from fairlead.insight.runtimes import Runtimes
from fairlead.kubernetes.acts import EvictPod
from fairlead.kubernetes.kinds import JOB_SETS, JOBS, NODES, PRIORITY_CLASSES
from fairlead.kubernetes.pod_store import KnownPod
from fairlead.kubernetes.reflector import Deleted
from fairlead.service.kubernetes.pods import ClusterMoment


def stands_for(cluster: Jobs, name: str) -> KnownPod | None:
    """What is meant when somebody asks for a job."""
    workloads = cluster.driver.informer.workloads
    job = workloads.store.named("default", name)
    return workloads.representative(job) if job is not None else None


def test_a_job_is_let_go_when_all_of_it_has_room_and_its_pods_take_that_room() -> None:
    """Half of it has room: it stays suspended. All of it has: it goes on, and nothing else gets the room meanwhile."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.node("n2", "3")
    cluster.pod("before", "3", node="n2")
    cluster.job("train")
    assert suspensions(cluster.acts()) == {}
    assert cluster.waiting() == 1
    stands_for_it = stands_for(cluster, "train")
    assert stands_for_it is not None
    assert stands_for_it.name.name == "train[1]", "the one that waits"
    cluster.gone("before")
    acts = cluster.acts()
    assert suspensions(acts) == {"train": False}
    assert records(acts, "Admitted") == ["there is room for 2 of its pods on n1, n2"]
    cluster.pod("other", "2")
    assert binds(cluster.acts()) == {}
    cluster.job("train", suspend=False)
    cluster.member("train", 0)
    cluster.member("train", 1)
    acts = cluster.acts()
    assert sorted(binds(acts)) == ["train-0", "train-1"]
    assert sorted(binds(acts).values()) == ["n1", "n2"]
    assert (cluster.used("n1"), cluster.used("n2")) == (2000, 2000)


def test_a_job_without_our_label_is_left_alone() -> None:
    """Whatever it is suspended for."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    meta = {"name": "mine", "namespace": "default", "uid": "j-mine"}
    cluster.put(JOBS, {"metadata": meta, "spec": {"suspend": True, "template": template("1")}})
    assert suspensions(cluster.acts()) == {}
    assert cluster.waiting() == 0


def test_a_job_beyond_the_maximum_of_its_queue_waits_though_there_is_room() -> None:
    """A second job of the queue is let go when the first has ended."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "16")
    cluster.job("first", queue="root.a")
    assert suspensions(cluster.acts()) == {"first": False}
    cluster.job("first", queue="root.a", suspend=False)
    cluster.job("second", queue="root.a")
    assert suspensions(cluster.acts()) == {}
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}
    cluster.job("first", queue="root.a", suspend=False, status=ended)
    assert suspensions(cluster.acts()) == {"second": False}


def _running(cluster: Jobs, name: str, **job: Any) -> None:
    """A job whose two pods run on n1."""
    cluster.job(name, suspend=False, **job)
    for number in range(2):
        cluster.member(name, number, node="n1")


def test_a_job_that_loses_room_is_suspended_as_a_whole_and_waits_again() -> None:
    """One pod has to go: the job is told to suspend, and nothing of it is deleted here. Then it waits."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    _running(cluster, "low")
    cluster.pod("high", "2", priority=10)
    acts = cluster.acts()
    assert suspensions(acts) == {"low": True}
    assert not [act for act in acts if isinstance(act, EvictPod)]
    (said,) = records(acts, "Preempted")
    assert said.startswith("Preempted by default/high on node n1 (default/high has a higher priority): ")
    assert suspensions(cluster.acts()) == {}
    cluster.job("low", suspend=True)
    cluster.gone("low-0")
    assert cluster.waiting() <= 1, "not before all its pods are gone"
    cluster.gone("low-1")
    acts = cluster.acts()
    assert binds(acts) == {"high": "n1"}
    assert suspensions(acts) == {}
    cluster.gone("high")
    assert suspensions(cluster.acts()) == {"low": False}


def test_a_job_that_somebody_lets_go_on_before_it_was_heard_that_it_stopped_is_stopped_again() -> None:
    """Its being suspended may be missed, when nobody watches for a moment."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    _running(cluster, "low")
    cluster.pod("high", "2", priority=10)
    assert suspensions(cluster.acts()) == {"low": True}
    for name in ("low-0", "low-1", "high"):
        cluster.gone(name)
    cluster.job("low", suspend=False)
    for number in (2, 3):
        cluster.member("low", number, node="n1")
    cluster.pod("higher", "2", priority=11)
    assert suspensions(cluster.acts()) == {"low": True}


@pytest.mark.parametrize("is_heard", [False, True])
def test_pods_that_a_suspended_job_leaves_behind_are_stopped_one_by_one(is_heard: bool) -> None:
    """It is deleted without its pods before those went: nobody else would delete them for what gets their room."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    _running(cluster, "low")
    cluster.pod("high", "4", priority=10)
    assert suspensions(cluster.acts()) == {"low": True}
    if is_heard:
        cluster.job("low", suspend=True)
    cluster.pod("low-1", "2", node="n1", ownerReferences=owned("low"), deletionTimestamp="2026-01-01T00:00:00Z")
    cluster.driver.take(Deleted(JOBS, "default", "low", "j-low"), cluster.now)
    assert [(act.pod.name, act.node) for act in cluster.acts() if isinstance(act, EvictPod)] == [("low-0", "n1")]
    cluster.gone("low-0")
    cluster.gone("low-1")
    assert binds(cluster.acts()) == {"high": "n1"}


def test_a_job_that_somebody_lets_go_on_before_all_of_it_has_room_runs_as_far_as_there_is_room() -> None:
    """One of its pods takes the room that it has already, the others come when there is more."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "3")
    cluster.job("train", 3)
    assert suspensions(cluster.acts()) == {}
    for number in range(2):
        cluster.member("train", number)
    cluster.job("train", 3, suspend=False)
    cluster.member("train", 2)
    acts = cluster.acts()
    assert binds(acts) == {"train-0": "n1"}
    cluster.bind_all(acts)
    cluster.node("n2")
    assert sorted(binds(cluster.acts())) == ["train-1", "train-2"]


def test_a_job_that_loses_its_room_before_it_went_on_waits_anew() -> None:
    """It was told to go on and, at once, to suspend: the API server may have no news of that."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    cluster.job("train")
    assert suspensions(cluster.acts()) == {"train": False}
    cluster.pod("high", "2", priority=10)
    acts = cluster.acts()
    assert suspensions(acts) == {"train": True}
    assert binds(acts) == {"high": "n1"}
    assert cluster.driver.informer.workloads.pauses == ["j-train"]
    cluster.driver.try_again("j-train", cluster.now)
    assert suspensions(cluster.acts()) == {}
    cluster.gone("high")
    assert suspensions(cluster.acts()) == {"train": False}


def test_an_elastic_job_starts_with_its_least_and_shrinks_before_it_is_suspended() -> None:
    """Four pods, two are enough: it starts with room for two, and loses pods one by one down to these."""
    notes = {"fairlead.io/min-parallelism": "2"}
    cluster = Jobs(QUEUES)
    cluster.node("n1", "6")
    cluster.job("flex", parallelism=4, notes=notes)
    assert suspensions(cluster.acts()) == {"flex": False}
    cluster.job("flex", parallelism=4, notes=notes, suspend=False)
    for number in range(4):
        cluster.member("flex", number)
    acts = cluster.acts()
    assert len(binds(acts)) == 3
    cluster.bind_all(acts)
    cluster.pod("high", "2", priority=10)
    acts = cluster.acts()
    assert len([act for act in acts if isinstance(act, EvictPod)]) == 1
    assert suspensions(acts) == {}
    cluster.pod("higher", "2", priority=20)
    assert suspensions(cluster.acts()) == {"flex": True}


def test_a_job_of_higher_priority_makes_room_for_itself() -> None:
    """Its priority is that of its template's class."""
    cluster = Jobs(QUEUES)
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "urgent", "uid": "u-urgent"}, "value": 100})
    cluster.node("n1", "4")
    _running(cluster, "low")
    cluster.job("high", parallelism=1, template={"priority_class": "urgent"})
    acts = cluster.acts()
    assert suspensions(acts) == {"low": True}
    assert "makes room on n1 for default/high (" in records(acts, "Preempted")[0]
    cluster.job("low", suspend=True)
    cluster.gone("low-0")
    cluster.gone("low-1")
    assert suspensions(cluster.acts()) == {"high": False}


@pytest.mark.parametrize("is_default", [False, True])
def test_a_job_of_a_class_that_preempts_nothing_stops_nothing(is_default: bool) -> None:
    """It says so of the job's pods, which are not there yet; so does the global default."""
    cluster = Jobs(QUEUES)
    urgent = {"value": 100, "preemptionPolicy": "Never", "globalDefault": is_default}
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "urgent", "uid": "u-urgent"}, **urgent})
    cluster.node("n1", "4")
    _running(cluster, "low")
    cluster.job("high", parallelism=1, template={} if is_default else {"priority_class": "urgent"})
    assert suspensions(cluster.acts()) == {}
    stand_in = stands_for(cluster, "high")
    assert stand_in is not None
    assert (stand_in.spec.priority, stand_in.spec.allow_preempt_other) == (100, False)


def test_a_priority_class_that_comes_after_its_job_counts() -> None:
    """They are watched apart, and a file may have the job first; the same holds for one that is made anew."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    _running(cluster, "low")
    cluster.job("high", parallelism=1, template={"priority_class": "urgent"})
    assert suspensions(cluster.acts()) == {}
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "urgent", "uid": "u-urgent"}, "value": 100})
    assert suspensions(cluster.acts()) == {"low": True}


def test_room_that_is_not_complete_in_time_is_given_back_and_tried_for_again() -> None:
    """Something smaller runs meanwhile; after the pause the job waits anew."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.node("n2", "2")
    cluster.pod("before", "2", node="n2")
    notes = {"yunikorn.apache.org/schedulingPolicyParameters": "placeholderTimeoutInSeconds=5"}
    cluster.job("wide", notes=notes)
    cluster.acts()
    cluster.pod("small", "2")
    assert binds(cluster.acts()) == {}
    cluster.now = 6_000
    acts = cluster.acts()
    (said,) = records(acts, "GaveUp")
    assert "only 1 of 2" in said
    assert binds(acts) | binds(cluster.acts()) == {"small": "n1"}
    assert cluster.driver.informer.workloads.pauses == ["j-wide"]
    cluster.node("n3", "4")
    cluster.driver.try_again("j-wide", cluster.now)
    assert suspensions(cluster.acts()) == {"wide": False}


def test_a_job_that_gives_its_room_back_is_expected_all_the_same() -> None:
    """It tries for it again as long as others run; that it starts in no future would not be so."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.pod("small", "2")
    assert binds(cluster.acts()) == {"small": "n1"}
    cluster.node("n2", "2")
    cluster.job("wide", notes={"yunikorn.apache.org/schedulingPolicyParameters": "placeholderTimeoutInSeconds=5"})
    cluster.acts()
    waits = stands_for(cluster, "wide")
    assert waits is not None
    told = forecast(cluster.driver.scheduler, Runtimes(), draws=3)
    assert None not in told.starts["default", waits.application, waits.spec.key]


def test_a_job_that_was_let_go_and_never_went_on_is_tried_again() -> None:
    """Somebody suspended it again before anybody heard that it had gone on, or the API server refused it for good."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    cluster.job("train")
    assert suspensions(cluster.acts()) == {"train": False}
    cluster.now = 901_000
    cluster.acts()
    assert cluster.used("n1") == 0
    assert cluster.driver.informer.workloads.pauses == ["j-train"]
    cluster.driver.try_again("j-train", cluster.now)
    assert suspensions(cluster.acts()) == {"train": False}


def test_what_is_wrong_with_a_job_is_said_at_the_job() -> None:
    """Pods that name no scheduler, a bad number, a queue that is not there. Whose pods name another one is not ours."""
    cluster = Jobs(QUEUES.replace("{name: default}, {", "{").replace(", {name: fixed, value: root.default}", ""))
    cluster.node("n1", "16")
    cluster.job("nobody's", template={"scheduler": "default-scheduler"})
    cluster.job("theirs", template={"scheduler": "fairlead-batch"})
    cluster.job("number", notes={"fairlead.io/min-parallelism": "few"})
    cluster.job("lost", queue="root.nowhere")
    acts = cluster.acts()
    assert suspensions(acts) == {}
    wrong = records(acts, "NotAdmitted")
    assert ["its pods name the scheduler default-scheduler" in said for said in wrong] == [True, False]
    assert "'few'" in wrong[1]
    assert "no placement rule matched" in " ".join(records(acts, "FailedScheduling"))


def test_a_job_that_changes_while_it_waits_is_reserved_for_anew() -> None:
    """It asked for too much, and asks for less now."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    cluster.job("train", parallelism=4)
    assert suspensions(cluster.acts()) == {}
    cluster.job("train", parallelism=2)
    assert suspensions(cluster.acts()) == {"train": False}
    cluster.driver.take(Deleted(JOBS, "default", "train", "j-train"), 0)
    assert cluster.used("n1") == 0


@pytest.mark.parametrize("went_on", [False, True])
def test_a_job_that_changes_while_it_is_being_let_go_is_let_go_as_what_it_is_by_now(went_on: bool) -> None:
    """It ran in the queue, and with the size, that it had before, until its next start."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "16")
    cluster.job("train")
    assert suspensions(cluster.acts()) == {"train": False}
    cluster.job("train", 1, queue="root.a")
    assert suspensions(cluster.acts()) == {"train": True}
    assert cluster.used("n1") == 0
    if went_on:
        cluster.job("train", 1, queue="root.a", suspend=False)
        cluster.member("train", 0)
        cluster.job("train", 1, queue="root.a")
        assert suspensions(cluster.acts()) == {}
        cluster.gone("train-0")
    else:
        cluster.driver.try_again("j-train", cluster.now)
    acts = cluster.acts()
    assert suspensions(acts) == {"train": False}
    assert records(acts, "Admitted") == ["there is room for 1 of its pods on n1"]
    root = cluster.driver.scheduler.cluster.partitions["default"].root
    assert [root.children[name].allocated["vcore"] for name in ("default", "a")] == [0, 2_000]


def test_what_was_admitted_before_a_restart_goes_on() -> None:
    """The job is not suspended: its pods are plain members of its application, and its queue is the job's."""
    cluster = Jobs(QUEUES)
    cluster.driver.informer.live = False
    cluster.node("n1", "16")
    cluster.job("train", suspend=False, queue="root.a")
    cluster.member("train", 0, node="n1")
    cluster.member("train", 1)
    cluster.driver.begin(0)
    assert binds(cluster.acts()) == {"train-1": "n1"}
    (app,) = cluster.driver.scheduler.cluster.partitions["default"].applications.values()
    assert (app.queue.path, len(app.asks)) == ("root.a", 2)


def test_jobs_of_one_second_keep_their_order_over_a_restart() -> None:
    """A list has them by their names: of ten that were submitted at once `train-10` came before `train-2`."""
    cluster = Jobs(QUEUES)
    cluster.driver.informer.live = False
    cluster.node("n1", "4")
    for name, version in (("train-10", 10), ("train-2", 2), ("train-3", 3)):
        cluster.version = version - 1
        cluster.job(name)
        job = cluster.things["jobs", name]
        job["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        cluster.version = version - 1
        cluster.put(JOBS, job)
    cluster.driver.begin(0)
    assert suspensions(cluster.acts()) == {"train-2": False}


def test_the_jobs_of_a_set_start_together() -> None:
    """A driver and two workers, each of its own kind."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")

    def job_set(suspend: bool) -> None:
        jobs = [
            {"name": "driver", "replicas": 1, "template": {"spec": {"parallelism": 1, "template": template("1")}}},
            {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 1, "template": template("2")}}},
        ]
        meta = {"name": "set", "namespace": "default", "uid": "s-set", "labels": {"fairlead.io/queue": "root.default"}}
        cluster.put(JOB_SETS, {"metadata": meta, "spec": {"suspend": suspend, "replicatedJobs": jobs}})

    job_set(True)
    assert suspensions(cluster.acts()) == {}
    cluster.node("n2", "4")
    assert suspensions(cluster.acts()) == {"set": False}
    job_set(False)
    for name, of, cpu in (("d", "driver", "1"), ("w-0", "workers", "2"), ("w-1", "workers", "2")):
        labels = {"jobset.sigs.k8s.io/jobset-name": "set", "jobset.sigs.k8s.io/replicatedjob-name": of}
        cluster.pod(name, cpu, labels=labels)
    assert sorted(binds(cluster.acts())) == ["d", "w-0", "w-1"]


def test_nothing_is_stopped_for_one_job_of_a_set_whose_others_may_stop_nothing() -> None:
    """Its room would be given back in the end, and work be stopped for it again after a pause, for ever."""
    cluster = Jobs(QUEUES)
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "high", "uid": "high"}, "value": 9})
    for number in range(2):
        cluster.node(f"n{number}", "1")
        cluster.pod(f"runs{number}", "1", node=f"n{number}")
    jobs = [
        {"name": name, "template": {"spec": {"template": template("1", of)}}}
        for name, of in (("driver", "high"), ("worker", ""))
    ]
    meta = {"name": "set", "namespace": "default", "uid": "s-set", "labels": {"fairlead.io/queue": "root.default"}}
    cluster.put(JOB_SETS, {"metadata": meta, "spec": {"suspend": True, "replicatedJobs": jobs}})
    assert not [act for act in cluster.acts() if isinstance(act, EvictPod)]
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "high", "uid": "high"}, "value": 8})
    assert not [act for act in cluster.acts() if isinstance(act, EvictPod)]
    for number in range(2):
        cluster.gone(f"runs{number}")
    assert suspensions(cluster.acts()) == {"set": False}


def test_indexes_that_have_failed_for_good_need_no_room() -> None:
    """Of ten indexes two have succeeded and four failed: four pods come, and four is what it starts with."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    cluster.job("train", 10, "1", completions=10, status={"succeeded": 2, "failedIndexes": "1,3-5"})
    acts = cluster.acts()
    assert records(acts, "Admitted") == ["there is room for 4 of its pods on n1"]
    assert suspensions(acts) == {"train": False}


def test_jobs_of_a_set_that_have_succeeded_need_no_room() -> None:
    """It lost its room when one of its jobs was over already."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    jobs = [{"name": n, "replicas": 2, "template": {"spec": {"template": template("1")}}} for n in ("early", "late")]
    meta = {"name": "set", "namespace": "default", "uid": "s-set", "labels": {"fairlead.io/queue": "root.default"}}
    status = {"replicatedJobsStatus": [{"name": "early", "succeeded": 2}, {"name": "late", "succeeded": 0}]}
    cluster.put(JOB_SETS, {"metadata": meta, "spec": {"suspend": True, "replicatedJobs": jobs}, "status": status})
    assert suspensions(cluster.acts()) == {"set": False}


def test_a_node_that_goes_while_a_job_is_reserved_for() -> None:
    """The stand-in that was there looks for another place, and the job still starts as a whole."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.node("n3", "2")
    cluster.pod("before", "2", node="n3")
    cluster.job("train")
    cluster.acts()
    assert cluster.used("n1") == 2_000
    cluster.driver.take(Deleted(NODES, "", "n1", "u-n1"), 0)
    cluster.node("n2", "4")
    assert suspensions(cluster.acts()) == {"train": False}


def test_room_on_a_node_that_goes_is_kept_nowhere_else_once_its_job_runs() -> None:
    """It stood in line before the job's own pods, which waited for it; without any it took room that nobody used."""
    cluster = at_work()
    end(cluster, "train-0")
    cluster.acts()
    cluster.driver.take(Deleted(NODES, "", "n0", "u-n0"), cluster.now)
    cluster.acts()
    assert [known for known in cluster.driver.informer.pod_store.by_uid.values() if known.name.stands_for] == []
    cluster.member("train", 7)
    cluster.node("n2", "2")
    assert binds(cluster.acts()) == {"train-7": "n2"}


@pytest.mark.parametrize("least", ["²", "٣", "0", "-1", "9" * 5000])
def test_a_least_number_of_pods_that_makes_no_sense_is_told(least: str) -> None:
    """However long it is: the scheduler goes on, and the job hears what is wrong with it."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    cluster.job("train", notes={"fairlead.io/min-parallelism": least})
    acts = cluster.acts()
    assert suspensions(acts) == {}
    assert "must be a whole number of at least 1" in records(acts, "NotAdmitted")[0]


def test_a_job_larger_than_any_cluster_is_told_so() -> None:
    """Nothing keeps room for two thousand million pods; with so many at once that are possible it starts."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    cluster.job("train", parallelism=2_000_000_000)
    acts = cluster.acts()
    assert suspensions(acts) == {}
    assert "2000000000 pods are to start together; at most 10000 can" in records(acts, "NotAdmitted")[0]
    cluster.job("train", parallelism=2_000_000_000, notes={"fairlead.io/min-parallelism": "2"})
    assert suspensions(cluster.acts()) == {"train": False}


@pytest.mark.parametrize(("of_job", "of_pod"), [(None, 600), (600, None), (600, 900), (None, None)])
def test_a_job_with_a_deadline_starts_beside_a_window_that_comes_again(of_job: int | None, of_pod: int | None) -> None:
    """What stands in for its pods counts with the time for which they may be awaited, too."""
    cluster, minute = Jobs(), 60_000
    cluster.node("n1", "4")
    window = WindowSpec(name="w", starts_ms=26 * minute, length_ms=minute, every_ms=26 * minute)
    cluster.driver.scheduler.handle(SetWindow(window), 0)
    starts = bool(of_job or of_pod)
    for suspend in (True, False):
        cluster.job("train", suspend=suspend)
        manifest = cluster.things["jobs", "train"]
        manifest["spec"]["activeDeadlineSeconds"] = of_job
        manifest["spec"]["template"]["spec"]["activeDeadlineSeconds"] = of_pod
        cluster.put(JOBS, manifest)
        if suspend:
            assert suspensions(cluster.acts()) == ({"train": False} if starts else {})
    for _ in range(2):  # The second time it is another version of each.
        for number in range(2):
            more = {"ownerReferences": owned("train"), "spec": {"activeDeadlineSeconds": of_pod}}
            cluster.pod(f"train-{number}", "2", **more)
    assert sorted(binds(cluster.acts())) == (["train-0", "train-1"] if starts else [])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_the_room_of_a_pod_that_ended_is_for_the_next_one_of_its_job(parallelism: int, phase: str) -> None:
    """Other work of the same priority took it, and the job ran on with fewer pods than it starts with."""
    cluster = at_work(parallelism)
    end(cluster, "train-0", phase)
    assert binds(cluster.acts()) == {}
    assert cluster.used("n0") == 2000
    cluster.member("train", 7)
    assert binds(cluster.acts()) == {"train-7": "n0"}
    assert cluster.used("n0") == 2000


def test_a_job_that_is_nearly_done_keeps_no_more_room_than_its_last_pods_need() -> None:
    """Nor does one that is done, or that is suspended."""
    cluster = at_work(2, 5)
    end(cluster, "train-0")
    end(cluster, "train-1")
    assert binds(cluster.acts()) == {}
    cluster.job("train", 2, completions=5, suspend=False, status={"succeeded": 4})
    assert list(binds(cluster.acts())) == ["other0"]
    cluster.member("train", 2)
    acts = cluster.acts()
    assert list(binds(acts)) == ["train-2"]
    cluster.bind_all(acts)
    end(cluster, "train-2")
    assert binds(cluster.acts()) == {}
    done = [{"type": "Complete", "status": "True"}]
    cluster.job("train", 2, completions=5, suspend=False, status={"succeeded": 5, "conditions": done})
    assert list(binds(cluster.acts())) == ["other1"]


def test_what_is_not_to_come_again_keeps_no_room() -> None:
    """A pod that is deleted, or was stopped for other work, and one beyond the least of an elastic job."""
    cluster = at_work()
    cluster.gone("train-0")
    assert list(binds(cluster.acts())) == ["other0"]
    cluster = at_work()
    cluster.pod("urgent", "2", priority=9)
    assert suspensions(cluster.acts()) == {"train": True}
    for name in ("train-0", "train-1"):
        end(cluster, name, "Failed")
    assert sorted(binds(cluster.acts())) == ["other0", "urgent"]
    cluster = at_work(notes={"fairlead.io/min-parallelism": "1"})
    end(cluster, "train-0")
    assert list(binds(cluster.acts())) == ["other0"]
    for completions in (None, 2):
        cluster = at_work(completions=completions)
        end(cluster, "train-0", "Failed")
        assert binds(cluster.acts()) == {}
        end(cluster, "train-1")
        assert list(binds(cluster.acts())) == ["other0"], "it has succeeded, and no other one follows it"


def test_room_on_a_node_that_takes_no_new_work_is_not_kept() -> None:
    """The next pod could not use it. Nor is it kept for a pod that does not come."""
    cluster = at_work()
    cluster.put(NODES, cluster.things["nodes", "n0"] | {"spec": {"unschedulable": True}})
    end(cluster, "train-0")
    assert (binds(cluster.acts()), cluster.used("n0")) == ({}, 0)
    cluster = at_work()
    end(cluster, "train-0")
    assert binds(cluster.acts()) == {}
    said = ClusterMoment(cluster.driver).why("default/train[2]").sentence
    assert said == "keeps room on n0 for the next pod of its job"
    cluster.now = 16 * 60_000
    assert list(binds(cluster.acts()) | binds(cluster.acts())) == ["other0"]


def test_a_job_that_is_suspended_between_two_pods_gives_the_room_back() -> None:
    """And waits for all of it anew."""
    cluster = at_work()
    end(cluster, "train-0")
    assert binds(cluster.acts()) == {}
    cluster.job("train", completions=5)
    cluster.gone("train-1")
    assert sorted(binds(cluster.acts())) == ["other0", "other1"]
