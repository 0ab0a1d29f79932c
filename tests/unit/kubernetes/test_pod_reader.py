"""What a pod that changes asks for from then on."""

from __future__ import annotations

import pytest
from driven_cluster import PRIORITY, Cluster, binds
from driven_jobs import Jobs, suspensions

from fairlead.core.model.events import SetWindow
from fairlead.core.model.specs import WindowSpec
from fairlead.kubernetes.acts import CreatePlaceholder, EvictPod
from fairlead.kubernetes.kinds import NAMESPACES, PRIORITY_CLASSES
from fairlead.kubernetes.reflector import Deleted

MINUTE = 60_000


@pytest.mark.parametrize("cpu", ["1", "2"])
def test_a_pod_that_gets_a_deadline_while_it_waits_may_run_before_a_window(cpu: str) -> None:
    """The reason that it is told says which deadline would do; the API lets it be set on a pod."""
    cluster = Cluster()
    cluster.node("n1")
    window = WindowSpec(name="w", starts_ms=20 * MINUTE, length_ms=MINUTE)
    cluster.driver.scheduler.handle(SetWindow(window), 0)
    cluster.pod("a")
    assert binds(cluster.acts()) == {}
    cluster.pod("a", cpu, spec={"activeDeadlineSeconds": 600})
    acts = cluster.acts()
    assert binds(acts) == {"a": "n1"}
    cluster.bind_all(acts)
    cluster.pod("a", cpu, node="n1", spec={"activeDeadlineSeconds": 300})
    cluster.acts()
    ask = cluster.driver.scheduler.cluster.partitions["default"].find_ask("yunikorn-default-autogen", "u-a")
    assert ask is not None
    assert ask.spec.time_limit_ms == 5 * MINUTE
    assert cluster.used("n1") == 1000 * int(cpu)


def test_a_member_of_a_gang_that_gets_a_deadline_while_it_waits_stays_in_line() -> None:
    """It is as it was when it came, and is not refused for that."""
    cluster = Cluster()
    group = {"yunikorn.apache.org/task-group-name": "w"}
    cluster.pod("a", annotations=group)
    cluster.acts()
    cluster.pod("a", annotations=group, spec={"activeDeadlineSeconds": 600})
    cluster.node("n1")
    assert binds(cluster.acts()) == {"a": "n1"}


@pytest.mark.parametrize(
    ("began", "goes"), [("1970-01-01T00:30:00Z", True), ("1970-01-01T00:55:00Z", False), (None, False)]
)
def test_what_ran_before_this_process_is_as_old_as_its_node_says(began: str | None, goes: bool) -> None:
    """Else a restart, or another replica that leads, would spare all of it anew."""
    cluster = Cluster(PRIORITY.replace("{name: default}", "{name: default, properties: {preemption.min.runtime: 10m}}"))
    cluster.now = 60 * MINUTE
    cluster.node("n1", "1")
    cluster.pod("low", node="n1", status={"startTime": began})
    cluster.pod("high", priority=9)
    assert [act.pod.name for act in cluster.acts() if isinstance(act, EvictPod)] == (["low"] if goes else [])


def _evicted(cluster: Cluster) -> list[str]:
    return [act.pod.name for act in cluster.acts() if isinstance(act, EvictPod)]


def _classed(cluster: Cluster, **notes: str) -> None:
    cluster.put(PRIORITY_CLASSES, {"metadata": {"name": "low", "uid": "c", "annotations": notes}, "value": 0})


LOW = {"priorityClassName": "low"}


def test_pods_are_protected_by_a_class_that_comes_after_them() -> None:
    """Classes and pods are watched apart; one whose word changes, or that goes, counts as it is now."""
    cluster = Cluster()
    cluster.node("n1", "1")
    cluster.pod("low", node="n1", spec=LOW)
    _classed(cluster, **{"fairlead.io/min-runtime": "10m"})
    cluster.pod("high", priority=9)
    assert _evicted(cluster) == []
    _classed(cluster, **{"fairlead.io/min-runtime": "20m"})
    cluster.now = 15 * MINUTE
    assert _evicted(cluster) == []
    cluster.driver.take(Deleted(PRIORITY_CLASSES, "", "low", "c"), cluster.now)
    assert _evicted(cluster) == ["low"]


