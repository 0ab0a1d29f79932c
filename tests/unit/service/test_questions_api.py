"""Why, what if and when over HTTP, asked of a running service."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from fairlead.local.job_names import job_of

pytestmark = pytest.mark.real

AMPLE = {"seconds": 60}
"""For a question: on a busy machine the usual five are not enough for every future."""


@pytest.fixture
def full(served: Any) -> Any:
    """The queue root.small is full, and one more waits there: the keys of both."""
    runs = served.submit("sleep", "60", queue="root.small", resources={"cpu": 1}, who="alice", time_limit_ms=90_000)
    served.wait(runs, "running")
    waits = served.submit("sleep", "60", queue="root.small", resources={"cpu": 1}, who="bob")
    yield runs, waits
    for key in (waits, runs):
        served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    served.wait(runs)


def test_why_has_the_numbers_of_every_level_and_who_holds_what_is_short(served: Any, full: Any) -> None:
    """An administrator sees the holder by name."""
    runs, waits = full
    verdict = served.call("GET", f"/api/v1/jobs/{waits}/why").json["verdict"]
    blocking = [level for level in verdict["levels"] if level["blocks"]]
    assert [(b["queue"], b["resource"], b["needed"], b["used"], b["max"]) for b in blocking] == [
        ("root.small", "cpu", 1, 1, 1)
    ]
    assert [h["key"] for h in verdict["holders"]] == [runs]
    assert verdict["position"] == 1
    assert verdict["changes"] is None, "they were not asked for"


@pytest.mark.thorough
def test_why_with_changes_says_what_would_start_it(served: Any, full: Any) -> None:
    """The queue's maximum, the end of what runs, and another queue."""
    runs, waits = full
    verdict = served.call("GET", f"/api/v1/jobs/{waits}/why?changes=true&seconds=60").json["verdict"]
    by_dimension = {change["dimension"]: change for change in verdict["changes"]}
    assert by_dimension["queue-max"]["parts"][0] | {"who": "", "text": ""} == {
        "what": "queue-max",
        "subject": "root.small",
        "resource": "cpu",
        "now": 1,
        "value": 2,
        "who": "",
        "text": "",
    }
    assert by_dimension["cancel"]["parts"][0]["subject"] == f"{runs}/{runs}"
    assert by_dimension["queue"]["parts"][0]["subject"] in ("root.batch", "root.default")


@pytest.mark.thorough
def test_why_names_nobody_whom_the_asker_may_not_see(served: Any, full: Any) -> None:
    """Bob learns that somebody holds it, not who."""
    runs, waits = full
    verdict = served.call("GET", f"/api/v1/jobs/{waits}/why?changes=true&seconds=60", who="bob").json["verdict"]
    assert (verdict["holders"], verdict["hidden_holders"]) == ([], 1)
    assert "cancel" not in [change["dimension"] for change in verdict["changes"]]
    assert f"{runs} of alice" not in verdict["paragraph"]
    assert served.call("GET", f"/api/v1/jobs/{runs}/why", who="bob").status == 404


def test_why_with_changes_says_what_would_start_what_is_on_hold(served: Any, full: Any) -> None:
    """Also where it would have no room yet: released it waits for it."""
    del full
    said = {}
    for queue in ("root.batch", "root.small"):
        held = served.submit("true", queue=queue, resources={"cpu": 1}, who="bob", hold=True)
        said[queue] = served.call("GET", f"/api/v1/jobs/{held}/why?changes=true&seconds=60", who="bob").json["verdict"]
        served.call("POST", f"/api/v1/jobs/{held}/cancel", {})
    assert said["root.batch"]["advice"] == ["You can release it; it starts then."]
    assert said["root.small"]["changes"][0]["dimension"] == "condition+queue"
    assert said["root.small"]["advice"][0].startswith("You can release it and move it to root.")


def test_whatif_of_a_cancellation_starts_who_waits_and_changes_nothing(served: Any, full: Any) -> None:
    """What is asked does not happen."""
    runs, waits = full
    answer = served.call("POST", "/api/v1/whatif", {"cancel": [runs]}).json
    assert [job["key"] for job in answer["starts"]["jobs"]] == [waits]
    assert [job["key"] for job in answer["ends"]["jobs"]] == [runs]
    assert (served.show(runs)["state"], served.show(waits)["state"]) == ("running", "waiting")


