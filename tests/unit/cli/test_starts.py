"""`fairlead when` without a key: the line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

HOUR_MS = 3_600_000
SCORE = {"promised": 0.8, "observed": 0.79, "scored": 100, "early": 11, "late": 10, "open": 3}


def waits(place: int, key: str) -> dict[str, Any]:
    more = {"resources": {"cpu": 1}, "priority": 0, "effective": 0, "steps": [], "owed": False}
    said = {"submitted_at_ms": 1, "visible": True, "reason": None}
    return {"place": place, "key": key, "name": "job", "user": "ann", "queue": "root.batch"} | more | said


def test_a_line_for_each_in_its_order(service: Any, run: Callable[..., Any]) -> None:
    """What is not in sight is a dash; JSON is what the service said of the starts."""
    start = {"key": "12.3", "earliest_ms": 0, "median_ms": HOUR_MS, "latest_ms": 2 * HOUR_MS}
    service.on("GET", "/line/forecast", {"made_ms": 0, "coverage": 0.8, "starts": [start]})
    service.on("GET", "/line", {"line": [waits(1, "12.3"), waits(2, "7")], "next": None, "total": 2})
    service.on("GET", "/forecasts/score", SCORE)
    result = run("when", "--spend", "2s")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["PLACE", "KEY", "NAME", "USER", "QUEUE", "EARLIEST", "LIKELY", "LATEST"]
    assert (lines[1][:5], len(lines[1])) == (["1", "12.3", "job", "ann", "root.batch"], 11)
    assert lines[2] == ["2", "7", "job", "ann", "root.batch", "-", "-", "-"]
    assert "79" in result.stdout.splitlines()[3]
    assert [r.query for r in service.requests if r.path.endswith("/line/forecast")] == [
        {"limit": "200", "seconds": "2"}
    ]
    assert [each["key"] for each in json.loads(run("when", "--json").stdout)["starts"]] == ["12.3"]


def test_an_empty_line_is_said(service: Any, run: Callable[..., Any]) -> None:
    """Not shown as a table of nothing."""
    service.on("GET", "/line/forecast", {"made_ms": 0, "coverage": 0.8, "starts": []})
    service.on("GET", "/line", {"line": [], "next": None, "total": 0})
    service.on("GET", "/forecasts/score", SCORE)
    assert run("when").stderr == "fairlead: nothing waits for room\n"