@pytest.mark.parametrize("who", ["class", "pod"])
def test_pods_that_are_no_good_victims_since_they_came_are_spared_where_there_is_a_choice(who: str) -> None:
    """Of two alike the newer one goes, unless its class or it itself says meanwhile that it had rather not."""
    cluster = Cluster()
    cluster.node("n1", "2")
    cluster.pod("old", node="n1")
    cluster.pod("new", node="n1", spec=LOW)
    if who == "class":
        _classed(cluster, **{"yunikorn.apache.org/allow-preemption": "false"})
    else:
        cluster.pod("new", node="n1", spec=LOW, annotations={"yunikorn.apache.org/allow-preemption": "false"})
    cluster.pod("high", priority=9)
    assert _evicted(cluster) == ["old"]


STRICT = (
    "partitions: [{name: default, placementrules: [{name: provided}], queues: [{name: root, submitacl: '*', QUEUES}]}]"
)


def _namespace(cluster: Cluster, queue: str) -> None:
    notes = {"yunikorn.apache.org/queue": queue}
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "uid": "ns", "annotations": notes}})


def test_what_was_refused_by_what_its_namespace_said_is_tried_again_when_that_is_put_right() -> None:
    """It waited for ever, unless it was made anew or the queue file changed. Its own word comes first as ever."""
    cluster = Cluster(STRICT.replace("QUEUES", "queues: [{name: a}]"))
    cluster.node("n1")
    _namespace(cluster, "root.typo")
    cluster.pod("p")
    cluster.pod("own", labels={"queue": "root.typo", "applicationId": "own"})
    assert binds(cluster.acts()) == {}
    _namespace(cluster, "root.a")
    acts = cluster.acts()
    assert binds(acts) == {"p": "n1"}
    cluster.bind_all(acts)
    assert cluster.driver.scheduler.cluster.partitions["default"].root.children["a"].allocated["vcore"] == 1000
    assert list(cluster.driver.informer.refused) == ["own"]


def test_a_gang_that_was_refused_so_has_its_placeholders_made_in_the_right_queue() -> None:
    """The one that declares the gang says no queue itself."""
    cluster = Cluster(STRICT.replace("QUEUES", "queues: [{name: a}]"))
    _namespace(cluster, "root.typo")
    groups = '[{"name": "w", "minMember": 1, "minResource": {"cpu": "1"}}]'
    name = "yunikorn.apache.org/task-group-name"
    cluster.pod("m", annotations={name: "w", "yunikorn.apache.org/task-groups": groups})
    assert not [act for act in cluster.acts() if isinstance(act, CreatePlaceholder)]
    _namespace(cluster, "root.a")
    assert [act.queue for act in cluster.acts() if isinstance(act, CreatePlaceholder)] == ["root.a"]


def test_jobs_and_pod_groups_that_were_refused_so_are_tried_again_too() -> None:
    """A group by the queue that its namespace names, a job by the parent of its queue."""
    rules = "{name: provided, create: true, parent: {name: tag, value: namespace.parentqueue}}"
    cluster = Jobs(STRICT.replace("{name: provided}", rules).replace("QUEUES", "queues: [{name: a, parent: true}]"))
    cluster.node("n1", "9")
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "uid": "ns"}})
    cluster.group("ring", 2)
    for name in "mn":
        cluster.in_group(name, "ring")
    cluster.job("train", queue="lab")
    acts = cluster.acts()
    assert (binds(acts), suspensions(acts)) == ({}, {})
    notes = {"yunikorn.apache.org/queue": "ours", "yunikorn.apache.org/parentqueue": "root.a"}
    cluster.put(NAMESPACES, {"metadata": {"name": "default", "uid": "ns", "annotations": notes}})
    acts = cluster.acts()
    assert (sorted(binds(acts)), suspensions(acts)) == (["m", "n"], {"train": False})
    queues = cluster.driver.scheduler.cluster.partitions["default"].root.children["a"].children
    assert {name: queue.allocated["vcore"] for name, queue in queues.items()} == {"ours": 2000, "lab": 4000}
