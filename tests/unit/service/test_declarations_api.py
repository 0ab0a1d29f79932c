"""Priority classes, quotas and disruption budgets over HTTP, and jobs that name a class."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.real
CLASSES, QUOTAS, BUDGETS = "/api/v1/priority-classes", "/api/v1/quotas", "/api/v1/budgets"


@pytest.fixture(autouse=True)
def tidy(served: Any) -> Any:
    """What a test makes goes with it: the service is shared."""
    yield
    for path, heading in ((QUOTAS, "quotas"), (BUDGETS, "budgets"), (CLASSES, "priority_classes")):
        for row in served.call("GET", path).json[heading]:
            if row["source"] == "api":
                assert served.call("DELETE", f"{path}/{row['name']}").json == {"ok": True}


def classes(served: Any) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in served.call("GET", CLASSES, who="bob").json["priority_classes"]}


def test_the_built_in_classes_are_there(served: Any) -> None:
    """For everybody to see."""
    assert [(r["name"], r["value"], r["source"]) for r in classes(served).values()] == [
        ("system-node-critical", 2_000_001_000, "built-in"),
        ("system-cluster-critical", 2_000_000_000, "built-in"),
    ]


def test_a_class_is_set_changed_and_removed(served: Any) -> None:
    """By administrators; the answer is what is in force."""
    made = served.call("PUT", f"{CLASSES}/urgent", {"value": 5, "preemption_policy": "Never", "min_runtime_ms": 60_000})
    assert made.json == classes(served)["urgent"]
    assert made.json["min_runtime_ms"] == 60_000
    assert (made.json["value"], made.json["preemption_policy"], made.json["source"]) == (5, "Never", "api")
    assert served.call("PUT", f"{CLASSES}/urgent", {"value": 6}).json["preemption_policy"] == "PreemptLowerPriority"
    assert served.call("DELETE", f"{CLASSES}/urgent").json == {"ok": True}
    assert served.call("DELETE", f"{CLASSES}/urgent").status == 404
    assert "urgent" not in classes(served)


@pytest.mark.parametrize("path", [f"{CLASSES}/x", f"{QUOTAS}/x", f"{BUDGETS}/x"])
def test_only_administrators_change_anything(served: Any, path: str) -> None:
    """Others may look."""
    body = {
        CLASSES: {"value": 1},
        QUOTAS: {"queue": "root.batch", "resources": {"cpu": 0.001}},
        BUDGETS: {"selector": [], "min_available": 1},
    }[path.rpartition("/")[0]]
    assert served.call("PUT", path, body, "bob").status == 403
    assert served.call("DELETE", path, None, "bob").status == 403
    assert served.call("PUT", path, body).status == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{CLASSES}/system-x", {"value": 1}),
        (f"{CLASSES}/Upper", {"value": 1}),
        (f"{CLASSES}/big", {"value": 1_000_000_001}),
        (f"{CLASSES}/odd", {"value": 1, "preemption_policy": "Sometimes"}),
        (f"{CLASSES}/none", {}),
        (f"{QUOTAS}/q", {"queue": "batch", "resources": {"cpu": 0.001}}),
        (f"{QUOTAS}/q", {"queue": "root.batch"}),
        (f"{QUOTAS}/q", {"queue": "root.batch", "scopes": [{"operator": "In"}]}),
        (f"{BUDGETS}/b", {"selector": []}),
        (f"{BUDGETS}/b", {"selector": [], "min_available": "101%"}),
    ],
)
def test_what_makes_no_sense_is_refused(served: Any, path: str, body: dict[str, Any]) -> None:
    """And nothing is changed."""
    assert served.call("PUT", path, body).status == 422
    assert served.call("DELETE", path).status == 404


def test_the_built_in_classes_stay(served: Any) -> None:
    """Whoever asks."""
    answered = served.call("DELETE", f"{CLASSES}/system-node-critical")
    assert (answered.status, answered.error["code"]) == (409, "conflict")


def test_work_gets_the_value_of_its_class(served: Any) -> None:
    """It is shown with both."""
    served.call("PUT", f"{CLASSES}/urgent", {"value": 77})
    key = served.submit("/bin/true", priority_class="urgent")
    shown = served.wait(key)
    assert (shown["priority"], shown["priority_class"]) == (77, "urgent")


@pytest.mark.parametrize(
    ("job", "field"),
    [
        ({"priority_class": "nothing"}, "priority_class"),
        ({"priority_class": "urgent", "priority": 3}, "priority"),
        ({"priority_class": "closed"}, "priority_class"),
    ],
)
def test_work_whose_class_does_not_do_is_refused(served: Any, job: dict[str, Any], field: str) -> None:
    """With the place in the submission."""
    served.call("PUT", f"{CLASSES}/urgent", {"value": 77})
    served.call("PUT", f"{CLASSES}/closed", {"value": 7, "limited": True})
    body = {"jobs": [{"command": ["/bin/true"], "cwd": "/", **job}]}
    answered = served.call("POST", "/api/v1/jobs", body)
    assert answered.status == 422
    assert answered.error["field"] == f"jobs[0].{field}"


def test_a_quota_takes_a_submission_whole_or_not_at_all(served: Any) -> None:
    """Jobs of one submission count for each other; what was admitted is shown."""
    served.call("PUT", f"{CLASSES}/urgent", {"value": 77})
    quota = {"queue": "root.batch", "resources": {"cpu": 0.3}, "scopes": [{"operator": "In", "values": ["urgent"]}]}
    assert served.call("PUT", f"{QUOTAS}/q", quota).json["used"] == {}
    job = {"command": ["/bin/sleep", "30"], "cwd": "/", "queue": "root.batch", "resources": {"cpu": 0.1}}
    four = {"jobs": [job | {"priority_class": "urgent", "grace_ms": 100}] * 4}
    answered = served.call("POST", "/api/v1/jobs", four)
    assert (answered.status, answered.error["field"]) == (422, "jobs[3].resources")
    assert served.call("GET", QUOTAS).json["quotas"][0]["jobs"] == 0
    taken = served.call("POST", "/api/v1/jobs", {"jobs": four["jobs"][:3]})
    assert taken.status == 201
    [shown] = served.call("GET", QUOTAS, who="bob").json["quotas"]
    assert (shown["used"], shown["jobs"]) == ({"cpu": 0.3}, 3)
    for row in taken.json["jobs"]:
        served.call("POST", f"/api/v1/jobs/{row['key']}/cancel", {})
        served.wait(row["key"])
    assert served.call("GET", QUOTAS).json["quotas"][0]["jobs"] == 0


@pytest.mark.parametrize("bound", ["x", "150%", "-1", -1, 1.5, True, [2]])
def test_a_bound_that_is_none_is_refused_in_one_sentence(served: Any, bound: object) -> None:
    """What may be written, and what was."""
    answer = served.call("PUT", f"{BUDGETS}/b", {"selector": [], "min_available": bound})
    assert (answer.status, answer.error["field"]) == (422, "min_available")
    fits = isinstance(bound, str) or bound == -1
    words = "a number of jobs, such as 2, or a part of them" if fits else "a whole number or a text or null, not "
    assert f"min_available: must be {words}" in answer.error["detail"]
    assert len(answer.error["details"]) == 1


def test_a_budget_has_a_name_as_the_others_have(served: Any) -> None:
    """A DNS subdomain."""
    answer = served.call("PUT", f"{BUDGETS}/Db_1", {"selector": [], "min_available": 1})
    assert answer.status == 422
    assert "'Db_1' is no name for a disruption budget" in answer.error["detail"]


def test_a_budget_shows_what_it_lets_stop(served: Any) -> None:
    """Of the job with its labels that runs."""
    condition = {"key": "app", "operator": "In", "values": ["budgeted"]}
    made = served.call("PUT", f"{BUDGETS}/b", {"selector": [condition], "max_unavailable": 1}).json
    assert (made["selector"], made["max_unavailable"], made["left"]) == ([condition], 1, 0)
    key = served.submit("/bin/sleep", "30", labels={"app": "budgeted"}, grace_ms=100, resources={"cpu": 0.1})
    served.wait(key, "running")
    assert served.call("GET", BUDGETS).json["budgets"][0]["left"] == 1
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    served.wait(key)
