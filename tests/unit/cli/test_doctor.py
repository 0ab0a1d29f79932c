"""`fairlead doctor --fix`: what it puts right, and what it leaves alone."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import doctor


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All usual places are below a directory of the test."""
    monkeypatch.setattr(doctor, "default_state_dir", lambda: str(tmp_path / "state"))
    monkeypatch.setattr(doctor, "client_config", lambda: str(tmp_path / "config.toml"))
    return tmp_path


def findings(run: Callable[..., Any], *options: str) -> dict[str, dict[str, str]]:
    return {each["what"]: each for each in json.loads(run("doctor", "--json", *options).stdout)}


def test_without_fix_nothing_changes(run: Callable[..., Any], places: Path) -> None:
    found = findings(run, "--socket", str(places / "s"))
    assert found["state"]["fix"] == f"make {places / 'state'}"
    assert not (places / "state").exists()


def test_what_is_enforced_is_what_the_service_enforces(run: Callable[..., Any], service: Any) -> None:
    """Who asks need not be root, and a service of one's own could not do as much."""
    can = [{"name": "run as submitter", "enforced": True, "how": "the service is root and drops to the submitter"}]
    service.on("GET", "/info", {"version": "1", "user": "ann", "machine": {"capabilities": can}})
    found = findings(run)["run as submitter"]
    assert (found["level"], found["sentence"]) == ("ok", "the service is root and drops to the submitter")


def test_the_state_directory_is_made_and_closed(run: Callable[..., Any], places: Path) -> None:
    """As `up` makes it; one that is open to others is closed."""
    wanted = 0o711 if os.geteuid() == 0 else 0o700
    assert "done: make" in findings(run, "--fix", "--socket", str(places / "s"))["state"]["sentence"]
    assert (places / "state").stat().st_mode & 0o777 == wanted
    (places / "state").chmod(0o777)
    assert findings(run, "--socket", str(places / "s"))["state"]["level"] == "note"
    findings(run, "--fix", "--socket", str(places / "s"))
    assert (places / "state").stat().st_mode & 0o777 == wanted


def test_tokens_that_others_can_read_are_bad_until_they_cannot(run: Callable[..., Any], places: Path) -> None:
    file = places / "config.toml"
    file.write_text('[contexts.a]\nurl = "http://h"\ntoken = "x"\n')
    file.chmod(0o644)
    assert findings(run, "--socket", str(places / "s"))["contexts"]["level"] == "bad"
    assert findings(run, "--fix", "--socket", str(places / "s"))["contexts"]["level"] == "ok"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_left_over_socket_goes_and_one_in_use_stays(run: Callable[..., Any], places: Path) -> None:
    left, used = places / "left", places / "used"
    with socket.socket(socket.AF_UNIX) as over:
        over.bind(str(left))
    assert "nothing listens" in findings(run, "--socket", str(left))["service"]["fix"]
    findings(run, "--fix", "--socket", str(left))
    assert not left.exists()
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(used))
        there.listen()
        assert doctor._stale_socket(str(used), {}) == ""


def test_what_cannot_be_done_is_said(run: Callable[..., Any], places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    answered = run("doctor", "--json", "--fix", "--socket", str(places / "s"))
    [state] = [each for each in json.loads(answered.stdout) if each["what"] == "state"]
    assert "could not make" in state["sentence"]
    assert state["sentence"].endswith("No space left on device")
    assert answered.exit_code == 1


def test_tokens_that_others_can_read_are_put_right_where_they_say_the_service(
    run: Callable[..., Any], places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other command refuses such a file before it begins."""
    file = places / "config" / "fairlead" / "config.toml"
    monkeypatch.setattr(doctor, "client_config", lambda: str(file))
    monkeypatch.delenv("FAIRLEAD_SOCKET")
    file.parent.mkdir(parents=True)
    file.write_text(f'current = "a"\n[contexts.a]\nsocket = "{places / "s"}"\ntoken = "x"\n')
    file.chmod(0o644)
    found = findings(run)
    assert found["contexts"]["level"] == found["service"]["level"] == "bad"
    assert "chmod 600" in found["service"]["sentence"]
    found = findings(run, "--fix")
    assert found["contexts"]["level"] == "ok"
    assert "cannot reach the service" in found["service"]["sentence"]
    assert file.stat().st_mode & 0o777 == 0o600
