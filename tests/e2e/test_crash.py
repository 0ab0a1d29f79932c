"""The service is killed with -9 again and again, while real processes run and new ones are submitted.

What was acknowledged is there afterwards, ran exactly once, and has its real exit status; nothing is left behind.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.nursery import Nursery, Started
from testbed.unix_socket import Unix, wait_until_served

from fairlead.journal.reader import Reader
from fairlead.journal.verify import verify

KILLS = 10
SHARDS = 5
ARRAY, AT_ONCE = "1-3,5%2", 2
QUEUES = """
partitions:
  - name: default
    preemption: {enabled: %s, rule: priority}
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: default}, {name: batch}, {name: idle}]
"""


class Service:
    """A service in a process of its own, on one state directory."""

    def __init__(self, nursery: Nursery, state: Path) -> None:
        self.nursery, self.state = nursery, state
        self.process: Started | None = None

    def start(self) -> None:
        places = ("--config", self.state / "queues.yaml", "--state", self.state, "--socket", self.state / "s")
        words = ("up", *map(str, places), "--no-tcp", "--resource", "vcore=4")
        self.process = self.nursery.start(*words, log=self.state / "service.log")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        assert self.process.wait(50) == -signal.SIGKILL, self.log()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(50)

    def log(self) -> str:
        return (self.state / "service.log").read_text()

    def call(self, method: str, path: str, body: Any = None, *, may_conflict: bool = False, **headers: str) -> Any:
        connection = Unix(self.state / "s")
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        assert response.status < 300 or (may_conflict and response.status == 409), (response.status, answer)
        return answer

    def wait_ready(self) -> None:
        process = self.process
        assert process is not None
        wait_until_served(self.state / "s", lambda: None if process.poll() is None else self.log())


@pytest.fixture
def service(nursery: Nursery, tmp_path: Path) -> Iterator[Service]:
    # Paths of Unix sockets are short.
    state = Path("/tmp") / f"fl-{os.getpid()}-{tmp_path.name[-12:]}"
    state.mkdir()
    made = Service(nursery, state)
    try:
        yield made
    finally:
        if made.process is not None and made.process.poll() is None:
            made.process.kill()
        for pid in processes_of(state):
            os.kill(pid, signal.SIGKILL)
        subprocess.run(["rm", "-rf", str(state)], check=True)


def processes_of(state: Path) -> list[int]:
    """Processes that have this directory in their command line or environment."""
    found, wanted = [], str(state).encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                about = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if wanted in about:
                found.append(int(entry.name))
    return found


class Load:
    """Jobs that each write a line to a file of their own."""

    def __init__(self, service: Service, dice: random.Random, *, may_evict: bool) -> None:
        self.service, self.dice, self.may_evict = service, dice, may_evict
        self.marks = service.state / "marks"
        self.marks.mkdir()
        self.bodies: dict[str, dict[str, Any]] = {}
        self.expected: dict[str, int] = {}
        self.keys: dict[str, str] = {}
        self.waits_for: dict[str, tuple[str, str]] = {}
        self.on_hold: list[str] = []
        self.begins: dict[str, int] = {}
        self.arrays: set[str] = set()
        self.followers: dict[str, dict[str, Any]] = {}
        """What comes in with a job and waits for it; by the name of that."""

    def submit_some(self) -> None:
        """A new submission, and again those that were not acknowledged; stops where the service is gone."""
        name = f"w{len(self.bodies)}"
        status = self.dice.choice([0, 0, 3, 41])
        pause = self.dice.choice([0, 0.05, 0.2, 0.6])
        script = f"echo once >> {self.marks}/{name}$FAIRLEAD_ARRAY_INDEX; sleep {pause}; exit {status}"
        self.bodies[name] = {
            "command": ["/bin/sh", "-c", script],
            "name": name,
            "queue": self.dice.choice(["root.batch", "root.default", "root.idle"]),
            "priority": self.dice.randint(0, 3),
            "resources": {"cpu": self.dice.choice([0.5, 1, 2])},
        }
        self.expected[name] = status
        if self.dice.random() < 0.3:
            told = {"to": f"echo told >> {self.marks}/{name}.told"}
            self.bodies[name] |= {"name": f"{name}.", "array": ARRAY, "notify": [told]}
            self.bodies[name]["command"][2] = script.replace(name, f"{name}.")
            self.arrays.add(name)
        elif len(self.bodies) % 3 == 1:
            text = f"#!/bin/sh\necho said by $1\n{script}\n"
            told = {"to": f"echo told >> {self.marks}/{name}.told"}
            more = {"command": ["job.sh", name], "script": text, "stdout": "%x.out", "cwd": str(self.marks)}
            self.bodies[name] |= {**more, "notify": [told]}
        if self.keys and self.dice.random() < 0.4:
            other = self.dice.choice(list(self.keys))
            ends = [] if self.may_evict else ["ok" if self.expected[other] == 0 else "not-ok"]
            awaited = self.dice.choice(["started", "any", *ends])
            self.bodies[name]["after"] = [{"key": self.keys[other], "awaited": awaited}]
            self.waits_for[name] = other, awaited
        elif self.dice.random() < 0.2:
            self.bodies[name]["hold"] = True
            self.on_hold.append(name)
        elif self.dice.random() < 0.2:
            self.begins[name] = int(time.time() * 1000) + self.dice.randint(0, 1500)
            self.bodies[name]["begin_at_ms"] = self.begins[name]
        if len(self.bodies) % 4 == 2:
            self.follow(name)
        for waiting in [n for n in self.bodies if n not in self.keys]:
            try:
                followers = [self.followers[waiting]] if waiting in self.followers else []
                body = {"jobs": [self.bodies[waiting], *followers]}
                answer = self.service.call("POST", "/api/v1/jobs", body, **{"Idempotency-Key": waiting})
            except (OSError, http.client.HTTPException):
                return
            self.keys[waiting] = answer["jobs"][0]["key"]
            for row in answer["jobs"][1:]:
                self.keys[row["name"]] = row["key"]

    def follow(self, name: str) -> None:
        """One more of the same submission, which waits for the first of it."""
        follower = f"{name}after"
        script = f"echo once >> {self.marks}/{follower}"
        command = {"command": ["/bin/sh", "-c", script], "name": follower, "resources": {"cpu": 0.5}}
        self.followers[name] = command | {"after": [{"key": "#0", "awaited": "any"}]}
        self.expected[follower] = 0
        self.waits_for[follower] = name, "any"

    def release(self, part: float) -> None:
        """Let some go of those that were submitted on hold; what was not acknowledged is asked for again."""
        for name in [n for n in self.on_hold if n in self.keys and self.dice.random() < part]:
            path = f"/api/v1/jobs/{self.keys[name]}"
            try:
                if self.service.call("GET", path)["held_by"]:
                    self.service.call("POST", f"{path}/release", {})
            except (OSError, http.client.HTTPException):
                return
            self.on_hold.remove(name)

    def stand_still(self, part: float) -> None:
        """Let some of what runs stand still, and what stands still go on; it may have ended meanwhile."""
        try:
            rows = self.service.call("GET", "/api/v1/jobs?state=running&state=suspended&parts=true&limit=1000")["jobs"]
            for row in rows:
                is_suspended = row["state"] == "suspended"
                if is_suspended or self.dice.random() < part:
                    order = "resume" if is_suspended else "suspend"
                    self.service.call("POST", f"/api/v1/jobs/{row['key']}/{order}", {}, may_conflict=True)
        except (OSError, http.client.HTTPException):
            return

    def in_order(self, by_key: dict[str, dict[str, Any]]) -> None:
        """Nothing began before what it waited for had come about."""
        for name, at_ms in self.begins.items():
            begun = by_key[self.keys[name]]["started_at_ms"]
            assert begun is None or begun >= at_ms, name
        for name, (other, awaited) in self.waits_for.items():
            assert {name, other} <= self.keys.keys()
            begun, before = by_key[self.keys[name]]["started_at_ms"], by_key[self.keys[other]]
            if begun is None:
                continue
            at_ms = before["started_at_ms"] if awaited == "started" else before["ended_at_ms"]
            assert at_ms is None or begun >= at_ms, (name, other, awaited)

    def messages_sent(self) -> None:
        """Each message once, however often the service was killed; and scripts wrote into files of their own."""
        end = time.monotonic() + 60
        for name in self.arrays:  # One for the whole of it, by whichever of its parts was the last.
            while self.lines(f"{name}.told") == 0:
                assert time.monotonic() < end, self.job(name)
                time.sleep(0.1)
        for name in [name for name, body in self.bodies.items() if "notify" in body and name not in self.arrays]:
            job = self.job(name)
            while not any(each["what"] == "message" for each in job["history"]):
                assert time.monotonic() < end, job
                time.sleep(0.1)
                job = self.job(name)
            assert self.lines(f"{name}.told") == 1, job
            if job["state"] != "evicted":
                assert (self.marks / f"{name}.out").read_text() == f"said by {name}\n"

    def job(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.service.call("GET", f"/api/v1/jobs/{self.keys[name]}")
        return found

    def lines(self, name: str) -> int:
        path = self.marks / name
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.real
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, SHARDS))])
def test_nothing_acknowledged_is_lost_or_run_twice_when_the_service_is_killed(service: Service, seed: int) -> None:
    dice = random.Random(seed)
    may_evict = seed == 0
    (service.state / "queues.yaml").write_text(QUEUES % str(may_evict).lower())
    load = Load(service, dice, may_evict=may_evict)
    for number in range(KILLS):
        service.start()
        # Some are killed while they start and recover, others while they work, in the middle of a request.
        if number % 2:
            time.sleep(dice.uniform(0.0, 0.4))
            service.kill()
        else:
            service.wait_ready()
            for _ in range(dice.randint(1, 8)):
                load.submit_some()
                time.sleep(dice.uniform(0.0, 0.1))
            load.release(0.3)
            load.stand_still(0.5)
            killer = threading.Timer(dice.uniform(0.0, 0.02), service.kill)
            killer.start()
            load.submit_some()
            killer.join()
        # Sometimes work ends while nobody looks, sometimes the next service finds it running.
        time.sleep(dice.choice([0.0, dice.uniform(0.0, 0.5)]))
    service.start()
    service.wait_ready()
    load.submit_some()
    for _ in range(50):  # What was in the midst of a kill may have been taken in nowhere: each kind is there once.
        if load.waits_for and load.begins and load.arrays and load.followers:
            break
        load.submit_some()
    load.release(1.0)
    load.stand_still(0.0)
    assert not load.on_hold
    rows = settled(service)
    by_key = {row["key"]: row for row in rows}
    load.in_order(by_key)
    load.messages_sent()
    assert load.waits_for
    assert load.begins
    assert load.arrays
    assert load.followers
    assert len(load.keys) >= KILLS
    for name in load.arrays:
        parts_ran(service, load, name, may_evict=may_evict)
    for name, key in load.keys.items():
        row = by_key[key]
        if name in load.arrays:
            continue
        assert row["name"] == name
        if may_evict and row["state"] == "evicted":
            assert load.lines(name) <= 1, (name, row)
            continue
        assert load.lines(name) == 1, (name, row)
        assert row["exit_code"] == load.expected[name], row
        assert row["state"] == ("succeeded" if load.expected[name] == 0 else "failed"), row
    assert sorted(row["name"].rstrip(".") for row in rows) == sorted(load.keys), (
        "a job exists twice, or one that nobody submitted"
    )
    assert [load.lines(f"{name}.told") for name in load.arrays] == [1] * len(load.arrays)
    assert service.stop() == 0
    assert processes_of(service.state) == []
    result = verify(service.state / "journal.db")
    assert result.ok, result
    with Reader(service.state / "journal.db") as journal:
        assert journal.last_seq > 0


def parts_ran(service: Service, load: Load, name: str, *, may_evict: bool) -> None:
    """Each part of an array once, with its own exit status, and never more of them at a time than may."""
    parts = service.call("GET", f"/api/v1/jobs?array={load.keys[name]}")["jobs"]
    assert [part["key"] for part in parts] == [f"{load.keys[name]}.{index}" for index in (1, 2, 3, 5)]
    for part in parts:
        lines = load.lines(f"{name}.{part['key'].rpartition('.')[2]}")
        if may_evict and part["state"] == "evicted":
            assert lines <= 1, part
            continue
        assert (lines, part["exit_code"]) == (1, load.expected[name]), part
    # What was evicted before it began ran beside nothing.
    ran = [(part["key"], part["started_at_ms"], part["ended_at_ms"]) for part in parts if part["started_at_ms"]]
    for _, begun, _ in ran:
        together = [key for key, other, ended in ran if other <= begun < ended]
        assert len(together) <= AT_ONCE, ran


def settled(service: Service) -> list[dict[str, Any]]:
    """All jobs, once none waits or runs any more."""
    end = time.monotonic() + 60
    while True:
        rows: list[dict[str, Any]] = []
        after: str | None = "0"
        while after is not None:
            page = service.call("GET", f"/api/v1/jobs?limit=1000&after={after}")
            rows += page["jobs"]
            after = page["next"]
        live = [row for row in rows if row["state"] in ("waiting", "running", "suspended", "stopping")]
        if not live:
            return rows
        assert time.monotonic() < end, [(r["key"], r["state"], r["reason"], r["parts"]) for r in live]
        time.sleep(0.1)
