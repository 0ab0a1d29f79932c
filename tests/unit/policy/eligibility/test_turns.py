"""Kept turns and what they hold back: never what has to come first."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import RULES, application, ask, cluster, cores, over_time, restarted, started, stopped, submit

from fairlead.core.model.events import AddAsks, AddNode, Cause, Configure, Release, ReserveAsk
from fairlead.core.model.reasons import HeldForReservation
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import AskSpec, ClusterSpec, LimitSpec, NodeSpec, QueueSpec, RetrySpec
from fairlead.scheduler import Scheduler

HOUR = 3_600_000
FOUR = {"max_resources": Limits({"vcore": 4000})}


def test_two_kept_turns_do_not_wait_for_each_other() -> None:
    """A retried ask stands first whatever its priority; its turn by itself does not hold back a higher one's."""
    s = cluster(QueueSpec(name="a", properties={"wait.max": "1m"}), QueueSpec(name="b"), nodes={"n1": 4})
    submit(s, "R", 4, 0, priority=1, retry=RetrySpec(limit=5))
    s.schedule(0)
    s.handle(Release("R", "R", Cause.INTERRUPTED), 1000)
    submit(s, "x", 4, 1000, queue="root.b", priority=9)
    s.schedule(1000)
    submit(s, "H", 2, 2000, priority=5)
    s.handle(ReserveAsk("H", "H", True), 2000)
    over_time(s, 2000, 100_000)
    s.handle(Release("x", "x", Cause.FINISHED), 100_001)
    assert started(over_time(s, 100_002, 200_000)) == ["H@n1"]
    s.handle(Release("H", "H", Cause.FINISHED), 200_001)
    assert started(over_time(s, 200_002, 300_000)) == ["R#2@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_a_turn_of_a_gangs_real_work_does_not_hold_back_its_placeholders(rule: str) -> None:
    """It waits for them, whatever their priority."""
    s = cluster(rule=rule, nodes={"n1": 1})
    submit(s, "x", 1)
    s.schedule(0)
    application(s, "g", "root.a", placeholder_ask=cores(2))
    for i in range(2):
        ask(s, "g", f"ph{i}", task_group="w", placeholder=True)
    ask(s, "g", "real0", task_group="w", priority=5)
    s.handle(ReserveAsk("g", "real0", True), 1)
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(4))), 2)
    assert started(s.schedule(10)) == ["ph0@n2", "ph1@n2"]
    check_books(s)


def sues(rule: str, most: dict[str, Any], **nodes: int) -> Scheduler:
    """Sue has a limit over all, and in `a` nothing is to wait for more than an hour."""
    bounded = QueueSpec(name="a", properties={"wait.max": "1h", "backfill": "easy"})
    return cluster(bounded, QueueSpec(name="b"), rule=rule, limits=(LimitSpec(users=("sue",), **most),), nodes=nodes)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("most", [FOUR, {"max_applications": 1}], ids=str)
