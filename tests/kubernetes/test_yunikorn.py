"""Queues, limits, gangs and preemption by guarantee, by YuniKorn's labels and annotations, from manifests alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testbed.cluster import Cluster, Manifest, pod

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]

SHARED = """
partitions:
  - name: default
    placementrules:
      - name: provided
        create: false
      - name: tag
        value: namespace
        create: true
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: blue
            resources: {guaranteed: {vcore: 2}, max: {vcore: 4}}
          - name: green
            resources: {guaranteed: {vcore: 2}}
            properties: {preemption.delay: 1s}
"""


def sleep(name: str, application: str, queue: str, cpu: str = "1", **more: Any) -> Manifest:
    """A pod as YuniKorn's users write it."""
    labels = {"app": "sleep", "applicationId": application, "queue": queue, **more.pop("labels", {})}
    return pod(name, cpu, labels=labels, **more)


def member(name: str, application: str, queue: str, cpu: str = "1", style: str = "Soft", wait: int = 60) -> Manifest:
    """A member of a gang of three."""
    groups = [{"name": "workers", "minMember": 3, "minResource": {"cpu": cpu, "memory": "64Mi"}}]
    policy = f"placeholderTimeoutInSeconds={wait} gangSchedulingStyle={style}"
    notes = {
        "yunikorn.apache.org/task-group-name": "workers",
        "yunikorn.apache.org/task-groups": json.dumps(groups),
        "yunikorn.apache.org/schedulingPolicyParameters": policy,
    }
    return sleep(name, application, queue, cpu, notes=notes)


def test_a_queue_has_its_maximum(cluster: Cluster) -> None:
    """What is beyond the maximum of its queue waits and is told so; another queue goes on."""
    cluster.nodes(1, cpu="16")
    cluster.apply(*(sleep(f"blue-{n}", "blue-app", "root.blue") for n in range(6)))
    running = cluster.schedule(SHARED)
    cluster.until(lambda: len(cluster.places()) == 4)
    cluster.apply(sleep("green-0", "green-app", "root.green"))
    cluster.until_placed("green-0")
    (waits, *_) = sorted({f"blue-{n}" for n in range(6)} - set(cluster.places()))
    said = cluster.until_told(waits, "root.blue")
    assert "cpu" in said
    assert "root.blue" in cluster.fairlead(running, "why", f"pod/{waits}")


def test_a_namespace_has_its_queue(cluster: Cluster) -> None:
    """Without a queue of its own a pod goes to the queue of its namespace, made for it."""
    cluster.nodes(1)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    cluster.apply(pod("web", namespace="shop"))
    running = cluster.schedule(SHARED)
    cluster.until_placed("web", namespace="shop")
    assert "root.shop" in cluster.fairlead(running, "queues", "root.shop")


def test_a_new_maximum_counts_at_once(cluster: Cluster) -> None:
    """The queue file in a ConfigMap is watched; a wrong one changes nothing and is said to be wrong."""
    cluster.nodes(1, cpu="16")

    def queues(text: str) -> Manifest:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "queues", "namespace": "default"},
            "data": {"queues.yaml": text},
        }

    cluster.apply(queues(SHARED), *(sleep(f"blue-{n}", "blue-app", "root.blue") for n in range(6)))
    running = cluster.schedule(None, "--config-map", "default/queues")
    cluster.until(lambda: len(cluster.places()) == 4)
    cluster.apply(queues(SHARED.replace("max: {vcore: 4}", "max: {vcore: none}")))
    cluster.until(lambda: "is not taken" in running.says(), "a complaint about the wrong file")
    assert running.status("/healthz") == 200
    assert len(cluster.places()) == 4
    cluster.apply(queues(SHARED.replace("max: {vcore: 4}", "max: {vcore: 5}")))
    cluster.until(lambda: len(cluster.places()) == 5, "the fifth")


def test_a_gang_starts_together(cluster: Cluster) -> None:
    """Placeholders keep room for all members, then the members take their places and the placeholders go."""
    cluster.nodes(2, cpu="2")
    cluster.schedule(SHARED)
    cluster.apply(member("w-0", "gang", "root.green"))
    cluster.until(lambda: sum("tg-gang" in name for name in cluster.places()) >= 2, "placeholders")
    cluster.apply(member("w-1", "gang", "root.green"), member("w-2", "gang", "root.green"))
    cluster.until_placed("w-0", "w-1", "w-2")
    cluster.until(lambda: set(cluster.pods()) == {"w-0", "w-1", "w-2"}, "the end of the placeholders")


def test_half_a_gang_never_starts(cluster: Cluster) -> None:
    """Where only two of three fit no member starts; when there is room all do."""
    cluster.nodes(1, cpu="3")
    cluster.apply(pod("foreign", "1", schedulerName="somebody", nodeName="n0"))
    cluster.schedule(SHARED)
    members = [f"w-{n}" for n in range(3)]
    cluster.apply(*(member(name, "gang", "root.green") for name in members))
    cluster.until(lambda: sum(name.startswith("tg-") for name in cluster.places()) == 2, "two placeholders")
    assert not set(members) & set(cluster.places())
    cluster.plane.kubectl("delete", "pod", "foreign", "--wait=false")
    cluster.until_placed(*members)


