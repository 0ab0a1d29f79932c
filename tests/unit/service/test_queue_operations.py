"""Who may do what with one job: each operation on it, by its owner, administrators of its queue and of the service,
others, and with tokens for a queue. A route about a job without a row fails.
"""

from __future__ import annotations

import json
import pwd
from typing import Any

import pytest

from fairlead.local import accounts

pytestmark = pytest.mark.real

CLERK = next(a for each in pwd.getpwall() if each.pw_uid and (a := accounts.by_uid(each.pw_uid)).groups[0].isalpha())
"""A user that this machine has, in a group with a name."""
QUEUES = f"""
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - {{name: default, submitacl: "*"}}
          - name: team
            adminacl: " {CLERK.groups[0]}"
            queues: [{{name: day, submitacl: "alice"}}, {{name: night, submitacl: "alice"}}]
          - {{name: teamwork, submitacl: "*"}}
"""
ACT, READ_IT, OWN, RESERVE = "act", "read it", "own", "reserve"
"""Owner, administrators of its queue and of the service; who may read it all; only its owner; not its owner."""
OPERATIONS = {
    ("GET", ""): ACT,
    ("PATCH", ""): ACT,
    ("GET", "/why"): ACT,
    ("GET", "/forecast"): ACT,
    ("GET", "/script"): ACT,
    ("GET", "/logs"): READ_IT,
    ("POST", "/terminal"): READ_IT,
    ("POST", "/checkpoint"): READ_IT,
    ("POST", "/cancel"): ACT,
    ("POST", "/suspend"): ACT,
    ("POST", "/resume"): ACT,
    ("POST", "/requeue"): ACT,
    ("POST", "/rerun"): OWN,
    ("POST", "/hold"): ACT,
    ("POST", "/release"): ACT,
    ("POST", "/signal"): ACT,
    ("POST", "/reserve"): RESERVE,
}
BODIES = {
    "": {"name": "other"},
    "/signal": {"number": 10},
    "/reserve": {"on": True},
    "/cancel": {"states": ["running"]},
    "/release": {},
    "/rerun": {},
}
CHANGED_BY = ("", "/hold", "/release")
"""What changes a job that waits on hold: each such test has one of its own."""
ALLOWED = {
    "alice": {ACT, READ_IT, OWN},
    "alice in root.team": {ACT, READ_IT, OWN},
    "clerk": {ACT, RESERVE},
    "carol": {ACT, READ_IT, RESERVE},
    "carol in root.team": {ACT, READ_IT, RESERVE},
    "bob": None,
    "clerk to submit": None,
    "alice in root.teamwork": None,
    "carol in root.teamwork": None,
    "carol to submit": None,
}
"""What of these each may do; None: the job is not there for it."""


@pytest.fixture(scope="module")
def job(served: Any) -> str:
    """One of alice's, on hold, in a queue that the clerk administers."""
    assert served.call("PUT", "/api/v1/config", {"text": QUEUES}).status == 200
    users = {"alice": 54_321, "carol": 54_323, "clerk": CLERK.uid}
    for who in ALLOWED:
        name, _, limit = who.partition(" ")
        given = {"queue": limit.removeprefix("in ")} if limit.startswith("in ") else {}
        scope = {"scope": "submit"} if limit == "to submit" else {}
        if who not in served.tokens:
            user = CLERK.name if name == "clerk" else name
            made = served.place.tokens.create(name="", user=user, uid=users[name], **given, **scope)
            served.tokens[who] = made[0]
    return one(served)


def one(served: Any) -> str:
    key: str = served.submit("true", who="alice", queue="root.team.day", hold=True)
    return key


def asked(served: Any, key: str, operation: tuple[str, str], who: str) -> tuple[int, str]:
    method, path = operation
    connection = served.open(who)
    try:
        body = None if method == "GET" else json.dumps(BODIES.get(path, {}))
        headers = {"Content-Type": "application/json"} if body else {}
        connection.request(method, f"/api/v1/jobs/{key}{path}", body, headers | served.headers(who))
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_each_operation_on_a_job_has_a_row(served: Any) -> None:
    """And each row is an operation."""
    described = served.call("GET", "/api/v1/openapi.json", who="alice").json["paths"]
    about = {path: methods for path, methods in described.items() if path.startswith("/api/v1/jobs/{key}")}
    found = {(m.upper(), path.removeprefix("/api/v1/jobs/{key}")) for path, methods in about.items() for m in methods}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize("who", ALLOWED)
