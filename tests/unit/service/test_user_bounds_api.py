"""One user does too much: it is told what, how much, and when again; another one notices nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.local.callers import Caller
from fairlead.local.disk import Disk
from fairlead.local.user_bounds import UserBounds, UserLimits
from fairlead.runtime import Refusal

pytestmark = pytest.mark.real

BOUNDS = UserBounds(jobs=3, environment=2000, submissions=8, questions=2, streams=2, tokens=3)


@pytest.fixture(autouse=True)
def bounded(served: Any) -> Iterator[None]:
    served.place.users = UserLimits(BOUNDS)
    yield
    for row in served.call("GET", "/api/v1/jobs?state=running&state=waiting").json["jobs"]:
        served.call("POST", f"/api/v1/jobs/{row['key']}/cancel", {"now": True})
        served.wait(row["key"])
    served.place.users = UserLimits(UserBounds())


def submit(served: Any, who: str, count: int = 1, **fields: Any) -> Any:
    job = {"command": ["/bin/sleep", "60"], "cwd": "/", "resources": {"cpu": 2**30}, **fields}
    return served.call("POST", "/api/v1/jobs", {"jobs": [job] * count}, who)


def refused(answer: Any, *words: str) -> None:
    assert (answer.status, answer.error["code"]) == (429, "too-many"), answer.body
    assert int(answer.headers["retry-after"]) >= 1
    for each in words:
        assert each in answer.error["detail"]


def test_jobs_and_their_environments(served: Any) -> None:
    """What has ended makes room; nothing of a refused submission is entered."""
    assert submit(served, "bob", 2).status == 201
    refused(submit(served, "bob", 2), "bob has 2 jobs that wait or run, and these are 2; a user may have 3")
    assert submit(served, "alice", 3).status == 201
    [first, *_] = [row["key"] for row in served.call("GET", "/api/v1/jobs?state=waiting", who="bob").json["jobs"]]
    assert served.call("POST", f"/api/v1/jobs/{first}/cancel", {}, "bob").status == 200
    said = "the environments and scripts of all waiting and running jobs of bob would take 2.1Ki, more than 1.9Ki"
    refused(submit(served, "bob", 2, env={"A": "x" * 1050}), said, "put large values into files")
    assert submit(served, "bob", 1, env={"A": "x" * 1050}).status == 201
    refused(submit(served, "bob", 1, env={"A": "x" * 1050}), "more than 1.9Ki")
    assert submit(served, "bob").status == 201
    assert submit(served, "", 5).status == 201, "administrators are not bound"


def test_submissions_a_minute(served: Any) -> None:
    """Also those that were refused; it is said when there is room again."""
    for _ in range(8):
        assert submit(served, "bob", 4).status == 429
    answer = submit(served, "bob")
    refused(answer, "bob has submitted 8 times within a minute", "bring several jobs in one request")
    assert 50 <= int(answer.headers["retry-after"]) <= 60
    assert submit(served, "alice").status == 201


def test_what_is_submitted_once_more_counts_as_well(served: Any) -> None:
    """A rerun is a submission: it is bound by how many jobs and requests there may be, and needs room on the disk."""
    array = {"command": ["/bin/false"], "cwd": "/", "array": "1-2", "resources": {"cpu": 0.1}}
    old = served.call("POST", "/api/v1/jobs", {"jobs": [array]}, "bob").json["jobs"][0]["key"]
    served.wait(old)
    again = f"/api/v1/jobs/{old}/rerun"
    assert submit(served, "bob", 2).status == 201
    refused(served.call("POST", again, {}, "bob"), "bob has 2 jobs that wait or run, and these are 2")
    place, there = served.place, served.place.disk
    place.disk = Disk(there._directory, 2**60)
    try:
        assert served.call("POST", again, {}, "bob").error["code"] == "disk-full"
    finally:
        place.disk = there
    for _ in range(4):
        served.call("POST", again, {}, "bob")
    refused(served.call("POST", again, {}, "bob"), "bob has submitted 8 times within a minute")


def test_there_is_room_again_after_a_minute() -> None:
    """To the second that was said."""
    now = 1000.0
    limits = UserLimits(UserBounds(submissions=2), lambda: now)
    bob = Caller("bob", 1)
    limits.submission(bob)
    now += 20
    limits.submission(bob)
    with pytest.raises(Refusal, match="try again in 41 s") as no:
        limits.submission(bob)
    now += no.value.after_s
    limits.submission(bob)
    with pytest.raises(Refusal):
        limits.submission(bob)


@pytest.mark.parametrize("path", ["/api/v1/events", "/ws/v1/events/stream"])
def test_streams(served: Any, path: str) -> None:
    """One that is closed makes room for another."""

    def opened(who: str) -> Any:
        connection = served.open(who)
        connection.request("GET", path, headers=served.headers(who))
        return connection, connection.getresponse()

    streams = [opened("bob"), opened("bob")]
    assert [response.status for _, response in streams] == [200, 200]
    refused(served.call("GET", "/api/v1/events", who="bob"), "bob has 2 streams open, as many as a user may")
    streams.append(opened("alice"))
    assert streams[-1][1].status == 200
    streams[0][1].close()
    streams[0][0].close()
    submit(served, "alice")
    end = time.monotonic() + 50
    while (again := opened("bob"))[1].status != 200:
        again[0].close()
        submit(served, "")
        assert time.monotonic() < end
        time.sleep(0.1)
    for connection, response in (*streams[1:], again):
        response.close()
        connection.close()


@pytest.mark.thorough
def test_questions_at_a_time(served: Any) -> None:
    """A user that asks much waits for its own answers alone."""
    body = {"submit": {"command": ["x"]}, "forecast": True, "seconds": 3.0}
    answers: list[Any] = []

    def ask() -> None:
        answers.append(served.call("POST", "/api/v1/whatif", body, "bob"))

    asking = [threading.Thread(target=ask) for _ in range(12)]
    for each in asking:
        each.start()
    began = time.monotonic()
    other = served.call("POST", "/api/v1/whatif", {"submit": {"command": ["x"]}}, "alice")
    assert other.status == 200, other.body
    assert time.monotonic() - began < 15
    for each in asking:
        each.join()
    statuses = [answer.status for answer in answers]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 2
    refused(next(a for a in answers if a.status == 429), "bob has 2 questions open, as many as a user may")


@pytest.mark.thorough
def test_processor_time_of_questions(served: Any) -> None:
    """What one user's took is counted, whoever waits for it; another one asks on."""
    body = {"submit": {"command": ["x"]}, "forecast": True}
    served.place.users = UserLimits(UserBounds(question_seconds=0))
    answer = served.call("POST", "/api/v1/whatif", body, "bob")
    refused(answer, "the questions of bob took 0 s of processor time within a minute")
    limits = served.place.users = UserLimits(UserBounds(question_seconds=1))
    assert served.call("POST", "/api/v1/whatif", body, "bob").status == 200
    [(uid, [(_, took)])] = limits._answered.items()
    assert 0 < took < 30
    limits.answered(Caller("bob", uid), 1.0)
    answer = served.call("POST", "/api/v1/whatif", body, "bob")
    refused(answer, "took 1 s of processor time within a minute, as much as a user may; ask fewer, or try again in")
    assert 30 <= int(answer.headers["retry-after"]) <= 61
    assert served.call("POST", "/api/v1/whatif", body, "alice").status == 200
    assert served.call("POST", "/api/v1/whatif", body, "").status == 200, "administrators are not bound"


