"""Jobs of one request that wait for each other, and jobs that wait for some parts of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Served

pytestmark = pytest.mark.real
JOB = {"command": ["/bin/true"], "cwd": "/"}


def after(*keys: str) -> dict[str, Any]:
    return JOB | {"after": [{"key": key, "awaited": "any"} for key in keys]}


def send(served: Served, *jobs: dict[str, Any]) -> Any:
    return served.call("POST", "/api/v1/jobs", {"jobs": list(jobs)})


def waits_for(served: Served, key: str) -> list[str]:
    return [each["key"] for each in served.show(key)["after"]]


def test_a_job_waits_for_those_that_came_before_it(served: Served) -> None:
    """All are taken in at once, and know each other by their keys then."""
    first, second, third = (
        row["key"]
        for row in send(
            served, JOB | {"hold": True, "array": "1-2"}, after("#0.%a") | {"array": "1-2"}, after("#1", "#0.2")
        ).json["jobs"]
    )
    assert waits_for(served, f"{second}.2") == [f"{first}.2"]
    assert waits_for(served, third) == [second, f"{first}.2"]
    served.call("POST", f"/api/v1/jobs/{first}/release", {})
    assert served.wait(third)["state"] == "succeeded"


@pytest.mark.parametrize("keys", [("12.9-5",), ("12.1-900", "13.1-900")])
def test_what_no_job_could_wait_for_is_refused_with_the_job_that_does(served: Served, keys: tuple[str, ...]) -> None:
    """Of several in one request nobody could tell which it was."""
    answer = send(served, JOB, after(*keys))
    assert (answer.status, answer.error["field"]) == (422, "jobs[1].after")


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([after("#0")], "#0 names no job that comes before this one"),
        ([after("#1"), JOB], "#1 names no job that comes before this one"),
        ([JOB, after("#x")], "#x names no job"),
        ([JOB, after("#0.1")], "#0.1 names a part that #0 does not have"),
        ([JOB | {"array": "1-3"}, after("#0.7")], "#0.7 names a part"),
        ([JOB | {"array": "1-3"}, after("#0.%a")], "this is no array"),
        ([JOB | {"array": "1-3"}, after("#0.%a") | {"array": "2-4"}], "#0.%a names a part"),
    ],
)
def test_nothing_is_taken_in_where_one_names_what_is_not_there(
    served: Served, jobs: list[dict[str, Any]], said: str
) -> None:
    """With the place in the request."""
    before = served.call("GET", "/api/v1/jobs?limit=1").json["total"]
    answer = send(served, *jobs)
    assert answer.status == 422
    assert said in answer.error["detail"]
    (number,) = [index for index, job in enumerate(jobs) if "after" in job]
    assert answer.error["field"] == f"jobs[{number}].after"
    (what,) = answer.error["details"]
    assert [{"key": what["key"], "awaited": what["awaited"]}] == jobs[number]["after"]
    assert served.call("GET", "/api/v1/jobs?limit=1").json["total"] == before


def test_some_parts_of_an_array_are_waited_for(served: Served) -> None:
    """Each of them; those that there are not are said."""
    array = served.submit("/bin/true", array="1-9", hold=True)
    key = served.submit("/bin/true", after=[{"key": f"{array}.2-4,9"}])
    assert waits_for(served, key) == [f"{array}.{index}" for index in (2, 3, 4, 9)]
    for said in (f"{array}.8-12", f"{array}.1..3", f"{array}.1-5000"):
        assert send(served, after(said)).status == 422
    served.call("POST", f"/api/v1/jobs/{array}/cancel", {})
