"""An upgrade and its way back, walked as docs/backup-and-upgrade.md says, with a version that is made up.

The newer version is a copy of this one with another number and a journal format of its own: what an older version meets
when it comes back to a state that a newer one wrote.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.unix_socket import wait_until_served

import fairlead
from fairlead.journal.format import FORMAT

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
NEWER = "99.0.0"
SOURCE = Path(fairlead.__file__).parent


class Machine:
    """One machine with one state directory, and whichever version is installed."""

    def __init__(self, directory: Path, installed: Path | None = None) -> None:
        self.directory, self.installed = directory, installed
        self.service: subprocess.Popen[bytes] | None = None

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
        kept["FAIRLEAD_SOCKET"] = str(self.directory / "s")
        return kept | ({"PYTHONPATH": str(self.installed)} if self.installed is not None else {})

    def popen(self, *words: str, **settings: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "fairlead.cli.main", *words]
        return subprocess.Popen(command, cwd=self.directory, env=self.environment(), **settings)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fairlead.cli.main", *words]
        return subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def done(self, *words: str) -> str:
        found = self.run(*words)
        assert found.returncode == 0, found.stderr
        return found.stdout

    def up(self, state: str = "state") -> None:
        with (self.directory / "log").open("wb") as log:
            self.service = self.popen("up", "--state", state, "--socket", "s", "--no-tcp", stderr=log)
        service = self.service
        wait_until_served(self.directory / "s", lambda: None if service.poll() is None else self.log(), 60)

    def down(self) -> None:
        if self.service is not None:
            self.service.send_signal(signal.SIGTERM)
            assert self.service.wait(60) == 0, self.log()
            self.service = None

    def log(self) -> str:
        return (self.directory / "log").read_text()

    def state_of(self, key: str) -> str:
        return str(json.loads(self.done("show", key, "-o", "json"))["state"])

    def until(self, key: str, state: str) -> None:
        end = time.monotonic() + 60
        while (now := self.state_of(key)) != state:
            assert time.monotonic() < end, f"{key} is {now}, not {state}"
            time.sleep(0.2)


def newer_version(place: Path) -> Path:
    """This version once more, with another number and the next format of the journal."""
    package = place / "fairlead"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    number, form = package / "version.py", package / "journal" / "format.py"
    text = number.read_text()
    changed = text.replace('return metadata.version("fairlead")', f'return "{NEWER}"')
    assert changed != text
    number.write_text(changed)
    text = form.read_text()
    changed = text.replace(f"\nFORMAT = {FORMAT}\n", f"\nFORMAT = {FORMAT + 1}\n")
    changed = changed.replace("{1: lambda _: None}", f"{{1: lambda _: None, {FORMAT}: lambda _: None}}")
    assert changed.count(f"FORMAT = {FORMAT + 1}") == changed.count(f"{FORMAT}: lambda _: None}}") == 1
    form.write_text(changed)
    return place


def bytes_of(state: Path) -> dict[str, bytes]:
    """Every file with something in it but the lock, which says who held it last, and the index of the journal's log."""
    found = {str(path): path.read_bytes() for path in state.rglob("*") if path.is_file()}
    return {name: text for name, text in found.items() if text and not name.endswith((".lock", "-shm"))}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    one = Machine(tmp_path)
    yield one
    if one.service is not None and one.service.poll() is None:
        one.run("cancel", "--now", "--user", "*", "--state", "running", "--state", "waiting")
        time.sleep(0.5)
        one.service.kill()
        one.service.wait(50)


@pytest.mark.thorough
def test_an_upgrade_and_its_way_back(machine: Machine, tmp_path: Path) -> None:
    """Jobs run on over the upgrade; the older version refuses what it cannot know, and the backup leads back."""
    machine.up()
    ended = machine.done("submit", "--wait", "--quiet", "--name", "ended", "--", "true") or "1"
    assert ended == "1"
    runs = machine.done("submit", "--name", "runs", "--", "sh", "-c", "while ! [ -e stop ]; do sleep 0.1; done").strip()
    waits = machine.done("submit", "--name", "waits", "--hold", "--", "sh", "-c", "echo came >> ran").strip()
    machine.until(runs, "running")
    machine.done("backup", "before.tar.gz", "--state", "state")

    # The upgrade: the service is restarted with another version, and the job does not notice.
    machine.down()
    machine.installed = newer_version(tmp_path / "newer")
    assert NEWER in machine.done("--version")
    machine.up()
    assert f"the journal is brought to format {FORMAT + 1}" in machine.log()
    assert machine.state_of(runs) == "running"
    assert machine.state_of(waits) == "waiting"
    later = machine.done("submit", "--wait", "--quiet", "--name", "later", "--", "true") or "later"
    assert later == "later"
    (tmp_path / "stop").touch()
    machine.until(runs, "succeeded")
    machine.done("release", waits)
    machine.until(waits, "succeeded")
    machine.down()

    # The way back: the older version does not begin, and changes nothing.
    machine.installed = None
    before = bytes_of(tmp_path / "state")
    refused = machine.run("up", "--state", "state", "--socket", "s", "--no-tcp")
    said = f"has journal format {FORMAT + 1}; this version of Fairlead knows up to {FORMAT}: upgrade Fairlead"
    assert refused.returncode == 1
    assert said in refused.stderr
    assert bytes_of(tmp_path / "state") == before

    (tmp_path / "state").rename(tmp_path / "newer-state")
    machine.done("restore", "before.tar.gz", "--state", "state")
    machine.up()
    assert machine.state_of("1") == "succeeded"
    assert machine.state_of(runs) == "lost"
    assert machine.state_of(waits) == "waiting", "it ran since, and is as it was then"
    assert "4" not in [row["key"] for row in json.loads(machine.done("ls", "--all", "-o", "json"))]
    machine.done("release", waits)
    machine.until(waits, "succeeded")
    assert (tmp_path / "ran").read_text() == "came\ncame\n"
