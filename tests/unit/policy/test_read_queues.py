"""Faults on the side of the queues that a second reading found: orders, limits, gates, what wakes what waits there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import RULES, cluster, cores, started, stopped, submit

from fairlead.core.model.constraints import Constraints, Requirement, Taint, Toleration
from fairlead.core.model.decisions import ReservationSwitched
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    Configure,
    LabelNode,
    MoveApplication,
    Release,
    ReserveAsk,
)
from fairlead.core.model.reasons import ApplicationsAtMax, BackedOff, NoNodeHasRoom
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
from fairlead.scheduler import Scheduler

# -- gates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_a_gang_that_gave_way_keeps_nothing_else_of_its_queue_back(rule: str) -> None:
    """Where a queue bounds its applications, what is like the gang's placeholders waited behind its gate."""
    leaves = [QueueSpec(name=name, max_applications=9) for name in ("a", "b")]
    s = cluster(*leaves, nodes={"n1": 4, "n2": 4}, rule=rule)
    for name, queue, sizes in (
        ("first", "root.a", (4,)),
        ("later", "root.b", (2, 2)),
        ("first", "", (4,)),
        ("later", "", (2,)),
    ):
        if queue:
            s.handle(AddApplication(ApplicationSpec(id=name, queue=queue)), 0)
        held: dict[str, Any] = {"application": name, "placeholder": True, "task_group": "t"}
        known = len(s.cluster.partitions["default"].applications[name].asks)
        asks = (AskSpec(key=f"{name}{known + i}", resources=cores(size), **held) for i, size in enumerate(sizes))
        s.handle(AddAsks(tuple(asks)), 0)
        if queue:
            s.schedule(0)
    assert stopped(s.schedule(0)) == ["later0", "later1"]
    s.handle(AddNode(NodeSpec(id="n3", capacity=cores(2))), 1)
    submit(s, "other", 2, 1, "root.b")
    assert started(s.schedule(1)) == ["other@n3"]
    for key in ("later0", "later1"):
        s.handle(Release("later", key, Cause.PREEMPTED_BY_SCHEDULER), 2)
    assert started(s.schedule(2)) == ["first1@n2"]
    s.handle(AddNode(NodeSpec(id="n4", capacity=cores(4))), 3)
    assert len(started(s.schedule(3))) == 2
    check_books(s)


def test_a_gang_that_holds_the_last_place_to_run_is_counted_in_the_reason() -> None:
    s = cluster(QueueSpec(name="a", max_applications=1), nodes={"n1": 4})
    s.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a")), 0)
    held: dict[str, Any] = {"application": "gang", "placeholder": True, "task_group": "t"}
    s.handle(AddAsks(tuple(AskSpec(key=key, resources=cores(3), **held) for key in ("one", "two"))), 0)
    assert started(s.schedule(0)) == ["one@n1"]
    submit(s, "waits", 1, 1)
    assert s.schedule(1) == []
    assert s.why("waits", "waits") == ApplicationsAtMax("root.a", 1, 1)


# -- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", [False, True])
def test_what_runs_keeps_the_group_that_it_counts_for_when_limits_are_added(moves: bool) -> None:
    """Also where it was moved under the limit with nothing that waits."""

    def with_limits(*groups: str) -> ClusterSpec:
        limits = tuple(LimitSpec(groups=(group,), max_resources=Limits({"vcore": 2000})) for group in groups)
        leaves = (QueueSpec(name="a"), QueueSpec(name="b", limits=limits))
        root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
        return ClusterSpec(partitions=(PartitionSpec(name="default", root=root),))

    s = Scheduler(with_limits("second"))
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(4))), 0)
    spec = ApplicationSpec(id="x", queue="root.a" if moves else "root.b", user="u", groups=("first", "second"))
    s.handle(AddApplication(spec), 0)
    s.handle(AddAsks((AskSpec(application="x", key="x", resources=cores(1)),)), 0)
    assert started(s.schedule(0)) == ["x@n1"]
    if moves:
        s.handle(MoveApplication("x", "root.b"), 1)
    s.handle(Configure(with_limits("first", "second")), 2)
    check_books(s)
    allowance = s.cluster.partitions["default"].applications["x"].allowance
    assert allowance is not None
    assert allowance.group == "second"


# -- order ----------------------------------------------------------------------------------------------------------


ANY_QUEUE = (RuleSpec(name="provided", create=True),)


def namespace(what: str, count: int) -> dict[str, str]:
    """The tag of a namespace that has a `quota` of, or is `guaranteed`, so many cores."""
    return {f"namespace.resource{what}": json.dumps({"resources": {"vcore": {"value": count * 1000}}})}


