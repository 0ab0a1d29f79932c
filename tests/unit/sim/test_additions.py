"""What a scenario may say beyond YuniKorn's words: fields, keys that stand alone, grace, and the further results."""

from __future__ import annotations

from typing import Any

import pytest
from plain_scenarios import as_scenario, run_scenario

from fairlead.core.model.constraints import IN, AffinityTerm, Constraints, Requirement, SpreadTerm, Taint, Toleration
from fairlead.core.model.events import (
    AddAsks,
    AddNode,
    LabelNode,
    RemoveBudget,
    RemovePriorityClass,
    RemoveQuota,
    RemoveWindow,
    SetBudget,
    SetPriorityClass,
    SetQuota,
    SetWindow,
)
from fairlead.core.model.resources import Limits
from fairlead.core.model.specs import AskSpec, BudgetSpec, PriorityClassSpec, QuotaSpec, RetrySpec, WindowSpec
from fairlead.insight.unblock import unblock as what_helps
from fairlead.sim.additions import EPOCH_MS
from fairlead.sim.steps import ScenarioError, events_of

CONFIG = """
partitions:
  - name: default
    preemption: {rule: %s}
    queues: [{name: root, submitacl: "*", queues: [{name: a}]}]
"""


def events(**step: Any) -> tuple[Any, ...]:
    return events_of(as_scenario({"config": "", "steps": [step]}).steps[0])


def asked(**fields: Any) -> AskSpec:
    [event] = events(op="ask", app="x", key="k", resources={"vcore": 1}, **fields)
    assert isinstance(event, AddAsks)
    return event.asks[0]


def run(*steps: dict[str, Any], rule: str = "priority", **more: Any) -> dict[str, Any]:
    begin = [{"op": "node", "id": "n", "resources": {"vcore": 10}}, {"op": "app", "id": "x", "queue": "root.a"}]
    given = {"name": "one of many", "config": CONFIG % rule, "steps": [*begin, *steps]}
    result: dict[str, Any] = run_scenario(given, **more)["result"]
    return result


def ask(key: str, amount: int = 10, app: str = "x", **fields: Any) -> dict[str, Any]:
    return {"op": "ask", "app": app, "key": key, "resources": {"vcore": amount}, **fields}


SCHEDULE = {"op": "schedule", "steps": 9}


def sleep(millis: int) -> dict[str, Any]:
    return {"op": "sleep", "millis": millis}


def placed(result: dict[str, Any]) -> dict[str, int]:
    return {row["key"]: row["step"] for row in result["allocated"]}


def test_the_fields_of_an_ask_reach_it() -> None:
    """Each in the core's words."""
    term = {"labels": {"app": "db"}, "topologyKey": "zone"}
    spec = asked(
        labels={"app": "web"},
        priorityClass="c",
        preemptionPolicy="Never",
        graceMillis=5,
        idle=True,
        timeLimitMillis=7,
        nodeSelector={"disk": "ssd"},
        affinity=term,
        antiAffinity=[{"labels": [{"key": "app", "operator": "Exists"}]}],
        spread={"labels": {}, "topologyKey": "zone", "maxSkew": 2},
        tolerations=[{"key": "t", "operator": "Exists"}],
        ports=["TCP/0.0.0.0/80"],
        retry={"limit": 2, "backoffMillis": 3, "neverOn": [4]},
    )
    db = (Requirement("app", IN, ("db",)),)
    assert spec.where == Constraints(
        selector=(Requirement("disk", IN, ("ssd",)),),
        tolerations=(Toleration("t", "Exists"),),
        affinity=(AffinityTerm(db, "zone"),),
        anti_affinity=(AffinityTerm((Requirement("app", "Exists"),)),),
        spread=(SpreadTerm((), "zone", 2),),
        ports=("TCP/0.0.0.0/80",),
    )
    assert (spec.labels, spec.priority_class, spec.allow_preempt_other) == ({"app": "web"}, "c", False)
    assert (spec.grace_ms, spec.idle, spec.time_limit_ms) == (5, True, 7)
    assert spec.retry == RetrySpec(limit=2, backoff_ms=3, never_on=(4,))


def test_nodes_have_attributes_and_taints() -> None:
    """When they come, and when they are labelled anew."""
    [come] = events(op="node", id="n", resources={}, attributes={"a": "b"}, taints=[{"key": "t", "value": "v"}])
    assert isinstance(come, AddNode)
    assert (come.node.attributes, come.node.taints) == ({"a": "b"}, (Taint("t", "v"),))
    assert events(op="node", id="n", action="label", attributes={"c": "d"}) == (LabelNode("n", {"c": "d"}),)


