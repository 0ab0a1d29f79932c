"""Messages about jobs, over HTTP: taken in, sent, noted; and turned off by the administrator."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Served

pytestmark = pytest.mark.real


def messages(served: Served, key: str, count: int) -> list[str]:
    end = time.monotonic() + 50
    while len(found := [each["detail"] for each in served.show(key)["history"] if each["what"] == "message"]) < count:
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


@pytest.mark.thorough
def test_at_start_and_end(served: Served) -> None:
    """Each is noted in its history; a URL is shown without what may be secret in it."""
    served.place.state_dir.parent.chmod(0o711)
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o777)
        command = f'echo "$FAIRLEAD_EVENT $FAIRLEAD_STATE $(id -u)" >> {place}/told'
        notify: list[dict[str, Any]] = [
            {"to": command, "on": ["start", "end"]},
            {"to": "true", "on": ["fail"]},
            {"to": "http://127.0.0.1:9/secret", "on": ["start"]},
        ]
        key = served.submit("/bin/sh", "-c", "sleep 0.5", who="alice" if os.geteuid() == 0 else "", notify=notify)
        assert served.show(key)["notify"][2] == {"to": "http://127.0.0.1/...", "on": ["start"]}
        served.wait(key)
        told = messages(served, key, 3)
        assert told.count(f"sent to {command}") == 2
        assert any(each.startswith("to http://127.0.0.1/..., given up: ") and "refused" in each for each in told)
        uid = 54_321 if os.geteuid() == 0 else os.geteuid()
        assert (Path(place) / "told").read_text() == f"start running {uid}\nend succeeded {uid}\n"


def test_an_end_otherwise_than_well(served: Served) -> None:
    """Failed, or taken back while it waited; not at all where the submission was refused."""
    notify = [{"to": "exit 2", "on": ["fail"]}]
    key = served.submit("/bin/false", notify=notify)
    served.wait(key)
    assert messages(served, key, 1) == ["to exit 2, given up: exit status 2"]
    held = served.submit("/bin/true", hold=True, notify=[{"to": "true"}])
    served.call("POST", f"/api/v1/jobs/{held}/cancel", {})
    assert messages(served, held, 1) == ["sent to true"]


def test_what_a_quota_refuses_when_its_time_has_come(served: Served) -> None:
    """Nobody was told that at its submission. Who is refused there is told at once, and by no message."""
    notify = [{"to": "true", "on": ["fail"]}]
    held = served.submit("/bin/true", begin_at_ms=int(time.time() * 1000) + 1500, notify=notify)
    queue = served.show(held)["queue"]
    assert served.call("PUT", "/api/v1/quotas/few", {"queue": queue, "resources": {"cpu": 0.001}}).status == 200
    more = {"command": ["true"], "cwd": "/", "queue": queue, "notify": notify}
    assert "quota few" in served.call("POST", "/api/v1/jobs", {"jobs": [more]}).error["detail"]
    assert messages(served, held, 1) == ["sent to true"]
    assert served.show(held)["state"] == "rejected"
    assert messages(served, str(int(held) + 1), 0) == []
    assert served.call("DELETE", "/api/v1/quotas/few").status == 200


def test_of_an_array_there_is_one_message_or_one_of_each_part(served: Served) -> None:
    """As a whole when its first part starts and when all have ended."""
    served.place.state_dir.parent.chmod(0o711)
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o777)
        whole = f'echo "$FAIRLEAD_KEY $FAIRLEAD_EVENT $FAIRLEAD_STATE $FAIRLEAD_PARTS" >> {place}/whole'
        each = f'echo "$FAIRLEAD_KEY $FAIRLEAD_EVENT $FAIRLEAD_STATE" >> {place}/parts'
        notify = [{"to": whole, "on": ["start", "fail"]}, {"to": each, "on": ["fail", "parts"]}]
        script = "exit $((FAIRLEAD_ARRAY_INDEX == 2))"
        key = served.submit("/bin/sh", "-c", script, array="1-3%1", notify=notify)
        served.wait(key)
        end = time.monotonic() + 50
        while not all((Path(place) / name).exists() for name in ("whole", "parts")) or len(lines(place, "whole")) < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert lines(place, "whole")[0].startswith(f"{key} start running")
        assert lines(place, "whole")[1:] == [f"{key} end failed succeeded 2, failed 1"]
        assert lines(place, "parts") == [f"{key}.2 end failed"]


def lines(place: str, name: str) -> list[str]:
    return (Path(place) / name).read_text().splitlines()


def test_parts_alone_says_not_when(served: Served) -> None:
    """It is refused with what is missing."""
    draft = {"command": ["true"], "cwd": "/", "notify": [{"to": "true", "on": ["parts"]}]}
    answered = served.call("POST", "/api/v1/jobs", {"jobs": [draft]})
    assert (answered.status, answered.error["field"]) == (422, "jobs[0].notify[0].on")


@pytest.mark.parametrize("to", ["", "mail:", "mail:-x", "mail:a b", "http://", "https://x y", "a\nb"])
def test_addresses_are_checked(served: Served, to: str) -> None:
    """With the field."""
    answered = served.call(
        "POST", "/api/v1/jobs", {"jobs": [{"command": ["true"], "cwd": "/", "notify": [{"to": to}]}]}
    )
    assert answered.status == 422
    assert answered.error["field"].startswith("jobs[0].notify[0].to")


def test_an_administrator_may_turn_kinds_off(served: Served) -> None:
    """It is refused with what is left, also to those that had one before."""
    old = served.submit("/bin/true", notify=[{"to": "true"}])
    served.wait(old)
    before = served.place.notify
    served.place.notify = frozenset({"mail"})
    try:
        body = {
            "jobs": [{"command": ["true"], "cwd": "/", "notify": [{"to": "mail:ann"}, {"to": "https://x.example"}]}]
        }
        answered = served.call("POST", "/api/v1/jobs", body)
        assert (answered.status, answered.error["field"]) == (403, "jobs[0].notify[1].to")
        assert "has turned off messages by url; there are mail" in answered.error["detail"]
        assert served.call("POST", f"/api/v1/jobs/{old}/rerun", {}).status == 403
    finally:
        served.place.notify = before
