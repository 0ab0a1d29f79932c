"""What the API says and takes about attempts, checkpoints and reservations."""

from __future__ import annotations

import time
from typing import Any

import pytest


def test_each_attempt_has_its_own_output(served: Any) -> None:
    """The newest if none is named; one that never was is refused."""
    script = "echo try $FAIRLEAD_ATTEMPT; test $FAIRLEAD_ATTEMPT -ge 2"
    key = served.submit("/bin/sh", "-c", script, retry={"limit": 4})
    shown = served.wait(key)
    assert (shown["state"], shown["attempts"], shown["retry_due_ms"]) == ("succeeded", 2, None)
    assert shown["retry"] == {"limit": 4, "backoff_ms": 0, "never_on": []}
    assert [(p["attempt"], p["state"], p["exit_code"], p["how"]) for p in shown["past"]] == [
        (1, "failed", 1, "exit status 1")
    ]
    logs = f"/api/v1/jobs/{key}/logs"
    assert [served.call("GET", logs + query).body for query in ("", "?attempt=1", "?attempt=2")] == [
        b"try 2\n",
        b"try 1\n",
        b"try 2\n",
    ]
    refused = served.call("GET", f"{logs}?attempt=3")
    assert (refused.status, refused.error["field"]) == (404, "attempt")
    assert "has had 2 attempts" in refused.error["detail"]


def test_following_goes_on_from_attempt_to_attempt(served: Any) -> None:
    """Unless one is named: then it ends with that."""
    script = "echo try $FAIRLEAD_ATTEMPT; sleep 0.2; test $FAIRLEAD_ATTEMPT -ge 3"
    key = served.submit("/bin/sh", "-c", script, retry={"limit": 4, "backoff_ms": 200})
    assert served.call("GET", f"/api/v1/jobs/{key}/logs?follow=true&attempt=1").body == b"try 1\n"
    assert served.call("GET", f"/api/v1/jobs/{key}/logs?follow=true").body.endswith(b"try 2\ntry 3\n")


def test_answers_name_the_job_and_not_its_attempt(served: Any) -> None:
    """No command knows `17#2`: what says that it should be cancelled says `17`."""
    here = {"queue": "root.small", "resources": {"cpu": 1}}
    runs = served.submit("/bin/sh", "-c", "test $FAIRLEAD_ATTEMPT -ge 2 && sleep 60", retry={"limit": 1}, **here)
    end = time.monotonic() + 15
    while not served.show(runs)["past"]:
        assert time.monotonic() < end
    served.wait(runs, "running")
    waits = served.submit("true", **here)
    why = served.call("GET", f"/api/v1/jobs/{waits}/why?changes=true&seconds=60")
    verdict = why.json["verdict"]
    assert [holder["key"] for holder in verdict["holders"]] == [runs]
    ends = next(change for change in verdict["changes"] if change["dimension"] == "cancel")
    assert ends["parts"][0]["subject"] == f"{runs}/{runs}"
    assert b"#2" not in why.body
    supposed = served.call("POST", "/api/v1/whatif", {"cancel": [runs]})
    assert [job["key"] for job in supposed.json["ends"]["jobs"]] == [runs]
    assert b"#2" not in supposed.body
    for key in (runs, waits):
        served.call("POST", f"/api/v1/jobs/{key}/cancel", {})


def test_a_back_off_is_said(served: Any) -> None:
    """When the next attempt enters, and how the last one ended."""
    key = served.submit("/bin/sh", "-c", "exit 5", retry={"limit": 1, "backoff_ms": 60_000, "never_on": [9]})
    served.wait(key, "waiting")
    end = served.place.runtime.clock.now() + 10_000
    while not served.show(key)["past"]:
        assert served.place.runtime.clock.now() < end
    said = served.call("GET", f"/api/v1/jobs/{key}/why").json
    assert said["reason"]["code"] == "attempt-held-back"
    assert said["sentence"].startswith("the next attempt (2 of at most 2) enters at ")
    assert said["sentence"].endswith("after its back-off; the last one failed: exit status 5")
    assert served.call("POST", f"/api/v1/jobs/{key}/cancel", {}).json["state"] == "cancelled"


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"retry": {}}, "jobs.0.retry.limit"),
        ({"retry": {"limit": -1}}, "jobs.0.retry.limit"),
        ({"retry": {"limit": 1, "backoff_ms": 3_600_001}}, "jobs.0.retry.backoff_ms"),
        ({"retry": {"limit": 1, "never_on": [0]}}, "jobs.0.retry.never_on.0"),
        ({"retry": {"limit": 1, "never": [1]}}, "jobs.0.retry.never"),
        ({"retry": 3}, "jobs.0.retry"),
        ({"idle": "yes"}, "jobs.0.idle"),
        ({"labels": {"": "x"}}, "jobs.0.labels"),
        ({"labels": {"a": "two\nlines"}}, "jobs.0.labels.a"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(served: Any, fields: dict[str, Any], place: str) -> None:
    """As for all other fields."""
    body = {"jobs": [{"command": ["true"], "cwd": "/", **fields}]}
    answer = served.call("POST", "/api/v1/jobs", body)
    assert answer.status == 422
    assert answer.error["field"].replace("[", ".").replace("]", "").removeprefix("body.") == place


def test_labels_and_idle_are_shown(served: Any) -> None:
    """As they were given."""
    key = served.submit("/bin/true", idle=True, labels={"app": "x"})
    shown = served.wait(key)
    assert (shown["idle"], shown["labels"], shown["retry"], shown["past"]) == (True, {"app": "x"}, None, [])


def test_a_checkpoint_is_for_who_owns_the_job(served: Any) -> None:
    """And for work that runs."""
    key = served.submit("/bin/sleep", "30")
    served.wait(key, "running")
    path = f"/api/v1/jobs/{key}/checkpoint"
    assert served.call("POST", path, {}, "bob").status == 404
    assert served.call("POST", path, {"attempt": 2}).error["detail"].startswith("attempt 2 of job")
    assert served.call("POST", path, {"attempt": 1}).json == {"ok": True}
    assert served.show(key)["checkpoint_at_ms"] is not None
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    served.wait(key)
    assert served.call("POST", path).status == 409


def test_a_reservation_is_for_administrators(served: Any) -> None:
    """The owner of a job may not hold others back."""
    key = served.submit("/bin/true", who="alice", queue="root.small", resources={"cpu": 3})
    path = f"/api/v1/jobs/{key}/reserve"
    refused = served.call("POST", path, {}, "alice")
    assert (refused.status, refused.error["code"]) == (403, "forbidden")
    assert served.call("POST", path, {"on": False}, "carol").status == 409
    assert served.call("POST", path, {"why": "the demo"}, "carol").status == 200
    assert served.show(key)["reserved"]
    assert served.call("POST", path, {"on": False}, "carol").status == 200
    assert not served.show(key)["reserved"]
    told = [e["detail"] for e in served.show(key)["history"] if e["what"] == "reservation"]
    assert told[0].startswith("switched on by carol: the demo")
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {}, "carol")


def test_the_reason_for_a_priority_is_kept(served: Any) -> None:
    """In the history of the job."""
    key = served.submit("/bin/true", queue="root.small", resources={"cpu": 3})
    served.call("PATCH", f"/api/v1/jobs/{key}", {"priority": 4, "why": "due today"})
    assert served.show(key)["history"][-1]["detail"].endswith(": due today")
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
