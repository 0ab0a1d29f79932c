"""Faults that a fifth reading found: beside the mends of the fourth, and what that one had left open."""

from __future__ import annotations

import pytest
from invariants.books import check_books
from small_clusters import (
    RULES,
    application,
    ask,
    cluster,
    cores,
    over_time,
    started,
    stopped,
    submit,
)

from fairlead.core.model.constraints import ANYWHERE, NO_SCHEDULE, AffinityTerm, Constraints, Requirement, Taint
from fairlead.core.model.events import (
    Cause,
    ChangeAsk,
    LabelNode,
    Leaving,
    MoveApplication,
    Release,
    ReportImages,
    ReserveAsk,
    SetWindow,
)
from fairlead.core.model.reasons import NoNodeHasRoom
from fairlead.core.model.specs import TAG_REQUIRED_NODE, QueueSpec, WindowSpec

PORT = Constraints(ports=("TCP//80",))
WITH_DB = Constraints(affinity=(AffinityTerm((Requirement("app", "In", ("db",)),)),))

# -- expected starts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_what_was_told_to_stop_ends_at_the_latest_when_its_grace_is_over(rule: str) -> None:
    """It counted until its time limit: the start was told too late, and what passed the kept turn delayed it."""
    passable = QueueSpec(name="a", properties={"backfill": "easy"})
    s = cluster(passable, QueueSpec(name="b"), nodes={"n1": 4}, rule=rule)
    submit(s, "goes", 2, queue="root.b", time_limit_ms=36_000_000, grace_ms=10_000)
    s.schedule(0)
    submit(s, "first", 4, 1, priority=5)
    s.handle(ReserveAsk("first", "first", on=True), 1)
    s.handle(Leaving("goes", "goes", Cause.PREEMPTED_BY_SCHEDULER), 2)
    submit(s, "behind", 2, 3, time_limit_ms=18_000_000)
    assert started(s.schedule(3)) == []
    assert s.expected_start_ms("first", "first") == 70_002


@pytest.mark.parametrize("cause", [Cause.PREEMPTED_BY_SCHEDULER, Cause.STOPPED_BY_RM])
def test_no_start_is_told_beside_company_that_was_told_to_stop(cause: Cause) -> None:
    s = cluster(nodes={"n1": 4})
    submit(s, "db", 1, labels={"app": "db"})
    submit(s, "ends", 3, time_limit_ms=500_000)
    s.schedule(0)
    submit(s, "x", 2, 1, where=WITH_DB)
    s.schedule(1)
    assert s.expected_start_ms("x", "x") == 500_000
    s.handle(Leaving("db", "db", cause), 2)
    assert s.expected_start_ms("x", "x") is None
    submit(s, "db2", 1, 3, labels={"app": "db"})
    s.handle(Release("db", "db", Cause.FINISHED), 4)
    s.schedule(4)
    assert s.expected_start_ms("x", "x") == 500_000


def test_backfill_counts_on_a_port_that_is_kept_for_a_weaker_ask() -> None:
    """The start of the kept turn did, and then everything was found to be in its way."""
    patient = QueueSpec(name="b", properties={"wait.max": "10s"})
    passable = QueueSpec(name="a", properties={"backfill": "easy"})
    s = cluster(passable, patient, QueueSpec(name="c"), nodes={"n1": 4, "n2": 1}, rule="priority")
    submit(s, "x", 2, queue="root.c", priority=9, time_limit_ms=100_000)
    s.schedule(0)
    submit(s, "weak", 4, 1, "root.b", priority=1, where=PORT)
    over_time(s, 1, 10_500)
    submit(s, "strong", 4, 11_000, priority=5, where=PORT)
    s.handle(ReserveAsk("strong", "strong", on=True), 11_000)
    s.schedule(11_000)
    assert s.expected_start_ms("strong", "strong") == 100_000
    submit(s, "behind", 1, 11_001)
    assert started(s.schedule(11_001)) == ["behind@n2"]
    check_books(s)


# -- reasons --------------------------------------------------------------------------------------------------------


def test_no_more_is_said_to_be_held_on_a_node_than_is_free_there() -> None:
    """What victims have yet to leave is kept as well: it was counted as free and held."""
    s = cluster(nodes={"n1": 3, "n2": 1}, rule="priority")
    submit(s, "y", 2)
    s.schedule(0)
    s.handle(LabelNode("n2", {}, (Taint("for", "others", NO_SCHEDULE),)), 0)
    submit(s, "x", 3, 1, priority=5)
    submit(s, "z", 2, 1)
    assert stopped(s.schedule(1)) == ["y"]
    reason = s.why("z", "z")
    assert isinstance(reason, NoNodeHasRoom)
    assert (reason.free, reason.held) == ({"vcore": 1000}, {"vcore": 1000})


# -- what is reported to run ----------------------------------------------------------------------------------------

WINDOW = WindowSpec(name="w", starts_ms=10, length_ms=1_000_000, nodes=("n1",), queues=("root.b",), stop_running=True)


@pytest.mark.parametrize("rule", RULES)
def test_what_is_reported_on_a_node_that_a_window_empties_is_told_to_go_at_once(rule: str) -> None:
    """It went at the next look at windows, whenever that came."""
    s = cluster(nodes={"n1": 4, "n2": 4}, rule=rule)
    s.handle(SetWindow(WINDOW), 0)
    application(s, "x")
    s.handle(ReportImages("n1", {}), 10)
    assert stopped(ask(s, "x", "here", now=20, node="n1")) == ["here"]
    assert stopped(ask(s, "x", "elsewhere", now=20, node="n2")) == []
    assert stopped(ask(s, "x", "over", now=20, node="n1", time_limit_ms=1)) == ["over"]
    application(s, "y", "root.b", 20)
    assert stopped(ask(s, "y", "theirs", now=21, node="n1")) == []
    check_books(s)


