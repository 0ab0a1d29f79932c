"""What keeps other work from going elsewhere: an ask starts when that does."""

from __future__ import annotations

from unit.insight.test_explain import GPU, Lab, leaf, spec
from unit.insight.test_levers import lab, wanting

from fairlead.core.model.constraints import Taint
from fairlead.core.model.events import AddNode, DrainNode, LabelNode, Leaving, Release, ReserveAsk
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import TAG_REQUIRED_NODE, NodeSpec
from fairlead.insight.elsewhere import elsewhere


def behind_a_kept_turn(*taints: Taint) -> Lab:
    """`late` may run on node-1 alone, and waits behind `big`, whose turn is kept and which could have node-2."""
    there = lab({GPU: 4})
    there.scheduler.handle(LabelNode("node-1", {"fast": "yes"}), 0)
    there.submit("long", "root.a", amounts={GPU: 3}, time_limit_ms=3_600_000, priority=9)
    there.submit("big", "root.a", amounts={GPU: 4}, priority=5)
    there.scheduler.handle(ReserveAsk("big", "big", True, "ann", "a deadline"), 0)
    there.scheduler.handle(AddNode(NodeSpec(id="node-2", capacity=Resources({GPU: 4}), taints=taints)), 0)
    if not taints:
        there.scheduler.handle(DrainNode("node-2"), 0)
    there.submit("late", "root.a", where=wanting("fast", "yes"))
    return there


def test_a_taint_without_which_other_work_would_go_elsewhere() -> None:
    """Of two taints both have to go, and a node like that one would not help."""
    found = behind_a_kept_turn(Taint("team", "x"), Taint("broken", "yes")).changes("late")
    assert found["taint"] == (
        "runs if node node-2 had no taint team=x:NoSchedule and node node-2 had no taint broken=yes:NoSchedule"
    )
    assert "nodes" in found, "one like node-1 would do"


def test_a_drained_node_to_which_other_work_would_go() -> None:
    assert behind_a_kept_turn().changes("late")["drain"] == "runs if node node-2 were not drained"


def test_one_more_node_for_other_work() -> None:
    """What waits may run on its node alone: no node of its own helps it, but one for what comes first."""
    there = behind_a_kept_turn(Taint("team", "x"))
    there.submit("pinned", "root.a", tags={TAG_REQUIRED_NODE: "node-1"})
    there.scheduler.handle(Release("late", "late"), 0)
    assert there.changes("pinned")["nodes"] == "runs if there were one more node like node-1"


def test_where_nothing_else_waits_nothing_else_is_tried() -> None:
    there = lab({GPU: 1}, {GPU: 1})
    there.scheduler.handle(LabelNode("node-2", {}, (Taint("team", "x"),)), 0)
    there.submit("runs", "root.a")
    there.submit("late", "root.a")
    partition = there.scheduler.cluster.partitions["default"]
    assert not list(elsewhere(partition, partition.applications["late"].asks["late"]))


def test_a_maximum_that_idle_work_is_not_under_lets_others_come_first() -> None:
    """What is plain takes a part of the room then that larger idle work would take as a whole."""
    there = Lab(spec(leaf("a", {GPU: 1}), leaf("b")), {GPU: 1}, {GPU: 3})
    there.submit("goes", "root.b", amounts={GPU: 3})
    there.submit("runs", "root.a")
    there.submit("plain", "root.a")
    there.submit("large", "root.b", amounts={GPU: 3}, idle=True)
    there.submit("late", "root.a", amounts={GPU: 2}, idle=True)
    there.scheduler.handle(Leaving("goes", "goes"), 0)
    assert there.changes("late")["queue-max"] == "runs if the maximum of root.a were gpu 2 (now gpu 1)"
