"""What a scenario may say, and what is refused with its place."""

from __future__ import annotations

import pytest
from plain_scenarios import as_scenario

from fairlead.core.model.events import (
    AddApplication,
    AddAsks,
    AddNode,
    DrainNode,
    Release,
    RemoveNode,
    UndrainNode,
    UpdateNode,
)
from fairlead.core.model.resources import Resources
from fairlead.sim.steps import AnyStep, ScenarioError, events_of, read_scenarios


def step(**fields: object) -> AnyStep:
    """The only step of a scenario."""
    return as_scenario({"config": "", "steps": [fields]}).steps[0]


def test_a_node_step_without_an_action_adds_a_schedulable_node() -> None:
    """`action` absent means that the node comes."""
    (event,) = events_of(step(op="node", id="n", resources={"vcore": 5}, attributes={"rack": "1"}))
    assert isinstance(event, AddNode)
    assert event.node.capacity == Resources({"vcore": 5})
    assert event.node.attributes == {"rack": "1"}
    assert event.node.schedulable


def test_create_drain_adds_a_node_that_takes_no_work() -> None:
    """`create-drain` is a node that is not schedulable from the start."""
    (event,) = events_of(step(op="node", id="n", resources={"vcore": 5}, action="create-drain"))
    assert isinstance(event, AddNode)
    assert not event.node.schedulable


@pytest.mark.parametrize(
    ("action", "expected"),
    [("drain", DrainNode("n")), ("undrain", UndrainNode("n")), ("remove", RemoveNode("n"))],
)
def test_node_actions_are_events_of_their_own(action: str, expected: object) -> None:
    """Each action has its event."""
    assert events_of(step(op="node", id="n", action=action)) == (expected,)


def test_an_update_without_resources_changes_nothing() -> None:
    """Only a capacity that is given replaces the old one; an empty one is given."""
    assert events_of(step(op="node", id="n", action="update")) == ()
    assert events_of(step(op="node", id="n", action="update", resources={})) == (UpdateNode("n", Resources()),)


def test_an_ask_with_a_count_is_one_request_of_numbered_keys() -> None:
    """`count` 3 gives key-0 to key-2 in one event, even when it is 1."""
    (event,) = events_of(step(op="ask", app="a", key="k", resources={"vcore": 1}, count=3))
    assert isinstance(event, AddAsks)
    assert [ask.key for ask in event.asks] == ["k-0", "k-1", "k-2"]
    (single,) = events_of(step(op="ask", app="a", key="k", resources={"vcore": 1}, count=1))
    assert isinstance(single, AddAsks)
    assert [ask.key for ask in single.asks] == ["k-0"]


def test_an_ask_carries_every_field() -> None:
    """No field of an ask is dropped."""
    (event,) = events_of(
        step(
            op="ask",
            app="a",
            key="k",
            resources={"vcore": 1},
            priority=-7,
            tags={"t": "1"},
            taskGroup="g",
            placeholder=True,
            originator=True,
            noPreemptSelf=True,
            preemptOther=False,
            node="n",
        )
    )
    assert isinstance(event, AddAsks)
    ask = event.asks[0]
    assert (ask.priority, ask.tags, ask.task_group, ask.node) == (-7, {"t": "1"}, "g", "n")
    assert (ask.placeholder, ask.originator) == (True, True)
    assert (ask.allow_preempt_self, ask.allow_preempt_other) == (False, False)


def test_an_application_has_the_default_user_and_keeps_its_gang() -> None:
    """The user is `testuser` unless given; the gang's size, style and patience reach the event."""
    (event,) = events_of(step(op="app", id="a", placeholderAsk={"vcore": 4}, gangStyle="Hard", millis=500))
    assert isinstance(event, AddApplication)
    spec = event.application
    assert (spec.user, spec.placeholder_ask, spec.gang_style) == ("testuser", Resources({"vcore": 4}), "Hard")
    assert spec.placeholder_timeout_ms == 500


def test_a_release_without_a_key_means_the_whole_application() -> None:
    """An absent key is empty."""
    assert events_of(step(op="release", app="a")) == (Release("a", ""),)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"op": "nod", "id": "n"}, "Invalid value 'nod' - at `$.steps[0].op`"),
        ({"op": "node", "id": "n", "action": "explode"}, "$.steps[0].action"),
        ({"op": "ask", "app": "a", "key": "k", "resources": {"vcore": 1}, "prio": 1}, "unknown field `prio`"),
        ({"op": "ask", "app": "a", "key": "k", "resources": {"vcore": "1"}}, "$.steps[0].resources[...]"),
        ({"op": "ask", "app": "a", "key": "k", "resources": {}, "priority": 2**31}, "$.steps[0].priority"),
        ({"op": "ask", "app": "a", "key": "k", "resources": {}, "count": 0}, "$.steps[0].count"),
        ({"op": "sleep", "millis": -1}, "$.steps[0].millis"),
        ({"op": "schedule"}, "missing required field `steps`"),
    ],
)
def test_a_step_that_makes_no_sense_is_refused_with_its_place(fields: dict[str, object], says: str) -> None:
    """Unknown ops and fields, wrong types and numbers out of range are errors that name their place."""
    with pytest.raises(ScenarioError) as e:
        step(**fields)
    assert says in str(e.value)


def test_a_file_names_the_line_that_is_no_scenario() -> None:
    """Blank lines are skipped and counted."""
    good = b'{"config": "", "steps": []}\n'
    with pytest.raises(ScenarioError, match=r"^file:3: "):
        list(read_scenarios(iter([good, b"\n", b"{not json}\n"]), "file"))
    assert len(list(read_scenarios(iter([good, b"\n", good]), "file"))) == 2
    with pytest.raises(ScenarioError, match=r"^file:1: the JSON ends before it is whole$"):
        list(read_scenarios(iter([good.strip()[:-1]]), "file"))
