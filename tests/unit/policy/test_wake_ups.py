"""Wake-ups of what waits for something that others were promised: each of these was once missing.

Every test fails when the one line that it is about is taken out; the test says which.
"""

from __future__ import annotations

import pytest
from priority_clusters import PriorityCluster, cores, only_on

from fairlead.core.model.constraints import Constraints, Requirement
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Release, UpdateNode
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, LimitSpec, QueueSpec


def nominated_beside_one_that_waits(c: PriorityCluster) -> None:
    """`high` (2 cores of queue a) waits on n1 for `other` of queue b; `low` (1 core of a) would fit on n2."""
    c.fill("other", 2, 1, "root.b")
    c.submit("high", 2, 9, "root.a")
    assert c.run()[1] == ["other"]
    assert c.nominated() == {"high": "n1"}
    c.submit("low", 1, 0, "root.a")
    assert c.run() == ([], [])


@pytest.mark.parametrize("by", ["maximum", "limit"])
def test_room_that_is_promised_no_longer_lets_others_start(by: str) -> None:
    """`Nominations.give_room_back` wakes what waits under the maxima and limits where room was kept."""
    limit = LimitSpec(users=("nobody",), max_resources=Limits({"vcore": 2000}))
    queue = QueueSpec(name="a", max=cores(2)) if by == "maximum" else QueueSpec(name="a", limits=(limit,))
    c = PriorityCluster(queue, QueueSpec(name="b"), nodes={"n1": 2, "n2": 1})
    nominated_beside_one_that_waits(c)
    c.handle(Release("high", "high", Cause.STOPPED_BY_RM))
    assert c.nominated() == {}
    assert c.run()[0] == ["low@n2"]


def test_the_end_of_a_rest_lets_others_be_stopped_again() -> None:
    """`backoff.on_timer` says that the books have changed: what was in vain while the application rested is not now."""
    queue = QueueSpec(
        name="a", properties={"application.unschedasks.backoff": "2", "application.unschedasks.backoff.delay": "30s"}
    )
    young = QueueSpec(name="b", properties={"preemption.min.runtime": "20s"})
    c = PriorityCluster(queue, young, nodes={"n1": 3, "n2": 3})
    c.fill("one", 2, 1, "root.b")
    c.fill("two", 2, 1, "root.b")
    c.handle(AddApplication(ApplicationSpec(id="big", queue="root.a")))
    two = Resources({"vcore": 2000})
    c.handle(AddAsks(tuple(AskSpec(application="big", key=f"k{i}", resources=two, priority=9) for i in range(3))))
    assert c.run() == ([], []), "three that fit nowhere, and what runs is protected: the application rests"
    for key in ("k1", "k2"):
        c.handle(Release("big", key, Cause.STOPPED_BY_RM))
    assert c.run(21_000) == ([], []), "it rests, though nothing is protected any longer"
    assert c.run(30_000) == ([], ["two"])


def test_work_that_is_told_to_stop_lets_others_start_beside_those_who_hold_room() -> None:
    """`Partition.evict` wakes who waits for promised room: what leaves counts as gone there.

    In queue a (4 cores) `first` runs (2), and `high` is promised 2. `low` (1) has its node free, but no room beside
    them; it has as soon as `first` is told to stop, for somebody of another queue.
    """
    c = PriorityCluster(QueueSpec(name="a", max=cores(4)), QueueSpec(name="b"), nodes={"n1": 2, "n2": 2, "n3": 1})
    c.submit("other", 2, 1, "root.b", where=only_on("n1"))
    c.submit("first", 2, 1, "root.a", where=only_on("n2"))
    assert len(c.run()[0]) == 2
    c.submit("high", 2, 9, "root.a", where=only_on("n1"))
    assert c.run() == ([], ["other"])
    c.submit("low", 1, 0, "root.a", where=only_on("n3"))
    assert c.run() == ([], [])
    c.submit("urgent", 2, 9, "root.b", where=only_on("n2"))
    assert c.run() == (["low@n3"], ["first"])


def test_a_limit_that_moves_lets_work_be_stopped_although_the_nodes_are_full() -> None:
    """`Demand.touch_untimed`: behind a limit nobody has a timer for preemption, and no node gained enough to wake him.

    Of `big` and `next` the first one has its turn at once, and the other gets a timer of its own.
    """
    limit = LimitSpec(users=("*",), max_resources=Limits({"vcore": 2000}))
    mine = QueueSpec(name="a", guaranteed=cores(4), limits=(limit,), properties={"preemption.delay": "1s"})
    c = PriorityCluster(mine, QueueSpec(name="b"), nodes={"n1": 4}, rule="guarantee")
    c.fill("own", 1, 0, "root.a")
    for i in range(3):
        c.fill(f"other{i}", 1, 0, "root.b")
    c.submit("big", 2, 0, "root.a")
    c.submit("next", 2, 0, "root.a")
    assert c.run(5_000) == ([], []), "nobody is stopped for work that a limit holds back"
    c.finished("own")
    assert c.run() == ([], ["other2"]), "one core is free, and two are needed"
    part = c.s.cluster.partitions["default"]
    assert part.timers.due_ms("default", "next", "preempt") is not None


def test_what_comes_to_a_queue_that_is_known_to_be_full_has_work_stopped_there() -> None:
    """`QueueLine.demand` marks the shape: a queue remembers that it is full for that longer than anything of it waits.

    `first` finds queue a full and goes. A call that ends with the first placement looks through what others ask for of
    that shape, all in b, and finds nothing of it held up; one of those still waits when `high` comes to a.
    """
    a = QueueSpec(name="a", parent=True, max=cores(4), queues=(QueueSpec(name="x"), QueueSpec(name="y")))
    c = PriorityCluster(a, QueueSpec(name="b"), nodes={"n1": 16})
    c.fill("low", 3, 0, "root.a.y")
    c.submit("first", 2, 0, "root.a.x")
    assert c.run() == ([], [])
    for key in ("one", "two"):
        c.submit(key, 2, 1, "root.b")
    c.handle(Release("first", "first", Cause.STOPPED_BY_RM))
    c.s.schedule(c.now_ms, 1)
    c.submit("high", 2, 9, "root.a.x")
    assert c.run() == (["two@n1"], ["low"])
    assert c.nominated() == {"high": "n1"}


def test_a_node_that_is_given_back_lets_nothing_start_above_its_limit() -> None:
    """`limited` has a node set aside, and its user's limit fills up. `large` gives its own back in the turn in which
    nodes that are set aside are looked at, and that has `limited` tried there.
    """
    limit = LimitSpec(limit="ann", users=("ann",), max_resources=cores(5))
    c = PriorityCluster(rule="guarantee", limits=(limit,), nodes={"n0": 1})
    for name, size in (("n1", 4), ("n2", 6), ("n3", 2)):
        c.node(name, size, zone="z")
    c.fill("one", 3)
    other = c.fill("other", 3)
    assert other == "n2"
    c.submit("large", 6, user="bob")
    c.run(2_000)
    in_zone = Constraints(node_terms=((Requirement("zone", "In", ("z",)),),))
    c.submit("limited", 4, user="ann", where=in_zone)
    c.run(2_000)
    c.submit("small", 2, queue="root.b", user="ann")
    assert c.run()[0] == ["small@n3"]
    c.handle(UpdateNode("n2", Resources({"vcore": 5_000})))
    c.finished("other")
    assert c.run() == ([], []), "ann has 2 of 5 cores, and 4 more are asked for"
    c.finished("small")
    assert c.run()[0] == ["limited@n2"]