@pytest.mark.thorough
def test_whatif_with_a_forecast_ends_with_its_time(served: Any, full: Any) -> None:
    """In a millionth of a second nothing is seen, and nothing is made up; with ample time the start moves."""
    runs, waits = full
    supposed = {"cancel": [runs], "forecast": True}
    short = served.call("POST", "/api/v1/whatif", supposed | {"seconds": 0.000001}).json
    assert (short["expected"], short["unseen"]) == ([], 1)
    ample = served.call("POST", "/api/v1/whatif", supposed | AMPLE).json
    assert ([shift["key"] for shift in ample["expected"]], ample["unseen"]) == ([waits], 0)
    for nonsense in (0, 61, "soon"):
        assert served.call("POST", "/api/v1/whatif", supposed | {"seconds": nonsense}).status == 422, nonsense


def test_whatif_of_a_submission_says_where_it_starts_or_why_it_waits(served: Any, full: Any) -> None:
    """In a queue with room it starts, in a full one it does not."""
    del full
    draft = {"command": ["true"], "queue": "root.batch", "resources": {"cpu": 1}}
    answer = served.call("POST", "/api/v1/whatif", {"submit": draft}, "alice").json
    assert (answer["starts"]["count"], answer["supposed"]) == (1, "alice submits new to root.batch")
    nowhere = {name: value for name, value in draft.items() if name != "queue"}
    assert served.call("POST", "/api/v1/whatif", {"submit": nowhere}, "alice").json["supposed"] == "alice submits new"
    answer = served.call("POST", "/api/v1/whatif", {"submit": draft | {"queue": "root.small"}}).json
    assert answer["starts"]["count"] == 0
    assert [each["reason"]["code"] for each in answer["waits"]] == ["queue-full"]


@pytest.mark.thorough
def test_whatif_of_a_submission_with_a_forecast_says_when_it_would_start(served: Any, full: Any) -> None:
    """What `when` says once it is submitted, give or take what is drawn; of an array each part."""
    draft = {"command": ["true"], "queue": "root.small", "resources": {"cpu": 1}, "time_limit_ms": 5_000}
    assert served.call("POST", "/api/v1/whatif", {"submit": draft}).json["begins"] == []
    asked = {"submit": draft, "forecast": True} | AMPLE
    (begin,) = served.call("POST", "/api/v1/whatif", asked, "alice").json["begins"]
    key = served.submit(*draft.pop("command"), who="alice", **draft)
    when = served.call("GET", f"/api/v1/jobs/{key}/forecast?seconds=60", who="alice").json
    served.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    assert (begin["key"], begin["draws"], begin["known"]) == ("new", when["draws"], when["known"])
    for field in ("earliest_ms", "median_ms", "latest_ms"):
        assert (begin[field] is None) == (when[field] is None)
        assert begin[field] is None or abs(begin[field] - when[field]) < 90_000
    array = {"submit": draft | {"command": ["true"], "array": "1-3"}, "forecast": True} | AMPLE
    begins = served.call("POST", "/api/v1/whatif", array).json["begins"]
    assert [each["key"] for each in begins] == ["new.1", "new.2", "new.3"]
    at_once = {"submit": draft | {"command": ["true"], "queue": "root.batch"}, "forecast": True} | AMPLE
    answer = served.call("POST", "/api/v1/whatif", at_once).json
    assert (answer["starts"]["count"], answer["begins"]) == (1, []), "nothing is to be foreseen"
    huge = draft | {"command": ["true"], "resources": {"cpu": 2}}
    (never,) = served.call("POST", "/api/v1/whatif", {"submit": huge, "forecast": True} | AMPLE).json["begins"]
    assert (never["median_ms"], never["never"]) == (None, 1.0)


def test_whatif_hides_others_and_refuses_what_is_not_the_askers(served: Any, full: Any) -> None:
    """Bob sees that somebody would end, not who; the nodes and others' work are not his to suppose about."""
    runs, waits = full
    answer = served.call("POST", "/api/v1/whatif", {"priority": {"key": waits, "priority": 9}}, who="bob").json
    assert answer["starts"]["count"] + answer["starts"]["hidden"] >= 0
    assert all(job["key"] != runs for part in ("evicted", "ends") for job in answer[part]["jobs"])
    assert served.call("POST", "/api/v1/whatif", {"cancel": [runs]}, who="bob").status == 404
    node = served.call("GET", "/api/v1/nodes").json["nodes"][0]["id"]
    assert served.call("POST", "/api/v1/whatif", {"drain": [node]}, who="bob").status == 403


