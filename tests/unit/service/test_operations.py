"""Who may do what: every operation of the service, by every kind of caller, over both sockets, with every token.

A route without a row fails. The rows say what is the least that lets one through; what comes after (422, 404, 200) is
the business of the route's own tests. Each operation is asked with what changes nothing: names that are not there.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import time
from typing import Any

import pytest

pytestmark = pytest.mark.real

ALL, USER, ADMIN = "all", "user", "administrator"
"""Anybody at all; who is known; an administrator of the service."""
READ, SUBMIT, ADMINISTER = "read", "submit", "administer"
OPERATIONS: dict[tuple[str, str], tuple[str, str]] = {
    ("GET", "/healthz"): (ALL, READ),
    ("GET", "/metrics"): (USER, READ),
    ("GET", "/api/v1/jobs"): (USER, READ),
    ("POST", "/api/v1/jobs"): (USER, SUBMIT),
    ("GET", "/api/v1/jobs/{key}"): (USER, READ),
    ("PATCH", "/api/v1/jobs/{key}"): (USER, SUBMIT),
    ("GET", "/api/v1/jobs/{key}/why"): (USER, READ),
    ("GET", "/api/v1/jobs/{key}/forecast"): (USER, READ),
    ("GET", "/api/v1/jobs/{key}/logs"): (USER, READ),
    ("POST", "/api/v1/jobs/{key}/terminal"): (USER, SUBMIT),
    ("POST", "/api/v1/jobs/{key}/cancel"): (USER, SUBMIT),
    ("POST", "/api/v1/jobs/{key}/checkpoint"): (USER, SUBMIT),
    ("POST", "/api/v1/jobs/{key}/suspend"): (USER, SUBMIT),
    ("POST", "/api/v1/jobs/{key}/resume"): (USER, SUBMIT),
    ("POST", "/api/v1/jobs/{key}/requeue"): (USER, SUBMIT),
    ("POST", "/api/v1/jobs/{key}/rerun"): (USER, SUBMIT),
    ("POST", "/api/v1/jobs/{key}/hold"): (USER, SUBMIT),
    ("POST", "/api/v1/jobs/{key}/release"): (USER, SUBMIT),
    ("POST", "/api/v1/jobs/{key}/reserve"): (ADMIN, SUBMIT),
    ("POST", "/api/v1/clean"): (USER, SUBMIT),
    ("POST", "/api/v1/whatif"): (USER, READ),
    ("GET", "/api/v1/forecasts/score"): (USER, READ),
    ("GET", "/api/v1/queues"): (USER, READ),
    ("GET", "/api/v1/nodes"): (USER, READ),
    ("POST", "/api/v1/nodes/{node_id}/drain"): (ADMIN, ADMINISTER),
    ("POST", "/api/v1/nodes/{node_id}/undrain"): (ADMIN, ADMINISTER),
    ("PUT", "/api/v1/nodes/{node_id}/labels"): (ADMIN, ADMINISTER),
    ("GET", "/api/v1/occupants"): (USER, READ),
    ("GET", "/api/v1/gpus"): (USER, READ),
    ("GET", "/api/v1/info"): (USER, READ),
    ("GET", "/api/v1/events"): (USER, READ),
    ("GET", "/api/v1/usage"): (USER, READ),
    ("GET", "/api/v1/limits"): (USER, READ),
    ("GET", "/api/v1/config"): (USER, READ),
    ("PUT", "/api/v1/config"): (ADMIN, ADMINISTER),
    ("GET", "/api/v1/config/history"): (USER, READ),
    ("GET", "/api/v1/config/status"): (USER, READ),
    ("POST", "/api/v1/config/check"): (USER, READ),
    ("POST", "/api/v1/config/diff"): (USER, READ),
    ("POST", "/api/v1/config/compare"): (USER, READ),
    ("POST", "/api/v1/config/rollback"): (ADMIN, ADMINISTER),
    ("GET", "/api/v1/priority-classes"): (USER, READ),
    ("PUT", "/api/v1/priority-classes/{name}"): (ADMIN, ADMINISTER),
    ("DELETE", "/api/v1/priority-classes/{name}"): (ADMIN, ADMINISTER),
    ("GET", "/api/v1/quotas"): (USER, READ),
    ("PUT", "/api/v1/quotas/{name}"): (ADMIN, ADMINISTER),
    ("DELETE", "/api/v1/quotas/{name}"): (ADMIN, ADMINISTER),
    ("GET", "/api/v1/budgets"): (USER, READ),
    ("PUT", "/api/v1/budgets/{name}"): (ADMIN, ADMINISTER),
    ("DELETE", "/api/v1/budgets/{name}"): (ADMIN, ADMINISTER),
    ("GET", "/api/v1/windows"): (USER, READ),
    ("PUT", "/api/v1/windows/{name}"): (ADMIN, ADMINISTER),
    ("DELETE", "/api/v1/windows/{name}"): (ADMIN, ADMINISTER),
    ("GET", "/api/v1/tokens"): (USER, READ),
    ("POST", "/api/v1/tokens"): (USER, ADMINISTER),
    ("DELETE", "/api/v1/tokens/{token_id}"): (USER, ADMINISTER),
    ("POST", "/api/v1/jobs/{key}/signal"): (USER, SUBMIT),
    ("GET", "/api/v1/jobs/{key}/script"): (USER, READ),
    ("GET", "/api/v1/unknown-runs"): (USER, READ),
    ("POST", "/api/v1/unknown-runs/{run}/stop"): (USER, ADMINISTER),
    ("GET", "/api/v1/line"): (USER, READ),
    ("GET", "/api/v1/line/forecast"): (USER, READ),
    ("GET", "/api/v1/kept"): (USER, READ),
    ("GET", "/api/v1/changes"): (USER, READ),
    ("POST", "/api/v1/tickets"): (USER, ADMINISTER),
    ("POST", "/api/v1/sessions"): (USER, ADMINISTER),
    ("DELETE", "/api/v1/sessions"): (USER, ADMINISTER),
}
PARTITION = "/ws/v1/partition/{partition}"
YUNIKORN = {
    ("GET", "/ws/v1/clusters"): (USER, READ),
    ("GET", "/ws/v1/partitions"): (USER, READ),
    ("GET", f"{PARTITION}/placementrules"): (USER, READ),
    ("GET", f"{PARTITION}/queues"): (USER, READ),
    ("GET", f"{PARTITION}/queue/{{queue}}"): (USER, READ),
    ("GET", f"{PARTITION}/nodes"): (USER, READ),
    ("GET", f"{PARTITION}/node/{{node}}"): (USER, READ),
    ("GET", f"{PARTITION}/applications/{{state}}"): (USER, READ),
    ("GET", f"{PARTITION}/application/{{application}}"): (USER, READ),
    ("GET", f"{PARTITION}/queue/{{queue}}/applications"): (USER, READ),
    ("GET", f"{PARTITION}/queue/{{queue}}/applications/{{state}}"): (USER, READ),
    ("GET", f"{PARTITION}/queue/{{queue}}/application/{{application}}"): (USER, READ),
    ("GET", f"{PARTITION}/usage/users"): (USER, READ),
    ("GET", f"{PARTITION}/usage/user/{{user}}"): (USER, READ),
    ("GET", f"{PARTITION}/usage/groups"): (USER, READ),
    ("GET", f"{PARTITION}/usage/group/{{group}}"): (USER, READ),
    ("GET", "/ws/v1/config"): (USER, READ),
    ("POST", "/ws/v1/validate-conf"): (USER, READ),
    ("GET", "/ws/v1/history/apps"): (USER, READ),
    ("GET", "/ws/v1/history/containers"): (USER, READ),
    ("GET", "/ws/v1/events/batch"): (USER, READ),
    ("GET", "/ws/v1/events/stream"): (USER, READ),
    ("GET", "/ws/v1/metrics"): (USER, READ),
    ("GET", "/ws/v1/scheduler/healthcheck"): (USER, READ),
    ("GET", "/ws/v1/scheduler/node-utilizations"): (USER, READ),
    ("GET", "/debug/fullstatedump"): (ADMIN, READ),
    ("GET", "/debug/stack"): (ADMIN, READ),
}
OPERATIONS |= YUNIKORN
NAMES = {
    "key": "999999",
    "name": "nothing-of-this-name",
    "node_id": "nowhere",
    "token_id": "999999",
    "run": "9-9",
    "partition": "default",
    "queue": "root.default",
    "node": "nowhere",
    "state": "active",
    "application": "999999",
    "user": "alice",
    "group": "alice",
}
"""What stands in a path."""
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/v1/jobs/{key}/reserve"): {"on": True},
    ("POST", "/api/v1/nodes/{node_id}/drain"): {},
    ("POST", "/api/v1/nodes/{node_id}/undrain"): {},
    ("PUT", "/api/v1/nodes/{node_id}/labels"): {},
    ("PUT", "/api/v1/config"): {"text": "partitions: nothing"},
    ("POST", "/api/v1/config/rollback"): {"version": 999_999},
    ("PUT", "/api/v1/priority-classes/{name}"): {"value": 3},
    ("PUT", "/api/v1/quotas/{name}"): {"queue": "root.default"},
    ("PUT", "/api/v1/budgets/{name}"): {"selector": [], "min_available": 1},
    ("PUT", "/api/v1/windows/{name}"): {"starts_at_ms": 2**42, "length_ms": 1},
}
"""Of those that look at the body before they look at the caller, one that makes sense."""


def operations(served: Any) -> set[tuple[str, str]]:
    """What the service has."""
    described = served.call("GET", "/api/v1/openapi.json", who="alice").json
    return {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}


def test_each_operation_has_a_row(served: Any) -> None:
    """And each row is an operation."""
    assert operations(served) == set(OPERATIONS)


@pytest.fixture(autouse=True)
def job(served: Any) -> None:
    """One of alice's, on hold: what is not there does not say who may do it."""
    if "job" not in served.tokens:
        served.tokens["job"] = served.submit("true", who="alice", hold=True)


