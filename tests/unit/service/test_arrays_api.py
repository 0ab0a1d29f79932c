"""Arrays over HTTP: one key with parts, orders about some of them, lists, questions, events and bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from fairlead.wire.jobs import Job

pytestmark = pytest.mark.real

TEXT = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
          - {name: counted, properties: {job.count.max: "4"}}
"""


@pytest.fixture(autouse=True)
def queues(served: Any) -> Iterator[None]:
    assert served.call("PUT", "/api/v1/config", {"text": TEXT}).status == 200
    yield
    for row in served.call("GET", "/api/v1/jobs?state=running&state=waiting&state=suspended").json["jobs"]:
        served.call("POST", f"/api/v1/jobs/{row['key']}/cancel", {"now": True})
        served.wait(row["key"])


def order(served: Any, key: str, name: str, **body: Any) -> Any:
    return served.call("POST", f"/api/v1/jobs/{key}/{name}", body)


def parts(served: Any, key: str, query: str = "") -> dict[str, str]:
    rows = served.call("GET", f"/api/v1/jobs?array={key}&limit=1000{query}").json["jobs"]
    return {row["key"].rpartition(".")[2]: row["state"] for row in rows}


def counts(row: dict[str, Any]) -> dict[str, int]:
    names = ("waiting", "held", "running", "done", "cancelled", "failed")
    return {name: row["parts"][name] for name in names if row["parts"][name]}


def sleeping(served: Any, array: str, **fields: Any) -> str:
    key: str = served.submit("/bin/sleep", "60", array=array, grace_ms=0, **fields)
    return key


def test_an_array_is_one_row_whose_parts_run_to_their_own_ends(served: Any) -> None:
    """With counts, the worst exit status, and what each wrote."""
    script = "echo part $FAIRLEAD_ARRAY_INDEX; exit $((FAIRLEAD_ARRAY_INDEX % 2 * 3))"
    key = served.submit("/bin/sh", "-c", script, array="2-5%2", name="odd")
    shown = served.wait(key)
    assert (shown["key"], shown["name"], shown["state"]) == (key, "odd", "failed")
    assert counts(shown) == {"done": 2, "failed": 2}
    assert (shown["parts"]["indices"], shown["parts"]["exit_status"]) == ("2-5", 3)
    assert parts(served, key) == {"2": "succeeded", "3": "failed", "4": "succeeded", "5": "failed"}
    assert served.call("GET", f"/api/v1/jobs/{key}.3/logs").body == b"part 3\n"
    assert served.show(f"{key}.3")["exit_code"] == 3
    assert served.call("GET", f"/api/v1/jobs/{key}/logs").error["code"] == "conflict"
    why = served.call("GET", f"/api/v1/jobs/{key}/why").json
    assert [(each["indices"], each["state"]) for each in why["parts"]] == [("2,4", "succeeded"), ("3,5", "failed")]


def test_lists_have_arrays_as_one_or_their_parts(served: Any) -> None:
    """With all filters, page by page."""
    key = sleeping(served, "1-5%1", name="listed")
    rows = served.call("GET", "/api/v1/jobs?name=listed").json
    assert ([row["key"] for row in rows["jobs"]], rows["total"]) == ([key], 1)
    assert counts(rows["jobs"][0]) == {"waiting": 4, "running": 1}
    first = served.call("GET", "/api/v1/jobs?name=listed&parts=true&limit=3").json
    assert [row["key"] for row in first["jobs"]] == [f"{key}.{n}" for n in (1, 2, 3)]
    rest = served.call("GET", f"/api/v1/jobs?name=listed&parts=true&limit=3&after={first['next']}").json
    assert [row["key"] for row in rest["jobs"]] == [f"{key}.{n}" for n in (4, 5)]
    assert parts(served, key, "&state=waiting") == dict.fromkeys("2345", "waiting")
    assert list(parts(served, f"{key}.2-3")) == ["2", "3"]
    missing = served.call("GET", f"/api/v1/jobs?array={key}.9")
    assert (missing.status, missing.error["code"]) == (404, "not-found")
    assert parts(served, f"{key}.1")["1"] == "running"


