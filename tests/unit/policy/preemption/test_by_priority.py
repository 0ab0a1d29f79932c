"""Preemption by priority: the fewest, lowest victims on one node, paid for by one placement, with the space held."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from invariants.books import check_books
from priority_clusters import PriorityCluster, cores

from fairlead.core.books.asks import Ask
from fairlead.core.model.decisions import Allocated, Evict, LoopBroken, Reserved
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Configure, DrainNode, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_FOREIGN,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.policy.preemption import by_priority
from fairlead.scheduler import Scheduler


def cluster(*queues: QueueSpec, nodes: dict[str, int] | None = None, rule: str = "priority") -> Scheduler:
    """A cluster with these leaves (default: a and b) and nodes of so many whole cores."""
    leaves = queues or (QueueSpec(name="a"), QueueSpec(name="b"))
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=leaves)
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root, preemption=PreemptionSpec(rule=rule)),)))
    for name, count in (nodes or {"n1": 4}).items():
        s.handle(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": count * 1000}))), 0)
    return s


def submit(
    s: Scheduler, key: str, cores: int, priority: int = 0, queue: str = "root.a", now: int = 0, **more: Any
) -> None:
    """One application with one ask of the same name."""
    s.handle(AddApplication(ApplicationSpec(id=key, queue=queue)), now)
    ask = AskSpec(application=key, key=key, resources=Resources({"vcore": cores * 1000}), priority=priority, **more)
    s.handle(AddAsks((ask,)), now)


def run(s: Scheduler, now: int = 0) -> tuple[list[str], list[str]]:
    """Who starts (`key@node`) and who is told to stop."""
    decided = s.schedule(now)
    check_books(s)
    return (
        [f"{d.key}@{d.node}" for d in decided if isinstance(d, Allocated)],
        [d.key for d in decided if isinstance(d, Evict)],
    )


def gone(s: Scheduler, key: str, now: int) -> None:
    """The victim has stopped."""
    s.handle(Release(key, key, Cause.PREEMPTED_BY_SCHEDULER), now)
    check_books(s)


def test_only_as_many_as_needed_are_stopped_and_the_lowest_first() -> None:
    """Of three that could go, the one of the lowest priority is enough."""
    s = cluster()
    for key, priority in (("mid", 5), ("low", 1), ("high", 7)):
        submit(s, key, 1, priority)
    submit(s, "other", 1, 6)
    assert run(s)[1] == []
    submit(s, "urgent", 1, 9, now=1)
    assert run(s, 1) == ([], ["low"])


def test_the_preemptor_runs_when_its_victim_is_gone_and_not_before() -> None:
    """The space is held meanwhile: a small one that came later must not take it."""
    s = cluster()
    submit(s, "low", 4, 1)
    run(s)
    submit(s, "urgent", 3, 9, now=1)
    assert run(s, 1) == ([], ["low"])
    submit(s, "small", 2, 8, now=2)
    assert run(s, 2) == ([], [])
    gone(s, "low", 3)
    assert run(s, 3) == (["urgent@n1"], [])
    reason = s.why("small", "small")
    assert reason is not None
    assert reason.code == "cluster-full"


def test_equal_priority_is_never_stopped() -> None:
    """Strictly lower only."""
    s = cluster()
    submit(s, "first", 4, 5)
    run(s)
    submit(s, "second", 1, 5, now=1)
    assert run(s, 1) == ([], [])


def test_nobody_is_stopped_when_it_would_not_be_enough() -> None:
    """All or nothing: the low one alone does not make room for four cores."""
    s = cluster()
    submit(s, "low", 2, 1)
    submit(s, "high", 2, 10)
    run(s)
    submit(s, "urgent", 4, 9, now=1)
    assert run(s, 1) == ([], [])


def test_the_node_with_the_lowest_highest_victim_is_taken() -> None:
    """Four small ones of priority 1 rather than a large one of priority 3."""
    s = cluster(nodes={"n1": 4, "n2": 4})
    submit(s, "large", 4, 3)
    run(s)
    for i in range(4):
        submit(s, f"small{i}", 1, 1, now=1)
    run(s, 1)
    submit(s, "urgent", 4, 9, now=2)
    assert run(s, 2) == ([], ["small3", "small2", "small1", "small0"])


def test_an_offset_counts_across_queues_and_not_within_one() -> None:
    """In its own queue a priority is compared as it is; elsewhere after the queues' offsets."""
    s = cluster(QueueSpec(name="a", properties={"priority.offset": "100"}), QueueSpec(name="b"))
    submit(s, "a5", 2, 5, "root.a")
    submit(s, "b50", 2, 50, "root.b")
    run(s)
    submit(s, "a4", 2, 4, "root.a", now=1)
    assert run(s, 1) == ([], ["b50"])


