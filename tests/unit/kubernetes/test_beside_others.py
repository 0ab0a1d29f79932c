"""Pods of other schedulers, and pods, namespaces and budgets that change: what waits notices."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from driven_cluster import PRIORITY, Cluster, binds

from fairlead.core.model.events import Event, RemoveBudget, SetBudget
from fairlead.kubernetes.acts import CreatePlaceholder, DeletePod, EvictPod
from fairlead.kubernetes.cluster_store import ClusterStore
from fairlead.kubernetes.kinds import BUDGETS, NAMESPACES, NODES, POD_GROUPS, PODS
from fairlead.kubernetes.reflector import Changed, Deleted
from fairlead.kubernetes.translate import identity
from fairlead.service.kubernetes.pods import ClusterMoment

WEB = {"app": "web"}
OTHER = {"schedulerName": "default-scheduler"}


def affinity(kind: str, **term: Any) -> dict[str, Any]:
    """To or against pods with `app=web`, on one node."""
    selector = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": WEB}, **term}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}}}


def port(number: int) -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": [{"containerPort": number, "hostPort": number}]}]}


def test_a_host_port_of_another_schedulers_pod_is_taken() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("theirs", node="n1", spec=OTHER | port(80))
    cluster.pod("ours", spec=port(80))
    assert binds(cluster.acts()) == {}
    cluster.gone("theirs")
    assert binds(cluster.acts()) == {"ours": "n1"}


@pytest.mark.parametrize("is_missed", [False, True], ids=["seen", "missed"])
def test_another_schedulers_pod_uses_its_node_also_when_that_has_returned(is_missed: bool) -> None:
    """A node is deleted and registers anew; its end may be missed."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("theirs", "3", node="n1", spec={"schedulerName": "other"})
    if not is_missed:
        cluster.driver.take(Deleted(NODES, "", "n1", "u-n1"), 0)
    cluster.node("n1", uid="u-n1-anew")
    cluster.pod("mine", "2")
    assert binds(cluster.acts()) == {}
    cluster.gone("theirs")
    assert binds(cluster.acts()) == {"mine": "n1"}


def test_what_a_node_starts_by_itself_is_nobodys_victim_whatever_scheduler_it_names() -> None:
    """A mirror pod that is deleted comes back at once, and what it shows runs on."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("static", "3", node="n1", annotations={"kubernetes.io/config.mirror": "x"})
    cluster.pod("high", "2", priority=9)
    acts = cluster.acts()
    assert binds(acts) == {}
    assert not [act for act in acts if isinstance(act, EvictPod)]
    cluster.pod("small", "1")
    assert binds(cluster.acts()) == {"small": "n1"}


def test_another_schedulers_pod_keeps_ours_away() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("theirs", node="n1", spec=OTHER | affinity("podAntiAffinity"))
    cluster.pod("ours", labels=WEB)
    assert binds(cluster.acts()) == {}
    cluster.gone("theirs")
    assert binds(cluster.acts()) == {"ours": "n1"}


def test_ours_goes_to_another_schedulers_pod() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.node("n2")
    cluster.pod("theirs", node="n2", labels=WEB, spec=OTHER)
    cluster.pod("ours", spec=affinity("podAffinity"))
    assert binds(cluster.acts()) == {"ours": "n2"}


def test_another_schedulers_pod_changes_its_labels() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("theirs", node="n1", spec=OTHER)
    cluster.pod("ours", spec=affinity("podAffinity"))
    assert binds(cluster.acts()) == {}
    cluster.pod("theirs", node="n1", labels=WEB, spec=OTHER)
    assert binds(cluster.acts()) == {"ours": "n1"}


def test_another_schedulers_pod_that_cannot_be_read_is_told_nothing() -> None:
    """It is not ours to say anything about."""
    cluster = Cluster()
    cluster.node("n1")
    bad = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}}
    cluster.pod("theirs", node="n1", spec=OTHER | affinity("podAntiAffinity", **bad))
    assert cluster.acts() == []


def test_a_waiting_pod_gets_a_toleration() -> None:
    cluster = Cluster()
    cluster.node("n1")
    node = cluster.things["nodes", "n1"]
    node["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    cluster.put(NODES, node)
    cluster.pod("ours")
    assert binds(cluster.acts()) == {}
    cluster.pod("ours", spec={"tolerations": [{"key": "gpu", "operator": "Exists"}]})
    assert binds(cluster.acts()) == {"ours": "n1"}


def test_a_running_pods_label_changes() -> None:
    """One that waits for it starts; one that must not be with it stays away."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("runs")
    cluster.bind_all(cluster.acts())
    cluster.pod("with", spec=affinity("podAffinity"))
    assert binds(cluster.acts()) == {}
    cluster.pod("runs", node="n1", labels=WEB)
    assert binds(cluster.acts()) == {"with": "n1"}
    cluster.pod("apart", spec=affinity("podAntiAffinity"))
    assert binds(cluster.acts()) == {}
    cluster.pod("runs", node="n1")
    assert binds(cluster.acts()) == {"apart": "n1"}


