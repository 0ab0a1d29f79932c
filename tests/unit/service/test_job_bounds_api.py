"""What queues say of their jobs: defaults, bounds with what to do about them, and who may go above."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.real

TEXT = """
partitions:
  - name: default
    preemption: {rule: priority}
    placementrules:
      - {name: provided}
      - {name: user, create: true, parent: {name: fixed, value: root.homes}}
    queues:
      - name: root
        submitacl: "*"
        properties: {job.priority.max: "10", job.grace.max: 1m}
        queues:
          - name: bounded
            properties:
              job.time.default: 10m
              job.time.max: 1h
              job.memory.max: 256Mi
              job.cpu.default: 500m
              job.retry.max: "2"
              job.output.max: 64Ki
          - {name: back, properties: {job.retry.default: "3"}}
          - {name: open, adminacl: alice, properties: {job.grace.max: 2m}}
          - name: counted
            properties: {job.count.max: "4"}
            queues:
              - {name: a, resources: {max: {vcore: 1m}}, properties: {job.count.user.max: "2"}}
              - {name: b, resources: {max: {vcore: 1m}}}
          - name: homes
            parent: true
            childtemplate: {properties: {job.time.max: 2h}}
"""


@pytest.fixture(autouse=True)
def queues(served: Any) -> Iterator[None]:
    assert served.call("PUT", "/api/v1/config", {"text": TEXT}).status == 200
    yield
    for row in served.call("GET", "/api/v1/jobs?state=running&state=waiting").json["jobs"]:
        served.call("POST", f"/api/v1/jobs/{row['key']}/cancel", {"now": True})
        served.wait(row["key"])


def submit(served: Any, who: str = "bob", queue: str = "root.bounded", count: int = 1, **fields: Any) -> Any:
    drafts = [{"command": ["/bin/sleep", "60"], "cwd": "/", "grace_ms": 0, "queue": queue, **fields}] * count
    return served.call("POST", "/api/v1/jobs", {"jobs": drafts}, who)


def key_of(answer: Any) -> str:
    assert answer.status == 201, answer.body
    return str(answer.json["jobs"][0]["key"])


def test_what_a_job_does_not_say_its_queue_says(served: Any) -> None:
    """A maximum is a default where there is no other; what is said is kept, also that it needs no core."""
    shown = served.show(key_of(submit(served)))
    assert (shown["resources"], shown["time_limit_ms"]) == ({"cpu": 0.5, "memory": 2**28}, 600_000)
    shown = served.show(key_of(submit(served, resources={"cpu": 2, "memory": 2**20}, time_limit_ms=5000)))
    assert (shown["resources"], shown["time_limit_ms"]) == ({"cpu": 2, "memory": 2**20}, 5000)
    shown = served.show(key_of(submit(served, resources={"cpu": 0, "memory": 2**20})))
    assert shown["resources"] == {"memory": 2**20}
    assert served.show(key_of(submit(served, queue="root.open")))["resources"] == {"cpu": 1}


@pytest.mark.parametrize(
    ("asked", "code", "field", "said"),
    [
        (
            {"time_limit_ms": 7_200_000},
            "time-limit-above-max",
            "time_limit_ms",
            "a time limit of 2h is above 1h, the job.time.max of root.bounded; ask for at most 1h, or for another",
        ),
        ({"resources": {"memory": 2**29}}, "memory-above-max", "resources.memory", "memory of 512Mi is above 256Mi"),
        (
            {"priority": 2**31 - 1},
            "priority-above-max",
            "priority",
            "a priority of 2147483647 is above 10, the job.priority.max of root.bounded; ask for at most 10, or",
        ),
        ({"grace_ms": 61_000}, "grace-above-max", "grace_ms", "a grace of 1m 1s is above 1m"),
        ({"retry": {"limit": 3}}, "retries-above-max", "retry.limit", "a number of retries of 3 is above 2"),
        (
            {"priority_class": "system-node-critical"},
            "class-of-the-system",
            "priority_class",
            "only administrators of root.bounded may use it",
        ),
    ],
)
def test_what_is_above_a_bound_is_refused(served: Any, asked: dict[str, Any], code: str, field: str, said: str) -> None:
    """With the bound, the queue, and what to do; it is recorded as rejected."""
    answer = submit(served, **asked)
    problem = answer.error
    assert (answer.status, problem["field"]) == (422, f"jobs[0].{field}")
    assert said in problem["detail"]
    assert problem["details"][0]["code"] == code
    assert served.show(problem["details"][0]["key"])["state"] == "rejected"


def test_what_came_into_no_queue_asks_for_what_it_said(served: Any) -> None:
    """What a queue would have added nobody knows, so no cores are shown where none were asked for."""
    for asked in ({"memory": 2**20}, {"gpu": 1, "cpu": 3}):
        problem = submit(served, queue="root.no name", resources=asked).error
        assert served.show(problem["details"][0]["key"])["resources"] == asked


def test_who_administers_the_queue_may_go_above_its_priority(served: Any) -> None:
    """And use classes of the system; other bounds are for all."""
    assert submit(served, "alice", "root.open", priority=1000).status == 201
    assert submit(served, "alice", "root.open", priority_class="system-cluster-critical").status == 201
    assert submit(served, "alice", "root.bounded", priority=1000).status == 422
    assert submit(served, "", "root.bounded", priority=1000).status == 201, "the service's own user administers all"
    assert submit(served, "", "root.bounded", time_limit_ms=7_200_000).status == 422


def test_the_output_of_a_job_is_bounded_by_its_queue(served: Any) -> None:
    """Read over the service as it is kept."""
    job = {"command": ["/bin/sh", "-c", "seq 100000"], "queue": "root.bounded"}
    key = served.call("POST", "/api/v1/jobs", {"jobs": [job]}, "bob").json["jobs"][0]["key"]
    assert served.wait(key)["exit_code"] == 0
    content = served.call("GET", f"/api/v1/jobs/{key}/logs", who="bob").body
    assert content.startswith(b"1\n2\n3\n")
    assert content.endswith(b"99999\n100000\n")
    assert b"bytes were left out here]\n" in content
    assert len(content) < 65 * 1024
    key = served.submit("/bin/sh", "-c", "seq 100000", queue="root.open")
    assert served.wait(key)["exit_code"] == 0
    assert served.call("GET", f"/api/v1/jobs/{key}/logs").body == "".join(f"{i}\n" for i in range(1, 100_001)).encode()


def test_a_bound_cannot_be_left_later(served: Any) -> None:
    """Not by another priority, not by moving to where what it has, or lacks, is above the bound."""
    key = key_of(submit(served, queue="root.open", grace_ms=90_000, resources={"cpu": 64_000}))
    path = f"/api/v1/jobs/{key}"
    answer = served.call("PATCH", path, {"priority": 11}, "bob")
    assert (answer.status, answer.error["field"]) == (422, "priority")
    assert served.call("PATCH", path, {"priority": 10}, "bob").status == 200
    assert served.call("PATCH", path, {"priority": 11}).status == 200, "an administrator may"
    answer = served.call("PATCH", path, {"queue": "root.bounded"})
    assert (answer.status, answer.error["field"]) == (422, "queue")
    assert "a time limit of none is above 1h" in answer.error["detail"]
    named = key_of(submit(served, queue="root.open", resources={"cpu": 64_000}))
    assert served.call("PATCH", f"/api/v1/jobs/{named}", {"queue": "root.counted.b"}, "bob").status == 200


def test_a_queue_that_placement_makes_is_bound_from_its_first_job(served: Any) -> None:
    """By its template, and by what is set above, which it does not inherit as other properties."""
    assert "a time limit of 3h is above 2h" in submit(served, queue="", time_limit_ms=3 * 3_600_000).error["detail"]
    assert (
        "a priority of 11 is above 10, the job.priority.max of root.homes.bob"
        in (submit(served, queue="", priority=11).error["detail"])
    )
    shown = served.show(key_of(submit(served, queue="")))
    assert (shown["queue"], shown["time_limit_ms"]) == ("root.homes.bob", 7_200_000)
    assert submit(served, queue="", priority=11).status == 422


def test_jobs_are_counted_in_a_queue_and_below(served: Any) -> None:
    """Those that wait count as those that run; a user at its bound keeps nobody else out. Nothing is recorded."""
    assert submit(served, "bob", "root.counted.a", 2).status == 201
    answer = submit(served, "bob", "root.counted.a")
    assert (answer.status, answer.error["code"]) == (429, "too-many")
    assert (
        "root.counted.a takes 2 jobs of each user that wait or run (job.count.user.max): 2 are there, and you"
        in (answer.error["detail"])
    )
    assert submit(served, "alice", "root.counted.a").status == 201
    answer = submit(served, "alice", "root.counted.b", 2)
    assert (
        "root.counted takes 4 jobs of all users that wait or run (job.count.max): 3 are there"
        in (answer.error["detail"])
    )
    assert submit(served, "alice", "root.counted.b").status == 201
    live = served.call("GET", "/api/v1/jobs?state=waiting&queue=root.counted").json["total"]
    assert live == 4


def test_jobs_that_are_moved_are_counted_too(served: Any) -> None:
    """Else what is refused could be had in two steps; what counts in a queue above already does not count twice."""
    key = key_of(submit(served, queue="root.open", hold=True))
    _, inside = (key_of(submit(served, queue=f"root.counted.{name}", count=2)) for name in "ab")
    full = "root.counted takes 4 jobs of all users that wait or run (job.count.max): 4 are there, and you move 1 more"
    for one, to, said in ((key, "b", full), (inside, "a", "root.counted.a takes 2 jobs of each user")):
        refused = served.call("PATCH", f"/api/v1/jobs/{one}", {"queue": f"root.counted.{to}"}, "bob")
        assert (refused.status, refused.error["field"]) == (429, "queue")
        assert said in refused.error["detail"]
    served.call("POST", f"/api/v1/jobs/{inside}/cancel", {"now": True}, "bob")
    served.wait(inside)
    assert served.call("PATCH", f"/api/v1/jobs/{key}", {"queue": "root.counted.b"}, "bob").status == 200


def test_a_queue_lets_come_back_what_was_broken_off(served: Any) -> None:
    """Not what fails by itself, nor what says that it is not begun twice; idle work comes back anyway."""

    def retry_of(**fields: Any) -> Any:
        return served.show(key_of(submit(served, queue=fields.pop("queue", "root.back"), **fields)))["retry"]

    assert retry_of() == {"limit": 3, "backoff_ms": 0, "never_on": [*range(1, 256)]}
    assert retry_of(retry={"limit": 0}) == {"limit": 0, "backoff_ms": 0, "never_on": []}
    assert retry_of(retry={"limit": 1}) == {"limit": 1, "backoff_ms": 0, "never_on": []}
    assert retry_of(idle=True) is None
    assert retry_of(terminal=True) is None, "nobody would sit there"
    assert retry_of(terminal=True, retry={"limit": 1}) == {"limit": 1, "backoff_ms": 0, "never_on": []}
    assert retry_of(queue="root.open") is None
    back = {"command": ["true"], "cwd": "/", "queue": "root.back"}
    mixed = [{**back, name: True} for name in ("idle", "terminal", "hold")]
    all_three = served.call("POST", "/api/v1/jobs", {"jobs": mixed}, "bob").json["jobs"]
    assert [served.show(job["key"])["retry"] is None for job in all_three] == [True, True, False]


def test_what_is_not_to_be_begun_twice_says_so_when_it_is_rerun_too(served: Any) -> None:
    """Its queue would let it come back."""
    key = key_of(submit(served, queue="root.back", hold=True, retry={"limit": 0}))
    assert served.call("POST", f"/api/v1/jobs/{key}/cancel", {}, "bob").status == 200
    again = served.call("POST", f"/api/v1/jobs/{key}/rerun", {}, "bob").json["key"]
    assert served.show(again)["retry"]["limit"] == 0


def test_a_queue_takes_an_array_if_it_takes_each_of_its_parts(served: Any) -> None:
    """As they are when the rest of the change is done; where it is refused nothing is changed."""
    resources, hour = {"memory": 2**20}, 3_600_000
    key = key_of(submit(served, queue="root.open", array="1-3", hold=True, resources=resources, time_limit_ms=2 * hour))

    def change(part: str = "", **fields: Any) -> Any:
        answer = served.call("PATCH", f"/api/v1/jobs/{key}{part}", fields, "bob")
        return answer.status if answer.status == 200 else answer.error["detail"]

    assert "a time limit of 2h is above 1h" in change(queue="root.bounded")
    assert change(".3", resources={"memory": 2**30}) == 200
    assert "memory of 1Gi is above 256Mi" in change(queue="root.bounded", time_limit_ms=hour)
    too_large = change(queue="root.bounded", time_limit_ms=hour, resources={"memory": 2**29})
    assert "memory of 512Mi is above 256Mi" in too_large
    shown = served.show(key)
    assert (shown["queue"], shown["time_limit_ms"]) == ("root.open", 2 * hour)
    assert change(queue="root.bounded", time_limit_ms=hour, resources=resources, name="short") == 200
    shown = served.show(f"{key}.3")
    assert (shown["queue"], shown["time_limit_ms"], shown["name"]) == ("root.bounded", hour, "short")


def test_an_array_of_which_the_first_part_is_stopping_is_moved(served: Any) -> None:
    """What is stopping goes along."""
    slow = ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"]
    fields = {"queue": "root.open", "array": "1-2", "grace_ms": 60_000, "command": slow, "resources": {"cpu": 0.1}}
    key = key_of(submit(served, **fields))
    for part in "12":
        served.wait(f"{key}.{part}", "running")
    assert served.call("POST", f"/api/v1/jobs/{key}.1/cancel", {}, "bob").status == 200
    assert served.call("PATCH", f"/api/v1/jobs/{key}", {"queue": "root.back"}, "bob").status == 200
    assert [served.show(f"{key}.{part}")["queue"] for part in "12"] == ["root.back"] * 2
    assert served.call("POST", f"/api/v1/jobs/{key}/cancel", {"now": True}, "bob").status == 200
    served.wait(key)


def supposed(served: Any, who: str = "bob", **change: Any) -> Any:
    return served.call("POST", "/api/v1/whatif", change, who)


def test_what_would_be_refused_is_not_supposed_to_start(served: Any) -> None:
    """How many jobs a queue takes counts as if they were submitted, and what is waited for has to be there."""
    draft = {"command": ["/bin/sleep", "60"], "cwd": "/", "queue": "root.counted.a", "array": "0-2"}
    too_many = supposed(served, submit=draft).error
    assert (too_many["status"], "job.count.user.max" in too_many["detail"]) == (429, True)
    assert supposed(served, submit=draft | {"array": "0-1"}).status == 200
    others = key_of(submit(served, "alice", "root.back"))
    for key in (others, "999999", "#0"):
        after = draft | {"array": "", "after": [{"key": key, "awaited": "any"}]}
        refused = supposed(served, submit=after).error
        assert (refused["status"], refused["field"]) == (422, "submit.after")
        assert refused["detail"] == submit(served, **{n: v for n, v in after.items() if n != "command"}).error["detail"]


def moved(served: Any, key: str, queue: str) -> Any:
    return served.call("PATCH", f"/api/v1/jobs/{key}", {"queue": queue}, "bob")


def test_that_there_is_no_such_queue_is_said_before_what_it_would_bound(served: Any) -> None:
    """So is that one may not use it: a smaller job would not get there either."""
    refused = moved(served, key_of(submit(served, queue="root.back")), "root.bounded.nosuch").error
    assert (refused["status"], refused["field"]) == (422, "queue")
    assert "there is no queue" in refused["detail"]


def test_what_could_not_be_moved_is_not_supposed_to_be(served: Any) -> None:
    """By the bounds of the other queue, and by how many jobs it takes."""
    key = key_of(submit(served, queue="root.back"))
    bounded = supposed(served, move={"key": key, "queue": "root.bounded"}).error
    assert (bounded["status"], bounded["field"]) == (422, "move")
    assert bounded["detail"] == moved(served, key, "root.bounded").error["detail"]
    for _ in range(2):
        key_of(submit(served, queue="root.counted.a"))
    full = supposed(served, move={"key": key, "queue": "root.counted.a"}).error
    assert (full["status"], full["detail"]) == (429, moved(served, key, "root.counted.a").error["detail"])
