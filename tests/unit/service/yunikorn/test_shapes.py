"""The JSON shapes, word for word, of a small made-up cluster."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import Constraints, Requirement
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    FilterSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
    RuleSpec,
    TemplateSpec,
)
from fairlead.scheduler import Scheduler
from fairlead.service.yunikorn import app_shapes, shapes
from fairlead.service.yunikorn.app_shapes import Why, bucket_of

SECOND = 1_000_000_000


def cluster(*leaves: QueueSpec, **partition: Any) -> Scheduler:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves or (QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, **partition),)), 1000)
    attributes = {"si.io/hostname": "host", "si.io/rackname": "rack", "si/instance-type": "big"}
    capacity = Resources({"vcore": 10, "memory": 100})
    s.handle(AddNode(NodeSpec(id="n1", capacity=capacity, attributes=attributes)), 1000)
    s.handle(AddApplication(ApplicationSpec(id="app", queue="root.a", user="ada", groups=("crew",))), 1000)
    return s


def ask(s: Scheduler, key: str, now: int, vcore: int = 2, **more: Any) -> None:
    spec = AskSpec(application="app", key=key, resources=Resources({"vcore": vcore}), **more)
    s.handle(AddAsks((spec,)), now)
    s.schedule(now)


def part(s: Scheduler) -> Partition:
    return s.cluster.partitions["default"]


def shown(s: Scheduler) -> dict[str, Any]:
    found = [*part(s).applications.values(), *part(s).ended.values(), *part(s).rejected.values()]
    return app_shapes.application(found[0], part(s), Why(part(s)))


def test_an_application_with_what_runs_and_what_waits() -> None:
    """Times in nanoseconds, the start in milliseconds."""
    s = cluster(QueueSpec(name="a", max=Limits({"vcore": 3})))
    ask(s, "k1", 2000, tags={"kubernetes.io/meta/podName": "pod"}, originator=True)
    ask(s, "k2", 3000, priority=5)
    assert shown(s) == {
        "applicationID": "app",
        "usedResource": {"vcore": 2},
        "maxUsedResource": {"vcore": 2},
        "pendingResource": {"vcore": 2},
        "partition": "default",
        "queueName": "root.a",
        "submissionTime": 1 * SECOND,
        "requests": [
            {
                "allocationKey": "k2",
                "requestTime": 3 * SECOND,
                "resource": {"vcore": 2},
                "priority": "5",
                "applicationId": "app",
                "allocationLog": [
                    {
                        "message": "needs cpu 0.002; queue root.a has cpu 0.001 left of its maximum cpu 0.003",
                        "lastOccurrence": 3 * SECOND,
                        "count": 1,
                    }
                ],
            }
        ],
        "allocations": [
            {
                "allocationKey": "k1",
                "allocationTags": {"kubernetes.io/meta/podName": "pod"},
                "requestTime": 2 * SECOND,
                "allocationTime": 2 * SECOND,
                "resource": {"vcore": 2},
                "priority": "0",
                "nodeId": "n1",
                "applicationId": "app",
                "originator": True,
            }
        ],
        "applicationState": "Running",
        "user": "ada",
        "groups": ["crew"],
        "stateLog": [
            {"time": 2 * SECOND, "applicationState": "Accepted"},
            {"time": 2 * SECOND, "applicationState": "Running"},
        ],
        "maxRequestPriority": 5,
        "startTime": 2000,
        "resourceHistory": {},
    }


def test_an_application_that_never_ran() -> None:
    """Its start is the zero time of Go, and the empty history is there."""
    assert shown(cluster()) == {
        "applicationID": "app",
        "partition": "default",
        "queueName": "root.a",
        "submissionTime": SECOND,
        "applicationState": "New",
        "user": "ada",
        "groups": ["crew"],
        "startTime": -62_135_596_800_000,
        "resourceHistory": {},
    }


def test_an_application_that_ended_keeps_its_figures() -> None:
    """What it used and for how long, the most it had, when it was over."""
    s = cluster()
    ask(s, "k1", 2000)
    ask(s, "k2", 2000, vcore=3)
    s.handle(Release("app", "k1", Cause.FINISHED), 7000)
    s.handle(Release("app", "k2", Cause.FINISHED), 8000)
    s.schedule(38_000)
    found = shown(s)
    assert found["applicationState"] == "Completed"
    assert found["finishedTime"] == 38 * SECOND
    assert found["maxUsedResource"] == {"vcore": 5}
    assert found["resourceHistory"] == {"resourceUsage": {"big": {"vcore": 28}}}
    assert "usedResource" not in found


def test_a_rejected_application_says_why_and_where_it_wanted_to_go() -> None:
    """Although it never was in that queue."""
    s = cluster()
    s.handle(AddApplication(ApplicationSpec(id="bad", queue="root.none")), 2000)
    found = app_shapes.application(part(s).rejected["bad"], part(s), Why(part(s)))
    assert (found["applicationState"], found["queueName"]) == ("Rejected", "root.none")
    assert "bad" in found["rejectedMessage"]


def test_a_gang_shows_its_placeholders_and_who_replaced_them() -> None:
    """The real allocation has the request time of its placeholder, and says that one was used."""
    s = cluster(QueueSpec(name="a", properties={"application.sort.policy": "fifo"}))
    for key in ("ph1", "ph2"):
        ask(s, key, 2000, placeholder=True, task_group="tg")
    placeholder = shown(s)["allocations"][0]
    assert (placeholder["placeholder"], placeholder["taskGroupName"]) == (True, "tg")
    ask(s, "real", 5000, task_group="tg")
    s.handle(Release("app", "ph1", Cause.PLACEHOLDER_REPLACED), 6000)
    found = shown(s)
    assert found["placeholderData"] == [{"taskGroupName": "tg", "count": 2, "minResource": {"vcore": 2}, "replaced": 1}]
    real = next(a for a in found["allocations"] if a["allocationKey"] == "real")
    assert (real["requestTime"], real["allocationTime"], real["allocationDelay"]) == (
        2 * SECOND,
        5 * SECOND,
        3 * SECOND,
    )
    assert real["placeholderUsed"] is True
    assert found["resourceHistory"] == {"placeholderResource": {"big": {"vcore": 8}}}


def test_a_reserved_node_is_shown_on_both_sides() -> None:
    """The application names the ask, the node too; nodes were looked at for it."""
    s = cluster()
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 6}))), 1000)
    ask(s, "k1", 2000, vcore=8)
    ask(s, "k2", 3000, vcore=8)
    s.schedule(6000)
    found = shown(s)
    assert (found["hasReserved"], found["reservations"]) == (True, ["k2"])
    assert found["requests"][0]["schedulingAttempted"] is True
    node = app_shapes.node(part(s).nodes.nodes["n1"], "default")
    assert (node["isReserved"], node["reservations"]) == (True, ["k2"])


def test_a_back_off_shows_its_end() -> None:
    """As a time in text, while it lasts."""
    backoff = {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "20s"}
    s = cluster(QueueSpec(name="a", properties=backoff))
    ask(s, "k1", 2000, vcore=50)
    part(s).applications["app"].backoff_until_ms = 22_500
    assert shown(s)["backoffDeadline"] == "1970-01-01T00:00:22.500Z"
    s.schedule(30_000)
    assert "backoffDeadline" not in shown(s) or shown(s)["backoffDeadline"] > "1970-01-01T00:00:30"


def test_a_node_with_foreign_work() -> None:
    """Percentages are of what the scheduler allocated; what others use is named."""
    s = cluster()
    ask(s, "k1", 2000)
    s.handle(
        AddAsks(
            (
                AskSpec(
                    application="", key="f", resources=Resources({"vcore": 3}), node="n1", tags={"foreign": "static"}
                ),
            )
        ),
        4000,
    )
    assert app_shapes.node(part(s).nodes.nodes["n1"], "default") == {
        "nodeID": "n1",
        "hostName": "host",
        "rackName": "rack",
        "attributes": {
            "si.io/hostname": "host",
            "si.io/rackname": "rack",
            "si/instance-type": "big",
            "si/node-partition": "[fairlead]default",
        },
        "capacity": {"memory": 100, "vcore": 10},
        "allocated": {"vcore": 2},
        "occupied": {"vcore": 3},
        "available": {"memory": 100, "vcore": 5},
        "utilized": {"memory": 0, "vcore": 20},
        "allocations": [app_shapes.allocation(next(iter(part(s).nodes.nodes["n1"].allocations)))],
        "foreignAllocations": [
            {
                "allocationKey": "f",
                "allocationTags": {"foreign": "static"},
                "allocationTime": 4 * SECOND,
                "resource": {"vcore": 3},
                "priority": "0",
                "nodeId": "n1",
            }
        ],
        "schedulable": True,
        "isReserved": False,
    }


def test_foreign_work_that_may_be_preempted_says_so() -> None:
    """Everything that is not static."""
    spec = AskSpec(application="", key="f", resources=Resources({"vcore": 3}), tags={"foreign": "default"})
    assert app_shapes.foreign(spec, 0)["preemptable"] is True


def test_a_queue_with_everything() -> None:
    """Its own limits, its template, the names of its children in any case, the children when asked for."""
    template = TemplateSpec(max_applications=2, max=Limits({"vcore": 1}), properties={"a": "b"})
    offset = {"priority.offset": "7", "preemption.delay": "90s"}
    leaf = QueueSpec(name="leaf", max=Limits({"vcore": 8}), properties=offset, max_applications=4)
    parent = QueueSpec(
        name="a",
        parent=True,
        guaranteed=Limits({"vcore": 2}),
        child_template=template,
        queues=(leaf,),
        properties={"preemption.policy": "fence"},
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(parent,))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    found = shapes.queue(part(s), part(s).root.children["a"], subtree=False)
    assert found == {
        "queuename": "root.a",
        "status": "Active",
        "partition": "",
        "guaranteedResource": {"vcore": 2},
        "isLeaf": False,
        "isManaged": True,
        "properties": {"preemption.policy": "fence"},
        "parent": "root",
        "template": {"maxApplications": 2, "maxResource": {"vcore": 1}, "properties": {"a": "b"}},
        "childNames": ["root.a.leaf"],
        "currentPriority": -(2**31),
        "sortingPolicy": "fair",
        "prioritySorting": True,
        "preemptionEnabled": True,
        "isPreemptionFence": True,
        "isPriorityFence": False,
        "preemptionDelay": "30s",
        "quotaPreemptionDelay": "0s",
    }
    child = shapes.queue(part(s), part(s).root.children["a"], subtree=True)["children"][0]
    assert (child["queuename"], child["priorityOffset"], child["maxRunningApps"]) == ("root.a.leaf", 7, 4)
    assert child["preemptionDelay"] == "1m30s"
    assert (child["headroom"], child["absUsedCapacity"]) == ({"vcore": 8}, {"vcore": 0})


def test_a_partition_counts_its_applications() -> None:
    """Also those that ended or were rejected."""
    s = cluster()
    s.handle(AddApplication(ApplicationSpec(id="bad", queue="root.none")), 2000)
    ask(s, "k", 2000)
    assert shapes.partition(part(s), 1000) == {
        "clusterId": "fairlead",
        "name": "default",
        "capacity": {
            "capacity": {"memory": 100, "vcore": 10},
            "usedCapacity": {"vcore": 2},
            "utilization": {"memory": 0, "vcore": 20},
        },
        "nodeSortingPolicy": {"type": "fair", "resourceWeights": {"memory": 1.0, "vcore": 1.0}},
        "preemptionEnabled": True,
        "quotaPreemptionEnabled": False,
        "totalNodes": 1,
        "applications": {"Rejected": 1, "Running": 1, "total": 2},
        "totalContainers": 1,
        "state": "Active",
        "lastStateTransitionTime": SECOND,
    }


def test_placement_rules() -> None:
    """Values are texts; the rule for what is forced in comes last."""
    specs = (
        RuleSpec(
            name="tag",
            create=True,
            value="Namespace",
            filter=FilterSpec(type="deny", users=("b", "a"), groups=("^x.*",)),
            parent=RuleSpec(name="fixed", value="root.users"),
        ),
        RuleSpec(name="user"),
    )
    assert shapes.rules(specs) == [
        {
            "name": "tag",
            "parameters": {"create": "true", "tagName": "namespace"},
            "filter": {"type": "deny", "userList": ["a", "b"], "groupExp": "^x.*"},
            "parentRule": {
                "name": "fixed",
                "parameters": {"create": "false", "queue": "root.users", "qualified": "true"},
            },
        },
        {"name": "user", "parameters": {"create": "false"}},
        {"name": "recovery", "parameters": {"queue": "root.@recovery@"}},
    ]
    assert [rule["name"] for rule in shapes.rules(())] == ["provided", "recovery"]


@pytest.mark.parametrize(
    ("allocated", "bucket"), [(0, 0), (1, 0), (10, 0), (11, 1), (20, 1), (90, 8), (91, 9), (100, 9), (140, 9)]
)
def test_buckets_of_utilisation(allocated: int, bucket: int) -> None:
    """Upper bounds belong to the lower bucket; more than all counts in the last."""
    assert bucket_of(allocated, 100) == bucket


def test_utilisation_of_nodes() -> None:
    """Only resources that a node has; ten buckets for each."""
    s = cluster()
    ask(s, "k", 2000, vcore=5)
    found = app_shapes.utilizations(part(s))
    assert (found["clusterId"], found["partition"]) == ("fairlead", "default")
    assert [each["type"] for each in found["utilizations"]] == ["memory", "vcore"]
    buckets = found["utilizations"][1]["utilization"]
    assert [b["bucketName"] for b in buckets][:2] == ["0-10%", "10-20%"]
    assert len(buckets) == 10
    assert buckets[4] == {"bucketName": "40-50%", "numOfNodes": 1, "nodeNames": ["n1"]}


def test_reasons_are_looked_up_once_for_equal_asks() -> None:
    """And are those that the scheduler gives for each of them."""
    s = cluster(QueueSpec(name="a", max=Limits({"vcore": 3})))
    for key in ("k1", "k2", "k3"):
        ask(s, key, 2000)
    why = Why(part(s))
    for key in ("k2", "k3"):
        assert why.of(part(s).applications["app"].asks[key]) == s.why("app", key)
    assert len(why._found) == 1


def test_what_may_go_elsewhere_or_nowhere_waits_for_a_reason_of_its_own() -> None:
    """One that fits no node's labels was said to wait for what another of its size waits for."""
    s = cluster()
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 10}))), 2000)
    for key in ("r1", "r2"):
        ask(s, key, 2000, vcore=9)
    nowhere = Constraints(selector=(Requirement("zone", "In", ("north",)),))
    ask(s, "k1", 2000)
    ask(s, "k2", 2000, where=nowhere)
    why = Why(part(s))
    found = {key: why.of(part(s).applications["app"].asks[key]) for key in ("k1", "k2")}
    assert found == {key: s.why("app", key) for key in found}
    assert found["k1"] != found["k2"]