def test_a_pod_stays_in_the_application_that_it_came_with() -> None:
    cluster = Cluster()
    cluster.node("n1", "8")
    cluster.pod("runs", labels={"applicationId": "one"})
    cluster.bind_all(cluster.acts())
    cluster.pod("runs", "2", node="n1", labels={"applicationId": "two", **WEB})
    cluster.pod("with", spec=affinity("podAffinity"))
    assert binds(cluster.acts()) == {"with": "n1"}
    assert cluster.used("n1") == 3000


def test_a_namespace_gets_the_label_that_a_term_selects() -> None:
    cluster = Cluster()
    cluster.node("n1")
    cluster.put(NAMESPACES, {"metadata": {"name": "default"}})
    cluster.pod("runs", labels=WEB)
    cluster.bind_all(cluster.acts())
    cluster.pod("with", spec=affinity("podAffinity", namespaceSelector={"matchLabels": {"team": "a"}}))
    assert binds(cluster.acts()) == {}
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "labels": {"team": "a"}}})
    assert binds(cluster.acts()) == {"with": "n1"}


def test_a_pod_that_comes_before_its_namespace_has_the_queue_that_that_names() -> None:
    """They are watched apart; the pod waits for its namespace, and says so."""
    cluster = Cluster(PRIORITY.replace("queues: [{name: default}]", "queues: [{name: default}, {name: lab}]"))
    cluster.node("n1")
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "uid": "ns-default"}})
    cluster.put(POD_GROUPS, {"metadata": {"name": "g", "namespace": "new", "uid": "g"}, "spec": {"minMember": 1}})
    cluster.pod("p", namespace="new")
    cluster.pod("q", namespace="new", labels={"scheduling.x-k8s.io/pod-group": "g"})
    assert binds(cluster.acts()) == {}
    why = ClusterMoment(cluster.driver).why("new/p")
    assert why.sentence == "its namespace new is not known yet"
    notes = {identity.QUEUE: "root.lab"}
    cluster.put(NAMESPACES, {"metadata": {"name": "new", "uid": "ns-new", "annotations": notes}})
    assert {"p", "q"} <= binds(cluster.acts() + cluster.acts()).keys()
    assert [ClusterMoment(cluster.driver).details(f"new/{name}").queue for name in "pq"] == ["root.lab"] * 2


def test_all_pods_that_come_before_their_namespace_enter_with_it() -> None:
    """Also those of an application that the first of them has declared by then, and of a pod group."""
    cluster = Cluster()
    cluster.node("n1", "9")
    cluster.put(NAMESPACES, {"metadata": {"name": "other", "uid": "ns-other"}})
    cluster.put(POD_GROUPS, {"metadata": {"name": "g", "namespace": "default", "uid": "g"}, "spec": {"minMember": 2}})
    for number in range(2):
        cluster.pod(f"plain-{number}")
        cluster.pod(f"ring-{number}", labels={"scheduling.x-k8s.io/pod-group": "g"})
    assert binds(cluster.acts()) == {}
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "uid": "ns-default"}})
    bound = binds(cluster.acts() + cluster.acts())
    assert sorted(name for name in bound if "[" not in name) == ["plain-0", "plain-1", "ring-0", "ring-1"]


