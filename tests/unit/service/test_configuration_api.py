"""Changing the queue file over the API: seen before, applied as one step, taken back; and who may."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.core.model.decisions import Allocated, QueueChanged
from fairlead.journal.reader import Reader
from fairlead.local import accounts
from fairlead.service.history_events import of_record

pytestmark = pytest.mark.real

BASE = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
          - name: gone
          - name: batch
            resources: {max: {vcore: 2}}
            limits:
              - {limit: "each", users: ["*"], maxresources: {vcore: 2}}
"""
CONFIG = "/api/v1/config"
ME = accounts.by_uid(os.geteuid()).name


def put(served: Any, text: str, who: str = "", **more: Any) -> Any:
    return served.call("PUT", CONFIG, {"text": text, **more}, who)


@pytest.fixture
def base(served: Any) -> Iterator[dict[str, Any]]:
    put(served, BASE)
    found: dict[str, Any] = served.call("GET", CONFIG).json
    yield found
    for row in served.call("GET", "/api/v1/jobs?state=running&state=waiting").json["jobs"]:
        served.call("POST", f"/api/v1/jobs/{row['key']}/cancel", {})
        served.wait(row["key"])


def diff(served: Any, text: str) -> dict[str, Any]:
    answer = served.call("POST", f"{CONFIG}/diff", {"text": text})
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def keys(part: dict[str, Any]) -> list[str]:
    return [job["key"] for job in part["jobs"]]


def sleeper(served: Any, **fields: Any) -> str:
    key: str = served.submit("/bin/sleep", "60", grace_ms=0, **fields)
    return key


def decided_since(served: Any, seq: int) -> list[Any]:
    with Reader(served.place.runtime.journal.path) as reading:
        return [decision for record in reading.records(seq + 1) for decision in of_record(record).decisions]


def last_seq(served: Any) -> int:
    found: int = served.call("GET", "/api/v1/info").json["machine"]["journal"]["last_seq"]
    return found


def test_a_difference_says_what_then_happens(served: Any, base: dict[str, Any]) -> None:
    """Queues that come, go and change, work that would be over its limit or start: first said, then done."""
    over = sleeper(served, queue="root.batch", name="over", resources={"cpu": 2})
    waits = sleeper(served, queue="root.gone", resources={"cpu": 3})
    served.wait(over, "running")
    served.wait(waits, "waiting")
    grown = sleeper(served, queue="root.batch", resources={"cpu": 1})
    served.wait(grown, "waiting")
    text = BASE.replace("          - name: gone\n", "          - {name: fresh, resources: {max: {vcore: 1}}}\n")
    lower = text.replace("vcore: 2", "vcore: 1")
    found = diff(served, lower)
    assert (found["base"], found["refused"], found["empty"]) == (base["checksum"], None, False)
    kinds = {queue["queue"]: queue["kind"] for queue in found["queues"]}
    assert kinds == {"root.batch": "changed", "root.gone": "draining", "root.fresh": "added"}
    exceeded = next(over for over in found["over"] if not over["who"])
    assert [over["who"] for over in found["over"] if over["who"]] == [f"user {ME}"]
    assert (exceeded["queue"], exceeded["used"], exceeded["limit"]) == ("root.batch", {"cpu": 2}, {"cpu": 1})
    assert [(job["key"], job["name"]) for job in exceeded["jobs"]] == [(over, "over")]
    assert served.call("GET", CONFIG).json["checksum"] == base["checksum"], "nothing was changed by looking"
    seq = last_seq(served)
    applied = put(served, lower, base=found["base"]).json
    assert applied["checksum"] == found["checksum"]
    happened = {d.queue: d.change for d in decided_since(served, seq) if isinstance(d, QueueChanged)}
    assert happened == {"root.gone": "draining", "root.fresh": "added"}
    assert served.show(over)["state"] == "running", "what runs goes on"
    raised = text.replace("vcore: 2", "vcore: 4")
    found = diff(served, raised)
    assert keys(found["would_start"]) == [grown]
    seq = last_seq(served)
    put(served, raised)
    served.wait(grown, "running")
    assert [d.key for d in decided_since(served, seq) if isinstance(d, Allocated)] == [grown]


def test_a_lowered_limit_of_users_is_seen_before(served: Any, base: dict[str, Any]) -> None:
    """With the user, and what of his would be over it; what waits learns that it would wait for something else."""
    runs = sleeper(served, queue="root.batch", who="alice", resources={"cpu": 2})
    served.wait(runs, "running")
    waits = sleeper(served, queue="root.batch", who="alice", resources={"cpu": 1})
    served.wait(waits, "waiting")
    assert served.call("GET", f"/api/v1/jobs/{waits}/why").json["reason"]["code"] == "limit-reached"
    found = diff(served, BASE.replace("maxresources: {vcore: 2}", "maxresources: {vcore: 1}"))
    [exceeded] = found["over"]
    assert (exceeded["who"], exceeded["queue"], keys(exceeded)) == ("user alice", "root.batch", [runs])
    unlimited = BASE.partition("            limits:")[0]
    [other] = diff(served, unlimited)["would_wait_for_else"]["jobs"]
    assert (other["key"], other["user"]) == (waits, "alice")
    assert (other["instead_of"]["code"], other["reason"]["code"]) == ("limit-reached", "queue-full")


