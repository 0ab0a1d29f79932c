"""fairlead context."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_a_context_is_added_listed_used_and_removed(
    run: Callable[..., Any], socket_path: str, service: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And commands go there."""
    monkeypatch.delenv("FAIRLEAD_SOCKET")
    assert run("context", "add", "here", "--socket", socket_path).stdout == "here is added, and used from now on\n"
    added = run("context", "add", "shop", "--url", "h:1", "-n", "shop", "--token-stdin", stdin="s3cret\n")
    assert added.stdout == "shop is added\n"
    assert [line.split() for line in run("context", "ls").stdout.splitlines()[1:]] == [
        ["*", "here", socket_path, "-", "-"],
        ["-", "shop", "http://h:1", "shop", "yes"],
    ]
    assert run("context", "ls", "-o", "name").stdout == "here\nshop\n"
    service.add("7")
    assert run("ls", "-o", "name").stdout == "7\n"
    assert run("ls", "--context", "shop").exit_code == 3
    assert run("context", "use", "shop").exit_code == 0
    shown = run("context", "show", "--json").stdout
    assert json.loads(shown) == {
        "address": "http://h:1",
        "current": True,
        "name": "shop",
        "namespace": "shop",
        "token": True,
        "ca": "",
    }
    assert "s3cret" not in shown + run("context", "show").stdout
    assert (tmp_path / "config" / "fairlead" / "config.toml").stat().st_mode & 0o777 == 0o600
    assert run("context", "rm", "shop").exit_code == 0
    assert "no context is in use" in run("context", "show").stderr


def test_a_bad_configuration_is_said_with_its_place(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 2, as for a wrong command line."""
    monkeypatch.delenv("FAIRLEAD_SOCKET")
    file = tmp_path / "config" / "fairlead" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("current = 'x'\n")
    result = run("ls")
    assert (result.exit_code, result.stderr) == (2, f"fairlead: {file}:1: current: there is no context 'x'\n")