def test_what_a_limit_of_its_user_holds_back_holds_no_others_back(rule: str, most: dict[str, Any]) -> None:
    """They pass it by. It starts when the limit has room."""
    s = sues(rule, most, n1=6)
    submit(s, "sue1", 4, 0, user="sue")
    s.schedule(0)
    submit(s, "sue2", 4, 1, user="sue")
    over_time(s, 1, HOUR + 2)
    submit(s, "kim", 1, HOUR + 3, user="kim")
    assert started(over_time(s, HOUR + 3, 2 * HOUR)) == ["kim@n1"]
    submit(s, "large", 6, 2 * HOUR, user="kim")
    s.handle(Release("sue1", "sue1", Cause.FINISHED), 2 * HOUR + 1)
    assert started(over_time(s, 2 * HOUR + 1, 2 * HOUR + 2)) == ["sue2@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_what_counts_under_the_same_limit_waits_for_the_turn(rule: str) -> None:
    """Sue's small work could take for ever what her large needs; idle work of hers too."""
    s = sues(rule, FOUR, n1=6)
    for key in ("sue1", "sue2"):
        submit(s, key, 2, 0, user="sue")
    over_time(s, 0, 1)
    submit(s, "large", 4, 1, user="sue")
    over_time(s, 1, HOUR + 2)
    submit(s, "next", 2, HOUR + 3, user="sue", time_limit_ms=1000)
    submit(s, "idle", 1, HOUR + 3, user="sue", idle=True)
    submit(s, "kim", 1, HOUR + 3, user="kim", idle=True)
    s.handle(Release("sue1", "sue1", Cause.FINISHED), HOUR + 4)
    assert started(over_time(s, HOUR + 4, HOUR + 5)) == ["kim@n1"]
    assert isinstance(s.why("idle", "idle"), HeldForReservation)
    s = restarted(s)
    s.handle(Release("sue2", "sue2", Cause.FINISHED), HOUR + 6)
    assert started(over_time(s, HOUR + 6, HOUR + 7)) == ["large@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_of_what_no_limit_holds_back_the_oldest_has_its_turn_too(rule: str) -> None:
    """Though what Sue's limit holds back is older."""
    s = sues(rule, FOUR, n1=6)
    for key, user, count in (("sue1", "sue", 4), ("kim1", "kim", 1), ("kim2", "kim", 1)):
        submit(s, key, count, 0, user=user)
    over_time(s, 0, 1)
    submit(s, "sue2", 4, 1, user="sue")
    submit(s, "large", 2, 2, user="kim")
    over_time(s, 2, HOUR + 2)
    submit(s, "small", 1, HOUR + 3, user="kim")
    s.handle(Release("kim1", "kim1", Cause.FINISHED), HOUR + 4)
    assert started(over_time(s, HOUR + 4, HOUR + 5)) == []
    s.handle(Release("kim2", "kim2", Cause.FINISHED), HOUR + 6)
    assert started(over_time(s, HOUR + 6, HOUR + 7)) == ["large@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_a_limit_that_fills_up_lets_others_pass_a_turn(rule: str) -> None:
    """Something of hers came back with its node: others start at once, not when the next thing happens."""
    s = sues(rule, FOUR, n1=3)
    submit(s, "sue1", 2, 0, user="sue")
    s.schedule(0)
    submit(s, "sue2", 2, 1, user="sue")
    over_time(s, 1, HOUR + 2)
    submit(s, "kim", 1, HOUR + 3, user="kim")
    assert started(over_time(s, HOUR + 3, HOUR + 4)) == []
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(2))), HOUR + 5)
    application(s, "sue3", "root.b", HOUR + 5, user="sue")
    s.handle(AddAsks((AskSpec(application="sue3", key="sue3", resources=cores(2), node="n2"),)), HOUR + 5)
    assert started(s.schedule(HOUR + 5)) == ["kim@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_of_two_turns_the_older_stays_when_its_limit_has_room(rule: str) -> None:
    """One at a time in a queue; a restart keeps them both, and changed limits neither lose nor double one."""
    s = sues(rule, FOUR, n1=6)
    for key, user, count in (("sue1", "sue", 4), ("kim1", "kim", 1), ("kim2", "kim", 1)):
        submit(s, key, count, 0, user=user)
    over_time(s, 0, 1)
    submit(s, "sue2", 4, 1, user="sue")
    submit(s, "large", 5, 2, user="kim")
    over_time(s, 2, HOUR + 2)
    s = restarted(s)
    assert _turns(s) == {"sue2": False, "large": True}
    again = (
        sues(rule, {"max_resources": Limits({"vcore": 4000}), "max_applications": 9}).cluster.partitions["default"].spec
    )
    s.handle(Configure(ClusterSpec(partitions=(again,))), HOUR + 3)
    check_books(s)
    over_time(s, HOUR + 3, HOUR + 3)
    assert _turns(s) == {"sue2": False, "large": True}
    application(s, "other", "root.b", HOUR + 4)
    s.handle(Release("sue1", "sue1", Cause.FINISHED), HOUR + 5)
    s.handle(AddAsks((AskSpec(application="other", key="other", resources=cores(4), node="n1"),)), HOUR + 5)
    s.schedule(HOUR + 5)
    assert _turns(s) == {"sue2": True}
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_what_a_limit_begins_to_hold_back_has_a_turn_of_its_own(rule: str) -> None:
    """It waited for the same as the older one, until more of its user has started. It gets its turn when its queue is
    next looked at, as after a restart: here, when more has waited too long.
    """
    s = sues(rule, FOUR, n1=6)
    submit(s, "fill", 4, 0, "root.b", priority=9)
    over_time(s, 0, 1)
    submit(s, "large", 6, 1, user="kim")
    submit(s, "sue1", 3, 2, user="sue")
    over_time(s, 2, HOUR - 1)
    submit(s, "higher", 5, HOUR - 1, priority=8, user="kim")  # Until it has started no room gathers.
    over_time(s, HOUR - 1, HOUR + 3)
    assert _turns(s) == {"large": True}
    submit(s, "sue2", 2, HOUR + 4, user="sue", priority=9)
    assert started(s.schedule(HOUR + 4)) == ["sue2@n1"]
    again = restarted(s)
    assert s.schedule(HOUR + 5) == again.schedule(HOUR + 5)
    assert over_time(s, HOUR + 6, 2 * HOUR - 1) == over_time(again, HOUR + 6, 2 * HOUR - 1)
    assert _turns(s) == _turns(again) == {"large": True, "sue1": False}
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("older", ["large", "small"])
def test_what_waits_for_what_a_limit_holds_back_holds_no_others_back(rule: str, older: str) -> None:
    """Sue's small work waits for her large, and that for her limit: no turn of its own has Kim wait for it too."""
    bounded = QueueSpec(name="a", properties={"wait.max": "1h"})
    limits = (LimitSpec(users=("sue",), **FOUR),)
    s = cluster(bounded, QueueSpec(name="b"), rule=rule, limits=limits, nodes={"n1": 8})
    submit(s, "sue1", 3, 0, "root.b", user="sue")
    submit(s, "fill", 5, 0, "root.b", priority=9)
    over_time(s, 0, 1)
    sizes = {"large": 4, "small": 1}
    for at_ms, key in enumerate(sorted(sizes, reverse=older == "small"), 2):
        submit(s, key, sizes[key], at_ms, user="sue", priority=int(key == "large"))
    over_time(s, 4, HOUR + 4)
    assert _turns(s) == {"large": False}
    submit(s, "kim", 1, HOUR + 5, user="kim")
    s.handle(Release("fill", "fill", Cause.FINISHED), HOUR + 6)
    assert started(over_time(s, HOUR + 6, HOUR + 7)) == ["kim@n1"]
    s = restarted(s)
    s.handle(Release("sue1", "sue1", Cause.FINISHED), HOUR + 8)
    assert started(over_time(s, HOUR + 8, HOUR + 9)) == ["large@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("most", [{"max_resources": Limits({"gpu": 1})}, {"max_applications": 1}], ids=str)
@pytest.mark.parametrize("filled", ["limit", "queue"])
def test_what_a_turn_keeps_is_not_lost_to_an_older_one_that_waits_for_another_limit(
    rule: str, most: dict[str, Any], filled: str
) -> None:
    """Sue's waits for her own limit. What is kept for Kim's fills one more that both are under, of their group or their
    queue: each lost its turn by it again and again.
    """
    limits = (LimitSpec(users=("sue",), **most), LimitSpec(groups=("staff",), max_applications=2))
    bounded = QueueSpec(name="a", properties={"wait.max": "1h"}, max_applications=int(filled == "queue"))
    s = cluster(bounded, QueueSpec(name="b"), rule=rule, limits=limits[: 1 + (filled == "limit")], nodes={})
    s.handle(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 4000, "gpu": 2}))), 0)
    for at_ms, (key, user, amounts, queue) in enumerate(
        [
            ("runs", "sue", {"vcore": 4000, "gpu": 1}, "root.b"),
            ("sue", "sue", {"vcore": 1000, "gpu": 1}, "root.a"),
            ("kim", "kim", {"vcore": 2000}, "root.a"),
        ]
    ):
        application(s, key, queue, at_ms, user=user, groups=("staff",))
        s.handle(AddAsks((AskSpec(application=key, key=key, resources=Resources(amounts)),)), at_ms)
        s.schedule(at_ms)
    over_time(s, 3, HOUR + 10)
    assert _turns(s) == {"sue": False, "kim": True}
    assert s.schedule(HOUR + 11) == []
    s = restarted(s)
    assert s.schedule(HOUR + 12) == []
    s.handle(Release("runs", "runs", Cause.FINISHED), HOUR + 13)
    assert len(started(over_time(s, HOUR + 13, HOUR + 14))) == 1 + (filled == "limit")
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_where_one_gave_up_its_place_the_turn_waits_for_what_is_in_the_way_then(rule: str) -> None:
    """It waits for the limit of a group from then on, under which others are not: they start in the same call."""
    limits = (
        LimitSpec(users=("sue",), max_applications=1),
        LimitSpec(groups=("staff",), max_applications=9),
        LimitSpec(groups=("*",), max_resources=Limits({"vcore": 3000})),
    )
    bounded = QueueSpec(name="a", properties={"wait.max": "1h"})
    s = cluster(bounded, QueueSpec(name="b"), rule=rule, limits=limits, nodes={"n1": 9})
    for at_ms, (key, user, group, count, priority) in enumerate(
        [
            ("kim", "kim", "x", 2, 0),
            ("has", "sue", "x", 1, 0),
            ("late", "sue", "x", 2, 5),
            ("other", "sue", "staff", 2, 0),
        ]
    ):
        application(s, key, "root.b" if key == "kim" else "root.a", at_ms, user=user, groups=(group,))
        ask(s, key, key, count, at_ms, priority=priority)
        s.schedule(at_ms)
    over_time(s, 4, HOUR + 4)
    ask(s, "has", "next", 2, HOUR + 5)
    over_time(s, HOUR + 5, HOUR + 10)
    assert _turns(s) == {"late": False}
    s.handle(Release("has", "has", Cause.FINISHED), HOUR + 11)
    assert started(s.schedule(HOUR + 11)) == ["other@n1"]
    check_books(s)


