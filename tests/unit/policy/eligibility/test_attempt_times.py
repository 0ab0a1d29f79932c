"""When a scheduler wants to be called again: never for what it knows that it cannot do."""

from __future__ import annotations

import json

from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Release
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    LimitSpec,
    NodeSpec,
    PartitionSpec,
    QueueSpec,
)
from fairlead.scheduler import Scheduler


def cluster(*limits: LimitSpec, most: int = 0) -> Scheduler:
    """Two queues, one with a guarantee, and a node of 4 cores."""
    a = QueueSpec(
        name="a",
        guaranteed=Limits({"vcore": 4}),
        max=Limits({"vcore": most}) if most else None,
        properties={"preemption.delay": "1s"},
        limits=limits,
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(a, QueueSpec(name="b")))
    s = Scheduler(ClusterSpec(partitions=(PartitionSpec(root=root),)))
    s.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 4}))), 0)
    return s


def ask(s: Scheduler, app: str, key: str, cores: int, user: str = "ann", at_ms: int = 0, **more: object) -> None:
    """One ask of an application, which is made if it is new; its queue is the first letter of its name."""
    if app not in s.cluster.partitions["default"].applications:
        s.handle(AddApplication(ApplicationSpec(id=app, queue=f"root.{app[0]}", user=user)), at_ms)
    s.handle(AddAsks((AskSpec(application=app, key=key, resources=Resources({"vcore": cores}), **more),)), at_ms)  # type: ignore[arg-type]


def calls(s: Scheduler, until_ms: int) -> list[int]:
    """The times at which it wanted to be called until then, the second look at the same time included."""
    wanted: list[int] = []
    while (due_ms := s.next_wakeup_ms()) is not None and due_ms <= until_ms:
        wanted.append(due_ms)
        s.schedule(max(due_ms, s.cluster.now_ms))
        assert len(wanted) < 100, f"it wants to be called again and again: {wanted[-5:]}"
    return wanted


def test_work_that_waits_for_placeholders_wakes_nobody() -> None:
    """Its placeholders try to have work stopped for them; it does not, as long as they wait."""
    s = cluster()
    ask(s, "b1", "big", 4)
    s.schedule(0)
    ask(s, "a1", "holder", 5, placeholder=True, task_group="g")
    ask(s, "a1", "real", 5, task_group="g")
    s.schedule(0)
    assert s.why("a1", "real") is not None
    assert 0 not in calls(s, 0)
    assert calls(s, 14_000) == [1_000]


def test_behind_a_full_queue_and_a_reached_limit_nobody_tries_in_vain() -> None:
    """The queue was full first, then the limit was reached too: no timer. With room under the limit work is stopped."""
    s = cluster(LimitSpec(users=("ann",), max_resources=Limits({"vcore": 2})), most=3)
    ask(s, "a1", "mine", 1)
    ask(s, "a2", "low", 2, user="bob", priority=-1)
    s.schedule(0)
    ask(s, "a1", "more", 1, at_ms=500)
    s.schedule(500)
    ask(s, "a1", "also", 1, at_ms=600, node="n")
    s.schedule(600)
    s.schedule(5_000)
    assert calls(s, 14_000) == []
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    for each in (s, again):
        each.handle(Release("a1", "also", Cause.FINISHED), 15_000)
        assert [d.key for d in each.schedule(15_000) if isinstance(d, Evict)] == []
    assert s.dump() == again.dump()


def test_nothing_is_looked_at_for_preemption_before_its_delay() -> None:
    """Else each placement goes through all that waits, as if each might have work stopped."""
    s = cluster()
    for name in ("a1", "a2", "a3"):
        ask(s, name, f"of {name}", 1)
    s.schedule(0, 1)
    assert not s.cluster.partitions["default"].root.children["a"].due


def test_after_a_restart_timers_are_set_in_the_same_order() -> None:
    """Also where an event that sets one comes when an attempt is due: the two may be due at the same time once."""
    s = cluster()
    ask(s, "b", "runs", 4)
    s.schedule(0)
    ask(s, "a", "first", 1)
    ask(s, "a", "second", 2, at_ms=500)
    s.schedule(500)
    again = Scheduler.load(json.loads(json.dumps(s.dump())))
    for each in (s, again):
        each.handle(AddApplication(ApplicationSpec(id="refused", queue="root.none")), 1_200)
        each.schedule(1_200)
    assert again.dump() == s.dump()
