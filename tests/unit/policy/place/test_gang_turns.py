"""Gangs that take their room at the same time: which goes on first, and that nothing else waits for it."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books
from small_clusters import (
    RULES,
    application,
    ask,
    cluster,
    cores,
    guaranteed,
    over_time,
    restarted,
    started,
    stopped,
    submit,
)

from fairlead.core.model.events import AddNode, Cause, Release
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import TAG_REQUIRED_NODE, LimitSpec, NodeSpec, QueueSpec
from fairlead.scheduler import Scheduler


def gang(s: Scheduler, name: str, members: int, now: int = 0, *, each: int = 1, queue: str = "", **more: Any) -> None:
    """A gang of so many in a queue of its own name, with all of its placeholders."""
    application(s, name, queue or f"root.{name}", now, placeholder_ask=cores(members * each))
    for i in range(members):
        ask(s, name, f"{name}{i}", each, now, task_group="t", placeholder=True, **more)


@pytest.mark.parametrize("rule", RULES)
def test_a_gang_that_has_begun_is_whole_before_another_one_begins(rule: str) -> None:
    """By turns each would hold two of the three that it needs, and one would give its two back in the same call."""
    s, by_one = cluster(nodes={"n1": 4}, rule=rule), cluster(nodes={"n1": 4}, rule=rule)
    for each in (s, by_one):
        gang(each, "a", 3)
        gang(each, "b", 3)
    decided = s.schedule(0)
    assert (started(decided), stopped(decided)) == (["a0@n1", "a1@n1", "a2@n1", "b0@n1"], [])
    one_by_one = []
    while said := by_one.schedule(0, 1):
        one_by_one += said
        by_one = restarted(by_one)
    assert one_by_one == decided
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_of_two_that_have_begun_the_older_has_the_room_that_comes(rule: str) -> None:
    """Fair shares would give it to the younger, which holds less."""
    s = cluster(nodes={"n1": 4}, rule=rule)
    gang(s, "a", 5)
    s.schedule(0)
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(2))), 1)
    gang(s, "b", 4, 1)
    assert started(s.schedule(1)) == ["a4@n2", "b0@n2"]
    gang(s, "c", 2, 2, queue="root.a")
    s.handle(AddNode(NodeSpec(id="n3", capacity=cores(4))), 2)
    assert started(s.schedule(2)) == ["b1@n3", "b2@n3", "b3@n3", "c0@n3"]


@pytest.mark.parametrize("rule", RULES)
def test_one_of_a_higher_priority_goes_first_all_the_same(rule: str) -> None:
    """It does not wait for what stands below it."""
    s = cluster(nodes={"n1": 2}, rule=rule)
    gang(s, "a", 4)
    s.schedule(0)
    gang(s, "b", 2, 1, priority=5)
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(2))), 1)
    assert started(s.schedule(1))[:2] == ["b0@n2", "b1@n2"]


@pytest.mark.parametrize("rule", RULES)
def test_so_it_is_below_a_fence_at_which_all_count_the_same(rule: str) -> None:
    """It would stop the other's placeholders as soon as those had taken the room."""
    below = QueueSpec(name="a"), QueueSpec(name="b")
    fenced = QueueSpec(name="f", parent=True, queues=below, properties={"priority.policy": "fence"})
    s = cluster(fenced, nodes={"n1": 2}, rule=rule)
    gang(s, "a", 4, queue="root.f.a")
    s.schedule(0)
    gang(s, "b", 2, 1, queue="root.f.b", priority=5)
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(2))), 1)
    assert started(s.schedule(1))[:2] == ["b0@n2", "b1@n2"]


