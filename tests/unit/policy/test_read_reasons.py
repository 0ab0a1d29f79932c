"""Faults in what is told of work that waits: a reason that is not the cause, a start that does not come true."""

from __future__ import annotations

from typing import Any

import pytest
from small_clusters import RULES, application, ask, cluster, cores, started, stopped, submit

from fairlead.core.model.constraints import AffinityTerm, Constraints, Requirement, Taint
from fairlead.core.model.events import AddAsks, AddNode, Cause, Release, ReserveAsk, UpdateNode
from fairlead.core.model.reasons import NoNodeSuits, QueuePromised, ReservedNodeTooFull, WaitingForPlaceholder
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import TAG_REQUIRED_NODE, AskSpec, NodeSpec, QueueSpec
from fairlead.insight.explain import explain
from fairlead.scheduler import Scheduler
from fairlead.wire.verdicts import NodeCount

WEB = {"app": "web"}
EASY = QueueSpec(name="a", properties={"backfill": "easy"})


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_time_limit_of_a_placeholder_alone_frees_nothing(rule: str, is_replaced: bool) -> None:
    """Its place goes on to the work of its gang, whose own time begins at the latest after a quarter of an hour, and
    now where that is on its way.
    """
    s = cluster(nodes={"n1": 2}, rule=rule)
    application(s, "gang", placeholder_ask=cores(2))
    ask(s, "gang", "h", 2, task_group="t", placeholder=True, time_limit_ms=1_000)
    assert started(s.schedule(0)) == ["h@n1"]
    if is_replaced:
        ask(s, "gang", "real", 2, 900, task_group="t", time_limit_ms=1_000)
        s.schedule(900)
    submit(s, "late", 2, 900)
    s.schedule(900)
    assert s.expected_start_ms("late", "late") == (1_900 if is_replaced else 901_000)
    if is_replaced:
        s.handle(Release("gang", "h", Cause.PLACEHOLDER_REPLACED), 900)
        assert s.expected_start_ms("late", "late") == 1_900


@pytest.mark.parametrize("rule", RULES)
def test_a_placeholder_passes_no_kept_turn_by_its_time_limit(rule: str) -> None:
    """Its work comes after it, and would be in the way when the turn is due."""
    s = cluster(EASY, nodes={"n1": 4}, rule=rule)
    submit(s, "runs", 3, time_limit_ms=1_000)
    assert started(s.schedule(0)) == ["runs@n1"]
    submit(s, "big", 4, priority=9, allow_preempt_other=False)
    s.handle(ReserveAsk("big", "big", on=True), 0)
    application(s, "gang", placeholder_ask=cores(1))
    ask(s, "gang", "h", 1, task_group="t", placeholder=True, time_limit_ms=900)
    assert started(s.schedule(0)) == []
    submit(s, "small", 1, time_limit_ms=900)
    assert started(s.schedule(0)) == ["small@n1"]


def _with_a_node_set_aside(**more: Any) -> Scheduler:
    """Two nodes, one with a taint; the other is set aside for `big`, which does not fit beside what runs there."""
    s = cluster(nodes={"n1": 2})
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(2), taints=(Taint("key", "", "NoSchedule"),))), 0)
    submit(s, "runs", 1)
    s.schedule(0)
    submit(s, "big", 2, **more)
    s.schedule(2_000)
    assert s.cluster.partitions["default"].nodes.nodes["n1"].reservations
    return s


def test_what_has_a_node_set_aside_is_not_told_that_none_suits_it() -> None:
    s = _with_a_node_set_aside()
    assert s.why("big", "big") == ReservedNodeTooFull("n1", {"vcore": 2_000}, {"vcore": 1_000})


def test_what_may_not_be_with_work_on_the_node_that_is_set_aside_is_told_so() -> None:
    """It is not room that it lacks there: the work started after the node was set aside."""
    apart = Constraints(anti_affinity=(AffinityTerm((Requirement("app", "In", ("web",)),), "kubernetes.io/hostname"),))
    s = _with_a_node_set_aside(where=apart)
    s.handle(UpdateNode("n1", cores(4)), 2_000)
    application(s, "other", now=2_000)
    s.handle(AddAsks((AskSpec(application="other", key="k", resources=cores(1), labels=WEB, node="n1"),)), 2_000)
    assert s.cluster.partitions["default"].nodes.nodes["n1"].reservations
    assert s.why("big", "big") == NoNodeSuits({"vcore": 2_000}, {"taint": 1, "anti-affinity": 1}, 2)


@pytest.mark.parametrize("rule", RULES)
def test_a_required_node_that_does_not_suit_is_not_open(rule: str) -> None:
    """It has room, and a taint: `why` said so, and what is told of the nodes did not."""
    s = cluster(nodes={"n1": 2}, rule=rule)
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(2), taints=(Taint("key", "", "NoSchedule"),))), 0)
    submit(s, "w", 1, tags={TAG_REQUIRED_NODE: "n2"})
    s.schedule(0)
    assert isinstance(s.why("w", "w"), NoNodeSuits)
    nodes = explain(s, "w", "w").nodes
    assert nodes == NodeCount(2, 0, 0, 0, {"not the node it has to run on": 1, "ruled out by taint": 1})


@pytest.mark.parametrize("rule", RULES)
def test_no_start_is_expected_of_what_waits_for_placeholders(rule: str) -> None:
    """A node has room for it; it takes the place of a placeholder that has none yet."""
    s = cluster(nodes={"n1": 2}, rule=rule)
    submit(s, "runs", 1)
    s.schedule(0)
    application(s, "gang", placeholder_ask=cores(2))
    ask(s, "gang", "h", 2, task_group="t", placeholder=True)
    ask(s, "gang", "real", 1, task_group="t")
    assert started(s.schedule(0)) == []
    assert isinstance(s.why("gang", "real"), WaitingForPlaceholder)
    assert s.expected_start_ms("gang", "real") is None


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_no_start_is_expected_of_what_has_room_only_where_that_is_promised_to_others(rule: str) -> None:
    """The rest of the maximum of its queue is kept for `high`, which waits for `low` to leave its node."""
    s = cluster(QueueSpec(name="a", max=Limits({"vcore": 2_000})), QueueSpec(name="b"), nodes={"n1": 2}, rule=rule)
    submit(s, "low", 2, queue="root.b")
    s.schedule(0)
    submit(s, "high", 2, priority=9)
    assert stopped(s.schedule(0)) == ["low"]
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(1))), 0)
    submit(s, "late", 1)
    assert started(s.schedule(0)) == []
    assert isinstance(s.why("late", "late"), QueuePromised)
    assert s.expected_start_ms("late", "late") is None
