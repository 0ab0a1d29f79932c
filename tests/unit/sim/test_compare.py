"""Checking a file of scenarios: the table, the differences, the accepted deviations."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from plain_scenarios import run_scenario

from fairlead.sim.compare import check_file
from fairlead.sim.verdicts import counted

CONFIG = "partitions:\n- name: default\n  queues:\n  - name: root\n    submitacl: '*'\n    queues:\n    - name: a\n"


def scenario(name: str, category: str = "one", **expect: Any) -> dict[str, Any]:
    """One ask on one node, expected as it really is, apart from `expect`."""
    plain: dict[str, Any] = {
        "name": name,
        "category": category,
        "config": CONFIG,
        "steps": [
            {"op": "node", "id": "n", "resources": {"vcore": 10}},
            {"op": "app", "id": "app", "queue": "root.a"},
            {"op": "ask", "app": "app", "key": "k", "resources": {"vcore": 1}},
            {"op": "schedule", "steps": 5},
        ],
    }
    return plain | {"expect": run_scenario(plain)["result"] | expect}


def write(path: Path, *scenarios: dict[str, Any]) -> str:
    """A file with a scenario a line."""
    path.write_text("".join(json.dumps(s) + "\n" for s in scenarios))
    return str(path)


def checked(path: str, **options: Any) -> tuple[int, str, str]:
    """Exit status, output and error output."""
    out, err = io.StringIO(), io.StringIO()
    return check_file(path, out, err, **options), out.getvalue(), err.getvalue()


def test_a_file_that_passes_is_a_table_and_status_0(tmp_path: Path) -> None:
    """One row for each category and one for all."""
    status, out, _ = checked(write(tmp_path / "f", scenario("x"), scenario("y", "two"), scenario("z")))
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["category", "passed", "accepted", "failed", "total"],
        ["one", "2", "0", "0", "2"],
        ["two", "1", "0", "0", "1"],
        ["total", "3", "0", "0", "3"],
    ]


def test_a_difference_is_shown_and_gives_status_1(tmp_path: Path) -> None:
    """Where, what was expected, what came."""
    status, out, _ = checked(write(tmp_path / "f", scenario("x", allocated=[]), scenario("y")))
    assert status == 1
    assert "x (exact): 1 difference\n  allocated[0]: expected nothing, got {'key': 'k', 'app': 'app'" in out


def test_an_accepted_deviation_is_shown_apart(tmp_path: Path) -> None:
    """It does not fail, and its reason is printed."""
    decisions = tmp_path / "d.toml"
    decisions.write_text("x = 'we prefer it'\n")
    status, out, _ = checked(write(tmp_path / "f", scenario("x", allocated=[])), decisions=str(decisions))
    assert status == 0
    assert "accepted deviations:\n  x: we prefer it" in out


def test_a_decision_that_is_not_needed_is_named(tmp_path: Path) -> None:
    """It passes, or there is no such scenario; a narrowed run does not speak of scenarios it left out."""
    decisions = tmp_path / "d.json"
    decisions.write_text('{"x": "old", "gone": "older"}')
    path = write(tmp_path / "f", scenario("x"), scenario("y"))
    assert "there is no such difference: x, gone" in checked(path, decisions=str(decisions))[1]
    assert "no such difference" not in checked(path, decisions=str(decisions), names=["y"])[1]


def test_a_scenario_that_crashes_is_a_failure_of_its_own(tmp_path: Path) -> None:
    """The others are still checked."""
    broken = scenario("broken")
    broken["expect"]["allocated"] = [{"no": "step"}]
    broken["compare"] = "set"
    status, out, _ = checked(write(tmp_path / "f", broken, scenario("y")))
    assert status == 1
    assert "KeyError" in out
    assert out.splitlines()[-4].split() == ["total", "1", "0", "1", "2"]


def test_only_the_chosen_are_run(tmp_path: Path) -> None:
    """By category or by name; nothing chosen is an error."""
    path = write(tmp_path / "f", scenario("x", allocated=[]), scenario("y", "two"))
    assert checked(path, categories=["two"])[0] == 0
    assert checked(path, names=["x"])[0] == 1
    status, _, err = checked(path, names=["nobody"])
    assert (status, "was chosen" in err) == (2, True)


def test_json_has_all_of_it(tmp_path: Path) -> None:
    """Every difference with path, expected and got; what is absent is left out."""
    status, out, _ = checked(write(tmp_path / "f", scenario("x", allocated=[])), as_json=True)
    report = json.loads(out)
    assert status == 1
    assert report["categories"]["one"]["failed"] == 1
    (difference,) = report["failures"][0]["differences"]
    assert difference["path"] == "allocated[0]"
    assert "expected" not in difference
    assert difference["got"]["key"] == "k"


@pytest.mark.parametrize(
    ("text", "says"),
    [("[1]\n", "array"), ('{"config": "", "steps": []}\n', "has no `expect`"), ("nonsense\n", "JSON")],
)
def test_a_file_that_is_none_gives_status_2(tmp_path: Path, text: str, says: str) -> None:
    """With a sentence that says where."""
    path = tmp_path / "f"
    path.write_text(text)
    status, _, err = checked(str(path))
    assert status == 2
    assert says in err


def test_a_file_that_is_not_there_gives_status_2(tmp_path: Path) -> None:
    """And so does a decisions file that is no table."""
    assert checked(str(tmp_path / "none"))[0] == 2
    (tmp_path / "d.toml").write_text("x = 1\n")
    status, _, err = checked(write(tmp_path / "f", scenario("x")), decisions=str(tmp_path / "d.toml"))
    assert (status, "reason each" in err) == (2, True)


def test_one_is_said_in_the_singular() -> None:
    """Of everything that is counted in the texts: it was 1 nodes, 1 tasks."""
    assert [counted(number, "task") for number in (0, 1, 1_000)] == ["0 tasks", "1 task", "1,000 tasks"]


@pytest.mark.parametrize(("reason", "status"), [("too-big-for-every-node", 0), ("cluster-full", 1)])
def test_what_waits_may_be_expected_of_a_plain_scenario(tmp_path: Path, reason: str, status: int) -> None:
    """Of one in YuniKorn's words alone it was not worked out, and nothing that was expected of it came."""
    large = {"op": "ask", "app": "app", "key": "k", "resources": {"vcore": 11}}
    expect = {"waiting": {"k": {"reason": reason}}, "evicted": [], "nominated": {}}
    plain = scenario("x") | {"expect": expect}
    plain["steps"] = [*plain["steps"][:2], large]
    assert checked(write(tmp_path / "f", plain))[0] == status
