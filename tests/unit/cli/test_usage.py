"""usage and limits, and moving work."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

ROW = {
    "kind": "user",
    "name": "ann",
    "queue": "root.batch",
    "used": {"cpu": 1.5, "memory": 2**30},
    "running": 2,
    "max": {"cpu": 2},
    "max_running": 3,
}
LIMIT = {
    "queue": "root.batch",
    "kind": "user",
    "name": "*",
    "limit": "each",
    "max": {"cpu": 2},
    "max_running": None,
    "using": [{"name": "ann", "used": {"cpu": 1.5}, "running": 2}],
}


def test_usage_stands_beside_what_may_be_used(service: Any, run: Callable[..., Any]) -> None:
    """One line a queue; a dash where there is no limit."""
    service.on("GET", "/usage", {"usage": [ROW, ROW | {"queue": "root", "max": None, "max_running": None}]})
    _, batch, root = run("usage", "--user", "ann").stdout.splitlines()
    assert re.split(r" {2,}", batch) == ["user ann", "root.batch", "2/3", "cpu 1.5, memory 1Gi", "cpu 2"]
    assert root.split()[-1] == "-"
    assert service.requests[-1].query == {"user": "ann", "limit": "1000"}


def test_limits_show_who_uses_some(service: Any, run: Callable[..., Any]) -> None:
    """Each with his own use."""
    service.on("GET", "/limits", {"limits": [LIMIT]})
    _, line = run("limits").stdout.splitlines()
    assert line.split() == ["root.batch", "user", "*", "-", "cpu", "2", "ann:", "2", "with", "cpu", "1.5"]


def test_work_is_moved(service: Any, run: Callable[..., Any]) -> None:
    """The answer's queue is printed."""
    service.on("PATCH", "/jobs/7", service.add("7", queue="root.night"))
    assert run("move", "7", "night").stdout == "7 is in root.night\n"
    assert service.sent("PATCH", "/jobs/7") == [{"queue": "night"}]
    assert run("move", "7", "night", "--json").stdout.startswith("{")
