"""Access lists at work: submitting, seeing, cancelling, changing priority and queue."""

from __future__ import annotations

import json
import pwd
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.local import accounts

pytestmark = pytest.mark.real

CLERK = next(a for each in pwd.getpwall() if each.pw_uid and (a := accounts.by_uid(each.pw_uid)).groups[0].isalpha())
"""A user that this machine has, in a group with a name."""
GROUP = CLERK.groups[0]
TEXT = f"""
partitions:
  - name: default
    preemption: {{rule: priority}}
    queues:
      - name: root
        queues:
          - name: default
            submitacl: "*"
          - name: team
            adminacl: " {GROUP}"
            queues:
              - {{name: day, submitacl: "alice"}}
              - {{name: night, submitacl: "alice", resources: {{max: {{vcore: 1}}}}}}
          - {{name: far, submitacl: "dave"}}
"""


@pytest.fixture(autouse=True)
def queues(served: Any) -> Iterator[None]:
    assert served.call("PUT", "/api/v1/config", {"text": TEXT}).status == 200
    if "clerk" not in served.tokens:
        served.tokens["clerk"] = served.place.tokens.create(name="test", user=CLERK.name, uid=CLERK.uid)[0]
    yield
    for row in served.call("GET", "/api/v1/jobs?state=running&state=waiting").json["jobs"]:
        served.call("POST", f"/api/v1/jobs/{row['key']}/cancel", {})
        served.wait(row["key"])


def sleeper(served: Any, who: str = "alice", queue: str = "root.team.day", **fields: Any) -> str:
    key: str = served.submit("/bin/sleep", "60", who=who, queue=queue, grace_ms=0, **fields)
    return key


def patch(served: Any, key: str, who: str = "", **change: Any) -> Any:
    return served.call("PATCH", f"/api/v1/jobs/{key}", change, who)


def test_who_may_not_submit_is_told_why_and_it_is_recorded(served: Any) -> None:
    """403 with the queue that would have to name him; the refusal is a rejected work with the reason."""
    body = {"jobs": [{"command": ["/bin/true"]}, {"command": ["/bin/true"], "queue": "root.far"}]}
    before = served.call("GET", "/api/v1/jobs?user=alice", who="alice").json["total"]
    answer = served.call("POST", "/api/v1/jobs", body, "alice")
    assert (answer.status, answer.error["code"], answer.error["field"]) == (403, "forbidden", "jobs[1].queue")
    [detail] = answer.error["details"]
    assert (detail["queue"], detail["code"]) == ("root.far", "submit-denied")
    assert "submitacl of root.far" in answer.error["detail"]
    assert served.call("GET", "/api/v1/jobs?user=alice", who="alice").json["total"] == before + 1
    shown = served.call("GET", f"/api/v1/jobs/{detail['key']}", who="alice").json
    assert (shown["state"], shown["queue"], shown["reason"]["code"]) == ("rejected", "root.far", "submit-denied")
    assert shown["history"][-1]["what"] == "rejected"


def test_a_repeated_refusal_is_the_same(served: Any) -> None:
    """The key of the first is in it, and nothing new is recorded."""
    body = {"jobs": [{"command": ["/bin/true"], "queue": "root.far"}]}
    first, second = (
        served.call("POST", "/api/v1/jobs", body, "alice", **{"Idempotency-Key": "twice"}) for _ in range(2)
    )
    assert (first.status, second.status) == (403, 403)
    assert [d["key"] for d in first.error["details"]] == [d["key"] for d in second.error["details"]]


def test_an_administrator_of_a_queue_sees_and_ends_its_job(served: Any) -> None:
    """By his group; what it writes he does not see. Others see nothing of it."""
    key = sleeper(served)
    served.wait(key, "running")
    assert served.call("GET", f"/api/v1/jobs/{key}", who="clerk").json["user"] == "alice"
    assert key in [row["key"] for row in served.call("GET", "/api/v1/jobs", who="clerk").json["jobs"]]
    assert served.call("GET", f"/api/v1/jobs/{key}/logs", who="clerk").status == 403
    assert patch(served, key, "clerk", queue="root.team.night").json["queue"] == "root.team.night"
    assert served.call("POST", f"/api/v1/jobs/{key}/cancel", {}, "clerk").status == 200
    ended = served.wait(key)
    assert (ended["state"], ended["reason"]["values"]["who"]) == ("cancelled", CLERK.name)
    elsewhere = sleeper(served, queue="root.default")
    for who in ("clerk", "bob"):
        assert served.call("GET", f"/api/v1/jobs/{elsewhere}", who=who).status == 404
        assert served.call("POST", f"/api/v1/jobs/{elsewhere}/cancel", {}, who).status == 404