@pytest.mark.parametrize("rule", RULES)
def test_one_that_can_take_no_more_keeps_nobody_back(rule: str) -> None:
    """Its queue is full, or what it lacks fits on no node; nor does other work wait, whose turn is first."""
    full = QueueSpec(name="a", max=Limits({"vcore": 4000}))
    s = cluster(full, QueueSpec(name="b"), QueueSpec(name="c"), nodes={"n1": 6}, rule=rule)
    submit(s, "runs", 2, priority=1)
    gang(s, "a", 3)
    assert started(s.schedule(0)) == ["runs@n1", "a0@n1", "a1@n1"]
    gang(s, "b", 2, 1)
    gang(s, "c", 4, 1, each=3)
    assert started(s.schedule(1)) == ["b0@n1", "b1@n1"]
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(4))), 2)
    submit(s, "plain", 1, 2, "root.c")
    assert sorted(started(s.schedule(2))) == ["c0@n2", "plain@n2"]
    check_books(s)


def test_behind_what_lets_another_gang_go_on_nothing_takes_room_back_before_that_has() -> None:
    """Idle work was stopped for what stood behind, which so got the room that the other gang was to have."""
    s = cluster(nodes={"n1": 2, "n2": 3}, rule="guarantee")
    submit(s, "ends", 2, tags={TAG_REQUIRED_NODE: "n2"})
    submit(s, "idle", 1, tags={TAG_REQUIRED_NODE: "n2"}, idle=True)
    gang(s, "a", 2, each=2)
    assert sorted(started(s.schedule(0))) == ["a0@n1", "ends@n2", "idle@n2"]
    gang(s, "b", 2, 1, each=2)
    submit(s, "behind", 3, 1, "root.b")
    assert s.schedule(1) == []
    s.handle(Release("ends", "ends", Cause.FINISHED), 2)
    decided = s.schedule(2)
    assert (started(decided), stopped(decided)) == (["a1@n2"], [])
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_one_that_may_not_start_keeps_nobody_of_its_queue_back(rule: str) -> None:
    """It lets no other gang go on, whatever another one has found before it."""
    queues = (QueueSpec(name="a"), QueueSpec(name="b"), QueueSpec(name="c"))
    s = cluster(*queues, nodes={"n1": 2}, rule=rule, limits=(LimitSpec(users=("sue",), max_applications=1),))
    submit(s, "runs", 1, queue="root.b", user="sue")
    gang(s, "c", 2)
    assert started(s.schedule(0)) == ["c0@n1", "runs@n1"]
    gang(s, "a", 2, 1)
    application(s, "b", "root.b", 1, user="sue", placeholder_ask=cores(1))
    ask(s, "b", "b0", 1, 1, task_group="t", placeholder=True)
    submit(s, "plain", 1, 1, "root.b")
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(1))), 1)
    assert started(s.schedule(1)) == ["plain@n2"]


@pytest.mark.parametrize("rule", RULES)
def test_one_that_lost_what_it_had_has_not_begun(rule: str) -> None:
    """It has its place among those that may run still, and that is all."""
    s = cluster(nodes={"n1": 1}, rule=rule)
    gang(s, "b", 2)
    s.schedule(0)
    s.handle(Release("b", "b0"), 1)
    ask(s, "b", "again", 1, 1, task_group="t", placeholder=True)
    gang(s, "a", 2, 1)
    assert started(s.schedule(1)) == ["a0@n1"]


def test_what_is_within_a_guarantee_goes_first() -> None:
    """By `both`, whatever has begun."""
    s = cluster(QueueSpec(name="a"), guaranteed("b", 4), nodes={"n1": 2}, rule="both")
    gang(s, "a", 6)
    s.schedule(0)
    gang(s, "b", 2, 1)
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(2))), 1)
    assert started(s.schedule(1)) == ["b0@n2", "b1@n2"]


@pytest.mark.parametrize("rule", RULES)
def test_in_a_single_queue_its_own_order_counts(rule: str) -> None:
    """The first waits for none that came later, whatever that has; nothing weaker is placed instead."""
    s = cluster(nodes={"n1": 3}, rule=rule)
    submit(s, "runs", 2, priority=9)
    gang(s, "one", 2, queue="root.a", priority=5)
    gang(s, "two", 2, queue="root.a", priority=5)
    assert started(s.schedule(0)) == ["runs@n1", "one0@n1"]
    s.handle(Release("one", "one0"), 1)
    s.handle(Release("one", "one1"), 1)
    assert started(s.schedule(1)) == ["two0@n1"]
    ask(s, "one", "again", 1, 2, task_group="t", placeholder=True, priority=5)
    submit(s, "weaker", 1, 2, queue="root.b")
    s.handle(AddNode(NodeSpec(id="n2", capacity=cores(1))), 2)
    assert started(s.schedule(2)) == ["again@n2"]


