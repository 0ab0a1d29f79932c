"""Limits of users and groups: who they hold for, what counts, who waits for what, and what a reload makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from invariants.books import check_books

from fairlead.core.model.decisions import Allocated, Evict
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    MoveApplication,
    Release,
    RemoveApplication,
    RemoveNode,
)
from fairlead.core.model.reasons import LimitApplications, LimitReached
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler


def limit(who: str, cores: int = 0, apps: int = 0) -> LimitSpec:
    """A limit for a user, or with a leading `%` for a group."""
    most = Limits({"vcore": cores * 1000}) if cores else None
    if who.startswith("%"):
        return LimitSpec(groups=(who[1:],), max_resources=most, max_applications=apps)
    return LimitSpec(users=(who,), max_resources=most, max_applications=apps)


def tree(**limits: Sequence[LimitSpec]) -> ClusterSpec:
    """root with the leaf q and the parent p, which has the leaves a and b; limits by name of the queue."""
    own = {name: tuple(entries) for name, entries in limits.items()}
    leaves = tuple(QueueSpec(name=name, limits=own.get(name, ())) for name in ("a", "b"))
    p = QueueSpec(name="p", parent=True, limits=own.get("p", ()), queues=leaves)
    queues = (p, QueueSpec(name="q", limits=own.get("q", ())))
    root = QueueSpec(name="root", parent=True, submit_acl="*", limits=own.get("root", ()), queues=queues)
    return ClusterSpec(partitions=(PartitionSpec(root=root),))


def cluster(spec: ClusterSpec, cores: int = 100) -> Scheduler:
    """A cluster with one node."""
    s = Scheduler(spec)
    s.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": cores * 1000}))), 0)
    return s


def submit(
    s: Scheduler,
    app: str,
    count: int,
    user: str = "alice",
    groups: tuple[str, ...] = ("devs",),
    queue: str = "root.p.a",
) -> None:
    """An application with so many asks of one core."""
    s.handle(AddApplication(ApplicationSpec(id=app, queue=queue, user=user, groups=groups)), 0)
    ask(s, app, count)


def ask(s: Scheduler, app: str, count: int, prefix: str = "", **more: Any) -> None:
    """More asks of one core each."""
    size = Resources({"vcore": 1000})
    asks = tuple(AskSpec(application=app, key=f"{prefix or app}-{i}", resources=size, **more) for i in range(count))
    s.handle(AddAsks(asks), 0)


def started(s: Scheduler) -> dict[str, int]:
    """How many asks of each application start now."""
    found: dict[str, int] = {}
    for d in s.schedule(0):
        if isinstance(d, Allocated):
            found[d.application] = found.get(d.application, 0) + 1
    check_books(s)
    return found


def release(s: Scheduler, *keys: str) -> None:
    """These ended or are withdrawn; the application is the part before the dash."""
    for key in keys:
        s.handle(Release(key.partition("-")[0], key), 0)
    check_books(s)


def reload(s: Scheduler, spec: ClusterSpec) -> None:
    """Other limits from now on."""
    s.handle(Configure(spec), 0)
    check_books(s)


# -- for whom -----------------------------------------------------------------------------------------------------


def test_a_limit_holds_for_all_that_the_user_has_below_its_queue() -> None:
    """Two applications of one user in two leaves share it; others do not come into it."""
    s = cluster(tree(p=[limit("alice", 3)]))
    submit(s, "x", 2)
    submit(s, "y", 2, queue="root.p.b")
    submit(s, "z", 4, user="bob")
    submit(s, "w", 4, queue="root.q")
    placed = started(s)
    assert placed.pop("x", 0) + placed.pop("y", 0) == 3
    assert placed == {"z": 4, "w": 4}


def test_each_limit_on_the_way_up_holds() -> None:
    """The leaf lets two start, the parent three in all."""
    s = cluster(tree(p=[limit("alice", 3)], a=[limit("alice", 2)]))
    submit(s, "x", 9)
    submit(s, "y", 9, queue="root.p.b")
    assert started(s) == {"x": 2, "y": 1}


def test_the_wildcard_holds_for_each_user_by_himself() -> None:
    """It is no pool that they share."""
    s = cluster(tree(root=[limit("*", 2)]))
    submit(s, "x", 9)
    submit(s, "y", 9, user="bob")
    assert started(s) == {"x": 2, "y": 2}


def test_a_named_limit_replaces_the_wildcard_of_its_own_queue_only() -> None:
    """Further up the wildcard still holds."""
    s = cluster(tree(root=[limit("*", 5)], p=[limit("alice", 4), limit("*", 2)]))
    submit(s, "x", 9)
    assert started(s) == {"x": 4}
    submit(s, "y", 9, queue="root.q")
    submit(s, "z", 9, user="bob")
    assert started(s) == {"y": 1, "z": 2}


def test_the_wildcard_of_groups_is_shared_by_all_who_fall_through_to_it() -> None:
    """Who is in a named group does not."""
    s = cluster(tree(p=[limit("%ops", 1), limit("%*", 3)]))
    submit(s, "x", 2, groups=("aa",))
    submit(s, "y", 9, user="bob", groups=("bb",))
    submit(s, "z", 9, user="carol", groups=("ops",))
    assert started(s) == {"x": 2, "y": 1, "z": 1}


@pytest.mark.parametrize(
    ("limits", "placed"),
    [
        ({"p": [limit("%devs", 1)], "a": [limit("%ops", 3)]}, 3),
        ({"p": [limit("%devs", 5)], "a": [limit("%zz", 1), limit("%*", 3)]}, 3),
        ({"p": [limit("%ops", 2), limit("%devs", 4)]}, 2),
        ({"p": [limit("%qa", 2)]}, 9),
        ({"p": [limit("%devs", 4)], "a": [limit("%devs", 2)]}, 2),
    ],
    ids=["nearest queue", "wildcard nearer", "first in the file", "in none", "every level of it"],
)
def test_an_application_counts_for_one_group(limits: dict[str, Any], placed: int) -> None:
    """From the leaf up: the first group of the file that the user is in, else the wildcard; only its limits hold."""
    s = cluster(tree(**limits))
    submit(s, "x", 9, groups=("devs", "ops"))
    assert started(s) == {"x": placed}


def test_a_user_without_groups_is_a_group_of_his_own() -> None:
    """It has his name."""
    s = cluster(tree(p=[limit("%alice", 2)]))
    submit(s, "x", 9, groups=())
    assert started(s) == {"x": 2}


def test_limits_of_queues_written_in_capitals_hold() -> None:
    """Queue names have no case."""
    leaf = QueueSpec(name="Team", limits=(limit("alice", 2),))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(leaf,))
    s = cluster(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    submit(s, "x", 9, queue="root.team")
    assert started(s) == {"x": 2}


def test_partitions_do_not_share_limits() -> None:
    """What a user has in one says nothing about the other."""
    root = QueueSpec(
        name="root", parent=True, submit_acl="*", limits=(limit("alice", 2),), queues=(QueueSpec(name="q"),)
    )
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root), PartitionSpec(name="other", root=root))))
    for part in ("default", "other"):
        s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 9000}), partition=part)), 0)
        s.handle(AddApplication(ApplicationSpec(id=part, queue="root.q", user="alice", partition=part)), 0)
        asks = tuple(AskSpec(application=part, key=f"k{i}", resources=Resources({"vcore": 1000})) for i in range(9))
        s.handle(AddAsks(asks, part), 0)
    assert started(s) == {"default": 2, "other": 2}


# -- who waits, and for what --------------------------------------------------------------------------------------


def test_who_waits_for_room_under_a_limit_is_told_the_numbers() -> None:
    """Whose limit, where, what is left of what."""
    s = cluster(tree(p=[limit("%devs", 2)]))
    submit(s, "x", 3)
    started(s)
    assert s.why("x", "x-2") == LimitReached("group", "devs", "root.p", {"vcore": 1000}, {"vcore": 0}, {"vcore": 2000})


def test_an_end_lets_the_next_of_the_same_user_start() -> None:
    """In another leaf too, and nobody else is affected."""
    s = cluster(tree(p=[limit("alice", 2)]))
    submit(s, "x", 2)
    assert started(s) == {"x": 2}
    submit(s, "y", 2, queue="root.p.b")
    assert started(s) == {}
    release(s, "x-0")
    assert started(s) == {"y": 1}


def test_a_smaller_ask_may_start_where_a_larger_one_waits() -> None:
    """One ask over the limit does not hold back those behind it."""
    s = cluster(tree(p=[limit("alice", 3)]))
    submit(s, "x", 2)
    large = AskSpec(application="x", key="x-large", resources=Resources({"vcore": 4000}), priority=5)
    s.handle(AddAsks((large,)), 0)
    assert started(s) == {"x": 2}


def test_only_resources_that_a_limit_names_are_limited() -> None:
    """An ask without them starts however much is used."""
    s = cluster(tree(p=[limit("alice", 1)]))
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"memory": 10}))), 0)
    submit(s, "x", 2)
    s.handle(AddAsks((AskSpec(application="x", key="x-m", resources=Resources({"memory": 5})),)), 0)
    assert started(s) == {"x": 2}


def test_an_application_waits_while_its_user_runs_as_many_as_he_may() -> None:
    """With the reason; the end of the first lets the next in line run."""
    s = cluster(tree(p=[limit("alice", apps=1)]))
    for app in "xyz":
        submit(s, app, 1)
    assert started(s) == {"x": 1}
    assert s.why("y", "y-0") == LimitApplications("user", "alice", "root.p", 1, 1)
    release(s, "x-0")
    assert started(s) == {"y": 1}
    s.handle(RemoveApplication("y"), 0)
    assert started(s) == {"z": 1}


def test_the_limit_of_applications_of_a_group_counts_all_its_users() -> None:
    """Running ones go on and take more."""
    s = cluster(tree(p=[limit("%devs", apps=1)]))
    submit(s, "x", 1)
    submit(s, "y", 1, user="bob")
    assert started(s) == {"x": 1}
    ask(s, "x", 2, "x-more")
    assert started(s) == {"x": 2}


def test_an_application_that_ran_empty_leaves_its_place_to_the_next() -> None:
    """Also when its last ask was withdrawn after its last allocation had ended."""
    s = cluster(tree(p=[limit("alice", apps=1)]), cores=3)
    submit(s, "x", 1)
    started(s)
    s.handle(AddAsks((AskSpec(application="x", key="x-huge", resources=Resources({"vcore": 9000})),)), 0)
    release(s, "x-0")
    submit(s, "y", 1)
    assert started(s) == {}
    release(s, "x-huge")
    assert started(s) == {"y": 1}


# -- what counts --------------------------------------------------------------------------------------------------


def test_what_runs_already_counts_and_may_be_over_the_limit() -> None:
    """Three are reported on a node; two must be gone before the next starts. The loss of the node makes room too."""
    s = cluster(tree(p=[limit("alice", 2)]))
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 9000}))), 0)
    submit(s, "x", 4)
    ask(s, "x", 3, "x-old", node="n2")
    assert started(s) == {}
    release(s, "x-old-0")
    assert started(s) == {}
    s.handle(RemoveNode("n2"), 0)
    assert started(s) == {"x": 2}


def test_a_change_of_size_counts() -> None:
    """Growing takes room, shrinking gives it back."""
    s = cluster(tree(p=[limit("alice", 4)]))
    submit(s, "x", 1)
    started(s)
    grown = AskSpec(application="x", key="x-0", resources=Resources({"vcore": 3000}))
    s.handle(AddAsks((grown,)), 0)
    ask(s, "x", 9, "x-more")
    assert started(s) == {"x": 1}
    s.handle(AddAsks((AskSpec(application="x", key="x-0", resources=Resources({"vcore": 1000})),)), 0)
    assert started(s) == {"x": 2}


def test_placeholders_count() -> None:
    """For the amount and for the applications."""
    s = cluster(tree(p=[limit("alice", 2, apps=1)]))
    spec = ApplicationSpec(id="g", queue="root.p.a", user="alice", placeholder_ask=Resources({"vcore": 3000}))
    s.handle(AddApplication(spec), 0)
    ask(s, "g", 3, "g-ph", placeholder=True, task_group="t")
    submit(s, "x", 1)
    assert started(s) == {"g": 2}
    assert isinstance(s.why("x", "x-0"), LimitApplications)


def test_a_moved_application_counts_where_it_is() -> None:
    """Its user's limit in the old queue has room again, the one in the new queue has less."""
    s = cluster(tree(a=[limit("alice", 2)], b=[limit("alice", 3)]))
    submit(s, "x", 2)
    submit(s, "y", 9)
    assert started(s) == {"x": 2}
    s.handle(MoveApplication("x", "root.p.b"), 0)
    submit(s, "z", 9, queue="root.p.b")
    assert started(s) == {"y": 2, "z": 1}