def _turns(s: Scheduler) -> dict[str, bool]:
    """Those that are kept, and whether they are of use now."""
    return {ask.key: r.limit is None for ask, r in s.cluster.partitions["default"].reserving.every()}


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_what_was_stopped_for_it_stays_its_own_when_its_turn_is_over(rule: str) -> None:
    """It has left already, and there is the first of the line, which would take it."""
    s = cluster(QueueSpec(name="a"), QueueSpec(name="b"), nodes={"n1": 2}, rule=rule)
    submit(s, "low", 2)
    s.schedule(0)
    submit(s, "high", 2, 1, queue="root.b", priority=5)
    assert stopped(s.schedule(1)) == ["low"]
    s.handle(ReserveAsk("high", "high", True), 2)
    submit(s, "equal", 2, 2, priority=5)
    s.handle(Release("low", "low", Cause.PREEMPTED_BY_SCHEDULER), 3)
    s.handle(ReserveAsk("high", "high", False), 3)
    assert started(s.schedule(3)) == ["high@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_so_it_is_where_another_turn_comes_before_its_own(rule: str) -> None:
    """The limit that was in the way of that one is not any more."""
    full = QueueSpec(
        name="a",
        max=Limits({"vcore": 4000}),
        limits=(LimitSpec(users=("sue",), max_resources=Limits({"vcore": 2000})),),
        properties={"wait.max": "1h"},
    )
    s = cluster(full, QueueSpec(name="b"), nodes={"n1": 2, "n2": 2}, rule=rule)
    submit(s, "runs", 2, user="sue", priority=1)
    s.schedule(0)
    submit(s, "other", 2, 1, priority=9)
    assert started(s.schedule(1)) == ["other@n2"]
    submit(s, "sue", 2, 2, user="sue", priority=1)
    submit(s, "next", 1, 3, priority=1)
    over_time(s, 3, HOUR + 4)
    submit(s, "strong", 1, HOUR + 5, priority=3)
    assert stopped(s.schedule(HOUR + 5)) == ["runs"]
    s.handle(Release("runs", "runs", Cause.PREEMPTED_BY_SCHEDULER), HOUR + 6)
    assert sorted(started(s.schedule(HOUR + 6))) == ["next@n1", "strong@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_room_for_a_gang_does_not_gather_where_its_own_placeholders_stand(rule: str) -> None:
    """These stay until it is whole: small work of other queues would take for ever what it needs elsewhere."""
    late = QueueSpec(name="a", properties={"wait.max": "1m"})
    s = cluster(late, QueueSpec(name="b"), nodes={"n1": 2, "n2": 3}, rule=rule)
    application(s, "g", "root.a", placeholder_ask=cores(4))
    ask(s, "g", "g0", 2, task_group="t", placeholder=True)
    assert started(s.schedule(0)) == ["g0@n1"]
    for key in ("one", "two", "three"):
        submit(s, key, 1, 1, queue="root.b")
    s.schedule(1)
    ask(s, "g", "g1", 2, 2, task_group="t", placeholder=True)
    over_time(s, 2, 60_002)
    for now, key in ((60_003, "one"), (60_004, "two")):
        submit(s, f"small{now}", 1, now, queue="root.b")
        s.handle(Release(key, key, Cause.FINISHED), now)
        s.schedule(now)
    assert [a.key for a in s.cluster.partitions["default"].nodes.nodes["n2"].allocations] == ["three", "g1"]
    check_books(s)


def test_a_turn_that_ends_takes_no_node_from_what_it_would_hold_back() -> None:
    """Sue's limit is in the way of her work no more: of two turns the older one is kept, with the node that is set
    aside for it.
    """
    s = sues("guarantee", FOUR, n1=6, n2=1)
    submit(s, "stays", 3, 0, queue="root.b")
    submit(s, "sue1", 2, 0, user="sue")
    s.schedule(0)
    submit(s, "kim", 2, 1, user="kim")
    submit(s, "sue2", 4, 2, user="sue", priority=3)
    over_time(s, 2, HOUR + 3)
    submit(s, "above", 3, HOUR + 4, queue="root.b", priority=9)
    s.handle(Release("sue1", "sue1", Cause.FINISHED), HOUR + 5)
    assert started(over_time(s, HOUR + 5, HOUR + 6)) == ["kim@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_what_a_turn_holds_back_keeps_nothing_of_its_application_from_passing_it(rule: str) -> None:
    """A retried ask stands before a higher one of its size, and waits for the turn of another, which that does not."""
    s = cluster(rule=rule, nodes={"n1": 4})
    submit(s, "x", 2, queue="root.b", priority=9)
    application(s, "w", "root.a")
    ask(s, "w", "r", priority=1, retry=RetrySpec(limit=5))
    s.schedule(0)
    s.handle(Release("w", "r", Cause.INTERRUPTED), 1000)
    submit(s, "H", 4, 1001, priority=2)
    s.handle(ReserveAsk("H", "H", True), 1001)
    ask(s, "w", "higher", now=1002, priority=3)
    assert started(over_time(s, 1002, 60_000)) == ["higher@n1"]
    check_books(s)
