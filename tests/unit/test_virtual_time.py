"""Virtual time: what happens when, and what follows from it."""

from __future__ import annotations

from functools import partial

from fairlead.config import load_text
from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import AddApplication, AddAsks, AddNode, Cause, Release
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, NodeSpec
from fairlead.scheduler import Scheduler
from fairlead.virtual_time import VirtualTime

QUEUES = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues: [{name: root, submitacl: "*", queues: [{name: a}]}]
"""


def place() -> VirtualTime:
    """One node on which one of two applications has room."""
    time = VirtualTime(Scheduler(load_text(QUEUES)), 0)
    time.handle(AddNode(NodeSpec(id="n", capacity=Resources({"vcore": 1}))))
    for app in ("low", "high"):
        time.handle(AddApplication(ApplicationSpec(id=app, queue="root.a", user="ada")))
    return time


def ask(app: str, priority: int) -> AddAsks:
    return AddAsks((AskSpec(application=app, key=app, resources=Resources({"vcore": 1}), priority=priority),))


def running(time: VirtualTime) -> list[str]:
    return [ask.key for ask in time.scheduler.cluster.partitions["default"].nodes.nodes["n"].allocations]


def test_the_earlier_comes_first_and_of_one_moment_what_was_said_first() -> None:
    """Each at its own time, and nothing beyond what was asked for."""
    time = VirtualTime(Scheduler(), 5)
    happened: list[tuple[str, int]] = []

    def note(name: str) -> None:
        happened.append((name, time.now_ms))

    for name, at_ms in (("late", 30), ("b", 20), ("c", 20), ("a", 10), ("past", 1)):
        time.later(at_ms, partial(note, name))
    time.happen(20)
    assert happened == [("past", 5), ("a", 10), ("b", 20), ("c", 20)]
    assert (time.due_ms, time.still_due) == (30, 1)


def test_what_is_called_off_does_not_happen_and_is_not_due() -> None:
    """The next one is."""
    time = VirtualTime(Scheduler(), 0)
    happened: list[int] = []
    first = time.later(10, partial(happened.append, 10))
    time.later(20, partial(happened.append, 20))
    first.call_off()
    assert time.due_ms == 20
    time.happen(100)
    assert (happened, time.due_ms) == ([20], None)


def test_what_follows_comes_before_what_is_due() -> None:
    """And what follows from that, too."""
    time = VirtualTime(Scheduler(), 0)
    happened: list[str] = []
    time.later(1, lambda: (happened.append("one"), time.then(lambda: time.then(lambda: happened.append("follows")))))
    time.later(1, lambda: happened.append("two"))
    time.happen(1)
    assert happened == ["one", "follows", "two"]
    assert time.has_changed
    assert not time.follow()


def test_what_is_told_to_stop_stops_and_its_room_is_used_at_once() -> None:
    """Until nothing more changes."""
    time = place()
    time.handle(ask("low", 0))
    time.settle()
    assert running(time) == ["low"]
    time.handle(ask("high", 9))
    time.settle()
    assert running(time) == ["high"]
    assert not time.has_changed


def test_a_place_may_let_it_take_its_time() -> None:
    """By its own `stop`; meanwhile the room is not used."""

    class Slow(VirtualTime):
        def stop(self, order: Evict) -> None:
            self.later(self.now_ms + 7, partial(self.confirm, order))

    time = place()
    slow = Slow(time.scheduler, 0)
    slow.handle(ask("low", 0))
    slow.settle()
    slow.handle(ask("high", 9))
    slow.settle()
    assert (running(slow), slow.due_ms) == (["low"], 7)
    slow.happen(7)
    slow.settle()
    assert (running(slow), slow.now_ms) == (["high"], 7)
    slow.handle(Release("high", "high", Cause.FINISHED))
    assert running(slow) == []