def test_orders_about_some_parts(served: Any) -> None:
    """Each for itself; what makes sense for none of them is refused."""
    key = sleeping(served, "1-6%2")
    cancelled = order(served, f"{key}.4-6", "cancel").json
    assert (cancelled["key"], cancelled["state"], counts(cancelled)) == (f"{key}.4-6", "cancelled", {"cancelled": 3})
    again = order(served, f"{key}.4-6", "cancel")
    assert again.status == 409
    said = f"nothing was done to any of the 3 parts of {key}.4-6: job {key}.4 has ended already"
    assert again.error["detail"].startswith(said), "the first of them, though the last one is cancelled first"
    assert counts(order(served, key, "hold").json) == {"held": 1, "running": 2, "cancelled": 3}
    assert served.show(key)["held_by"]
    assert counts(order(served, key, "release").json) == {"waiting": 1, "running": 2, "cancelled": 3}
    for part in ("1", "2"):
        served.wait(f"{key}.{part}", "running")
    assert parts(served, key)["2"] == "running"
    shown = order(served, f"{key}.1-2", "suspend").json
    assert (shown["state"], shown["parts"]["running"], shown["parts"]["suspended"]) == ("suspended", 2, 2)
    assert order(served, key, "resume").json["state"] == "running"
    order(served, f"{key}.1", "requeue", hold=True)
    served.wait(f"{key}.3", "running")
    assert served.wait(f"{key}.1", "waiting")["held_by"]
    order(served, key, "cancel", now=True)
    assert counts(served.wait(key)) == {"cancelled": 6}
    rerun = order(served, f"{key}.2,4", "rerun").json
    assert rerun["parts"]["indices"] == "2,4"


def test_many_scattered_parts_are_named_at_once(served: Any) -> None:
    """As filters do (`rerun --state failed`); a client can read what is answered."""
    key = sleeping(served, "1-400", hold=True)
    some = ",".join(str(n) for n in range(1, 401) if n % 3 and n % 5)
    shown = msgspec.json.decode(order(served, f"{key}.{some}", "cancel").body, type=Job)
    assert shown.parts is not None
    assert (shown.key, shown.parts.cancelled) == (f"{key}.{some}", some.count(",") + 1)


def test_a_change_is_of_each_part_or_of_the_array(served: Any) -> None:
    """How many at a time and the queue are the array's."""
    key = sleeping(served, "1-4%1", queue="root.default")
    path = f"/api/v1/jobs/{key}"
    assert counts(served.call("PATCH", path, {"at_once": 3}).json) == {"waiting": 1, "running": 3}
    assert served.show(key)["parts"]["at_once"] == 3
    assert served.call("PATCH", f"{path}.4", {"at_once": 1}).error["field"] == "at_once"
    assert served.call("PATCH", f"{path}.4", {"queue": "root.counted"}).error["field"] == "queue"
    assert served.call("PATCH", path, {"queue": "root.counted", "name": "moved"}).json["queue"] == "root.counted"
    assert {served.show(f"{key}.{n}")["queue"] for n in range(1, 5)} == {"root.counted"}
    assert {served.show(f"{key}.{n}")["name"] for n in range(1, 5)} == {"moved"}
    assert served.call("PATCH", f"{path}.4", {"priority": 7}).json["priority"] == 7
    assert served.call("PATCH", path, {"queue": "root.nope"}).error["field"] == "queue"
    plain = served.submit("/bin/sleep", "60", grace_ms=0)
    assert "is no array" in served.call("PATCH", f"/api/v1/jobs/{plain}", {"at_once": 1}).error["detail"]


def test_bounds_count_each_part(served: Any) -> None:
    """Those of a queue, and what an array may be."""
    body = {"command": ["/bin/true"], "cwd": "/", "queue": "root.counted"}
    refused = served.call("POST", "/api/v1/jobs", {"jobs": [body | {"array": "1-5"}]})
    assert refused.status == 429
    assert "root.counted takes 4 jobs" in refused.error["detail"]
    assert "you submit 5 more" in refused.error["detail"]
    assert counts(served.wait(served.submit("/bin/true", queue="root.counted", array="1-4"))) == {"done": 4}
    for text, said in (("5-1", "5-1 ends before it begins"), ("0-100000", "more than 100000 parts")):
        wrong = served.call("POST", "/api/v1/jobs", {"jobs": [body | {"array": text}]})
        assert (wrong.status, wrong.error["field"]) == (422, "jobs[0].array")
        assert said in wrong.error["detail"]


def test_what_is_refused_is_one_rejected_job(served: Any) -> None:
    """Not one for each part."""
    body = {"command": ["/bin/true"], "cwd": "/", "queue": "root.counted", "array": "1-3", "priority_class": "nope"}
    refused = served.call("POST", "/api/v1/jobs", {"jobs": [body]})
    key = refused.error["details"][0]["key"]
    shown = served.show(key)
    assert (shown["key"], shown["state"], shown["parts"]) == (key, "rejected", None)


@pytest.mark.thorough
def test_questions_about_an_array(served: Any) -> None:
    """When its last part starts, and what happens without it."""
    key = sleeping(served, "1-3%1", time_limit_ms=60_000)
    when = served.call("GET", f"/api/v1/jobs/{key}/forecast?seconds=60").json
    assert when["key"] == f"{key}.3"
    gone = served.call("POST", "/api/v1/whatif", {"cancel": [key]}).json
    assert (gone["supposed"], gone["ends"]["count"]) == (f"{key} is cancelled", 1)
    draft = {"command": ["/bin/true"], "array": "1-3%2"}
    added = served.call("POST", "/api/v1/whatif", {"submit": draft}).json
    assert added["starts"]["count"] == 2


