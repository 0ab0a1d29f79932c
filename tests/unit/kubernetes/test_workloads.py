"""Jobs admitted as a whole by `suspend`, and pod groups, with the real scheduler behind a driver."""

from __future__ import annotations

from typing import Any

import pytest
from driven_cluster import PRIORITY, Cluster, binds

from fairlead.core.model.events import SetWindow
from fairlead.core.model.specs import WindowSpec
from fairlead.kubernetes.acts import EvictPod, Explain, Record, Suspend, at_server
from fairlead.kubernetes.kinds import CLAIMS, JOB_SETS, JOBS, NODES, POD_GROUPS, PRIORITY_CLASSES, VOLUMES
from fairlead.kubernetes.reflector import Deleted

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
        self.put(JOBS, {"metadata": meta, "spec": spec, "status": more.pop("status", {})})

    def member(self, job: str, number: int, cpu: str = "2", node: str = "", priority: int = 0) -> None:
        self.pod(f"{job}-{number}", cpu, priority, node, ownerReferences=_owned(job))

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


def test_a_job_is_let_go_when_all_of_it_has_room_and_its_pods_take_that_room() -> None:
    """Half of it has room: it stays suspended. All of it has: it goes on, and nothing else gets the room meanwhile."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.job("train")
    assert suspensions(cluster.acts()) == {}
    assert cluster.waiting() == 1
    stands_for_it = cluster.driver.informer.workloads.representative("default", "train")
    assert stands_for_it is not None
    assert stands_for_it.name.name == "train[1]", "the one that waits"
    cluster.node("n2", "3")
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
    cluster.pod("low-1", "2", node="n1", ownerReferences=_owned("low"), deletionTimestamp="2026-01-01T00:00:00Z")
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
    stand_in = cluster.driver.informer.workloads.representative("default", "high")
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
    cluster.node("n2", "4")
    cluster.driver.try_again("j-wide", cluster.now)
    assert suspensions(cluster.acts()) == {"wide": False}


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
    """Another scheduler's pods, a bad number, a queue that is not there."""
    cluster = Jobs(QUEUES.replace("{name: default}, {", "{").replace(", {name: fixed, value: root.default}", ""))
    cluster.node("n1", "16")
    cluster.job("theirs", template={"scheduler": "somebody"})
    cluster.job("number", notes={"fairlead.io/min-parallelism": "few"})
    cluster.job("lost", queue="root.nowhere")
    acts = cluster.acts()
    assert suspensions(acts) == {}
    wrong = records(acts, "NotAdmitted")
    assert ["somebody" in said for said in wrong] == [True, False]
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


def test_a_pod_group_starts_when_enough_of_its_pods_are_there_and_have_room() -> None:
    """Before that each says what it waits for; further members are ordinary pods."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.in_group("a", "ring")
    acts = cluster.acts()
    assert ["there is no PodGroup ring" in act.message for act in acts if isinstance(act, Explain)] == [True]
    cluster.group("ring", 3)
    cluster.in_group("b", "ring")
    acts = cluster.acts()
    assert binds(acts) == {}
    assert any("2 of the 3 pods are there" in act.message for act in acts if isinstance(act, Explain))
    cluster.in_group("c", "ring")
    acts = cluster.acts()
    assert binds(acts) == {}
    said = {act.pod.name for act in acts if isinstance(act, Explain) and "waits for room for 3 pods" in act.message}
    assert said == {"a", "b", "c"}
    cluster.node("n2", "2")
    assert sorted(binds(cluster.acts())) == ["a", "b", "c"]
    cluster.in_group("d", "ring")
    assert sorted(binds(cluster.acts())) == ["d"]


def test_a_member_that_goes_before_its_group_has_started_gives_its_room_back() -> None:
    """The others wait for another one."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "1")
    cluster.group("ring", 2)
    cluster.in_group("a", "ring")
    cluster.in_group("b", "ring")
    cluster.acts()
    assert cluster.used("n1") == 1000
    cluster.gone("b")
    cluster.acts()
    assert cluster.used("n1") == 0
    cluster.node("n2", "1")
    cluster.in_group("c", "ring")
    assert sorted(binds(cluster.acts())) == ["a", "c"]


