"""What was under way before a restart, reported to a scheduler that remembers nothing."""

from __future__ import annotations

from invariants.books import check_books

from fairlead.config import load_text
from fairlead.core.model.decisions import Allocated, Evict, Reserved
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Leaving, Nominated, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.scheduler import Scheduler

CONFIG = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues: [{name: root, submitacl: "*", queues: [{name: q}]}]
"""


def world(*asks: AskSpec) -> Scheduler:
    scheduler = Scheduler(load_text(CONFIG))
    for name in ("n1", "n2"):
        scheduler.handle(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": 4}))), 0)
    scheduler.handle(AddApplication(ApplicationSpec(id="a", queue="root.q", user="u")), 0)
    scheduler.handle(AddAsks(asks), 0)
    return scheduler


def ask(key: str, vcore: int, priority: int, node: str = "") -> AskSpec:
    return AskSpec(application="a", key=key, resources=Resources({"vcore": vcore}), priority=priority, node=node)


def test_what_is_leaving_is_no_victim_and_its_room_is_held_for_the_nominee() -> None:
    """Nobody else is stopped; the nominee runs when it is gone."""
    scheduler = world(ask("low", 3, 1, "n1"), ask("other", 3, 1, "n2"), ask("high", 3, 9))
    assert scheduler.handle(Leaving("a", "low", Cause.PREEMPTED_BY_SCHEDULER), 1) == []
    said = scheduler.handle(Nominated("a", "high", "n1"), 1)
    assert [type(d) for d in said] == [Reserved]
    check_books(scheduler)
    assert scheduler.schedule(2) == []
    scheduler.handle(Release("a", "low", Cause.PREEMPTED_BY_SCHEDULER), 3)
    assert [d.key for d in scheduler.schedule(3) if isinstance(d, Allocated)] == ["high"]
    check_books(scheduler)


def test_the_rest_of_a_half_told_plan_is_told() -> None:
    """One of two victims had not been told: it is now, and no other."""
    scheduler = world(ask("one", 2, 1, "n1"), ask("two", 2, 2, "n1"), ask("else", 4, 1, "n2"), ask("high", 4, 9))
    scheduler.handle(Leaving("a", "one", Cause.PREEMPTED_BY_SCHEDULER), 1)
    said = scheduler.handle(Nominated("a", "high", "n1"), 1)
    assert [d.key for d in said if isinstance(d, Evict)] == ["two"]
    assert scheduler.schedule(2) == []
    check_books(scheduler)


def test_victims_that_are_gone_leave_their_room_to_the_nominee() -> None:
    """An older one of its rank does not take it."""
    scheduler = world(ask("other", 4, 1, "n2"), ask("older", 2, 9), ask("high", 4, 9))
    scheduler.handle(Nominated("a", "high", "n1"), 1)
    assert [(d.key, d.node) for d in scheduler.schedule(2) if isinstance(d, Allocated)][:1] == [("high", "n1")]
    check_books(scheduler)


def test_a_nomination_that_makes_no_sense_is_passed_over() -> None:
    """Of an unknown ask, on an unknown node, of one that is too large, of one that runs."""
    scheduler = world(ask("runs", 4, 1, "n1"), ask("huge", 9, 9), ask("low", 4, 0))
    for key, node in (("nobody", "n1"), ("low", "n9"), ("huge", "n1"), ("runs", "n2"), ("low", "n1")):
        assert scheduler.handle(Nominated("a", key, node), 1) == []
    assert scheduler.handle(Leaving("a", "nobody"), 1) == []
    check_books(scheduler)