@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_who_may_do_it(served: Any, job: str, operation: tuple[str, str], who: str) -> None:
    """What is not there for somebody is 404 for every operation, so that nothing is told about it."""
    allowed = ALLOWED[who]
    key = one(served) if allowed and operation[1] in CHANGED_BY else job
    status, said = asked(served, key, operation, who)
    if allowed is None:
        assert status == 404, said
    elif OPERATIONS[operation] in allowed:
        assert status not in (401, 403, 404), said
    else:
        assert status == (409 if operation[1] == "/rerun" else 403), said


def test_a_token_for_a_queue_submits_there_alone(served: Any, job: str) -> None:
    """Elsewhere it is refused, also by moving; what it may submit to is decided by the access lists all the same."""
    del job
    there = {"jobs": [{"command": ["true"], "cwd": "/", "queue": "root.team.night", "hold": True}]}
    elsewhere = {"jobs": [{"command": ["true"], "cwd": "/", "queue": "root.teamwork", "hold": True}]}
    answer = served.call("POST", "/api/v1/jobs", there, "alice in root.team")
    assert answer.status == 201, answer.body
    key = answer.json["jobs"][0]["key"]
    answer = served.call("POST", "/api/v1/jobs", elsewhere, "alice in root.team")
    assert answer.status == 403
    said = "this token is for root.team alone, and the job would be in root.teamwork"
    assert said in answer.error["detail"]
    assert served.call("POST", "/api/v1/jobs", elsewhere, "alice").status == 201
    moved = served.call("PATCH", f"/api/v1/jobs/{key}", {"queue": "root.teamwork"}, "alice in root.team")
    assert moved.status == 403
    assert served.call("PATCH", f"/api/v1/jobs/{key}", {"queue": "root.team.day"}, "alice in root.team").status == 200


def test_a_token_for_a_queue_lists_its_jobs_alone(served: Any, job: str) -> None:
    """Whoever its user is."""
    own = served.submit("true", who="carol", queue="root.teamwork", hold=True)
    listed = {
        who: {row["key"] for row in served.call("GET", "/api/v1/jobs?limit=1000", who=who).json["jobs"]}
        for who in ("carol", "carol in root.team", "carol in root.teamwork", "alice in root.teamwork")
    }
    assert {job, own} <= listed["carol"]
    assert (job in listed["carol in root.team"], own in listed["carol in root.team"]) == (True, False)
    assert (job in listed["carol in root.teamwork"], own in listed["carol in root.teamwork"]) == (False, True)
    assert not {job, own} & listed["alice in root.teamwork"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/tokens", {}),
        ("POST", "/api/v1/tickets", None),
        ("POST", "/api/v1/sessions", None),
        ("PUT", "/api/v1/config", {"text": QUEUES}),
        ("POST", "/api/v1/nodes/nowhere/drain", {}),
        ("POST", "/api/v1/clean", {}),
    ],
)
def test_a_token_for_a_queue_is_for_nothing_about_more(
    served: Any, job: str, method: str, path: str, body: Any
) -> None:
    """An administrator's neither; nor can it make itself a wider one."""
    del job
    answer = served.call(method, path, body, "carol in root.team")
    assert answer.status == 403
    assert answer.error["detail"] == f"this token is for root.team alone, and {method} {path} is about more"


def test_it_is_made_for_a_queue_that_is_there(served: Any, job: str) -> None:
    """With or without `root.`; the list names it."""
    del job
    made = served.call("POST", "/api/v1/tokens", {"name": "n", "queue": "team", "scope": "submit"}, "alice").json
    assert made["queue"] == "root.team"
    assert made["id"] in {
        each["id"] for each in served.call("GET", "/api/v1/tokens", who="alice").json["tokens"] if each["queue"]
    }
    answer = served.call("POST", "/api/v1/tokens", {"queue": "nowhere"}, "alice")
    assert (answer.status, answer.error["field"]) == (404, "queue")
    assert "there is no queue 'nowhere'; `fairlead queues` lists them" in answer.error["detail"]
