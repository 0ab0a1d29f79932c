"""Suspicions from earlier readings that turned out to be faults, one by one."""

from __future__ import annotations

from invariants.books import check_books
from small_clusters import (
    application,
    ask,
    cluster,
    cores,
    guaranteed,
    over_time,
    queue_file,
    restarted,
    started,
    stopped,
    submit,
)

from fairlead.core.model.events import AddNode, Cause, Configure, MoveApplication, Release
from fairlead.core.model.specs import NodeSpec, QueueSpec

GROUP = {"resource.group": "true"}


def lab(count: int, name: str = "lab") -> QueueSpec:
    """A resource group with a guarantee of so many cores."""
    return guaranteed(name, count, parent=True, properties=GROUP, queues=(QueueSpec(name="a"), QueueSpec(name="b")))


# -- guarantees -------------------------------------------------------------------------------------------------------


def test_idle_work_uses_nothing_of_the_guarantee_of_its_group() -> None:
    s = cluster(lab(2), QueueSpec(name="rest"), nodes={"n1": 2, "n2": 1, "n3": 1}, rule="both")
    application(s, "idle", "root.lab.a")
    for key in ("i1", "i2"):
        ask(s, "idle", key, idle=True)
    submit(s, "high", 2, queue="root.rest", priority=5)
    assert sorted(started(s.schedule(0))) == ["high@n1", "i1@n2", "i2@n3"]
    submit(s, "own", 2, 1, "root.lab.b")
    assert stopped(s.schedule(1)) == ["high"], "it is within the guarantee: of that only idle work uses anything"
    check_books(s)


def test_what_a_queue_is_guaranteed_goes_first_also_while_idle_work_runs_in_it() -> None:
    s = cluster(lab(2), QueueSpec(name="rest"), nodes={"n1": 1, "n2": 1}, rule="both")
    application(s, "idle", "root.lab.a")
    for key in ("i1", "i2"):
        ask(s, "idle", key, idle=True)
    s.schedule(0)
    s.handle(AddNode(NodeSpec(id="n3", capacity=cores(2))), 1)
    submit(s, "high", 2, 1, "root.rest", priority=5)
    submit(s, "own", 2, 1, "root.lab.b")
    assert started(restarted(s).schedule(1)) == started(s.schedule(1)) == ["own@n3"]


def test_what_idle_work_borrows_follows_it_when_it_grows_moves_stops_and_ends() -> None:
    s = cluster(lab(2), lab(3, "other"), QueueSpec(name="rest"), nodes={"n1": 4}, rule="both")
    application(s, "idle", "root.lab.a")
    for key in ("i1", "i2"):
        ask(s, "idle", key, idle=True)
    s.schedule(0)
    ask(s, "idle", "i1", 2, 1, idle=True)
    check_books(s)
    s.handle(MoveApplication("idle", "root.other.b"), 2)
    check_books(s)
    submit(s, "wide", 3, 3, "root.other.a")
    assert stopped(s.schedule(3)) == ["i1"]
    check_books(s)
    left = restarted(s)
    check_books(left)
    left.handle(Release("idle", "i1", Cause.FINISHED), 4)
    check_books(left)
    s.handle(Configure(queue_file(lab(2), lab(3, "other"), rule="both")), 3)
    check_books(s)
    s.handle(Release("idle", "i2", Cause.FINISHED), 4)
    check_books(s)
    over_time(s, 4, 200_000)  # The other one does not leave in its time.
    check_books(s)
    s.handle(Release("idle", "i1", Cause.FINISHED), 200_001)
    check_books(s)
