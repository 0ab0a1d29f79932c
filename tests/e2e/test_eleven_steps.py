"""The example of the queue priorities with real processes: eleven jobs for one place run in the stated order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.unix_socket import ask, wait_until_served

pytestmark = [pytest.mark.thorough, pytest.mark.real, pytest.mark.timeout(120)]

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: system
            queues:
              - {name: system-normal, properties: {priority.offset: "0"}}
              - {name: system-high, properties: {priority.offset: "1000"}}
              - {name: system-low, properties: {priority.offset: "-1000"}}
          - name: tenants
            properties: {priority.policy: fence}
            queues:
              - name: tenant-a
                properties: {priority.policy: fence, priority.offset: "10"}
                queues: [{name: child-a-1}, {name: child-a-2}]
              - name: tenant-b
                properties: {priority.policy: fence, priority.offset: "0"}
                queues: [{name: child-b-1}, {name: child-b-2}]
"""

SYSTEM, A, B = "root.system.", "root.tenants.tenant-a.", "root.tenants.tenant-b."
EXPECTED = [
    (SYSTEM + "system-high", 1),
    (SYSTEM + "system-normal", 10),
    (SYSTEM + "system-normal", 2),
    (A + "child-a-1", 8),
    (A + "child-a-2", 6),
    (A + "child-a-1", 5),
    (A + "child-a-2", 4),
    (B + "child-b-1", 9),
    (B + "child-b-2", 8),
    (B + "child-b-1", 7),
    (SYSTEM + "system-low", 3),
]
PRIORITIES_BEFORE = {
    "root.system": 1001,
    "root.system.system-normal": 10,
    "root.system.system-high": 1001,
    "root.system.system-low": -997,
    "root.tenants": 0,
    "root.tenants.tenant-a": 10,
    "root.tenants.tenant-b": 0,
    "root.tenants.tenant-a.child-a-1": 8,
    "root.tenants.tenant-a.child-a-2": 6,
    "root.tenants.tenant-b.child-b-1": 9,
    "root.tenants.tenant-b.child-b-2": 8,
}


class Machine:
    """A service with one place to run, and the command line that talks to it."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "s"
        self.env = os.environ | {"FAIRLEAD_SOCKET": str(directory / "s"), "COLUMNS": "200"}
        (directory / "queues.yaml").write_text(QUEUES)
        command = [
            "up",
            "--config",
            directory / "queues.yaml",
            "--state",
            directory / "state",
            "--socket",
            directory / "s",
        ]
        self.service = subprocess.Popen(
            [sys.executable, "-m", "fairlead.cli.main", *map(str, command), "--no-tcp", "--resource", "vcore=1"],
            env=self.env,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until_served(self.socket, lambda: None if self.service.poll() is None else self.service.communicate()[1])

    @staticmethod
    def _line(*words: str) -> list[str]:
        return [sys.executable, "-m", "fairlead.cli.main", *words]

    def run(self, *words: str) -> str:
        done = subprocess.run(self._line(*words), env=self.env, capture_output=True, text=True, timeout=50, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine of its own, stopped at the end."""
    machine = Machine(tmp_path)
    yield machine
    machine.service.terminate()
    machine.service.communicate(timeout=50)


def _priorities(queues: list[dict[str, Any]]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for queue in queues:
        found[queue["path"]] = queue["priority"]
        found |= _priorities(queue["children"])
    return found


def test_eleven_processes_run_in_the_order_of_the_example(machine: Machine, tmp_path: Path) -> None:
    """Submitted in the opposite order while nothing may run; each takes the whole machine and writes its line."""
    order = tmp_path / "order"
    node = machine.json("nodes")[0]["id"]
    machine.run("drain", node)
    for queue, priority in reversed(EXPECTED):
        line = f"echo {queue} {priority} >> {order}"
        machine.run("submit", "--queue", queue, "--priority", str(priority), "--cpu", "1", "--", "sh", "-c", line)
    seen = _priorities(machine.json("queues"))
    assert {path: seen[path] for path in PRIORITIES_BEFORE} == PRIORITIES_BEFORE
    machine.run("undrain", node)
    end = time.monotonic() + 60
    ended = "/api/v1/jobs?limit=1000&state=succeeded&state=failed"
    while ask(machine.socket, ended)["total"] < len(EXPECTED):
        assert time.monotonic() < end, machine.run("ls", "-a")
        time.sleep(0.1)
    assert [tuple(line.split()) for line in order.read_text().splitlines()] == [(q, str(p)) for q, p in EXPECTED]
    assert all(
        value is None for path, value in _priorities(machine.json("queues")).items() if path in PRIORITIES_BEFORE
    )
