"""Orders about work: what is refused with which reason, and what an order that is taken does."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.decisions import (
    ApplicationMoved,
    AskRejected,
    Decision,
    MoveRejected,
    PriorityChanged,
    ReservationSwitched,
)
from fairlead.core.model.events import AddApplication, AddAsks, Event, MoveApplication, ReserveAsk, SetPriority
from fairlead.core.model.reasons import ApplicationsAtMax, QueueFull
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec
from fairlead.scheduler import Scheduler


def told(c: PriorityCluster, event: Event) -> Decision:
    """The last thing said about an order."""
    return c.handle(event)[-1]


def refusal(c: PriorityCluster, event: Event) -> str:
    """Why an order is refused."""
    said = told(c, event)
    assert isinstance(said, AskRejected | MoveRejected), said
    return said.reason.sentence()


def running(*queues: QueueSpec, **more: Any) -> PriorityCluster:
    """`one` runs two cores in `root.a`, `w` waits there."""
    c = PriorityCluster(*queues, **more)
    c.fill("one", 2)
    c.submit("w", 9, 3)
    c.run()
    return c


def test_an_application_moves_with_what_it_runs() -> None:
    c = running()
    assert told(c, MoveApplication("one", "ROOT.B", "ann")) == ApplicationMoved("one", "root.a", "root.b", "ann")
    queues = c.s.cluster.partitions["default"].root.children
    assert (queues["a"].allocated["vcore"], queues["b"].allocated["vcore"]) == (0, 2000)


@pytest.mark.parametrize(
    ("name", "queue", "why"),
    [
        ("nobody", "root.b", "failed to find application nobody"),
        ("one", "root.c", "there is no queue root.c; give the whole path of a leaf"),
        ("one", "root.a", "application one is in root.a already"),
        ("one", "root", "queue root is a parent; applications are in leaves"),
    ],
)
def test_a_move_that_makes_no_sense_is_refused(name: str, queue: str, why: str) -> None:
    assert why in refusal(running(), MoveApplication(name, queue))


def test_a_move_takes_no_queue_over_its_maximum() -> None:
    """Nor over the applications that it may run; with the numbers."""
    c = running(QueueSpec(name="a"), QueueSpec(name="b", max=cores(1)), QueueSpec(name="c", max_applications=1))
    said = told(c, MoveApplication("one", "root.b"))
    assert isinstance(said, MoveRejected)
    assert said.reason == QueueFull("root.b", {"vcore": 2000}, {"vcore": 1000}, {"vcore": 1000})
    c.fill("there", 1, 0, "root.c")
    said = told(c, MoveApplication("one", "root.c"))
    assert isinstance(said, MoveRejected)
    assert said.reason == ApplicationsAtMax("root.c", 1, 1)


def test_another_priority_counts_at_once_and_is_recorded() -> None:
    c = running()
    said = told(c, SetPriority("w", "w", 8, "ann", why="it is late"))
    assert said == PriorityChanged("w", "w", 3, 8, "ann", "it is late")
    assert c.s.cluster.partitions["default"].applications["w"].asks["w"].priority == 8


def gang_of_two(rule: str, priority: int) -> PriorityCluster:
    """A gang `g` whose first placeholder stands on the only node, where there is no room for the second one."""
    c = PriorityCluster(nodes={"n1": 3}, rule=rule)
    c.handle(AddApplication(ApplicationSpec(id="g", queue="root.a", placeholder_ask=Resources({"vcore": 4000}))))
    more: dict[str, Any] = {"resources": Resources({"vcore": 2000}), "placeholder": True, "task_group": "t"}
    c.handle(AddAsks(tuple(AskSpec(application="g", key=k, priority=priority, **more) for k in ("p0", "p1"))))
    assert c.run() == (["p0@n1"], [])
    return c


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_the_priority_of_a_gang_is_that_of_its_placeholders_with_nodes_too(rule: str) -> None:
    """They stand for work that waits: raised, they are not stopped for what the gang comes before now."""
    c = gang_of_two(rule, 1)
    c.handle(SetPriority("g", "", 9, "ann"))
    c.submit("other", 3, 5)
    assert c.run() == ([], [])
    check_books(Scheduler.load(c.s.dump()))


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_a_gang_that_is_lowered_gives_way_with_what_it_holds(rule: str) -> None:
    """What waited in vain before is looked at again."""
    c = gang_of_two(rule, 9)
    c.submit("other", 3, 5, "root.b")
    assert c.run() == ([], [])
    said = c.handle(SetPriority("g", "", 1, "ann"))
    assert [(d.key, d.old, d.new) for d in said if isinstance(d, PriorityChanged)] == [("p1", 9, 1), ("p0", 9, 1)]
    assert c.run() == ([], ["p0"])


def test_a_placeholder_with_a_node_gets_another_priority_alone() -> None:
    """It is no running work, to which that would be refused."""
    c = gang_of_two("priority", 1)
    said = told(c, SetPriority("g", "p0", 7, "ann"))
    assert said == PriorityChanged("g", "p0", 1, 7, "ann")


@pytest.mark.parametrize(
    ("name", "priority", "why"),
    [
        ("one", 1, "nothing waits under one/one: only waiting work can change its priority"),
        ("nobody", 1, "nothing waits under nobody/nobody"),
        ("w", 2**31, "is not a 32-bit integer"),
    ],
)
def test_a_priority_that_cannot_be_given_is_refused(name: str, priority: int, why: str) -> None:
    assert why in refusal(running(), SetPriority(name, name, priority, "ann"))


def test_a_turn_is_kept_and_given_back_on_order() -> None:
    c = running()
    on, off = ReserveAsk("w", "w", True, "ann", "why"), ReserveAsk("w", "w", False, "bob", "done")
    assert told(c, on) == ReservationSwitched("w", "w", True, "ann", "why")
    assert refusal(c, on) == "w/w has a reservation already"
    assert told(c, off) == ReservationSwitched("w", "w", False, "bob", "done")
    assert refusal(c, off) == "w/w has no reservation"


def test_without_a_key_an_order_is_about_all_that_waits() -> None:
    c = running()
    assert told(c, ReserveAsk("w", "", True, "ann", "why")) == ReservationSwitched("w", "w", True, "ann", "why")
    assert "nothing waits under one" in refusal(c, ReserveAsk("one", "", True, "ann", "why"))


def test_idle_work_has_no_turn() -> None:
    """It runs on what others leave over."""
    c = running()
    c.submit("idle", 9, idle=True)
    assert "idle/idle is idle work" in refusal(c, ReserveAsk("idle", "idle", True, "ann", "why"))
