"""Pod groups, whose pods start together, with the real scheduler behind a driver."""

from __future__ import annotations

from typing import Any

import pytest
from driven_cluster import binds
from driven_jobs import QUEUES, Jobs, owned, suspensions

from fairlead.kubernetes.acts import EvictPod, Explain, Nominate
from fairlead.kubernetes.bodies import unscheduled
from fairlead.kubernetes.kinds import CLAIMS, POD_GROUPS, VOLCANO_GROUPS, VOLUMES
from fairlead.kubernetes.pod_reader import PodReader
from fairlead.kubernetes.pod_store import KnownPod
from fairlead.kubernetes.reflector import Deleted
from fairlead.service.kubernetes.pods import ClusterMoment


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


def test_idle_work_keeps_no_pod_group_from_starting() -> None:
    """It is no member, and told so; without its mark it is one."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    cluster.group("ring", 1)
    cluster.in_group("a", "ring", annotations={"fairlead.io/idle": "true"})
    told = [act.message for act in cluster.acts() if isinstance(act, Explain)]
    assert told == ["idle work starts with no pod group: leave out fairlead.io/idle, or the group"]
    cluster.in_group("b", "ring")
    assert binds(cluster.acts()) == {"b": "n1"}
    cluster.in_group("a", "ring")
    assert binds(cluster.acts()) == {"a": "n1"}


def test_a_group_that_is_not_complete_calls_no_autoscaler() -> None:
    """A node for its first pods would stay empty; once all are there, and lack room, it is what they need."""
    cluster = Jobs(QUEUES)
    cluster.group("ring", 2)

    def words() -> set[str]:
        told = [act for act in cluster.acts() if isinstance(act, Explain)]
        return {unscheduled(act, "")["status"]["conditions"][0]["reason"] for act in told}

    cluster.in_group("a", "ring")
    assert words() == {"SchedulingSkipped"}
    cluster.in_group("b", "ring")
    assert words() == {"Unschedulable"}


def test_a_member_that_goes_before_its_group_has_started_gives_its_room_back() -> None:
    """The others wait for another one."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "1")
    cluster.node("n2", "1")
    cluster.pod("before", "1", node="n2")
    cluster.group("ring", 2)
    cluster.in_group("a", "ring")
    cluster.in_group("b", "ring")
    cluster.acts()
    assert cluster.used("n1") == 1000
    cluster.gone("b")
    cluster.acts()
    assert cluster.used("n1") == 0
    cluster.gone("before")
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


def test_a_member_without_its_volume_claim_is_told_of_that_alone() -> None:
    """Two reasons in turn would be written for ever: each is a change of the pod, at which it is looked at again."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "1")
    cluster.group("ring", 3)
    volumes = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]

    def told_when_a_changes() -> dict[str, Explain]:
        cluster.acts()
        cluster.in_group("a", "ring", spec={"volumes": volumes})
        acts = [act for act in cluster.acts() if isinstance(act, Explain)]
        assert len({act.message for act in acts if act.pod.name == "a"}) == 1
        return {act.pod.name: act for act in acts}

    cluster.in_group("a", "ring", spec={"volumes": volumes})
    cluster.in_group("b", "ring")
    assert told_when_a_changes()["a"].message.startswith("2 of the 3 pods are there")
    cluster.in_group("c", "ring")
    told = told_when_a_changes()
    assert told["a"].message.startswith("its volume claim default/disk is not there")
    assert told["b"].message.startswith("2 of the 3 pods with which pod group ring starts are ready")
    assert unscheduled(told["b"], "")["status"]["conditions"][0]["reason"] == "SchedulingSkipped"
    moment = ClusterMoment(cluster.driver)
    assert [moment.why(name).sentence for name in "ab"] == [told[name].message for name in "ab"]


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


def test_a_pod_in_line_whose_group_is_deleted_waits_for_the_group() -> None:
    """As one that comes after that does, and as it would after a restart: it was placed all the same."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "1")
    cluster.group("ring", 1)
    for name in "ab":
        cluster.in_group(name, "ring")
    cluster.bind_all(cluster.acts())
    cluster.driver.take(Deleted(POD_GROUPS, "default", "ring", "g-ring"), 0)
    cluster.node("n2", "1")
    acts = cluster.acts()
    assert binds(acts) == {}
    assert ["no PodGroup ring" in act.message for act in acts if isinstance(act, Explain)] == [True]
    cluster.group("ring", 1)
    assert binds(cluster.acts()) == {"b": "n2"}


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


