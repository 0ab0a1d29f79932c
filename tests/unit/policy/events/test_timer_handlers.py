"""Due timers: each fires at its own time and in order, and one that counts no more does nothing."""

from __future__ import annotations

from priority_clusters import PriorityCluster, cores

from fairlead.core.model.decisions import Allocated, ApplicationChanged, Decision, Overdue
from fairlead.core.model.events import AddApplication, AddNode, RemoveApplication
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, NodeSpec, QueueSpec, RetrySpec
from fairlead.policy.events.timer_handlers import ON_DUE, fire_due


def test_every_kind_that_is_set_has_a_rule() -> None:
    """Of what the courses of an application, a turn, a gang and a preemption set."""
    queue = QueueSpec(name="a", max=cores(9), properties={"wait.max": "10s", "application.unschedasks.backoff": "1"})
    c = PriorityCluster(queue, QueueSpec(name="b"), nodes={"n1": 4})
    c.fill("low", 4, 0, grace_ms=1_000)
    c.submit("high", 4, 9)
    c.run()
    c.submit("again", 1, 0, "root.b", retry=RetrySpec(limit=1))
    c.run(3_000)
    kinds = {timer.kind for timer in c.s.cluster.timers.pending()}
    assert len(kinds) >= 2
    assert kinds <= ON_DUE.keys()


def test_each_fires_at_its_own_time_however_late_it_is_noticed() -> None:
    """An application that completes does so thirty seconds after its last work, not when somebody looks."""
    c = PriorityCluster()
    c.fill("one", 1)
    c.finished("one")
    ended_ms = c.now_ms
    c.now_ms += 10_000_000
    decided = c.s.schedule(c.now_ms)
    assert any(isinstance(d, ApplicationChanged) and d.state == "Completed" for d in decided)
    part = c.s.cluster.partitions["default"]
    [app] = part.ended.values()
    assert app.finished_ms == ended_ms + 30_000


def test_what_is_due_earlier_fires_first_whatever_was_set_first() -> None:
    c = PriorityCluster(nodes={"n1": 4})
    c.fill("late", 2, 0, grace_ms=9_000)
    c.fill("early", 2, 0, grace_ms=1_000)
    c.submit("one", 2, 9)
    c.submit("two", 2, 9)
    c.run()
    c.now_ms += 10_000_000
    told: list[Decision] = c.s.schedule(c.now_ms)
    assert [d.key for d in told if isinstance(d, Overdue)] == ["early", "late"]


def test_a_timer_of_what_is_gone_does_nothing() -> None:
    """An application that was taken out, a partition that is no more."""
    c = PriorityCluster()
    c.fill("one", 1)
    c.finished("one")
    c.handle(RemoveApplication("one"))
    timers = c.s.cluster.timers
    timers.set(c.now_ms + 5, "no such partition", "", "queues")
    timers.set(c.now_ms + 5, "default", "one", "application")
    before = dict(c.s.cluster.partitions["default"].ended)
    fire_due(c.s.cluster, c.now_ms + 10)
    assert c.s.cluster.drain_out() == []
    assert c.s.cluster.partitions["default"].ended == before


def test_a_look_has_what_waits_looked_at_and_is_no_news() -> None:
    """Nothing is due then: what started since the last event is still nobody's victim."""
    c = PriorityCluster()
    c.run()
    part = c.s.cluster.partitions["default"]
    news = part.news
    assert part.rested_at is not None
    c.s.cluster.timers.look(c.now_ms + 5, "default")
    fire_due(c.s.cluster, c.now_ms + 5)
    assert (part.rested_at, part.news) == (None, news)


def test_what_comes_later_in_time_sees_what_fired_before() -> None:
    """An event brings the time forward first."""
    c = PriorityCluster()
    c.fill("one", 4)
    c.finished("one")
    c.now_ms += 60_000
    told = c.s.handle(AddNode(NodeSpec(id="n2", capacity=Resources({"vcore": 1000}))), c.now_ms)
    assert isinstance(told[0], ApplicationChanged)
    assert not any(isinstance(d, Allocated) for d in told)
    assert c.s.handle(AddApplication(ApplicationSpec(id="one", queue="root.a")), c.now_ms), "its name is free again"


def test_that_ended_work_is_over_is_no_news() -> None:
    """What started while `high` waited is spared until something new comes; that an application is completed, half a
    minute after its last work ended, is nothing new, nor that its record is dropped.
    """
    c = PriorityCluster(nodes={"n1": 4})
    c.fill("fixed", 2, 20)
    c.fill("ended", 1, 1)
    c.finished("ended")
    c.submit("high", 3, 9)
    c.submit("young", 2, 1)
    assert c.run()[0] == ["young@n1"]
    part = c.s.cluster.partitions["default"]
    changed = part.changed_seq
    assert part.timers.due_ms("default", "ended", "application") is not None
    c.run(40_000)
    assert part.timers.due_ms("default", "ended", "application") is None
    c.run(4 * 24 * 3_600_000)
    assert part.ended == {}
    assert part.changed_seq == changed
