"""config check, show, default, apply."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

BAD = "partitions:\n  - name: default\n    queues:\n      - name: root\n        wieght: 3\n"


def test_the_default_configuration_passes_its_own_check(run: Callable[..., Any]) -> None:
    """What `default` prints, `check` accepts."""
    text = run("config", "default").stdout
    result = run("config", "check", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "can be used" in result.stderr


def test_problems_are_listed_with_file_line_and_column(run: Callable[..., Any], tmp_path: Path) -> None:
    """One a line, status 1."""
    file = tmp_path / "q.yaml"
    file.write_text(BAD)
    result = run("config", "check", str(file))
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{file}:5:9: ")
    assert "wieght" in result.stdout
    [problem] = json.loads(run("config", "check", str(file), "--json").stdout)["problems"]
    assert (problem["line"], problem["column"], problem["severity"]) == (5, 9, "error")


def test_show_prints_the_text_as_it_is(service: Any, run: Callable[..., Any]) -> None:
    """So that it can be edited and applied again."""
    service.on("GET", "/config", {"text": "partitions: []", "checksum": "x"})
    assert run("config", "show").stdout == "partitions: []\n"


def test_apply_sends_the_text(service: Any, run: Callable[..., Any], tmp_path: Path) -> None:
    """Byte for byte."""
    service.on("PUT", "/config", {"checksum": "x"})
    file = tmp_path / "q.yaml"
    file.write_text("# ü\npartitions: []\n")
    assert run("config", "apply", str(file)).exit_code == 0
    assert service.sent("PUT", "/config") == [{"text": "# ü\npartitions: []\n"}]


def test_a_refused_configuration_lists_all_errors_with_the_file(
    service: Any, run: Callable[..., Any], refuse: Callable[..., Any], tmp_path: Path
) -> None:
    """Status 1, as for `check`."""
    details = [{"line": 5, "column": 9, "path": "partitions[0]", "message": "unknown key"}]
    service.on("PUT", "/config", refuse(422, "1 error", details=details))
    file = tmp_path / "q.yaml"
    file.write_text(BAD)
    result = run("config", "apply", str(file))
    assert result.exit_code == 1
    assert f"  {file}:5:9: partitions[0]: unknown key" in result.stderr
