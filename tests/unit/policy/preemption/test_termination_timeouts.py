"""Work that was told to stop and does not leave: who waits for it has a bound, and nothing goes round in circles."""

from __future__ import annotations

import random
from typing import Any

import pytest
from invariants.books import check_books
from priority_clusters import PriorityCluster, cores

from fairlead.core.acts.terminating import GRACE_MS, MARGIN_MS
from fairlead.core.model.decisions import Overdue
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Leaving, Nominated, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec, RetrySpec
from fairlead.scheduler import Scheduler

BOUND_MS = GRACE_MS + MARGIN_MS


def overdue(c: PriorityCluster) -> list[tuple[str, str, str]]:
    return [(d.key, d.node, d.on_behalf_of) for d in c.decided if isinstance(d, Overdue)]


def stopped(c: PriorityCluster) -> list[str]:
    return [e.key for e in c.evictions()]


def wait(c: PriorityCluster, millis: int) -> None:
    """Time passes; the scheduler is called when it wants to be."""
    end = c.now_ms + millis
    while (due := c.s.next_wakeup_ms()) is not None and due <= end:
        c.run(max(due - c.now_ms, 1))
    c.run(end - c.now_ms)


def one_on_each(count: int, **of_ask: Any) -> PriorityCluster:
    """So many nodes of 4 cores with one work each, `v1` on n1 the cheapest, and `urgent`, which has `v1` stopped."""
    c = PriorityCluster(nodes={f"n{i + 1}": 4 for i in range(count)})
    for i in range(count):
        c.submit(f"v{i + 1}", 4, i + 1, "root.b", **of_ask)
        c.run()
    where = {a.key: a.node.id for a in _running(c)}
    assert where == {f"v{i + 1}": f"n{i + 1}" for i in range(count)}
    c.submit("urgent", 4, 99)
    assert c.run() == ([], ["v1"])
    return c


def _running(c: PriorityCluster) -> list[Any]:
    nodes = c.s.cluster.partitions["default"].nodes.nodes.values()
    return [ask for node in nodes for ask in node.allocations]


def test_who_waits_for_work_that_does_not_leave_looks_elsewhere() -> None:
    """After its grace and the margin, not before; it is said of both, and what was stopped is not stopped again."""
    c = one_on_each(2)
    wait(c, BOUND_MS - 1)
    assert (overdue(c), stopped(c)) == ([], ["v1"])
    wait(c, 1)
    assert overdue(c) == [("v1", "n1", "urgent")]
    assert stopped(c) == ["v1", "v2"]
    assert c.nominated() == {"urgent": "n2"}
    c.gone("v2")
    assert c.run()[0] == ["urgent@n2"]
    c.gone("v1")
    wait(c, 10 * BOUND_MS)
    assert stopped(c) == ["v1", "v2"]


def test_the_grace_of_the_work_counts() -> None:
    """Who has ten minutes to stop is not overdue before."""
    c = one_on_each(2, grace_ms=600_000)
    wait(c, 600_000 + MARGIN_MS - 1)
    assert overdue(c) == []
    wait(c, 1)
    assert [key for key, _, _ in overdue(c)] == ["v1"]


def test_the_room_stays_held_as_long_as_there_is_nothing_better() -> None:
    """What has been gained is not lost to others; at last it runs where it was nominated."""
    c = PriorityCluster()
    c.fill("prompt", 2, 1, "root.b")
    c.fill("stuck", 2, 1, "root.b")
    c.submit("urgent", 4, 9)
    assert sorted(c.run()[1]) == ["prompt", "stuck"]
    c.gone("prompt")
    c.submit("other", 2, 5)
    wait(c, 20 * BOUND_MS)
    assert [key for key, _, _ in overdue(c)] == ["stuck"]
    assert c.nominated() == {"urgent": "n1"}
    reason = c.s.why("urgent", "urgent")
    assert reason is not None
    assert "stuck" in reason.sentence()
    assert "should have stopped by now" in reason.sentence()
    c.gone("stuck")
    assert c.run()[0] == ["urgent@n1"]


def test_what_starts_in_its_own_room_takes_no_claim_on_what_is_overdue() -> None:
    """`first` starts where `prompt` was; `second` still waits for `stuck`, and keeps its place there."""
    c = PriorityCluster()
    c.fill("prompt", 2, 1, "root.b")
    c.fill("stuck", 2, 2, "root.b")
    c.submit("first", 2, 9)
    c.submit("second", 2, 8)
    assert sorted(c.run()[1]) == ["prompt", "stuck"]
    wait(c, BOUND_MS)
    c.gone("prompt")
    assert c.run()[0] == ["first@n1"]
    assert c.nominated() == {"second": "n1"}


