"""Faults around turns that a third reading found: kept turns, backfill, expected starts, places to run, what rests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import RULES, cluster, cores, started, submit

from fairlead.core.model.conditions import Conditions
from fairlead.core.model.constraints import VOLUME_LIMIT, Constraints, Requirement
from fairlead.core.model.decisions import (
    ApplicationChanged,
    ApplicationRejected,
    Evict,
    ReservationSwitched,
)
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    DrainNode,
    LabelAsk,
    LabelNode,
    Release,
    RemoveApplication,
    ReserveAsk,
    SetConditions,
)
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
    RuleSpec,
    TemplateSpec,
)
from fairlead.policy.queue_choice.placement import foresee
from fairlead.scheduler import Scheduler

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


# -- nodes that are drained, or take fewer volumes --------------------------------------------------------------------

BOUNDED = QueueSpec(name="a", properties={"wait.max": "10s"})
ON_80 = Constraints(ports=("TCP//80",))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("time_limit_ms", [None, 60_000])
def test_what_requires_a_drained_node_has_its_turn_kept_as_it_may_start_there(
    time_limit_ms: int | None, rule: str
) -> None:
    s = cluster(BOUNDED, nodes={"n1": 4, "n2": 4}, rule=rule)
    submit(s, "run", 3, node="n1", priority=9, time_limit_ms=time_limit_ms)
    s.handle(DrainNode("n1"), 0)
    submit(s, "mine", 3, 1, tags={TAG_REQUIRED_NODE: "n1"})
    s.schedule(1)
    said = s.schedule(10_001)
    assert [d.key for d in said if isinstance(d, ReservationSwitched)] == ["mine"]
    assert not s.cluster.partitions["default"].nominations  # No room gathers where no work goes.
    submit(s, "later", 1, 10_002, tags={TAG_REQUIRED_NODE: "n1"})
    assert started(s.schedule(10_002)) == []
    s.handle(Release("run", "run", Cause.FINISHED), 10_003)
    assert started(s.schedule(10_003)) == ["mine@n1", "later@n1"]
    check_books(s)


def test_what_requires_a_drained_node_is_expected_to_start_there() -> None:
    s = cluster(nodes={"n1": 4})
    submit(s, "run", 4, node="n1", priority=9, time_limit_ms=10_000)
    s.handle(DrainNode("n1"), 0)
    submit(s, "mine", 4, 1, tags={TAG_REQUIRED_NODE: "n1"})
    s.schedule(1)
    assert s.expected_start_ms("mine", "mine") == 10_000


def test_no_node_stays_set_aside_for_what_has_more_volumes_than_it_takes_now() -> None:
    s = cluster(nodes={})
    two = {VOLUME_LIMIT + "csi": "2"}
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(4), attributes=two)), 0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(3), attributes={VOLUME_LIMIT + "csi": "1"})), 0)
    submit(s, "run", 4, node="n1", priority=9)
    submit(s, "mine", 2, 1, where=Constraints(volumes=("a@csi", "b@csi")))
    s.schedule(2_001)
    mine = s.cluster.partitions["default"].applications["mine"].asks["mine"]
    assert mine.reserved_on is not None
    s.handle(LabelNode("n1", {VOLUME_LIMIT + "csi": "1"}, ()), 2_002)
    s.schedule(2_002)
    assert mine.reserved_on is None
    s.handle(Release("run", "run", Cause.FINISHED), 2_003)
    submit(s, "other", 4, 2_003)
    assert started(s.schedule(2_003)) == ["other@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_no_turn_is_kept_for_what_has_more_volumes_than_any_node_takes(rule: str) -> None:
    s = cluster(BOUNDED, nodes={}, rule=rule)
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(4), attributes={VOLUME_LIMIT + "csi": "1"})), 0)
    submit(s, "mine", 2, 1, where=Constraints(volumes=("a@csi", "b@csi")))
    assert s.schedule(10_001) == []
    submit(s, "later", 1, 10_002)
    assert started(s.schedule(10_002)) == ["later@n1"]
    s.handle(LabelNode("n1", {VOLUME_LIMIT + "csi": "2"}, ()), 10_003)
    assert started(s.schedule(10_003)) == ["mine@n1"]
    check_books(s)


# -- expected starts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_what_waits_for_the_turn_of_another_is_not_expected_to_start_now(rule: str) -> None:
    s = cluster(nodes={"n1": 4}, rule=rule)
    submit(s, "run", 1, allow_preempt_self=False, priority=9)
    s.schedule(0)
    submit(s, "head", 4, 1, priority=5, allow_preempt_other=False)
    s.handle(ReserveAsk("head", "head", True, "ann"), 2)
    submit(s, "behind", 1, 3)
    assert started(s.schedule(3)) == []
    assert s.expected_start_ms("behind", "behind") is None


# -- what is foreseen of a gang ---------------------------------------------------------------------------------------


def quota(count: int) -> dict[str, str]:
    return {"namespace.resourcequota": json.dumps({"resources": {"vcore": {"value": count * 1000}}})}


TWO = Limits({"vcore": 2000})
BY_USE = TemplateSpec(properties={"application.sort.policy": "fair"})


@pytest.mark.parametrize(
    ("parent", "before", "tags", "is_taken"),
    [
        ({}, None, {}, True),
        ({"max": TWO}, None, {}, False),
        ({"child_template": TemplateSpec(max=TWO)}, None, {}, False),
        ({"child_template": TemplateSpec(max=TWO)}, None, quota(8), True),
        ({"child_template": BY_USE}, None, {}, False),
        ({}, None, quota(2), False),
        ({}, {}, quota(2), False),
        ({}, quota(2), {}, False),
        ({}, quota(2), quota(8), True),
        ({"max": TWO}, {}, quota(8), False),
    ],
)
def test_what_becomes_of_a_gang_is_foreseen_also_where_its_leaf_is_still_to_be_made(
    parent: dict[str, Any], before: dict[str, str] | None, tags: dict[str, str], is_taken: bool
) -> None:
    """Its template, its maxima, the order of its applications and the quota of its namespace count."""
    root = QueueSpec(
        name="root", parent=True, submit_acl="*", queues=(QueueSpec(**{"name": "p", "parent": True} | parent),)
    )
    rules = (RuleSpec(name="provided", create=True),)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(name="default", root=root, placement_rules=rules),)))
    to_new: dict[str, Any] = {"queue": "root.p.New", "user": "u"}
    if before is not None:
        s.handle(AddApplication(ApplicationSpec(id="before", tags=before, **to_new)), 0)
    gang = ApplicationSpec(id="gang", placeholder_ask=cores(4), tags=tags, **to_new)
    foreseen = foresee(s.cluster.partitions["default"], gang)
    said = s.handle(AddApplication(gang), 0)
    refused = [d.reason for d in said if isinstance(d, ApplicationRejected)]
    assert refused == ([] if foreseen.refused is None else [foreseen.refused])
    assert is_taken == (not refused)


# -- what is over -----------------------------------------------------------------------------------------------------


def spec_of(*queues: QueueSpec, partitions: tuple[str, ...] = ("default",)) -> ClusterSpec:
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=queues)
    return ClusterSpec(partitions=tuple(PartitionSpec(name=name, root=root) for name in partitions))


def test_nobody_wakes_up_for_what_was_held_and_is_withdrawn() -> None:
    s = cluster(nodes={"n1": 4})
    submit(s, "x", 1)
    for key, begin_ms in (("first", 100), ("then", 200)):
        spec = AskSpec(application="x", key=key, resources=cores(1), conditions=Conditions(begin_ms=begin_ms))
        s.handle(AddAsks((spec,)), 0)
    s.schedule(0)
    s.handle(Release("x", "first", Cause.FINISHED), 1)
    assert s.next_wakeup_ms() == 200
    s.handle(Release("x", "then", Cause.FINISHED), 2)
    assert s.next_wakeup_ms() is None


def test_nobody_wakes_up_for_a_queue_with_a_bound_that_is_removed() -> None:
    s = Scheduler(spec_of(QueueSpec(name="a", properties={"wait.max": "100h"}), QueueSpec(name="b")))
    submit(s, "x", 1)
    s.handle(RemoveApplication("x"), 1)
    s.handle(Configure(spec_of(QueueSpec(name="b"))), 2)
    s.schedule(20_000)
    assert s.next_wakeup_ms() is None


def test_no_history_is_kept_in_partitions_that_are_added_later_either() -> None:
    s = Scheduler(spec_of(QueueSpec(name="a")))
    s.forget_ended()
    s.handle(Configure(spec_of(QueueSpec(name="a"), partitions=("default", "more"))), 1)
    s.handle(AddApplication(ApplicationSpec(id="x", queue="root.nowhere", user="u", partition="more")), 2)
    assert not s.cluster.partitions["more"].rejected
    assert s.next_wakeup_ms() is None


# -- gangs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_a_gang_of_which_a_placeholder_is_reported_as_running_gives_way_no_longer(rule: str) -> None:
    """It holds room again; where the other lacks that it gives way once more."""
    s = cluster(QueueSpec(name="a", max_applications=9), nodes={"n1": 4, "n2": 4}, rule=rule)
    of_gang: dict[str, Any] = {"resources": cores(4), "placeholder": True, "task_group": "t"}
    for now, (name, node) in enumerate((("old", "n1"), ("young", "n2"))):
        s.handle(AddApplication(ApplicationSpec(id=name, queue="root.a")), now)
        for key, there in ((f"{name}1", node), (f"{name}2", "")):
            s.handle(AddAsks((AskSpec(application=name, key=key, node=there, **of_gang),)), now)
    assert [d.key for d in s.schedule(2) if isinstance(d, Evict)] == ["young1"]
    s.handle(Release("young", "young1", Cause.PREEMPTED_BY_SCHEDULER), 3)
    s.handle(AddAsks((AskSpec(application="young", key="young3", node="n2", **of_gang),)), 3)
    check_books(s)
    assert [d.key for d in s.schedule(4) if isinstance(d, Evict)] == ["young3"]
    s.handle(Release("young", "young3", Cause.PREEMPTED_BY_SCHEDULER), 5)
    check_books(s)
    assert started(s.schedule(5)) == ["old2@n2"]
    check_books(s)


def on(zone: str) -> Constraints:
    return Constraints(selector=(Requirement("zone", "In", (zone,)),))


@pytest.mark.parametrize(
    ("labels", "where", "goes_on"),
    [({"step": "two"}, Constraints(), True), ({}, on("z"), True), ({}, on("y"), False), ({"app": "x"}, ON_80, False)],
    ids=["label", "still there", "elsewhere", "port"],
)
def test_what_is_under_way_to_the_place_of_a_placeholder_goes_on_when_it_gets_another_label(
    labels: dict[str, str], where: Constraints, goes_on: bool
) -> None:
    """A second placeholder would be stopped for it."""
    s = cluster(nodes={})
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(4), attributes={"zone": "z"})), 0)
    submit(s, "web", 1, node="n1", where=ON_80)
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a")), 0)
    of_gang: dict[str, Any] = {"application": "g", "resources": cores(1), "task_group": "t"}
    for key in ("p1", "p2"):
        s.handle(AddAsks((AskSpec(key=key, node="n1", placeholder=True, **of_gang),)), 0)
    s.handle(AddAsks((AskSpec(key="real", **of_gang),)), 1)
    assert [d.key for d in s.schedule(1) if isinstance(d, Evict)] == ["p1"]
    s.handle(LabelAsk("g", "real", labels, where), 2)
    assert [d for d in s.schedule(2) if isinstance(d, Evict)] == []
    said = s.handle(Release("g", "p1", Cause.PLACEHOLDER_REPLACED), 3)
    assert started(said) == (["real@n1"] if goes_on else [])
    check_books(s)


def test_what_rests_no_longer_as_its_queue_has_no_backoff_any_more_is_expected_to_start_before() -> None:
    rests = {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "1h"}
    s = Scheduler(spec_of(QueueSpec(name="a", properties=rests)))
    for name in ("n1", "n2"):
        s.handle(AddNode(NodeSpec(id=name, capacity=cores(4))), 0)
        submit(s, f"on-{name}", 3, node=name, time_limit_ms=10_000, priority=9)
    s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a")), 1)
    for key in ("k1", "k2"):
        s.handle(AddAsks((AskSpec(application="x", key=key, resources=cores(2)),)), 1)
    s.schedule(1)
    assert s.expected_start_ms("x", "k1") == 3_600_001
    s.handle(Configure(spec_of(QueueSpec(name="a"))), 2)
    assert s.expected_start_ms("x", "k1") == 10_000


@pytest.mark.parametrize("rule", RULES)
def test_idle_work_is_expected_to_start_when_its_resource_group_has_room(rule: str) -> None:
    """The maximum of its queue is not in its way; a turn that is kept in its group is."""
    leaf = QueueSpec(name="a", max=Limits({"vcore": 2000}))
    group = QueueSpec(name="g", parent=True, properties={"resource.group": "true"}, queues=(leaf,))
    s = cluster(group, nodes={"n1": 4}, rule=rule)
    submit(s, "stays", 2, queue="root.g.a", node="n1", priority=9)
    submit(s, "ends", 2, queue="root.g.a", node="n1", priority=9, time_limit_ms=10_000)
    submit(s, "idle", 2, 1, queue="root.g.a", idle=True)
    assert s.schedule(1) == []
    assert s.expected_start_ms("idle", "idle") == 10_000
    submit(s, "head", 2, 1, queue="root.g.a")
    s.handle(ReserveAsk("head", "head", True, "ann"), 2)
    assert s.expected_start_ms("idle", "idle") is None


@pytest.mark.parametrize("rule", RULES)
def test_what_requires_a_drained_node_is_backfilled_there(rule: str) -> None:
    s = cluster(QueueSpec(name="a", properties=BACKFILL), nodes={"n1": 8, "n2": 4}, rule=rule)
    submit(s, "run", 8, node="n1", priority=9, time_limit_ms=10_000)
    s.handle(DrainNode("n2"), 0)
    submit(s, "head", 8, 1, priority=5)
    s.handle(ReserveAsk("head", "head", True, "ann"), 2)
    submit(s, "other", 1, 3, time_limit_ms=1_000)
    submit(s, "mine", 1, 3, tags={TAG_REQUIRED_NODE: "n2"}, time_limit_ms=1_000)
    assert started(s.schedule(3)) == ["mine@n2"]
    check_books(s)


# -- turns of several queues ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_what_waits_for_turns_in_two_queues_gives_up_the_places_to_run_that_these_need(rule: str) -> None:
    """In each queue one of another user has the place of the one whose turn is kept in the other."""
    limits = tuple(LimitSpec(users=(user,), max_applications=1) for user in ("u", "v"))
    leaves = tuple(QueueSpec(name=name) for name in ("a", "b"))
    s = cluster(QueueSpec(name="p", parent=True, limits=limits, queues=leaves), nodes={"n1": 4}, rule=rule)
    for name, queue, user in (("x", "root.p.b", "u"), ("y", "root.p.a", "v")):
        submit(s, name, 2, queue=queue, user=user)
    assert len(started(s.schedule(0))) == 2
    for name, queue, user in (("h", "root.p.a", "u"), ("k", "root.p.b", "v")):
        submit(s, name, 2, 1, queue=queue, user=user, priority=5, allow_preempt_other=False)
        s.handle(ReserveAsk(name, name, True, "ann"), 1)
    for name in ("x", "y"):
        s.handle(AddAsks((AskSpec(application=name, key=f"{name}2", resources=cores(2)),)), 2)
    s.schedule(2)
    for name in ("x", "y"):
        s.handle(Release(name, name, Cause.FINISHED), 3)
    assert sorted(started(s.schedule(3))) == ["h@n1", "k@n1"]
    for name in ("h", "k"):
        s.handle(Release(name, name, Cause.FINISHED), 4)
    assert sorted(started(s.schedule(60_000))) == ["x2@n1", "y2@n1"]
    check_books(s)