@pytest.mark.parametrize("forgets", [False, True])
def test_a_queue_finds_its_place_when_an_application_states_another_guarantee(forgets: bool) -> None:
    """Though that application has nothing to offer yet: shares are measured against the new one at once."""
    s = cluster(QueueSpec(name="other"), nodes={"n1": 10}, rule="priority", rules=ANY_QUEUE)
    submit(s, "run", 6, queue="root.other")
    for leaf in ("x", "y"):
        s.handle(
            AddApplication(ApplicationSpec(id=leaf, queue=f"root.{leaf}", user="u", tags=namespace("guaranteed", 10))),
            0,
        )
        s.handle(AddAsks(tuple(AskSpec(application=leaf, key=f"{leaf}{i}", resources=cores(2)) for i in (0, 1))), 0)
    assert started(s.schedule(1)) == ["run@n1", "x0@n1", "y0@n1"]
    s.handle(AddApplication(ApplicationSpec(id="more", queue="root.x", user="u", tags=namespace("guaranteed", 2))), 2)
    if forgets:
        s.forget()
    s.handle(Release("run", "run"), 3)
    assert started(s.schedule(3, limit=1)) == ["y1@n1"]


LEAST = -(2**31)


@pytest.mark.parametrize(("priority", "offset"), [(LEAST, 0), (LEAST + 1, 0), (-1, LEAST), (0, LEAST)])
def test_what_a_queue_is_guaranteed_it_gets_first_however_low_its_priority(priority: int, offset: int) -> None:
    lab = QueueSpec(name="lab", guaranteed=Limits({"vcore": 2000}), properties={"priority.offset": str(offset)})
    team = QueueSpec(name="team", parent=True, queues=(lab,))
    s = cluster(team, QueueSpec(name="rest"), nodes={"n1": 2}, rule="both")
    submit(s, "important", 2, queue="root.rest", priority=5)
    submit(s, "owed", 2, queue="root.team.lab", priority=priority)
    assert started(s.schedule(1)) == ["owed@n1"]


def test_turns_and_preemption_see_the_same_priority_below_32_bits() -> None:
    """Nothing starts that is stopped for what waited, however low offsets and priorities are."""
    leaves = [QueueSpec(name=name, properties={"priority.offset": str(LEAST)}) for name in ("a", "b")]
    s = cluster(*leaves, nodes={"n1": 4}, rule="priority")
    submit(s, "lower", 4, queue="root.a", priority=-9)
    submit(s, "higher", 4, 1, queue="root.b", priority=-5)
    assert started(s.schedule(2)) == ["higher@n1"]


# -- a bound on waiting ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_what_waited_too_long_has_its_turn_kept_once_the_quota_of_its_namespace_is_large_enough(rule: str) -> None:
    bounded = QueueSpec(name="p", parent=True, child_template=TemplateSpec(properties={"wait.max": "10s"}))
    s = cluster(bounded, nodes={"n1": 4}, rule=rule, rules=ANY_QUEUE)

    def add(name: str, now: int, count: int, tags: dict[str, str] | None = None) -> None:
        s.handle(AddApplication(ApplicationSpec(id=name, queue="root.p.x", user="u", tags=tags or {})), now)
        if count:
            s.handle(AddAsks((AskSpec(application=name, key=name, resources=cores(count)),)), now)

    add("run", 0, 1, namespace("quota", 2))
    assert started(s.schedule(0)) == ["run@n1"]
    add("large", 1, 4)
    assert s.schedule(20_000) == []
    add("more", 20_001, 0, namespace("quota", 8))
    said = s.schedule(20_001)
    assert [d.key for d in said if isinstance(d, ReservationSwitched)] == ["large"]
    add("small", 20_002, 1)
    assert started(s.schedule(20_002)) == []


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("keeps", ["selector", "taint"])
def test_no_turn_is_kept_for_what_no_node_lets_in(keeps: str, rule: str) -> None:
    """Its queue would wait for it for ever."""
    disk, mark = {"disk": "ssd"}, Taint("team", "lab", "NoSchedule")
    tainted = (mark,) if keeps == "taint" else ()
    s = cluster(QueueSpec(name="a", properties={"wait.max": "10s"}), nodes={}, rule=rule)
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(4), taints=tainted)), 0)
    lab = Constraints(tolerations=(Toleration("team", "Equal", "lab"),))
    on_ssd = Constraints(selector=(Requirement("disk", "In", ("ssd",)),)) if keeps == "selector" else Constraints()
    submit(s, "nowhere", 1, where=on_ssd)
    submit(s, "run", 1, where=lab)
    s.schedule(0)
    s.schedule(10_000)
    submit(s, "later", 1, 10_001, where=lab)
    assert started(s.schedule(10_001)) == ["later@n1"]
    submit(s, "large", 2, 10_002, where=lab)
    submit(s, "full", 2, 10_002, where=lab)
    assert started(s.schedule(10_002)) == ["large@n1"]
    s.handle(LabelNode("n1", disk, ()), 10_003)
    said = s.schedule(10_003)
    assert [d.key for d in said if isinstance(d, ReservationSwitched)] == ["nowhere"]
    s.handle(LabelNode("n1", {}, (mark,)), 10_004)
    said = s.schedule(10_004)
    assert [(d.key, d.on) for d in said if isinstance(d, ReservationSwitched)] == [("nowhere", False)]
    s.handle(LabelNode("n1", disk, ()), 10_005)
    s.handle(Release("large", "large", Cause.FINISHED), 10_005)
    assert started(s.schedule(10_005)) == ["nowhere@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("bound", ["queue", "user"])
@pytest.mark.parametrize("by_itself", [True, False])
def test_what_waits_for_a_turn_gives_up_the_place_to_run_that_this_one_needs(
    by_itself: bool, bound: str, rule: str
) -> None:
    """Nothing of it runs; each waited for the other for ever."""
    limits = (LimitSpec(users=("nobody",), max_applications=1),) if bound == "user" else ()
    most = 1 if bound == "queue" else 0
    s = cluster(
        QueueSpec(name="a", max_applications=most, limits=limits, properties={"wait.max": "10s"}),
        nodes={"n1": 4},
        rule=rule,
    )
    submit(s, "first", 4)
    assert started(s.schedule(0)) == ["first@n1"]
    submit(s, "second", 4, 1, priority=0 if by_itself else 1)
    s.handle(AddAsks((AskSpec(application="first", key="more", resources=cores(4)),)), 2)
    assert s.schedule(2) == []
    if not by_itself:
        s.handle(ReserveAsk("second", "second", True, "ann"), 3)
    s.schedule(10_001)
    s.handle(Release("first", "first", Cause.FINISHED), 10_002)
    assert started(s.schedule(10_002)) == ["second@n1"]
    s.handle(Release("second", "second", Cause.FINISHED), 10_003)
    assert started(s.schedule(50_000)) == ["more@n1"]
    check_books(s)


# -- reasons --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_idle_work_does_not_wait_for_the_end_of_its_applications_rest(rule: str) -> None:
    """Nor is it said to: it starts as soon as a node has room."""
    rests = {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "1h"}
    s = cluster(QueueSpec(name="a", properties=rests), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4}, rule=rule)
    for key in ("one", "two"):
        submit(s, key, 3, queue="root.b", allow_preempt_self=False)
    s.schedule(0)
    s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a")), 1)
    large: dict[str, Any] = {"application": "x", "resources": cores(2)}
    asks = (AskSpec(key="miss", **large), AskSpec(key="behind", **large), AskSpec(key="idle", idle=True, **large))
    s.handle(AddAsks(asks), 1)
    assert s.schedule(1) == []
    assert isinstance(s.why("x", "miss"), BackedOff)
    assert isinstance(s.why("x", "idle"), NoNodeHasRoom)
    s.handle(AddNode(NodeSpec(id="n3", capacity=cores(2))), 2)
    assert started(s.schedule(2)) == ["idle@n3"]


