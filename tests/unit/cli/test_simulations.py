"""scenario run, scenario check, sim run, bench: options reach the simulator, and its status comes back."""

from __future__ import annotations

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
        {"op": "node", "id": "n1", "resources": {"vcore": "4"}},
        {"op": "app", "id": "app", "queue": "root.a", "user": "ann"},
        {"op": "ask", "app": "app", "key": "k", "resources": {"vcore": "1"}},
        {"op": "schedule", "n": 5},
    ],
}


def test_a_scenario_that_is_none_has_status_2(run: Callable[..., Any], tmp_path: Path) -> None:
    """And a sentence."""
    file = tmp_path / "s.jsonl"
    file.write_text("{}\n")
    for what in ("run", "check"):
        result = run("scenario", what, str(file))
        assert result.exit_code == 2
        assert "s.jsonl" in result.stderr


def test_a_missing_trace_is_named(run: Callable[..., Any], tmp_path: Path) -> None:
    """Status 2."""
    result = run("sim", "run", "--nodes", str(tmp_path / "n.csv"), "--tasks", str(tmp_path / "t.csv"))
    assert result.exit_code == 2
    assert "n.csv" in result.stderr


def test_bench_refuses_a_case_that_does_not_exist(run: Callable[..., Any]) -> None:
    """With those that do."""
    result = run("bench", "--only", "nonsense")
    assert result.exit_code == 2
    assert "nonsense" in result.stderr


@pytest.mark.parametrize("what", ["scenario run", "scenario check"])
def test_a_missing_file_is_named(run: Callable[..., Any], what: str) -> None:
    """Status 2."""
    result = run(*what.split(), "/nowhere.jsonl")
    assert result.exit_code == 2
    assert "/nowhere.jsonl" in result.stderr
