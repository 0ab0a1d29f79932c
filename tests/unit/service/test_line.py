"""The line over HTTP: everybody's, in order, and no more of others' jobs than may be known."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.insight.forecast import Forecast


@pytest.mark.thorough
def test_others_are_in_line_without_their_reasons(served: Any) -> None:
    full = served.submit("/bin/sleep", "60", resources={"cpu": 4}, priority=50)
    served.wait(full, "running")
    mine = served.submit("/bin/true", who="alice", resources={"cpu": 2}, priority=1, name="mine")
    theirs = served.submit("/bin/true", who="bob", resources={"cpu": 2}, priority=2, name="theirs")
    found = served.call("GET", "/api/v1/line", who="alice").json
    rows = {row["key"]: row for row in found["line"]}
    assert rows[theirs]["place"] < rows[mine]["place"]
    assert (rows[mine]["visible"], rows[theirs]["visible"]) == (True, False)
    assert rows[mine]["reason"]["sentence"]
    assert rows[theirs]["reason"] is None
    assert (rows[theirs]["user"], rows[theirs]["name"]) == ("bob", "theirs")
    served.place.private_names = True
    try:
        again = {row["key"]: row for row in served.call("GET", "/api/v1/line", who="alice").json["line"]}
    finally:
        served.place.private_names = False
    assert (again[theirs]["name"], again[mine]["name"]) == ("", "mine")

    first = served.call("GET", "/api/v1/line?limit=1", who="alice").json
    second = served.call("GET", f"/api/v1/line?limit=1&after={first['next']}", who="alice").json
    assert [first["line"][0]["place"], second["line"][0]["place"]] == [1, 2]
    assert served.call("GET", "/api/v1/line?after=x", who="alice").status == 422
    behind = served.call("GET", "/api/v1/line?after=99999999999999999999", who="alice")
    assert (behind.status, behind.json) == (200, {"line": [], "next": None, "total": found["total"]})
    expected = served.call("GET", "/api/v1/line/forecast?limit=10&seconds=2", who="alice").json
    assert {each["key"] for each in expected["starts"]} >= {mine, theirs}
    for key in (full, mine, theirs):
        served.call("POST", f"/api/v1/jobs/{key}/cancel", {})


def test_a_page_goes_on_behind_the_last_one_of_the_page_before(served: Any) -> None:
    """What started or left meanwhile moved all others up: one of them was on neither page."""
    full = served.submit("/bin/sleep", "60", resources={"cpu": 4}, priority=50)
    served.wait(full, "running")
    waits = [served.submit("/bin/true", resources={"cpu": 4}, priority=40 - number) for number in range(4)]
    page = served.call("GET", "/api/v1/line?limit=2").json
    assert [row["key"] for row in page["line"]] == waits[:2]
    served.call("POST", f"/api/v1/jobs/{waits[0]}/cancel", {})
    page = served.call("GET", f"/api/v1/line?limit=2&after={page['next']}").json
    assert [(row["key"], row["place"]) for row in page["line"]] == [(waits[2], 2), (waits[3], 3)]
    for key in (*waits[1:], full):
        served.call("POST", f"/api/v1/jobs/{key}/cancel", {})


def test_work_to_come_is_expected_as_for_a_single_job(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line was told of starts in a future in which nothing comes."""

    def played(*asked: Any) -> Forecast:
        return Forecast(len(asked[5]) if len(asked) > 5 else 0, 1, {}, ())

    monkeypatch.setattr("fairlead.service.http.line.played", played)
    full = served.submit("/bin/sleep", "60", resources={"cpu": 4}, priority=50)
    waits = served.submit("/bin/true", resources={"cpu": 4})
    assert served.call("GET", "/api/v1/line/forecast").json["made_ms"] >= 2, "so many came"
    for key in (waits, full):
        served.call("POST", f"/api/v1/jobs/{key}/cancel", {})


def test_news_come_when_something_happens_and_not_before(served: Any) -> None:
    import threading
    import time

    seq = -1
    end = time.monotonic() + 50
    while (now := served.call("GET", f"/api/v1/changes?after={max(seq, 0)}&wait=0.5").json["seq"]) != seq:
        assert time.monotonic() < end, "it is never quiet"
        seq = now
    begun = time.monotonic()
    threading.Timer(0.2, lambda: served.submit("/bin/true")).start()
    told = served.call("GET", f"/api/v1/changes?after={seq}&wait=20").json["seq"]
    assert told > seq
    assert time.monotonic() - begun < 10


def test_what_is_kept_for_whom_is_everybodys_to_see(served: Any) -> None:
    """While what was told to stop ends, room is kept for the job that it was stopped for."""
    stubborn = "trap '' TERM; echo ready; while :; do sleep 1; done"
    low = served.submit("/bin/sh", "-c", stubborn, resources={"cpu": 4}, queue="root.batch", grace_ms=60_000)
    # Until it has said so it can be stopped like any other.
    assert served.call("GET", f"/api/v1/jobs/{low}/logs?follow=true&limit=6").body == b"ready\n"
    high = served.submit("/bin/true", who="alice", resources={"cpu": 3}, priority=100, name="urgent")
    try:
        served.wait(low, "stopping")
        [kept] = served.call("GET", "/api/v1/kept", who="bob").json["kept"]
        assert (kept["key"], kept["user"], kept["resources"]["cpu"]) == (high, "alice", 3)
        assert (kept["visible"], kept["whole"], kept["leaving"]) == (False, False, 1)
    finally:
        served.call("POST", f"/api/v1/jobs/{high}/cancel", {})
        served.call("POST", f"/api/v1/jobs/{low}/cancel", {"now": True})
    served.wait(low, "evicted", "cancelled")
    assert served.call("GET", "/api/v1/kept", who="bob").json["kept"] == []