@pytest.mark.parametrize("rule", RULES)
def test_what_rests_is_not_expected_to_start_before_its_rest_is_over(rule: str) -> None:
    rests = {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "1h"}
    s = cluster(QueueSpec(name="a", properties=rests), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4}, rule=rule)
    for key in ("one", "two"):
        submit(s, key, 3, queue="root.b", time_limit_ms=10_000)
    s.schedule(0)
    s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a")), 1)
    asks = (AskSpec(application="x", key=key, resources=cores(2), allow_preempt_other=False) for key in ("k1", "k2"))
    s.handle(AddAsks(tuple(asks)), 1)
    assert s.schedule(1) == []
    assert s.expected_start_ms("x", "k1") == 3_600_001
    for key in ("one", "two"):
        s.handle(Release(key, key, Cause.FINISHED), 10_000)
    assert started(s.schedule(10_000)) == []
    assert s.expected_start_ms("x", "k1") == 3_600_001
    assert len(started(s.schedule(3_600_001))) == 2


# -- gangs ----------------------------------------------------------------------------------------------------------


def test_a_placeholder_that_was_told_to_go_is_replaced_by_nothing() -> None:
    """It is too small for one ask; the one before that could have taken its place on another node."""
    s = cluster(QueueSpec(name="a"), nodes={"n1": 1, "n2": 1})
    s.handle(AddApplication(ApplicationSpec(id="g", queue="root.a")), 0)
    of_gang: dict[str, Any] = {"application": "g", "task_group": "t"}
    on_n1, on_n2 = ({TAG_REQUIRED_NODE: name} for name in ("n1", "n2"))
    s.handle(AddAsks((AskSpec(key="held", placeholder=True, resources=cores(1), tags=on_n1, **of_gang),)), 0)
    assert started(s.schedule(0)) == ["held@n1"]
    elsewhere = AskSpec(key="elsewhere", resources=cores(1), tags=on_n2, priority=1, **of_gang)
    s.handle(AddAsks((elsewhere, AskSpec(key="large", resources=cores(2), **of_gang))), 1)
    assert stopped(s.schedule(1)) == ["held"]
    check_books(s)
    s.handle(Release("g", "held", Cause.TIMEOUT), 2)
    assert started(s.schedule(2)) == ["elsewhere@n2"]
