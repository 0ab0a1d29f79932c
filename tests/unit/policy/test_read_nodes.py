"""Faults that a reading by theme found: nodes that come, change and go, and what says where work may run."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import cluster, cores, started, stopped, submit

from fairlead.core.model.constraints import DEVICES, HOSTNAME, VOLUME_LIMIT, AffinityTerm, Constraints, Requirement
from fairlead.core.model.decisions import Decision, LoopBroken
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Cause,
    DrainNode,
    Event,
    LabelAsk,
    LabelNode,
    Leaving,
    Nominated,
    Release,
    RemoveNode,
    ReserveAsk,
    SetWindow,
    UpdateNode,
)
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import (
    TAG_FOREIGN,
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    NodeSpec,
    QueueSpec,
    WindowSpec,
)
from fairlead.scheduler import Scheduler

LEAVES = (QueueSpec(name="a"), QueueSpec(name="b"))


# -- windows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", [RemoveNode("n1"), LabelNode("n1", {}, ())], ids=["removed", "relabelled"])
def test_a_window_does_not_keep_free_what_has_the_hostname_that_its_node_had(leaves: Event) -> None:
    s = cluster(nodes={})
    s.handle(SetWindow(WindowSpec(name="w", starts_ms=100_000, length_ms=1_000, nodes=("n1",))), 0)
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(4), attributes={HOSTNAME: "ip-10-0-0-1"})), 0)
    submit(s, "long", 2, 1)
    assert not started(s.schedule(2))
    s.handle(leaves, 3)
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(4), attributes={HOSTNAME: "ip-10-0-0-1"})), 4)
    assert started(Scheduler.load(s.dump()).schedule(5)) == ["long@n2"]
    assert started(s.schedule(5)) == ["long@n2"]
    check_books(s)


def test_a_window_keeps_free_its_node_and_not_another_of_the_same_hostname() -> None:
    s = cluster(nodes={})
    s.handle(SetWindow(WindowSpec(name="w", starts_ms=100_000, length_ms=1_000, nodes=("n1",))), 0)
    for name in ("n1", "n2"):
        s.handle(AddNode(NodeSpec(id=name, capacity=cores(4), attributes={HOSTNAME: "same"})), 0)
    for key in ("one", "two"):
        submit(s, key, 4, 1)
    assert started(s.schedule(2)) == ["one@n2"]
    assert s.why("two", "two") is not None
    check_books(s)


# -- turns ----------------------------------------------------------------------------------------------------------

ON_SSD = Constraints(selector=(Requirement("disk", "In", ("ssd",)),))


def test_what_waited_too_long_has_its_turn_kept_when_a_node_is_labelled_for_it_that_no_window_keeps_free() -> None:
    s = cluster(QueueSpec(name="a", properties={"wait.max": "10s"}), nodes={"n1": 4, "n2": 4})
    s.handle(SetWindow(WindowSpec(name="w", starts_ms=10_000_000, length_ms=1_000, nodes=("n1",))), 0)
    s.handle(LabelNode("n1", {"disk": "ssd"}, ()), 0)
    submit(s, "fill", 4, node="n2")
    submit(s, "k", 4, 1, where=ON_SSD)
    s.schedule(20_000)  # A window keeps it from the only node that it could run on.
    assert not list(s.cluster.partitions["default"].reserving.every())
    s.handle(LabelNode("n2", {"disk": "ssd"}, ()), 20_001)
    s.schedule(20_001)
    assert [ask.key for ask, _ in s.cluster.partitions["default"].reserving.every()] == ["k"]
    assert [ask.key for ask in s.cluster.partitions["default"].nominations] == ["k"]
    check_books(s)


def test_a_node_without_the_devices_for_which_it_was_set_aside_goes_back() -> None:
    """They failed, or another scheduler's work has them: it stood empty for as long as the ask waited."""
    s = cluster(nodes={"n1": 4, "n2": 1})
    s.handle(LabelNode("n1", {f"{DEVICES}gpu": ""}, ()), 0)
    submit(s, "runs", 1, node="n1")
    submit(s, "large", 4, 1, where=Constraints(devices="gpu"))
    s.schedule(10_000)
    submit(s, "small", 2, 10_001)
    assert started(s.schedule(10_001)) == []
    s.handle(LabelNode("n1", {}, ()), 10_002)
    assert started(s.schedule(10_002)) == ["small@n1"]
    s.handle(LabelNode("n1", {f"{DEVICES}gpu": ""}, ()), 10_003)
    submit(s, "late", 1, 10_004)
    s.handle(Release("small", "small"), 10_005)
    s.handle(Release("runs", "runs"), 10_005)
    assert started(s.schedule(20_000)) == ["large@n1", "late@n2"]
    check_books(s)


