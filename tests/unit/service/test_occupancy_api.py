"""Who has what, for everybody: GPUs and nodes, with names or without."""

from __future__ import annotations

import os
import time
from typing import Any
from urllib.parse import quote

import pytest

from fairlead.local import accounts

pytestmark = pytest.mark.real
ME = accounts.by_uid(os.geteuid()).name


def of(served: Any, path: str, who: str) -> list[dict[str, Any]]:
    found = served.call("GET", f"/api/v1/{path}", who=who).json
    rows: list[dict[str, Any]] = found[path.partition("?")[0]]
    return rows


def begun_with(served: Any, key: str) -> dict[str, Any]:
    """The job once its process runs and its GPU is known."""
    end = time.monotonic() + 50
    while not (shown := served.show(key))["gpus"]:
        assert time.monotonic() < end, shown
        time.sleep(0.02)
    return dict(shown)


def test_a_colleague_sees_who_has_a_gpu_and_until_when(served: Any) -> None:
    """It is what one waits for. A free one is free; without a limit there is no until."""
    key = served.submit("/bin/sleep", "60", name="train", resources={"cpu": 1, "gpu": 1}, time_limit_ms=50_000)
    begun = begun_with(served, key)["started_at_ms"]
    [first, second] = of(served, "gpus", "bob")
    assert (first["number"], second["number"], second["holder"]) == (0, 1, None)
    holder = first["holder"]
    assert (holder["key"], holder["user"], holder["name"], holder["state"]) == (key, ME, "train", "running")
    assert (holder["started_at_ms"], holder["ends_at_ms"]) == (begun, begun + 50_000)
    other = served.submit("/bin/sleep", "60")
    served.wait(other, "running")
    rows = {row["key"]: row for row in of(served, "occupants", "bob")}
    assert rows[key]["gpus"] == [0]
    assert rows[key]["resources"] == {"cpu": 1, "gpu": 1}
    assert rows[other]["ends_at_ms"] is None
    assert not rows[key]["visible"]
    assert {row["key"]: row["visible"] for row in served.call("GET", "/api/v1/occupants").json["occupants"]}[key]
    assert of(served, "occupants?node=nope", "bob") == []
    for each in (key, other):
        served.call("POST", f"/api/v1/jobs/{each}/cancel", {"now": True})
        served.wait(each)
    assert of(served, "gpus", "bob")[0]["holder"] is None


def test_parts_of_arrays_have_room_too(served: Any) -> None:
    """Each by itself, in the order of their indices, page by page."""
    key = served.submit("/bin/sleep", "60", array="2-11:9", resources={"cpu": 0.1})
    for part in (f"{key}.2", f"{key}.11"):
        served.wait(part, "running")
    assert [row["key"] for row in of(served, "occupants", "bob")] == [f"{key}.2", f"{key}.11"]
    first = served.call("GET", "/api/v1/occupants?limit=1", who="bob").json
    second = served.call("GET", f"/api/v1/occupants?limit=1&after={quote(first['next'])}", who="bob").json
    assert [row["key"] for row in second["occupants"]] == [f"{key}.11"]
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {"now": True})
    served.wait(f"{key}.2")
    served.wait(f"{key}.11")


def test_names_may_be_private(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then owners and administrators alone read them; who it is and how long stays to be seen."""
    monkeypatch.setattr(served.place, "private_names", True)
    key = served.submit("/bin/sleep", "60", name="secret", resources={"cpu": 1, "gpu": 1})
    begun_with(served, key)
    said = {who: of(served, "gpus", who)[0]["holder"] for who in ("bob", "carol")}
    assert (said["bob"]["name"], said["bob"]["user"]) == ("", ME)
    assert said["carol"]["name"] == "secret"
    assert [row["name"] for row in of(served, "occupants", "bob")] == [""]
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {"now": True})
    served.wait(key)