def test_a_fenced_queue_lends_its_work_the_fence_and_no_more() -> None:
    """Work behind a priority fence counts as the fence's offset, however high its own priority."""
    fence = {"priority.policy": "fence", "priority.offset": "2"}
    s = cluster(QueueSpec(name="a"), QueueSpec(name="b", properties=fence))
    submit(s, "proud", 4, 1000, "root.b")
    run(s)
    submit(s, "plain", 4, 3, "root.a", now=1)
    assert run(s, 1) == ([], ["proud"])


def test_inside_a_fence_the_stronger_stops_the_weaker_though_both_count_the_same_outside() -> None:
    leaves = (QueueSpec(name="x"), QueueSpec(name="y"))
    s = cluster(QueueSpec(name="b", parent=True, properties={"priority.policy": "fence"}, queues=leaves))
    submit(s, "low", 4, 1, "root.b.x")
    run(s)
    submit(s, "high", 4, 5, "root.b.y", now=1)
    assert run(s, 1) == ([], ["low"])


def test_where_an_offset_leaves_no_higher_number_the_stronger_still_stops_the_weaker() -> None:
    """A queue reports at most 2^31 - 1, for both of them."""
    s = cluster(QueueSpec(name="a", properties={"priority.offset": "1000000000"}), QueueSpec(name="b"))
    submit(s, "low", 4, 1_500_000_000)
    run(s)
    submit(s, "high", 4, 2_000_000_000, now=1)
    assert run(s, 1) == ([], ["low"])


def test_a_preemption_fence_keeps_the_preemptor_inside() -> None:
    """With `preemption.policy: fence` only work below the fence may go."""
    s = cluster(QueueSpec(name="a", properties={"preemption.policy": "fence"}), QueueSpec(name="b"))
    submit(s, "other", 4, 1, "root.b")
    run(s)
    submit(s, "urgent", 4, 9, "root.a", now=1)
    assert run(s, 1) == ([], [])


def test_work_in_a_queue_that_disables_preemption_stays() -> None:
    """`preemption.policy: disabled` protects what runs there."""
    s = cluster(QueueSpec(name="a"), QueueSpec(name="b", properties={"preemption.policy": "disabled"}))
    submit(s, "safe", 4, 1, "root.b")
    run(s)
    submit(s, "urgent", 4, 9, "root.a", now=1)
    assert run(s, 1) == ([], [])


def test_an_ask_that_must_not_preempt_waits() -> None:
    """`allow_preempt_other` false: ahead in line, but nobody is stopped for it."""
    s = cluster()
    submit(s, "low", 4, 1)
    run(s)
    submit(s, "polite", 4, 9, now=1, allow_preempt_other=False)
    assert run(s, 1) == ([], [])


def test_room_in_the_own_queue_is_made_too() -> None:
    """The queue is at its maximum while the node has room: a lower one of the same queue goes."""
    s = cluster(QueueSpec(name="a", max=Limits({"vcore": 2000})), nodes={"n1": 8})
    submit(s, "low", 2, 1)
    run(s)
    submit(s, "urgent", 2, 9, now=1)
    assert run(s, 1) == ([], ["low"])
    gone(s, "low", 2)
    assert run(s, 2) == (["urgent@n1"], [])