def test_whatif_needs_exactly_one_change(served: Any) -> None:
    """None and two are refused with the list of what there is."""
    for body in ({}, {"cancel": ["1"], "drain": ["x"]}):
        answer = served.call("POST", "/api/v1/whatif", body)
        assert answer.status == 422
        assert "exactly one of submit, cancel" in answer.error["detail"]


def test_whatif_of_a_queue_file_and_of_more_nodes(served: Any, full: Any) -> None:
    """A wider maximum starts what waits; one more node like this one joins."""
    _, waits = full
    text = served.call("GET", "/api/v1/config").json["text"].replace("max: {vcore: 1}", "max: {vcore: 2}")
    answer = served.call("POST", "/api/v1/whatif", {"config": text}).json
    assert [job["key"] for job in answer["starts"]["jobs"]] == [waits]
    share = next(share for share in answer["shares"] if share["queue"] == "root.small")
    assert (share["before"]["cpu"], share["after"]["cpu"]) == (1, 2)
    node = served.call("GET", "/api/v1/nodes").json["nodes"][0]["id"]
    more = served.call("POST", "/api/v1/whatif", {"add_nodes": {"like": node, "count": 2}})
    assert more.status == 200, more.body
    assert served.call("POST", "/api/v1/whatif", {"drain": ["nowhere"]}).status == 404


def test_when_is_an_interval_within_the_time_limit_of_what_runs(served: Any, full: Any) -> None:
    """What runs has a limit: by then the one that waits has started."""
    _, waits = full
    began = time.time_ns() // 1_000_000
    answer = served.call("GET", f"/api/v1/jobs/{waits}/forecast?seconds=60").json
    now = time.time_ns() // 1_000_000
    assert began - 5_000 < answer["earliest_ms"] <= answer["latest_ms"] <= now + 91_000
    assert answer["known"] is (answer["median_ms"] is not None), "before anything has ended there are bounds alone"
    assert (answer["ahead"], answer["never"]) == (0, 0.0)
    assert answer["assumptions"]


def test_when_with_little_time_is_later_than(served: Any, full: Any) -> None:
    """Nothing is seen in a millionth of a second but that it does not start now."""
    _, waits = full
    answer = served.call("GET", f"/api/v1/jobs/{waits}/forecast?seconds=0.000001").json
    assert (answer["median_ms"], answer["latest_ms"], answer["draws"], answer["broken_off"]) == (None, None, 1, 1)
    assert answer["earliest_ms"] >= answer["made_ms"]
    assert served.call("GET", f"/api/v1/jobs/{waits}/forecast?seconds=60").json["broken_off"] == 0
    for nonsense in ("0", "61", "nan", "soon"):
        refused = served.call("GET", f"/api/v1/jobs/{waits}/forecast?seconds={nonsense}")
        assert refused.status in (400, 422), nonsense


def test_when_of_what_runs_is_refused(served: Any, full: Any) -> None:
    """It has started already."""
    runs, _ = full
    assert served.call("GET", f"/api/v1/jobs/{runs}/forecast").status == 409


def test_the_service_scores_its_own_forecasts(served: Any) -> None:
    """A forecast is made for what waits, and scored when it starts."""
    runs = served.submit("sleep", "60", queue="root.small", resources={"cpu": 1}, time_limit_ms=90_000)
    served.wait(runs, "running")
    waits = served.submit("true", queue="root.small", resources={"cpu": 1})
    # The service looks on its own, too, now and then: the same ask may have two answers, and each is scored.
    asyncio.run(served.place.forecaster.look(served.place))
    forecast = [name for name in served.place.forecaster.card.promised() if job_of(name[2]) == waits]
    assert len(forecast) == 1
    before = served.call("GET", "/api/v1/forecasts/score").json
    served.call("POST", f"/api/v1/jobs/{runs}/cancel", {})
    served.wait(waits)
    after = served.call("GET", "/api/v1/forecasts/score").json
    assert after["scored"] - before["scored"] == after["early"] - before["early"] >= 1
    assert not served.place.forecaster.card.is_promised(forecast[0])
