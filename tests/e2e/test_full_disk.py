"""The disk of the state directory is full to the last byte and the last inode: what runs can be stopped all the same.

On a small file system of its own (tmpfs), which only root can mount. Anybody else sees them skipped; the bounds are
also tested without a disk in `tests/unit/local/test_disk.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.nursery import Nursery, Started
from testbed.unix_socket import Unix, wait_until_served

SIZE_MIB = 32
KEEP = f"{SIZE_MIB * 2**20 // 20 / 2**20:.1f}Mi"
DEAF = ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"]
STUBBORN_GRACE_MS = 3_600_000


class Service:
    """A service whose state is on a small disk."""

    def __init__(self, nursery: Nursery, disk: Path, log: Path) -> None:
        self.nursery, self.disk, self.log = nursery, disk, log
        self.socket = log.with_name("s")
        self.process: Started | None = None

    def start(self) -> None:
        places = ("--state", str(self.disk / "state"), "--socket", str(self.socket))
        self.process = process = self.nursery.start("up", *places, "--no-tcp", "--resource", "cpu=8", log=self.log)
        wait_until_served(self.socket, lambda: None if process.poll() is None else self.log.read_text())

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = Unix(self.socket)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1{path}", content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def submit(self, *command: str, **fields: Any) -> str:
        status, answer = self.ask("POST", "/jobs", {"jobs": [{"command": list(command), **fields}]})
        assert status == 201, answer
        return str(answer["jobs"][0]["key"])

    def until(self, key: str, *states: str) -> Any:
        deadline = time.monotonic() + 50
        while (job := self.ask("GET", f"/jobs/{key}")[1])["state"] not in states or (
            job["state"] == "running" and job["pid"] is None
        ):
            assert time.monotonic() < deadline, (job, self.log.read_text())
            time.sleep(0.03)
        return job


@pytest.fixture
def service(nursery: Nursery) -> Iterator[Service]:
    with tempfile.TemporaryDirectory(prefix="fl") as name:
        disk = Path(name) / "disk"
        disk.mkdir()
        options = f"size={SIZE_MIB}m,nr_inodes=400"
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", disk], check=False).returncode
        if os.geteuid() or mounted:
            pytest.skip("only root can mount a small disk")
        try:
            made = Service(nursery, disk, Path(name) / "log")
            made.start()
            yield made
            for job in made.ask("GET", "/jobs?state=running&state=waiting&state=stopping")[1]["jobs"]:
                made.ask("POST", f"/jobs/{job['key']}/cancel", {"now": True})
                made.until(job["key"], "cancelled")
            assert made.process is not None
            made.process.terminate()
            made.process.wait(50)
        finally:
            subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> None:
    """To the last byte and the last inode."""
    with (disk / "bytes").open("ab") as file, contextlib.suppress(OSError):
        while True:
            os.write(file.fileno(), bytes(4096))
    for i in range(1000):
        try:
            (disk / f"file-{i}").touch()
        except OSError:
            break
    with (disk / "bytes").open("ab") as file, contextlib.suppress(OSError):
        while True:
            os.write(file.fileno(), b"\0")


def empty(disk: Path) -> None:
    for each in disk.iterdir():
        if each.is_file():
            each.unlink()


@pytest.mark.thorough
def test_cancels_and_ends_work_on_a_full_disk(service: Service) -> None:
    """Nothing is taken in, and the reason is said; it all goes on when there is room."""
    polite = service.submit("sleep", "3600")
    deaf = service.submit(*DEAF, grace_ms=STUBBORN_GRACE_MS)
    ends = service.submit("sh", "-c", "sleep 4; exit 7")
    waits = service.submit("true", resources={"cpu": 8})
    for key in (polite, deaf, ends):
        service.until(key, "running")
    fill(service.disk)
    status, problem = service.ask("POST", "/jobs", {"jobs": [{"command": ["true"]}]})
    assert (status, problem["code"]) == (507, "disk-full")
    assert f"{KEEP} kept for cancels and ends" in problem["detail"]

    assert service.ask("POST", f"/jobs/{polite}/cancel")[0] == 200
    assert service.until(polite, "cancelled")["signal"] == 15
    assert service.ask("POST", f"/jobs/{deaf}/cancel")[0] == 200
    time.sleep(0.5)
    assert service.until(deaf, "stopping")["ended_at_ms"] is None
    assert service.ask("POST", f"/jobs/{deaf}/cancel", {"now": True})[0] == 200
    assert service.until(deaf, "cancelled")["signal"] == 9
    assert service.until(ends, "failed")["exit_code"] == 7

    # Its turn has come, but nothing is started on a full disk: it is, when there is room.
    time.sleep(1)
    assert service.ask("GET", f"/jobs/{waits}")[1]["pid"] is None
    _, shown = service.ask("GET", "/info")
    assert any("the disk of the state directory is full" in sentence for sentence in shown["problems"])
    empty(service.disk)
    service.until(waits, "succeeded")
    service.until(service.submit("true"), "succeeded")


def test_a_hundred_cancels_on_a_full_disk(service: Service) -> None:
    """Each by itself, as people do; then the service is killed and comes back with all of it, still on a full disk."""
    running = service.submit("sleep", "3600", resources={"cpu": 8})
    service.until(running, "running")
    keys = [service.submit("true") for _ in range(100)]
    fill(service.disk)
    for key in keys:
        status, answer = service.ask("POST", f"/jobs/{key}/cancel")
        assert (status, answer["state"]) == (200, "cancelled"), answer
    assert service.ask("POST", f"/jobs/{running}/cancel")[0] == 200
    service.until(running, "cancelled")
    assert service.process is not None
    service.process.kill()
    service.process.wait(50)
    service.start()
    for key in (*keys, running):
        assert service.ask("GET", f"/jobs/{key}")[1]["state"] == "cancelled"
