"""why, when, whatif: what is asked of the service, and how the answers read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from testbed.answering import whole

from fairlead.wire.questions import When

NOBODY: dict[str, Any] = {"count": 0, "hidden": 0, "jobs": []}
SAME: dict[str, Any] = {
    "supposed": "17 is cancelled",
    "empty": False,
    "refused": [],
    "starts": NOBODY,
    "starts_not": NOBODY,
    "elsewhere": NOBODY,
    "evicted": NOBODY,
    "spared": NOBODY,
    "ends": NOBODY,
    "waits": [],
    "shares": [],
    "expected": [],
    "unseen": 0,
}


def job(key: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "user": "", "node": "", "on_behalf_of": "", "rule": ""} | more


def test_why_prints_what_else_there_is_to_say(service: Any, run: Callable[..., Any]) -> None:
    """One line each, below the sentence."""
    service.on(
        "GET",
        "/jobs/2/why",
        {
            "key": "2",
            "state": "waiting",
            "sentence": "queue root.a is full",
            "queue_position": 1,
            "reason": None,
            "verdict": {"details": ["Held by 1 of ann (gpu 1).", "It runs if 1 were gone."]},
        },
    )
    assert run("why", "2", "--all").stdout == (
        "2: waiting (1st in its queue): queue root.a is full\n  Held by 1 of ann (gpu 1).\n  It runs if 1 were gone.\n"
    )
    assert service.requests[-1].query == {"changes": "true", "seconds": "10"}


def test_changes_are_of_one_job(run: Callable[..., Any], service: Any) -> None:
    """Not of everything that waits."""
    del service
    result = run("why", "--all")
    assert result.exit_code == 2
    assert "needs the key" in result.stderr


def test_whatif_says_of_how_many_it_had_no_time_to_see_the_start(service: Any, run: Callable[..., Any]) -> None:
    """Neither that nothing would move nor that something would."""
    service.on("POST", "/whatif", SAME | {"empty": True, "unseen": 3})
    lines = run("whatif", "cancel", "17", "--forecast", "--spend", "2s").stdout.splitlines()
    assert service.requests[-1].body == {"cancel": ["17"], "forecast": True, "seconds": 2.0}
    assert lines[0] == "If 17 is cancelled:"
    assert lines[1].startswith("  for 3 that wait it is not known whether the start would move:")
    assert len(lines) == 2


@pytest.mark.parametrize("known", [True, False])
def test_whatif_says_that_times_are_guessed_where_nothing_has_ended(
    service: Any, run: Callable[..., Any], known: bool
) -> None:
    """`when` says of the same jobs that it is not known yet."""
    shift = {"partition": "default", "application": "18", "key": "18", "before_ms": 60_000, "after_ms": 30_000}
    service.on("POST", "/whatif", SAME | {"expected": [shift], "known": known})
    lines = run("whatif", "cancel", "17", "--forecast").stdout.splitlines()
    assert lines[1].startswith("  18 would be expected at ")
    assert [line.startswith("  these times are guessed: nothing has ended here") for line in lines[2:]] == [True] * (
        not known
    )


@pytest.mark.parametrize("asked", [("when", "17"), ("whatif", "cancel", "17", "--forecast")])
@pytest.mark.parametrize("time", ["0s", "61s"])
def test_a_time_that_cannot_be_spent_is_told_by_its_option(
    service: Any, run: Callable[..., Any], asked: tuple[str, ...], time: str
) -> None:
    """Before the service is asked, which calls it otherwise."""
    result = run(*asked, "--spend", time)
    assert result.exit_code == 2
    assert f"--spend: more than 0 and at most 1m, not '{time}'" in result.stderr


def test_only_a_forecast_has_time_to_spend(service: Any, run: Callable[..., Any]) -> None:
    """Without one the answer is about now."""
    result = run("whatif", "cancel", "17", "--spend", "2s")
    assert (result.exit_code, service.requests) == (2, [])
    assert "--spend goes with --forecast" in result.stderr


def test_whatif_prints_a_line_for_each_kind_of_change(service: Any, run: Callable[..., Any]) -> None:
    """Who starts where, who stops for whom, what would wait, which shares change."""
    stopped = job("9", user="bob", on_behalf_of="18/18", rule="priority", violates=["b"])
    answer = SAME | {
        "starts": {"count": 2, "hidden": 1, "jobs": [job("18", user="ann", node="n1")]},
        "evicted": {"count": 1, "hidden": 0, "jobs": [stopped]},
        "waits": [{"key": "19", "reason": {"sentence": "queue root.a is full"}}],
        "shares": [{"queue": "root.a", "before": {"cpu": 1}, "after": {"cpu": 2}}],
    }
    service.on("POST", "/whatif", answer)
    assert run("whatif", "cancel", "17").stdout.splitlines() == [
        "If 17 is cancelled:",
        "  would start: 18 (ann, on n1), 1 more, 1 of them not yours to see",
        "  would be told to stop: 9 (bob, for 18, that one has a higher priority, against the disruption budget b)",
        "  19 would wait: queue root.a is full",
        "  root.a would use cpu 2 (now cpu 1)",
    ]
    assert service.requests[-1].body == {"cancel": ["17"], "forecast": False}


def test_whatif_says_when_what_is_not_submitted_would_start(service: Any, run: Callable[..., Any]) -> None:
    """Of an array the last part; without a forecast how to have one."""
    waits = {"waits": [{"key": "new", "reason": {"sentence": "queue root.a is full"}}]}
    service.on("POST", "/whatif", SAME | waits)
    assert run("whatif", "submit").stdout.splitlines()[-1] == "  When it is expected to start: `--forecast`."
    begin = {"key": "new.1", "draws": 16, "coverage": 0.8, "ahead": 2, "never": 0.0, "broken_off": 0, "known": True}
    first = begin | {"earliest_ms": 60_000, "median_ms": 120_000, "latest_ms": 180_000}
    last = begin | {"key": "new.2", "earliest_ms": 360_000, "median_ms": 420_000, "latest_ms": 480_000}
    service.on("POST", "/whatif", SAME | waits | {"begins": [first, last]})
    said = run("whatif", "submit", "--forecast").stdout.splitlines()
    assert said[2].startswith("  new.2: 80 %: 1970-01-01")
    assert said[2].endswith("2 ahead of it.")
    assert said[3] == "  no expected start would move"


def test_whatif_says_when_nothing_would_change_and_when_it_is_refused(service: Any, run: Callable[..., Any]) -> None:
    """In one line."""
    service.on("POST", "/whatif", SAME | {"empty": True})
    assert run("whatif", "drain", "n1").stdout == "If 17 is cancelled: nothing would be otherwise now.\n"
    service.on("POST", "/whatif", SAME | {"refused": [{"sentence": "no such queue"}]})
    assert run("whatif", "move", "17", "root.x").stdout == "If 17 is cancelled: it would be refused: no such queue\n"


def test_each_whatif_asks_for_its_change(service: Any, run: Callable[..., Any], tmp_path: Any) -> None:
    """In the body that the service documents."""
    service.on("POST", "/whatif", SAME)
    (tmp_path / "q.yaml").write_text("partitions: []\n")
    asked = [
        (("priority", "17", "-5"), {"priority": {"key": "17", "priority": -5}}),
        (("move", "17", "root.b"), {"move": {"key": "17", "queue": "root.b"}}),
        (("add-nodes", "n1", "3"), {"add_nodes": {"like": "n1", "count": 3}}),
        (("drain", "n1", "n2"), {"drain": ["n1", "n2"]}),
        (("config", str(tmp_path / "q.yaml")), {"config": "partitions: []\n"}),
    ]
    for words, body in asked:
        assert run("whatif", *words, "--forecast").exit_code == 0
        assert service.requests[-1].body == body | {"forecast": True}
    assert run("whatif", "submit", "--queue", "root.b", "--cpu", "2", "--priority", "7").exit_code == 0
    draft = service.requests[-1].body["submit"]
    assert (draft["queue"], draft["resources"], draft["priority"]) == ("root.b", {"cpu": 2}, 7)


def test_when_reads_as_an_interval_with_its_assumptions(service: Any, run: Callable[..., Any]) -> None:
    """And says how often the service was right so far."""
    score = {"promised": 0.8, "observed": 0.79, "scored": 100, "early": 11, "late": 10, "open": 3}
    answer = {
        "key": "17",
        "median_ms": 1_000_000,
        "earliest_ms": 900_000,
        "latest_ms": 2_000_000,
        "coverage": 0.8,
        "ahead": 3,
        "never": 0.0,
        "draws": 16,
        "broken_off": 0,
        "known": True,
        "assumptions": ["nothing new arrives"],
        "score": score,
    }
    service.on("GET", "/jobs/17/forecast", answer)
    lines = run("when", "17").stdout.splitlines()
    assert lines[0].startswith("17: 80 %: 1970-01-01")
    assert lines[0].endswith("; 3 ahead of it.")
    assert lines[2] == "  nothing new arrives"
    assert lines[3].startswith("So far 79 % of 100 starts came inside their interval (80 % should)")
    assert json.loads(run("when", "17", "--json").stdout) == whole(answer, When)


@pytest.mark.parametrize(
    ("latest_ms", "ends"),
    [(None, "not all that runs and waits declares a time limit."), (960_000, " if all takes its time limit.")],
)
def test_when_promises_nothing_by_time_limits(
    service: Any, run: Callable[..., Any], latest_ms: int | None, ends: str
) -> None:
    """What ends before its limit may let others go first: it is no bound."""
    nothing = dict.fromkeys(("observed",), None) | dict.fromkeys(("scored", "early", "late", "open"), 0)
    answer = {"median_ms": None, "latest_ms": latest_ms} | dict.fromkeys(("ahead", "broken_off"), 0)
    answer |= {"key": "17", "earliest_ms": 900_000, "coverage": 0.8, "never": 0.0, "draws": 16, "known": False}
    service.on("GET", "/jobs/17/forecast", answer | {"assumptions": [], "score": nothing | {"promised": 0.8}})
    said = run("when", "17").stdout.splitlines()[0]
    assert "nothing has ended here so far; " in said
    assert said.endswith(ends)


def test_when_says_later_than_if_the_time_for_an_answer_was_over(service: Any, run: Callable[..., Any]) -> None:
    """And how to let it look farther."""
    answer = {
        "key": "17",
        "median_ms": None,
        "earliest_ms": 900_000,
        "latest_ms": None,
        "coverage": 0.8,
        "ahead": 3,
        "never": 0.0,
        "draws": 4,
        "broken_off": 4,
        "assumptions": ["nothing new arrives"],
        "score": {"promised": 0.8, "observed": 0.0, "scored": 0, "early": 0, "late": 0, "open": 1},
    }
    service.on("GET", "/jobs/17/forecast", answer)
    lines = run("when", "17", "--spend", "2s").stdout.splitlines()
    assert service.requests[-1].query == {"seconds": "2"}
    assert lines[0].startswith("17: later than 1970-01-01")
    assert lines[0].endswith(" in nine of ten futures; 3 or more ahead of it.")
    assert lines[1].endswith("in 4 of 4 futures; `--spend 1m` looks farther.")
    assert lines[2] == "Played 4 futures; taken for granted:"