def test_nobody_is_stopped_for_work_that_a_limit_holds_back() -> None:
    """Preemption by priority could make room on the node, which would not help."""
    spec = tree(p=[limit("alice", 1)])
    part = PartitionSpec(root=spec.partitions[0].root, preemption=PreemptionSpec(rule="priority"))
    s = cluster(ClusterSpec(partitions=(part,)), cores=3)
    submit(s, "x", 1)
    submit(s, "low", 2, user="bob")
    started(s)
    ask(s, "x", 1, "x-high", priority=9)
    assert [d for d in s.schedule(0) if isinstance(d, Evict)] == []
    release(s, "x-0")
    ask(s, "low", 1, "low-more", priority=5)
    assert started(s) == {"x": 1}


# -- other limits -------------------------------------------------------------------------------------------------


def test_a_raised_limit_lets_more_start_and_a_lowered_one_stops_nobody() -> None:
    """What is in use stays in use and counts."""
    s = cluster(tree(p=[limit("alice", 3)]))
    submit(s, "x", 9)
    assert started(s) == {"x": 3}
    reload(s, tree(p=[limit("alice", 5)]))
    assert started(s) == {"x": 2}
    reload(s, tree(p=[limit("alice", 2)]))
    release(s, "x-0", "x-1", "x-2")
    assert started(s) == {}
    release(s, "x-3")
    assert started(s) == {"x": 1}


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [
        ([], [limit("alice", 3)], 1),
        ([], [limit("*", 3)], 1),
        ([limit("alice", 2)], [], 7),
        ([limit("*", 2)], [], 7),
        ([limit("alice", 2), limit("*", 4)], [limit("*", 4)], 2),
        ([limit("carol", 1), limit("*", 2)], [limit("carol", 1)], 7),
        ([limit("*", 2)], [limit("alice", 5), limit("*", 2)], 3),
    ],
    ids=["new", "new wildcard", "gone", "wildcard gone", "wildcard instead", "another stays", "named instead"],
)
def test_other_user_limits_hold_at_once_for_what_runs(
    before: list[LimitSpec], after: list[LimitSpec], more: int
) -> None:
    """Two run; how many more start."""
    s = cluster(tree(p=before))
    submit(s, "x", 2)
    started(s)
    ask(s, "x", 7, "x-more", priority=-1)
    reload(s, tree(p=after))
    assert started(s) == {"x": more}


