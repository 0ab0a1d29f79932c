"""The same filters in every command that means several jobs, and commands that take several keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest

Run = Callable[..., Any]
QUEUE = {
    "partition": "default", "leaf": True, "state": "active", "max": {}, "guaranteed": {}, "allocated": {}, "idle": {},
    "pending": {}, "headroom": None, "priority": None, "running_applications": 0, "max_applications": 0, "waiting": 0,
    "children": [],
}  # fmt: skip
ORDERS = {
    "cancel": "waiting running suspended stopping",
    "wait": "waiting running suspended stopping",
    "hold": "waiting",
    "release": "waiting",
    "suspend": "running",
    "resume": "suspended",
    "requeue": "running",
}


@pytest.fixture
def queues(service: Any) -> Any:
    service.on("GET", "/queues", {"queues": [QUEUE | {"path": "root.batch"}], "next": None, "total": 1})
    return service


@pytest.mark.parametrize("command", ["ls", *ORDERS])
def test_each_command_takes_the_same(queues: Any, run: Run, command: str) -> None:
    """Several of each; the service looks for them, among the states that the command is about."""
    result = run(command, "--name", "x-*", "--name", "y", "--tag", "p=*", "--tag", "stage", "-u", "ann", "-u", "bob")
    [asked] = [each for each in queues.requests if each.path.endswith("/jobs")]
    assert {name: asked.lists[name] for name in ("name", "tag", "user")} == {
        "name": ["x-*", "y"],
        "tag": ["p=*", "stage"],
        "user": ["ann", "bob"],
    }
    assert " ".join(asked.lists.get("state", [])) == ORDERS.get(command, "")
    assert result.exit_code == 0
    assert "is like that" in result.stderr


@pytest.mark.parametrize("command", ["ls", *ORDERS])
def test_a_queue_that_is_not_there_is_said(queues: Any, run: Run, command: str) -> None:
    """With those that are like it; it is not taken for one without jobs."""
    result = run(command, "--queue", "root.batsh")
    assert (result.exit_code, result.stderr) == (
        4,
        "fairlead: there is no queue root.batsh; did you mean root.batch? `fairlead queues` lists them\n",
    )
    assert run(command, "--queue", "batch").exit_code == 0
    assert run(command, "--queue", "root.no*").exit_code == 0


@pytest.mark.parametrize("command", sorted(ORDERS))
@pytest.mark.parametrize("args", [(), ("1", "--tag", "a")])
def test_keys_or_filters(service: Any, run: Run, command: str, args: tuple[str, ...]) -> None:
    """Never both, and never everything by accident."""
    result = run(command, *args)
    assert (result.exit_code, "--queue, --name, --user, --me, --tag (not both)" in result.stderr) == (2, True)


def test_several_are_waited_for_by_a_filter(service: Any, run: Run) -> None:
    """Those that are live now; the bell rings once when all have ended."""
    service.add("1", "succeeded", exit_code=0)
    service.on("GET", "/jobs", {"jobs": [service.add("2", "failed", exit_code=3)], "next": None, "total": 1})
    result = run("wait", "--bell", "--name", "x")
    assert (result.exit_code, result.stderr.count("\a")) == (3, 1)


@pytest.mark.parametrize(("meant", "count", "key"), [("3", 1, "12.3"), ("1,3-4", 3, "12.1,3-4"), ("1-4", 4, "12")])
@pytest.mark.parametrize("command", [*sorted(set(ORDERS) - {"wait"}), "rerun"])
def test_of_an_array_only_the_parts_that_are_meant(
    service: Any, run: Run, command: str, meant: str, count: int, key: str
) -> None:
    """What the service lists for an array are those that pass; the others are left alone."""
    whole = service.add("12", "running", parts={"indices": "1-4", "count": 4})
    service.on(
        "GET", "/jobs", {"jobs": [whole | {"parts": {"indices": meant, "count": count}}], "next": None, "total": 1}
    )
    service.on("POST", "/jobs/*", lambda request: service.jobs["12"])
    assert run(command, "--tag", "bad").exit_code == 0
    [asked] = [each for each in service.requests if each.method == "POST"]
    assert unquote(asked.path) == f"/api/v1/jobs/{key}/{command}"


def test_several_are_shown(service: Any, run: Run) -> None:
    """One after the other; as JSON a list."""
    service.add("1", name="one")
    service.add("2", name="two")
    shown = run("show", "1", "2").stdout
    assert shown.index("one") < shown.index("two")
    assert [job["key"] for job in json.loads(run("show", "1", "2", "--json").stdout)] == ["1", "2"]


def test_me_is_who_asks(queues: Any, run: Run) -> None:
    """As the service knows the caller."""
    queues.on("GET", "/info", {"user": "ann"})
    run("ls", "--me", "-u", "bob")
    [asked] = [each for each in queues.requests if each.path.endswith("/jobs")]
    assert asked.lists["user"] == ["bob", "ann"]


def test_what_failed_is_submitted_again_by_filters(queues: Any, run: Run) -> None:
    """What was cancelled was not wanted any more."""
    run("rerun", "--queue", "root.batch")
    run("rerun", "--queue", "root.batch", "--state", "cancelled")
    asked = [each for each in queues.requests if each.path.endswith("/jobs")]
    assert [each.lists["state"] for each in asked] == [["failed", "timed_out", "lost", "evicted"], ["cancelled"]]


def test_of_several_states_in_one_word_it_is_said_how_they_are_written(run: Callable[..., Any]) -> None:
    """As `squeue -t` has them."""
    refused = run("ls", "--state", "running,waiting")
    assert (refused.exit_code, "one state each: -s running -s waiting" in refused.stderr) == (2, True)