def test_room_that_appears_elsewhere_is_taken_at_once_and_the_hold_ends() -> None:
    """A nominated ask may run on another node first; nobody else is told to stop for it."""
    s = cluster()
    submit(s, "low", 4, 1)
    run(s)
    submit(s, "urgent", 4, 9, now=1)
    decided = s.schedule(1)
    assert any(isinstance(d, Reserved) and d.node == "n1" for d in decided)
    s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 4000}))), 2)
    assert run(s, 2) == (["urgent@n2"], [])
    gone(s, "low", 3)
    submit(s, "next", 4, 0, now=4)
    assert run(s, 4) == (["next@n1"], [])


def test_a_victim_is_stopped_once_only() -> None:
    """While it is on its way out neither its own preemptor nor another one stops anything again for the same space."""
    s = cluster()
    submit(s, "low", 4, 1)
    run(s)
    submit(s, "urgent", 2, 9, now=1)
    assert run(s, 1) == ([], ["low"])
    submit(s, "second", 2, 8, now=2)
    for now in (2, 3, 4):
        assert run(s, now) == ([], [])
    gone(s, "low", 5)
    assert run(s, 5) == (["urgent@n1", "second@n1"], [])


def test_a_drained_node_is_no_place_to_make_room_on() -> None:
    """Draining it also ends a hold on it: the next plan is for another node."""
    s = cluster(nodes={"n1": 4, "n2": 4})
    submit(s, "two", 4, 2)
    submit(s, "one", 4, 1)
    assert run(s)[0] == ["two@n1", "one@n2"]
    submit(s, "urgent", 4, 9, now=1)
    assert run(s, 1) == ([], ["one"])
    s.handle(DrainNode("n2"), 2)
    assert run(s, 2) == ([], ["two"])


def test_without_the_rule_nobody_is_stopped() -> None:
    """YuniKorn's default never preempts by priority alone."""
    s = cluster(rule="guarantee")
    submit(s, "low", 4, 1)
    run(s)
    submit(s, "urgent", 4, 9, now=1)
    assert run(s, 1) == ([], [])


def test_many_that_cannot_be_helped_do_not_use_up_the_turn_of_one_that_can() -> None:
    """Twenty asks of different sizes, each too large for what may be stopped, stand before a small one."""
    s = cluster(nodes={"n1": 64})
    submit(s, "safe", 60, 100)
    submit(s, "low", 4, 1)
    run(s)
    for i in range(20):
        submit(s, f"large{i}", 10 + i, 50, now=1)
    submit(s, "small", 2, 40, now=2)
    assert run(s, 2) == ([], ["low"])


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_loops_are_reported_in_the_same_order_after_a_restart(rule: str) -> None:
    """The later leaf's ask came first: lines that are made anew know them the other way round."""
    s = cluster(nodes={"n1": 1}, rule=rule)
    submit(s, "low", 1, 0, "root.b")
    run(s)
    submit(s, "first", 1, 5, "root.b")
    submit(s, "second", 1, 5, "root.a")
    part = s.cluster.partitions["default"]
    for key in ("first", "second"):
        part.disruption.note(part.applications[key].asks[key], part.applications["low"].asks["low"], 0)
    again = Scheduler.load(s.dump())
    reported = s.schedule(1)
    assert [d.key for d in reported if isinstance(d, LoopBroken)] == ["first", "second"]
    assert again.schedule(1) == reported


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_what_waits_for_the_turn_of_its_equal_stops_nothing_before_it(rule: str) -> None:
    """Work was stopped in vain for the first, so that no more is: the second would have the same work stopped. No room
    gathers while something higher waits in the queue.
    """
    c = PriorityCluster(QueueSpec(name="a", properties={"wait.max": "1s"}), QueueSpec(name="b"), rule=rule)
    c.fill("low", 1, 0, "root.b")
    c.submit("huge", 40, 9, "root.a")
    c.handle(AddApplication(ApplicationSpec(id="app", queue="root.a")))
    size = Resources({"vcore": 4000})
    for key in ("first", "second"):
        c.handle(AddAsks((AskSpec(application="app", key=key, resources=size, priority=5),)))
    part = c.s.cluster.partitions["default"]
    asks = part.applications["app"].asks
    part.disruption.note(asks["first"], part.applications["low"].asks["low"], 0)
    assert c.run(2_000) == ([], [])
    assert [ask.key for ask, _ in part.reserving.every()] == ["first"]
    c.handle(AddAsks((AskSpec(application="app", key="third", resources=size, priority=5),)))
    assert c.run() == ([], ["low"])
    assert c.evictions()[-1].on_behalf_of == "app/first", "something came, so that it may try again"