def test_a_budget_leaves_what_its_controller_counted() -> None:
    """Nothing, as one of its pods is not healthy: another victim goes, though it is dearer."""
    cluster = Cluster()
    cluster.node("n1", "3")
    cluster.node("n2", "1")
    for number in range(3):
        cluster.pod(f"web-{number}", labels=WEB, priority=1)
    cluster.bind_all(cluster.acts())
    spec = {"minAvailable": 2, "selector": {"matchLabels": WEB}}
    status = {"observedGeneration": 1, "disruptionsAllowed": 0}
    cluster.put(BUDGETS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec, "status": status})
    cluster.pod("dearer", priority=2)
    cluster.bind_all(cluster.acts())
    cluster.pod("high", priority=9)
    evicted = [act.pod.name for act in cluster.acts() if type(act).__name__ == "EvictPod"]
    assert evicted == ["dearer"]


def test_spread_counts_the_nodes_that_its_policies_say() -> None:
    """`nodeTaintsPolicy: Honor` leaves out a zone that is tainted, `nodeAffinityPolicy: Ignore` counts all."""
    cluster = Cluster()
    for zone in "abc":
        taints = [{"key": "t", "effect": "NoSchedule"}] if zone == "c" else None
        room = {"cpu": "9", "pods": "110"}
        meta = {"name": f"n{zone}", "uid": f"u-{zone}", "labels": {"zone": zone}}
        cluster.put(NODES, {"metadata": meta, "spec": {"taints": taints}, "status": {"allocatable": room}})
    term = {"topologyKey": "zone", "maxSkew": 1, "labelSelector": {"matchLabels": WEB}}
    honor = {"topologySpreadConstraints": [{**term, "nodeTaintsPolicy": "Honor"}]}
    for number in range(4):
        cluster.pod(f"honor-{number}", labels=WEB, spec=honor)
    assert len(binds(cluster.acts())) == 4
    other = {"app": "other"}
    ignore = {
        "topologySpreadConstraints": [
            {**term, "labelSelector": {"matchLabels": other}, "nodeAffinityPolicy": "Ignore"}
        ],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
        ]}}},
    }  # fmt: skip
    for number in range(4):
        cluster.pod(f"ignore-{number}", labels=other, spec=ignore)
    assert len(binds(cluster.acts())) == 2


