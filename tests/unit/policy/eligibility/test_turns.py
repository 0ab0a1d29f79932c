"""Kept turns and what they hold back: never what has to come first."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import RULES, application, ask, cluster, cores, over_time, started, submit

from fairlead.core.model.events import AddNode, Cause, Release, ReserveAsk
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import LimitSpec, NodeSpec, QueueSpec, RetrySpec

HOUR = 3_600_000


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


@pytest.mark.xfail(
    reason="a turn by itself asks no limits of users: its leaf has to be looked at again when they have room"
)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("most", [{"max_resources": Limits({"vcore": 4000})}, {"max_applications": 1}], ids=str)
def test_what_the_limit_of_its_own_user_holds_back_gets_no_turn(rule: str, most: dict[str, Any]) -> None:
    """Work that would exceed a limit waits; others pass it by. It gets its turn when the limit has room."""
    limit = LimitSpec(users=("sue",), **most)
    queue = QueueSpec(name="a", properties={"wait.max": "1h"})
    s = cluster(queue, rule=rule, limits=(limit,), nodes={"n1": 6})
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