def test_a_pod_group_starts_when_the_volume_claim_of_its_pod_is_there() -> None:
    """Whatever else is or is not said about the pod."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "1")
    cluster.group("ring", 1)
    volumes = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
    cluster.in_group("a", "ring", spec={"volumes": volumes})
    assert binds(cluster.acts()) == {}
    cluster.put(VOLUMES, {"metadata": {"name": "v", "uid": "v"}, "spec": {}, "status": {"phase": "Bound"}})
    its = {"metadata": {"name": "disk", "namespace": "default", "uid": "c"}, "spec": {"volumeName": "v"}}
    cluster.put(CLAIMS, {**its, "status": {"phase": "Bound"}})
    assert binds(cluster.acts()) == {"a": "n1"}


def _made_anew(cluster: Jobs, size: int) -> None:
    """The group is deleted, and there is another one of its name."""
    cluster.driver.take(Deleted(POD_GROUPS, "default", "ring", "g-ring"), cluster.now)
    meta = {"name": "ring", "namespace": "default", "uid": "g-ring-2"}
    cluster.put(POD_GROUPS, {"metadata": meta, "spec": {"minMember": size}})


def test_pods_that_wait_start_together_also_by_a_group_that_was_made_anew() -> None:
    """They had been in line by the group before, for which one of them was enough."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "1")
    cluster.group("ring", 1)
    for name in "abc":
        cluster.in_group(name, "ring")
    cluster.bind_all(cluster.acts())
    cluster.gone("a")
    _made_anew(cluster, 2)
    assert binds(cluster.acts()) == {}
    cluster.node("n2", "1")
    assert binds(cluster.acts()) == {"b": "n1", "c": "n2"}


def test_what_is_on_its_way_to_its_node_stays_there_when_its_group_is_made_anew() -> None:
    """Its place is not given to another, and the group has begun."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "1")
    cluster.group("ring", 1)
    cluster.in_group("a", "ring")
    assert binds(cluster.acts()) == {"a": "n1"}
    _made_anew(cluster, 1)
    assert binds(cluster.acts()) == {}
    assert cluster.used("n1") == 1000


def test_a_pod_that_was_refused_keeps_no_group_from_starting() -> None:
    """The quota is asked for the group's room, in which the stand-in and the pod have one place together."""
    cluster = Jobs("quotas: [{name: small, queue: root.default, resources: {vcore: 2}}]\n" + QUEUES)
    cluster.node("n1", "1")
    cluster.group("ring", 1)
    cluster.pod("x")
    cluster.bind_all(cluster.acts())
    cluster.node("n2", "1")
    cluster.in_group("a", "ring")
    cluster.bind_all(cluster.acts())
    cluster.in_group("b", "ring")
    cluster.acts()
    refused = cluster.driver.informer.pod_store.by_uid["u-b"]
    assert refused.refused is not None
    cluster.gone("a")
    _made_anew(cluster, 1)
    assert binds(cluster.acts()) == {"b": "n2"}
    assert refused.refused is None


def test_a_node_that_goes_while_a_job_is_reserved_for() -> None:
    """The stand-in that was there looks for another place, and the job still starts as a whole."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "2")
    cluster.job("train")
    cluster.acts()
    cluster.driver.take(Deleted(NODES, "", "n1", "u-n1"), 0)
    cluster.node("n2", "4")
    assert suspensions(cluster.acts()) == {"train": False}


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


def test_a_large_group_that_gathers_is_told_so_a_few_times_only() -> None:
    """Not each of its pods whenever another one comes, or whenever something is written on one."""
    cluster = Jobs(QUEUES)
    cluster.group("ring", 300)
    for number in range(200):
        cluster.in_group(f"p{number}", "ring")
    told = [act for act in cluster.driver.acts() if isinstance(act, Explain)]
    assert len(told) < 2_000
    assert told[-1].message == "200 of the 300 pods are there with which pod group ring starts"
    cluster.in_group("p7", "ring")
    assert len([act for act in cluster.driver.acts() if isinstance(act, Explain)]) == 1


def test_pod_groups_of_two_namespaces_are_two_applications() -> None:
    """Also where namespace and name together read alike: each waits for its own pods."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    groups = {"a": "b-c", "a-b": "c"}
    for space, name in groups.items():
        meta = {"name": name, "namespace": space, "uid": f"g-{space}"}
        cluster.put(POD_GROUPS, {"metadata": meta, "spec": {"minMember": 2}})
    for space, name in groups.items():
        cluster.in_group(f"p-{space}", name, namespace=space)
    assert binds(cluster.acts()) == {}
    cluster.in_group("q-a", "b-c", namespace="a")
    assert set(binds(cluster.acts())) == {"p-a", "q-a"}


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
            owned = {"ownerReferences": _owned("train"), "spec": {"activeDeadlineSeconds": of_pod}}
            cluster.pod(f"train-{number}", "2", **owned)
    assert sorted(binds(cluster.acts())) == (["train-0", "train-1"] if starts else [])


def _owned(job: str) -> list[dict[str, Any]]:
    return [{"kind": "Job", "name": job, "uid": f"j-{job}", "controller": True}]
