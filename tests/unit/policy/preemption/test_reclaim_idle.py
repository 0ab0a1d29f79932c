"""Idle work before a queue that is below its guarantee: it goes first, in whichever group it borrows."""

from __future__ import annotations

from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores, on

from fairlead.core.books.asks import Ask, Batch
from fairlead.core.books.eviction_history import HOUR_MS
from fairlead.core.books.partition import Partition
from fairlead.core.model.constraints import Constraints
from fairlead.core.model.decisions import Decision, Evict, LoopBroken, Reserved
from fairlead.core.model.events import AddApplication, AddAsks, Cause, DrainNode, Release, ReserveAsk
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec
from fairlead.policy.preemption import reclaim_idle
from fairlead.policy.preemption.reclaim_idle import is_tried, note_tried
from fairlead.scheduler import Scheduler

GROUP = {"resource.group": "true"}
FOUR = cores(4)
AT_ONCE = {"preemption.delay": "1s"}
PORT = Constraints(ports=("TCP/0.0.0.0/8080",))
RULES = pytest.mark.parametrize("rule", ["priority", "guarantee"])


def two_groups(rule: str, mine: Limits = FOUR, enabled: bool = True, **of_g: str) -> PriorityCluster:
    """`root.g.a` and `root.h.b` are in groups of their own; `root.h.b` is promised 4 cores; 4 cores on n1."""
    a = QueueSpec(name="a", properties={key.replace("_", "."): value for key, value in of_g.items()})
    b = QueueSpec(name="b", guaranteed=mine, properties=AT_ONCE)
    g = QueueSpec(name="g", parent=True, queues=(a, QueueSpec(name="other")), properties=GROUP)
    h = QueueSpec(name="h", parent=True, queues=(b,), properties=GROUP)
    return PriorityCluster(g, h, rule=rule, enabled=enabled)


def stopped(c: PriorityCluster) -> list[tuple[str, str]]:
    return [(e.key, e.rule) for e in c.evictions()]


def idle(c: PriorityCluster, key: str, size: int, priority: int = 9, **more: Any) -> None:
    c.fill(key, size, priority, "root.g.a", idle=True, **more)


def test_idle_work_goes_before_work_that_is_not_idle() -> None:
    """By guarantee, where both are needed on one node and neither alone is enough: both; else the idle work alone."""
    c = two_groups("guarantee")
    c.node("n2", 4)
    c.fill("borrowed", 4, 0, "root.g.other")
    idle(c, "small", 2)
    c.fill("rest", 2, 0, "root.g.other")
    c.submit("mine", 4, 0, "root.h.b")
    c.run(2_000)
    assert stopped(c) == [("borrowed", "guarantee")], "one on n1 rather than two on n2"
    c = two_groups("guarantee")
    idle(c, "small", 2)
    c.fill("rest", 2, 0, "root.g.other")
    c.submit("mine", 4, 0, "root.h.b")
    assert sorted(c.run(2_000)[1]) == ["rest", "small"]


def test_idle_work_that_is_not_needed_is_not_stopped() -> None:
    """Beside work that is not idle and has to go anyway."""
    c = two_groups("guarantee")
    idle(c, "needless", 1)
    c.fill("borrowed", 3, 0, "root.g.other")
    c.submit("mine", 3, 0, "root.h.b")
    c.run(2_000)
    assert stopped(c) == [("borrowed", "guarantee")]


def test_nobody_else_is_stopped_while_idle_work_makes_room() -> None:
    """Preemption by guarantee does not come on top of it, however long the idle work takes to stop."""
    c = two_groups("guarantee")
    c.node("n2", 4)
    idle(c, "borrows", 4)
    c.fill("borrowed", 4, 0, "root.g.other")
    c.submit("mine", 4, 0, "root.h.b")
    assert c.run() == ([], ["borrows"])
    for _ in range(50):
        assert c.run(1_000) == ([], [])
    assert len(c.evictions()) == 1


