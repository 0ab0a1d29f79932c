"""Usage of users and groups as the REST reads show it: figures of a run of Apache YuniKorn, in order of name."""

from __future__ import annotations

from typing import Any

from fairlead.core.books.partition import Partition
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Release, RemoveApplication
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
)
from fairlead.insight.usage import Row, usage_groups, usage_users
from fairlead.scheduler import Scheduler

CORE = 1000


def usage_user(partition: Partition, name: str) -> Row | None:
    return next((row for row in usage_users(partition) if row["userName"] == name), None)


def usage_group(partition: Partition, name: str) -> Row | None:
    return next((row for row in usage_groups(partition) if row["groupName"] == name), None)


def cores(n: int) -> Limits:
    return Limits({"vcore": n * CORE})


def cluster(limited: bool) -> Scheduler:
    """root.p with the leaves a and b, with limits at each level or without any."""
    at_a = (LimitSpec(users=("alice",), max_applications=2),)
    at_p = (
        LimitSpec(users=("bob",), max_resources=cores(3), max_applications=2),
        LimitSpec(groups=("devs",), max_resources=cores(5)),
    )
    at_root = (LimitSpec(users=("*",), max_resources=cores(9)),)
    leaves = (QueueSpec(name="a", limits=at_a if limited else ()), QueueSpec(name="b"))
    p = QueueSpec(name="p", parent=True, limits=at_p if limited else (), queues=leaves)
    root = QueueSpec(name="root", parent=True, submit_acl="*", limits=at_root if limited else (), queues=(p,))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 50 * CORE}))), 0)
    return s


def submit(s: Scheduler, app: str, user: str, group: str, count: int, leaf: str = "a", size: int = 1) -> None:
    """An application with so many asks."""
    s.handle(AddApplication(ApplicationSpec(id=app, queue=f"root.p.{leaf}", user=user, groups=(group,))), 0)
    amount = Resources({"vcore": size * CORE})
    s.handle(AddAsks(tuple(AskSpec(application=app, key=f"{app}-{i}", resources=amount) for i in range(count))), 0)


def busy(limited: bool = True) -> Scheduler:
    """Alice and bob run, carol has asked for nothing, dave's ask fits nowhere."""
    s = cluster(limited)
    submit(s, "x", "alice", "devs", 2)
    submit(s, "y", "bob", "ops", 5)
    submit(s, "z", "carol", "carol", 0, "b")
    submit(s, "v", "dave", "devs", 1, "b", size=99)
    s.schedule(0)
    return s


def books(s: Scheduler) -> Partition:
    return s.cluster.partitions["default"]


def level(
    path: str, used: int = 0, apps: tuple[str, ...] = (), children: tuple[Any, ...] = (), **limit: Any
) -> dict[str, Any]:
    """One row of a tree."""
    row: dict[str, Any] = {"queuePath": path}
    if used:
        row["resourceUsage"] = {"vcore": used * CORE}
    if apps:
        row["runningApplications"] = list(apps)
    row |= limit
    if children:
        row["children"] = list(children)
    return row


NINE = {"maxResources": {"vcore": 9 * CORE}}
BOB_P = {"maxResources": {"vcore": 3 * CORE}, "maxApplications": 2}
ALICE_A = {"maxApplications": 2}


def test_users_with_limits_are_shown_before_they_have_anything() -> None:
    """With the wildcard where it holds for them; nobody else is known yet."""
    assert usage_users(books(cluster(True))) == [
        {
            "userName": "alice",
            "queues": level("root", children=(level("root.p", children=(level("root.p.a", **ALICE_A),)),), **NINE),
        },
        {"userName": "bob", "queues": level("root", children=(level("root.p", **BOB_P),), **NINE)},
    ]


def test_each_user_has_a_tree_of_what_he_uses_and_may_use() -> None:
    """Who only waits is there, who has asked for nothing is not."""
    alice, bob, dave = usage_users(books(busy()))
    leaf = level("root.p.a", 2, ("x",), **ALICE_A)
    assert alice == {
        "userName": "alice",
        "groups": {"x": "devs"},
        "queues": level("root", 2, ("x",), (level("root.p", 2, ("x",), (leaf,)),), **NINE),
    }
    leaf = level("root.p.a", 3, ("y",))
    assert bob == {
        "userName": "bob",
        "queues": level("root", 3, ("y",), (level("root.p", 3, ("y",), (leaf,), **BOB_P),), **NINE),
    }
    assert dave == {
        "userName": "dave",
        "groups": {"v": "devs"},
        "queues": level("root", children=(level("root.p", children=(level("root.p.b"),)),), **NINE),
    }


def test_groups_with_limits_are_shown() -> None:
    """With the applications that use something; queues where its applications wait are in the tree."""
    five = {"maxResources": {"vcore": 5 * CORE}}
    assert usage_groups(books(cluster(True))) == [
        {"groupName": "devs", "queues": level("root", children=(level("root.p", **five),))}
    ]
    below = (level("root.p.a", 2, ("x",)), level("root.p.b"))
    assert usage_groups(books(busy())) == [
        {
            "groupName": "devs",
            "applications": ["x"],
            "queues": level("root", 2, ("x",), (level("root.p", 2, ("x",), below, **five),)),
        }
    ]


def test_without_limits_users_are_shown_and_groups_are_not() -> None:
    """The figures are added up from the applications."""
    s = busy(limited=False)
    alice = usage_user(books(s), "alice")
    leaf = level("root.p.a", 2, ("x",))
    assert alice == {"userName": "alice", "queues": level("root", 2, ("x",), (level("root.p", 2, ("x",), (leaf,)),))}
    assert usage_groups(books(s)) == []


def test_what_ended_is_no_longer_shown() -> None:
    """An application that ran empty is gone from its user and group."""
    s = busy()
    for key in ("x-0", "x-1"):
        s.handle(Release("x", key), 0)
    s.handle(RemoveApplication("y"), 0)
    alice, bob = usage_user(books(s), "alice"), usage_user(books(s), "bob")
    assert alice == usage_user(books(cluster(True)), "alice")
    assert bob == usage_user(books(cluster(True)), "bob")
    devs = usage_group(books(s), "devs")
    assert devs is not None
    assert "applications" not in devs


def test_somebody_unknown_has_no_usage() -> None:
    """Neither as a user nor as a group."""
    assert usage_user(books(busy()), "nobody") is None
    assert usage_group(books(busy()), "ops") is None