def asked(served: Any, operation: tuple[str, str], who: str) -> tuple[int, str]:
    """Status and sentence, of a request that is refused by the route at the latest; a stream is left at once."""
    method, path = operation
    path = path.format(**NAMES | ({"key": served.tokens["job"]} if path.endswith("reserve") else {}))
    connection = served.open(who)
    try:
        body = json.dumps(BODIES.get(operation, {"nothing of this": 1})) if method not in ("GET", "DELETE") else None
        headers = {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, body, headers | served.headers(who))
        response = connection.getresponse()
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream") or "/stream" in path
        is_read = not is_stream or response.status >= 400
        return response.status, response.read().decode() if is_read else ""
    finally:
        connection.close()


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_a_stranger(served: Any, operation: tuple[str, str]) -> None:
    """Over TCP nothing but what is for all, whatever is sent; with a token that is none as well."""
    served.tokens["impostor"] = "fl_" + "x" * 43
    for who in ("stranger", "impostor"):
        status, said = asked(served, operation, who)
        assert (status == 401) == (OPERATIONS[operation][0] != ALL), said


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_a_user_and_an_administrator(served: Any, operation: tuple[str, str]) -> None:
    """Over TCP as over the socket: alice is a user, carol an administrator, and root is one over the Unix socket."""
    least = OPERATIONS[operation][0]
    status, said = asked(served, operation, "alice")
    assert status != 401
    assert (status == 403) == (least == ADMIN), said
    for who in ("carol", ""):
        status, said = asked(served, operation, who)
        assert status not in (401, 403), said


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_tokens_for_less(served: Any, operation: tuple[str, str]) -> None:
    """A token lets through what it is for, and no more; one to submit makes no administrator of anybody."""
    least, needs = OPERATIONS[operation]
    widths = [READ, SUBMIT, ADMINISTER]
    for scope in widths:
        who = f"carol to {scope}"
        if who not in served.tokens:
            served.tokens[who] = served.place.tokens.create(name="", user="carol", uid=54_323, scope=scope)[0]
        status, said = asked(served, operation, who)
        if least != ALL and widths.index(scope) < widths.index(needs):
            assert status == 403, said
            assert f"this token is to {scope}, and" in said
        elif scope == SUBMIT and least == ADMIN:
            assert status in (403, 404), said
        else:
            assert status not in (401, 403), f"{scope}: {said}"