def test_what_is_moved_out_of_the_queue_that_a_window_is_for_is_told_to_go() -> None:
    s = cluster(nodes={"n1": 4})
    s.handle(SetWindow(WINDOW), 0)
    submit(s, "x", 1, 20, "root.b")
    assert started(s.schedule(20)) == ["x@n1"]
    assert stopped(s.handle(MoveApplication("x", "root.a"), 30)) == ["x"]
    check_books(s)


def test_what_gets_a_longer_time_limit_while_a_window_is_open_is_told_to_go() -> None:
    """When the window began its time was over; it was taken to be about to end."""
    s = cluster(nodes={"n1": 4})
    submit(s, "x", 1, time_limit_ms=5)
    s.schedule(0)
    s.handle(SetWindow(WINDOW), 0)
    assert stopped(s.schedule(10)) == []
    assert stopped(s.handle(ChangeAsk("x", "x", cores(1), 1_000), 20)) == ["x"]


@pytest.mark.parametrize("rule", RULES)
def test_what_is_reported_of_an_application_that_fails_is_told_to_go(rule: str) -> None:
    """Nobody told it to, and the application failed for as long as it ran."""
    s = cluster(nodes={"n1": 2, "n2": 4}, rule=rule)
    gang = {"placeholder_ask": cores(4), "gang_style": "Hard", "placeholder_timeout_ms": 1_000}
    application(s, "x", **gang)
    for key in ("p1", "p2"):
        ask(s, "x", key, 2, placeholder=True, task_group="t", tags={TAG_REQUIRED_NODE: "n1"})
    said = over_time(s, 0, 2_000)
    assert stopped(said) == ["p1"]
    assert stopped(ask(s, "x", "real", now=2_000, node="n2")) == ["real"]
    for key in ("p1", "real"):
        s.handle(Release("x", key, Cause.TIMEOUT), 2_001)
    assert "x" not in s.cluster.partitions["default"].applications
    check_books(s)


# -- a node set aside -----------------------------------------------------------------------------------------------


def test_what_has_a_node_set_aside_starts_when_work_has_gone_that_came_later_elsewhere_and_kept_it_off() -> None:
    """No room made it look again: its node had that already."""
    away = Constraints(anti_affinity=(AffinityTerm((Requirement("app", "In", ("web",)),), "zone"),))
    s = cluster(nodes={"n1": 4, "n2": 2})
    for node in ("n1", "n2"):
        s.handle(LabelNode(node, {"zone": "a"}, ()), 0)
    submit(s, "y", 2, tags={TAG_REQUIRED_NODE: "n1"})
    s.schedule(0)
    submit(s, "x", 4, 1, labels={"app": "web"})
    over_time(s, 1, 3_000)
    submit(s, "noisy", 1, 4_000, where=away)
    assert started(s.schedule(4_000)) == ["noisy@n2"]
    s.handle(Release("y", "y", Cause.FINISHED), 5_000)
    assert started(s.schedule(5_000)) == []
    s.handle(Release("noisy", "noisy", Cause.FINISHED), 6_000)
    assert started(s.schedule(6_000)) == ["x@n1"]


def test_a_placeholder_whose_time_is_over_is_told_to_go_when_a_window_begins() -> None:
    """It was taken to be gone; it kept its node until its gang came, or did not."""
    s = cluster(nodes={"n1": 4})
    application(s, "x", placeholder_ask=cores(8))
    ask(s, "x", "p", 2, placeholder=True, task_group="t", time_limit_ms=5)
    assert started(s.schedule(0)) == ["p@n1"]
    s.handle(SetWindow(WINDOW), 0)
    assert stopped(s.schedule(10)) == ["p"]


# -- gangs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (PORT, PORT),
        (ANYWHERE, Constraints(anti_affinity=WITH_DB.affinity)),
        (Constraints(anti_affinity=(AffinityTerm((Requirement("app", "In", ("y",)),)),)), ANYWHERE),
    ],
)
def test_what_takes_a_placeholders_place_does_not_start_beside_what_came_meanwhile_and_keeps_it_off(
    rule: str, mine: Constraints, theirs: Constraints
) -> None:
    """It did: two with one port, or with what they want no company of, ran on one node."""
    s = cluster(nodes={"n1": 4}, rule=rule)
    application(s, "g", placeholder_ask=cores(2))
    ask(s, "g", "p", 2, placeholder=True, task_group="t")
    s.schedule(0)
    ask(s, "g", "real", 2, 1, task_group="t", where=mine, labels={"app": "db"})
    assert stopped(s.schedule(1)) == ["p"]
    submit(s, "y", 1, 2, where=theirs, labels={"app": "y"})
    assert started(s.schedule(2)) == ["y@n1"]
    said = s.handle(Release("g", "p", Cause.PLACEHOLDER_REPLACED), 3)
    assert started(said + s.schedule(3)) == []
    s.handle(Release("y", "y", Cause.FINISHED), 4)
    assert started(s.schedule(4)) == ["real@n1"]
    check_books(s)