# -- running work that is described anew ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (Constraints(ports=("TCP//80",)), Constraints(ports=("TCP//80",))),
        (Constraints(volumes=("x@disk",)), Constraints(volumes=("y@disk",))),
    ],
    ids=["port", "volume"],
)
def test_what_running_work_needs_no_longer_is_there_for_what_waits(mine: Constraints, theirs: Constraints) -> None:
    s = cluster(nodes={})
    s.handle(AddNode(NodeSpec(id="n1", capacity=cores(4), attributes={VOLUME_LIMIT + "disk": "1"})), 0)
    submit(s, "runs", 1, where=mine)
    s.schedule(0)
    submit(s, "waits", 1, 1, where=theirs)
    assert not started(s.schedule(1))
    s.handle(LabelAsk("runs", "runs"), 2)
    assert started(s.schedule(2)) == ["waits@n1"]
    check_books(s)


# -- nodes that are set aside -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tags", [{}, {TAG_REQUIRED_NODE: "n1"}], ids=["ordinary", "required"])
def test_a_node_is_not_set_aside_for_what_it_has_become_too_small_for(tags: dict[str, str]) -> None:
    s = cluster(nodes={"n1": 4, "n2": 3, "n3": 3})
    submit(s, "runs", 3, node="n1", priority=9)
    submit(s, "wide", 4, 1, tags=tags)
    s.schedule(2_001)
    wide = s.cluster.partitions["default"].applications["wide"].asks["wide"]
    assert wide.reserved_on is not None
    s.handle(UpdateNode("n1", cores(3)), 2_002)
    s.schedule(2_002)
    assert wide.reserved_on is None
    s.handle(Release("runs", "runs", Cause.FINISHED), 2_003)
    for name in ("x", "y", "z"):
        submit(s, name, 3, 2_003)
    on = {node: key for key, _, node in (each.partition("@") for each in started(s.schedule(2_003)))}
    assert sorted(on) == ["n1", "n2", "n3"]
    s.handle(UpdateNode("n1", cores(4)), 2_004)
    s.handle(Release(on["n2"], on["n2"], Cause.FINISHED), 2_004)
    s.schedule(2_004)
    assert wide.reserved_on is not None
    check_books(s)


# -- expected starts --------------------------------------------------------------------------------------------------


def far_from(label: str, key: str = HOSTNAME) -> Constraints:
    return Constraints(anti_affinity=(AffinityTerm((Requirement("app", "In", (label,)),), key),))


@pytest.mark.parametrize("it_says_so", [True, False], ids=["its own term", "theirs"])
def test_a_start_is_expected_when_work_on_another_node_ends_that_kept_it_off(it_says_so: bool) -> None:
    s = cluster(nodes={})
    for name, count in (("n1", 1), ("n2", 4)):
        s.handle(AddNode(NodeSpec(id=name, capacity=cores(count), attributes={"zone": "z"})), 0)
    theirs = Constraints() if it_says_so else far_from("head", "zone")
    submit(s, "far", 1, node="n1", labels={"app": "x"}, where=theirs, time_limit_ms=10_000)
    submit(s, "near", 2, node="n2", time_limit_ms=5_000)
    mine = far_from("x", "zone") if it_says_so else Constraints()
    submit(s, "head", 4, 1, where=mine, labels={"app": "head"})
    assert s.expected_start_ms("head", "head") == 10_000


ON_80 = Constraints(ports=("TCP//80",))


@pytest.mark.parametrize(
    ("mine", "small"),
    [
        (ON_80, {"where": ON_80}),
        (far_from("x"), {"labels": {"app": "x"}}),
        (far_from("x", "zone"), {"labels": {"app": "x"}}),
        (Constraints(), {"where": far_from("head")}),
    ],
    ids=["port", "node", "zone", "theirs"],
)
def test_what_would_keep_it_off_then_is_not_backfilled_before_an_expected_start(
    mine: Constraints, small: dict[str, Any]
) -> None:
    s = cluster(QueueSpec(name="a", properties={"backfill": "easy"}), nodes={})
    for name, count in (("n1", 8), ("n2", 1)):
        s.handle(AddNode(NodeSpec(id=name, capacity=cores(count), attributes={"zone": "z"})), 0)
    submit(s, "runs", 6, node="n1", time_limit_ms=10_000)
    submit(s, "fills", 1, node="n2")
    submit(s, "head", 6, 1, priority=5, where=mine, labels={"app": "head"})
    s.handle(ReserveAsk("head", "head", True, "ann"), 2)
    s.schedule(2)
    assert s.expected_start_ms("head", "head") == 10_000
    submit(s, "small", 1, 3, **small)
    submit(s, "other", 1, 3)
    submit(s, "short", 1, 3, **small, time_limit_ms=5_000)
    assert sorted(started(s.schedule(3))) == ["other@n1", "short@n1"]
    for name in ("short", "runs"):
        s.handle(Release(name, name, Cause.FINISHED), 10_000)
    assert started(s.schedule(10_000))[0] == "head@n1"
    check_books(s)


