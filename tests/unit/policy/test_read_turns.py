"""Faults around turns that a third reading found: kept turns, backfill, expected starts, places to run, what rests."""

from __future__ import annotations

from typing import Any

from invariants.books import check_books

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.decisions import Allocated, ApplicationChanged, Decision
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Release, ReserveAsk, SetConditions
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


def cores(count: int) -> Resources:
    return Resources({"vcore": count * 1000})


def cluster(*queues: QueueSpec, nodes: dict[str, int], rule: str = "guarantee", **more: Any) -> Scheduler:
    """With these queues and nodes of so many cores; `more` is of the root."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues or (QueueSpec(name="a"),), **more)
    spec = PartitionSpec(name="default", root=root, preemption=PreemptionSpec(rule=rule))
    s = Scheduler(ClusterSpec(partitions=(spec,)))
    for name, count in nodes.items():
        s.handle(AddNode(NodeSpec(id=name, capacity=cores(count))), 0)
    return s


def submit(
    s: Scheduler, key: str, count: int, now: int = 0, queue: str = "root.a", user: str = "nobody", **more: Any
) -> None:
    """One application with one ask of the same name."""
    s.handle(AddApplication(ApplicationSpec(id=key, queue=queue, user=user)), now)
    s.handle(AddAsks((AskSpec(application=key, key=key, resources=cores(count), **more),)), now)


def started(decisions: list[Decision]) -> list[str]:
    return [f"{d.key}@{d.node}" for d in decisions if isinstance(d, Allocated)]


# -- places to run ----------------------------------------------------------------------------------------------------


def test_an_application_keeps_its_place_to_run_when_what_is_put_on_hold_makes_room_for_its_next() -> None:
    s = cluster(QueueSpec(name="a", max_applications=1), nodes={"n1": 2})
    s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", at_once=1)), 0)
    for key in ("x1", "x2", "x3"):
        s.handle(AddAsks((AskSpec(application="x", key=key, resources=cores(1)),)), 0)
    assert started(s.schedule(0)) == ["x1@n1"]
    submit(s, "other", 1, 1, priority=5)
    s.handle(Release("x", "x1", Cause.FINISHED), 2)
    said = s.handle(SetConditions("x", "x2", Conditions(held_by="ann")), 2)
    assert not [d for d in said if isinstance(d, ApplicationChanged)]
    assert started(s.schedule(2)) == ["x3@n1"]
    check_books(s)


# -- backfill ---------------------------------------------------------------------------------------------------------


def two_turns(s: Scheduler) -> Scheduler:
    """Two with kept turns behind a run that ends at 10 s, and what may be backfilled beside them."""
    submit(s, "run", 8, user="other", time_limit_ms=10_000)
    s.handle(AddAsks((AskSpec(application="run", key="stays", resources=cores(1)),)), 0)
    assert started(s.schedule(0)) == ["run@n1", "stays@n2"]
    for name in ("first", "second"):
        submit(s, name, 4, 1, user="u", priority=5, allow_preempt_other=False)
    for name in ("first", "second"):
        s.handle(ReserveAsk(name, name, True, "ann"), 2)
    s.schedule(2)
    assert [s.expected_start_ms(name, name) for name in ("first", "second")] == [10_000, 10_000]
    submit(s, "small", 3, 3, user="u")
    s.schedule(3)
    s.handle(Release("run", "run", Cause.FINISHED), 10_000)
    return s


BACKFILL = {"backfill": "easy"}


def test_backfill_leaves_the_limit_of_a_user_to_all_whose_starts_are_expected() -> None:
    limit = LimitSpec(users=("u",), max_resources=Limits({"vcore": 10_000}))
    s = two_turns(cluster(QueueSpec(name="a", properties=BACKFILL), nodes={"n1": 8, "n2": 4}, limits=(limit,)))
    assert started(s.schedule(10_000))[:2] == ["first@n1", "second@n1"]
    check_books(s)


def test_backfill_leaves_places_to_run_to_all_whose_starts_are_expected() -> None:
    s = two_turns(cluster(QueueSpec(name="a", properties=BACKFILL, max_applications=3), nodes={"n1": 8, "n2": 4}))
    assert started(s.schedule(10_000))[:2] == ["first@n1", "second@n1"]
    check_books(s)
