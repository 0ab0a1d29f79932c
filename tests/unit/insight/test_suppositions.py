"""The table of suppositions: what may be said of each kind, and the events that it stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from fairlead.config import load_text
from fairlead.core.model.events import AddNode, Configure, DrainNode, MoveApplication, Release, SetPriority
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ClusterSpec, NodeSpec
from fairlead.insight.suppositions import KINDS, Change, Supposition, read, read_words, schema, usage
from fairlead.scheduler import Scheduler

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


@dataclass
class Here:
    """A place where every key is the ask `x/KEY`, and every node is in the partition `default`."""

    scheduler: Scheduler
    asker: str = "ada"

    def ask(self, key: str) -> tuple[str, str, str]:
        return "default", "x", key

    def queue(self, name: tuple[str, str, str], queue: str) -> str:
        return f"root.{queue}" if name == self.ask(name[2]) else ""

    def node(self, node: str) -> str:
        return "default" if node in self.scheduler.cluster.partitions["default"].nodes.nodes else "?"

    def file(self, text: str) -> ClusterSpec:
        assert text == "FILE"
        return load_text(QUEUES)


@pytest.fixture
def here() -> Here:
    scheduler = Scheduler(load_text(QUEUES))
    for name in ("n1", "n1-more-1"):
        scheduler.handle(AddNode(NodeSpec(id=name, capacity=Resources({"vcore": 4000}))), 0)
    return Here(scheduler)


def test_there_is_an_example_of_every_kind() -> None:
    """So that the tests below leave none out."""
    assert SAID.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_line_says_the_same_as_a_request(kind: str) -> None:
    """With `-` for `_`, and every kind is in the help."""
    said, words = SAID[kind]
    name = kind.replace("_", "-")
    assert read_words(name, words) == read(kind, said)
    assert f"whatif {name} {KINDS[kind].words}" in usage()


def test_each_kind_is_its_events(here: Here) -> None:
    """About whom, and in which words."""
    found = {kind: read(kind, said).supposed(here) for kind, (said, _) in SAID.items()}
    one = ("default", "x", "1")
    assert found["cancel"] == Supposition((Release("x", "1"), Release("x", "2")), (), "1, 2 is cancelled")
    assert found["priority"] == Supposition((SetPriority("x", "1", -5, "ada"),), (one,), "1 gets priority -5")
    assert found["move"] == Supposition((MoveApplication("x", "root.a", "ada"),), (one,), "1 is moved to root.a")
    assert found["config"].events == (Configure(load_text(QUEUES)),)
    assert found["drain"] == Supposition((DrainNode("n1"),), (), "n1 is drained")
    names = [event.node.id for event in found["add_nodes"].events if isinstance(event, AddNode)]
    assert (names, found["add_nodes"].sentence) == (["n1-more-2", "n1-more-3"], "2 more nodes like n1")


@pytest.mark.parametrize(
    ("kind", "said", "why"),
    [
        ("cancel", [], "length >= 1"),
        ("cancel", "1", "Expected `array`"),
        ("cancel", ["a\nb"], "must not contain control characters"),
        ("priority", {"key": "1", "priority": 2**31}, "$.priority"),
        ("priority", {"key": "1"}, "missing required field `priority`"),
        ("priority", {"key": "1", "priority": "9"}, "Expected `int`, got `str` - at `$.priority`"),
        ("move", {"key": "1", "queue": "a", "now": True}, "unknown field `now`"),
        ("move", {"key": "1", "queue": "\ud800"}, "must not contain control characters"),
        ("add_nodes", {"like": "n1", "count": 0}, "Expected `int` >= 1 - at `$.count`"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(kind: str, said: Any, why: str) -> None:
    """As a ValueError."""
    with pytest.raises(ValueError, match=re.escape(why)):
        read(kind, said)


@pytest.mark.parametrize("words", [["priority", "1"], ["priority", "1", "x"], ["cancel"], ["add-nodes", "n1", "0"]])
def test_words_that_do_not_fit_are_refused(words: list[str]) -> None:
    """Too few, too many, no number, or one beyond what is allowed."""
    with pytest.raises(ValueError, match=r"write KEY N|Expected"):
        read_words(words[0], words[1:])


def test_a_file_may_have_lines() -> None:
    """Unlike keys and names."""
    assert read("config", "a\nb").text == "a\nb"  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_takes_what_is_read(kind: str) -> None:
    """The type of what a request says, and whether other fields are refused."""
    said, _ = SAID[kind]
    shown = schema(kind)
    assert shown["type"] == {list: "array", dict: "object", str: "string"}[type(said)]
    if isinstance(said, dict):
        assert (sorted(shown["required"]), shown["additionalProperties"]) == (sorted(said), False)


def test_changes_for_administrators() -> None:
    """Those about nodes and queues, which everybody's work is on."""

    def asked(kind: type[Change]) -> bool:
        return kind.for_administrators

    assert [kind for kind, made in KINDS.items() if asked(made)] == ["config", "drain", "add_nodes"]
