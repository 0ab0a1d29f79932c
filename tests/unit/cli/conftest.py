"""A service that answers as a test says, and a runner for the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from testbed.answering import answer, client, refuse, service, socket_path

from fairlead.cli.main import app

__all__ = ["answer", "client", "refuse", "run", "service", "socket_path"]

Run = Callable[..., Result]


@pytest.fixture
def run(socket_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line against the service of the test."""
    for name in ("FAIRLEAD_URL", "FAIRLEAD_QUEUE", "FAIRLEAD_TOKEN", "FAIRLEAD_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FAIRLEAD_SOCKET", socket_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def invoke(*args: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, list(args), input=stdin, prog_name="fairlead")

    return invoke