def test_a_token_is_over_when_it_was_said(served: Any) -> None:
    """Until then it works; the list says until when."""
    made = served.call("POST", "/api/v1/tokens", {"name": "brief", "scope": "read", "lifetime_ms": 1500}).json
    assert made["expires_at_ms"] - made["created_at_ms"] == 1500
    assert made["scope"] == "read"
    served.tokens["brief"] = made["token"]
    assert served.call("GET", "/api/v1/info", who="brief").status == 200
    time.sleep(1.6)
    answer = served.call("GET", "/api/v1/info", who="brief")
    assert (answer.status, answer.error["detail"]) == (
        401,
        "the time of this token is over: `fairlead token create` makes one",
    )


def test_a_token_makes_none_that_outlives_it(served: Any) -> None:
    """Also by way of a session: who finds one that is for a day would have one for ever."""
    brief = {"name": "brief", "lifetime_ms": 60_000}
    served.tokens["brief"] = served.call("POST", "/api/v1/tokens", brief).json["token"]
    served.tokens["session"] = served.call("POST", "/api/v1/sessions", who="brief").json["session"]
    for who in ("brief", "session"):
        for lifetime in ({}, {"lifetime_ms": 61_000}):
            refused = served.call("POST", "/api/v1/tokens", {"name": "longer", **lifetime}, who=who)
            assert (refused.status, refused.error["field"]) == (403, "lifetime_ms")
            assert " more, and what is made with it for no longer" in refused.error["detail"]
        made = served.call("POST", "/api/v1/tokens", {"name": "briefer", "lifetime_ms": 1000}, who=who)
        assert made.status == 201


