"""Windows over HTTP, with real processes: what is refused, what is shown, what is stopped; and changed clocks."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fairlead.core.model.specs import WindowSpec
from fairlead.service.windows import by_the_clock

pytestmark = pytest.mark.real
LONG = 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def put(served: Any, name: str, who: str = "", **given: Any) -> Any:
    body = {"starts_at_ms": now_ms() + LONG, "length_ms": LONG} | given
    return served.call("PUT", f"/api/v1/windows/{name}", body, who)


@pytest.fixture
def cleared(served: Any) -> Iterator[Any]:
    yield served
    for window in served.call("GET", "/api/v1/windows").json["windows"]:
        served.call("DELETE", f"/api/v1/windows/{window['name']}")
    for job in served.call("GET", "/api/v1/jobs?state=running&state=waiting").json["jobs"]:
        served.call("POST", f"/api/v1/jobs/{job['key']}/cancel", {"now": True})
        served.wait(job["key"])


def test_administrators_declare_them_and_everybody_sees_them(cleared: Any) -> None:
    """And only administrators take them back."""
    assert put(cleared, "w", "bob").error["detail"].startswith("only administrators may declare windows")
    assert put(cleared, "w", "carol").status == 200
    assert [each["name"] for each in cleared.call("GET", "/api/v1/windows", who="bob").json["windows"]] == ["w"]
    assert cleared.call("DELETE", "/api/v1/windows/w", who="bob").status == 403
    assert cleared.call("DELETE", "/api/v1/windows/w", who="carol").json == {"ok": True}
    assert cleared.call("DELETE", "/api/v1/windows/w", who="carol").status == 404


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nodes": ["nope"]}, "there is no node 'nope'"),
        ({"queues": ["root.nope"]}, "there is no queue 'root.nope'"),
        ({"users": ["nobody-of-this-name"]}, "this machine has no user 'nobody-of-this-name'"),
        ({"groups": ["no-such-group"]}, "this machine has no group 'no-such-group'"),
        ({"starts_at_ms": 1}, "which is past"),
        ({"every_ms": 1}, "would come again before it is over"),
        ({"length_ms": 0}, "length_ms"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(cleared: Any, given: dict[str, Any], said: str) -> None:
    answer = put(cleared, "w", **given)
    assert answer.status == 422, answer.json
    assert said in answer.json["detail"]
    assert cleared.call("GET", "/api/v1/windows").json["windows"] == []


def test_queues_are_named_in_any_case(cleared: Any) -> None:
    """By their whole path, or without its beginning."""
    assert put(cleared, "w", queues=["ROOT.Batch", "Batch"]).json["queues"] == ["root.batch"]


def test_a_name_is_one_line(cleared: Any) -> None:
    """It stands in tables, in the log, and in what everybody is told who waits."""
    for name in ("a%0ab", "a%1b%5b2J", "%e2%80%aea"):
        error = put(cleared, name).error
        assert (error["status"], error["field"]) == (422, "name")
        assert error["detail"].startswith("the name must ")
    assert put(cleared, "new%20disks").json["name"] == "new disks"
    assert cleared.call("DELETE", "/api/v1/windows/new%20disks").status == 200


def test_what_runs_is_named_and_what_waits_is_told_when(cleared: Any) -> None:
    """Its owner reads the times by the clock of the machine, and what to do."""
    runs = cleared.submit("/bin/sleep", "60")
    cleared.wait(runs, "running")
    shown = put(cleared, "w", why="disks").json
    assert (shown["open"], shown["running"], shown["waiting"]) == (False, [runs], 0)
    waits = cleared.submit("/bin/true")
    reason = cleared.wait(waits, "waiting")["reason"]
    assert reason["code"] == "window-ahead"
    begins = datetime.fromtimestamp(shown["starts_at_ms"] // 1000).strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ006
    assert f"window w (disks): it has no time limit, {begins} to " in reason["sentence"]
    assert "fairlead update" in reason["sentence"]
    assert cleared.call("GET", "/api/v1/windows").json["windows"][0]["waiting"] == 1
    cleared.call("DELETE", "/api/v1/windows/w")
    cleared.wait(waits, "succeeded")


def test_jobs_are_stopped_when_it_begins_if_that_is_wanted(cleared: Any) -> None:
    """By the writer's own timer; those it is for go on."""
    mine = cleared.submit("/bin/sleep", "60", queue="root.batch")
    other = cleared.submit("/bin/sleep", "60", queue="root.small")
    for key in (mine, other):
        cleared.wait(key, "running")
    put(cleared, "w", starts_at_ms=now_ms() + 500, queues=["batch"], stop_running=True)
    ended = cleared.wait(other, "evicted")
    assert "a time begins in which its node is kept free" in ended["reason"]["sentence"]
    assert cleared.call("GET", f"/api/v1/jobs/{mine}").json["state"] == "running"


def test_that_jobs_go_on_is_logged(cleared: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Also parts of an array, each by its key, as where the window is listed."""
    array = cleared.submit("/bin/sleep", "60", array="0-1", resources={"cpu": 0.1})
    parts = [f"{array}.{index}" for index in range(2)]
    for part in parts:
        cleared.wait(part, "running")
    with caplog.at_level(logging.WARNING, "fairlead.service"):
        assert put(cleared, "w", starts_at_ms=now_ms()).json["running"] == parts
        end = time.monotonic() + 50
        while not caplog.messages and time.monotonic() < end:
            time.sleep(0.05)
    assert caplog.messages == [f"window w has begun, and jobs go on that it is not for: {', '.join(parts)}"]


# -- the clock ----------------------------------------------------------------------------------------------------


def test_every_week_means_the_same_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the night in which clocks are set back, and only when that comes next."""
    zone = ZoneInfo("Europe/Berlin")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:

        def at(day: int, hour: int) -> int:
            return int(datetime(2026, 10, day, hour, tzinfo=zone).timestamp()) * 1000

        week = WindowSpec(name="w", starts_ms=at(20, 10), length_ms=LONG, every_ms=7 * 24 * LONG)
        assert by_the_clock(week, at(15, 0)) is week
        assert by_the_clock(week, at(20, 10) + 1) is week, "it is open"
        moved = by_the_clock(week, at(20, 12))
        assert moved.starts_ms == at(27, 10)
        assert moved.starts_ms != week.starts_ms + week.every_ms
        assert by_the_clock(moved, at(20, 12)) is moved
        often = WindowSpec(name="w", starts_ms=at(20, 10), length_ms=1, every_ms=5 * LONG)
        assert by_the_clock(often, at(26, 0)) is often, "no whole days"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert os.environ.get("TZ") != "Europe/Berlin"


def test_that_windows_come_early_after_the_clock_was_set_back_is_said(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the service's time, which goes on: so do times to begin at."""
    assert not served.place.problems()
    ahead_ms = 3 * 3_600_000
    monkeypatch.setattr(served.place.runtime.clock, "_wall", lambda: time.time_ns() // 1_000_000 - ahead_ms)
    [said] = served.place.problems()
    assert said.endswith("but what is to begin at a time, and windows, come that early")