def test_a_large_group_that_goes_is_told_so_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its pods was told of each that went before it, and looked at again whenever another came or went."""
    looked_at = 0
    lacks = PodReader.lacks

    def counting(reader: PodReader, known: KnownPod) -> tuple[str, str] | None:
        nonlocal looked_at
        looked_at += 1
        return lacks(reader, known)

    monkeypatch.setattr(PodReader, "lacks", counting)
    cluster = Jobs(QUEUES)
    cluster.group("ring", 300)
    for number in range(200):
        cluster.in_group(f"p{number}", "ring")
    assert looked_at < 2_000
    cluster.driver.acts()
    for number in range(200):
        cluster.gone(f"p{number}")
    told = [act for act in cluster.driver.acts() if isinstance(act, Explain)]
    assert len(told) < 2_000
    assert told[-1].message == "1 of the 300 pods are there with which pod group ring starts"


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


def test_pod_groups_of_one_name_and_two_kinds_are_two_applications() -> None:
    """Each starts with its own pods, and the one that goes takes nothing from the other."""
    cluster, of_volcano = Jobs(QUEUES), {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    cluster.node("n1", "8")
    for kind in (VOLCANO_GROUPS, POD_GROUPS):
        meta = {"name": "g", "namespace": "default", "uid": kind.title}
        cluster.put(kind, {"metadata": meta, "spec": {"minMember": 2}})
    cluster.in_group("p-0", "g")
    cluster.pod("v-0", **of_volcano)
    assert binds(cluster.acts()) == {}
    cluster.driver.take(Deleted(POD_GROUPS, "default", "g", POD_GROUPS.title), cluster.now)
    cluster.in_group("p-1", "g")
    cluster.pod("v-1", **of_volcano)
    assert set(binds(cluster.acts())) == {"v-0", "v-1"}


def _made_anew(cluster: Jobs, size: int) -> None:
    """The group is deleted, and there is another one of its name."""
    cluster.driver.take(Deleted(POD_GROUPS, "default", "ring", "g-ring"), cluster.now)
    meta = {"name": "ring", "namespace": "default", "uid": "g-ring-2"}
    cluster.put(POD_GROUPS, {"metadata": meta, "spec": {"minMember": size}})


@pytest.mark.parametrize("group_first", [True, False])
def test_a_pod_of_a_job_that_starts_as_a_whole_is_part_of_the_job_whatever_group_it_names(group_first: bool) -> None:
    """Room was kept twice, for the job and for the group, and where there was not so much neither started."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    more = {"ownerReferences": owned("train"), "labels": {"scheduling.x-k8s.io/pod-group": "ring"}}
    if group_first:
        cluster.group("ring", 2)
    cluster.job("train")
    assert suspensions(cluster.acts()) == {"train": False}
    cluster.group("ring", 2)
    cluster.job("train", suspend=False)
    for name in ("train-0", "train-1"):
        cluster.pod(name, "2", **more)
    assert sorted(binds(cluster.acts())) == ["train-0", "train-1"]


def test_a_pod_that_waits_for_its_group_goes_to_its_job_once_that_is_known() -> None:
    """Jobs and pods are watched apart."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "4")
    more = {"ownerReferences": owned("train"), "labels": {"scheduling.x-k8s.io/pod-group": "ring"}}
    cluster.pod("train-0", "2", **more)
    assert binds(cluster.acts()) == {}
    cluster.job("train", 1, suspend=False)
    cluster.pod("train-0", "2", **more)
    assert binds(cluster.acts()) == {"train-0": "n1"}


def test_a_group_that_is_too_large_is_forgotten_with_its_last_pod() -> None:
    """Its application was introduced, and nothing of it was ever in line: no timer of the scheduler ends it."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "1")
    cluster.group("ring", 2)
    for name in ("a", "b", "a"):
        cluster.in_group(name, "ring")
    cluster.acts()
    applications = cluster.driver.scheduler.cluster.partitions["default"].applications
    assert list(applications) == ["default.ring"]
    for name in ("a", "b"):
        cluster.gone(name)
    cluster.acts()
    assert not applications
    assert not cluster.driver.informer.applications
    for name in ("a", "b"):
        cluster.in_group(name, "ring")
    cluster.node("n1", "2")
    assert binds(cluster.acts()) == {"a": "n1", "b": "n1"}


def test_after_a_restart_a_pod_that_waits_for_its_group_is_nominated_no_more() -> None:
    """It looked as if room were kept for it, to whoever adds nodes for example; room is kept for its group by now."""
    cluster = Jobs(QUEUES)
    cluster.node("n1")
    cluster.group("g", 2)
    cluster.in_group("a", "g", status={"nominatedNodeName": "n1"})
    cluster.restarted(QUEUES)
    assert [(act.pod.name, act.node) for act in cluster.acts() if isinstance(act, Nominate)] == [("a", "")]


@pytest.mark.parametrize("weak", [{"priority": 0}, {"priority": 9, "spec": {"preemptionPolicy": "Never"}}])
def test_nothing_is_stopped_for_a_part_of_a_group_whose_others_may_stop_nothing(weak: dict[str, Any]) -> None:
    """Its room would be given back in the end, and work be stopped for it again after a pause, for ever."""
    cluster = Jobs(QUEUES)
    for number in range(2):
        cluster.node(f"n{number}", "1")
        cluster.pod(f"runs{number}", "1", node=f"n{number}")
    cluster.group("ring", 2)
    cluster.in_group("launcher", "ring", priority=9)
    cluster.in_group("worker", "ring", **weak)
    acts = cluster.acts()
    assert binds(acts) == {}
    assert not [act for act in acts if isinstance(act, EvictPod)]
    cluster.gone("runs0")
    cluster.gone("runs1")
    assert sorted(binds(cluster.acts())) == ["launcher", "worker"]


def test_after_a_restart_a_member_of_a_group_that_had_begun_keeps_the_room_that_was_made_for_it() -> None:
    """Its node was given to whatever came first, and work had been stopped for nothing."""
    cluster = Jobs(QUEUES)
    cluster.node("n1", "1")
    cluster.node("n2", "1")
    cluster.group("ring", 1)
    cluster.in_group("a", "ring", node="n1")
    cluster.in_group("b", "ring", priority=9, status={"nominatedNodeName": "n2"})
    cluster.pod("victim", "1", node="n2", deletionTimestamp="2026-01-01T00:00:00Z")
    cluster.restarted(QUEUES)
    acts = cluster.acts()
    assert not [act for act in acts if isinstance(act, Nominate | EvictPod)]
    cluster.pod("equal", "1", priority=9, creationTimestamp="2025-01-01T00:00:00Z")
    cluster.gone("victim")
    assert binds(cluster.acts()) == {"b": "n2"}
