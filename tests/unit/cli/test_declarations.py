"""priority-class, quota, budget: what is sent, and what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

CLASS = {
    "name": "urgent",
    "value": 1000,
    "global_default": True,
    "preemption_policy": "Never",
    "limited": False,
    "min_runtime_ms": 600_000,
    "description": "d",
    "source": "file",
}


def test_classes_are_listed(service: Any, run: Callable[..., Any]) -> None:
    """With what each means for its jobs."""
    service.on("GET", "/priority-classes", {"priority_classes": [CLASS]})
    head, row = run("priority-class", "list").stdout.splitlines()
    assert head.split() == ["CLASS", "VALUE", "DEFAULT", "PREEMPTS", "LIMITED", "SPARED", "FOR", "FROM", "DESCRIPTION"]
    assert row.split() == ["urgent", "1000", "yes", "never", "-", "10m", "queue", "file", "d"]


def test_a_class_is_set(service: Any, run: Callable[..., Any]) -> None:
    """With what was said and the defaults for the rest."""
    service.on("PUT", "/priority-classes/urgent", CLASS)
    done = run("priority-class", "set", "urgent", "--value", "-5", "--never")
    assert (done.exit_code, done.stdout) == (0, "urgent is set\n")
    run("priority-class", "set", "urgent", "--value", "7", "--min-runtime", "1h30m")
    rest = {"global_default": False, "limited": False, "description": ""}
    assert service.sent("PUT", "/priority-classes/urgent") == [
        {"value": -5, "preemption_policy": "Never", "min_runtime_ms": 0} | rest,
        {"value": 7, "preemption_policy": "PreemptLowerPriority", "min_runtime_ms": 5_400_000} | rest,
    ]


def test_a_class_with_a_time_that_is_none_is_refused(service: Any, run: Callable[..., Any]) -> None:
    """In one sentence that names the option; nothing is sent."""
    done = run("priority-class", "set", "urgent", "--value", "7", "--min-runtime", "soon")
    assert done.exit_code == 2
    assert "--min-runtime: 'soon' is not a duration" in done.stderr
    assert service.sent("PUT", "/priority-classes/urgent") == []


def test_a_quota_is_set(service: Any, run: Callable[..., Any]) -> None:
    """Scopes by options, amounts as everywhere, 0 too."""
    service.on("PUT", "/quotas/q", {})
    service.on("GET", "/queues", {"queues": [{"path": "root", "children": [{"path": "root.a", "children": []}]}]})
    service.on("GET", "/priority-classes", {"priority_classes": [{"name": "a"}, {"name": "b"}]})
    words = ("-q", "root.a", "-r", "cpu=1.5", "-r", "memory=4Gi", "-r", "gpu=0", "-c", "a", "-c", "b", "--any-class")
    done = run("quota", "set", "q", *words)
    assert (done.exit_code, done.stderr) == (0, "")
    assert service.sent("PUT", "/quotas/q") == [
        {
            "queue": "root.a",
            "resources": {"cpu": 1.5, "memory": 4 * 2**30, "gpu": 0},
            "scopes": [{"operator": "In", "values": ["a", "b"]}, {"operator": "Exists", "values": []}],
        }
    ]


def test_quotas_are_listed(service: Any, run: Callable[..., Any]) -> None:
    """What is in use stands beside what may be."""
    scopes = [
        {"key": "PriorityClass", "operator": "In", "values": ["a", "b"]},
        {"key": "PriorityClass", "operator": "DoesNotExist", "values": []},
    ]
    quota = {"name": "q", "queue": "root.a", "resources": {"cpu": 4}, "scopes": scopes, "used": {}, "jobs": 3}
    service.on("GET", "/quotas", {"quotas": [quota | {"source": "api"}]})
    row = run("quota", "list").stdout.splitlines()[1]
    assert row.split()[:6] == ["q", "root.a", "a,", "b;", "none", "3"]
    assert "4" in row
    assert row.rstrip().endswith("API")


def test_a_quota_for_what_is_not_there_yet_is_set_and_that_is_said(service: Any, run: Callable[..., Any]) -> None:
    """It may be a spelling mistake."""
    service.on("PUT", "/quotas/q", {})
    service.on("GET", "/queues", {"queues": [{"path": "root"}]})
    service.on("GET", "/priority-classes", {"priority_classes": []})
    done = run("quota", "set", "q", "-q", "root.teem", "-r", "cpu=1", "--not-class", "urgnt")
    assert done.exit_code == 0
    assert "there is no queue root.teem yet" in done.stderr
    assert "there is no priority class urgnt yet" in done.stderr


def test_a_quota_that_no_work_can_match_is_refused(service: Any, run: Callable[..., Any]) -> None:
    """Of a class and without one; nothing is sent."""
    refused = run("quota", "set", "q", "-q", "root.a", "-r", "cpu=1", "-c", "a", "--no-class")
    assert refused.exit_code == 2
    assert "make two quotas" in refused.stderr


@pytest.mark.parametrize(("command", "route", "what"), [("quota", "quotas", "quota"), ("budget", "budgets", "budget")])
def test_nothing_to_list_is_said(service: Any, run: Callable[..., Any], command: str, route: str, what: str) -> None:
    """Beside the heads of the columns."""
    service.on("GET", f"/{route}", {route: []})
    done = run(command, "list")
    assert done.stderr.startswith("there is no ")
    assert what in done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(("text", "sent"), [("2", 2), ("50%", "50%")])
def test_a_budget_is_set(service: Any, run: Callable[..., Any], text: str, sent: object) -> None:
    """A number, or a part."""
    service.on("PUT", "/budgets/b", {})
    assert run("budget", "set", "b", "-l", "app=db", "--min-available", text).exit_code == 0
    selector = [{"key": "app", "operator": "In", "values": ["db"]}]
    assert service.sent("PUT", "/budgets/b") == [{"selector": selector, "min_available": sent}]


@pytest.mark.parametrize("bounds", [(), ("--min-available", "1", "--max-unavailable", "1")])
def test_a_budget_has_one_bound(service: Any, run: Callable[..., Any], bounds: tuple[str, ...]) -> None:
    """Neither none nor two; nothing is sent."""
    refused = run("budget", "set", "b", *bounds)
    assert refused.exit_code == 2
    assert "either" in refused.stderr


def test_budgets_are_listed(service: Any, run: Callable[..., Any]) -> None:
    """With how much each lets stop now."""
    conditions = [
        {"key": "app", "operator": "In", "values": ["db"]},
        {"key": "tier", "operator": "Exists", "values": []},
    ]
    budget = {"name": "b", "selector": conditions, "min_available": "50%", "max_unavailable": None, "left": 2}
    service.on("GET", "/budgets", {"budgets": [budget | {"namespace": "", "source": "api"}]})
    row = run("budget", "list").stdout.splitlines()[1]
    assert row.split() == ["b", "app", "=", "db;", "tier", "set", "50%", "-", "2", "API"]


@pytest.mark.parametrize(
    ("command", "route"), [("priority-class", "priority-classes"), ("quota", "quotas"), ("budget", "budgets")]
)
def test_each_can_be_removed(service: Any, run: Callable[..., Any], command: str, route: str) -> None:
    """By its name."""
    service.on("DELETE", f"/{route}/n", {"ok": True})
    assert run(command, "remove", "n").stdout == "n is removed\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list",), "'list' is neither a time nor one of add, ls, cancel"),
        (("remove", "disks"), "'remove' is neither a time nor one of add, ls, cancel"),
        (("Sat", "08:00", "4h"), "a time is one word here: 'Sat 08:00'"),
        (("Sat",), "missing argument 'LENGTH'"),
    ],
)
def test_what_is_no_time_and_no_command_is_said_so(run: Callable[..., Any], words: tuple[str, ...], said: str) -> None:
    """`maintenance list` was told that the length is missing."""
    refused = run("maintenance", *words)
    assert (refused.exit_code, said in refused.stderr) == (2, True)
