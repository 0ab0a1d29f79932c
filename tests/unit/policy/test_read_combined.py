"""What a reading of what is combined, and of what was mended last, found: one rule beside another.

Each test names what would go wrong. Times are in milliseconds.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from invariants.books import check_books
from small_clusters import RULES, cluster, cores, guaranteed, over_time, queue_file, stopped, submit

from fairlead.core.model.constraints import HOSTNAME, IN, Constraints, Requirement
from fairlead.core.model.events import AddAsks, AddNode, Cause, Configure, Leaving, MoveApplication, Release
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import AskSpec, BudgetSpec, ClusterSpec, NodeSpec, QueueSpec
from fairlead.scheduler import Scheduler

ONCE = QueueSpec(name="b", properties={"preemption.evictions.max": "1"})


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_the_one_larger_work_that_goes_breaks_no_budget_where_another_breaks_none(rule: str) -> None:
    protected = BudgetSpec(name="kept", selector=(Requirement("app", IN, ("x",)),), max_unavailable=0)
    s = cluster(QueueSpec(name="a"), ONCE, nodes={"n1": 6}, rule=rule, budgets=(protected,))
    submit(s, "protected", 2, 0, queue="root.b", node="n1", labels={"app": "x"})
    submit(s, "large", 2, 0, queue="root.b", node="n1", priority=1)
    submit(s, "small", 1, 0, queue="root.b", node="n1")
    submit(s, "tiny", 1, 0, queue="root.b", node="n1")
    submit(s, "w", 2, 1, priority=5)
    assert stopped(s.schedule(1)) == ["large"]
    check_books(s)


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_the_one_larger_work_that_goes_is_willing_where_another_is_not(rule: str) -> None:
    s = cluster(QueueSpec(name="a"), ONCE, nodes={"n1": 6}, rule=rule)
    submit(s, "willing", 2, 0, queue="root.b", node="n1")
    submit(s, "unwilling", 2, 0, queue="root.b", node="n1", allow_preempt_self=False)
    submit(s, "small", 1, 0, queue="root.b", node="n1")
    submit(s, "tiny", 1, 0, queue="root.b", node="n1")
    submit(s, "w", 2, 1, priority=5)
    assert stopped(s.schedule(1)) == ["willing"]
    check_books(s)


# -- what goes already ----------------------------------------------------------------------------------------------


def lowered(rule: str, before: QueueSpec, after: QueueSpec) -> tuple[Scheduler, list[str]]:
    """Four cores run in queue b, the owner of half of it stops that, and its maximum is lowered: what is told to go."""
    s = Scheduler(quotas_on(queue_file(before, rule=rule)))
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(4))), 0)
    for key in ("v1", "v2", "v3", "v4"):
        submit(s, key, 1, queue="root.b", node="n1")
    for key in ("v1", "v2"):
        s.handle(Leaving(key, key), 0)
    s.handle(Configure(quotas_on(queue_file(after, rule=rule))), 0)
    return s, stopped(over_time(s, 0, 5_000))


def quotas_on(spec: ClusterSpec) -> ClusterSpec:
    part = spec.partitions[0]
    return replace(spec, partitions=(replace(part, preemption=replace(part.preemption, quota_enabled=True)),))


@pytest.mark.parametrize("rule", RULES)
def test_what_goes_already_is_no_reason_to_stop_more_for_a_quota_that_was_lowered(rule: str) -> None:
    at_once = {"quota.preemption.delay": "1s"}
    before = QueueSpec(name="b", max=Limits({"vcore": 4_000}), properties=at_once)
    s, told = lowered(rule, before, replace(before, max=Limits({"vcore": 2_000})))
    assert told == []
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_for_a_quota_no_leaf_is_left_below_its_guarantee_when_what_goes_already_has_gone(rule: str) -> None:
    at_once = {"quota.preemption.delay": "1s"}
    before = guaranteed("b", 2, max=Limits({"vcore": 4_000}), properties=at_once)
    s, told = lowered(rule, before, replace(before, max=Limits({"vcore": 3_000})))
    assert told == []
    check_books(s)


# -- idle work and guarantees by both -------------------------------------------------------------------------------


def test_by_both_idle_work_of_its_group_does_not_use_up_what_an_ask_is_guaranteed() -> None:
    mine = guaranteed("h", 4, parent=True, properties={"resource.group": "true"}, queues=(QueueSpec(name="b"),))
    s = cluster(mine, QueueSpec(name="a"), nodes={"n1": 4, "n2": 4}, rule="both")
    submit(s, "idle", 4, queue="root.h.b", node="n2", idle=True)
    submit(s, "other", 4, queue="root.a", node="n1")
    submit(s, "w", 4, 1, "root.h.b", where=Constraints(selector=(Requirement(HOSTNAME, IN, ("n1",)),)))
    assert stopped(Scheduler.load(s.dump()).schedule(1)) == ["other"]
    assert stopped(s.schedule(1)) == ["other"]
    check_books(s)


def test_by_both_idle_work_that_leaves_late_or_grows_counts_for_no_guarantee_either() -> None:
    mine = guaranteed("h", 4, parent=True, properties={"resource.group": "true"}, queues=(QueueSpec(name="b"),))
    s = cluster(mine, QueueSpec(name="a"), nodes={"n1": 4, "n2": 4}, rule="both")
    submit(s, "idle", 1, queue="root.h.b", node="n2", idle=True, grace_ms=0)
    s.handle(AddAsks((AskSpec(application="idle", key="idle", resources=cores(4)),)), 0)
    check_books(s)
    submit(s, "other", 4, queue="root.a", node="n1", priority=3)
    s.handle(Leaving("idle", "idle", Cause.PREEMPTED_BY_SCHEDULER), 0)
    check_books(s)
    s.schedule(70_000)
    check_books(s)
    assert check_same(s)
    submit(s, "w", 4, 70_000, "root.h.b")
    assert stopped(s.schedule(70_000)) == ["other"]
    s.handle(MoveApplication("idle", "root.a"), 70_000)
    check_books(s)
    s.handle(Release("idle", "idle", Cause.PREEMPTED_BY_SCHEDULER), 70_000)
    check_books(s)


def check_same(s: Scheduler) -> bool:
    again = Scheduler.load(s.dump())
    check_books(again)
    return again.dump() == s.dump()
