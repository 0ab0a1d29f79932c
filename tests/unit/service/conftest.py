"""A real service in this process: real sockets, a real journal, real processes."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.local import accounts
from fairlead.service.identity import Gate
from fairlead.service.serve import Listening, ServeOptions, answer, bring_up
from fairlead.wire.cluster import Problem

QUEUES = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: default
          - name: batch
          - name: small
            resources: {max: {vcore: 1}}
"""
ALICE, BOB = 54_321, 54_322


NAMES = {ALICE: "alice", BOB: "bob", 54_323: "carol"}
"""Accounts that this machine has not, and the service takes it to have."""
BY_UID = accounts.by_uid


def account_of(uid: int) -> accounts.Account:
    return replace(BY_UID(uid), name=NAMES[uid]) if uid in NAMES else BY_UID(uid)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=50)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json
        assert set(found) == set(Problem.__struct_fields__)
        assert found["status"] == self.status
        assert found["type"] == f"urn:fairlead:problem:{found['code']}"
        assert self.headers["content-type"] == "application/problem+json"
        return found


@dataclass
class Served:
    """A running service and a way to talk to it. Without `token` the Unix socket is used."""

    listening: Listening
    place: Any
    tokens: dict[str, str] = field(default_factory=dict)

    def open(self, who: str = "") -> http.client.HTTPConnection:
        if not who:
            assert self.listening.socket is not None
            return UnixConnection(self.listening.socket)
        assert self.listening.url is not None
        host, port = self.listening.url.removeprefix("http://").split(":")
        return http.client.HTTPConnection(host, int(port), timeout=50)

    def headers(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[who]}"} if who in self.tokens else {}

    def raw(self, method: str, path: str, body: bytes | None = None, who: str = "", **headers: str) -> Answer:
        connection = self.open(who)
        try:
            given = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, body, given | self.headers(who) | headers)
            response = connection.getresponse()
            return Answer(response.status, response.read(), {k.lower(): v for k, v in response.getheaders()})
        finally:
            connection.close()

    def call(self, method: str, path: str, body: Any = None, who: str = "", **headers: str) -> Answer:
        return self.raw(method, path, None if body is None else json.dumps(body).encode(), who, **headers)

    def submit(self, *command: str, who: str = "", **fields: Any) -> str:
        body = {"jobs": [{"command": list(command), "cwd": "/", **fields}]}
        answered = self.call("POST", "/api/v1/jobs", body, who)
        assert answered.status == 201, answered.body
        key: str = answered.json["jobs"][0]["key"]
        return key

    def show(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"/api/v1/jobs/{key}").json
        return found

    def wait(self, key: str, *states: str, seconds: float = 15.0) -> dict[str, Any]:
        """The job once it is in one of these states (none named: once it has ended)."""
        wanted = states or ("succeeded", "failed", "cancelled", "evicted", "lost", "timed_out", "rejected")
        end = time.monotonic() + seconds
        while (shown := self.show(key))["state"] not in wanted:
            assert time.monotonic() < end, shown
            time.sleep(0.02)
        return shown


def run_service(options: ServeOptions, stack: ExitStack, prepare: Callable[[Any], None]) -> tuple[Any, Listening]:
    ready = threading.Event()
    found: list[Listening] = []

    def on_ready(listening: Listening) -> None:
        found.append(listening)
        ready.set()

    import dataclasses

    options = dataclasses.replace(options, on_ready=on_ready, handle_signals=False)
    place, sockets = bring_up(options, stack)
    prepare(place)
    thread = threading.Thread(target=lambda: asyncio.run(answer(options, place, sockets)), daemon=True)
    thread.start()
    assert ready.wait(50)

    def stop() -> None:
        found[0].stop()
        thread.join(20)
        assert not thread.is_alive(), "the service does not stop"

    stack.callback(stop)
    return place, found[0]


@pytest.fixture(scope="session")
def run() -> Callable[..., tuple[Any, Listening]]:
    """`run_service`, for tests that bring up one of their own."""
    return run_service


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A service for everybody; alice and bob come over TCP with tokens."""
    directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    (directory / "queues.yaml").write_text(QUEUES)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory)
        # Their jobs start as well: they are whom they were submitted by.
        machine = stack.enter_context(pytest.MonkeyPatch.context())
        machine.setattr(accounts, "by_uid", account_of)
        options = ServeOptions(
            config=directory / "queues.yaml",
            state_dir=directory / "state",
            socket=directory / "s",
            port=0,
            resources={"vcore": 4000, "memory": 8 * 2**30, "gpu": 2},
        )

        def everybody(place: Any) -> None:
            place.gate = Gate(
                place.tokens,
                admins=("carol",),
                own_uid=os.geteuid(),
                everybody=True,
                sessions=place.pages.sessions,
                account_of=account_of,
            )

        place, listening = run_service(options, stack, everybody)
        running = Served(listening, place)
        for name, uid in (("alice", ALICE), ("bob", BOB), ("carol", 54_323)):
            running.tokens[name] = place.tokens.create(name="test", user=name, uid=uid)[0]
        yield running
        for row in running.call("GET", "/api/v1/jobs?state=running&state=waiting&limit=1000").json["jobs"]:
            running.call("POST", f"/api/v1/jobs/{row['key']}/cancel", {})
        end = time.monotonic() + 50
        while running.call("GET", "/api/v1/jobs?state=running&state=stopping").json["total"]:
            assert time.monotonic() < end
            time.sleep(0.05)