def test_a_part_that_waits_for_its_turn_says_how_many_run(served: Any) -> None:
    """In numbers, too."""
    key = sleeping(served, "1-3%1")
    reason = served.show(f"{key}.3")["reason"]
    assert reason["code"] == "enough-at-once"
    assert reason["values"] == {"application": key, "running": 1, "in_line": 0, "at_once": 1}


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["hold", "cancel"])
def test_a_part_that_can_never_run_keeps_its_turn_until_it_is_taken_out_of_the_line(served: Any, order: str) -> None:
    """What is in line counts; the page on arrays says what to do."""
    key = served.submit("true", array="1-3%1", hold=True)
    assert served.call("PATCH", f"/api/v1/jobs/{key}.1", {"resources": {"memory": 2**50}}).status == 200
    assert served.call("POST", f"/api/v1/jobs/{key}/release").status == 200
    reasons = [served.show(f"{key}.{index}")["reason"]["code"] for index in (1, 2)]
    assert reasons == ["too-big-for-every-node", "enough-at-once"]
    assert served.call("POST", f"/api/v1/jobs/{key}.1/{order}").status == 200
    assert [served.wait(f"{key}.{index}")["state"] for index in (2, 3)] == ["succeeded"] * 2


def test_a_forecast_knows_the_end_of_a_part_and_of_the_whole(served: Any) -> None:
    """What waits for a part starts before what waits for all of them, once it is known how long work lasts."""
    served.wait(served.submit("/bin/true"))
    key = sleeping(served, "1-3%1", time_limit_ms=60_000)
    early, late = (
        served.submit("/bin/true", after=[{"key": awaited, "awaited": "ok"}]) for awaited in (f"{key}.1", key)
    )
    first, last = (
        served.call("GET", f"/api/v1/jobs/{one}/forecast?seconds=60").json["median_ms"] for one in (early, late)
    )
    assert first is not None
    assert last is not None
    assert first < last


def test_all_that_is_requeued_on_hold_waits(served: Any) -> None:
    """Also the parts that did not run yet; of one part that waits there is nothing to requeue."""
    key = sleeping(served, "1-4%2")
    for part in ("1", "2"):
        served.wait(f"{key}.{part}", "running")
    assert order(served, f"{key}.4", "requeue", hold=True).status == 409
    order(served, key, "requeue", hold=True, why="the disk")
    for part in range(1, 5):
        served.wait(f"{key}.{part}", "waiting")
    assert counts(served.show(key)) == {"held": 4}
    order(served, key, "cancel", now=True)


def test_room_and_priority_are_for_several_parts(served: Any) -> None:
    """Each of those that wait in line; that is none of those that wait for their turn."""
    key = served.submit("/bin/true", array="1-3%2", resources={"cpu": 3, "gpu": 9})
    order(served, key, "reserve", on=True, why="a demo")
    assert [served.show(f"{key}.{part}")["reserved"] for part in (1, 2, 3)] == [True, True, False]
    assert served.call("PATCH", f"/api/v1/jobs/{key}.2-3", {"priority": 4}).status == 200
    assert [served.show(f"{key}.{part}")["priority"] for part in (1, 2, 3)] == [0, 4, 4]
    order(served, key, "cancel")


def test_when_a_job_stands_still_is_said_of_itself(served: Any) -> None:
    """And for how long it did before; of an array nothing is said, since its parts differ."""
    key = sleeping(served, "1-2")
    order(served, f"{key}.1", "suspend")
    shown = served.show(f"{key}.1")
    assert shown["suspended_at_ms"] >= shown["submitted_at_ms"]
    assert shown["suspended_ms"] == 0
    assert served.show(key)["suspended_at_ms"] is None
    time.sleep(0.05)
    shown = order(served, f"{key}.1", "resume").json
    assert (shown["suspended_at_ms"], shown["suspended_ms"] >= 50) == (None, True)
    order(served, key, "cancel", now=True)


def test_nothing_follows_from_an_array_that_has_ended(served: Any) -> None:
    """As from a single job; it was supposed that nothing would be otherwise, or that it was no waiting work."""
    key = served.submit("/bin/true", array="1-2")
    served.wait(key)
    for supposed in ({"cancel": [key]}, {"priority": {"key": key, "priority": 5}}):
        refused = served.call("POST", "/api/v1/whatif", supposed)
        said = f"job {key} has ended already (succeeded); nothing follows from it now"
        assert (refused.status, refused.error["detail"]) == (409, said)
