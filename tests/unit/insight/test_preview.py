from __future__ import annotations

import json
from typing import Any

from fairlead.config import load_text
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Configure, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec
from fairlead.insight.preview import preview_of
from fairlead.scheduler import Scheduler
from fairlead.wire.configuration import (
    Change,
    ConfigDifference,
    DeclarationDifference,
    NamedJob,
    OverLimit,
    QueueDifference,
)


def preview(scheduler: Scheduler, new: ClusterSpec) -> ConfigDifference:
    """Of a scheduler as it is."""
    return preview_of(scheduler.dump(), new)


def spec(*queues: dict[str, Any], name: str = "default", **part: Any) -> ClusterSpec:
    tree = [{"name": "root", "submitacl": "*", "queues": list(queues)}]
    return load_text(json.dumps({"partitions": [{"name": name, "queues": tree} | part]}))


def busy(*queues: dict[str, Any], run: int = 3, wait: int = 0) -> Scheduler:
    """Application x in root.a runs `run` asks, `wait` more wait; the node has room for ten."""
    s = Scheduler(spec(*queues))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 10}))), 0)
    s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", user="u")), 0)
    for count, prefix in ((run, "r"), (wait, "w")):
        one = Resources({"vcore": 1})
        asks = tuple(AskSpec(application="x", key=f"{prefix}{i}", resources=one) for i in range(count))
        s.handle(AddAsks(asks), 0)
        if prefix == "r":
            s.schedule(0)
    return s


def leaf(name: str, most: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name} | ({"resources": {"max": {"vcore": most}}} if most else {}) | more


def test_the_same_file_changes_nothing() -> None:
    """Whatever runs and waits."""
    s = busy(leaf("a", "5m"), wait=4)
    assert preview(s, spec(leaf("a", "5m"))).empty


def test_what_has_just_ended_is_not_counted() -> None:
    """The books keep its application for half a minute."""
    s = busy(leaf("a"), run=1)
    assert [q.jobs for q in preview(s, spec(leaf("b"))).queues if q.queue == "root.a"] == [1]
    s.handle(Release("x", "r0"), 1_000)
    assert "x" in s.cluster.partitions["default"].applications
    assert [q.jobs for q in preview(s, spec(leaf("b"))).queues if q.queue == "root.a"] == [0]
    assert preview(s, spec(leaf("a"), name="other")).would_fail.count == 0


def test_it_changes_nothing_itself() -> None:
    """It works on copies."""
    s = busy(leaf("a"), leaf("b"), wait=2)
    before = s.dump()
    preview(s, spec(leaf("a", "1m"), leaf("c")))
    assert s.dump() == before


def test_queues_that_come_go_and_change() -> None:
    """One with work drains, one without is removed."""
    s = busy(leaf("a"), leaf("b"), leaf("c", "5m"))
    diff = preview(s, spec(leaf("c", "7m", maxapplications=2, properties={"k": "v"}), leaf("d")))
    assert {(q.queue, q.kind, q.jobs) for q in diff.queues} == {
        ("root.a", "draining", 1),
        ("root.b", "removed", 0),
        ("root.c", "changed", 0),
        ("root.d", "added", 0),
    }
    changed = next(q for q in diff.queues if q.queue == "root.c")
    assert changed == QueueDifference(
        "default",
        "root.c",
        "changed",
        0,
        [
            Change("max", {"cpu": 0.005}, {"cpu": 0.007}),
            Change("maxapplications", None, 2),
            Change("properties.k", None, "v"),
        ],
    )


def test_a_parent_that_becomes_a_leaf() -> None:
    """The queues below go at once if they are empty; they are named as all that go."""
    was = busy(leaf("a"), leaf("b", queues=[leaf("c"), leaf("d")]))
    diff = preview(was, spec(leaf("a"), leaf("b")))
    assert [(queue.queue, queue.kind, queue.jobs) for queue in diff.queues] == [
        ("root.b", "changed", 0),
        ("root.b.c", "removed", 0),
        ("root.b.d", "removed", 0),
    ]


def test_a_queue_that_would_be_over_its_maximum() -> None:
    """And what would start now but not then, with the reason."""
    diff = preview(busy(leaf("a"), wait=1), spec(leaf("a", "2m")))
    over = OverLimit("default", "root.a", "", "max", {"cpu": 0.003}, {"cpu": 0.002}, 1, [NamedJob("x", "u")])
    assert diff.over == [over]
    (waits,) = diff.would_wait.jobs
    assert waits.reason is not None
    assert (waits.key, waits.user, waits.reason.code) == ("x", "u", "queue-full")
    assert waits.reason.values == {
        "queue": "root.a",
        "needed": {"cpu": 0.001},
        "free": {"cpu": -0.001},
        "max": {"cpu": 0.002},
    }


def test_a_queue_that_is_over_already_is_not_named_again() -> None:
    """It is no consequence of the new file."""
    s = busy(leaf("a"))
    s.handle(Configure(spec(leaf("a", "2m"))), 0)
    assert preview(s, spec(leaf("a", "1m"))).over == []


def test_what_would_start() -> None:
    """Because of a raised maximum."""
    diff = preview(busy(leaf("a", "3m"), wait=2), spec(leaf("a", "4m")))
    assert diff.would_start.jobs == [NamedJob("x", "u")]
    assert diff.would_wait.count == 0


def test_rules_and_other_settings() -> None:
    """By partition, each with both values."""
    diff = preview(busy(leaf("a")), spec(leaf("a"), nodesortpolicy={"type": "binpacking"}))
    (change,) = diff.settings
    assert (change.partition, change.what) == ("default", "node_sort")
    assert (change.old["policy"], change.new["policy"]) == ("fair", "binpacking")


def test_partitions() -> None:
    """With the applications that would fail."""
    diff = preview(busy(leaf("a")), spec(leaf("a"), name="other"))
    assert (diff.partitions_added, diff.partitions_removed) == (["other"], ["default"])
    assert [(job.key, job.user) for job in diff.would_fail.jobs] == [("x", "u")]


def test_a_file_that_would_be_refused() -> None:
    """Only the reason is said."""
    diff = preview(busy(leaf("a")), spec(leaf("a", queues=[leaf("b")])))
    assert diff.refused is not None
    assert diff == ConfigDifference(refused=diff.refused)


def test_it_names_the_classes_quotas_and_budgets_that_differ() -> None:
    """Those that come, change and go; of what is the same nothing."""

    def declaring(**more: Any) -> ClusterSpec:
        tree = [{"name": "root", "submitacl": "*", "queues": [leaf("a")]}]
        return load_text(json.dumps({"partitions": [{"name": "default", "queues": tree}]} | more))

    same = {"name": "same", "value": 1}
    budget = {"name": "b", "minAvailable": 1}
    old = declaring(priorityclasses=[same, {"name": "c", "value": 1}], budgets=[budget])
    quota = {"name": "q", "queue": "root.a", "resources": {"vcore": "1"}}
    new = declaring(priorityclasses=[same, {"name": "c", "value": 2, "limited": True}], quotas=[quota])
    s = Scheduler(old)
    assert preview(s, old).empty
    diff = preview(s, new)
    assert diff.declared == [
        DeclarationDifference(
            "priority-class", "c", "changed", [Change("value", 1, 2), Change("limited", False, True)]
        ),
        DeclarationDifference(
            "quota", "q", "added", [Change("queue", None, "root.a"), Change("resources", None, {"cpu": 1})]
        ),
        DeclarationDifference("budget", "b", "removed", [Change("min_available", 1, None)]),
    ]
    assert not diff.empty
