"""Pods that the scheduler refused: each is tried again until it is taken."""

from __future__ import annotations

from typing import Any

import pytest
from driven_cluster import Cluster, binds
from testbed.provisioner import claim, volume

from fairlead.config import load_text
from fairlead.kubernetes.acts import Explain
from fairlead.kubernetes.kinds import CLAIMS, VOLUMES
from fairlead.kubernetes.reflector import Deleted

QUOTA = """
quotas: [{name: small, queue: root.default, resources: {vcore: %s}}]
partitions:
  - name: default
    placementrules: [{name: provided}, {name: fixed, value: root.default}]
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""


def told(acts: list[Any]) -> dict[str, str]:
    return {act.pod.name: act.code for act in acts if isinstance(act, Explain)}


def beyond_a_quota() -> Cluster:
    """A pod uses all of a quota, and `b` and `c` are refused."""
    cluster = Cluster(QUOTA % 2)
    cluster.node("n1", "8")
    cluster.pod("a", "2")
    cluster.bind_all(cluster.acts())
    cluster.pod("b", "2")
    cluster.pod("c", "2")
    assert told(cluster.acts()) == {"b": "quota-exceeded", "c": "quota-exceeded"}
    return cluster


def test_a_pod_beyond_a_quota_is_tried_again_until_there_is_room() -> None:
    """After pauses, which get longer up to a minute; it is told why once, and the one that came first is first."""
    cluster = beyond_a_quota()
    for now in range(1_000, 300_000, 1_000):
        cluster.now = now
        assert cluster.acts() == []
    cluster.gone("a")
    acts = []
    for now in range(300_000, 361_000, 1_000):
        cluster.now = now
        acts += cluster.acts()
    assert binds(acts) == {"b": "n1"}


def test_a_pod_beyond_a_quota_says_no_more_that_its_volume_is_not_there() -> None:
    """It was missing for a moment: claims and volumes are heard of apart."""
    cluster = Cluster(QUOTA % 2)
    cluster.node("n1", "8", labels={"kubernetes.io/hostname": "n1"})
    cluster.pod("a", "2")
    cluster.bind_all(cluster.acts())
    its = claim("disk")
    its["metadata"]["uid"], its["spec"]["volumeName"], its["status"] = "c", "v", {"phase": "Bound"}
    there = volume("v", "n1", its["metadata"])
    there["metadata"]["uid"] = "v"
    cluster.put(CLAIMS, its)
    cluster.put(VOLUMES, there)
    cluster.pod("b", "2", spec={"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]})
    assert told(cluster.acts()) == {"b": "quota-exceeded"}
    cluster.driver.take(Deleted(VOLUMES, "", "v", "v"), 0)
    assert told(cluster.acts()) == {"b": "volume-unbound"}
    cluster.put(VOLUMES, there)
    assert told(cluster.acts()) == {"b": "quota-exceeded"}


def test_a_pod_beyond_a_quota_is_tried_a_second_later() -> None:
    cluster = beyond_a_quota()
    cluster.gone("a")
    cluster.now = 1_000
    assert binds(cluster.acts()) == {"b": "n1"}


def test_a_waiting_pod_that_grows_beyond_a_quota_is_not_placed_as_what_it_was() -> None:
    """It waits until there is room for what it is now."""
    cluster = Cluster(QUOTA % 2)
    cluster.pod("a", "1")
    cluster.acts()
    cluster.pod("a", "3")
    cluster.node("n1", "8")
    acts = cluster.acts()
    assert (told(acts), binds(acts), cluster.used("n1")) == ({"a": "quota-exceeded"}, {}, 0)
    cluster.driver.configure(load_text(QUOTA % 4), 0)
    assert (binds(cluster.acts()), cluster.used("n1")) == ({"a": "n1"}, 3_000)


def test_pods_beyond_a_quota_are_tried_at_once_when_the_queue_file_changes() -> None:
    """The one that came first is first."""
    cluster = beyond_a_quota()
    cluster.driver.configure(load_text(QUOTA % 4), 0)
    assert binds(cluster.acts()) == {"b": "n1"}
    cluster.driver.configure(load_text(QUOTA % 6), 0)
    cluster.pod("d", "2")
    acts = cluster.acts()
    assert binds(acts) == {"c": "n1"}
    assert told(acts) == {"d": "quota-exceeded"}
    cluster.gone("b")
    cluster.gone("d")
    cluster.now = 3_600_000
    assert cluster.acts() == []


@pytest.mark.parametrize("node", ["", "n1"])
def test_a_pod_that_comes_as_its_application_ends_begins_it_anew(node: str) -> None:
    """Half a minute after its last pod it ends: the pod was told that its application is not there, and tried again
    later; of one that was bound already only the room was known, for as long as it ran.
    """
    cluster = Cluster(QUOTA % 4)
    cluster.node("n1", "8")
    cluster.pod("a", "2")
    cluster.bind_all(cluster.acts())
    cluster.gone("a")
    cluster.acts()
    cluster.now = 40_000
    cluster.pod("b", "2", node=node)
    acts = cluster.acts()
    assert (told(acts), binds(acts)) == ({}, {} if node else {"b": "n1"})
    assert cluster.used("n1") == 2_000