@pytest.mark.parametrize("rule", RULES)
def test_where_each_lets_the_other_go_on_the_first_in_order_is_placed(rule: str) -> None:
    """In both queues one that has lost what it had stands before one that has begun: none waits for ever."""
    s = cluster(nodes={"n1": 4}, rule=rule)
    for name, queue in (("b", "root.a"), ("c", "root.b"), ("e", "root.a"), ("f", "root.b")):
        application(s, name, queue, placeholder_ask=cores(9))
        ask(s, name, f"{name}0", task_group="t", placeholder=True)
    assert len(started(s.schedule(0))) == 4
    for name in "bcef":
        ask(s, name, f"{name}1", 1, 1, task_group="t", placeholder=True)
    for name in "bc":
        s.handle(Release(name, f"{name}0"), 1)
    decided = s.schedule(1)
    assert (started(decided), stopped(decided)) == (["b1@n1", "e1@n1"], [])
    check_books(s)


@pytest.mark.parametrize("is_fenced", [False, True])
@pytest.mark.parametrize("rule", ["priority", "both"])
def test_nothing_weaker_passes_gangs_that_let_each_other_go_on(rule: str, is_fenced: bool) -> None:
    """One lets another go on that is behind a third in its queue, and that one lets the first go on. Behind a fence all
    count the same at the root.
    """
    queues = QueueSpec(name="a"), QueueSpec(name="b"), QueueSpec(name="c")
    fence = {"priority.policy": "fence"} if is_fenced else {}
    s = cluster(QueueSpec(name="f", parent=True, queues=queues, properties=fence), nodes={"n1": 3}, rule=rule)
    submit(s, "runs", 1, queue="root.f.c", priority=9)
    application(s, "ahead", "root.f.a", 1, placeholder_ask=cores(2))
    for name, queue in (("older", "root.f.a"), ("younger", "root.f.b")):
        gang(s, name, 2, 2, queue=queue, priority=1)
        s.handle(Release(name, f"{name}1", Cause.FINISHED), 2)
    assert started(s.schedule(2)) == ["runs@n1", "older0@n1", "younger0@n1"]
    submit(s, "weak", 1, 3, "root.f.c")
    for name in ("ahead", "older", "younger"):
        ask(s, name, f"{name}9", 1, 3, task_group="t", placeholder=True, priority=1)
    s.handle(Release("runs", "runs", Cause.FINISHED), 4)
    assert started(s.schedule(4)) == ["younger9@n1"]
    check_books(s)


@pytest.mark.parametrize("rule", RULES)
def test_one_for_which_room_has_gathered_goes_on_first(rule: str) -> None:
    """It waited too long. The other would take what its last member needs, and lack some itself."""
    late = QueueSpec(name="a", properties={"wait.max": "1m"})
    s = cluster(late, QueueSpec(name="b"), nodes={"n1": 1, "n2": 3}, rule=rule)
    submit(s, "runs", 3, queue="root.b", priority=9)
    application(s, "a", "root.a", placeholder_ask=cores(4))
    for key, count in (("first", 1), ("large", 2), ("last", 1)):
        ask(s, "a", key, count, task_group=f"of {count}", placeholder=True)
    assert started(s.schedule(0)) == ["runs@n2", "first@n1"]
    over_time(s, 1, 60_000)
    gang(s, "b", 2, 60_001)
    s.handle(Release("runs", "runs", Cause.FINISHED), 60_001)
    decided = s.schedule(60_001)
    assert (started(decided), stopped(decided)) == (["large@n2", "last@n2"], [])
    check_books(s)
