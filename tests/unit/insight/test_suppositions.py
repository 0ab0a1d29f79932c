"""The table of suppositions: what may be said of each kind, and the events that it stands for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec import convert

from fairlead.config import load_text
from fairlead.core.model.events import AddNode, Configure, DrainNode, MoveApplication, Release, SetPriority
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ClusterSpec, NodeSpec
from fairlead.insight.suppositions import KINDS, Place, Supposition, kind_of, read_words, usage
from fairlead.scheduler import Scheduler
from fairlead.wire.questions import CHANGES, Supposed

QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
SAID: dict[str, tuple[Any, list[str]]] = {
    "cancel": (["1", "2"], ["1", "2"]),
    "priority": ({"key": "1", "priority": -5}, ["1", "-5"]),
    "move": ({"key": "1", "queue": "a"}, ["1", "a"]),
    "config": ("FILE", ["FILE"]),
    "drain": (["n1"], ["n1"]),
    "add_nodes": ({"like": "n1", "count": 2}, ["n1", "2"]),
}
"""Each kind as a request says it, and as a command line does."""


def file(text: str) -> ClusterSpec:
    assert text == "FILE"
    return load_text(QUEUES)


def ask(key: str) -> tuple[str, str, str]:
    return "default", "x", key


def read(kind: str, said: Any) -> Supposed:
    """What a request says."""
    return convert({kind: said}, Supposed)


@pytest.fixture
def here() -> Place:
    """Every key is the ask `x/KEY`, and every node is in the partition `default`."""
    scheduler = Scheduler(load_text(QUEUES))
    for name in ("n1", "n1-more-1"):
        scheduler.handle(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": 4000}))), 0)

    def node(name: str) -> str:
        return "default" if name in scheduler.cluster.partitions["default"].nodes.nodes else "?"

    def queue(name: tuple[str, str, str], queue: str) -> str:
        return f"root.{queue}" if name == ask(name[2]) else ""

    return Place(scheduler, ask, node, file, queue, "ada")


def test_there_is_an_example_of_every_kind() -> None:
    """So that the tests below leave none out; and what a request may say is in the table."""
    assert SAID.keys() == KINDS.keys() == set(CHANGES) - {"submit"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_line_says_the_same_as_a_request(kind: str) -> None:
    """With `-` for `_`, and every kind is in the help."""
    said, words = SAID[kind]
    name = kind.replace("_", "-")
    assert read_words(name, words) == read(kind, said)
    assert f"whatif {name} {KINDS[kind].words}" in usage()


def test_each_kind_is_its_events(here: Place) -> None:
    """About whom, and in which words."""
    found = {}
    for name, (said, _) in SAID.items():
        kind, what = kind_of(read(name, said))
        found[name] = kind.supposed(what, here)
    one = ("default", "x", "1")
    assert found["cancel"] == Supposition((Release("x", "1"), Release("x", "2")), (), "1, 2 are cancelled")
    assert found["priority"] == Supposition((SetPriority("x", "1", -5, "ada"),), (one,), "1 gets priority -5")
    assert found["move"] == Supposition((MoveApplication("x", "root.a", "ada"),), (one,), "1 is moved to root.a")
    assert found["config"].events == (Configure(load_text(QUEUES)),)
    assert found["drain"] == Supposition((DrainNode("n1"),), (), "n1 is drained")
    names = [event.node.id for event in found["add_nodes"].events if isinstance(event, AddNode)]
    assert (names, found["add_nodes"].sentence) == (["n1-more-2", "n1-more-3"], "there are 2 more nodes like n1")


@pytest.mark.parametrize(
    ("kind", "said", "why"),
    [
        ("cancel", [], "length >= 1"),
        ("cancel", "1", "Expected `array | null`, got `str`"),
        ("cancel", ["a\nb"], "must be one line without control characters"),
        ("priority", {"key": "1", "priority": 2**31}, "$.priority"),
        ("priority", {"key": "1"}, "missing required field `priority`"),
        ("priority", {"key": "1", "priority": "9"}, "Expected `int`, got `str` - at `$.priority.priority`"),
        ("move", {"key": "1", "queue": "a", "now": True}, "unknown field `now`"),
        ("move", {"key": "1", "queue": "\ud800"}, "must be valid Unicode"),
        ("add_nodes", {"like": "n1", "count": 0}, "Expected `int` >= 1 - at `$.add_nodes.count`"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(kind: str, said: Any, why: str) -> None:
    """As a ValueError."""
    with pytest.raises(ValueError, match=re.escape(why)):
        read(kind, said)


@pytest.mark.parametrize("words", [["priority", "1"], ["priority", "1", "x"], ["cancel"], ["add-nodes", "n1", "0"]])
def test_words_that_do_not_fit_are_refused(words: list[str]) -> None:
    """Too few, too many, no number, or one beyond what is allowed."""
    with pytest.raises(ValueError, match=r"write KEY PRIORITY|Expected"):
        read_words(words[0], words[1:])


def test_a_file_may_have_lines() -> None:
    """Unlike keys and names."""
    assert read("config", "a\nb").config == "a\nb"


def test_changes_for_administrators() -> None:
    """Those about nodes and queues, which everybody's work is on."""

    assert [name for name, kind in KINDS.items() if kind.for_administrators] == ["config", "drain", "add_nodes"]