def test_a_new_queue_file_tells_apart_what_stood_for_each_other() -> None:
    """Two asks of one shape in two queues that were alike; with an offset the second one may stop what runs."""
    c = PriorityCluster()
    c.fill("low", 4, 0, "root.a")
    c.submit("one", 4, 0, "root.a")
    c.submit("two", 4, 0, "root.b")
    assert c.run() == ([], [])
    root = c.spec.partitions[0].root
    b = QueueSpec(name="b", properties={"priority.offset": "5"})
    part = replace(c.spec.partitions[0], root=replace(root, queues=(QueueSpec(name="a"), b)))
    c.handle(Configure(replace(c.spec, partitions=(part,), checksum="new")))
    assert c.run() == ([], ["low"])
    assert c.nominated() == {"two": "n1"}


@pytest.mark.plain
def test_of_many_equal_asks_only_the_first_has_its_place_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each evicts in its turn; those behind it are looked at when theirs has come."""
    s = cluster(nodes={"n1": 4})
    submit(s, "low", 4)
    s.schedule(0)
    s.handle(AddApplication(ApplicationSpec(id="many", queue="root.b")), 1)
    size = Resources({"vcore": 2000})
    s.handle(AddAsks(tuple(AskSpec(application="many", key=f"k{i}", resources=size, priority=5) for i in range(50))), 1)
    looks: list[Ask] = []
    path_of = by_priority.path_of
    monkeypatch.setattr(by_priority, "path_of", lambda ask: looks.append(ask) or path_of(ask))
    decided = s.schedule(2)
    assert [d.key for d in decided if isinstance(d, Evict)] == ["low"]
    assert len(looks) < 15  # More than 100, if those of all were.


def test_behind_an_ask_that_is_barred_its_like_has_its_turn() -> None:
    """In one batch with it: twice work was stopped for the first, and another scheduler took the room each time."""
    c = PriorityCluster(nodes={"n1": 6})
    for i in range(6):
        c.fill(f"low{i}", 1)
    c.handle(AddApplication(ApplicationSpec(id="many", queue="root.b")))
    size, tags = Resources({"vcore": 1000}), {TAG_FOREIGN: "default"}
    c.handle(AddAsks((AskSpec(application="many", key="barred", resources=size, priority=9),)))
    for i in range(2):
        (stopped,) = c.run()[1]
        c.gone(stopped)
        c.handle(AddAsks((AskSpec(application="", key=f"theirs{i}", resources=size, tags=tags, node="n1"),)))
    assert c.run() == ([], [])
    assert [loop.key for loop in c.loops()] == ["barred"]
    c.handle(AddAsks((AskSpec(application="many", key="like", resources=size, priority=9),)))
    assert len(c.run()[1]) == 1
    assert c.nominated() == {"like": "n1"}


@pytest.mark.plain
@pytest.mark.parametrize("rule", ["priority", "both"])
def test_once_room_can_be_made_for_one_ask_no_weaker_one_is_searched_for(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However old that is, and though their queues are not alike: each was, in every turn."""
    own = Limits({"vcore": 8000})
    c = PriorityCluster(QueueSpec(name="a", max=own), QueueSpec(name="b", max=own), nodes={"n1": 2, "n2": 2}, rule=rule)
    c.fill("low1", 2)
    c.fill("low2", 2)
    c.submit("weak", 2, 3, "root.a")
    c.submit("strong", 2, 5, "root.b")
    looks: list[str] = []
    search = by_priority.Search
    monkeypatch.setattr(
        by_priority, "Search", lambda part, ask, *more: looks.append(ask.key) or search(part, ask, *more)
    )
    assert sorted(c.run()[1]) == ["low1", "low2"]
    assert looks == ["strong", "weak"]


