"""Reservations: who gets a node set aside, when, which one, what that keeps from others, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest
from invariants.books import check_books
from priority_clusters import PriorityCluster, on

from fairlead.core.model.constraints import HOSTNAME, AffinityTerm, Constraints, Requirement
from fairlead.core.model.decisions import Allocated, Decision, Evict, Reserved, Unreserved
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Configure,
    DrainNode,
    Event,
    Release,
    RemoveNode,
    SetPriority,
)
from fairlead.core.model.reasons import NodeReserved, ReservedNodeTooFull
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import (
    TAG_REQUIRED_NODE,
    ApplicationSpec,
    AskSpec,
    ClusterSpec,
    NodeSpec,
    PartitionSpec,
    PreemptionSpec,
    QueueSpec,
)
from fairlead.policy.eligibility.attempt_times import RESERVE_AFTER_MS
from fairlead.policy.why.waiting import reserved_with_room
from fairlead.scheduler import Scheduler

HOUR = 3_600_000


def spec(rule: str = "guarantee", most: int = 0) -> ClusterSpec:
    """Leaves a and b below root; `most` is the maximum of b."""
    b = QueueSpec(name="b", max=Limits({"vcore": most}) if most else None)
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(QueueSpec(name="a"), b))
    preemption = PreemptionSpec(enabled=False, rule=rule)
    return ClusterSpec(partitions=(PartitionSpec(root=root, preemption=preemption),))


class Cluster:
    """A scheduler with nodes `n0`, `n1`, … of the given sizes; every ask is an application's only one.

    A drained node makes up for what is missing in the sum of all nodes, so that only single nodes are ever full.
    """

    def __init__(self, *sizes: int, **more: Any) -> None:
        self.s = Scheduler(spec(**more))
        self.now = 0
        for i, size in enumerate(sizes):
            self.node(f"n{i}", size)
        self.node("spare", 100)
        self.do(DrainNode("spare"))

    def node(self, name: str, size: int) -> None:
        self.do(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": size}))))

    def do(self, event: Event) -> list[Decision]:
        decided = self.s.handle(event, self.now)
        check_books(self.s)
        return decided

    def ask(self, key: str, cores: int, queue: str = "a", on: str = "", **more: Any) -> None:
        """Application and ask of the same name; `on` is the only node it may run on."""
        if key not in self.s.cluster.partitions["default"].applications:
            self.do(AddApplication(ApplicationSpec(id=key, queue=f"root.{queue}")))
        tags = {TAG_REQUIRED_NODE: on} if on else {}
        amount = Resources({"vcore": cores})
        self.do(AddAsks((AskSpec(application=key, key=key, resources=amount, tags=tags, **more),)))

    def end(self, key: str) -> None:
        self.do(Release(key, key))

    def run(self, after_ms: int = 0) -> list[Decision]:
        self.now += after_ms
        decided = self.s.schedule(self.now)
        check_books(self.s)
        return [d for d in decided if isinstance(d, Allocated | Reserved | Unreserved | Evict)]


def busy(*sizes: int, **more: Any) -> Cluster:
    """Every node has one core in use, by `r0` on `n0`, `r1` on `n1`, …"""
    c = Cluster(*sizes, **more)
    for i in range(len(sizes)):
        c.ask(f"r{i}", 1, on=f"n{i}")
    c.run()
    return c


def test_an_ask_gets_a_node_after_the_delay_and_not_before() -> None:
    """Two seconds after it was made."""
    c = busy(4)
    c.ask("big", 4)
    assert c.run() == []
    assert c.run(RESERVE_AFTER_MS - 1) == []
    assert c.run(1) == [Reserved("big", "big", "n0")]


def test_the_delay_has_a_timer() -> None:
    """Nobody has to look in between."""
    c = busy(4)
    c.ask("big", 4)
    c.run()
    assert c.s.next_wakeup_ms() == RESERVE_AFTER_MS


@pytest.mark.parametrize("delay_ms", [0, RESERVE_AFTER_MS])
def test_another_ask_of_the_same_application_and_shape_has_its_own_delay(delay_ms: int) -> None:
    """It joins the first one, which has its node and seeks none; and it is looked at when its own time is over."""
    c = busy(4, 4)
    c.ask("big", 4)
    c.run()
    assert c.run(RESERVE_AFTER_MS) == [Reserved("big", "big", "n0")]
    c.run(delay_ms)
    amount = Resources({"vcore": 4})
    c.do(AddAsks((AskSpec(application="big", key="next", resources=amount),)))
    assert c.run() == []
    assert c.s.next_wakeup_ms() == c.now + RESERVE_AFTER_MS
    assert c.run(RESERVE_AFTER_MS) == [Reserved("big", "next", "n1")]


def test_the_node_that_it_would_fill_most_is_taken() -> None:
    """Measured by what is free there: both lack cores, and it would use more of the memory of n1."""
    c = Cluster()
    for name, memory in (("n0", 10), ("n1", 5)):
        c.do(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": 4, "memory": memory}))))
        c.ask(f"r-{name}", 1, on=name)
    c.run()
    c.do(AddApplication(ApplicationSpec(id="big", queue="root.a")))
    c.do(AddAsks((AskSpec(application="big", key="big", resources=Resources({"vcore": 4, "memory": 4})),)))
    assert c.run(RESERVE_AFTER_MS) == [Reserved("big", "big", "n1")]


def test_others_do_not_get_the_room_on_it() -> None:
    """A small ask that would fit waits, and is told for whom."""
    c = busy(4)
    c.ask("big", 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    c.ask("small", 1)
    assert c.run() == []
    assert c.s.why("small", "small") == NodeReserved("n0", ("big/big",))
    assert c.s.why("big", "big") == ReservedNodeTooFull("n0", {"vcore": 4}, {"vcore": 3})


def test_of_many_nodes_the_emptiest_that_is_kept_for_others_is_told() -> None:
    """Whether its row is up to date or old; those without room, and open ones, are not told."""
    c = busy(*[4] * 12)
    for i in range(2, 12):
        c.ask(f"more{i}", 3, on=f"n{i}")
    c.ask("two", 1, on="n0")
    for big in ("big0", "big1"):
        c.ask(big, 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    c.ask("small", 1)
    assert c.run() == []
    partition = c.s.cluster.partitions["default"]
    ask = partition.applications["small"].asks["small"]
    n0, n1 = (partition.nodes.nodes[name] for name in ("n0", "n1"))
    partition.nodes.columns.sync()
    assert list(reserved_with_room(partition, ask)) == [n1, n0]
    c.end("two")
    assert list(partition.nodes.columns.stale) == [n0]
    assert list(reserved_with_room(partition, ask)) == [n0, n1]


def test_it_is_placed_there_before_anybody_else() -> None:
    """As soon as there is room, whatever has a higher priority."""
    c = busy(4)
    c.ask("big", 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    c.ask("urgent", 1, priority=100)
    c.end("r0")
    assert c.run() == [Allocated("big", "big", "n0"), Unreserved("big", "big", "n0")]


def test_it_takes_another_node_that_has_room_first() -> None:
    """Then the reserved one is free for all."""
    c = busy(4)
    c.ask("big", 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    c.ask("small", 1)
    c.node("n1", 4)
    assert c.run() == [
        Allocated("big", "big", "n1"),
        Unreserved("big", "big", "n0"),
        Allocated("small", "small", "n0"),
    ]


def test_each_ask_reserves_one_node_and_each_node_is_reserved_once() -> None:
    """Three asks, two nodes."""
    c = busy(4, 4)
    for name in ("x", "y", "z"):
        c.ask(name, 4)
    c.run()
    made = c.run(RESERVE_AFTER_MS)
    assert made == [Reserved("x", "x", "n0"), Reserved("y", "y", "n1")]


def test_the_next_in_line_gets_a_node_that_is_set_free() -> None:
    """It waited for one."""
    c = busy(4)
    c.ask("x", 4)
    c.ask("y", 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    c.end("x")
    assert c.run() == [Reserved("y", "y", "n0")]


def test_an_ask_that_its_queue_holds_back_gets_no_node() -> None:
    """It could not use it; when the queue has room it gets one."""
    c = busy(4, 4, most=4)
    c.ask("other", 2, queue="b", on="n0")
    c.run()
    c.ask("big", 4, queue="b")
    assert c.run(RESERVE_AFTER_MS) == []
    c.end("other")
    assert c.run() == [Reserved("big", "big", "n0")]


def test_a_batch_does_not_jump_the_line_of_its_application() -> None:
    """Of three asks the middle one fits; it is placed before the last one reserves."""
    c = busy(4, 8)
    c.do(AddApplication(ApplicationSpec(id="m", queue="root.a")))
    amounts = {"m0": 8, "m1": 3, "m2": 8}
    c.do(AddAsks(tuple(AskSpec(application="m", key=k, resources=Resources({"vcore": v})) for k, v in amounts.items())))
    c.now += RESERVE_AFTER_MS
    assert c.run() == [Reserved("m", "m0", "n1"), Allocated("m", "m1", "n0")]


def test_one_that_fell_back_in_line_does_not_get_a_node_before_those_that_it_is_behind_now() -> None:
    """The first of its application, with which it was like, has gone."""
    c = busy(4)
    c.ask("first", 4, priority=5)
    c.do(AddAsks((AskSpec(application="first", key="least", resources=Resources({"vcore": 4})),)))
    c.ask("second", 4, priority=3)
    assert c.run() == []
    c.end("first")
    assert c.run(RESERVE_AFTER_MS) == [Reserved("second", "second", "n0")]


def test_the_best_of_those_that_wait_long_enough_gets_a_node() -> None:
    """Those that may have others stopped and those that may not stand apart; the first of either is not what counts."""
    c = busy(4)
    c.ask("least", 4)
    four = Resources({"vcore": 4})
    c.do(AddAsks((AskSpec(application="least", key="better", resources=four, priority=3, allow_preempt_other=False),)))
    c.now += RESERVE_AFTER_MS
    c.do(AddAsks((AskSpec(application="least", key="young", resources=four, priority=5),)))
    assert c.run() == [Reserved("least", "better", "n0")]


def test_a_node_that_is_drained_goes_back() -> None:
    """Ordinary new work is not placed there any longer, so it is not kept for any."""
    c = busy(4, 4)
    c.ask("big", 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    assert Unreserved("big", "big", "n0") in c.do(DrainNode("n0"))
    assert c.run() == [Reserved("big", "big", "n1")]


def test_a_node_that_is_removed_is_replaced() -> None:
    """By the next best."""
    c = busy(4, 4)
    c.ask("big", 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    c.do(RemoveNode("n0"))
    assert c.run() == [Reserved("big", "big", "n1")]


def test_an_ask_that_its_queue_holds_back_is_tried_when_the_queue_has_room_again() -> None:
    """Its own node has had room all the while."""
    c = busy(4, most=6)
    c.ask("big", 4, queue="b")
    c.run(after_ms=RESERVE_AFTER_MS)
    c.node("n1", 5)
    c.do(DrainNode("n1"))
    c.ask("other", 5, queue="b", on="n1")
    c.run()
    c.end("r0")
    assert c.run() == []  # There is room on n0, but the queue has one core left.
    c.end("other")
    decided = c.run()
    assert [type(d) for d in decided] == [Allocated, Unreserved]
    assert decided[0].key == "big"  # type: ignore[union-attr]


def test_of_several_that_a_new_node_would_take_the_first_in_line_gets_it() -> None:
    """Also where the others have waited as long; they keep their own nodes."""
    c = busy(4, 4, 4)
    for key, priority in (("low", 0), ("high", 5), ("middle", 3)):
        c.ask(key, 4, priority=priority)
    c.run(after_ms=RESERVE_AFTER_MS)
    c.node("n3", 4)
    decided = c.run()
    assert [d.key for d in decided if isinstance(d, Allocated)] == ["high"]
    c.node("n4", 4)
    assert [d.key for d in c.run() if isinstance(d, Allocated)] == ["middle"]


@pytest.mark.parametrize("since_ms", [0, HOUR + 5])
def test_a_node_that_cannot_be_used_when_a_full_hour_is_over_goes_back(since_ms: int) -> None:
    """Its queue was filled by work that was reported as running already, be it later than in the first hour."""
    c = busy(4, 8, most=4)
    c.ask("filler", 7, on="n1")
    c.run()
    c.ask("big", 4, queue="b")
    c.run()
    assert c.run(RESERVE_AFTER_MS) == [Reserved("big", "big", "n0")]
    assert c.run(since_ms) == []
    c.do(AddApplication(ApplicationSpec(id="old", queue="root.b")))
    c.do(AddAsks((AskSpec(application="old", key="old", resources=Resources({"vcore": 2}), node="n1"),)))
    c.s.forget()
    assert c.run(HOUR - since_ms % HOUR - 1) == []
    assert c.run(1) == [Unreserved("big", "big", "n0")]


def test_no_node_is_set_aside_where_preemption_goes_by_priority() -> None:
    """There, space is held for preemptors only."""
    c = busy(4, rule="priority")
    c.ask("big", 4)
    c.run()
    assert c.run(10 * RESERVE_AFTER_MS) == []


# -- required nodes -----------------------------------------------------------------------------------------------


def test_an_ask_with_a_required_node_reserves_it_at_once() -> None:
    """And is placed there when there is room."""
    c = Cluster(4)
    c.ask("r", 1, originator=True)
    c.run()
    c.ask("daemon", 4, on="n0", priority=-1)
    assert c.run() == [Reserved("daemon", "daemon", "n0")]
    c.end("r")
    assert c.run() == [Allocated("daemon", "daemon", "n0"), Unreserved("daemon", "daemon", "n0")]


def test_it_takes_the_node_from_an_ordinary_ask() -> None:
    """It has nowhere else to go."""
    c = busy(4, 4)
    c.ask("big", 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    c.ask("daemon", 4, on="n0", priority=-1)
    assert c.run() == [
        Unreserved("big", "big", "n0"),
        Reserved("daemon", "daemon", "n0"),
        Reserved("big", "big", "n1"),
    ]


@pytest.mark.parametrize("priority", [5, -1])
def test_nothing_starts_where_it_would_be_stopped_at_once(priority: int) -> None:
    """The node becomes free enough for the ask that it is set aside for, and a more urgent one requires it."""
    c = busy(6)
    c.ask("small", 2)
    c.run()
    c.ask("big", 4)
    c.run()
    assert c.run(RESERVE_AFTER_MS) == [Reserved("big", "big", "n0")]
    c.end("r0")
    c.ask("daemon", 5, on="n0", priority=priority)
    decided = c.run()
    if priority < 0:
        assert decided[0] == Allocated("big", "big", "n0")
        assert not any(isinstance(d, Evict) for d in decided)
        return
    assert decided[:2] == [Unreserved("big", "big", "n0"), Reserved("daemon", "daemon", "n0")]
    assert [(d.key, d.rule) for d in decided if isinstance(d, Evict)] == [("small", "required-node")]
    c.end("small")
    assert Allocated("daemon", "daemon", "n0") in c.run()


def test_nothing_starts_in_room_kept_for_it_where_it_would_be_stopped_at_once() -> None:
    """Idle work gave its room back for an ask; meanwhile one came that requires the node and may stop that ask."""
    c = Cluster(6)
    c.ask("beside", 3, priority=3)
    c.ask("idle", 3, idle=True)
    c.run()
    c.ask("big", 3, priority=-1)
    assert [d.key for d in c.run() if isinstance(d, Evict)] == ["idle"]
    c.ask("daemon", 1, on="n0", priority=2)
    assert c.run() == [Reserved("daemon", "daemon", "n0")]
    c.end("idle")
    decided = c.run()
    assert decided[0] == Unreserved("big", "big", "n0")
    assert [d.key for d in decided if isinstance(d, Allocated)] == ["daemon"]
    assert not any(isinstance(d, Evict) for d in decided)


def test_a_node_that_is_given_back_is_had_by_one_whose_turn_was_before() -> None:
    """What an ask wants to be with has left the node that is set aside for it; another waits for idle work to stop."""
    c = Cluster(4, 4)
    c.ask("mate", 2, labels={"app": "x"}, where=Constraints(selector=(Requirement(HOSTNAME, "In", ("n0",)),)))
    c.ask("fill", 2, where=Constraints(selector=(Requirement(HOSTNAME, "In", ("n0",)),)))
    c.run()
    c.ask("idle", 4, idle=True)
    c.run()
    near = AffinityTerm((Requirement("app", "In", ("x",)),), HOSTNAME)
    c.ask("friend", 2, where=Constraints(affinity=(near,)))
    c.run()
    assert c.run(RESERVE_AFTER_MS) == [Reserved("friend", "friend", "n0")]
    c.ask("late", 2)
    assert [d.key for d in c.run() if isinstance(d, Evict)] == ["idle"]
    c.end("mate")
    c.end("fill")
    decided = c.run()
    assert Unreserved("friend", "friend", "n0") in decided
    assert [(d.key, d.node) for d in decided if isinstance(d, Allocated)] == [("late", "n0")]


def test_a_node_that_another_one_is_about_to_take_over_goes_to_none_before() -> None:
    """`big` would be stopped at once for `daemon`, which requires the node: so it does not start.

    The node stays set aside for it until `daemon` has its turn, and `small`, before that in order, does not get it.
    """
    c = busy(4)
    c.ask("big", 4)
    c.run()
    assert c.run(RESERVE_AFTER_MS) == [Reserved("big", "big", "n0")]
    c.ask("small", 2, priority=9)
    c.ask("daemon", 4, on="n0", priority=2)
    c.end("r0")
    decided = [d for d in c.s.schedule(c.now, limit=1) if isinstance(d, Allocated | Unreserved)]
    assert decided == [Unreserved("big", "big", "n0"), Allocated("daemon", "daemon", "n0")]


def test_a_node_that_one_takes_over_which_requires_it_is_claimed_by_none_before_it() -> None:
    """`first` could have idle work stopped there only while it is set aside for none."""
    c = PriorityCluster(nodes={"n1": 4, "n2": 4}, rule="guarantee")
    c.fill("runs", 1, tags=on("n1"))
    c.fill("idle", 2, idle=True, tags=on("n1"))
    c.fill("full", 3, tags=on("n2"))
    c.node("spare", 100)
    c.handle(DrainNode("spare"))
    c.submit("aside", 4, 9)
    c.run()
    c.run(RESERVE_AFTER_MS)
    assert [d.node for d in c.decided if isinstance(d, Reserved)] == ["n1"]
    c.submit("first", 2, 5)
    c.submit("requires", 1, tags=on("n1"))
    assert c.run()[0] == ["requires@n1"]


def test_one_that_is_too_large_for_its_node_takes_it_from_nobody() -> None:
    """It could never use it."""
    c = busy(4)
    c.ask("big", 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    c.ask("daemon", 5, on="n0")
    assert c.run() == []


def test_one_that_is_too_large_for_its_node_keeps_none_from_another() -> None:
    """It comes first and gets nothing; another has waited long enough for a node that is there for it."""
    c = Cluster()
    c.do(AddNode(NodeSpec(id="n0", capacity=Resources({"vcore": 2}))))
    c.do(AddNode(NodeSpec(id="n1", capacity=Resources({"vcore": 2, "memory": 3}))))
    amount = Resources({"vcore": 1, "memory": 1})
    c.do(AddApplication(ApplicationSpec(id="app", queue="root.a")))
    c.do(AddAsks(tuple(AskSpec(application="app", key=f"k{i}", resources=amount, priority=-5) for i in range(3))))
    c.run()
    c.now += RESERVE_AFTER_MS
    tags = {TAG_REQUIRED_NODE: "n0"}
    c.do(AddAsks((AskSpec(application="app", key="never", resources=amount, tags=tags),)))
    assert c.run() == [Reserved("app", "k2", "n1")]


def test_several_may_reserve_the_same_node() -> None:
    """Each is placed as the room comes."""
    c = busy(2)
    for name in ("d0", "d1"):
        c.ask(name, 2, on="n0", priority=-1)
    assert c.run() == [Reserved("d0", "d0", "n0"), Reserved("d1", "d1", "n0")]
    c.end("r0")
    c.run()
    c.end("d0")
    assert Allocated("d1", "d1", "n0") in c.run()


def test_a_drained_node_takes_it() -> None:
    """What must run on every node runs on drained ones too."""
    c = Cluster(4)
    c.do(DrainNode("n0"))
    c.ask("daemon", 1, on="n0")
    assert c.run() == [Allocated("daemon", "daemon", "n0")]


@pytest.mark.parametrize("change", ["reload", "priority"])
def test_what_changes_the_order_keeps_a_reservation(change: str) -> None:
    """It is used as before."""
    c = busy(4)
    c.ask("big", 4)
    c.run()
    c.run(RESERVE_AFTER_MS)
    c.do(Configure(spec()) if change == "reload" else SetPriority("big", "big", 3))
    c.end("r0")
    assert Allocated("big", "big", "n0") in c.run()


def test_of_those_that_wait_for_a_node_the_one_whose_application_came_forward_is_first() -> None:
    """Its own place in line was written down before another ask of its application made that more important."""
    c = Cluster(40, 40)
    for number in range(2):
        c.ask(f"r{number}", 20, on=f"n{number}")
    c.run()
    c.ask("first", 30)
    c.ask("second", 30)
    c.do(AddAsks((AskSpec(application="second", key="larger", resources=Resources({"vcore": 35})),)))
    assert c.run() == []
    c.do(SetPriority("second", "larger", 9, "ann"))
    assert [d.key for d in c.run(RESERVE_AFTER_MS) if isinstance(d, Reserved)] == ["larger", "second"]


def test_of_two_nodes_of_one_application_the_younger_has_its_own_hour() -> None:
    """A timer is there for it, whatever became of the older one."""
    c = busy(4, 4)
    c.ask("big", 4)
    c.run()
    assert c.run(RESERVE_AFTER_MS) == [Reserved("big", "big", "n0")]
    c.do(AddAsks((AskSpec(application="big", key="next", resources=Resources({"vcore": 4})),)))
    c.run()
    assert c.run(RESERVE_AFTER_MS) == [Reserved("big", "next", "n1")]
    second = c.now
    c.run(HOUR - RESERVE_AFTER_MS)
    assert c.now < second + HOUR
    assert c.s.next_wakeup_ms() == second + HOUR


@pytest.mark.parametrize("rule", ["guarantee", "priority"])
def test_one_that_requires_its_node_starts_when_that_has_room(rule: str) -> None:
    """Though all the others are full, and nothing else happens."""
    c = busy(4, 4, rule=rule)
    c.ask("big", 4, on="n0")
    c.run()
    c.end("r0")
    assert Allocated("big", "big", "n0") in c.run()


def test_one_that_would_be_stopped_on_the_first_node_starts_on_the_next() -> None:
    """Its room was to come from idle work; now two others have room, the first of which another ask requires. What
    comes behind it in line does not have that node before it.
    """
    c = Cluster(4, 4, 4)
    for number in "02":
        c.ask(f"f{number}", 3, on=f"n{number}")
    c.run()
    c.ask("idle", 4, idle=True)
    c.run()
    c.ask("both", 2, "b", priority=2)
    c.run()
    c.ask("here", 4, on="n0", priority=2)
    c.do(AddAsks((AskSpec(application="both", key="more", resources=Resources({"vcore": 4}), priority=2),)))
    for number in "02":
        c.end(f"f{number}")
    placed = [(d.key, d.node) for d in c.run() if isinstance(d, Allocated)]
    assert placed[0] == ("both", "n2")


def test_one_with_a_node_that_would_be_stopped_elsewhere_starts_where_it_would_not() -> None:
    """It starts on the next node with room; before, it was started and stopped at once."""
    c = Cluster(4, 3, 4)
    c.do(RemoveNode("spare"))
    for number, size in (("0", 3), ("1", 2), ("2", 3)):
        c.ask(f"f{number}", size, on=f"n{number}")
    c.run()
    c.ask("small", 2, "b", priority=2)
    c.run()
    assert c.run(RESERVE_AFTER_MS) == [Reserved("small", "small", "n1")]
    for number in "02":
        c.ask(f"g{number}", 1, on=f"n{number}")
    c.run()
    c.ask("here", 4, on="n0", priority=2)
    assert c.run() == []
    for key in ("f0", "g0", "f2", "g2"):
        c.end(key)
    decided = c.run()
    assert {(d.key, d.node) for d in decided if isinstance(d, Allocated)} == {("small", "n2"), ("here", "n0")}
    assert not [d for d in decided if isinstance(d, Evict)]
