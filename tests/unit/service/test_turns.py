"""Many jobs in one request keep nobody else waiting for long."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.reads import measure

from fairlead.core.model.resources import Resources
from fairlead.local import requests
from fairlead.local.callers import Caller
from fairlead.local.history_records import JobSpec
from fairlead.runtime import Refusal
from fairlead.service.orders import A_TURN

ANN = Caller("ann", 77)
pytestmark = pytest.mark.real


@pytest.mark.timeout(180)
def test_others_have_their_turns_meanwhile() -> None:
    """In processor time: no piece of work of the loop or the writer is more than a small part of the whole."""
    waits, _, loop, writer = measure(2_000)
    assert waits
    assert loop.seconds < 0.1
    assert writer.seconds < writer.total / 4


def intake(count: int, request: str = "") -> requests.Intake:
    common = {"key": "", "user": "ann", "uid": 77, "queue": "root.default", "resources": Resources({"cpu": 9})}
    specs = [JobSpec(command=("true", str(number)), **common) for number in range(count)]  # type: ignore[arg-type]
    return requests.Intake(ANN, specs, request, "digest")


def step(served: Any, one: requests.Intake, most: int) -> Any:
    return served.place.runtime.do(lambda turn: one.step(served.place.local.jobs, turn, most)).result(10)


def test_a_submission_is_entered_some_jobs_a_turn(served: Any) -> None:
    """The keys come at the end, in order."""
    one = intake(5)
    assert [step(served, one, 2), step(served, one, 2)] == [None, None]
    keys = step(served, one, 2).keys
    assert [int(key) for key in keys] == list(range(int(keys[0]), int(keys[0]) + 5))


def test_what_was_broken_off_is_completed_and_never_doubled(served: Any) -> None:
    """By the same request, whether the first is still on its way or its service died."""
    first, again = intake(5, "r1"), intake(5, "r1")
    assert step(served, first, 2) is None
    assert step(served, again, 2) is None
    found = step(served, first, 2)
    assert len(found.keys) == len(set(found.keys)) == 5
    assert step(served, again, 2).keys == step(served, intake(5, "r1"), 2).keys == found.keys
    with pytest.raises(Refusal, match="was used for another submission"):
        served.place.runtime.do(
            lambda turn: requests.Intake(ANN, [], "r1", "other").step(served.place.local.jobs, turn, 1)
        ).result(10)


def test_a_quota_takes_all_or_none_in_one_turn(served: Any) -> None:
    """However many they are."""
    count = A_TURN + 5
    put = served.call("PUT", "/api/v1/quotas/few", {"queue": "root.batch", "resources": {"cpu": count / 1000}})
    assert put.status == 200
    for number, status in ((count + 1, 422), (count, 201)):
        body = {"jobs": [{"command": ["/bin/true"], "queue": "root.batch", "resources": {"cpu": 0.001}}] * number}
        assert served.call("POST", "/api/v1/jobs", body).status == status
    assert served.call("DELETE", "/api/v1/quotas/few").status == 200