def test_a_token_ends_with_its_account(served: Any) -> None:
    """Another user may get the number of one that was removed: the old token is not his (F9)."""
    before = os.getuid() + 77_777
    served.tokens["gone"] = served.place.tokens.create(name="", user="ada", uid=before)[0]
    answer = served.call("GET", "/api/v1/jobs", who="gone")
    assert answer.status == 401
    assert f"made for ada, whose account is gone; its number is that of uid-{before} now" in answer.error["detail"]


@pytest.mark.parametrize("end", ["revoked", "over"])
def test_a_stream_ends_with_its_token(served: Any, end: str) -> None:
    """Within a second or two, also where nothing happens."""
    lifetime = {"lifetime_ms": 1000} if end == "over" else {}
    made = served.call("POST", "/api/v1/tokens", {"name": end, **lifetime}).json
    served.tokens[end] = made["token"]
    connection = served.open(end)
    connection.request("GET", "/api/v1/events", headers=served.headers(end))
    response = connection.getresponse()
    assert response.status == 200
    if end == "revoked":
        assert served.call("DELETE", f"/api/v1/tokens/{made['id']}").status == 200
    began = time.monotonic()
    with contextlib.suppress(OSError, http.client.HTTPException):
        while response.read(1):
            pass
    assert time.monotonic() - began < 5
    connection.close()


@pytest.mark.thorough
def test_a_session_ends_with_its_token(served: Any) -> None:
    """A browser that signed in with a token, and what it made of that: another session by a ticket."""
    made = served.call("POST", "/api/v1/tokens", {"name": "browser"}).json
    served.tokens["browser"] = made["token"]
    for name, shows, path in (
        ("session", "browser", "sessions"),
        ("ticket", "session", "tickets"),
        ("second", "ticket", "sessions"),
    ):
        answer = served.call("POST", f"/api/v1/{path}", who=shows)
        assert answer.status == 201
        served.tokens[name] = answer.json[path[:-1]]
    assert [served.call("GET", "/api/v1/jobs", who=name).status for name in ("session", "second")] == [200, 200]
    assert served.call("DELETE", f"/api/v1/tokens/{made['id']}").status == 200
    for name in ("session", "second"):
        refused = served.call("GET", "/api/v1/jobs", who=name)
        assert refused.status == 401
        assert "may have been revoked" in refused.json["detail"]