def test_there_is_processor_time_again_when_it_was_said() -> None:
    """When so much of it is a minute ago that there is some left."""
    now = 1000.0
    limits, bob = UserLimits(UserBounds(question_seconds=10), lambda: now), Caller("bob", 1)
    for took in (1.0, 4.0, 6.0):
        limits.question(bob)
        limits.answered(bob, took)
        now += 10
    with pytest.raises(Refusal, match="try again in 41 s") as no:
        limits.question(bob)
    now += no.value.after_s - 11
    with pytest.raises(Refusal):
        limits.question(bob)
    now += 11
    limits.question(bob)


def test_tokens(served: Any) -> None:
    """Those that a user has count, whoever made them; one whose time is over does not."""
    brief = served.call("POST", "/api/v1/tokens", {"name": "brief", "lifetime_ms": 1}, "bob").json
    time.sleep(0.005)
    made = [served.call("POST", "/api/v1/tokens", {"name": f"t{i}"}, "bob") for i in range(3)]
    assert [answer.status for answer in made] == [201, 201, 429]
    refused(made[2], "bob has 3 tokens, as many as a user may; revoke some first")
    for each in (brief, made[0].json, made[1].json):
        served.call("DELETE", f"/api/v1/tokens/{each['id']}", who="bob")


def test_a_body_of_100_mb_is_told_why(served: Any) -> None:
    """The caller that sends all of it before it reads gets the answer, and no reset; said beforehand or not."""
    content = b"x" * 100_000_000
    answer = served.raw("POST", "/api/v1/jobs", content, "bob")
    assert (answer.status, answer.error["code"]) == (413, "too-large")
    assert "send the jobs in several requests" in answer.error["detail"]
    connection = served.open("bob")
    pieces = (content[at : at + 2**20] for at in range(0, len(content), 2**20))
    headers = {"Content-Type": "application/json", **served.headers("bob")}
    connection.request("POST", "/api/v1/jobs", pieces, headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()