def test_work_is_moved_with_all_it_has(served: Any) -> None:
    """Waiting or running; its owner to where he may submit, and its story says so."""
    key = sleeper(served, resources={"cpu": 1})
    served.wait(key, "running")
    assert patch(served, key, "alice", queue="team.night").json["queue"] == "root.team.night"
    tree = served.call("GET", "/api/v1/queues").json["queues"][0]
    team = next(q for q in tree["children"] if q["path"] == "root.team")
    assert {q["path"]: q["allocated"].get("cpu", 0) for q in team["children"]} == {
        "root.team.day": 0,
        "root.team.night": 1,
    }
    waiting = sleeper(served, queue="root.team.night", resources={"cpu": 1})
    served.wait(waiting, "waiting")
    patch(served, waiting, "alice", queue="root.default", priority=5)
    shown = served.wait(waiting, "running")
    assert shown["priority"] == 5
    details = {entry["what"]: entry["detail"] for entry in shown["history"]}
    assert details["moved"] == "from root.team.night to root.default by alice"
    assert details["priority"] == "0 to 5 by alice"


def test_moves_that_cannot_be_say_why_and_change_nothing(served: Any) -> None:
    """No right to the target, no such queue, no room in it, an ended work."""
    key = sleeper(served, resources={"cpu": 2}, priority=1)
    served.wait(key, "running")
    denied = patch(served, key, "alice", queue="root.far")
    assert (denied.status, denied.error["field"]) == (403, "queue")
    unknown = patch(served, key, "alice", queue="root.team.dya")
    assert unknown.status == 422
    assert "root.team.day" in unknown.error["detail"]
    full = patch(served, key, "alice", queue="root.team.night")
    assert full.status == 409
    assert "root.team.night" in full.error["detail"]
    assert served.show(key)["queue"] == "root.team.day"
    assert patch(served, key, "alice").status == 422
    assert patch(served, key, "alice", queue="root.default", priority=7).status == 409
    assert served.show(key)["queue"] == "root.team.day", "what is refused in part is refused as a whole"
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    served.wait(key)
    assert patch(served, key, queue="root.default").status == 409


def test_an_administrator_of_the_service_may_do_everything(served: Any) -> None:
    """Also where he is on no list."""
    key = sleeper(served)
    served.wait(key, "running")
    assert patch(served, key, "carol", queue="root.far").json["queue"] == "root.far"
    assert served.call("GET", f"/api/v1/jobs/{key}/logs", who="carol").status == 200


def test_an_administrator_may_submit_by_his_own_list_alone(served: Any) -> None:
    """What runs as him goes through the queues' rules like everybody's."""
    body = {"jobs": [{"command": ["/bin/true"], "queue": "root.far"}]}
    assert served.call("POST", "/api/v1/jobs", body, "carol").status == 403


def events(served: Any, who: str, key: str) -> list[str]:
    """The names of the events about a job that somebody is told, up to its end; then those that follow soon."""
    connection = served.open(who)
    connection.request("GET", "/api/v1/events?from=0", headers=served.headers(who))
    response = connection.getresponse()
    found = []
    marker = served.submit("/bin/true", who=who, queue="root.default")
    while line := response.readline():
        if not line.startswith(b"data:"):
            continue
        event = json.loads(line[5:])
        if event.get("key") == key:
            found.append(event["type"])
        if event.get("key") == marker and event["type"] == "job.ended":
            break
    connection.close()
    return found


def test_the_stream_tells_administrators_of_a_queue_about_its_job(served: Any) -> None:
    """From history and live, by the lists as they are; others hear nothing."""
    key = served.submit("/bin/true", who="alice", queue="root.team.day")
    served.wait(key)
    assert events(served, "clerk", key)[:2] == ["job.submitted", "job.placed"]
    assert events(served, "bob", key) == []


def test_groups_are_those_of_the_system_at_submission(served: Any) -> None:
    """They are part of the record, and limits and access lists go by them."""
    key = served.submit("/bin/true", queue="root.team.day", who="alice")
    groups = served.place.runtime.read(lambda _: served.place.local.jobs.get(key).spec.groups).result(10)
    assert groups == accounts.by_uid(54_321).groups
