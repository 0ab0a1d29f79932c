"""Gangs that are larger than what they could ever get: nothing is stopped for their placeholders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from priority_clusters import PriorityCluster, cores

from fairlead.core.model.constraints import AffinityTerm, Constraints, Requirement, Taint
from fairlead.core.model.events import AddApplication, AddAsks, Cause, Configure, LabelNode, Release, UpdateNode
from fairlead.core.model.reasons import GangTooLarge, NoNodeSuits, TaskGroupTooLarge, WaitingForPlaceholder
from fairlead.core.model.resources import Limits, Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, LimitSpec, QueueSpec
from fairlead.policy.eligibility.gang_size import is_of_gang_too_large

RULES = ["guarantee", "priority", "both"]


def cluster(rule: str, most: int | None = None, limits: tuple[LimitSpec, ...] = (), **nodes: int) -> PriorityCluster:
    """Leaf `a` is guaranteed eight cores, so that it may take them back from `b`."""
    rules = {"preemption.delay": "1ms"}
    maximum = cores(most) if most is not None else None
    a = QueueSpec(name="a", guaranteed=cores(8), properties=rules, max=maximum, limits=limits)
    return PriorityCluster(a, QueueSpec(name="b"), nodes=nodes or {"n1": 4}, rule=rule)


def amount(cores: int) -> Resources:
    return Resources({"vcore": 1_000 * cores})


def gang(c: PriorityCluster, members: int, each: int = 1, user: str = "u", name: str = "gang", **own: Any) -> None:
    """Placeholders of a higher priority than what runs."""
    whole = amount(members * each)
    spec = ApplicationSpec(id=name, queue="root.a", placeholder_ask=whole, user=user)
    c.handle(AddApplication(spec))
    size = amount(each)
    more = {"priority": 5, "placeholder": True, "task_group": "t"} | own
    c.handle(
        AddAsks(tuple(AskSpec(application=name, key=f"{name}-{i}", resources=size, **more) for i in range(members)))
    )


def fill(c: PriorityCluster, count: int) -> None:
    """Low work in the other queue, a core each."""
    for i in range(count):
        c.fill(f"low{i}", 1, 0, "root.b")


def stopped(c: PriorityCluster) -> int:
    """How many are told to stop in some runs, in which all that is told to stop leaves at once."""
    total = 0
    for _ in range(12):
        _, told = c.run(20_000)
        for key in told:
            c.gone(key)
        total += len(told)
    return total


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_stopped_for_a_gang_larger_than_all_nodes(rule: str) -> None:
    c = cluster(rule)
    fill(c, 4)
    gang(c, 5)
    assert stopped(c) == 0
    c.node("n2", 1)
    assert stopped(c) == 4, "the node makes it possible"


@pytest.mark.parametrize("rule", RULES)
def test_what_runs_already_is_no_gang_that_has_to_be_whole(rule: str) -> None:
    c = cluster(rule)
    fill(c, 3)
    gang(c, 3, each=2)
    assert stopped(c) == 0
    c.handle(AddAsks((AskSpec(application="gang", key="beside", resources=amount(1)),)))
    started, told = c.run(1_000)
    assert started == ["beside@n1"], "it is of no task group: the application runs"
    for key in told:
        c.gone(key)
    assert len(told) + stopped(c) == 2, "for one member; what is left is not enough for the next"


@pytest.mark.parametrize("rule", RULES)
def test_a_gang_that_could_be_whole_has_work_stopped(rule: str) -> None:
    c = cluster(rule)
    fill(c, 4)
    gang(c, 4)
    assert stopped(c) == 4


@pytest.mark.parametrize("rule", RULES)
def test_what_is_free_it_takes_all_the_same(rule: str) -> None:
    c = cluster(rule)
    fill(c, 2)
    gang(c, 5)
    assert len(c.run()[0]) == 2
    assert stopped(c) == 0


@pytest.mark.parametrize("rule", RULES)
def test_a_maximum_that_was_lowered_keeps_it_from_being_whole(rule: str) -> None:
    c = cluster(rule, n1=4)
    fill(c, 4)
    gang(c, 4)
    lowered = _with_most(c, 3)
    c.handle(Configure(lowered))
    assert stopped(c) == 0
    c.handle(Configure(c.spec))
    assert stopped(c) == 4


@pytest.mark.parametrize("rule", RULES)
def test_a_limit_of_its_user_keeps_it_from_being_whole(rule: str) -> None:
    limit = LimitSpec(users=("u",), max_resources=Limits({"vcore": 3_000}))
    c = cluster(rule, limits=(limit,))
    fill(c, 4)
    gang(c, 4)
    assert stopped(c) == 0
    c.handle(Configure(_with_limits(c, ())))
    assert stopped(c) == 4


@pytest.mark.parametrize("rule", ["guarantee", "priority", "both"])
def test_idle_work_is_not_taken_back_for_it_either(rule: str) -> None:
    c = cluster(rule)
    for i in range(4):
        c.fill(f"idle{i}", 1, 0, "root.a", idle=True)
    gang(c, 5)
    assert stopped(c) == 0
    c.node("n2", 1)
    assert stopped(c) == 4


# -- more members than could stand on the nodes -------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_stopped_for_more_members_than_all_nodes_could_hold(rule: str) -> None:
    c = cluster(rule, n1=3, n2=3)
    fill(c, 6)
    gang(c, 3, each=2)
    assert stopped(c) == 0, "six cores, but one of the three finds no node with two"
    c.node("n3", 2)
    assert stopped(c) == 4, "one starts on the new node"


@pytest.mark.parametrize("rule", RULES)
def test_a_node_that_becomes_larger_makes_it_possible(rule: str) -> None:
    c = cluster(rule, n1=3, n2=3)
    fill(c, 6)
    gang(c, 3, each=2)
    assert stopped(c) == 0
    c.handle(UpdateNode("n2", amount(4)))
    assert stopped(c) >= 4


@pytest.mark.parametrize("rule", RULES)
def test_only_nodes_that_its_selector_names_count(rule: str) -> None:
    c = cluster(rule, n1=3)
    c.node("n2", 3, disk="ssd")
    fill(c, 6)
    where = Constraints(selector=(Requirement("disk", "In", ("ssd",)),))
    gang(c, 4, where=where)
    assert stopped(c) == 0
    c.handle(LabelNode("n1", attributes={"disk": "ssd"}))
    assert stopped(c) == 4


@pytest.mark.parametrize("rule", RULES)
def test_nodes_whose_taint_it_does_not_tolerate_count_for_nothing(rule: str) -> None:
    c = cluster(rule, n1=3, n2=3)
    fill(c, 6)
    c.handle(LabelNode("n2", taints=(Taint("kept", "yes"),)))
    gang(c, 4)
    assert stopped(c) == 0
    c.handle(LabelNode("n2", taints=()))
    assert stopped(c) == 4


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("apart", ["port", "anti-affinity"])
def test_of_those_that_keep_apart_each_node_holds_one(rule: str, apart: str) -> None:
    c = cluster(rule, n1=2, n2=2)
    fill(c, 4)
    selector = (Requirement("job", "In", ("mpi",)),)
    by_label = Constraints(anti_affinity=(AffinityTerm(selector),))
    where = Constraints(ports=("TCP/0.0.0.0/80",)) if apart == "port" else by_label
    gang(c, 3, where=where, labels={"job": "mpi"})
    assert stopped(c) == 0
    c.node("n3", 1)
    assert stopped(c) == 2, "one starts on the new node"


@pytest.mark.parametrize("rule", RULES)
def test_one_member_less_may_be_what_makes_it_possible(rule: str) -> None:
    c = cluster(rule, n1=3, n2=3)
    fill(c, 6)
    gang(c, 3, each=2)
    c.handle(LabelNode("n2", {"disk": "ssd"}))  # Nothing has only started any more.
    assert stopped(c) == 0
    c.handle(Release("gang", "gang-2", Cause.STOPPED_BY_RM))
    assert stopped(c) == 4


@pytest.mark.parametrize("rule", RULES)
def test_behind_one_that_is_too_large_another_gang_has_work_stopped(rule: str) -> None:
    c = cluster(rule, n1=3, n2=3)
    fill(c, 6)
    gang(c, 3, each=2)
    gang(c, 2, each=2, name="other")
    assert stopped(c) == 4
    assert {e.on_behalf_of for e in c.evictions()} == {"other/other-0", "other/other-1"}


def test_members_of_different_sizes_are_not_compared() -> None:
    c = cluster("priority", n1=4)
    c.fill("low", 4, 0, "root.b")
    c.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a", placeholder_ask=amount(4))))
    more = {"priority": 5, "placeholder": True, "task_group": "t"}
    sizes = {"large": 2, "small": 1, "other": 1}
    asks = (AskSpec(application="gang", key=key, resources=amount(n), **more) for key, n in sizes.items())
    c.handle(AddAsks(tuple(asks)))
    assert stopped(c) == 1


def test_nor_are_those_for_different_nodes() -> None:
    c = cluster("priority", n1=2)
    c.node("n2", 2, disk="ssd")
    fill(c, 4)
    c.handle(AddApplication(ApplicationSpec(id="gang", queue="root.a", placeholder_ask=amount(4))))
    more = {"priority": 5, "placeholder": True, "task_group": "t", "resources": amount(2)}
    on_disk = Constraints(selector=(Requirement("disk", "In", ("ssd",)),))
    not_there = Constraints(selector=(Requirement("disk", "DoesNotExist"),))
    places = {"one": on_disk, "other": not_there}
    c.handle(AddAsks(tuple(AskSpec(application="gang", key=key, where=where, **more) for key, where in places.items())))
    assert stopped(c) == 4


def test_what_is_free_more_members_than_nodes_take_too() -> None:
    c = cluster("priority", n1=3, n2=3)
    fill(c, 1)
    gang(c, 3, each=2)
    assert len(c.run()[0]) == 2
    why = c.s.why("gang", "gang-2")
    assert why == TaskGroupTooLarge("t", 3, 2, {"vcore": 2_000})
    sentence = "task group t has 3 members of cpu 2 each; all nodes together could hold at most 2 of them"
    assert why.sentence() == sentence


def test_why_says_how_large_the_gang_is() -> None:
    c = cluster("priority")
    gang(c, 5)
    c.run()
    why = c.s.why("gang", "gang-4")
    assert why == GangTooLarge({"vcore": 5_000}, {"vcore": 4_000})
    assert why.sentence() == "its gang needs cpu 5 together; all nodes together have cpu 4"
    part = c.s.cluster.partitions["default"]
    assert is_of_gang_too_large(part, part.applications["gang"].asks["gang-4"])


ON_SSD = Constraints(selector=(Requirement("disk", "In", ("ssd",)),))


def test_why_says_which_nodes_do_not_suit_its_members() -> None:
    """It said that all nodes together could hold one, of three that are large enough: the selector is the cause."""
    c = cluster("priority", n1=2, n3=2)
    c.node("n2", 2, disk="ssd")
    gang(c, 2, each=2, where=ON_SSD)
    c.run()
    why = c.s.why("gang", "gang-1")
    assert why == TaskGroupTooLarge("t", 2, 1, {"vcore": 2_000}, {"selector": 2})
    assert why.sentence().endswith(
        "could hold at most 1 of them; some do not suit it: 2 without an attribute that it asks for"
    )


def test_why_says_that_members_keep_apart() -> None:
    """And a taint that they do not tolerate."""
    c = cluster("priority", n1=4, n2=4, n3=4)
    c.handle(LabelNode("n2", taints=(Taint("kept", "yes"),)))
    gang(c, 3, where=Constraints(ports=("TCP/0.0.0.0/80",)))
    c.run()
    why = c.s.why("gang", "gang-2")
    assert why == TaskGroupTooLarge("t", 3, 2, {"vcore": 1_000}, {"taint": 1}, apart=True)
    assert "3 members of cpu 1 each, no two of them on one node; all nodes together" in why.sentence()


@pytest.mark.parametrize("low", [0, 4])
def test_where_no_node_suits_its_members_that_is_why(low: int) -> None:
    """Also where all nodes are full."""
    c = cluster("priority")
    fill(c, low)
    gang(c, 2, where=ON_SSD)
    c.run()
    assert c.s.why("gang", "gang-0") == NoNodeSuits({"vcore": 1_000}, {"selector": 1}, 1)


def test_the_work_of_a_gang_that_is_too_large_is_told_so_too() -> None:
    """It was told to wait for its placeholder, which waits in vain."""
    c = cluster("priority")
    fill(c, 4)
    gang(c, 5)
    c.handle(AddAsks((AskSpec(application="gang", key="real", resources=amount(1), task_group="t"),)))
    c.run()
    assert c.s.why("gang", "real") == c.s.why("gang", "gang-0") == GangTooLarge({"vcore": 5_000}, {"vcore": 4_000})


def test_the_work_of_a_gang_that_may_become_whole_waits_for_its_placeholder() -> None:
    """As that waits for room."""
    c = cluster("priority")
    c.fill("high", 2, 9, "root.b")
    c.fill("other", 2, 9, "root.b")
    gang(c, 4)
    c.handle(AddAsks((AskSpec(application="gang", key="real", resources=amount(1), task_group="t"),)))
    c.run()
    assert c.s.why("gang", "real") == WaitingForPlaceholder("t", 4, 0)


def _with_most(c: PriorityCluster, most: int) -> ClusterSpec:
    return _with_leaf(c, max=cores(most))


def _with_limits(c: PriorityCluster, limits: tuple[LimitSpec, ...]) -> ClusterSpec:
    return _with_leaf(c, limits=limits)


def _with_leaf(c: PriorityCluster, **changes: Any) -> ClusterSpec:
    part = c.spec.partitions[0]
    a, b = part.root.queues
    root = replace(part.root, queues=(replace(a, **changes), b))
    return replace(c.spec, partitions=(replace(part, root=root),))
