"""Faults in the life of asks and applications that a reading found: gangs, held asks, states that follow each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import application, ask, cluster, cores, started, submit

from fairlead.core.model.conditions import Conditions, Dependency, Outcome
from fairlead.core.model.constraints import Constraints, Requirement
from fairlead.core.model.decisions import ApplicationChanged, AskRejected, Decision, Evict, PriorityChanged, Released
from fairlead.core.model.events import (
    AddAsks,
    AddNode,
    Cause,
    ChangeAsk,
    Configure,
    DrainNode,
    LabelNode,
    Release,
    SetPriority,
    SetWindow,
)
from fairlead.core.model.reasons import ApplicationsAtMax
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import (
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
    QuotaSpec,
    RetrySpec,
    WindowSpec,
)
from fairlead.policy.events.held import following
from fairlead.scheduler import Scheduler

ONE_AT_A_TIME = QueueSpec(name="a", max_applications=1)


def gang(s: Scheduler, name: str, *sizes: int, style: str = "Soft", **more: Any) -> None:
    """A gang that has two seconds, with placeholders of these sizes: `h0`, `h1`, …"""
    more |= {"placeholder_ask": cores(sum(sizes)), "placeholder_timeout_ms": 2_000, "gang_style": style}
    application(s, name, **more)
    for i, size in enumerate(sizes):
        ask(s, name, f"h{i}", size, task_group="t", placeholder=True)
    s.schedule(0)


def gone(s: Scheduler, app: str, *keys: str, now: int, cause: Cause = Cause.TIMEOUT) -> list[Decision]:
    return [d for key in keys for d in s.handle(Release(app, key, cause), now)]


def state(s: Scheduler, app: str) -> str:
    return str(s.cluster.partitions["default"].applications[app].state)


# -- gangs whose time is over ---------------------------------------------------------------------------------------


def test_a_gang_that_starts_over_waits_for_a_place_like_others() -> None:
    s = cluster(ONE_AT_A_TIME, nodes={"n1": 3})
    gang(s, "g", 1, 1, 1, 1)
    s.schedule(2_000)
    ask(s, "g", "real", 1, 2_001, task_group="t")
    submit(s, "other", 1, 2_001)
    gone(s, "g", "h0", "h1", "h2", now=2_002)
    assert state(s, "g") == "Accepted"
    assert started(s.schedule(2_003)) == ["real@n1"]  # It is older; of the two one may run.
    check_books(s)


def test_a_gang_that_starts_over_with_nothing_is_in_the_way_of_nobody() -> None:
    s = cluster(ONE_AT_A_TIME, nodes={"n1": 3})
    gang(s, "g", 1, 1, 1, 1)
    s.schedule(2_000)
    submit(s, "other", 1, 2_001)
    gone(s, "g", "h0", "h1", "h2", now=2_002)
    assert state(s, "g") == "Accepted"
    assert started(s.schedule(2_003)) == ["other@n1"]
    ask(s, "g", "real", 1, 2_004)
    assert started(s.schedule(2_004)) == []
    check_books(s)


def test_a_gang_all_of_whose_placeholders_ended_gives_its_place_to_run_back() -> None:
    s = cluster(ONE_AT_A_TIME, nodes={"n1": 2})
    gang(s, "g", 1, 1, 1)
    submit(s, "other", 1, 1)
    gone(s, "g", "h2", "h0", "h1", now=2, cause=Cause.FINISHED)
    assert state(s, "g") == "Completing"
    assert started(s.schedule(3)) == ["other@n1"]


def test_a_gang_that_starts_over_runs_once_the_last_of_its_placeholders_is_gone() -> None:
    """Not only when what it started meanwhile has ended: until then it would get no further attempts."""
    s = cluster(nodes={"n1": 4})
    gang(s, "g", 1, 1, 1, 9)
    s.schedule(2_000)
    ask(s, "g", "plain", 1, 2_001, retry=RetrySpec(limit=1))
    assert started(s.schedule(2_001)) == ["plain@n1"]
    gone(s, "g", "h0", "h1", now=2_002)
    assert state(s, "g") == "Resuming"
    gone(s, "g", "h2", now=2_003)
    assert state(s, "g") == "Running"
    check_books(s)
    gone(s, "g", "plain", now=2_004, cause=Cause.INTERRUPTED)
    assert started(s.schedule(2_005)) == ["plain#2@n1"]


def test_placeholders_that_come_while_a_gang_starts_over_have_their_time_too() -> None:
    s = cluster(nodes={"n1": 4})
    gang(s, "g", 1, 1, 1, 9)
    s.schedule(2_000)
    ask(s, "g", "new", 1, 2_001, task_group="t", placeholder=True)
    assert started(s.schedule(2_001)) == ["new@n1"]
    gone(s, "g", "h0", "h1", "h2", now=2_002)
    assert state(s, "g") == "Accepted"
    check_books(s)
    assert [d.key for d in s.schedule(4_002) if isinstance(d, Evict)] == ["new"]


def test_nothing_starts_any_more_in_a_gang_that_fails_and_what_is_held_is_told() -> None:
    s = cluster(nodes={"n1": 4})
    gang(s, "g", 1, 1, 1, 9, style="Hard")
    ask(s, "g", "soon", 1, 1, conditions=Conditions(begin_ms=2_500))
    ask(s, "g", "later", 1, 1, conditions=Conditions(begin_ms=9_000))
    dropped = [d.key for d in s.schedule(2_000) if isinstance(d, Released)]
    assert dropped == ["h3", "soon", "later"]
    assert state(s, "g") == "Failing"
    refused = [d for d in ask(s, "g", "new", 1, 2_001) if isinstance(d, AskRejected)]
    assert [d.reason.sentence() for d in refused] == ["application g is failing and takes nothing new"]
    assert started(s.schedule(2_500)) == []
    gone(s, "g", "h0", "h1", "h2", now=2_501)
    assert "g" not in s.cluster.partitions["default"].applications
    check_books(s)


# -- what is held ---------------------------------------------------------------------------------------------------


def test_what_a_time_out_frees_of_an_application_with_a_bound_is_used_at_once() -> None:
    """And so also after a restart."""
    s = cluster(nodes={"n1": 4})
    application(s, "g", placeholder_ask=cores(9), placeholder_timeout_ms=2_000, at_once=3)
    for i, size in enumerate((1, 1, 7)):
        ask(s, "g", f"h{i}", size, task_group="t", placeholder=True)
    ask(s, "g", "plain", 1)
    s.schedule(0)
    assert started(s.schedule(2_000)) == ["plain@n1"]
    check_books(s)


# -- why it waits ---------------------------------------------------------------------------------------------------


def test_a_gang_that_is_not_whole_counts_in_the_reason_of_those_that_wait_for_its_place() -> None:
    s = cluster(ONE_AT_A_TIME, nodes={"n1": 3})
    gang(s, "g", 1, 1, 9)
    submit(s, "other", 1)
    s.schedule(0)
    assert s.why("other", "other") == ApplicationsAtMax("root.a", 1, 1)


# -- another size ---------------------------------------------------------------------------------------------------

QUOTA = QuotaSpec(name="q", queue="root.a", resources=Limits({"vcore": 4_000}))


def test_what_is_under_way_to_the_place_of_a_placeholder_grows_beyond_no_quota() -> None:
    s = cluster(nodes={"n1": 20}, quotas=(QUOTA,))
    application(s, "g", placeholder_ask=cores(2))
    ask(s, "g", "h", 2, task_group="t", placeholder=True)
    s.schedule(0)
    ask(s, "g", "real", 2, 1, task_group="t")
    s.schedule(1)
    assert [d.key for d in ask(s, "g", "real", 12, 2, task_group="t") if isinstance(d, AskRejected)] == ["real"]
    assert started(gone(s, "g", "h", now=3, cause=Cause.PLACEHOLDER_REPLACED)) == ["real@n1"]
    check_books(s)


def test_a_further_attempt_that_grows_while_it_is_held_back_is_asked_about_its_quotas() -> None:
    s = cluster(nodes={"n1": 20}, quotas=(QUOTA,))
    submit(s, "x", 4, retry=RetrySpec(limit=3, backoff_ms=1_000))
    s.schedule(0)
    gone(s, "x", "x", now=1, cause=Cause.INTERRUPTED)
    s.handle(ChangeAsk("x", "x#2", cores(12), None, "ann"), 2)
    said = s.schedule(1_001)
    assert [d.key for d in said if isinstance(d, AskRejected)] == ["x#2"]
    assert started(said) == []


def test_a_further_attempt_takes_the_name_of_nothing_that_is_held() -> None:
    s = cluster(nodes={"n1": 4})
    submit(s, "k", 1, retry=RetrySpec(limit=3))
    s.schedule(0)
    ask(s, "k", "k#2", 2, 1, conditions=Conditions(after=(Dependency(application="other"),)))
    said = gone(s, "k", "k", now=2, cause=Cause.INTERRUPTED)
    assert [d.key for d in said if isinstance(d, AskRejected)] == ["k"]
    follows = following(s.cluster.partitions["default"], "other", Outcome.OK)
    assert [(event.application, event.key) for event in follows] == [("k", "k#2")]
    s.handle(follows[0], 3)
    assert started(s.schedule(3)) == ["k#2@n1"]


# -- a partition that is removed ------------------------------------------------------------------------------------


def with_gpu() -> Scheduler:
    """A partition `gpu` beside the first one, with three cores."""
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    s = Scheduler(ClusterSpec(partitions=tuple(PartitionSpec(name=name, root=root) for name in ("default", "gpu"))))
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(3), partition="gpu")), 0)
    return s


def without_gpu(s: Scheduler, now: int) -> list[Decision]:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"),))
    return s.handle(Configure(ClusterSpec(partitions=(PartitionSpec(name="default", root=root),))), now)


def test_a_gang_that_starts_over_fails_with_its_partition_like_others() -> None:
    s = with_gpu()
    application(s, "g", partition="gpu", placeholder_ask=cores(4), placeholder_timeout_ms=2_000)
    member = AskSpec(application="g", key="", resources=cores(1), task_group="t", placeholder=True)
    s.handle(AddAsks(tuple(replace(member, key=f"h{i}") for i in range(4)), "gpu"), 0)
    s.schedule(0)
    s.schedule(2_000)
    assert str(s.cluster.partitions["gpu"].applications["g"].state) == "Resuming"
    said = without_gpu(s, 2_001)
    assert [(d.id, d.state) for d in said if isinstance(d, ApplicationChanged)][-1] == ("g", "Failed")


# -- gangs that hold each other -------------------------------------------------------------------------------------


def test_a_gang_that_gave_way_comes_back_whole_though_fewer_may_be_in_line_at_once() -> None:
    s = cluster(QueueSpec(name="a"), QueueSpec(name="b"), nodes={"n1": 4})
    application(s, "older", placeholder_ask=cores(3))
    application(s, "younger", queue="root.b", placeholder_ask=cores(3), at_once=2)
    for i in range(3):
        s.schedule(0)  # Two of each are placed before the third comes.
        for app in ("older", "younger"):
            ask(s, app, f"{app}{i}", 1, task_group="t", placeholder=True)
    evicted = [d.key for d in s.schedule(0) if isinstance(d, Evict)]
    assert evicted == ["younger0", "younger1"]
    gone(s, "younger", *evicted, now=1, cause=Cause.PREEMPTED_BY_SCHEDULER)
    s.schedule(1)
    assert state(s, "older") == "Running"
    gone(s, "older", "older0", "older1", "older2", now=2, cause=Cause.FINISHED)
    s.schedule(2)
    assert state(s, "younger") == "Running"
    check_books(s)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_what_is_under_way_to_the_place_of_a_placeholder_starts_in_no_window(elsewhere: bool) -> None:
    s = cluster(nodes={"n1": 1, "n2": 1})
    s.handle(LabelNode("n2", {"disk": "ssd"}), 0)
    application(s, "g", placeholder_ask=cores(1))
    ask(s, "g", "h", 1, task_group="t", placeholder=True)
    assert started(s.schedule(0)) == ["h@n1"]
    where = Constraints(selector=(Requirement("disk", "In", ("ssd",)),)) if elsewhere else Constraints()
    ask(s, "g", "real", 1, 1, task_group="t", where=where)
    assert [d.key for d in s.schedule(1) if isinstance(d, Evict)] == ["h"]
    window = WindowSpec(name="w", starts_ms=100, length_ms=1_000, nodes=("n2" if elsewhere else "n1",))
    s.handle(SetWindow(window), 2)
    assert started(gone(s, "g", "h", now=200, cause=Cause.PLACEHOLDER_REPLACED)) == []
    check_books(s)
    assert started(s.schedule(201)) == ([] if elsewhere else ["real@n2"])
    assert started(s.schedule(1_100)) == (["real@n2"] if elsewhere else [])


def test_a_gang_that_starts_over_counts_for_its_user_no_more_than_for_its_queue() -> None:
    limit = LimitSpec(users=("u",), max_applications=1)
    s = cluster(QueueSpec(name="a", limits=(limit,)), nodes={"n1": 3})
    gang(s, "g", 1, 1, 1, 9, user="u")
    s.schedule(2_000)
    ask(s, "g", "large", 9, 2_001)
    application(s, "other", now=2_001, user="u")
    ask(s, "other", "other", 1, 2_001)
    gone(s, "g", "h0", "h1", "h2", now=2_002)
    assert started(s.schedule(2_003)) == ["other@n1"]
    check_books(s)


def test_what_is_on_its_way_gets_the_priority_of_its_gang() -> None:
    """With its whole application and alone; it runs with that, or waits again."""
    s = cluster(rule="priority", nodes={"n": 4})
    gang(s, "g", 1, 1)
    for key in ("r0", "r1"):
        ask(s, "g", key, 1, 1, task_group="t")
    told = [d for d in s.schedule(1) if isinstance(d, Evict)]
    assert len(told) == 2
    s.handle(SetPriority("g", "", 5, "ann"), 2)
    said = s.handle(SetPriority("g", "r1", 7, "ann"), 2)
    assert [(d.key, d.old, d.new) for d in said if isinstance(d, PriorityChanged)] == [("r1", 5, 7)]
    s.handle(Release("g", told[0].key, Cause.PLACEHOLDER_REPLACED), 3)
    s.handle(DrainNode("n"), 3)
    s.handle(Release("g", told[1].key, Cause.TIMEOUT), 3)
    asks = s.cluster.partitions["default"].applications["g"].asks
    assert {key: (each.priority, each.node is not None) for key, each in asks.items()} == {
        "r0": (5, True),
        "r1": (7, False),
    }
    check_books(s)