def test_what_is_backfilled_leaves_room_for_all_whose_starts_are_expected_there() -> None:
    s = cluster(QueueSpec(name="a", properties={"backfill": "easy"}), nodes={"n1": 10, "n2": 1})
    submit(s, "runs", 7, node="n1", time_limit_ms=10_000)
    submit(s, "fills", 1, node="n2")
    for name in ("first", "second"):
        submit(s, name, 4, 1, priority=5)
    for name in ("first", "second"):
        s.handle(ReserveAsk(name, name, True, "ann"), 2)
    s.schedule(2)
    assert [s.expected_start_ms(name, name) for name in ("first", "second")] == [10_000, 10_000]
    for name in ("small", "beside", "too-much"):
        submit(s, name, 1, 3)
    assert started(s.schedule(3)) == ["small@n1", "beside@n1"]
    s.handle(Release("runs", "runs", Cause.FINISHED), 10_000)
    assert started(s.schedule(10_000)) == ["first@n1", "second@n1"]
    check_books(s)


# -- nodes that are lost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [Release("x", "x1", Cause.FINISHED), RemoveNode("n1")], ids=["ends", "node lost"])
def test_an_application_with_more_to_come_keeps_its_place_when_work_is_lost_as_when_it_ends(ends: Event) -> None:
    s = cluster(QueueSpec(name="a", max_applications=1), nodes={"n1": 2, "n2": 2})
    s.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", at_once=1)), 0)
    for key in ("x1", "x2"):
        s.handle(AddAsks((AskSpec(application="x", key=key, resources=cores(1)),)), 0)
    assert started(s.schedule(0)) == ["x1@n1"]
    submit(s, "other", 1, 1, priority=5)
    s.schedule(1)
    s.handle(ends, 2)
    assert [each.partition("@")[0] for each in started(s.schedule(2))] == ["x2"]
    check_books(s)


# -- what is reported -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["guarantee", "priority"])
def test_an_ask_is_not_nominated_by_report_on_another_node_than_it_requires(rule: str) -> None:
    s = cluster(nodes={"n1": 2, "n2": 2}, rule=rule)
    submit(s, "d", 1, tags={TAG_REQUIRED_NODE: "n1"})
    s.handle(Nominated("d", "d", "n2"), 0)
    assert started(s.schedule(0)) == ["d@n1"]
    check_books(s)


@pytest.mark.parametrize("lost", [RemoveNode("n1"), DrainNode("n1")], ids=["removed", "drained"])
def test_what_was_reported_as_nominated_may_have_other_work_stopped_when_the_node_is_lost(lost: Event) -> None:
    """It would wait for ever below its guarantee."""
    lab = QueueSpec(name="lab", guaranteed=Limits({"vcore": 4000}), properties={"preemption.delay": "1s"})
    s = cluster(lab, QueueSpec(name="rest"), nodes={"n1": 4, "n2": 4})
    for name in ("n1", "n2"):
        submit(s, f"on-{name}", 4, queue="root.rest", node=name)
    submit(s, "mine", 4, 1, "root.lab")
    s.handle(Leaving("on-n1", "on-n1"), 2)
    s.handle(Nominated("mine", "mine", "n1"), 2)
    s.handle(lost, 3)
    assert stopped(s.schedule(1_001)) == ["on-n2"]
    check_books(s)


# -- gangs ------------------------------------------------------------------------------------------------------------


def test_a_gang_that_another_keeps_away_gets_through_when_that_gives_way() -> None:
    s = cluster(nodes={"n1": 4, "n2": 4})
    for now, (name, node, where) in enumerate((("old", "n1", Constraints()), ("young", "n2", far_from("old")))):
        s.handle(AddApplication(ApplicationSpec(id=name, queue="root.a")), now)
        of_gang: dict[str, Any] = {"application": name, "resources": cores(4), "placeholder": True, "task_group": "t"}
        of_gang |= {"labels": {"app": name}, "where": where}
        for key, there in ((f"{name}1", node), (f"{name}2", "")):
            s.handle(AddAsks((AskSpec(key=key, node=there, **of_gang),)), now)
    assert stopped(s.schedule(2)) == ["young1"]
    s.handle(Release("young", "young1", Cause.PREEMPTED_BY_SCHEDULER), 3)
    assert started(s.schedule(3)) == ["old2@n2"]
    check_books(s)


# -- capacity that is reported again ----------------------------------------------------------------------------------


def test_a_capacity_that_is_reported_again_is_no_reason_to_stop_work_in_vain_once_more() -> None:
    s = cluster(nodes={"n1": 4}, rule="priority")
    submit(s, "high", 4, priority=9)
    told: list[Decision] = []
    for turn in range(6):  # What another scheduler runs takes the room each time.
        now = 1_000 * turn
        submit(s, f"low{turn}", 4, now, node="n1")
        for victim in stopped(s.schedule(now + 1)):
            s.handle(Release(victim, victim, Cause.PREEMPTED_BY_SCHEDULER), now + 1)
        other = AskSpec(application="", key="other", node="n1", resources=cores(4), tags={TAG_FOREIGN: "default"})
        s.handle(AddAsks((other,)), now + 1)
        told += s.schedule(now + 2)
        s.handle(UpdateNode("n1", cores(4)), now + 3)
        s.handle(Release("", "other"), now + 3)
    assert [d.key for d in told if isinstance(d, LoopBroken)] == ["high"]