def test_idle_work_of_the_same_group_does_not_count_as_use_of_its_guarantee() -> None:
    """It is nobody's guarantee: whoever is promised the room gets it."""
    inner = (QueueSpec(name="a"), QueueSpec(name="b"))
    g = QueueSpec(name="g", parent=True, queues=inner, guaranteed=cores(4), properties=GROUP | AT_ONCE)
    h = QueueSpec(name="h", parent=True, queues=(QueueSpec(name="c"),), properties=GROUP)
    c = PriorityCluster(g, h, nodes={"n1": 4, "n2": 4}, rule="guarantee")
    c.fill("inside", 4, 0, "root.g.a", idle=True)
    c.fill("outside", 4, 0, "root.h.c", idle=True)
    c.submit("one", 2, 0, "root.g.b")
    c.submit("two", 2, 0, "root.g.b")
    c.run()
    assert stopped(c) == [("inside", "reclaim")]
    c.handle(Release("inside", "inside", Cause.PREEMPTED_BY_SCHEDULER))
    assert sorted(c.run()[0]) == ["one@n1", "two@n1"]


def test_a_count_of_what_made_room_is_never_taken_for_one_of_all_changes() -> None:
    """Where guarantees count, nothing could be stopped at the fifth change. Where they do not, that says nothing of the
    fifth change that made room.
    """
    c = PriorityCluster(rule="both")
    c.fill("runs", 4, 0)
    c.submit("waits", 4, 0)
    c.run()
    part = c.s.cluster.partitions["default"]
    demand = part.applications["waits"].asks["waits"].batch.demand  # type: ignore[union-attr]
    part.root.owes, part.books_version, part.tightened = True, 5, 0
    note_tried(part, [demand])
    assert is_tried(part, demand)
    part.root.owes, part.books_version, part.tightened = False, 7, 2
    assert part.room_stamp == 5
    assert not is_tried(part, demand)


def test_it_moves_on_twice_and_then_after_an_hour() -> None:
    """Idle work that was told to stop does not leave: other work is, which is counted, reported, then barred."""
    c = PriorityCluster(nodes={f"n{number}": 4 for number in range(4)})
    for number in range(4):
        c.fill(f"i{number}", 4, idle=True)
    c.submit("big", 4, 1)
    c.run()
    said: list[tuple[int, Decision]] = []
    while (due_ms := c.s.next_wakeup_ms()) is not None and due_ms < 3 * HOUR_MS:
        before = len(c.decided)
        c.run(due_ms - c.now_ms)
        said += [(c.now_ms, each) for each in c.decided[before:]]
    times = [at_ms for at_ms, each in said if isinstance(each, Evict)]
    told = [(at_ms, each.times) for at_ms, each in said if isinstance(each, LoopBroken)]
    assert (len(times), told) == (3, [(times[1], 2)])
    assert times[2] == times[1] + HOUR_MS


@RULES
def test_work_that_is_spared_is_told_in_the_same_order_after_a_restart(rule: str) -> None:
    """By age, whatever started first."""
    c = two_groups(rule)
    idle(c, "blocks", 3)
    c.submit("older", 2, 9, "root.g.a", idle=True)
    idle(c, "younger", 1)
    c.finished("blocks")
    assert c.run()[0] == ["older@n1"]
    c.submit("mine", 4, 0, "root.h.b")
    part = c.s.cluster.partitions["default"]
    for victim in ("older", "younger"):
        part.disruption.note(part.applications["mine"].asks["mine"], part.applications[victim].asks[victim], c.now_ms)
    again = Scheduler.load(c.s.dump())
    decided = c.s.schedule(c.now_ms + 1_000)
    assert [each.victim for each in decided if isinstance(each, LoopBroken)] == ["older/older", "younger/younger"]
    assert again.schedule(c.now_ms + 1_000) == decided


@pytest.mark.parametrize("daemon", [True, False])
def test_an_ask_with_room_claims_none_that_idle_work_leaves(daemon: bool) -> None:
    """Its turn is kept, and idle work leaves that node; but it can start as things are. A claim would be withdrawn
    for the one that requires the node and comes before it, and made again, for ever.
    """
    c = PriorityCluster(rule="guarantee")
    c.fill("idle", 2, queue="root.b", idle=True)
    c.fill("other", 2)
    c.submit("first", 2)
    assert c.run() == ([], ["idle"])
    c.handle(Release("first", "first"))
    c.finished("other")
    c.submit("mine", 2)
    c.handle(ReserveAsk("mine", "mine", True, "ann"))
    if daemon:
        c.submit("daemon", 2, 5, "root.b", tags=on("n1"))
    seen = len(c.decided)
    assert c.run() == (["daemon@n1" if daemon else "mine@n1"], [])
    assert [d.key for d in c.decided[seen:] if isinstance(d, Reserved)] == ["mine"] * daemon


