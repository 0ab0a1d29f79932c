"""The table of suppositions: what may be said of each kind, and the events that it stands for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec import convert

from fairlead.config import load_text
from fairlead.core.model.conditions import Awaited, Conditions, Dependency
from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    Configure,
    DrainNode,
    MoveApplication,
    Release,
    SetConditions,
    SetPriority,
)
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import ApplicationSpec, AskSpec, ClusterSpec, NodeSpec
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


def test_who_waits_for_what_is_cancelled_is_told(here: Place) -> None:
    """Of all that it waits for at once; what is cancelled itself is told nothing."""

    def after(*names: str, awaited: Awaited = Awaited.ANY) -> Conditions:
        return Conditions(after=tuple(Dependency(application=name, awaited=awaited) for name in names))

    def add(key: str, conditions: Conditions | None = None, application: str = "x") -> None:
        spec = AskSpec(application=application, key=key, resources=Resources({"vcore": 1}), conditions=conditions)
        here.scheduler.handle(AddAsks((spec,)), 1)

    here.scheduler.handle(AddApplication(ApplicationSpec(id="x", queue="root.a", user="ada")), 1)
    here.scheduler.handle(AddApplication(ApplicationSpec(id="y", queue="root.a", user="ada")), 1)
    add("1#2")
    add("2")
    add("3", after("1", "2"))
    add("4", after("1"))
    add("5", after("2", awaited=Awaited.OK))
    add("6", after("x"))
    kind, said = kind_of(read("cancel", ["1#2", "2", "4"]))
    told = {event.key: event.conditions for event in kind.supposed(said, here).events[3:]}  # type: ignore[attr-defined]
    assert set(told) == {"3", "5"}
    assert told["3"] == Conditions()
    assert [each.never for each in told["5"].after] == ["was cancelled"]
    everything = kind.supposed(read("cancel", ["1#2", "2", "3", "4", "5"]).cancel, here)
    assert everything.events[5:] == ()
    add("7", after("x", "3"), "y")
    whole = Place(here.scheduler, lambda key: ("default", key, ""), here.node, here.file, here.queue)
    told_of_all = SetConditions("y", "7", Conditions())
    assert kind.supposed(read("cancel", ["x"]).cancel, whole).events == (Release("x", ""), told_of_all)


def test_to_the_queue_that_it_is_in_nothing_moves(here: Place) -> None:
    """An order to move it there is no fault either."""
    here.scheduler.handle(AddApplication(ApplicationSpec(id="x", queue="root.a")), 0)
    kind, said = kind_of(read("move", {"key": "1", "queue": "a"}))
    assert kind.supposed(said, here) == Supposition((), (ask("1"),), "1 is moved to root.a, where it is already")