def test_a_cordoned_node_takes_what_tolerates_that() -> None:
    """As a daemon does; all else stays away, and the node is shown as closed."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.put(NODES, {**cluster.things["nodes", "n1"], "spec": {"unschedulable": True}})
    cluster.pod("plain")
    cluster.pod("any", spec={"tolerations": [{"operator": "Exists"}]})
    assert binds(cluster.acts()) == {"any": "n1"}
    node = cluster.driver.scheduler.cluster.partitions["default"].nodes.nodes["n1"]
    assert not node.takes_new
    cluster.node("n1")
    assert node.takes_new
    assert binds(cluster.acts()) == {"plain": "n1"}


def test_a_spread_without_a_condition_counts_nothing() -> None:
    """kube-scheduler has it so, though elsewhere an empty selector selects everything."""
    cluster = Cluster()
    cluster.node("n1")
    term = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "labelSelector": {}, "minDomains": 4}
    for number in range(3):
        cluster.pod(f"p{number}", spec={"topologySpreadConstraints": [term]})
    assert len(binds(cluster.acts())) == 3


def bare_node(cluster: Cluster, labels: dict[str, str]) -> None:
    cluster.put(
        NODES, {"metadata": {"name": "n1", "labels": labels}, "status": {"allocatable": {"cpu": "9", "pods": "9"}}}
    )


@pytest.mark.parametrize(
    ("spec", "suits"),
    [
        ({"nodeSelector": {"kubernetes.io/hostname": "n1"}}, False),
        ({"topologySpreadConstraints": [
            {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "labelSelector": {"matchLabels": WEB}}
        ]}, False),
        (affinity("podAffinity"), False),
        (affinity("podAntiAffinity"), True),
        ({}, True),
    ],
    ids=["selects", "spread", "near", "apart", "any"],
)  # fmt: skip
def test_a_node_without_its_hostname_label_suits_what_kube_scheduler_has_there(
    spec: dict[str, Any], suits: bool
) -> None:
    """It counted as one that has its name there: pods ran on it that kube-scheduler keeps away, and the other way."""
    cluster = Cluster()
    bare_node(cluster, {"zone": "a"})
    cluster.pod("web", node="n1", labels=WEB)
    cluster.pod("p", labels=WEB, spec=spec)
    assert binds(cluster.acts()) == ({"p": "n1"} if suits else {})
    if spec and not suits:
        bare_node(cluster, {"kubernetes.io/hostname": "n1"})
        assert binds(cluster.acts()) == {"p": "n1"}


@pytest.mark.parametrize("scheduler", ["fairlead", "other"])
def test_a_pod_that_is_being_deleted_counts_for_no_spread(scheduler: str) -> None:
    """As in kube-scheduler: what takes its place need not wait for it. It counts for anti-affinity until it is gone."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.node("n2", "1")
    cluster.pod("other", node="n2", spec=OTHER)
    cluster.pod("old", node="n1", labels=WEB, spec={"schedulerName": scheduler})
    term = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "labelSelector": {"matchLabels": WEB}}
    cluster.pod("new", labels=WEB, spec={"topologySpreadConstraints": [term]})
    cluster.pod("apart", spec=affinity("podAntiAffinity"))
    assert binds(cluster.acts()) == {}
    old = cluster.things["pods", "old"]
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster.put(PODS, old)
    assert binds(cluster.acts()) == {"new": "n1"}


def test_what_a_pod_prefers_chooses_its_node() -> None:
    """Node affinity, affinity, anti-affinity and a soft spread; none of them keeps it waiting."""
    cluster = Cluster()
    for name, zone in (("n1", "a"), ("n2", "b")):
        cluster.node(name, "9", labels={"zone": zone})
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    in_b = {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}}
    web = {"topologyKey": "zone", "labelSelector": {"matchLabels": WEB}}
    wishes = {
        "nodes": {"affinity": {"nodeAffinity": {preferred: [in_b]}}},
        "with": {"affinity": {"podAffinity": {preferred: [{"weight": 1, "podAffinityTerm": web}]}}},
        "apart": {"affinity": {"podAntiAffinity": {preferred: [{"weight": 1, "podAffinityTerm": web}]}}},
        "spread": {"topologySpreadConstraints": [{**web, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]},
    }
    cluster.pod("web", labels=WEB, spec={"nodeSelector": {"zone": "b"}})
    cluster.bind_all(cluster.acts())
    places = {}
    for name, spec in wishes.items():
        cluster.pod(name, "2", spec={**spec, "containers": [{"name": "c"}]})
        acts = cluster.acts()
        places |= binds(acts)
        cluster.bind_all(acts)
    assert places == {"nodes": "n2", "with": "n2", "apart": "n1", "spread": "n1"}


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def wish(kind: str, weight: int = 5, **term: Any) -> dict[str, Any]:
    """Would rather, or rather not, have pods with `app=web` in its zone."""
    about = {"topologyKey": "zone", "labelSelector": {"matchLabels": WEB}, **term}
    return {"affinity": {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": about}]}}}


def zones() -> Cluster:
    cluster = Cluster()
    cluster.node("n1", labels={"zone": "a"})
    cluster.node("n2", labels={"zone": "b"})
    return cluster


def test_what_running_pods_prefer_of_a_newcomer() -> None:
    """Ours and those of other schedulers; the newcomer wants nothing."""
    for more in ({}, OTHER):
        cluster = zones()
        cluster.pod("likes", node="n2", spec=wish("podAffinity") | more)
        cluster.pod("web", "1500m", labels=WEB)
        assert binds(cluster.acts()) == {"web": "n2"}
        cluster = zones()
        cluster.pod("dislikes", node="n1", spec=wish("podAntiAffinity") | more)
        cluster.pod("large", "3", node="n2")
        cluster.pod("web", labels=WEB)
        assert binds(cluster.acts()) == {"web": "n2"}


def test_whom_a_running_pod_had_to_be_with_it_likes_a_little() -> None:
    for more in ({}, OTHER):
        cluster = zones()
        cluster.pod("with", node="n2", spec=affinity("podAffinity", topologyKey="zone") | more)
        cluster.pod("web", "1500m", labels=WEB)
        assert binds(cluster.acts()) == {"web": "n2"}


def test_what_is_preferred_follows_the_labels_of_namespaces() -> None:
    cluster = zones()
    cluster.put(NAMESPACES, {"metadata": {"name": "default"}})
    selector = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    cluster.pod("likes", node="n2", spec=OTHER | wish("podAffinity", **selector))
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "labels": {"team": "a"}}})
    cluster.pod("web", "1500m", labels=WEB)
    assert binds(cluster.acts()) == {"web": "n2"}


