"""Jobs of one file that wait for each other by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import submit
from fairlead.cli.app import Failure
from fairlead.cli.named_jobs import in_order, with_keys
from fairlead.cli.submit import Described, describe

Run = Callable[..., Any]


def jobs(*said: tuple[str, list[str]]) -> list[Described]:
    return [
        describe({"command": "true", "name": name, "after_ok": after}, f"x:{number}")
        for number, (name, after) in enumerate(said, 1)
    ]


def awaited(job: Described) -> list[str]:
    return [each["key"] for each in job.body.get("after", ())]


def test_a_job_is_sent_after_those_that_it_waits_for() -> None:
    """Whatever their order in the file; keys stay what they are."""
    found = jobs(("report", ["train", "12"]), ("train", ["fetch"]), ("fetch", []))
    assert in_order(found) == [2, 1, 0]
    assert [awaited(job) for job in found] == [["#1", "12"], ["#0"], []]


def test_without_names_the_order_is_that_of_the_file() -> None:
    """Two of one name are no fault where none is meant."""
    assert in_order(jobs(("a", ["12.3"]), ("a", []), ("b", []))) == [0, 1, 2]


def test_parts_of_an_array_are_named_behind_its_name() -> None:
    """A name may have a dot itself."""
    found = jobs(("v1.2", []), ("sweep", []), ("x", ["sweep.%a", "sweep.3", "v1.2"]))
    assert in_order(found) == [0, 1, 2]
    assert awaited(found[2]) == ["#1.%a", "#1.3", "#0"]


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (
            [("a", ["b"]), ("b", ["c"]), ("c", ["a"])],
            "x:1: after: nothing in a circle ever runs: a waits for b waits for c",
        ),
        ([("a", ["a"])], "a waits for a"),
        (
            [("prepare", []), ("b", ["prepar"])],
            "x:2: after: no job of this file is named 'prepar'; did you mean 'prepare'?",
        ),
        ([("a", []), ("b", ["zzz"])], "or write a key such as 12"),
        ([("a", []), ("a", []), ("b", ["a"])], "x:3: after: 2 jobs of this file are named 'a'; give each its own name"),
    ],
)
def test_what_makes_no_sense_is_refused(said: list[tuple[str, list[str]]], wrong: str) -> None:
    """Before anything is sent."""
    with pytest.raises(Failure) as refused:
        in_order(jobs(*said))
    assert wrong in refused.value.message


def test_keys_of_an_earlier_request_stand_for_the_first() -> None:
    """Where a file is sent in several requests."""
    body = {"after": [{"key": "#0.%a"}, {"key": "#2"}, {"key": "#5.7"}, {"key": "9"}]}
    assert [each["key"] for each in with_keys(body, ["40", "41", "42"])["after"]] == ["40.%a", "42", "#2.7", "9"]


def test_keys_are_printed_in_the_order_of_the_file(
    service: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though they were sent in another, and in several requests."""
    monkeypatch.setattr(submit, "_BATCH", 1)
    keys = iter(["7", "8"])

    def take(request: Any) -> Any:
        sent.append(request.body["jobs"][0])
        return {"jobs": [service.add(next(keys))]}

    sent: list[Any] = []
    service.on("POST", "/jobs", take)
    path = tmp_path / "f.jsonl"
    lines = [{"command": "true", "name": "second", "after_any": "first"}, {"command": "true", "name": "first"}]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert run("submit", "--file", str(path)).stdout == "8\n7\n"
    assert [job["name"] for job in sent] == ["first", "second"]
    assert sent[1]["after"] == [{"key": "7", "awaited": "any"}]
