"""Batch policies with real processes: tried again, given back, kept room, short of memory."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.nursery import Nursery, Started

pytestmark = [pytest.mark.thorough, pytest.mark.real, pytest.mark.timeout(120)]

QUEUES = """
partitions:
  - name: default
    preemption: {rule: priority}
    queues:
      - name: root
        submitacl: "*"
        properties: {resource.group: "true"}
        queues:
          - {name: a, resources: {max: {vcore: 2}}}
          - {name: b, resources: {max: {vcore: 2}}}
          - {name: default}
"""
ENDED = {"succeeded", "failed", "cancelled", "evicted", "lost", "timed_out", "rejected"}
POLITE = "trap 'echo asked to stop; sleep 0.3; echo saved; exit 0' TERM; echo begins; while :; do sleep 0.05; done"
UNTIL = "until [ -e {} ]; do sleep 0.05; done"
RUDE = "trap '' TERM; echo begins; while :; do sleep 0.05; done"


class Service:
    """`fairlead up` as a process of its own, and the command line of a user of it."""

    def __init__(self, nursery: Nursery, directory: Path, *options: str) -> None:
        self.nursery = nursery
        self.directory = directory
        self.socket = directory / "s"
        (directory / "queues.yaml").write_text(QUEUES)
        given = ("--config", str(directory / "queues.yaml"), "--state", str(directory / "state"))
        self.options = (*given, "--no-tcp", "--socket", str(self.socket), "--resource", "vcore=4", *options)
        self.process = self._start()

    def _start(self) -> Started:
        process = self.nursery.start("up", *self.options, log=self.directory / "log")
        try:
            self.until(lambda: self._answers() or process.poll() is not None, "it serves")
            assert process.poll() is None, self._log()
        except AssertionError:
            process.kill()
            raise
        return process

    def _answers(self) -> bool:
        try:
            return bool(self.get("/healthz"))
        except OSError:
            return False

    def restart(self, kill: bool = False) -> None:
        """Down and up again; with `kill` as after a crash."""
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait(30)
        self.process = self._start()

    def get(self, path: str) -> Any:
        connection = http.client.HTTPConnection("localhost", timeout=50)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.sock.connect(str(self.socket))
            connection.request("GET", path)
            answer = connection.getresponse()
            content = answer.read()
            return json.loads(content) if answer.getheader("content-type") == "application/json" else content.decode()
        finally:
            connection.close()

    def run(self, *words: str, status: int = 0) -> str:
        """A command of the user; what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "fairlead.cli.main", *words],
            env={**os.environ, "FAIRLEAD_SOCKET": str(self.socket)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    def submit(self, *options: str, script: str = "sleep 60", queue: str = "root.default", cpu: str = "1") -> str:
        """Submit a shell script; its key."""
        return self.run("submit", "-q", queue, "--cpu", cpu, *options, "--", "sh", "-c", script).strip()

    def show(self, key: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.get(f"/api/v1/jobs/{key}")
        return shown

    def until(self, what: Callable[[], Any], name: str = "it happens", seconds: float = 30) -> Any:
        end = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < end, f"not in time: {name}; {self._log()}"
            time.sleep(0.03)
        return found

    def _log(self) -> str:
        return (self.directory / "log").read_text()[-2000:]

    def state(self, key: str, *wanted: str, attempt: int | None = None) -> dict[str, Any]:
        """Wait until it is in one of these states (in this attempt)."""

        def there() -> dict[str, Any] | None:
            shown = self.show(key)
            right = attempt is None or shown["attempts"] == attempt
            return shown if shown["state"] in wanted and right else None

        found: dict[str, Any] = self.until(there, f"{key} is {wanted} in attempt {attempt}: {self.show(key)}")
        return found

    def says(self, key: str, text: str, attempt: int = 1) -> None:
        """Wait until this attempt has written this."""
        self.state(key, *ENDED, "running", attempt=attempt)
        self.until(lambda: text in self.get(f"/api/v1/jobs/{key}/logs?attempt={attempt}"), f"{key} writes {text!r}")

    def clear(self) -> None:
        """End all work that is left."""
        rows = self.get("/api/v1/jobs?limit=1000")["jobs"]
        if left := [row["key"] for row in rows if row["state"] not in ENDED]:
            self.run("cancel", *left)
        self.until(lambda: not self.get("/api/v1/jobs?state=running&state=stopping&state=waiting")["total"], "all end")

    def close(self) -> None:
        """End all of it, and nothing is left behind."""
        try:
            self.clear()
            self.process.terminate()
            assert self.process.wait(30) == 0, self._log()
        finally:
            self.process.kill()
            subprocess.run(["rm", "-rf", str(self.directory)], check=True)


class Services:
    """Starts services: one for all tests that give no options, as long as they pass, and one for each that does."""

    def __init__(self, nursery: Nursery, directory: Path) -> None:
        self._nursery = nursery
        self._number = 0
        # Paths of Unix sockets are short.
        self._prefix = f"/tmp/fl-{os.getpid()}-{directory.name[-8:]}"
        self._shared: Service | None = None

    def shared(self) -> Service:
        if self._shared is None:
            self._shared = self.start()
        return self._shared

    def start(self, *options: str) -> Service:
        self._number += 1
        directory = Path(f"{self._prefix}-{self._number}")
        directory.mkdir()
        return Service(self._nursery, directory, *options)

    def discard(self) -> None:
        """The next test gets a new one."""
        if self._shared is not None:
            gone, self._shared = self._shared, None
            gone.close()


@pytest.fixture(scope="module")
def services(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    made = Services(nursery, tmp_path_factory.mktemp("batch"))
    yield made
    made.discard()


@pytest.fixture
def serve(services: Services, request: pytest.FixtureRequest) -> Iterator[Callable[..., Service]]:
    failed = request.session.testsfailed
    own: list[Service] = []

    def start(*options: str) -> Service:
        if not options:
            return services.shared()
        own.append(services.start(*options))
        return own[-1]

    yield start
    for service in own:
        service.close()
    if request.session.testsfailed > failed:
        services.discard()
    elif not own:
        services.shared().clear()


def test_work_that_fails_is_tried_again_until_it_succeeds(serve: Any) -> None:
    """Each attempt has its own output; the job is one, and its story tells of each."""
    service = serve()
    script = "echo attempt $FAIRLEAD_ATTEMPT; test $FAIRLEAD_ATTEMPT -ge 3 || exit 7"
    key = service.submit("--retry", "5", script=script)
    shown = service.state(key, *ENDED)
    assert (shown["state"], shown["attempts"], shown["exit_code"]) == ("succeeded", 3, 0)
    assert [(p["attempt"], p["state"], p["exit_code"]) for p in shown["past"]] == [(1, "failed", 7), (2, "failed", 7)]
    assert [service.run("logs", key, "--attempt", str(n)) for n in (1, 2, 3)] == [f"attempt {n}\n" for n in (1, 2, 3)]
    assert service.run("logs", key) == "attempt 3\n"
    text = service.run("show", key)
    assert "retry" in text
    assert "failed: exit status 7" in text


def test_the_last_attempt_says_that_it_was_the_last(serve: Any) -> None:
    """And an exit status that is excepted is not tried again at all."""
    service = serve()
    key = service.submit("--retry", "1", script="exit 7")
    shown = service.state(key, *ENDED)
    assert (shown["state"], shown["attempts"]) == ("failed", 2)
    assert shown["history"][-1]["detail"] == "exit status 7; not tried again: it had all its 2 attempts"
    key = service.submit("--retry", "9", "--no-retry-on", "2,7", script="exit 7")
    shown = service.state(key, *ENDED)
    assert (shown["state"], shown["attempts"]) == ("failed", 1)
    assert "exit status 7 is one after which it is not tried again" in shown["history"][-1]["detail"]


def test_the_back_off_is_waited_for_and_survives_a_crash(serve: Any, tmp_path: Path) -> None:
    """Meanwhile the job waits and says until when; a restart forgets nothing and doubles nothing."""
    service = serve()
    mark = tmp_path / "runs"
    key = service.submit("--retry", "1", "--retry-backoff", "15s", script=f"echo x >> {mark}; exit 1")
    service.state(key, "waiting", attempt=1)
    assert "the next attempt (2 of at most 2) enters at" in service.run("why", key)
    service.restart(kill=True)
    assert service.state(key, "waiting", attempt=1)["retry_due_ms"] is not None
    shown = service.state(key, *ENDED)
    assert (shown["state"], shown["attempts"]) == ("failed", 2)
    assert mark.read_text() == "x\nx\n"
    assert shown["started_at_ms"] - shown["past"][0]["ended_at_ms"] >= 14_900


def test_work_that_is_cancelled_is_not_tried_again(serve: Any) -> None:
    """Neither while it runs nor while its next attempt is held back."""
    service = serve()
    running = service.submit("--retry", "5", "--grace", "1s")
    held = service.submit("--retry", "5", "--retry-backoff", "1h", script="exit 1")
    service.state(running, "running")
    service.state(held, "waiting", attempt=1)
    service.run("cancel", running, held)
    assert service.state(running, *ENDED)["attempts"] == 1
    assert service.state(held, *ENDED)["state"] == "cancelled"


def test_waiting_for_work_waits_for_all_of_its_attempts(serve: Any) -> None:
    """`submit --wait` passes on the output of each, and leaves with the status of the last."""
    service = serve()
    script = "echo try $FAIRLEAD_ATTEMPT; test $FAIRLEAD_ATTEMPT -ge 2"
    words = ("submit", "--wait", "--retry", "3", "--retry-backoff", "1s", "--", "sh", "-c", script)
    assert service.run(*words) == "try 1\ntry 2\n"


def test_a_killed_process_is_tried_again(serve: Any) -> None:
    """By a signal from outside: its status is 128 + 9."""
    service = serve()
    key = service.submit("--retry", "2", script=POLITE)
    service.says(key, "begins")
    os.kill(service.show(key)["pid"], 9)
    shown = service.state(key, "running", attempt=2)
    assert (shown["past"][0]["signal"], shown["past"][0]["state"]) == (9, "failed")


def test_a_preempted_process_gets_its_grace_and_comes_back(serve: Any, tmp_path: Path) -> None:
    """SIGTERM first; who ignores it is killed when its grace is over; then it waits, and runs when there is room."""
    service = serve()
    polite = service.submit("--retry", "5", "--grace", "10s", script=POLITE, cpu="2")
    rude = service.submit("--retry", "5", "--grace", "1s", script=RUDE, cpu="2")
    for key in (polite, rude):
        service.says(key, "begins")
    begun = time.monotonic()
    go = tmp_path / "go"
    high = service.submit("--priority", "100", script=UNTIL.format(go), cpu="4")
    service.state(high, "running")
    assert time.monotonic() - begun >= 1
    assert service.run("logs", polite, "--attempt", "1") == "begins\nasked to stop\nsaved\n"
    waits = {key: service.show(key) for key in (polite, rude)}
    assert [w["state"] for w in waits.values()] == ["waiting", "waiting"]
    assert [w["past"][0]["state"] for w in waits.values()] == ["evicted", "evicted"]
    assert [w["past"][0]["on_behalf_of"] for w in waits.values()] == [high, high]
    assert waits[rude]["past"][0]["signal"] == 9
    go.touch()
    for key in (polite, rude):
        assert service.state(key, "running", attempt=2)["past"][0]["exit_code"] in (0, None)


def test_a_retry_goes_ahead_of_work_that_came_earlier(serve: Any) -> None:
    """The room that is free next goes to the attempt, though the other work has waited for long."""
    service = serve()
    first = service.submit("--retry", "3", script=POLITE, cpu="4")
    service.says(first, "begins")
    other = service.submit("--priority", "0", cpu="4")
    service.state(other, "waiting")
    os.kill(service.show(first)["pid"], 9)
    service.state(first, "running", attempt=2)
    assert service.show(other)["state"] == "waiting"


@pytest.mark.parametrize("retry", [(), ("--retry", "5")], ids=["without retry", "with retry"])
def test_idle_work_uses_the_share_of_others_and_gives_it_back(
    serve: Any, tmp_path: Path, retry: tuple[str, ...]
) -> None:
    """Beyond its queue's maximum, until work of the other queue comes; then it is stopped, and comes back."""
    service = serve()
    idle = service.submit("--idle", *retry, "--grace", "20s", script=POLITE, queue="root.a", cpu="4")
    service.state(idle, "running")
    service.says(idle, "begins")
    go = tmp_path / "go"
    owner = service.submit(script=UNTIL.format(go), queue="root.b", cpu="2")
    service.state(owner, "running")
    stopped = service.state(idle, "waiting")
    assert stopped["past"][0]["on_behalf_of"] == owner
    assert service.run("logs", idle, "--attempt", "1").endswith("saved\n")
    go.touch()
    service.state(idle, "running", attempt=2)
    assert service.show(owner)["state"] == "succeeded"


def test_a_reservation_holds_smaller_work_back_until_the_big_one_runs(serve: Any, tmp_path: Path) -> None:
    """Room that becomes free goes to nobody below it; its history names who switched it on, and why."""
    service = serve()
    go = {name: tmp_path / name for name in ("first", "second")}
    fills = [service.submit("-p", "9", script=UNTIL.format(path), cpu="2") for path in go.values()]
    for key in fills:
        service.state(key, "running")
    big = service.submit("--priority", "6", cpu="4", script="sleep 0.5")
    service.state(big, "waiting")
    service.run("reserve", big, "--why", "the demo is at noon")
    small = service.submit("--priority", "4", script="true", cpu="1")
    go["first"].touch()
    service.state(fills[0], "succeeded")
    time.sleep(0.5)
    assert (service.show(small)["state"], service.show(big)["reserved"]) == ("waiting", True)
    assert f"{big}" in service.run("why", small)
    go["second"].touch()
    ran = [service.state(key, "succeeded") for key in (big, small)]
    assert ran[0]["ended_at_ms"] <= ran[1]["started_at_ms"]
    told = [entry["detail"] for entry in service.show(big)["history"] if entry["what"] == "reservation"]
    assert "the demo is at noon" in told[0]


def test_work_reports_a_checkpoint_from_inside(serve: Any) -> None:
    """With what is in its environment, and nothing else."""
    service = serve()
    script = f"{sys.executable} -m fairlead.cli.main checkpoint && echo told; sleep 60"
    key = service.submit("--env", f"PYTHONPATH={os.pathsep.join(sys.path)}", script=script)
    service.says(key, "told")
    shown = service.show(key)
    assert shown["checkpoint_at_ms"] >= shown["started_at_ms"]
    assert "saved" in next(e["detail"] for e in shown["history"] if e["what"] == "checkpoint")
    assert "only a running job" in service.run("checkpoint", service.submit(cpu="4"), status=4)


def eats(megabytes: int) -> str:
    """A script that holds so much memory."""
    program = f"x = bytearray({megabytes} << 20); print('full', flush=True); import time; time.sleep(60)"
    return f'exec {sys.executable} -c "{program}"'


def test_short_of_memory_the_greedy_goes_and_comes_back(serve: Any) -> None:
    """Not who is within its request, whatever its priority; nothing new starts until there is memory again."""
    service = serve("--memory-budget", "400Mi", "--memory-pressure", "20%")
    modest = service.submit("--memory", "200Mi", script=eats(120))
    service.says(modest, "full")
    greedy = service.submit("--priority", "9", "--retry", "1", "--retry-backoff", "30m", script=eats(240))
    shown = service.state(greedy, "waiting", attempt=1)
    assert shown["past"][0]["state"] == "evicted"
    assert "asked for none; the machine is short of memory" in shown["past"][0]["how"]
    assert service.show(modest)["state"] == "running"
    service.until(lambda: service.get("/api/v1/nodes")["nodes"][0]["schedulable"], "the node is open again")
    service.state(service.submit(script="true"), "succeeded")


def test_within_its_request_work_goes_as_a_last_resort_alone(serve: Any) -> None:
    """All of the budget is used by those who may: the lowest priority goes, and is told so."""
    service = serve("--memory-budget", "200Mi", "--memory-pressure", "20%", "--resource", "memory=1Gi")
    high = service.submit("--memory", "300Mi", "--priority", "5", script=eats(90))
    low = service.submit("--memory", "300Mi", script=eats(110))
    shown = service.state(low, *ENDED)
    assert shown["state"] == "evicted"
    assert "as a last resort, though it is within its request" in shown["reason"]["sentence"]
    assert service.show(high)["state"] == "running"


def test_classes_quotas_and_budgets_by_command(serve: Any) -> None:
    """A class is a priority, a quota refuses with its numbers, a budget is a preference whose violation is told."""
    service = serve()
    service.run("priority-class", "set", "urgent", "--value", "1000")
    service.run("quota", "set", "few", "--queue", "root.default", "--class", "urgent", "--resource", "vcore=4")
    service.run("budget", "set", "db", "--label", "app=db", "--min-available", "1")
    spared = service.submit("--label", "app=db", "--grace", "1s", cpu="2")
    other = service.submit("--priority", "1", "--grace", "1s", cpu="2")
    for key in (spared, other):
        service.state(key, "running")
    first = service.submit("--priority-class", "urgent", cpu="2")
    assert service.state(first, "running")["priority"] == 1000
    assert (service.show(spared)["state"], service.show(other)["state"]) == ("running", "evicted")
    refused = service.run("submit", "--priority-class", "urgent", "--cpu", "3", "--", "true", status=4)
    assert "quota few of queue root.default has cpu 2 in use of cpu 4" in refused
    service.run("cancel", first)
    service.state(first, *ENDED)
    last = service.submit("--priority-class", "urgent", cpu="4")
    service.state(last, "running")
    told = [e["detail"] for e in service.show(spared)["history"] if e["what"] == "evicting"]
    assert told[0].endswith("against the disruption budget db: there was no other choice")
    assert any(e["what"] == "makes stop" and e["detail"].startswith(spared) for e in service.show(last)["history"])


def test_a_taint_stops_what_does_not_tolerate_it(serve: Any) -> None:
    """Work that wants an attribute waits until the node has it; `NoExecute` is for what runs, too."""
    service = serve()
    key = service.submit("--node-selector", "disk=ssd", "--grace", "1s")
    service.state(key, "waiting")
    service.until(lambda: "without an attribute that it asks for" in service.run("why", key), "it says what is missing")
    node = service.get("/api/v1/nodes")["nodes"][0]["id"]
    assert service.run("label", node, "disk=ssd") == f"{node}: disk=ssd; no taints\n"
    service.state(key, "running")
    service.run("label", node, "--taint", "broken:NoExecute")
    assert service.state(key, *ENDED)["state"] == "evicted"
    service.run("label", node, "--untaint", "broken")
