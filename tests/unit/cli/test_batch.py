"""submit --retry, reserve, checkpoint, and how attempts are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.cli import follow
from fairlead.cli.app import Failure
from fairlead.cli.submit import describe, read_jobs
from fairlead.client import Client

BASE = {"command": ["true"], "cpu": "1"}


def test_retries_become_one_object() -> None:
    """With the back-off in milliseconds, and statuses as text or as a list."""
    given = {"retry": 3, "retry_backoff": "1m30s", "no_retry_on": "2, 64"}
    assert describe(BASE | given, "x").body["retry"] == {"limit": 3, "backoff_ms": 90_000, "never_on": [2, 64]}
    assert describe(BASE | {"retry": 1, "no_retry_on": [7]}, "x").body["retry"] == {"limit": 1, "never_on": [7]}
    assert describe(BASE | {"retry": 0}, "x").body["retry"] == {"limit": 0}, "whatever its queue says"
    assert "retry" not in describe(BASE, "x").body


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"retry": "often"}, "retry: 'often' is not a number of further attempts"),
        ({"retry": True}, "retry: True is not a number"),
        ({"retry_backoff": "5s"}, "retry_backoff: says how it is tried again, but retry does not say how often"),
        ({"retry": 1, "retry_backoff": "soon"}, "retry_backoff: 'soon' is not a duration"),
        ({"retry": 1, "no_retry_on": "2,x"}, "no_retry_on: 'x' is not an exit status"),
        ({"retry": 1, "no_retry_on": [256]}, "no_retry_on: '256' is not an exit status"),
        ({"idle": "yes"}, 'idle: "yes" is neither true nor false'),
        ({"labels": ["a"]}, "labels: must be an object"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], said: str) -> None:
    """With its place."""
    with pytest.raises(Failure) as refused:
        describe(BASE | fields, "w.jsonl:3")
    assert f"w.jsonl:3: {said}" in refused.value.message


def test_files_have_the_same_words() -> None:
    """And what a job does not say comes from the options."""
    text = '{"command": "true", "idle": true, "labels": {"app": "x"}}\n{"command": "true", "retry": 0}\n'
    first, second = read_jobs("w.jsonl", text, {"retry": 2, "priority_class": "low"})
    assert (first.body["idle"], first.body["labels"], first.body["retry"]) == (True, {"app": "x"}, {"limit": 2})
    assert first.body["priority_class"] == "low"
    assert second.body["retry"] == {"limit": 0}


def test_options_name_themselves_when_they_are_wrong(run: Callable[..., Any]) -> None:
    """As they are written on the command line."""
    result = run("submit", "--retry", "1", "--no-retry-on", "x", "--", "true")
    assert (result.exit_code, "--no-retry-on: 'x' is not an exit status" in result.stderr) == (2, True)
    result = run("submit", "--retry-backoff", "5s", "--", "true")
    assert (result.exit_code, "--retry-backoff: says how it is tried again" in result.stderr) == (2, True)


def test_attempts_are_shown_one_a_line(service: Any, run: Callable[..., Any]) -> None:
    """When each began, how long it ran (what it stood still is not counted) and how it ended."""
    over = {"attempt": 1, "state": "evicted", "started_at_ms": 1_000, "ended_at_ms": 6_000, "how": "by signal 15"}
    over |= {"suspended_ms": 2_000}
    retry = {"limit": 3, "backoff_ms": 30_000, "never_on": [2]}
    service.add("1", "running", past=[over], attempts=2, retry=retry, idle=True, labels={"a": "b"}, reserved=False)
    text = run("show", "1").stdout
    assert ", ran 3.0s, evicted: by signal 15\n" in text
    assert "2: running\n" in text
    assert "up to 3 times, after 30s and more, not after exit status 2\n" in text
    assert "a=b" in text
    assert "reserved" not in text


def test_following_goes_on_with_the_next_attempt(service: Any, client: Client, answer: Any) -> None:
    """From its first byte; the job is asked how many there are."""
    contents = {"1": b"first\n", "2": b"second\n"}
    job = service.add("1", "running", attempts=1)
    asked: list[tuple[str, str, bool]] = []

    def logs(request: Any) -> Any:
        attempt, offset = request.query["attempt"], int(request.query["offset"])
        follows = request.query.get("follow") == "true"
        asked.append((attempt, request.query["offset"], follows))
        if follows and attempt == "1":
            job["attempts"] = 2
        elif follows:
            job["state"] = "succeeded"
        part = contents[attempt][offset:]
        return answer(200, raw=part, headers={"X-Offset-Next": str(offset + len(part))})

    service.on("GET", "/jobs/1/logs", logs)
    assert b"".join(follow.patient_log(client, "1", "stdout", 0)) == b"first\nsecond\n"
    assert asked == [("1", "0", True), ("1", "6", False), ("2", "0", True), ("2", "7", False)]


@pytest.mark.parametrize("never", [False, True])
def test_a_reservation_is_switched_on_and_off(service: Any, run: Callable[..., Any], never: bool) -> None:
    """With the reason. Where it can never run it is said: what comes behind it would wait in vain."""
    job = service.add("1", "waiting")
    service.on("POST", "/jobs/1/reserve", lambda _: job)
    verdict = {"partition": "default", "application": "1", "key": "1", "queue": "root.batch", "state": "waiting"}
    verdict |= {"sentence": "needs cpu 9"} | ({"never": {"reason": None, "sentence": "needs cpu 9"}} if never else {})
    why = {"key": "1", "state": "waiting", "sentence": "needs cpu 9", "verdict": verdict}
    service.on("GET", "/jobs/1/why", lambda _: why)
    on = run("reserve", "1", "--why", "the demo")
    assert on.stdout == "1: the next room is kept for it\n"
    assert on.stderr == never * (
        "fairlead: 1 can never run as it is: needs cpu 9; work of a lower priority in root.batch waits for it in vain "
        "until `fairlead reserve 1 --off`\n"
    )
    assert run("reserve", "1", "--off").stdout == "1: the next room is no longer kept for it\n"
    orders = [r.body for r in service.requests if r.method == "POST"]
    assert orders == [{"on": True, "why": "the demo"}, {"on": False, "why": ""}]


def test_a_change_of_priority_may_have_a_reason(service: Any, run: Callable[..., Any]) -> None:
    """It is sent along."""
    job = service.add("1", "waiting")
    service.on("PATCH", "/jobs/1", lambda _: job)
    assert run("priority", "1", "7", "--why", "due today").exit_code == 0
    assert service.requests[-1].body == {"priority": 7, "why": "due today"}


def test_work_names_itself_in_a_checkpoint(
    service: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what is in its environment; from outside the key is named, and no attempt."""
    for key in ("1", "2"):
        service.on("POST", f"/jobs/{key}/checkpoint", {"ok": True})
    monkeypatch.delenv("FAIRLEAD_KEY", raising=False)
    assert "FAIRLEAD_KEY is not set" in run("checkpoint").stderr
    monkeypatch.setenv("FAIRLEAD_KEY", "1")
    monkeypatch.setenv("FAIRLEAD_ATTEMPT", "3")
    assert run("checkpoint").exit_code == 0
    assert run("checkpoint", "2").exit_code == 0
    assert [(r.path, r.body) for r in service.requests] == [
        ("/api/v1/jobs/1/checkpoint", {"attempt": 3}),
        ("/api/v1/jobs/2/checkpoint", {}),
    ]
