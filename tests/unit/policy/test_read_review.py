"""Faults that a reading of the mends of earlier readings found: cells that a mend left out, and two that disagreed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import RULES, application, ask, cores, on_nodes, queue_file, restarted, started, stopped

from fairlead.core.model.events import (
    Cause,
    Configure,
    Event,
    MoveApplication,
    Release,
    RemoveNode,
    ReserveAsk,
    UpdateNode,
)
from fairlead.core.model.specs import (
    TAG_FOREIGN,
    TAG_REQUIRED_NODE,
    QueueSpec,
    RuleSpec,
)
from fairlead.service.yunikorn import app_shapes

LEAVES = (QueueSpec(name="a"), QueueSpec(name="b"))
BACKOFF = {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "1h"}


# -- rest -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", [False, True])
def test_nothing_is_expected_or_shown_to_rest_where_there_is_no_backoff_any_more(moves: bool) -> None:
    """It does not rest there, since the queue file changed or it was moved: the start was expected after the rest."""
    s = on_nodes(queue_file(QueueSpec(name="a", properties=BACKOFF), QueueSpec(name="b")), n1=4, n2=4)
    application(s, "y", "root.b")
    for key in ("one", "two"):
        ask(s, "y", key, 3, time_limit_ms=10_000)
    s.schedule(0)
    application(s, "x", now=1)
    for key in ("k1", "k2"):
        ask(s, "x", key, 2, 1, allow_preempt_other=False)
    assert s.schedule(1) == []
    part = s.cluster.partitions["default"]
    assert s.expected_start_ms("x", "k1") == 3_600_001
    assert "backoffDeadline" in app_shapes.application(part.applications["x"], part, app_shapes.Why(part))
    s.handle(MoveApplication("x", "root.b") if moves else Configure(queue_file()), 2)
    assert s.schedule(2) == []
    assert s.expected_start_ms("x", "k1") == 10_000
    assert "backoffDeadline" not in app_shapes.application(part.applications["x"], part, app_shapes.Why(part))
    check_books(s)


# -- gangs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [False, True])
def test_placeholders_whose_time_is_over_before_their_gang_has_started_over_go_too(restarts: bool) -> None:
    """They came meanwhile, and something that was told to go took longer than they have: they stood there for ever."""
    s = on_nodes(queue_file(), n1=4)
    application(s, "g", placeholder_ask=cores(12), placeholder_timeout_ms=2_000)
    for i, size in enumerate((1, 1, 1, 9)):
        ask(s, "g", f"h{i}", size, placeholder=True, task_group="t")
    s.schedule(0)
    assert stopped(s.schedule(2_000)) == ["h0", "h1", "h2"]
    ask(s, "g", "new", 1, 2_001, placeholder=True, task_group="t")
    assert started(s.schedule(2_001)) == ["new@n1"]
    if restarts:
        s = restarted(s)
    assert stopped(s.schedule(4_001)) == ["new"]
    for key in ("h0", "h1", "h2", "new"):
        assert str(s.cluster.partitions["default"].applications["g"].state) == "Resuming"
        s.handle(Release("g", key, Cause.TIMEOUT), 5_000)
    assert str(s.cluster.partitions["default"].applications["g"].state) == "Accepted"
    check_books(s)


@pytest.mark.parametrize("sizes", [(1, 2), (1, 1)])
def test_a_gang_that_became_whole_while_it_started_over_runs(sizes: tuple[int, int]) -> None:
    """As one does that becomes whole later: it lost all of it again."""
    s = on_nodes(queue_file(), n1=4)
    application(s, "g", placeholder_ask=cores(3), placeholder_timeout_ms=2_000)
    for i, size in enumerate((1, 9)):
        ask(s, "g", f"h{i}", size, placeholder=True, task_group="t")
    s.schedule(0)
    assert stopped(s.schedule(2_000)) == ["h0"]
    for i, size in enumerate(sizes):
        ask(s, "g", f"new{i}", size, 2_001, placeholder=True, task_group="t")
    assert len(started(s.schedule(2_001))) == 2
    s.handle(Release("g", "h0", Cause.TIMEOUT), 2_002)
    is_whole = sum(sizes) == 3
    assert str(s.cluster.partitions["default"].applications["g"].state) == ("Running" if is_whole else "Accepted")
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_what_is_under_way_to_a_node_that_becomes_too_small_for_it_waits_again(rule: str) -> None:
    """As what is nominated there, and as on a drained node: it started there, on more than the node had."""
    s = on_nodes(queue_file(rule=rule), n1=2, n2=4)
    application(s, "g")
    of_gang: dict[str, Any] = {"task_group": "t"}
    ask(s, "g", "p", 2, placeholder=True, tags={TAG_REQUIRED_NODE: "n1"}, **of_gang)
    assert started(s.schedule(0)) == ["p@n1"]
    ask(s, "g", "real", 2, 1, tags={TAG_REQUIRED_NODE: "n2"}, **of_gang)
    assert stopped(s.schedule(1)) == ["p"]
    s.handle(UpdateNode("n2", cores(3)), 2)
    assert s.cluster.partitions["default"].nodes.nodes["n2"].held
    s.handle(UpdateNode("n2", cores(1)), 3)
    said = s.schedule(3)
    said += s.handle(Release("g", "p", Cause.PLACEHOLDER_REPLACED), 4)
    assert started([*said, *s.schedule(4)]) == []
    check_books(s)
    s.handle(UpdateNode("n2", cores(2)), 5)
    assert started(s.schedule(5)) == ["real@n2"]


@pytest.mark.parametrize("end", [Release("g", "p", Cause.PLACEHOLDER_REPLACED), RemoveNode("n1")])
@pytest.mark.parametrize("grows", [False, True])
def test_what_is_under_way_to_another_node_starts_there_only_where_it_still_has_room(grows: bool, end: Event) -> None:
    """Other schedulers know nothing of room that is kept. It started on more than the node had."""
    s = on_nodes(queue_file(), n1=2, n2=4)
    application(s, "y", "root.b")
    ask(s, "y", "runs", 1, node="n2")
    application(s, "g")
    ask(s, "g", "p", 2, placeholder=True, task_group="t", tags={TAG_REQUIRED_NODE: "n1"})
    assert started(s.schedule(0)) == ["p@n1"]
    ask(s, "g", "real", 2, 1, task_group="t", tags={TAG_REQUIRED_NODE: "n2"})
    assert stopped(s.schedule(1)) == ["p"]
    if grows:
        ask(s, "y", "runs", 3, 2)
    else:
        ask(s, "", "theirs", 2, 2, node="n2", tags={TAG_FOREIGN: "default"})
    said = s.schedule(2)
    said += s.handle(end, 3)
    assert started([*said, *s.schedule(3)]) == []
    check_books(s)
    s.handle(Release("y", "runs", Cause.FINISHED), 4)
    assert started(s.schedule(4)) == ["real@n2"]


# -- guarantees -----------------------------------------------------------------------------------------------------


def namespace(what: str, count: int) -> dict[str, str]:
    """The tag of a namespace that has a `quota` of, or is `guaranteed`, so many cores."""
    return {f"namespace.resource{what}": json.dumps({"resources": {"vcore": {"value": count * 1000}}})}


@pytest.mark.parametrize("takes_away", [False, True])
def test_what_started_within_a_guarantee_that_tags_took_away_is_not_spared_for_it(takes_away: bool) -> None:
    """As where a new queue file or a move takes it away. A smaller one is one still."""
    any_queue = (RuleSpec(name="provided", create=True),)
    s = on_nodes(queue_file(QueueSpec(name="rest"), rule="both", rules=any_queue), n1=2)
    application(s, "first", "root.rest")
    ask(s, "first", "first", 2, priority=5)
    s.schedule(0)
    application(s, "high", "root.rest", 1)
    ask(s, "high", "high", 2, 1, priority=5)
    application(s, "low", "root.lab", 1, user="u", tags=namespace("guaranteed", 2))
    ask(s, "low", "low", 2, 1)
    s.schedule(1)
    s.handle(Release("first", "first", Cause.PREEMPTED_BY_SCHEDULER), 2)
    assert started(s.schedule(2)) == ["low@n1"]
    tags = namespace("quota", 9) if takes_away else namespace("guaranteed", 1)
    application(s, "more", "root.lab", 3, user="u", tags=tags)
    assert stopped(s.schedule(3)) == (["low"] if takes_away else [])
    check_books(s)


# -- turns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_what_waits_for_a_turn_gives_up_its_place_as_soon_as_that_turn_needs_it(rule: str) -> None:
    """Also when other work took the last place within the same call: it did so after the next event, or a restart."""
    group = QueueSpec(name="p", parent=True, max_applications=2, queues=LEAVES)
    s = on_nodes(queue_file(group, QueueSpec(name="c"), rule=rule), n1=4, n2=1)
    application(s, "big", "root.c")
    ask(s, "big", "big", 3, node="n1")
    application(s, "x", "root.p.a")
    ask(s, "x", "x0")
    assert len(started(s.schedule(0))) == 1
    application(s, "turn", "root.p.a", 1)
    ask(s, "turn", "turn", 4, 1, priority=1, allow_preempt_other=False)
    s.handle(ReserveAsk("turn", "turn", True, "ann"), 1)
    ask(s, "x", "x1", 1, 2)
    s.handle(Release("x", "x0", Cause.FINISHED), 3)
    assert started(s.schedule(3)) == []
    application(s, "z", "root.p.b", 4)
    ask(s, "z", "z", 1, 4)
    assert len(started(s.schedule(4))) == 1
    assert str(s.cluster.partitions["default"].applications["x"].state) == "Accepted"
    assert restarted(s).schedule(4) == s.schedule(4) == []
    check_books(s)