def test_a_queue_with_work_cannot_become_a_parent(served: Any, base: dict[str, Any]) -> None:
    """The difference says so, and applying it says the same."""
    key = sleeper(served, queue="root.gone")
    served.wait(key, "running")
    text = BASE.replace("- name: gone", "- {name: gone, queues: [{name: deep}]}")
    refused = diff(served, text)["refused"]
    assert "root.gone" in refused["sentence"]
    answer = put(served, text)
    assert (answer.status, answer.error["detail"]) == (422, refused["sentence"])
    assert served.call("GET", CONFIG).json == base


def test_all_errors_come_at_once_and_nothing_changes(served: Any, base: dict[str, Any]) -> None:
    """From diff as from apply, each with its line."""
    bad = BASE.replace("- name: gone", "- {name: gone, wieght: 3}").replace("max: {vcore: 2}", "max: {vcore: -2}")
    for answer in (put(served, bad), served.call("POST", f"{CONFIG}/diff", {"text": bad})):
        assert answer.status == 422
        assert {detail["line"] for detail in answer.error["details"]} == {10, 12}
    assert put(served, "").status == 422
    assert served.call("GET", CONFIG).json == base


def test_a_change_on_another_base_is_refused(served: Any, base: dict[str, Any]) -> None:
    """Somebody else was faster: look again."""
    put(served, BASE + "# by somebody else\n")
    answer = put(served, BASE + "# mine\n", base=base["checksum"])
    assert (answer.status, answer.error["field"]) == (409, "base")
    late = served.call("POST", f"{CONFIG}/rollback", {"base": base["checksum"]})
    assert late.status == 409


def test_a_change_may_be_sent_again_with_its_base(served: Any, base: dict[str, Any]) -> None:
    """As a client does whose connection broke before the answer came: it was no other one that changed it."""
    text = BASE + "# once\n"
    first, again = (put(served, text, base=base["checksum"]).json for _ in range(2))
    assert (first["changed"], again["changed"], again["version"]) == (True, False, first["version"])


def test_what_is_in_force_already_makes_no_new_version(served: Any, base: dict[str, Any]) -> None:
    """Applied once more, or put back: the answer says that nothing changed."""
    same = put(served, BASE).json
    assert (same["changed"], same["version"]) == (False, base["version"])
    other = put(served, BASE + "# two\n").json
    assert (other["changed"], other["version"]) == (True, base["version"] + 1)
    back = served.call("POST", f"{CONFIG}/rollback", {"version": other["version"]}).json
    assert (back["changed"], back["version"]) == (False, other["version"])
    assert len(served.call("GET", f"{CONFIG}/history").json["versions"]) == other["version"]


def test_a_file_without_the_partition_of_the_machine_is_refused(served: Any, base: dict[str, Any]) -> None:
    """With the place of the name that should be another."""
    answer = put(served, "partitions:\n  - name: gpu\n    queues: [{name: root}]\n")
    assert answer.status == 422
    [detail] = answer.error["details"]
    assert (detail["line"], detail["column"], detail["path"]) == (2, 11, "partitions[0].name")
    assert served.call("GET", CONFIG).json == base


def test_every_version_can_be_read_and_put_back(served: Any, base: dict[str, Any]) -> None:
    """It becomes a new one; the history says of which it is."""
    second = put(served, BASE + "# two\n").json
    back = served.call("POST", f"{CONFIG}/rollback", {}).json
    assert (back["text"], back["origin"], back["version"]) == (BASE, base["origin"], second["version"] + 1)
    again = served.call("POST", f"{CONFIG}/rollback", {"version": second["version"]}).json
    assert again["text"] == second["text"]
    listed = served.call("GET", f"{CONFIG}/history").json["versions"]
    assert [(v["version"], v["in_force"]) for v in listed[:2]] == [(again["version"], True), (back["version"], False)]
    assert (listed[1]["source"], listed[1]["who"]) == ("rollback", ME)
    old = served.call("GET", f"{CONFIG}?version={base['version']}").json
    assert (old["text"], old["in_force"]) == (BASE, False)
    assert served.call("GET", f"{CONFIG}?version=9999").status == 404
    assert served.call("POST", f"{CONFIG}/rollback", {"version": 9999}).status == 404
    same = served.call("POST", f"{CONFIG}/diff", {"version": again["version"]}).json
    assert same["empty"] is True


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", CONFIG, {"text": BASE}),
        ("POST", f"{CONFIG}/diff", {"text": BASE}),
        ("POST", f"{CONFIG}/rollback", {}),
        ("POST", "/api/v1/nodes/x/drain", {}),
    ],
)
def test_the_queues_and_nodes_are_changed_by_administrators_of_the_service(
    served: Any, method: str, path: str, body: Any
) -> None:
    """An administrator of a queue, even of the root, is none."""
    put(served, BASE.replace('submitacl: "*"', 'submitacl: "*"\n        adminacl: alice'))
    answer = served.call(method, path, body, "alice")
    assert (answer.status, answer.error["code"]) == (403, "forbidden")


