"""A state that was damaged while the service was down: what was confirmed is not passed over, and nothing is killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from testbed.nursery import Nursery, Started
from testbed.unix_socket import Unix, wait_until_served

from fairlead.cli.main import app

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


class Service:
    """A service on a state directory of its own, with six cores and two GPUs."""

    def __init__(self, nursery: Nursery, directory: Path) -> None:
        self.nursery, self.state = nursery, directory / "state"
        self.socket, self.log = directory / "s", directory / "log"
        self.process: Started | None = None

    def start(self, *more: str, ready: bool = True) -> Started:
        words = ("--state", str(self.state), "--socket", str(self.socket), "--no-tcp")
        amounts = ("--resource", "cpu=6", "--resource", "gpu=2")
        self.process = process = self.nursery.start("up", *words, *amounts, *more, log=self.log)
        if ready:
            wait_until_served(self.socket, lambda: None if process.poll() is None else self.log.read_text())
        return process

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(50)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = Unix(self.socket)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1{path}", content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        assert response.status < 300, (path, answer)
        return answer

    def submit(self, *command: str, **fields: Any) -> str:
        return str(self.ask("POST", "/jobs", {"jobs": [{"command": list(command), **fields}]})["jobs"][0]["key"])

    def until(self, key: str, state: str) -> Any:
        deadline = time.monotonic() + 50
        while (job := self.ask("GET", f"/jobs/{key}"))["state"] != state or (state == "running" and not job["pid"]):
            assert time.monotonic() < deadline, (job, self.log.read_text())
            time.sleep(0.03)
        return job

    def cli(self, *words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--socket", str(self.socket)])
        assert done.exit_code == 0, done.output
        return done.output


@pytest.fixture
def service(nursery: Nursery) -> Iterator[Service]:
    directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    made = Service(nursery, directory)
    try:
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.kill()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and str(directory).encode() in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
        shutil.rmtree(directory, ignore_errors=True)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_flipped_bit_in_the_log_kills_nothing_and_is_said(service: Service) -> None:
    """The start is refused until the loss is accepted by its name; what is unknown then goes on until it is stopped."""
    service.start()
    keys = [service.submit("/bin/sleep", "600", name=f"n{i}", resources={"cpu": 1}) for i in range(4)]
    keys.append(service.submit("/bin/sleep", "600", resources={"cpu": 1, "gpu": 1}))
    pids = [service.until(key, "running")["pid"] for key in keys]
    service.kill()
    log = service.state / "journal.db-wal"
    content = bytearray(log.read_bytes())
    content[len(content) * 6 // 10] ^= 1
    log.write_bytes(content)

    for _ in range(2):
        assert service.start(ready=False).wait(50) == 1
        said = service.log.read_text().splitlines()[-1]
        assert re.search(r"fairlead: records \d+ to \d+ of .* cannot be had any more: the write-ahead log is dam", said)
        assert log.read_bytes() == bytes(content)
        assert all(map(alive, pids))
    name = re.search(r"--accept-loss ([0-9a-f-]+)", said)
    assert name is not None
    assert (service.state / "damaged" / name[1] / "journal.db-wal").read_bytes() == bytes(content)

    service.start("--accept-loss", name[1])
    unknown = [each["run"] for each in service.ask("GET", "/unknown-runs")["runs"]]
    known = [row["key"] for row in service.ask("GET", "/jobs?state=running")["jobs"]]
    assert all(map(alive, pids))
    assert len(unknown) >= 2
    assert sorted([*(f"{key}-1" for key in known), *unknown]) == sorted(f"{key}-1" for key in keys)
    assert f"{keys[-1]}-1" in unknown
    assert "that the journal does not know" in service.ask("GET", "/info")["problems"][0]
    assert "sleep 600" in service.cli("unknown")

    # What they hold is given to nobody else: one GPU and one core are free.
    node = service.ask("GET", "/nodes")["nodes"][0]
    assert node["capacity"]["gpu"] == 1
    assert node["capacity"]["cpu"] == 6 - len(unknown)
    other = service.submit("/bin/sleep", "600", resources={"cpu": 1, "gpu": 1})
    assert service.until(other, "running")["gpus"] != [0]
    assert other not in keys

    # They are still there after another start, and end when somebody says so.
    service.kill()
    service.start()
    assert [each["run"] for each in service.ask("GET", "/unknown-runs")["runs"]] == unknown
    service.cli("unknown", "--stop", *unknown)
    deadline = time.monotonic() + 50
    while service.ask("GET", "/unknown-runs")["runs"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert service.ask("GET", "/nodes")["nodes"][0]["capacity"]["gpu"] == 2
    assert sum(map(alive, pids)) == len(known)