def test_a_gang_larger_than_all_nodes_takes_nothing(cluster: Cluster) -> None:
    """Other work runs where it would have gathered; when a node comes all of it starts."""
    cluster.nodes(1, cpu="2")
    cluster.schedule(SHARED)
    members = [f"w-{n}" for n in range(3)]
    cluster.apply(*(member(name, "gang", "root.green") for name in members))
    cluster.until_told("tg-gang-workers-2", "0 of 3 have it; its 3 pods need")
    cluster.apply(sleep("small", "small", "root.green", "2"))
    cluster.until_placed("small")
    cluster.nodes(2, cpu="4")
    cluster.until_placed(*members)


def test_a_gang_that_does_not_fit_in_time(cluster: Cluster) -> None:
    """Hard: nothing starts and the placeholders go. Soft: its members start as plain work."""
    cluster.nodes(1, cpu="3")
    cluster.apply(pod("foreign", "1", schedulerName="somebody", nodeName="n0"))
    cluster.schedule(SHARED)
    cluster.apply(*(member(f"hard-{n}", "hard", "root.green", style="Hard", wait=3) for n in range(3)))
    cluster.until(lambda: sum(name.startswith("tg-hard") for name in cluster.places()) == 2, "two placeholders")
    cluster.until(lambda: not any(name.startswith("tg-hard") for name in cluster.pods()), "the end of the placeholders")
    assert cluster.places() == {"foreign": "n0"}
    cluster.apply(*(member(f"soft-{n}", "soft", "root.green", wait=3) for n in range(3)))
    cluster.until(lambda: sum(name.startswith("soft") for name in cluster.places()) == 2, "two members as plain work")


def test_a_guarantee_is_given_back(cluster: Cluster) -> None:
    """A queue under its guarantee takes room from one that is over its own, and from nobody else."""
    cluster.nodes(1, cpu="4")
    cluster.schedule(SHARED)
    cluster.apply(*(sleep(f"blue-{n}", f"blue-{n}", "root.blue") for n in range(4)))
    cluster.until(lambda: len(cluster.places()) == 4)
    cluster.apply(*(sleep(f"green-{n}", f"green-{n}", "root.green") for n in range(3)))
    cluster.until(lambda: sum(n.startswith("green") for n in cluster.places()) == 2, "the guarantee", 90)
    assert sum(n.startswith("blue") for n in cluster.places()) == 2


def test_those_who_say_no_are_no_victims_while_others_are(cluster: Cluster) -> None:
    """`yunikorn.apache.org/allow-preemption: "false"` is respected where there is another choice."""
    cluster.nodes(1, cpu="4")
    cluster.schedule(SHARED)
    keep = {"notes": {"yunikorn.apache.org/allow-preemption": "false"}}
    cluster.apply(*(sleep(f"keep-{n}", f"keep-{n}", "root.blue", **keep) for n in range(2)))
    cluster.until(lambda: len(cluster.places()) == 2)
    cluster.apply(*(sleep(f"blue-{n}", f"blue-{n}", "root.blue") for n in range(2)))
    cluster.until(lambda: len(cluster.places()) == 4)
    cluster.apply(*(sleep(f"green-{n}", f"green-{n}", "root.green") for n in range(2)))
    cluster.until(lambda: sum(n.startswith("green") for n in cluster.places()) == 2, "the guarantee", 90)
    assert {n for n in cluster.places() if not n.startswith("green")} == {"keep-0", "keep-1"}


def test_pods_of_others_use_room(cluster: Cluster) -> None:
    """A pod that another scheduler placed takes its room away, and gives it back when it goes."""
    cluster.nodes(1, cpu="4")
    cluster.apply(pod("foreign", "3", schedulerName="somebody", nodeName="n0"))
    cluster.schedule(SHARED)
    cluster.apply(sleep("ours", "app", "root.green", "2"))
    cluster.until_told("ours", "cpu")
    cluster.plane.kubectl("delete", "pod", "foreign", "--wait=false")
    cluster.until_placed("ours")


def test_an_unknown_queue_is_said(cluster: Cluster) -> None:
    """A pod for a queue that is not there and may not be made: refused, with the reason on the pod."""
    cluster.nodes(1)
    queues = SHARED.replace("      - name: tag\n        value: namespace\n        create: true\n", "")
    cluster.schedule(queues)
    cluster.apply(sleep("lost", "lost-app", "root.nowhere"))
    cluster.until_told("lost", "no placement rule matched")
    described = cluster.plane.kubectl("describe", "pod", "lost")
    assert "no placement rule matched" in described