def test_who_uses_what_is_no_secret_and_names_no_work(served: Any, base: dict[str, Any]) -> None:
    """Totals of users beside their limits, for everybody."""
    key = sleeper(served, queue="root.batch", who="alice", resources={"cpu": 1})
    served.wait(key, "running")
    rows = served.call("GET", "/api/v1/usage?user=alice", who="bob").json["usage"]
    found = {row["queue"]: row for row in rows}
    assert set(found) == {"root", "root.batch"}
    assert found["root.batch"] == {
        "kind": "user",
        "name": "alice",
        "queue": "root.batch",
        "used": {"cpu": 1},
        "running": 1,
        "max": {"cpu": 2},
        "max_running": None,
    }
    [limit] = served.call("GET", "/api/v1/limits", who="bob").json["limits"]
    assert (limit["queue"], limit["kind"], limit["name"]) == ("root.batch", "user", "*")
    assert limit["using"] == [{"name": "alice", "used": {"cpu": 1}, "running": 1}]
    assert served.call("GET", "/api/v1/usage?group=nobody").json == {"usage": [], "next": None, "total": 0}


@pytest.mark.parametrize("what", ["usage", "limits"])
def test_a_user_and_a_group_at_once_are_refused(served: Any, what: str) -> None:
    """One list was always empty, the other took no notice of the group."""
    answer = served.call("GET", f"/api/v1/{what}?user=alice&group=crew")
    assert (answer.status, answer.error["field"]) == (422, "group")


def test_what_touched_a_job_is_in_its_story(served: Any, base: dict[str, Any]) -> None:
    """The queue above counts too, other queues do not."""
    key = sleeper(served, queue="root.batch", resources={"cpu": 1})
    served.wait(key, "running")
    changed = BASE.replace("max: {vcore: 2}", "max: {vcore: 3}").replace(
        "- name: gone", "- {name: gone, maxapplications: 3}"
    )
    version = put(served, changed).json["version"]
    [entry] = [e for e in served.show(key)["history"] if e["what"] == "configured"]
    assert entry["detail"] == f"version {version} by {ME}: max of root.batch from cpu 2 to cpu 3"


# -- on past work ---------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_file_is_tried_on_past_work_in_a_process_of_its_own(served: Any, base: dict[str, Any]) -> None:
    """Nothing changes by it; the rest of the service goes on meanwhile."""
    for _ in range(3):
        served.wait(served.submit("/bin/true", queue="root.batch", resources={"cpu": 1}))
    answer = served.call("POST", f"{CONFIG}/compare", {"text": BASE.replace("vcore: 2", "vcore: 1"), "days": 1})
    assert answer.status == 200, answer.body
    found = answer.json
    assert found["tasks"] >= 3
    assert found["sentences"]
    assert "root.batch" in [each["name"] for each in found["queues"]]
    assert served.call("GET", CONFIG).json["version"] == base["version"]
    earlier = served.call("POST", f"{CONFIG}/compare", {"version": base["version"]}).json
    assert earlier["sentences"] == ["This file makes no difference worth mentioning against the file in force."]


def test_what_cannot_be_tried_on_past_work_says_why(served: Any, base: dict[str, Any]) -> None:
    """A file with errors, a version that is not there, too many days, neither or both, a stranger, no time."""

    def refused(body: dict[str, Any], who: str = "") -> tuple[int, str]:
        answer = served.call("POST", f"{CONFIG}/compare", body, who)
        return answer.status, str(answer.json["detail"])

    assert refused({"text": "partitions: 7"})[0] == 422
    assert refused({"version": 99})[0] == 404
    assert refused({"text": BASE, "days": 32})[0] == 422
    assert refused({})[0] == 422
    status, said = refused({"text": BASE}, "bob")
    assert (status, "everybody's work" in said) == (403, True)
    patience, served.place.past_work.patience_s = served.place.past_work.patience_s, 0.01
    try:
        status, said = refused({"text": BASE})
    finally:
        served.place.past_work.patience_s = patience
    assert (status, "ask for fewer days" in said) == (503, True)
