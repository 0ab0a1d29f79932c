"""A service that is started again and again: ended jobs, their files and what was secret in them are gone."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.nursery import Nursery, Started
from testbed.unix_socket import Unix, ask, wait_until_served

SECRET = "the-password-of-ann"


@pytest.fixture
def state() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fl") as name:
        yield Path(name)


def start(nursery: Nursery, state: Path, *options: str) -> Started:
    socket, log = state / "s", state / "log"
    process = nursery.start(
        "up", "--state", str(state / "state"), "--socket", str(socket), "--no-tcp", *options, log=log
    )
    wait_until_served(socket, lambda: None if process.poll() is None else log.read_text())
    return process


def post(state: Path, path: str, body: Any) -> Any:
    connection = Unix(state / "s")
    try:
        connection.request("POST", f"/api/v1{path}", json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def submit(state: Path, *command: str) -> str:
    answer = post(state, "/jobs", {"jobs": [{"command": command, "env": {"PASSWORD": SECRET}}]})
    return str(answer["jobs"][0]["key"])


def until_ended(state: Path, key: str) -> None:
    end = time.monotonic() + 50
    while ask(state / "s", f"/api/v1/jobs/{key}")["state"] != "succeeded":
        assert time.monotonic() < end, (state / "log").read_text()
        time.sleep(0.03)


def stop(process: Started) -> None:
    process.terminate()
    assert process.wait(50) == 0


def test_nothing_is_left_of_what_ended_long_ago(nursery: Nursery, state: Path) -> None:
    """Neither in the list, nor among the files of runs, nor a byte of its environment anywhere in the state."""
    options = ("--keep-jobs", "1s", "--keep-journal", "0")
    process = start(nursery, state, *options)
    for _ in range(3):
        until_ended(state, submit(state, "/bin/true"))
    time.sleep(1.1)
    for _ in range(4):  # Each stop writes a snapshot, and three are kept.
        stop(process)
        process = start(nursery, state, *options)
    end = time.monotonic() + 50
    while ask(state / "s", "/api/v1/jobs")["total"] or any((state / "state" / "runs").iterdir()):
        assert time.monotonic() < end
        time.sleep(0.05)
    journal = ask(state / "s", "/api/v1/info")["machine"]["journal"]
    assert journal["last_seq"] > 20
    stop(process)
    for path in (state / "state").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def test_files_go_although_the_service_was_killed(nursery: Nursery, state: Path) -> None:
    """As soon as it was said that a job is gone: its removal is in the journal, and is done again."""
    process = start(nursery, state)
    keys = [submit(state, "/bin/echo", "hello") for _ in range(20)]
    for key in keys:
        until_ended(state, key)
    assert post(state, "/clean", {"older_than_ms": 0})["jobs"] == 20
    process.kill()
    process.wait(50)
    process = start(nursery, state)
    end = time.monotonic() + 50
    while any((state / "state" / "runs").iterdir()):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert ask(state / "s", "/api/v1/jobs")["total"] == 0
    stop(process)


def test_what_the_machine_was_declared_to_have_outlives_a_restart(nursery: Nursery, state: Path) -> None:
    """Without the option nothing changes; another one replaces all of it, and the log says what is different."""

    def gpus(*options: str) -> int:
        process = start(nursery, state, *options)
        [node] = ask(state / "s", "/api/v1/nodes")["nodes"]
        stop(process)
        return int(node["capacity"].get("gpu", 0))

    assert gpus("--resource", "gpu=2") == 2
    assert gpus() == 2
    assert "declared at an earlier start: gpu 2" in (state / "log").read_text()
    assert "at the last start" not in (state / "log").read_text()
    assert gpus("--resource", "none") == 0
    assert "this machine has gpu 0 now and had gpu 2 at the last start" in (state / "log").read_text()
