"""The explainer: what waiting pods are told, and which of them call for nodes."""

from __future__ import annotations

from typing import Any

import pytest
from driven_cluster import PRIORITY, Cluster, binds
from driven_jobs import Jobs

from fairlead.kubernetes.acts import CreatePlaceholder, Explain, Record
from fairlead.kubernetes.bodies import unscheduled
from fairlead.kubernetes.explainer import AT_ONCE, PACE_MS, SETTLE_MS, Explainer
from fairlead.kubernetes.kinds import NODES
from fairlead.kubernetes.reflector import Deleted
from fairlead.kubernetes.translate import identity

FIVE = PRIORITY.replace("{name: default}]", "{name: default, LIMIT}]")
LIMITS = ["resources: {max: {vcore: 5}}", "limits: [{limit: all, users: ['*'], maxresources: {vcore: 5}}]"]


def words(cluster: Cluster) -> dict[str, str]:
    """The reason in the condition of each pod that is told why it waits."""
    said: list[Any] = []
    explainer = Explainer(cluster.driver, said.append)
    for now in (0, SETTLE_MS):
        explainer.go_on(now)
    told = [act for act in said if isinstance(act, Explain)]
    return {act.pod.name: unscheduled(act, "")["status"]["conditions"][0]["reason"] for act in told}


@pytest.mark.parametrize("limit", LIMITS)
def test_as_many_pods_call_for_nodes_as_their_queue_or_limit_has_room_for(limit: str) -> None:
    """Nodes for the others would stay empty. What is stronger comes first, then what came first."""
    cluster = Cluster(FIVE.replace("LIMIT", limit))
    cluster.node("n1", "1")
    cluster.pod("runs", "1")
    cluster.bind_all(cluster.acts())
    for name in "abc":
        cluster.pod(name, "2")
    cluster.pod("high", "2", priority=9)
    cluster.acts()
    assert words(cluster) == {
        "high": "Unschedulable", "a": "Unschedulable", "b": "SchedulingSkipped", "c": "SchedulingSkipped",
    }  # fmt: skip


def test_where_nothing_is_bounded_each_pod_calls_for_a_node() -> None:
    """The queue has no maximum, and neither has its user."""
    cluster = Cluster()
    cluster.node("n1", "1")
    for name in "abc":
        cluster.pod(name, "2")
    cluster.acts()
    assert words(cluster) == dict.fromkeys("abc", "Unschedulable")


def test_what_fits_or_can_run_nowhere_calls_for_no_node() -> None:
    """Many are bound at once, and it is not its turn yet; or it has a field that is not understood."""
    cluster = Cluster()
    cluster.node("n1", "4")
    cluster.pod("strange", spec={"volumes": [{"name": "disk", "iscsi": {"targetPortal": "t"}}]})
    (told,) = [act for act in cluster.acts() if isinstance(act, Explain)]
    assert unscheduled(told, "")["status"]["conditions"][0]["reason"] == "SchedulingSkipped"
    cluster.pod("fits")  # Nothing was placed since.
    assert words(cluster) == {"fits": "SchedulingSkipped"}


def test_members_of_a_gang_are_told_how_far_it_has_come() -> None:
    """It stays a part for as long as there is no room; that none has its room was what they were told at first."""
    cluster = Cluster()
    cluster.node("n1", "1")
    cluster.full_node("n2", "1")
    groups = '[{"name": "w", "minMember": 2, "minResource": {"cpu": "1"}}]'
    notes = {identity.TASK_GROUP_NAME: "w", identity.TASK_GROUPS: groups}
    cluster.pod("m", labels={"applicationId": "job"}, annotations=notes)
    for made in [act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]:
        own = {**notes, identity.PLACEHOLDER: "true"}
        cluster.pod(made.name, labels={"applicationId": "job"}, annotations=own)
    cluster.bind_all(cluster.acts())
    said: list[Any] = []
    explainer = Explainer(cluster.driver, said.append)
    for now in range(0, 6 * SETTLE_MS, SETTLE_MS):
        explainer.go_on(now)
    told = [act.message for act in said if isinstance(act, Explain) and act.pod.name == "m"]
    assert told == ["the gang of application job reserves its room: 1 of 2 have it"]


def test_pods_of_a_group_that_is_too_large_are_told_what_the_nodes_lack_now() -> None:
    """Once that stays as it is; at first they were told as the group was complete."""
    cluster = Jobs()
    cluster.group("ring", 3)
    for name in "abc":
        cluster.in_group(name, "ring")
    cluster.node("n1", "1")
    acts = cluster.acts()
    explainer = Explainer(cluster.driver, acts.append)

    def told() -> set[str]:
        for _ in range(3):
            cluster.now += SETTLE_MS
            acts.extend(cluster.acts())
            explainer.go_on(cluster.now)
        said = {act.pod.name: act.message for act in acts if isinstance(act, Explain)}
        acts.clear()
        assert said.keys() in ({*"abc"}, set())
        return {message.partition("nodes together")[2] for message in said.values()}

    assert told() == {" have cpu 1"}
    cluster.node("n2", "1")
    assert told() == {" have cpu 2"}
    cluster.node("n1", "1", labels={"zone": "x"})
    assert told() == set()


def test_a_job_that_was_let_go_and_becomes_too_large_is_told_so_and_its_pods_what_they_lack() -> None:
    """They wait for its room no more, and had been told how much of it there was."""
    cluster = Jobs()
    for name in ("n1", "n2"):
        cluster.node(name, "2")
    cluster.pod("taken", "2", node="n2")
    cluster.job("train", suspend=False)
    for number in range(2):
        cluster.member("train", number)
    cluster.restarted()
    acts = cluster.acts()
    explainer = Explainer(cluster.driver, acts.append)
    cluster.driver.take(Deleted(NODES, "", "n2", "u-n2"), cluster.now)
    for _ in range(3):
        cluster.now += SETTLE_MS
        acts.extend(cluster.acts())
        explainer.go_on(cluster.now)
    said = {act.pod.name: act.message for act in acts if isinstance(act, Explain | Record)}
    assert binds(acts) == {"train-0": "n1"}
    assert said["train"] == "its 2 pods need cpu 4 together; all nodes together have cpu 2"
    assert said["train-1"] == "needs cpu 2; all nodes together have cpu 0 free of cpu 2"


def test_a_new_pod_is_told_why_it_waits_before_the_others_are_told_again() -> None:
    """With thousands that wait a round takes minutes; no autoscaler knew of the newcomer for so long."""
    cluster = Cluster()
    cluster.node("n1", "1")
    many = 5 * AT_ONCE * SETTLE_MS // PACE_MS
    for number in range(many):
        cluster.pod(f"p{number}", "2", priority=1)
    cluster.acts()
    said: list[Any] = []
    explainer = Explainer(cluster.driver, said.append)
    for now in range(0, 2 * SETTLE_MS, PACE_MS):
        explainer.go_on(now)
    cluster.pod("new", "2")
    cluster.acts()
    for now in range(2 * SETTLE_MS, 4 * SETTLE_MS, PACE_MS):
        explainer.go_on(now)
    assert "new" in {act.pod.name for act in said}
    for now in range(4 * SETTLE_MS, 8 * SETTLE_MS, PACE_MS):
        explainer.go_on(now)
    assert len({act.pod.name for act in said}) == many + 1
