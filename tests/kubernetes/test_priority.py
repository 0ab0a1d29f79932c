"""Kubernetes' rules of priority and preemption, on a real API server, from manifests alone."""

from __future__ import annotations

import signal

import pytest
from testbed.cluster import Cluster, pod, priority_class
from testbed.control_plane import node_manifest

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]

HIGH, MIDDLE, LOW = (
    priority_class("high", 1000),
    priority_class("middle", 500),
    priority_class("low", 10),
)


def test_higher_priority_gets_the_room_first(cluster: Cluster) -> None:
    """Row 6: of two that wait for room for one, the higher priority starts, though it came later."""
    cluster.nodes(1, cpu="4")
    cluster.apply(HIGH, LOW, pod("early", "3", priority="low"), pod("late", "3", priority="high"))
    cluster.schedule()
    assert cluster.until_placed("late") == {"late": "n0"}
    cluster.until_told("early", "cpu")
    assert cluster.condition("early")["reason"] == "Unschedulable"


def test_what_does_not_fit_holds_nobody_up(cluster: Cluster) -> None:
    """Row 6: a request that fits nowhere waits; lower priorities go on."""
    cluster.nodes(1, cpu="4")
    cluster.apply(HIGH, LOW, pod("huge", "40", priority="high"), pod("small", "1", priority="low"))
    cluster.schedule()
    cluster.until_placed("small")
    assert "huge" not in cluster.places()


def test_never_waits_and_evicts_nobody(cluster: Cluster) -> None:
    """Row 5: with `Never` it waits ahead of lower priorities, evicts nobody, and starts when there is room."""
    never = priority_class("never", 1000, "Never")
    cluster.nodes(1, cpu="4")
    cluster.apply(LOW, never, pod("runs", "3", priority="low"))
    cluster.schedule()
    cluster.until_placed("runs")
    cluster.apply(pod("waits", "3", priority="never"), pod("behind", "3", priority="low"))
    cluster.until_told("waits", "")
    assert cluster.places() == {"runs": "n0"}
    cluster.plane.kubectl("delete", "pod", "runs", "--wait=false")
    assert cluster.until_placed("waits") == {"waits": "n0"}


def test_a_preemption_from_beginning_to_end(cluster: Cluster) -> None:
    """Rows 7, 8, 10, 11, 17: victim, condition, grace, nomination, held room, and events on both."""
    cluster.nodes(1, cpu="4")
    victim = pod("victim", "3", priority="low", terminationGracePeriodSeconds=7)
    cluster.apply(HIGH, MIDDLE, LOW, victim, pod("stays", "1", priority="middle"))
    cluster.schedule()
    cluster.until_placed("victim", "stays")
    kwok = cluster.plane.running["kwok"].process
    kwok.send_signal(signal.SIGSTOP)
    try:
        cluster.apply(pod("big", "3", priority="high"))
        leaving = cluster.until(lambda: (p := cluster.pods()["victim"])["metadata"].get("deletionTimestamp") and p)
        assert leaving["metadata"]["deletionGracePeriodSeconds"] == 7
        said = cluster.condition("victim", "DisruptionTarget")
        assert (said["status"], said["reason"]) == ("True", "PreemptionByScheduler")
        cluster.until(lambda: cluster.pods()["big"]["status"].get("nominatedNodeName") == "n0", "the nomination")
        cluster.apply(pod("thief", "2", priority="low"))
        cluster.until_told("thief", "")
        assert cluster.places() == {"stays": "n0"}
    finally:
        kwok.send_signal(signal.SIGCONT)
    assert cluster.until_placed("big")["big"] == "n0"
    assert cluster.places() == {"stays": "n0", "big": "n0"}
    preempted = cluster.until(lambda: [e for e in cluster.events("victim") if e["reason"] == "Preempted"])[0]
    assert preempted["note"].startswith("Preempted by default/big on node n0 (default/big has a higher priority): ")
    assert preempted["related"]["name"] == "big"
    preempting = cluster.until(lambda: [e for e in cluster.events("big") if e["reason"] == "Preempting"])[0]
    assert preempting["note"] == "default/victim is stopped on n0 to make room (this one has a higher priority)"
    assert [e["reason"] for e in cluster.events("big")].count("Scheduled") == 1


def test_a_nomination_outlives_its_process(cluster: Cluster) -> None:
    """Row 17: after a restart between eviction and start the room is held again, and nobody else is stopped."""
    cluster.nodes(2, cpu="4")
    on_n1 = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}
    cluster.apply(HIGH, LOW, pod("other", "3", priority="low", **on_n1))
    first = cluster.schedule()
    cluster.until_placed("other")
    cluster.apply(pod("victim", "3", priority="low"))
    cluster.until_placed("victim")
    kwok = cluster.plane.running["kwok"].process
    kwok.send_signal(signal.SIGSTOP)
    try:
        cluster.apply(pod("big", "3", priority="high", nodeSelector={"kubernetes.io/hostname": "n0"}))
        cluster.until(lambda: cluster.pods()["big"]["status"].get("nominatedNodeName") == "n0", "the nomination")
        cluster.until(lambda: cluster.condition("victim", "DisruptionTarget"), "the mark of the victim")
        first.end(signal.SIGKILL)
        cluster.apply(pod("thief", "2", priority="low", nodeSelector={"kubernetes.io/hostname": "n0"}))
        cluster.schedule()
        cluster.until_told("thief", "")
    finally:
        kwok.send_signal(signal.SIGCONT)
    assert cluster.until_placed("big")["big"] == "n0"
    assert cluster.places() == {"other": "n1", "big": "n0"}


