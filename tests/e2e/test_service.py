"""Starting and stopping the service as a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.nursery import Nursery
from testbed.unix_socket import Unix, wait_until_served

pytestmark = [pytest.mark.real, pytest.mark.timeout(90)]


class Up:
    """A service that was started."""

    def __init__(self, nursery: Nursery, log: Path, *options: str, socket: Path, state: Path) -> None:
        self.socket = socket
        self._log = log
        words = ("--state", str(state), "--socket", str(socket), *options)
        self.process = nursery.start("up", *words, log=log)

    def log(self) -> str:
        return self._log.read_text()

    def ready(self) -> Up:
        wait_until_served(self.socket, lambda: None if self.process.poll() is None else self.log())
        return self

    def call(self, method: str, path: str, body: Any = None) -> Any:
        connection = Unix(self.socket)
        try:
            connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def submit(self, script: str, **fields: Any) -> str:
        body = {"jobs": [{"command": ["/bin/sh", "-c", script], "cwd": "/", **fields}]}
        key: str = self.call("POST", "/api/v1/jobs", body)["jobs"][0]["key"]
        return key

    def ended(self, key: str) -> dict[str, Any]:
        end = time.monotonic() + 50
        while True:
            shown: dict[str, Any] = self.call("GET", f"/api/v1/jobs/{key}")
            if shown["ended_at_ms"] is not None:
                return shown
            assert time.monotonic() < end, shown
            time.sleep(0.02)

    def stop(self) -> tuple[int, str]:
        self.process.terminate()
        return self.process.wait(50), self.log()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(50)

    def fails(self) -> str:
        assert self.process.wait(50) == 1, self.log()
        return self.log().splitlines()[-1]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    short = Path("/tmp") / f"fl-{os.getpid()}-{tmp_path.name[-14:]}"
    short.mkdir()
    yield short
    subprocess.run(["rm", "-rf", str(short)], check=True)


@pytest.fixture
def up(nursery: Nursery, directory: Path) -> Iterator[Any]:
    started: list[Up] = []

    def start(*options: str, socket: Path = directory / "s", state: Path = directory / "state") -> Up:
        log = directory / f"log-{len(started)}"
        reach = () if "--port" in options else ("--no-tcp",)
        started.append(Up(nursery, log, *reach, *options, socket=socket, state=state))
        return started[-1]

    yield start
    for service in started:
        service.kill()


def test_work_goes_on_over_a_stop_and_is_taken_over(up: Any) -> None:
    """An orderly stop ends with 0 and says so; the next start has the job, with its real end."""
    service = up().ready()
    running = service.submit("sleep 1; exit 5")
    gone = service.submit("exit 6")
    assert service.ended(gone)["exit_code"] == 6
    status, log = service.stop()
    assert status == 0
    assert "stopped; work goes on" in log
    again = up().ready()
    assert again.call("GET", "/api/v1/info")["machine"]["recovery"]["from_snapshot"] is True
    shown = again.ended(running)
    assert (shown["state"], shown["exit_code"], shown["attempts"]) == ("failed", 5, 1)
    assert again.call("GET", f"/api/v1/jobs/{gone}")["exit_code"] == 6
    again.stop()


def test_an_end_while_nobody_looked_is_accounted_for(up: Any) -> None:
    """With the real exit status and the real time."""
    service = up().ready()
    key = service.submit("sleep 0.3; exit 7")
    while service.call("GET", f"/api/v1/jobs/{key}")["pid"] is None:
        pass
    service.kill()
    time.sleep(0.6)
    before_start = time.time_ns() // 1_000_000
    again = up().ready()
    shown = again.ended(key)
    assert (shown["state"], shown["exit_code"]) == ("failed", 7)
    assert shown["ended_at_ms"] < before_start
    again.stop()


def test_a_stop_that_was_ordered_goes_on_without_the_service(up: Any) -> None:
    """The grace runs out although the service was killed; the job is cancelled, not failed."""
    service = up().ready()
    key = service.submit("trap '' TERM; echo on; while :; do sleep 0.05; done", grace_ms=400)
    while service.call("GET", f"/api/v1/jobs/{key}")["pid"] is None:
        pass
    time.sleep(0.2)
    service.call("POST", f"/api/v1/jobs/{key}/cancel", {})
    time.sleep(0.05)
    service.kill()
    shown = up().ready().ended(key)
    assert (shown["state"], shown["signal"]) == ("cancelled", 9)


def test_a_second_service_on_the_same_state_is_told_who_has_it(up: Any, directory: Path) -> None:
    """With its process id."""
    service = up().ready()
    sentence = up(socket=directory / "other").fails()
    assert f"process {service.process.pid}" in sentence
    service.stop()


def test_an_address_in_use_is_one_sentence(up: Any, directory: Path) -> None:
    """The other's socket is left alone."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = taken.getsockname()[1]
    sentence = up("--port", str(port)).fails()
    assert f"port {port}" in sentence
    assert "--port" in sentence
    service = up().ready()
    sentence = up(state=directory / "state2").fails()
    assert "answers on" in sentence
    service.ready().stop()
    taken.close()


