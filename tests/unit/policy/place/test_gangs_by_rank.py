"""Gangs one of which can never be whole, where rank decides: the other goes on, and nothing goes round in circles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from priority_clusters import PriorityCluster, only_on

from fairlead.core.books.eviction_history import HOUR_MS
from fairlead.core.model.constraints import HOSTNAME, AffinityTerm, Constraints, Requirement
from fairlead.core.model.decisions import Evict
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Release, UpdateNode
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, QueueSpec

APART = AffinityTerm((Requirement("apart", "In", ("y",)),))


def cores(count: int) -> Resources:
    return Resources({"vcore": 1000 * count})


def on_nodes(*nodes: str) -> Constraints:
    """On these nodes, with a port that no two of a node can have."""
    return Constraints(node_terms=((Requirement(HOSTNAME, "In", nodes),),), ports=("TCP/0.0.0.0/1",))


def members(
    c: PriorityCluster, name: str, size: int, priority: int, where: list[Constraints], **more: Any
) -> list[AskSpec]:
    """A gang comes; its placeholders, which do not yet."""
    whole = cores(size * len(where))
    spec = ApplicationSpec(id=name, queue="root.a", placeholder_ask=whole, placeholder_timeout_ms=10**9)
    c.handle(AddApplication(spec))
    return [
        AskSpec(
            application=name,
            key=f"{name}{i}",
            resources=cores(size),
            priority=priority,
            placeholder=True,
            task_group=f"t{i}",
            where=each,
            **more,
        )
        for i, each in enumerate(where)
    ]


def rounds(c: PriorityCluster) -> list[list[str]]:
    """What is told to stop, call by call, until nothing is; each goes at once."""
    told: list[list[str]] = []
    while len(told) < 10 and (stopped := c.run(0)[1]):
        told.append(stopped)
        for each in [d for d in c.decided if isinstance(d, Evict)][-len(stopped) :]:
            c.gone(each.key, each.application, each.cause)
    return told


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_what_is_kept_for_other_work_does_not_end_the_wait_for_a_gang(rule: str) -> None:
    """Four with one port never stand on three nodes. Of those that take their room one is no member of the other gang,
    and keeps its members away; that is no reason to take the room from all again.
    """
    c = PriorityCluster(nodes={"n0": 3, "n1": 3, "n2": 4, "n3": 3}, rule=rule)
    for node in ("n0", "n1", "n3"):
        c.fill(node, 3, 9, where=only_on(node))
    first, *more = members(c, "low", 3, 0, [Constraints(anti_affinity=(APART,))] * 4, labels={"apart": "y"})
    c.handle(AddAsks((first,)))
    assert c.run()[0] == ["low0@n2"]
    for node in ("n0", "n1", "n3"):
        c.finished(node)
    c.handle(AddAsks(tuple(members(c, "high", 2, 2, [on_nodes("n0", "n1", "n3")] * 4))))
    assert len(c.run()[0]) == 3
    c.handle(AddAsks(tuple(more)))
    where = Constraints(node_terms=only_on("n0").node_terms, anti_affinity=(APART,))
    c.submit("other", 2, 1, where=where, labels={"apart": "y"})
    assert rounds(c) == [["high0", "high1", "high2"]]
    apps = c.s.cluster.partitions["default"].applications
    assert apps["high"].gives_way_to is apps["low"]
    assert [ask.key for ask in apps["low"].standing()] == ["low0", "low1", "low2"]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_a_gang_gives_way_to_the_same_one_twice_in_an_hour(rule: str) -> None:
    """The first of the other gang's members stands on the one node that the last could use, again and again."""
    c = PriorityCluster(nodes={"n1": 2, "n0": 2, "n2": 2}, rule=rule)
    stands, anywhere, there = members(c, "low", 2, 0, [only_on("n2"), Constraints(), only_on("n0")])
    c.handle(AddAsks((stands,)))
    c.handle(AddAsks(tuple(members(c, "high", 2, 2, [on_nodes("n0", "n1")] * 3))))
    assert len(c.run()[0]) == 3
    c.handle(AddAsks((anywhere, there)))
    assert len(rounds(c)) == 1

    def another(gone: str, key: str) -> list[list[str]]:
        c.handle(Release("low", gone, Cause.FINISHED))
        found = rounds(c)
        c.handle(AddAsks((replace(anywhere, key=key),)))
        return found + rounds(c)

    assert len(another("low1", "low3")) == 1
    assert not another("low2", "low4"), "it gave way twice"
    c.submit("new", 9)
    assert not rounds(c)
    c.now_ms += HOUR_MS
    assert len(rounds(c)) == 1


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_room_of_what_was_told_to_stop_counts_once_beside_the_member_that_gets_it(rule: str) -> None:
    """The sum of all nodes seemed too small for it, and the gangs waited until that work had left."""
    c = PriorityCluster(nodes={"n0": 2, "n1": 1, "n2": 1}, rule=rule)
    c.fill("low", 2, 0, where=only_on("n0"), grace_ms=10_000)
    stands, *more = members(c, "old", 1, 5, [only_on("n1"), Constraints(), Constraints()])
    c.handle(AddAsks((stands,)))
    there, another = members(c, "young", 1, 5, [only_on("n2"), Constraints()])
    c.handle(AddAsks((there,)))
    assert len(c.run()[0]) == 2
    c.submit("top", 1, 9, where=only_on("n0"))
    c.handle(AddAsks((*more, another)))
    assert c.run()[1] == ["low", "young0"]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_a_gang_that_cannot_be_whole_leaves_weaker_work_what_was_stopped_for_it(rule: str) -> None:
    """Idle work is not stopped for the gang, and what is given up for another is not its either."""
    c = PriorityCluster(nodes={"n1": 2, "n2": 4, "n3": 2}, rule=rule)
    c.fill("high", 2, 9, where=only_on("n3"))
    c.fill("half", 2, 9, where=only_on("n2"))
    c.fill("small", 1, 9, where=only_on("n2"), idle=True)
    c.fill("large", 2, -1, where=only_on("n1"), idle=True)
    c.submit("weak", 2, 0, where=only_on("n1"))
    assert c.run()[1] == ["large"]
    c.handle(AddAsks(tuple(members(c, "gang", 2, 2, [Constraints()] * 3))))
    assert not c.run()[1]
    c.gone("large")
    assert c.run() == (["weak@n1"], [])


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_what_is_in_vain_for_a_gang_is_not_for_others_of_its_size(rule: str) -> None:
    c = PriorityCluster(nodes={"n1": 2, "n2": 4, "n3": 2}, rule=rule)
    for node in ("n1", "n2", "n3"):
        c.fill(f"high-{node}", 2, 9, where=only_on(node))
    c.fill("small", 1, 9, where=only_on("n2"), idle=True)
    c.handle(AddAsks(tuple(members(c, "gang", 2, 2, [Constraints()] * 3))))
    assert not c.run()[1]
    c.submit("alike", 2, 1)
    assert c.run()[1] == ["small"]


@pytest.mark.parametrize("rule", ["priority", "both"])
def test_a_gang_for_which_idle_work_would_go_in_vain_has_room_that_only_gathers_for_weaker_work(rule: str) -> None:
    """Nothing was stopped for that; what is free it takes before what is weaker."""
    leaves = (QueueSpec(name="a"), QueueSpec(name="b", properties={"wait.max": "10s"}))
    c = PriorityCluster(*leaves, nodes={"n1": 3, "n2": 4, "n3": 2}, rule=rule)
    c.fill("high", 2, 9, where=only_on("n3"))
    c.fill("half", 2, 9, where=only_on("n2"))
    c.fill("small", 1, 9, where=only_on("n2"), idle=True)
    c.fill("large", 3, 9, where=only_on("n1"))
    c.submit("weak", 3, 0, "root.b", where=only_on("n1"))
    c.run(20_000)
    assert c.nominated() == {"weak": "n1"}
    c.handle(AddAsks(tuple(members(c, "gang", 2, 2, [Constraints()] * 3))))
    c.handle(UpdateNode("n1", cores(5)))
    assert c.run() == (["gang0@n1"], [])
