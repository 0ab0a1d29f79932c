"""The group that an application counts for: when it is settled, and what a change of the limits makes of it."""

from __future__ import annotations

from dataclasses import replace

from fairlead.core.acts.limit_groups import come_under_limits, decide_group, decide_groups, limits_changed
from fairlead.core.books.applications import Application
from fairlead.core.books.partition import Partition
from fairlead.core.books.user_limits import UNGROUPED
from fairlead.core.model.events import AddApplication, AddAsks, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    PartitionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler

FOUR = Limits({"vcore": 4})


def world(*limits: LimitSpec) -> tuple[Scheduler, Partition]:
    """One leaf with these limits, and nothing in it."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a", limits=limits),))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    return s, s.cluster.partitions["default"]


def waits(s: Scheduler, name: str = "app", groups: tuple[str, ...] = ("staff", "lab")) -> Application:
    """An application of ann's of which something waits, and that no run has come to."""
    s.handle(AddApplication(ApplicationSpec(id=name, queue="root.a", user="ann", groups=groups)), 0)
    s.handle(AddAsks((AskSpec(application=name, key="k", resources=Resources({"vcore": 1})),)), 0)
    return s.cluster.partitions["default"].applications[name]


def group(name: str) -> LimitSpec:
    return LimitSpec(groups=(name,), max_resources=FOUR)


def change(part: Partition, *limits: LimitSpec) -> None:
    """The file has these limits from now on."""
    [leaf] = part.spec.root.queues
    part.spec = replace(part.spec, root=replace(part.spec.root, queues=(replace(leaf, limits=limits),)))
    limits_changed(part)


def test_the_group_is_settled_by_the_first_run_that_comes_to_it() -> None:
    s, part = world(group("lab"))
    app = waits(s)
    assert (app.limit_group, list(part.unseen)) == (None, [app])
    decide_groups(part)
    assert (app.limit_group, list(part.unseen)) == ("lab", [])


def test_that_it_counts_for_none_is_settled_too() -> None:
    s, part = world(group("others"))
    app = waits(s)
    decide_group(part, app)
    assert app.limit_group == UNGROUPED
    change(part, group("others"), group("lab"))
    assert app.limit_group == UNGROUPED
    assert app.allowance is None


def test_what_was_withdrawn_before_any_run_is_open() -> None:
    """There was nothing to come to."""
    s, part = world(group("lab"))
    app = waits(s)
    s.handle(Release("app", "k"), 0)
    part.unseen[app] = None
    decide_groups(part)
    assert (app.limit_group, list(part.unseen)) == (None, [])


def test_a_group_is_kept_until_a_limit_of_it_is_dropped() -> None:
    s, part = world(group("lab"))
    app = waits(s)
    decide_group(part, app)
    change(part, group("staff"), group("lab"))
    assert app.limit_group == "lab"
    change(part, group("staff"))
    assert (app.limit_group, list(part.unseen)) == (None, [app])
    assert app.allowance is not None
    assert app.allowance.group == "staff"


def test_what_waits_goes_to_the_demand_of_its_new_limits() -> None:
    """And the old demand has nothing any more."""
    s, part = world()
    app = waits(s)
    [batch] = app.batches.values()
    old = batch.demand
    change(part, group("lab"))
    assert batch.demand is not old
    assert (batch.demand.allowance, batch.demand.pending, old.pending) == (app.allowance, 1, 0)


def test_without_limits_before_and_after_nothing_is_looked_at() -> None:
    s, part = world()
    app = waits(s)
    [batch] = app.batches.values()
    demand = batch.demand
    limits_changed(part)
    assert (part.trackers.limits, app.allowance, batch.demand) == ({}, None, demand)


def test_an_application_that_has_nothing_comes_under_the_limits_of_now() -> None:
    """One of which something waits keeps what was worked out for it."""
    s, part = world(group("lab"))
    app = waits(s)
    before = app.allowance
    part.trackers.limits["root.a"].users["ann"] = LimitSpec(users=("ann",), max_resources=FOUR)
    come_under_limits(part, app)
    assert app.allowance is before
    s.handle(Release("app", "k"), 0)
    come_under_limits(part, app)
    assert app.allowance is not None
    assert [c.kind for c in app.allowance.ceilings] == ["user", "group"]
