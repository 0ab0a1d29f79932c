"""Placeholders: when those of a gang are made, wait in line, and go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from driven_cluster import Cluster, binds

from fairlead.kubernetes.acts import CreatePlaceholder, DeletePod, Explain
from fairlead.kubernetes.bodies import placeholder, unscheduled
from fairlead.kubernetes.kinds import NODES, PODS
from fairlead.kubernetes.reflector import Deleted
from fairlead.kubernetes.translate import identity


def groups(members: int, cpu: str, **more: Any) -> str:
    return json.dumps([{"name": "w", "minMember": members, "minResource": {"cpu": cpu}, **more}])


def member(cluster: Cluster, name: str, gang: str, style: str = "Soft", cpu: str = "2", **more: Any) -> None:
    words = f"gangSchedulingStyle={style} placeholderTimeoutInSeconds=60"
    notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: gang, identity.PARAMETERS: words}
    cluster.pod(name, cpu, labels={"applicationId": "job"}, annotations={**notes, **more})


def make(cluster: Cluster, acts: list[Any]) -> list[str]:
    """The API server makes the placeholders that are wanted; their names."""
    wanted = [act for act in acts if isinstance(act, CreatePlaceholder)]
    for act in wanted:
        body = placeholder(act, "fairlead")
        cluster.put(PODS, {**body, "metadata": {**body["metadata"], "uid": f"u-{act.name}"}, "status": {}})
    return [act.name for act in wanted]


def test_what_waits_of_a_gang_that_is_given_up_is_in_line_no_more() -> None:
    """It was told to go, went back into the line with the members, and was told to go again once it had their room."""
    cluster, gang = Cluster(), groups(2, "2")
    cluster.node("n1", "3")
    cluster.node("n2", "2")
    cluster.pod("other", "2", node="n2")
    member(cluster, "m0", gang)
    made = make(cluster, cluster.acts())
    cluster.bind_all(cluster.acts())
    cluster.now = 60_000
    gone = [act.pod.name for act in [*cluster.acts(), *cluster.acts()] if isinstance(act, DeletePod)]
    assert sorted(gone) == sorted(made)
    assert list(cluster.driver.informer.waiting) == ["u-m0"]


def told(acts: list[Any]) -> dict[str, str]:
    """Which pod is told what, with the reason of its condition."""
    conditions = {act.pod.name: unscheduled(act, "")["status"]["conditions"][0] for act in acts if type(act) is Explain}
    return {name: f"{each['reason']}: {each['message']}" for name, each in conditions.items()}


APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"applicationId": "job"}}, "topologyKey": "kubernetes.io/hostname"}
]}}  # fmt: skip
EACH = "of its 2 pods 2 need cpu 2, pods 1 each; all nodes together could hold"


@pytest.mark.parametrize(
    ("nodes", "more", "said"),
    [
        (["3"], {}, "its 2 pods need cpu 4 together; all nodes together have cpu 3"),
        (["3", "1"], {}, f"{EACH} at most 1 of them"),
        (["4"], {"affinity": APART}, f"{EACH} at most 1 of them"),
        (["4"], {"nodeSelector": {"zone": "b"}}, f"{EACH} none of them"),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_a_gang_that_all_nodes_could_not_hold_takes_no_room_and_starts_once_they_could(
    nodes: list[str], more: dict[str, Any], said: str, restarted: bool
) -> None:
    """What comes behind it starts. Its placeholders call an autoscaler, its members wait for them; all say why."""
    cluster, gang = Cluster(), groups(2, "2", **more)
    for number, cpu in enumerate(nodes):
        cluster.node(f"n{number}", cpu)
    member(cluster, "m0", gang)
    member(cluster, "m1", gang)
    acts = cluster.acts()
    made = make(cluster, acts)
    assert len(made) == 2
    if restarted:
        cluster.restarted()
    said = f"the gang of application job reserves its room: 0 of 2 have it; {said}"
    words = told(acts + cluster.acts())
    assert {words[name] for name in made} == {f"Unschedulable: {said}"}
    assert cluster.driver.informer.gangs.obstacle(cluster.driver.informer.pod_store.by_uid["u-m0"]) == (
        "gang-reserves",
        said,
    )
    cluster.pod("small", nodes[0])
    assert binds(cluster.acts()) == {"small": "n0"}
    for name in ("n8", "n9"):
        cluster.node(name, "2", labels={"zone": "b"})
    acts = cluster.acts()
    assert binds(acts).keys() == {*made}
    cluster.bind_all(acts)
    assert state(cluster) == "Running"
    assert gone(cluster) == {*made}
    assert binds(cluster.acts()).keys() == {"m0", "m1"}


def state(cluster: Cluster) -> str:
    return str(cluster.driver.scheduler.cluster.partitions["default"].applications["job"].state)


def gone(cluster: Cluster) -> set[str]:
    """The placeholders that are deleted now."""
    acts = cluster.acts()
    names = {act.pod.name for act in acts if isinstance(act, DeletePod)}
    for name in names:
        cluster.gone(name)
    return names


def test_a_gang_that_becomes_larger_than_all_nodes_gives_its_room_back() -> None:
    """A node of it goes. When one comes it starts as a whole, and its room is as that of any gang."""
    cluster, gang = Cluster(), groups(3, "2")
    for name in ("n1", "n2"):
        cluster.node(name, "2")
    cluster.full_node("n3", "2")
    member(cluster, "m0", gang)
    make(cluster, cluster.acts())
    cluster.bind_all(cluster.acts())
    assert cluster.used("n1") == cluster.used("n2") == 2_000
    cluster.gone("on-n3")
    cluster.driver.take(Deleted(NODES, "", "n3", "u-n3"), cluster.now)
    assert len(gone(cluster)) == 2
    make(cluster, cluster.acts())
    cluster.pod("small", "2", node="")
    acts = cluster.acts()
    cluster.bind_all(acts)
    assert binds(acts).keys() == {"small"}
    cluster.now += 31_000
    cluster.gone("small")
    cluster.node("n3", "2")
    acts = cluster.acts()
    assert len(binds(acts)) == 3
    cluster.bind_all(acts)
    assert state(cluster) == "Running"


@pytest.mark.parametrize(("style", "runs"), [("Soft", {"m0", "m1"}), ("Hard", set())])
def test_a_gang_that_all_nodes_could_not_hold_in_its_time(style: str, runs: set[str]) -> None:
    """`Soft` starts its pods as they fit, `Hard` fails and says why; no placeholder is left."""
    cluster, gang = Cluster(), groups(3, "2")
    cluster.node("n1", "4")
    for name in ("m0", "m1"):
        member(cluster, name, gang, style)
    made = make(cluster, cluster.acts())
    cluster.acts()
    cluster.now = 59_000
    assert cluster.acts() == []
    cluster.now = 61_000
    acts = cluster.acts()
    assert {act.pod.name for act in acts if isinstance(act, DeletePod)} == {*made}
    assert binds(acts).keys() == runs
    if style == "Hard":
        lacks = "its 3 pods need cpu 6 together; all nodes together have cpu 4"
        why = f"application job has failed: its gang (Hard) did not get all of its room in time; {lacks}"
        assert told(acts) == dict.fromkeys(("m0", "m1", *made), f"GangFailed: {why}")
    for name in made:
        cluster.gone(name)
    cluster.node("n2", "4")
    assert cluster.acts() == []


def test_a_gang_whose_groups_have_no_room_side_by_side_takes_none() -> None:
    """Each of its groups would fit on the nodes by itself, and so would all of it in sum."""
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.node(name, "4")
    sizes = {"w": (2, "3"), "x": (1, "1500m")}
    gang = [{"name": name, "minMember": n, "minResource": {"cpu": cpu}} for name, (n, cpu) in sizes.items()]
    member(cluster, "m0", json.dumps(gang))
    make(cluster, cluster.acts())
    acts = cluster.acts()
    said = "its 3 pods have no room side by side: the nodes are too small, or too few suit them"
    words = f"Unschedulable: the gang of application job reserves its room: 0 of 3 have it; {said}"
    assert set(told(acts).values()) == {words}
    assert cluster.used("n1") == cluster.used("n2") == 0
    cluster.node("n2", "5")
    assert len(binds(cluster.acts())) == 3
