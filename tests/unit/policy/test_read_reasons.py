"""Faults in what is told of work that waits: a reason that is not the cause, a start that does not come true."""

from __future__ import annotations

import pytest
from small_clusters import RULES, application, ask, cluster, cores, started, submit

from fairlead.core.model.events import Cause, Release, ReserveAsk
from fairlead.core.model.specs import QueueSpec

EASY = QueueSpec(name="a", properties={"backfill": "easy"})


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_time_limit_of_a_placeholder_frees_nothing(rule: str, is_replaced: bool) -> None:
    """Its place goes on to the work of its gang, whose own time begins only then."""
    s = cluster(nodes={"n1": 2}, rule=rule)
    application(s, "gang", placeholder_ask=cores(2))
    ask(s, "gang", "h", 2, task_group="t", placeholder=True, time_limit_ms=1_000)
    assert started(s.schedule(0)) == ["h@n1"]
    if is_replaced:
        ask(s, "gang", "real", 2, 900, task_group="t", time_limit_ms=1_000)
        s.schedule(900)
    submit(s, "late", 2, 900)
    s.schedule(900)
    assert s.expected_start_ms("late", "late") is None
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