def test_declarations_are_orders() -> None:
    """To set one, or to remove it."""
    spec = PriorityClassSpec(name="c", value=5, global_default=True, preemption_policy="Never")
    said = {"op": "priority-class", "name": "c", "value": 5, "globalDefault": True, "preemptionPolicy": "Never"}
    assert events(**said) == (SetPriorityClass(spec),)
    longer = PriorityClassSpec(name="c", value=5, min_runtime_ms=9)
    assert events(op="priority-class", name="c", value=5, minRuntimeMillis=9) == (SetPriorityClass(longer),)
    assert events(op="priority-class", name="c", action="remove") == (RemovePriorityClass("c"),)
    quota = QuotaSpec(
        name="q", queue="root", resources=Limits({"vcore": 1}), scopes=(Requirement("PriorityClass", "In", ("c",)),)
    )
    scopes = [{"operator": "In", "values": ["c"]}]
    assert events(op="quota", name="q", queue="root", resources={"vcore": 1}, scopes=scopes) == (SetQuota(quota),)
    assert events(op="quota", name="q", action="remove") == (RemoveQuota("q"),)
    budget = BudgetSpec(name="b", selector=(Requirement("a", IN, ("b",)),), min_available="50%")
    assert events(op="budget", name="b", selector={"a": "b"}, minAvailable="50%") == (SetBudget(budget),)
    assert events(op="budget", name="b", action="remove") == (RemoveBudget("b"),)
    begins = EPOCH_MS + 5
    window = WindowSpec(
        name="w", starts_ms=begins, length_ms=7, every_ms=20, nodes=("n",), users=("u",), stop_running=True
    )
    said = {"startsMillis": 5, "lengthMillis": 7, "everyMillis": 20, "nodes": ["n"], "users": ["u"]}
    assert events(op="window", name="w", stopRunning=True, **said) == (SetWindow(window),)
    assert events(op="window", name="w", action="remove") == (RemoveWindow("w"),)


@pytest.mark.parametrize(
    "step",
    [
        {"op": "confirm", "mode": "sometimes"},
        {"op": "reserve", "key": "k"},
        {"op": "finish", "key": ""},
        {"op": "ask", "app": "x", "key": "k", "resources": {}, "preemptionPolicy": "never"},
        {"op": "ask", "app": "x", "key": "k", "resources": {}, "retry": {}},
        {"op": "ask", "app": "x", "key": "k", "resources": {}, "affinity": {"label": {}}},
        {"op": "quota", "name": "q", "scopes": [{"operator": "Gt"}]},
    ],
)
def test_what_makes_no_sense_is_refused(step: dict[str, Any]) -> None:
    """When the scenario is read."""
    with pytest.raises(ScenarioError):
        as_scenario({"config": "", "steps": [step]})


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"op": "finish", "key": "nothing"}, "step 5: nothing with the key nothing"),
        ({"op": "finish", "key": "w"}, "step 5: w waits"),
        ({"op": "interrupt", "key": "w"}, "step 5: w waits"),
        ({"op": "gone", "key": "k"}, "step 5: k was not told to stop"),
        ({"op": "finish", "key": "k", "app": "y"}, "of application y"),
    ],
)
def test_a_key_that_does_not_fit_is_an_error(step: dict[str, Any], words: str) -> None:
    """With the scenario, of many in a file, and the number of the step."""
    with pytest.raises(ScenarioError, match=f"^one of many: .*{words}"):
        run(ask("k"), SCHEDULE, ask("w"), step, rule="guarantee")


def test_a_key_of_two_applications_is_an_error_unless_one_is_named() -> None:
    """In the result it is written with its application."""
    other = {"op": "app", "id": "y", "queue": "root.a"}
    both = (other, ask("k"), ask("k", app="y"))
    with pytest.raises(ScenarioError, match="applications x, y"):
        run(*both, {"op": "set-priority", "key": "k", "priority": 5})
    result = run(*both, {"op": "set-priority", "key": "k", "app": "y", "priority": 5}, ask("z"))
    assert list(result["waiting"]) == ["x/k", "y/k", "z"]


def test_a_changed_priority_goes_first() -> None:
    """`set-priority` is an administrator's order."""
    result = run(ask("k"), ask("j"), {"op": "set-priority", "key": "j", "priority": 1}, SCHEDULE)
    assert list(placed(result)) == ["j"]


def test_evicted_work_is_gone_after_its_grace() -> None:
    """At its own moment in virtual time, and others are scheduled meanwhile."""
    steps = (ask("low", graceMillis=3000), SCHEDULE, ask("top", priority=1), SCHEDULE)
    early = run(*steps, sleep(2999), SCHEDULE)
    assert (placed(early), early["nominated"]) == ({"low": 3}, {"top": "n"})
    assert early["waiting"]["top"]["reason"] == "waiting-for-victims"
    assert placed(run(*steps, sleep(3000), SCHEDULE)) == {"low": 3, "top": 7}


