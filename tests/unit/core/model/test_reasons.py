"""Why something waits: what the sentences say, with the numbers that matter and no others."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import fairlead
from fairlead.core.model import reasons
from fairlead.core.model.reasons import (
    ClusterFull,
    LimitPromised,
    LimitReached,
    NodeReserved,
    NoNodeHasRoom,
    NoNodes,
    NoNodeSuits,
    QueueFull,
    QueuePromised,
    Reason,
    ReservedNodeTooFull,
    TaskGroupTooLarge,
    TooBigForEveryNode,
    WaitingForVictims,
)

NEEDED = {"vcore": 4000, "memory": 1024**3}


def test_a_partition_without_a_node() -> None:
    """By name."""
    assert NoNodes("gpu").sentence() == "there is no node in partition gpu"


def test_what_no_node_could_hold_names_only_what_is_short() -> None:
    """Memory is large enough, so it is not spoken of."""
    largest = {"vcore": 2000, "memory": 2 * 1024**3}
    assert TooBigForEveryNode(NEEDED, largest, 1).sentence() == ("needs cpu 4 on one node; the only node has cpu 2")
    assert "the largest of 3 nodes have cpu 2" in TooBigForEveryNode(NEEDED, largest, 3).sentence()


def test_a_node_that_comes_closest_is_named_with_what_it_keeps() -> None:
    """What is held there is not free for this ask."""
    free = {"vcore": 4000, "memory": 2 * 1024**3}
    reason = NoNodeHasRoom(NEEDED, free, "n1", 2, 3, {"vcore": 1000}, {"taint": 1}, ("big/big",))
    said = reason.sentence()
    assert said.startswith("needs cpu 4 on one node; n1 has cpu 4 free, cpu 1 kept for big")
    assert "(closest of 2 open nodes)" in said
    assert "others do not suit it: " in said
    many = replace(reason, held_for=tuple(f"a/{number}" for number in range(9)))
    assert "cpu 1 kept for a/0, a/1, a/2 and 6 more" in many.sentence()


def test_without_an_open_node_no_node_is_named() -> None:
    """All are drained."""
    assert NoNodeHasRoom({"vcore": 1000}, {}, "", 0, 2).sentence() == "needs cpu 1; none of 2 nodes takes new work"
    assert NoNodeHasRoom({"vcore": 1000}, {}, "", 0, 1).sentence() == "needs cpu 1; the only node takes no new work"


def test_the_filters_that_keep_it_off_are_counted() -> None:
    """One node is spoken of as one."""
    assert NoNodeSuits(NEEDED, {"selector": 1}, 1).sentence().startswith("the only node does not suit it: ")
    assert NoNodeSuits(NEEDED, {"selector": 2}, 2).sentence().startswith("none of 2 nodes suits it: ")
    rest = "1 with a taint that it does not tolerate, 2 not open to it"
    assert NoNodeSuits(NEEDED, {"taint": 1}, 3).sentence() == f"none of 3 nodes suits it: {rest}"


def test_all_nodes_together_say_what_is_free_of_how_much() -> None:
    """Only of what is short."""
    full = ClusterFull(NEEDED, {"vcore": 1000, "memory": 2 * 1024**3}, {"vcore": 8000, "memory": 4 * 1024**3})
    assert full.sentence() == "needs cpu 4; all nodes together have cpu 1 free of cpu 8"


def test_of_what_is_used_beyond_what_there_is_nothing_is_free() -> None:
    """A node that shrank, a maximum that was lowered, work of others on a full node: no number below 0 in words."""
    less = {"vcore": -1000, "memory": 2 * 1024**3}
    for full in (
        NoNodeHasRoom(NEEDED, less, "n1", 1, 1),
        ClusterFull(NEEDED, less, NEEDED),
        QueueFull("root.a", NEEDED, less, NEEDED),
        LimitReached("user", "ann", "root.a", NEEDED, less, NEEDED),
        ReservedNodeTooFull("n1", NEEDED, less),
    ):
        assert "cpu 0" in full.sentence()
        assert "-" not in full.sentence()
        assert full.as_dict()["free"] == less


def test_room_that_is_promised_names_whom_to() -> None:
    """So that one sees what to wait for."""
    said = QueuePromised("root.a", {"vcore": 2000}, {"vcore": 3000}, ("x/k", "y/k"))
    assert said.sentence() == ("needs cpu 2; what queue root.a has left of its maximum, cpu 3, is promised to x/k, y/k")
    assert said.as_dict()["promised_to"] == ["x/k", "y/k"]


def test_of_much_that_is_waited_for_a_sentence_names_the_first_few() -> None:
    """There may be hundreds; what has one name in the books has one here."""
    names = ("1/1", "2/2", *(f"x/k{number}" for number in range(98)))
    for reason in (
        QueuePromised("root.a", {"vcore": 2000}, {"vcore": 3000}, names),
        LimitPromised("user", "ann", "root.a", {"vcore": 2000}, {"vcore": 3000}, names),
        NodeReserved("n1", names),
    ):
        assert reason.sentence().endswith(" 1, 2, x/k0 and 97 more")
    assert "for 1/1, 2/2, x/k0 and 97 more to stop" in WaitingForVictims("n1", names).sentence()


def test_a_task_group_of_one_is_spoken_of_as_one() -> None:
    """Not as "1 members ... none of them"."""
    said = TaskGroupTooLarge("t", 1, 0, {"vcore": 2000}).sentence()
    assert said == "task group t has 1 member of cpu 2; no node could hold it"


def test_whatever_is_declared_is_given() -> None:
    """A reason that stands in the reference and that no answer ever has would be looked for in vain."""
    declared = {name for name, each in vars(reasons).items() if isinstance(each, type) and issubclass(each, Reason)}
    code = (each for each in Path(fairlead.__file__).parent.rglob("*.py") if each.name != "reasons.py")
    named = set(re.findall(r"\b[A-Z]\w+", "".join(each.read_text() for each in code)))
    assert not declared - named
