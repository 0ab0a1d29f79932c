"""Submitting, looking at and stopping work over HTTP."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real
ROW = {
    "key",
    "name",
    "queue",
    "user",
    "priority",
    "state",
    "node",
    "exit_code",
    "signal",
    "reason",
    "submitted_at_ms",
    "started_at_ms",
    "ended_at_ms",
    "time_limit_ms",
    "cpu_ms",
    "peak_memory_bytes",
    "suspended_at_ms",
    "suspended_ms",
    "resources",
    "parts",
}


def refusal(served: Any, body: Any) -> dict[str, Any]:
    answer = served.call("POST", "/api/v1/jobs", body)
    assert answer.status in (400, 422), answer.body
    found: dict[str, Any] = answer.error
    return found


def job(**fields: Any) -> dict[str, Any]:
    return {"jobs": [{"command": ["/bin/true"], **fields}]}


def test_work_runs_and_its_story_can_be_read(served: Any) -> None:
    """Submitted, run, ended; status, output, environment and history are there."""
    script = 'echo "out $FAIRLEAD_KEY $COLOUR"; echo err >&2; exit 3'
    key = served.submit("/bin/sh", "-c", script, name="story", env={"COLOUR": "blue"}, tags={"a": "b"})
    shown = served.wait(key)
    assert (shown["state"], shown["exit_code"], shown["name"], shown["tags"]) == ("failed", 3, "story", {"a": "b"})
    assert shown["env"] == ["COLOUR"], "names only, never values"
    assert [entry["what"] for entry in shown["history"]] == ["submitted", "placed", "allocated", "started", "failed"]
    assert shown["enforcement"]
    out = served.call("GET", f"/api/v1/jobs/{key}/logs")
    assert out.body == f"out {key} blue\n".encode()
    assert out.headers["x-offset-next"] == str(len(out.body))
    assert served.call("GET", f"/api/v1/jobs/{key}/logs?stream=stderr").body == b"err\n"
    assert served.call("GET", f"/api/v1/jobs/{key}/logs?offset=4&limit=2").body == f"{key} ".encode()[:2]


def test_an_answer_to_a_submission_has_the_documented_row(served: Any) -> None:
    """Every field, and the key is the decimal text that everything else uses."""
    answer = served.call("POST", "/api/v1/jobs", job(queue="root.batch", priority=-5))
    row = answer.json["jobs"][0]
    assert answer.status == 201
    assert set(row) == ROW | {"never"}
    assert row["key"].isdecimal()
    assert (row["queue"], row["priority"], row["resources"]) == ("root.batch", -5, {"cpu": 1})


def test_one_bad_job_refuses_all_of_them(served: Any) -> None:
    """All or nothing."""
    before = served.call("GET", "/api/v1/jobs").json["total"]
    body = {"jobs": [{"command": ["/bin/true"]}, {"command": ["/bin/true"], "queue": "root.nowhere"}]}
    answer = served.call("POST", "/api/v1/jobs", body)
    assert answer.status == 422
    assert answer.error["field"] == "jobs[1].queue"
    assert "root.batch" in answer.error["detail"]
    assert served.call("GET", "/api/v1/jobs").json["total"] == before


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "jobs", "required"),
        ({"jobs": []}, "jobs", "at least 1"),
        ({"jobs": {}}, "jobs", "must be a list"),
        ([], "", "must be an object"),
        (job(resources={"cpu": False}), "jobs[0].resources.cpu", "must be a number, not false"),
        (job(resources={"memory": 1.5}), "jobs[0].resources.memory", "must be a whole number"),
        (job(resources={"cpu": 0.0005}), "jobs[0].resources.cpu", "more than three decimals"),
        (job(resources={"cpu": "2"}), "jobs[0].resources.cpu", "must be a number, not '2'"),
        (job(resources={"cpu": -1}), "jobs[0].resources.cpu", "must be at least 0"),
        (job(resources={"cpu": -0.5}), "jobs[0].resources.cpu", "must be at least 0"),
        (job(resources={"memory": 2**63}), "jobs[0].resources.memory", "must be at most"),
        (job(resources={"cpu": 2**60}), "jobs[0].resources.cpu", "must be at most"),
        (job(resources={"cpu": 1e300}), "jobs[0].resources.cpu", "must be at most"),
        (job(resources={"vcore": 2000}), "jobs[0].resources", "the resource is called cpu"),
        (job(resources={}), "jobs[0].resources", "asks for nothing"),
        (job(resources={"cpu": 0}), "jobs[0].resources", "asks for nothing"),
        (job(command=[]), "jobs[0].command", "at least 1"),
        (job(command=[""]), "jobs[0].command", "empty"),
        (job(command="ls -l"), "jobs[0].command", "must be a list"),
        (job(command=["a\0b"]), "jobs[0].command[0]", "NUL"),
        (job(priority=2**31), "jobs[0].priority", "must be at most"),
        (job(priority=True), "jobs[0].priority", "not true"),
        (job(nice=3), "jobs[0].nice", "no such field"),
        (job(cwd="here"), "jobs[0].cwd", "absolute"),
        (job(env={"A=B": "c"}), "jobs[0].env", "no name of an environment variable"),
        (job(env={"FAIRLEAD_KEY": "7"}), "jobs[0].env", "set by the service"),
        (job(grace_ms=-1), "jobs[0].grace_ms", "must be at least 0"),
        (job(time_limit_ms=0), "jobs[0].time_limit_ms", "must be at least 1"),
        (job(name="a\nb"), "jobs[0].name", "control characters"),
        (job(tags={"application.create.force": "true"}), "jobs[0].tags", "reserved"),
        (job(tags={"Application.Create.Force": "true"}), "jobs[0].tags", "reserved"),
        (job(tags={"Namespace.ResourceQuota": '{"resources":{}}'}), "jobs[0].tags", "reserved"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(served: Any, body: Any, field: str, words: str) -> None:
    """Nothing is converted, nothing is ignored."""
    error = refusal(served, body)
    assert (error["field"] or "") == field
    assert words in error["detail"]


@pytest.mark.parametrize("body", [b"{", b"", b"nonsense", b'{"jobs": [{"command": ["x"], "priority": NaN}]}', b"\xff"])
def test_what_is_no_json_is_refused(served: Any, body: bytes) -> None:
    """With a sentence, not with a fault."""
    answer = served.raw("POST", "/api/v1/jobs", body)
    assert answer.status in (400, 422)
    assert answer.error["detail"]


def test_half_a_character_is_refused(served: Any) -> None:
    """A lone surrogate cannot be given to a process nor written down."""
    answer = served.raw("POST", "/api/v1/jobs", b'{"jobs": [{"command": ["\\ud800"]}]}')
    assert answer.status == 422
    assert answer.error["field"].startswith("jobs[0].command")


def test_deep_nesting_is_refused(served: Any) -> None:
    """Not with a fault."""
    answer = served.raw("POST", "/api/v1/jobs", b'{"jobs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert answer.status in (400, 422)


def test_too_many_jobs_and_too_large_bodies_are_refused(served: Any) -> None:
    """Both bounds say what to do."""
    many = {"jobs": [{"command": ["x"]}] * 10_001}
    assert refusal(served, many)["field"] == "jobs"
    answer = served.raw("POST", "/api/v1/jobs", b" " * (8 * 2**20 + 1))
    assert answer.status == 413
    assert "several requests" in answer.error["detail"]


def test_a_body_that_hides_its_size_is_bounded_too(served: Any) -> None:
    """Sent in chunks, without a length."""
    connection = served.open()
    connection.putrequest("POST", "/api/v1/jobs")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    chunk = b"%x\r\n%s\r\n" % (2**20, b" " * 2**20)
    try:
        for _ in range(9):
            connection.send(chunk)
        connection.send(b"0\r\n\r\n")
    except (BrokenPipeError, ConnectionResetError):
        pass
    response = connection.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["code"] == "too-large"
    connection.close()


def test_the_same_request_twice_gives_the_same_jobs(served: Any) -> None:
    """An idempotency key makes it safe to ask again; another content under it is a mistake."""
    headers = {"Idempotency-Key": "once"}
    first = served.call("POST", "/api/v1/jobs", job(name="a"), **headers)
    again = served.call("POST", "/api/v1/jobs", job(name="a"), **headers)
    assert [w["key"] for w in again.json["jobs"]] == [w["key"] for w in first.json["jobs"]]
    other = served.call("POST", "/api/v1/jobs", job(name="b"), **headers)
    assert (other.status, other.error["code"]) == (409, "conflict")
    bobs = served.call("POST", "/api/v1/jobs", job(name="a", cwd="/"), "bob", **headers)
    assert bobs.status == 201
    assert bobs.json["jobs"][0]["key"] != first.json["jobs"][0]["key"]


def test_waiting_work_says_why_and_can_be_cancelled(served: Any) -> None:
    """With the numbers; its priority can be changed while it waits."""
    key = served.submit("/bin/true", queue="root.small", resources={"cpu": 2})
    why = served.call("GET", f"/api/v1/jobs/{key}/why").json
    assert (why["state"], why["reason"]["code"], why["queue_position"]) == ("waiting", "queue-full", 1)
    assert why["reason"]["values"]["needed"] == {"cpu": 2}
    changed = served.call("PATCH", f"/api/v1/jobs/{key}", {"priority": 9})
    assert (changed.status, changed.json["priority"]) == (200, 9)
    row = served.call("POST", f"/api/v1/jobs/{key}/cancel", {}).json
    assert (row["state"], row["started_at_ms"]) == ("cancelled", None)
    again = served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    assert (again.status, again.error["code"]) == (409, "conflict")
    late = served.call("PATCH", f"/api/v1/jobs/{key}", {"priority": 1})
    assert late.status == 409


def test_a_change_says_when_it_can_never_run_like_that(served: Any) -> None:
    """As a submission does: of a job by itself, and of an array its first part that waits."""
    for given in ({}, {"array": "1-2"}):
        key = served.submit("/bin/true", hold=True, **given)
        changed = served.call("PATCH", f"/api/v1/jobs/{key}", {"resources": {"cpu": 4000}})
        assert "it needs cpu 4000 on one node" in changed.json["never"]["sentence"]
        assert served.call("PATCH", f"/api/v1/jobs/{key}", {"resources": {"cpu": 1}}).json["never"] is None
        served.call("POST", f"/api/v1/jobs/{key}/cancel", {})


def test_running_work_is_cancelled_with_its_grace(served: Any) -> None:
    """SIGTERM first; who ignores it is killed when the grace is over."""
    key = served.submit("/bin/sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.1; done", grace_ms=300)
    served.wait(key, "running")
    while not served.call("GET", f"/api/v1/jobs/{key}/logs").body:
        pass
    meant_another = served.call("POST", f"/api/v1/jobs/{key}/cancel", {"states": ["waiting"]})
    assert (meant_another.status, meant_another.error["field"]) == (409, "states")
    assert served.call("GET", f"/api/v1/jobs/{key}").json["state"] == "running"
    stopped = served.call("POST", f"/api/v1/jobs/{key}/cancel", {"states": ["waiting", "running"]})
    assert stopped.json["state"] == "stopping"
    shown = served.wait(key)
    assert (shown["state"], shown["signal"]) == ("cancelled", 9)
    rows = served.call("GET", "/api/v1/jobs?state=cancelled").json["jobs"]
    assert {row["key"]: row["signal"] for row in rows}[key] == 9
    assert shown["reason"]["code"] == "cancelled"


def test_a_time_limit_ends_work(served: Any) -> None:
    """And is what it is called afterwards."""
    shown = served.wait(served.submit("/bin/sleep", "30", time_limit_ms=200, grace_ms=100))
    assert (shown["state"], shown["reason"]["values"]["time_limit_ms"]) == ("timed_out", 200)
    assert shown["reason"]["sentence"] == "stopped after its time limit of 200ms"


def test_a_list_says_what_was_bounded_and_used(served: Any) -> None:
    """So that nobody has to ask for each job by itself; of an array what all parts used, each in its newest attempt."""
    script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; test $FAIRLEAD_ATTEMPT = 2"
    key = served.submit("/bin/sh", "-c", script, time_limit_ms=60_000, array="1-2", retry={"limit": 1})
    whole = served.wait(key)
    [listed] = [each for each in served.call("GET", "/api/v1/jobs").json["jobs"] if each["key"] == key]
    parts = served.call("GET", f"/api/v1/jobs?array={key}").json["jobs"]
    used = [(each["time_limit_ms"], each["cpu_ms"], each["peak_memory_bytes"]) for each in (listed, *parts, whole)]
    assert [each[0] for each in used] == [60_000] * 4
    assert used[0][1] == used[1][1] + used[2][1] == used[3][1] > 0
    assert used[0][2] == max(used[1][2], used[2][2]) == used[3][2] > 0


def test_what_cannot_be_started_has_failed_with_a_sentence(served: Any) -> None:
    """The command does not exist."""
    shown = served.wait(served.submit("/no/such/program"))
    assert (shown["state"], shown["exit_code"]) == ("failed", 127)
    assert "/no/such/program" in shown["reason"]["sentence"]


def test_higher_work_takes_the_place_of_lower_work(served: Any) -> None:
    """The lower one is told to stop, says for whom, and the higher one runs."""
    low = served.submit("/bin/sleep", "60", resources={"cpu": 4}, grace_ms=100)
    served.wait(low, "running")
    high = served.submit("/bin/true", resources={"cpu": 4}, priority=50)
    shown = served.wait(low)
    assert (shown["state"], shown["reason"]["values"]["on_behalf_of"]) == ("evicted", high)
    assert served.wait(high)["state"] == "succeeded"


def test_lists_are_filtered_and_paged(served: Any) -> None:
    """In the order of submission; the next page begins after the last key."""
    keys = [served.submit("/bin/true", name="paged") for _ in range(5)]
    for key in keys:
        served.wait(key)
    first = served.call("GET", "/api/v1/jobs?name=paged&limit=2").json
    assert [w["key"] for w in first["jobs"]] == keys[:2]
    assert (first["next"], first["total"]) == (keys[1], 5)
    rest = served.call("GET", f"/api/v1/jobs?name=paged&limit=10&after={keys[1]}").json
    assert [w["key"] for w in rest["jobs"]] == keys[2:]
    assert rest["next"] is None
    assert served.call("GET", "/api/v1/jobs?name=paged&state=failed").json["jobs"] == []
    assert served.call("GET", "/api/v1/jobs?name=paged&queue=root").json["total"] == 5


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "state=sleeping", "after=abc", "namespace=shop"])
def test_bad_filters_are_refused(served: Any, query: str) -> None:
    """With the name of the filter."""
    answer = served.call("GET", f"/api/v1/jobs?{query}")
    assert answer.status == 422
    assert answer.error["field"].startswith(query.partition("=")[0])


def test_following_output_ends_with_the_job(served: Any) -> None:
    """All of it, however it was cut."""
    key = served.submit("/bin/sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.1; done")
    assert served.call("GET", f"/api/v1/jobs/{key}/logs?follow=true").body == b"1\n2\n3\n"


@pytest.mark.parametrize("own", [{}, {"stdout": "%x.txt"}])
def test_the_end_of_output_is_told_without_the_rest(served: Any, tmp_path: Path, own: dict[str, str]) -> None:
    """Below 0 an offset counts from the end, as it is then; whoever goes on does so by what is answered."""
    key = served.submit("/bin/sh", "-c", "echo 12345; echo 6789", cwd=str(tmp_path), **own)
    served.wait(key)
    for offset, limit, shown, on in ((-5, 9, b"6789\n", 11), (-5, 2, b"67", 8), (-99, 2, b"12", 2)):
        answer = served.call("GET", f"/api/v1/jobs/{key}/logs?offset={offset}&limit={limit}")
        assert (answer.body, answer.headers["x-offset-next"]) == (shown, str(on))
        assert served.call("GET", f"/api/v1/jobs/{key}/logs?offset={offset}&limit={limit}&follow=1").body == shown
    assert served.call("GET", f"/api/v1/jobs/{key}/logs?offset=-5&stream=stderr").headers["x-offset-next"] == "0"


def test_nobody_sees_or_stops_what_is_not_his(served: Any) -> None:
    """For bob alice's work does not exist; an administrator sees it."""
    key = served.submit("/bin/sleep", "30", who="alice", queue="root.small", resources={"cpu": 3})
    for method, path, body in (
        ("GET", f"/api/v1/jobs/{key}", None),
        ("GET", f"/api/v1/jobs/{key}/why", None),
        ("GET", f"/api/v1/jobs/{key}/logs", None),
        ("POST", f"/api/v1/jobs/{key}/cancel", {}),
        ("PATCH", f"/api/v1/jobs/{key}", {"priority": 1}),
    ):
        answer = served.call(method, path, body, "bob")
        assert (answer.status, answer.error["code"]) == (404, "not-found"), path
    assert key not in [w["key"] for w in served.call("GET", "/api/v1/jobs", who="bob").json["jobs"]]
    assert key in [w["key"] for w in served.call("GET", "/api/v1/jobs?user=alice", who="carol").json["jobs"]]
    assert served.call("POST", f"/api/v1/jobs/{key}/cancel", {}, "carol").json["state"] == "cancelled"