def test_a_limit_that_moves_to_another_queue_holds_there() -> None:
    """For a user who has nothing yet."""
    s = cluster(tree(root=[limit("bob", 3)]))
    reload(s, tree(q=[limit("bob", 1)]))
    submit(s, "x", 9, user="bob", queue="root.q")
    assert started(s) == {"x": 1}


def test_applications_let_run_by_a_reload_start() -> None:
    """They waited at the limit of applications."""
    s = cluster(tree(p=[limit("alice", apps=1)]))
    for app in "xyz":
        submit(s, app, 1)
    started(s)
    reload(s, tree(p=[limit("alice", apps=2)]))
    assert started(s) == {"y": 1}
    reload(s, tree())
    assert started(s) == {"z": 1}


def test_an_application_keeps_the_group_it_was_found_to_count_for() -> None:
    """Even none: limits added later hold for applications that come later."""
    s = cluster(tree())
    submit(s, "x", 2)
    started(s)
    reload(s, tree(p=[limit("%devs", 3)]))
    ask(s, "x", 4, "x-more")
    submit(s, "y", 9)
    assert started(s) == {"x": 4, "y": 3}


def test_an_application_that_nobody_looked_at_yet_comes_under_the_new_limits() -> None:
    """The group is decided by the first scheduling run that comes to it."""
    s = cluster(tree())
    submit(s, "x", 9)
    reload(s, tree(p=[limit("%devs", 3)]))
    assert started(s) == {"x": 3}