def test_other_work_on_the_same_node_makes_room_where_there_is_no_other_node() -> None:
    """As on a single machine."""
    c = PriorityCluster()
    c.fill("more", 2, 2, "root.b")
    c.fill("stuck", 2, 1, "root.b")
    c.submit("urgent", 2, 9)
    assert c.run()[1] == ["stuck"]
    wait(c, BOUND_MS)
    assert stopped(c) == ["stuck", "more"]
    c.gone("more")
    assert c.run()[0] == ["urgent@n1"]


@pytest.mark.parametrize("rule", ["priority", "guarantee"])
def test_a_node_on_which_work_is_overdue_comes_last(rule: str) -> None:
    """It may be dead: what is stopped there may not leave either. So the dearer one on the other node is stopped."""
    queues = (QueueSpec(name="a", guaranteed=cores(4), properties={"preemption.delay": "1s"}), QueueSpec(name="b"))
    c = PriorityCluster(*queues, rule=rule)
    c.fill("cheap", 2, 2, "root.b")
    c.fill("stuck", 2, 1, "root.b")
    c.node("n2", 2)
    c.fill("dear", 2, 3, "root.b", allow_preempt_self=False)
    c.submit("urgent", 2, 9)
    wait(c, 2_000)
    assert stopped(c) == ["stuck"]
    wait(c, BOUND_MS + 20_000)
    assert stopped(c) == ["stuck", "dear"]


def test_nobody_moves_on_for_ever() -> None:
    """Twice, then it is reported, and no more is stopped within the hour: three in all of nine."""
    c = one_on_each(9)
    wait(c, 58 * 60_000)
    assert stopped(c) == ["v1", "v2", "v3"]
    assert [(loop.key, loop.victim, loop.times) for loop in c.loops()] == [("urgent", "", 2)]
    assert [key for key, _, _ in overdue(c)] == ["v1", "v2", "v3"]
    wait(c, 24 * 3_600_000)
    assert len(stopped(c)) == len(set(stopped(c))), "nobody twice"