@pytest.mark.parametrize(("first", "daemon"), [(4, 2), (2, 4)])
def test_what_stands_before_one_that_requires_the_node_reclaims_first(first: int, daemon: int) -> None:
    """By guarantee: `daemon` would have the node set aside as soon as it is looked at, and idle work there stopped."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4}, rule="guarantee")
    c.fill("full", 4, tags=on("n2"))
    c.fill("idle", 4, idle=True)
    c.node("spare", 100)
    c.handle(DrainNode("spare"))
    c.submit("first", first, 5)
    c.submit("daemon", daemon, tags=on("n1"))
    assert c.run() == ([], ["idle"])
    assert c.evictions()[0].on_behalf_of == "first"
    assert [d.key for d in c.decided if isinstance(d, Reserved)] == ["first", "daemon"]
    c.gone("idle")
    assert c.run()[0] == ["first@n1"]


def test_idle_work_makes_room_before_nodes_are_set_aside() -> None:
    """A node that was set aside for what stands behind was none where idle work could give back, so that more of it was
    stopped than it takes.
    """
    c = PriorityCluster(nodes={"n1": 4, "n2": 4}, rule="guarantee")
    for key, node, size in (("x", "n1", 1), ("y", "n1", 1), ("z", "n2", 2)):
        c.fill(key, size, tags=on(node), idle=True)
    for node in ("n1", "n2"):
        c.fill(f"ends-{node}", 2, tags=on(node))
    c.submit("first", 4)
    c.submit("second", 4)
    assert c.run(3_000) == ([], [])
    c.finished("ends-n1")
    c.finished("ends-n2")
    assert c.run() == ([], ["z", "y", "x"])
    assert c.nominated() == {"first": "n2", "second": "n1"}


def test_idle_work_makes_room_on_the_node_that_is_set_aside_for_one_of_several_alike() -> None:
    """The first of them stood for all: it may not have that node, so the second waited beside idle work."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4, "small": 3}, rule="guarantee")
    c.fill("stays", 3, tags=on("n1"))
    c.fill("idle", 1, tags=on("n2"), idle=True)
    c.fill("ends", 3, tags=on("n2"))
    c.handle(AddApplication(ApplicationSpec(id="app", queue="root.a")))
    four = Resources({"vcore": 4000})
    c.handle(AddAsks(tuple(AskSpec(application="app", key=key, resources=four) for key in ("one", "two"))))
    assert c.run(3_000) == ([], [])
    assert [(d.key, d.node) for d in c.decided if isinstance(d, Reserved)] == [("one", "n1"), ("two", "n2")]
    c.finished("ends")
    assert c.run() == ([], ["idle"])
    assert c.nominated() == {"two": "n2"}


def test_idle_work_makes_room_before_work_is_stopped_by_guarantee() -> None:
    """What is guaranteed stands behind `first`, and had the idle work stopped that this one was to take back."""
    b = QueueSpec(name="b", guaranteed=cores(4), properties=AT_ONCE)
    c = PriorityCluster(QueueSpec(name="a"), b, rule="guarantee")
    c.fill("idle", 2, 0, "root.a", idle=True)
    c.fill("ends", 2, 0, "root.a")
    c.submit("first", 4, 5, "root.a")
    c.submit("behind", 4, 0, "root.b")
    assert c.run() == ([], [])
    c.finished("ends")
    assert c.run(1_000) == ([], ["idle"])
    assert c.evictions()[0].on_behalf_of == "first"


# -- what has to go for more than room ----------------------------------------------------------------------------


@pytest.mark.plain
def test_what_is_behind_the_next_ask_is_not_looked_at_before_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty start one after the other in two queues while idle work runs, and one that has no room waits before them:
    for each start that one alone is looked at, until something changes for it.
    """
    c = two_groups("guarantee")
    c.node("n2", 30)
    idle(c, "borrows", 1)
    looked_at: list[str] = []
    first_of_each = reclaim_idle._first_of_each

    def looked(partition: Partition, batch: Batch) -> list[Ask]:
        looked_at.append(batch.head.key)
        return first_of_each(partition, batch)

    monkeypatch.setattr(reclaim_idle, "_first_of_each", looked)
    c.submit("large", 31, 9, "root.g.other")
    for i in range(20):
        c.submit(f"small-{i}", 1, 0, "root.h.b" if i % 2 else "root.g.other")
    started, _ = c.run()
    assert len(started) == 20
    assert len(looked_at) <= 2 * 20, "the one that has no room, and the next one itself"
