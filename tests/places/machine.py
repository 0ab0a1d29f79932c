"""The shared machine as a place: real processes on one node, over the service's socket.

Each task is a process that reads from a pipe of its own: it ends when the pipe is opened and closed, and when it is
asked to.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from places.course import Course, Decided, Happening, task_of
from places.workload import JobWords, NodeWords, Workload

PATIENCE_S = 60.0
NODE_RECORD, APP_RECORD = 3, 2
ALLOCATED, PREEMPTED, ASKED, ENDED = 303, 501, 201, 500
"""Details of YuniKorn's event records."""


class Machine:
    """`fairlead up` with one node, and what it says that it did."""

    def __init__(self, directory: Path, workload: Workload) -> None:
        (node,) = workload.nodes
        self.directory, self.decided = directory, Decided()
        self.seen: set[tuple[str, str]] = set()
        self._name_of: dict[str, str] = {}
        self._next = 0
        self._node = node.name
        queues = directory / "queues.yaml"
        queues.write_text(workload.queues)
        options = ("--config", queues, "--state", directory / "state", "--no-tcp", "--socket", directory / "s")
        command = [sys.executable, "-m", "fairlead.cli.main", "up", *map(str, options), "--resource"]
        with (directory / "log").open("ab") as log:
            self._process = subprocess.Popen([*command, f"vcore={node.vcore}"], stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE_S
        while not self._answers():
            assert self._process.poll() is None, (directory / "log").read_text()
            assert time.monotonic() < end, (directory / "log").read_text()
            time.sleep(0.05)
        self._label(node)

    def _answers(self) -> bool:
        try:
            return bool(self.ask("GET", "/healthz"))
        except OSError:
            return False

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """A request over the socket."""
        connection = http.client.HTTPConnection("localhost", timeout=50)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.sock.connect(str(self.directory / "s"))
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status < 300, f"{method} {path}: {answer.status} {content.decode()}"
            return json.loads(content) if "json" in (answer.getheader("content-type") or "") else content.decode()
        finally:
            connection.close()

    def _label(self, node: NodeWords) -> None:
        (there,) = self.ask("GET", "/api/v1/nodes")["nodes"]
        self.id = there["id"]
        taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.taints]
        self.ask("PUT", f"/api/v1/nodes/{self.id}/labels", {"attributes": node.labels, "taints": taints})

    # -- what happens ---------------------------------------------------------------------------------------------

    def happen(self, happening: Happening) -> None:
        """Several jobs are taken in while the node takes nothing, so that all of them are there for the decision."""
        if happening.end:
            with (self.directory / happening.end).open("w"):
                return
        several = len(happening.submit) > 1
        if several:
            self.ask("POST", f"/api/v1/nodes/{self.id}/drain", {})
        rows = self.ask("POST", "/api/v1/jobs", {"jobs": [self._draft(job) for job in happening.submit]})["jobs"]
        self._name_of.update((row["key"], job.name) for row, job in zip(rows, happening.submit, strict=True))
        if several:
            self.ask("POST", f"/api/v1/nodes/{self.id}/undrain", {})

    def _draft(self, job: JobWords) -> dict[str, Any]:
        said = job.tasks, job.gang, job.tolerate, job.spare, job.user
        assert said == (0, False, (), False, "nobody"), f"{job.name} says something that a machine does not take"
        pipe = self.directory / job.name
        os.mkfifo(pipe)
        return {
            "name": job.name, "command": ["cat", str(pipe)], "queue": job.queue, "priority_class": job.cls,
            "resources": {"cpu": job.vcore}, "labels": job.labels, "node_selector": job.select,
            "apart_from": job.apart, "idle": job.idle, "grace_ms": 5000,
        }  # fmt: skip

    def listen(self) -> None:
        """Take note of what was done since the last time."""
        told = self.ask("GET", f"/ws/v1/events/batch?start={self._next}")
        for record in told["EventRecords"] or ():
            self._take(record)
        self._next = told["HighestID"] + 1

    def _take(self, record: dict[str, Any]) -> None:
        kind, detail = record["type"], record.get("eventChangeDetail", 0)
        name = self._name_of.get(task_of(record.get("referenceID", "")), "")
        if kind == NODE_RECORD and detail == ALLOCATED and record["eventChangeType"] == 2:
            assert record["objectID"] == self.id
            self.decided.place(name, self._node)
        elif kind == APP_RECORD and detail == PREEMPTED:
            self.decided.stop(name)
        elif kind == APP_RECORD and detail in (ASKED, ENDED):
            self.seen.add((name, "ends" if detail == ENDED else "comes"))

    def close(self) -> None:
        try:
            for row in self.ask("GET", "/api/v1/jobs?limit=1000")["jobs"]:
                if row["state"] in ("waiting", "running", "stopping"):
                    self.ask("POST", f"/api/v1/jobs/{row['key']}/cancel", {})
            end = time.monotonic() + PATIENCE_S
            while self.ask("GET", "/api/v1/jobs?state=running&state=stopping&limit=1")["total"]:
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            self._process.terminate()
            self._process.wait(50)


def run(directory: Path, workload: Workload, expected: Course) -> Course:
    """Do what the course says, waiting each time until as much was decided as elsewhere."""
    machine = Machine(directory, workload)
    course: Course = []
    try:
        for happening, elsewhere in expected:
            decided = machine.decided = Decided()
            machine.seen.clear()
            machine.happen(happening)
            awaited = {(job.name, "comes") for job in happening.submit} or {(happening.end, "ends")}
            end = time.monotonic() + PATIENCE_S
            while len(decided) < len(elsewhere) or not awaited <= machine.seen:
                if time.monotonic() > end:
                    return [*course, (happening, decided)]
                time.sleep(0.02)
                machine.listen()
            course.append((happening, decided))
        time.sleep(1.5)
        machine.listen()
        return course
    finally:
        machine.close()