def test_without_grace_it_is_gone_at_once() -> None:
    """As YuniKorn's core is stepped."""
    result = run(ask("low"), SCHEDULE, ask("top", priority=1), SCHEDULE, SCHEDULE)
    assert placed(result) == {"low": 3, "top": 6}
    assert result["evicted"] == [{"key": "low", "for": "top", "rule": "priority", "node": "n", "step": 5}]


def test_by_hand_it_is_gone_when_the_scenario_says_so() -> None:
    """However much time passes; `released` has it once."""
    steps = ({"op": "confirm", "mode": "manual"}, ask("low"), SCHEDULE, ask("top", priority=1), SCHEDULE, sleep(10**7))
    assert list(placed(run(*steps, SCHEDULE))) == ["low"]
    result = run(*steps, {"op": "gone", "key": "low"}, SCHEDULE)
    assert placed(result) == {"low": 4, "top": 9}
    assert [row["key"] for row in result["released"]] == ["low"]


@pytest.mark.parametrize(
    "end",
    [{"op": "finish", "key": "low"}, {"op": "release", "app": "x", "key": "low"}, {"op": "gone", "key": "low"}],
)
def test_what_ends_by_itself_within_its_grace_is_gone_once(end: dict[str, Any]) -> None:
    """The end of its grace changes nothing more, though the same key runs again by then."""
    again = ask("low", amount=1)
    steps = (ask("low", graceMillis=3000), SCHEDULE, ask("top", amount=9, priority=1), SCHEDULE, end, SCHEDULE)
    result = run(*steps, again, SCHEDULE, sleep(5000), SCHEDULE)
    assert [row["key"] for row in result["released"]] == ["low"]
    assert result["apps"]["x"]["allocations"] == ["low@n", "top@n"]


def test_a_plain_scenario_has_no_further_results() -> None:
    """And one that says something more, in its steps or its queue file, has."""
    further = {"evicted", "nominated", "waiting", "declarations_rejected"}
    assert not further & run(ask("k"), rule="guarantee").keys()
    assert further <= run(ask("k")).keys()
    assert further <= run(ask("k", labels={"a": "b"}), rule="guarantee").keys()
    assert further <= run({"op": "confirm"}, rule="guarantee").keys()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("preemption:", "stateaware: true\n    preemption:"),
        ("{name: a}", '{name: a, properties: {job.time.max: "2h"}}'),
        ("{name: a}", '{name: a, properties: {backfill: "easy"}}'),
    ],
)
def test_each_addition_of_a_queue_file_is_one(old: str, new: str) -> None:
    """What the documentation calls an addition."""
    config = (CONFIG % "guarantee").replace(old, new)
    result = run_scenario({"config": config, "steps": [{"op": "app", "id": "x", "queue": "root.a"}]})["result"]
    assert "evicted" in result, result


def test_what_waits_has_its_reason_and_numbers() -> None:
    """`unblock` is what the caller's function says of each kind of ask."""
    asked_for: list[tuple[str, str]] = []

    def unblock(_: Any, application: str, key: str) -> list[str]:
        asked_for.append((application, key))
        return ["more"]

    result = run(ask("k", 6), ask("w", 6, count=3), SCHEDULE, unblock=unblock)
    row = {"reason": "cluster-full", "needed": {"vcore": 6}, "free": {"vcore": 4}, "unblock": ["more"]}
    assert list(result["waiting"]) == ["w-0", "w-1", "w-2"]
    assert all(row.items() <= each.items() for each in result["waiting"].values())
    assert asked_for == [("x", "w-0")]


def test_an_attempt_that_is_to_come_waits_too() -> None:
    """Until its back-off is over."""
    retried = ask("k", retry={"limit": 3, "backoffMillis": 1000})
    result = run(retried, SCHEDULE, {"op": "interrupt", "key": "k"})
    assert result["waiting"]["k#2"]["reason"] == "attempt-held-back"
    result = run(retried, SCHEDULE, {"op": "finish", "key": "k"})
    assert result["waiting"] == {}
    result = run(retried, SCHEDULE, {"op": "finish", "key": "k", "exitCode": 1}, sleep(1000), SCHEDULE)
    assert placed(result) == {"k": 3, "k#2": 6}


def test_a_refused_declaration_is_in_the_result() -> None:
    """With the reason."""
    result = run({"op": "priority-class", "name": "system-mine", "value": 1})
    assert "system-" in result["declarations_rejected"]["system-mine"]


def test_what_would_start_it_is_looked_for_even_without_a_node() -> None:
    """A scenario whose only node has gone is no error."""
    result = run({"op": "node", "id": "n", "action": "remove"}, ask("k"), unblock=what_helps)
    assert result["waiting"]["k"]["reason"] == "no-nodes"
    assert isinstance(result["waiting"]["k"]["unblock"], list)