def test_a_pod_runs_where_its_node_declares_what_it_needs() -> None:
    """Also when a node declares it later."""
    cluster = Cluster()
    declares = {"status": {"allocatable": {"cpu": "4", "pods": "110"}}}
    cluster.node("n1")
    cluster.pod("users", spec={"hostNetwork": True, "hostUsers": False})
    rules = [{"action": "Restart"}, {"action": "RestartAllContainers"}]
    cluster.pod("restarts", spec={"initContainers": [{"name": "i", "restartPolicyRules": rules}]})
    cluster.pod("plain", spec={"hostUsers": False, "initContainers": [{"name": "i", "restartPolicyRules": rules[:1]}]})
    assert binds(cluster.acts()) == {"plain": "n1"}
    for name, feature in (
        ("n2", "RestartAllContainersOnContainerExits"), ("n3", "UserNamespacesHostNetworkSupport"),
    ):  # fmt: skip
        status = {**declares["status"], "declaredFeatures": [feature]}
        cluster.put(NODES, {"metadata": {"name": name, "uid": f"u-{name}"}, "status": status})
    assert binds(cluster.acts()) == {"restarts": "n2", "users": "n3"}


def test_a_budget_that_bounds_nothing_any_more_protects_nobody() -> None:
    """What it bounded before is not remembered."""
    store = ClusterStore("default", lambda _: None)
    meta = {"name": "web", "namespace": "default"}

    def put(**spec: Any) -> list[Event]:
        manifest = {"metadata": meta, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}
        return list(store.take(Changed(BUDGETS, msgspec.convert(manifest, BUDGETS.type))))

    assert [type(event) for event in put(minAvailable=2)] == [SetBudget]
    assert put() == [RemoveBudget("default/web")]
    assert put() == []
    assert [type(event) for event in put(minAvailable=1)] == [SetBudget]


def test_a_pod_that_runs_uses_its_room_though_it_is_refused() -> None:
    """Marked as idle work since it began, say: no member of a gang can be that, and after a restart it is read anew."""
    cluster = Cluster()
    cluster.node("n1")
    notes = {identity.IDLE: "true", identity.TASK_GROUP_NAME: "w"}
    cluster.pod("runs", "3", node="n1", annotations=notes)
    cluster.pod("new", "2")
    assert binds(cluster.acts()) == {}
    cluster.gone("runs")
    assert binds(cluster.acts()) == {"new": "n1"}


