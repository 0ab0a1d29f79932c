"""scenario run, scenario check, sim run, bench: options reach the simulator, and its status comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
"""
SCENARIO: dict[str, Any] = {
    "name": "one",
    "category": "small",
    "compare": "exact",
    "config": CONFIG,
    "steps": [
        {"op": "node", "id": "n1", "resources": {"vcore": 4000}},
        {"op": "app", "id": "app", "queue": "root.a", "user": "ann"},
        {"op": "ask", "app": "app", "key": "k", "resources": {"vcore": 1000}},
        {"op": "schedule", "steps": 5},
    ],
}


def test_what_run_prints_check_accepts_and_anything_else_it_does_not(run: Callable[..., Any], tmp_path: Path) -> None:
    """Status 0, then 1 with the place that differs."""
    file = tmp_path / "s.jsonl"
    file.write_text(json.dumps(SCENARIO | {"expect": {}}))
    result = json.loads(run("scenario", "run", str(file)).stdout)["result"]
    assert [row["key"] for row in result["allocated"]] == ["k"]
    file.write_text(json.dumps(SCENARIO | {"expect": result}))
    assert run("scenario", "check", str(file)).exit_code == 0
    result["allocated"][0]["node"] = "n2"
    file.write_text(json.dumps(SCENARIO | {"expect": result}))
    checked = run("scenario", "check", str(file))
    assert checked.exit_code == 1
    assert "n2" in checked.stdout


def test_a_trace_is_replayed(run: Callable[..., Any], tmp_path: Path) -> None:
    """One node, one task, totals that add up."""
    (tmp_path / "n.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,4000,8192,0,\n")
    (tmp_path / "t.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "t1,1000,1024,0,0,,LS,Succeeded,0,60,0\n"
    )
    result = run("sim", "run", "--nodes", str(tmp_path / "n.csv"), "--tasks", str(tmp_path / "t.csv"), "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["totals"]["completed"] == 1


def test_a_scenario_that_is_none_has_status_1(run: Callable[..., Any], tmp_path: Path) -> None:
    """And a sentence."""
    file = tmp_path / "s.jsonl"
    file.write_text("{}\n")
    for what in ("run", "check"):
        result = run("scenario", what, str(file))
        assert result.exit_code == 1
        assert "s.jsonl" in result.stderr


def test_a_missing_trace_is_named(run: Callable[..., Any], tmp_path: Path) -> None:
    """Status 1."""
    result = run("sim", "run", "--nodes", str(tmp_path / "n.csv"), "--tasks", str(tmp_path / "t.csv"))
    assert result.exit_code == 1
    assert "t.csv" in result.stderr


def test_bench_refuses_a_case_that_does_not_exist(run: Callable[..., Any]) -> None:
    """With those that do."""
    result = run("bench", "--only", "nonsense")
    assert result.exit_code == 2
    assert "nonsense" in result.stderr


@pytest.mark.parametrize("what", ["scenario run", "scenario check"])
def test_a_missing_file_is_named(run: Callable[..., Any], what: str) -> None:
    """Status 1."""
    result = run(*what.split(), "/nowhere.jsonl")
    assert result.exit_code == 1
    assert "/nowhere.jsonl" in result.stderr