def test_equal_priority_is_never_preempted(cluster: Cluster) -> None:
    """Row 7: only strictly lower priorities are victims."""
    cluster.nodes(1, cpu="4")
    cluster.apply(HIGH, pod("first", "3", priority="high"))
    cluster.schedule()
    cluster.until_placed("first")
    cluster.apply(pod("second", "3", priority="high"))
    cluster.until_told("second", "")
    assert cluster.places() == {"first": "n0"}


def test_the_least_harm_chooses_the_node(cluster: Cluster) -> None:
    """Row 9: the node whose highest victim is lowest; and only as many victims as needed (row 8)."""
    cluster.nodes(2, cpu="4")
    cluster.apply(
        HIGH, MIDDLE, LOW,
        pod("dear", "3", priority="middle", nodeSelector={"kubernetes.io/hostname": "n0"}),
        pod("cheap", "2", priority="low", nodeSelector={"kubernetes.io/hostname": "n1"}),
        pod("spared", "1", priority="low", nodeSelector={"kubernetes.io/hostname": "n1"}),
    )  # fmt: skip
    cluster.schedule()
    cluster.until_placed("dear", "cheap", "spared")
    cluster.apply(pod("big", "3", priority="high"))
    assert cluster.until_placed("big")["big"] == "n1"
    assert set(cluster.places()) == {"dear", "spared", "big"}


@pytest.mark.parametrize("leaves", [{"minAvailable": 1}, {"maxUnavailable": 0}], ids=lambda leaves: next(iter(leaves)))
def test_budgets_are_kept_where_there_is_a_choice(cluster: Cluster, leaves: dict[str, int]) -> None:
    """Row 12: of equal victims the one without a budget goes; where there is no choice the budget is broken."""
    cluster.nodes(2, cpu="4")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {**leaves, "selector": {"matchLabels": {"app": "web"}}},
    }
    cluster.apply(
        HIGH, LOW, budget,
        pod("web", "3", priority="low", labels={"app": "web"}, nodeSelector={"kubernetes.io/hostname": "n0"}),
        pod("other", "3", priority="low", nodeSelector={"kubernetes.io/hostname": "n1"}),
    )  # fmt: skip
    cluster.schedule()
    cluster.until_placed("web", "other")
    cluster.apply(pod("first", "3", priority="high"))
    assert cluster.until_placed("first")["first"] == "n1"
    assert "web" in cluster.places()
    cluster.apply(pod("second", "3", priority="high"))
    assert cluster.until_placed("second")["second"] == "n0"


def test_affinity_to_a_victim_makes_no_candidate(cluster: Cluster) -> None:
    """Row 13: where removing the victims would break the pod's own required affinity nobody is evicted."""
    cluster.nodes(1, cpu="4")
    cluster.apply(HIGH, LOW, pod("friend", "3", priority="low", labels={"app": "friend"}))
    cluster.schedule()
    cluster.until_placed("friend")
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "friend"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.apply(pod("needs", "3", priority="high", affinity=affinity))
    cluster.until_told("needs", "")
    assert cluster.places() == {"friend": "n0"}


def test_selectors_taints_ports_and_spread_choose_nodes(cluster: Cluster) -> None:
    """Filters: a node's labels and taints, ports that are taken, anti-affinity and spread over zones."""
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    cluster.apply(
        node_manifest("plain", labels={"zone": "a"}),
        node_manifest("disk", labels={"zone": "b", "disk": "ssd"}),
        node_manifest("gpu", labels={"zone": "b"}, taints=[taint]),
    )
    port = {"container": {"ports": [{"containerPort": 80, "hostPort": 8080}]}}
    toleration = {"tolerations": [{"key": "gpu", "operator": "Exists"}], "nodeName": None}
    apart = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}]
    cluster.schedule()
    cluster.apply(
        pod("picky", "1", nodeSelector={"disk": "ssd"}),
        pod("tolerant", "1", tolerations=toleration["tolerations"], nodeSelector={"kubernetes.io/hostname": "gpu"}),
        pod("port-1", "1", **port),
        pod("port-2", "1", **port),
        pod("nowhere", "1", nodeSelector={"disk": "tape"}),
        *(
            pod(
                f"db-{n}", "1", labels={"app": "db"},
                affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}},
            )
            for n in range(3)
        ),
    )  # fmt: skip
    places = cluster.until_placed("picky", "tolerant", "port-1", "port-2")
    assert (places["picky"], places["tolerant"]) == ("disk", "gpu")
    assert {places["port-1"], places["port-2"]} == {"plain", "disk"}
    cluster.until_told("nowhere", "")
    databases = cluster.until(
        lambda: (d := {n: p for n, p in cluster.places().items() if n[:2] == "db"}) and len(d) == 2 and d
    )
    assert {"plain": "a", "disk": "b"}.keys() == set(databases.values())
    (last,) = {f"db-{n}" for n in range(3)} - set(databases)
    cluster.until_told(last, "")
