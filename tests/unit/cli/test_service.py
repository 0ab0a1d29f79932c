"""`fairlead service`: the unit, what systemd is told (a made-up systemctl writes it down), and what is left alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.unit_file import NAME, Unit, quoted

SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
    *is-active*) echo "${ACTIVE:-inactive}"; [ "$ACTIVE" = active ] ;;
    *is-enabled*) echo enabled ;;
    *"$FAILS"*) [ -z "$FAILS" ] || { echo "no bus" >&2; exit 1; } ;;
esac
"""


class Home:
    """A user's home with a systemctl that only notes how it was called."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls_file, self.unit = path / "calls", path / "config" / "systemd" / "user" / NAME
        (path / "bin").mkdir()
        systemctl = path / "bin" / "systemctl"
        systemctl.write_text(SYSTEMCTL)
        systemctl.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("CALLS", str(self.calls_file))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(path / "config"))

    def calls(self) -> list[str]:
        found = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        self.calls_file.unlink(missing_ok=True)
        return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


def test_it_is_installed_started_changed_and_removed(run: Callable[..., Any], home: Home) -> None:
    assert run("service", "install", "--user", "--", "--no-tcp").exit_code == 0
    assert home.calls() == [
        f"--user {words}" for words in ("--version", "daemon-reload", f"enable {NAME}", f"restart {NAME}")
    ]
    text = home.unit.read_text()
    assert text.count(" up --no-tcp\n") == 1
    assert "StateDirectory" not in text, "where a user's is the older systemd does not know as we do"
    assert run("service", "install", "--user", "--", "--port", "0").exit_code == 0
    assert " up --port 0\n" in home.unit.read_text()
    home.calls()
    assert run("service", "uninstall", "--user").exit_code == 0
    assert home.calls() == [f"--user disable --now {NAME}", "--user daemon-reload"]
    assert not home.unit.exists()
    assert "nothing was installed" in run("service", "uninstall", "--user").stderr


def test_printing_does_nothing(run: Callable[..., Any], home: Home) -> None:
    """Also without systemctl, and of the system's without root's rights."""
    shown = run("service", "install", "--system", "--print").stdout
    assert "StateDirectoryMode=0711" in shown
    assert "WantedBy=multi-user.target" in shown
    assert "WantedBy=default.target" in run("service", "install", "--user", "--print").stdout
    assert not home.unit.exists()
    assert home.calls() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "--nope"), "up: No such option '--nope'"),
        (("--", "--port", "x"), "up: Invalid value for '--port'"),
        (("--", "--help"), "--help is no option of a unit"),
        (("--config", "not-there.yaml"), "not-there.yaml cannot be used"),
        (("--", "-c", "/not-there.yaml"), "/not-there.yaml cannot be used"),
        (("--", "--state", "here"), f"up: --state: a unit begins in another directory; write {Path.cwd()}/here"),
    ],
)
def test_what_could_not_start_is_not_installed(
    run: Callable[..., Any], home: Home, words: tuple[str, ...], said: str
) -> None:
    answered = run("service", "install", "--user", *words)
    assert answered.exit_code
    assert said in answered.stderr.replace("\n", " ")
    assert not home.unit.exists()


def test_the_unit_of_somebody_else_stays(run: Callable[..., Any], home: Home) -> None:
    home.unit.parent.mkdir(parents=True)
    home.unit.write_text("[Unit]\n")
    for command in ("install", "uninstall"):
        assert "not of `fairlead service install`" in run("service", command, "--user").stderr
    assert home.unit.read_text() == "[Unit]\n"
    assert home.calls() == []


def test_what_systemd_refuses_is_said(run: Callable[..., Any], home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILS", "--version")
    answered = run("service", "install", "--user")
    assert (answered.exit_code, "systemctl --user --version`: no bus" in answered.stderr) == (1, True)
    assert not home.unit.exists()
    monkeypatch.setenv("PATH", "/nowhere")
    assert "this machine has no systemctl" in run("service", "install", "--user").stderr


def test_status_says_whether_it_runs(run: Callable[..., Any], home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = run("service", "status", "--user")
    assert (answered.exit_code, "now: inactive" in answered.stdout, "is not there" in answered.stdout) == (
        1,
        True,
        True,
    )
    monkeypatch.setenv("ACTIVE", "active")
    assert run("service", "status", "--user").exit_code == 0


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("plain", "plain"),
        ("two words", '"two words"'),
        ("50%", "50%%"),
        ("$HOME", "$$HOME"),
        ('a"b', '"a\\"b"'),
        ("", '""'),
    ],
)
def test_words_come_through_as_they_are(word: str, said: str) -> None:
    assert quoted(word) == said


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("system", [True, False])
def test_systemd_finds_nothing_wrong_with_it(tmp_path: Path, system: bool) -> None:
    file = tmp_path / NAME
    file.write_text(Unit(command=["/bin/true", "up", "--config", "a b 50%"], system=system).text())
    words = ["systemd-analyze", *([] if system else ["--user"]), "verify", "--man=no", str(file)]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if NAME in line]) == (0, [])