@pytest.mark.plain
def test_what_comes_after_one_that_room_can_be_made_for_is_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal asks of queues that are not alike: those of leaves with guarantees were all searched for, each time."""
    leaves = [QueueSpec(name=f"l{n}", guaranteed=Limits({"vcore": 2000})) for n in range(8)]
    c = PriorityCluster(QueueSpec(name="a"), *leaves, nodes={f"n{n}": 2 for n in range(8)}, rule="both")
    for n in range(8):
        c.fill(f"low{n}", 2)
    for n in range(8):
        c.submit(f"own{n}", 2, 0, f"root.l{n}")
    looks: list[str] = []
    search = by_priority.Search
    monkeypatch.setattr(
        by_priority, "Search", lambda part, ask, *more: looks.append(ask.key) or search(part, ask, *more)
    )
    assert len(c.run()[1]) == 8
    assert looks == [f"own{n}" for n in range(8)]


GROUP = {"resource.group": "true"}


@pytest.mark.parametrize("order", ["dc", "cd", "c"])
@pytest.mark.parametrize("rule", ["priority", "both"])
def test_a_guaranteed_queue_is_not_like_its_sibling_for_idle_work(rule: str, order: str) -> None:
    """It gets from idle work what it is promised; that nothing is found for a sibling says nothing of that."""
    lab = QueueSpec(name="lab", parent=True, properties=GROUP, queues=(QueueSpec(name="a"),))
    own = QueueSpec(name="c", guaranteed=Limits({"vcore": 4000}))
    clinic = QueueSpec(name="clinic", parent=True, properties=GROUP, queues=(own, QueueSpec(name="d")))
    c = PriorityCluster(lab, clinic, nodes={"n1": 4}, rule=rule)
    c.fill("i", 4, 9, queue="root.lab.a", idle=True)
    for key in order:
        c.submit(key, 3, 0, queue=f"root.clinic.{key}")
    assert c.run() == ([], ["i"])


@pytest.mark.parametrize(("priority", "named"), [(0, "guarantee"), (1, "priority")])
def test_a_stop_names_the_guarantee_where_the_priority_is_not_higher(priority: int, named: str) -> None:
    """Else who is stopped reads of a higher priority that nothing has."""
    owed = QueueSpec(name="a", guaranteed=Limits({"vcore": 2_000}))
    c = PriorityCluster(owed, QueueSpec(name="b"), nodes={"n1": 2}, rule="both")
    c.fill("runs", 2, 0, "root.b")
    c.submit("mine", 2, priority)
    c.run()
    (stop,) = c.evictions()
    assert (stop.key, stop.rule) == ("runs", named)
    assert ("within its guarantee" in stop.message) == (named == "guarantee")


def test_what_came_after_work_that_started_within_a_guarantee_may_have_it_stopped_where_its_like_may_not() -> None:
    """The older one waited when that work started, and is spared; nothing weaker takes the room meanwhile."""
    c = PriorityCluster(
        QueueSpec(name="a", guaranteed=cores(5)),
        QueueSpec(name="b"),
        QueueSpec(name="c", guaranteed=cores(2)),
        rule="both",
        nodes={"n1": 5},
    )
    c.fill("other", 2, 0, "root.c")
    c.submit("older", 4, 9)
    c.run()
    c.fill("low", 2, 1)
    c.finished("other")
    c.submit("younger", 4, 9)
    c.submit("lowest", 1, 0, "root.b")
    assert c.run() == ([], ["low"])
    assert c.nominated()["younger"] == "n1"
    c.gone("low")
    assert "younger@n1" in c.run()[0]