def test_unknown_keys_and_paths_have_the_shape_of_errors(served: Any) -> None:
    """404 and 405 too."""
    assert served.call("GET", "/api/v1/jobs/999999").error["code"] == "not-found"
    assert served.call("GET", "/api/v1/nothing").error["code"] == "not-found"
    slash = served.call("PUT", "/api/v1/windows/a%2Fb", {})
    assert (slash.status, slash.error["code"]) == (404, "not-found")
    assert slash.error["detail"].startswith("there is nothing at /api/v1/windows/a/b: nothing has a slash in its name;")
    trailing = served.call("GET", "/api/v1/jobs/")
    assert (trailing.status, trailing.error["code"]) == (404, "not-found")
    assert trailing.error["detail"].startswith("there is nothing at /api/v1/jobs/: no path ends with a slash;")
    wrong = served.call("DELETE", "/api/v1/jobs")
    assert (wrong.status, wrong.error["code"]) == (405, "method-not-allowed")
    assert wrong.headers["allow"] == "GET, POST"
    assert "not possible at /api/v1/jobs, but GET, POST;" in wrong.error["detail"]
    assert served.call("DELETE", "/api/v1/openapi.json").headers["allow"] == "GET, HEAD"


def test_head_is_answered_as_get_is(served: Any) -> None:
    """What watches a service asks so; it was answered with 405. What has no end has no HEAD."""
    for path in ("/healthz", "/api/v1/jobs", "/api/v1/jobs/999999", "/metrics", "/"):
        got, head = served.call("GET", path), served.call("HEAD", path)
        assert (head.status, head.body) == (got.status, b"")
        assert head.headers["content-length"] == str(len(got.body)) or path == "/metrics"
        assert head.headers.get("content-type") == got.headers.get("content-type")
    for path in ("/api/v1/events", "/api/v1/jobs/1/logs?follow=1", "/api/v1/jobs/1/terminal", "/api/v1/whatif"):
        assert served.call("HEAD", path).status == 405


def test_a_link_in_the_place_of_the_output_is_not_followed(served: Any) -> None:
    """The service may have more rights than the user who put it there."""
    key = served.submit("/bin/echo", "mine")
    served.wait(key)
    path = served.place.machine.stdout_path(f"{key}-1")
    path.unlink()
    path.symlink_to("/etc/passwd")
    answer = served.call("GET", f"/api/v1/jobs/{key}/logs")
    assert (answer.status, answer.error["code"]) == (404, "not-found")
    path.unlink()
    os.mkfifo(path)
    assert served.call("GET", f"/api/v1/jobs/{key}/logs").status == 404


def test_a_parameter_that_is_given_twice_is_refused(served: Any) -> None:
    """Save where several values make sense."""
    answer = served.call("GET", "/api/v1/jobs?namespace=a&namespace=b")
    assert (answer.status, answer.error["field"]) == (422, "namespace")
    assert served.call("GET", "/api/v1/jobs?state=running&state=waiting&queue=a&queue=b").status == 200