def test_a_state_that_is_read_again_knows_what_is_due_and_overdue() -> None:
    """Before and after the time is over."""
    c = one_on_each(3)
    wait(c, BOUND_MS // 2)
    c.s = Scheduler.load(c.s.dump())
    wait(c, BOUND_MS - BOUND_MS // 2)
    assert stopped(c) == ["v1", "v2"]
    c.s = Scheduler.load(c.s.dump())
    check_books(c.s)
    wait(c, BOUND_MS)
    assert stopped(c) == ["v1", "v2", "v3"]
    c.gone("v1")
    c.gone("v3")
    assert c.run()[0] in (["urgent@n3"], ["urgent@n1"])


def test_a_restarted_scheduler_counts_from_what_it_is_told() -> None:
    """What was under way comes as a report; from then on it has its time."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4})
    c.fill("v1", 4, 1, "root.b")
    c.fill("v2", 4, 2, "root.b")
    c.submit("urgent", 4, 9)
    c.handle(Leaving("v1", "v1", Cause.PREEMPTED_BY_SCHEDULER))
    c.handle(Nominated("urgent", "urgent", "n1"))
    wait(c, BOUND_MS - 1)
    assert stopped(c) == []
    wait(c, 2)
    assert stopped(c) == ["v2"]


def test_what_is_overdue_counts_as_running_under_the_maximum_of_its_queue() -> None:
    """So that nobody is stopped elsewhere for room that its queue does not have."""
    c = PriorityCluster(QueueSpec(name="a", max=cores(4)), QueueSpec(name="b"), nodes={"n1": 4, "n2": 4})
    c.fill("low", 4, 1, "root.a")
    c.fill("other", 4, 0, "root.b")
    c.submit("high", 4, 9, "root.a")
    assert c.run()[1] == ["low"]
    wait(c, 20 * BOUND_MS)
    assert stopped(c) == ["low"]
    c.gone("low")
    assert c.run()[0] == ["high@n1"]


def test_by_guarantee_too() -> None:
    """The node stays set aside until there is a better plan."""
    queues = (
        QueueSpec(name="a", guaranteed=cores(4), properties={"preemption.delay": "1s"}),
        QueueSpec(name="b"),
    )
    c = PriorityCluster(*queues, nodes={"n1": 4, "n2": 4}, rule="guarantee")
    c.fill("v1", 4, 0, "root.b")
    c.fill("v2", 4, 0, "root.b")
    c.submit("mine", 4, 0, "root.a")
    wait(c, 2_000)
    [first] = stopped(c)
    wait(c, BOUND_MS + 20_000)
    assert [key for key, _, _ in overdue(c)] == [first]
    assert sorted(stopped(c)) == ["v1", "v2"]
    second = stopped(c)[1]
    c.gone(second)
    assert [name.partition("@")[0] for name in c.run()[0]] == ["mine"]


def test_by_guarantee_it_tries_again_after_an_hour() -> None:
    """Also where nothing but its node is in the way, so that nothing else gives the node up: there is room for it in
    all, in parts that are too small.
    """
    mine = QueueSpec(name="a", guaranteed=cores(4), properties={"preemption.delay": "1s"})
    c = PriorityCluster(mine, QueueSpec(name="b"), nodes={f"n{i}": 4 for i in range(1, 9)}, rule="guarantee")
    for i in range(1, 9):
        c.fill(f"v{i}", 4, 0, "root.b")
    c.node("small1", 2)
    c.node("small2", 2)
    c.submit("mine", 4, 0, "root.a")
    c.run()
    wait(c, 58 * 60_000)
    assert stopped(c) == ["v1", "v2", "v3"]
    wait(c, 60 * 60_000)
    assert stopped(c) == ["v1", "v2", "v3", "v4", "v5"]
    assert [(loop.key, loop.times) for loop in c.loops()] == [("mine", 2), ("mine", 2)]


@pytest.mark.parametrize("restarted", [False, True])
def test_only_the_ask_that_it_was_stopped_for_tries_again(restarted: bool) -> None:
    """Two asks are spelled alike, `x/y/z`: one of application `x`, one of `x/y`. Each keeps what it had stopped."""
    mine = QueueSpec(name="a", guaranteed=cores(8), properties={"preemption.delay": "1s"})
    c = PriorityCluster(mine, QueueSpec(name="b"), nodes={f"n{i}": 4 for i in range(1, 5)}, rule="guarantee")
    for i in range(1, 5):
        c.fill(f"v{i}", 4, 0, "root.b", grace_ms=0 if i == 2 else 1_000_000)
    for app, key in (("x", "y/z"), ("x/y", "z")):
        c.handle(AddApplication(ApplicationSpec(id=app, queue="root.a")))
        c.handle(AddAsks((AskSpec(application=app, key=key, resources=Resources({"vcore": 4000})),)))
        wait(c, 1_500)
    assert [(e.key, e.on_behalf_of) for e in c.evictions()] == [("v1", "x/y/z"), ("v2", "x/y/z")]
    if restarted:
        c.s = Scheduler.load(c.s.dump())
    wait(c, MARGIN_MS + 40_000)
    assert overdue(c) == [("v2", "n2", "x/y/z")]
    assert len(stopped(c)) == 3, "the one that had v2 stopped tries again, and the other does not"


def test_what_waits_beside_the_ask_for_which_it_was_stopped_looks_elsewhere_too() -> None:
    """`v1` makes room for both and does not leave: the first has `v2` stopped, and the second goes with it."""
    mine = QueueSpec(name="a", guaranteed=cores(12), properties={"preemption.delay": "1s"})
    c = PriorityCluster(mine, QueueSpec(name="b"), nodes={"n1": 4, "n2": 4}, rule="guarantee")
    for i in (1, 2):
        c.fill(f"v{i}", 4, 0, "root.b", grace_ms=0)
    for key in ("one", "two"):
        c.submit(key, 1, 0, "root.a")
    wait(c, 2_000)
    assert stopped(c) == ["v1"]
    wait(c, MARGIN_MS + 15_000)
    assert stopped(c) == ["v1", "v2"]
    nodes = c.s.cluster.partitions["default"].nodes.nodes
    assert sorted(ask.key for ask in nodes["n2"].reservations) == ["one", "two"]
    c.gone("v2")
    assert sorted(c.run()[0]) == ["one@n2", "two@n2"]


def test_what_was_stopped_for_a_plan_that_is_given_up_is_not_waited_for() -> None:
    """`first` did not leave, so `mine` has `third` stopped; that `second` does not leave either is no news to it."""
    mine = QueueSpec(name="a", guaranteed=cores(4), properties={"preemption.delay": "1s"})
    c = PriorityCluster(mine, QueueSpec(name="b"), nodes={"n1": 4, "n2": 4, "n3": 4}, rule="guarantee")
    c.fill("third", 4, 0, "root.b", allow_preempt_self=False, grace_ms=1_000_000)
    c.fill("fourth", 4, 0, "root.b", allow_preempt_self=False, grace_ms=1_000_000)
    c.fill("first", 2, 0, "root.b", grace_ms=0)
    c.fill("second", 2, 0, "root.b", grace_ms=100_000)
    c.submit("mine", 4, 0, "root.a")
    wait(c, 2_000)
    assert sorted(stopped(c)) == ["first", "second"]
    wait(c, MARGIN_MS + 20_000)
    assert len(stopped(c)) == 3
    wait(c, 200_000)
    assert [key for key, _, _ in overdue(c)] == ["first", "second"]
    assert len(stopped(c)) == 3, "it waits for what it had stopped last"


def test_idle_work_that_does_not_leave_is_followed_by_other_idle_work() -> None:
    """Reclaim has the same bound."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4})
    c.fill("i1", 4, 0, "root.b", idle=True)
    c.fill("i2", 4, 0, "root.b", idle=True)
    c.submit("mine", 4, 0, "root.a")
    [first] = c.run()[1]
    wait(c, BOUND_MS)
    assert [key for key, _, _ in overdue(c)] == [first]
    assert sorted(stopped(c)) == ["i1", "i2"]
    c.handle(Release(stopped(c)[1], stopped(c)[1], Cause.PREEMPTED_BY_SCHEDULER))
    assert len(c.run()[0]) == 1


def test_idle_work_that_does_not_leave_is_followed_by_other_work_by_guarantee() -> None:
    """Where there is no other idle work; while it had its time, nobody else was stopped."""
    queues = (QueueSpec(name="a", guaranteed=cores(4), properties={"preemption.delay": "1s"}), QueueSpec(name="b"))
    c = PriorityCluster(*queues, rule="guarantee")
    c.fill("idle", 4, 0, "root.b", idle=True)
    c.node("n2", 4)
    c.fill("borrowed", 4, 0, "root.b")
    c.submit("mine", 4, 0, "root.a")
    assert c.run() == ([], ["idle"])
    wait(c, BOUND_MS - 1)
    assert stopped(c) == ["idle"]
    wait(c, 20_000)
    assert stopped(c) == ["idle", "borrowed"]
    c.gone("borrowed")
    assert c.run()[0] == ["mine@n2"]


@pytest.mark.parametrize("rule", ["priority", "guarantee"])
def test_whatever_does_not_leave_nothing_goes_round_in_circles(rule: str) -> None:
    """Random clusters in which most of what is told to stop never leaves, and the rest comes back, without any news.

    Within an hour nobody is stopped twice for the same ask, and none has work stopped at more than three times.
    """
    for seed in range(5):
        chance = random.Random(f"{rule} {seed}")
        queues = (QueueSpec(name="a", guaranteed=cores(12), properties={"preemption.delay": "1s"}), QueueSpec(name="b"))
        c = PriorityCluster(*queues, nodes={f"n{i}": chance.randint(2, 3) for i in range(8)}, rule=rule)
        for i in range(16):
            more: dict[str, Any] = {"idle": True} if chance.random() < 0.2 else {"retry": RetrySpec(limit=100)}
            c.submit(f"low{i}", chance.randint(1, 2), 0, "root.b", **more)
        c.run()
        for i in range(3):
            c.submit(f"high{i}", 2, 9, "root.a")
        times: dict[str, int] = {}
        for minute in range(60):
            c.run(60_000)
            for each in [e for e in c.evictions() if e.key not in times]:
                times[each.key] = minute
                if chance.random() < 0.2:
                    c.gone(each.key, each.application)
        pairs = [(e.on_behalf_of, e.application) for e in c.evictions() if e.rule != "reclaim"]
        assert len(pairs) == len(set(pairs)), f"seed {seed}: somebody twice"
        for i in range(3):
            at = {times[e.key] for e in c.evictions() if e.on_behalf_of == f"high{i}"}
            assert len(at) <= 3, f"seed {seed}: high{i} had work stopped {len(at)} times"