def test_an_application_that_ran_empty_is_taken_for_a_new_one() -> None:
    """When it comes back, it counts for the group that comes first by then."""
    s = cluster(tree(root=[limit("%devs", 3)]))
    submit(s, "x", 1)
    started(s)
    reload(s, tree(root=[limit("%devs", 3)], a=[limit("%ops", 1), limit("%*", 2)]))
    release(s, "x-0")
    ask(s, "x", 9, "x-more")
    assert started(s) == {"x": 2}


def test_a_dropped_group_limit_takes_what_runs_along_to_the_next_group() -> None:
    """Three of devs count for ops from then on: one more under its limit of four, and an end makes room for one."""
    s = cluster(tree(p=[limit("%devs", 3), limit("%ops", 4)]))
    submit(s, "x", 9, groups=("devs", "ops"))
    assert started(s) == {"x": 3}
    reload(s, tree(p=[limit("%ops", 4)]))
    assert started(s) == {"x": 1}
    release(s, "x-0")
    assert started(s) == {"x": 1}


def test_a_group_limit_that_is_dropped_and_set_again_counts_what_runs() -> None:
    """Three run, four may."""
    s = cluster(tree(p=[limit("%devs", 3)]))
    submit(s, "x", 3)
    started(s)
    reload(s, tree())
    reload(s, tree(p=[limit("%devs", 4)]))
    ask(s, "x", 9, "x-more")
    assert started(s) == {"x": 1}


def test_books_and_decided_groups_survive_a_restart() -> None:
    """What was loaded decides as what was not, and an undecided group is still undecided."""
    s = cluster(tree())
    submit(s, "x", 2)
    started(s)
    reload(s, tree(p=[limit("%devs", 3, apps=2), limit("%*", 1)], a=[limit("alice", 8)]))
    ask(s, "x", 4, "x-more")
    submit(s, "y", 9, user="bob")
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    check_books(again)
    later = tree(p=[limit("%devs", 2, apps=2), limit("%*", 1)], a=[limit("alice", 8)])
    for one in (s, again):
        reload(one, later)
        assert started(one) == {"x": 4, "y": 2}
    assert s.dump() == again.dump()


def test_a_partition_without_limits_keeps_nothing_of_them() -> None:
    """And applications that no limit names wait with everybody else."""
    s = cluster(tree())
    submit(s, "x", 1)
    assert s.cluster.partitions["default"].trackers.allowances == {}
    reload(s, tree(p=[limit("bob", 1)]))
    assert s.cluster.partitions["default"].applications["x"].allowance is None
    s.handle(Release("x", "x-0", Cause.FINISHED), 0)
    check_books(s)