def test_what_is_wrong_at_the_start_is_one_sentence(up: Any, directory: Path) -> None:
    """A bad queue file, a state directory that cannot be, a path that is too long."""
    (directory / "bad.yaml").write_text("partitions: [{name: default, queues: [{name: root, nome: x}]}]")
    assert "bad.yaml:1:" in up("--config", str(directory / "bad.yaml")).fails()
    (directory / "file").write_text("")
    assert "state directory" in up(state=directory / "file" / "x").fails()
    assert "longer than" in up(socket=Path("/tmp/" + "x" * 120)).fails()
    assert "no socket" in up(socket=directory / "file").fails()


def test_a_stale_socket_is_replaced_and_removed_at_the_end(up: Any, directory: Path) -> None:
    """Left behind by a killed service."""
    service = up().ready()
    service.kill()
    assert (directory / "s").exists()
    assert up().ready().stop()[0] == 0
    assert not (directory / "s").exists()


def test_open_streams_do_not_hold_up_the_stop(up: Any) -> None:
    """An event stream and a followed log end when the service does."""
    service = up().ready()
    key = service.submit("sleep 2")
    opened = []
    for path in ("/api/v1/events", f"/api/v1/jobs/{key}/logs?follow=true"):
        connection = Unix(service.socket)
        connection.request("GET", path)
        opened += [connection.getresponse(), connection]
    began = time.monotonic()
    assert service.stop()[0] == 0
    assert time.monotonic() - began < 4
    for each in opened:
        each.close()


def test_the_queues_last_put_in_force_are_kept(up: Any, directory: Path) -> None:
    """Without --config the journal's are used; with it, that file is."""
    service = up().ready()
    text = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: mine}]}]}]"
    assert "checksum" in service.call("PUT", "/api/v1/config", {"text": text})
    service.stop()
    again = up().ready()
    assert again.call("GET", "/api/v1/config")["text"] == text
    again.stop()
    (directory / "q.yaml").write_text(text.replace("mine", "yours"))
    third = up("--config", str(directory / "q.yaml")).ready()
    assert "yours" in third.call("GET", "/api/v1/config")["text"]
    third.stop()


def test_a_run_that_the_journal_does_not_know_is_left_alone_and_reported(up: Any, directory: Path) -> None:
    """The journal was lost: what it had started goes on until somebody stops it, and its keys are not used again."""
    service = up().ready()
    key = service.submit("sleep 60")
    while service.call("GET", f"/api/v1/jobs/{key}")["pid"] is None:
        pass
    pid = service.call("GET", f"/api/v1/jobs/{key}")["pid"]
    service.stop()
    for left in (directory / "state").glob("journal.db*"):
        left.unlink()
    again = up().ready()
    assert f"{key}-1" in again.call("GET", "/api/v1/info")["problems"][0]
    assert Path(f"/proc/{pid}").exists()
    again.call("POST", f"/api/v1/unknown-runs/{key}-1/stop", {"grace_ms": 100})
    end = time.monotonic() + 50
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    fresh = again.submit("exit 0")
    assert int(fresh) > int(key)
    assert again.ended(fresh)["state"] == "succeeded"
    again.stop()


def test_an_idle_service_uses_next_to_no_cpu(up: Any) -> None:
    """And writes nothing."""
    service = up().ready()
    key = service.submit("exit 0")
    service.ended(key)

    def cpu() -> float:
        fields = Path(f"/proc/{service.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    time.sleep(0.3)
    seq, before = service.call("GET", "/api/v1/info")["machine"]["journal"]["last_seq"], cpu()
    time.sleep(1.5)
    assert cpu() - before <= 0.1
    assert service.call("GET", "/api/v1/info")["machine"]["journal"]["last_seq"] == seq
    service.stop()