def test_an_application_is_judged_anew_also_when_its_last_pod_ran_without_it() -> None:
    """One that was refused, whose pod somebody else had bound: when all are gone its name is free."""
    cluster = Cluster("partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]")
    cluster.node("n1")
    cluster.pod("waits", labels={"applicationId": "job", "queue": "root.b"})
    cluster.acts()
    cluster.pod("runs", node="n1", labels={"applicationId": "job", "queue": "root.b"})
    cluster.acts()
    cluster.gone("waits")
    cluster.gone("runs")
    cluster.pod("new", labels={"applicationId": "job", "queue": "root.a"})
    assert binds(cluster.acts()) == {"new": "n1"}


def test_a_budget_that_was_counted_anew_allows_what_is_said_then() -> None:
    """Also where that is the number of before: who was stopped was not healthy, or another one has come."""
    cluster = Cluster()

    def counted(expected: int) -> None:
        status = {"observedGeneration": 1, "disruptionsAllowed": 1, "expectedPods": expected}
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        cluster.put(BUDGETS, {"metadata": {"name": "b", "namespace": "default"}, "spec": spec, "status": status})

    def left() -> int:
        cluster_now = cluster.driver.scheduler.cluster
        return cluster_now.admission.budgets.left(cluster_now.partitions["default"])["default/b"]

    cluster.node("n1")
    counted(2)
    cluster.pod("low", "4", 1, "n1", labels={"app": "web"})
    cluster.pod("high", "4", 9)
    assert [act.pod.name for act in cluster.acts() if isinstance(act, EvictPod)] == ["low"]
    assert left() == 0
    counted(3)
    assert left() == 1


@pytest.mark.parametrize("is_bound", [True, False])
def test_a_taint_that_goes_before_anybody_is_deleted_for_it_leaves_all_as_it_was(is_bound: bool) -> None:
    """The controller that deletes for it was slow. Nobody waits for an end that does not come: it is a victim again.
    The same where the pod was about to be bound when the taint came.
    """
    cluster = Cluster()
    cluster.node("n1")
    cluster.pod("a", "3", priority=1)
    placed = cluster.acts()
    if is_bound:
        cluster.bind_all(placed)
    _tainted(cluster, {"key": "broken", "effect": "NoExecute"})
    assert not [act for act in cluster.acts() if isinstance(act, EvictPod)], "the controller does that"
    if not is_bound:
        cluster.bind_all(placed)
    _tainted(cluster)
    assert cluster.used("n1") == 3000
    cluster.pod("high", "3", priority=9)
    assert [act.pod.name for act in cluster.acts() if isinstance(act, EvictPod)] == ["a"]
    cluster.gone("a")
    assert binds(cluster.acts()) == {"high": "n1"}


def test_a_placeholder_that_a_taint_does_not_let_stay_is_deleted_and_made_again() -> None:
    """Where the taint went before its controller deleted it, its gang could never be whole."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.full_node("n2", "4")
    cluster.full_node("n3", "4")
    groups = '[{"name": "w", "minMember": 2, "minResource": {"cpu": "3"}}]'
    notes = {identity.TASK_GROUPS: groups, identity.TASK_GROUP_NAME: "w"}
    cluster.pod("m", "3", labels={"applicationId": "gang"}, annotations=notes)
    first = next(act for act in cluster.acts() if isinstance(act, CreatePlaceholder))
    notes = {identity.PLACEHOLDER: "true", identity.TASK_GROUP_NAME: "w"}
    cluster.pod(first.name, "3", labels={"applicationId": "gang"}, annotations=notes)
    cluster.bind_all(cluster.acts())
    _tainted(cluster, {"key": "broken", "effect": "NoExecute"})
    assert [act.pod.name for act in cluster.acts() if isinstance(act, DeletePod)] == [first.name]
    cluster.gone(first.name)
    assert [act.name for act in cluster.acts() if isinstance(act, CreatePlaceholder)] == [first.name]


def _tainted(cluster: Cluster, *taints: dict[str, str]) -> None:
    meta, room = {"name": "n1", "uid": "u-n1"}, {"cpu": "4", "pods": "110"}
    cluster.put(NODES, {"metadata": meta, "spec": {"taints": taints}, "status": {"allocatable": room}})
