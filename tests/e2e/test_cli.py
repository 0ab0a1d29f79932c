"""The command line against a real service with real processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_port
from testbed.unix_socket import ask, wait_until_served

from fairlead.version import version_and_build

pytestmark = pytest.mark.real

FAIRLEAD = [sys.executable, "-m", "fairlead.cli.main"]
QUEUES = """
partitions:
  - name: default
    preemption:
      rule: priority
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: high
            properties: {priority.offset: "100"}
          - name: low
"""
ENDED = {"succeeded", "failed", "cancelled", "evicted", "lost", "timed_out", "rejected"}


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}


@dataclass
class Bench:
    """A state directory, a socket, and the service on them."""

    directory: Path
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=clean_environment)

    @property
    def socket(self) -> Path:
        return self.directory / "s.sock"

    def start(self) -> None:
        (self.directory / "queues.yaml").write_text(QUEUES)
        self.environment["FAIRLEAD_SOCKET"] = str(self.socket)
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *FAIRLEAD,
                    "up",
                    "--config",
                    str(self.directory / "queues.yaml"),
                    "--state",
                    str(self.directory / "state"),
                    "--socket",
                    str(self.socket),
                    "--no-tcp",
                    "--resource",
                    "vcore=2",
                    "--resource",
                    "memory=4Gi",
                ],
                env=self.environment,
                stderr=log,
                stdout=log,
            )
        process, log = self.process, self.directory / "log"
        wait_until_served(self.socket, lambda: None if process.poll() is None else log.read_text())

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(50)

    def run(self, *args: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*FAIRLEAD, *args],
            capture_output=True,
            text=True,
            timeout=50,
            env=self.environment,
            check=False,
            **settings,
        )

    def json(self, *args: str) -> Any:
        done = self.run(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def submit(self, *args: str) -> str:
        done = self.run("submit", *args)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def until(self, key: str, *states: str) -> dict[str, Any]:
        deadline = time.monotonic() + 50
        while (job := ask(self.socket, f"/api/v1/jobs/{key}"))["state"] not in (states or ENDED):
            assert time.monotonic() < deadline, job
            time.sleep(0.03)
        return dict(self.json("show", key))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="fl") as directory:
        made = Bench(Path(directory))
        made.start()
        yield made
        if made.process is not None and made.process.poll() is None:
            for row in made.json("ls", "-s", "running", "-s", "waiting"):
                made.run("cancel", row["key"])
            made.stop()


def test_work_is_waited_for_with_its_output_and_exit_status(bench: Bench) -> None:
    """As if it had been run here."""
    done = bench.run("submit", "--wait", "-q", "root.low", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")


def test_an_array_is_waited_for_with_the_output_of_its_parts(bench: Bench) -> None:
    """Each line with the key of its part; the exit status is the worst."""
    script = "echo out $FAIRLEAD_ARRAY_INDEX; echo err >&2; exit $FAIRLEAD_ARRAY_INDEX"
    done = bench.run("submit", "--array", "0-2%2", "--wait", "-q", "root.low", "-c", "0.5", "--", "sh", "-c", script)
    key = done.stdout.partition(".")[0]
    assert (done.returncode, sorted(done.stdout.splitlines())) == (2, [f"{key}.{n}: out {n}" for n in range(3)])
    assert sorted(done.stderr.splitlines())[:3] == [f"{key}.{n}: err" for n in range(3)]
    assert f"{key} failed: [0-2] done 1, failed 2" in done.stderr
    assert bench.run("logs", "-f", "--stdout", f"{key}.1-2").stdout == f"{key}.1: out 1\n{key}.2: out 2\n"
    assert bench.run("logs", f"{key}.2", "--stdout").stdout == "out 2\n"
    assert bench.run("wait", f"{key}.0-1").returncode == 1
    assert bench.run("logs", "--attempt", "1", key).returncode == 2


def test_an_array_is_one_line_until_its_parts_are_asked_for(bench: Bench) -> None:
    """With how many are how; filters mean the whole array in orders."""
    name = "one-line"
    key = bench.submit(
        "-a", "1-3%1", "-q", "root.low", "--name", name, "-c", "0.1", "--grace", "0", "--", "sleep", "60"
    )
    bench.until(f"{key}.1", "running")
    assert "[1-3%1] waiting 2, running 1" in bench.run("ls", "--name", name).stdout
    assert bench.run("ls", "--name", name, "--parts", "-o", "name").stdout.split() == [f"{key}.{n}" for n in (1, 2, 3)]
    assert bench.run("ls", f"{key}.2-3", "-o", "name").stdout.split() == [f"{key}.2", f"{key}.3"]
    assert f"{key}.2-3 (2): waiting: is part of {key}, of which 1 of at most 1 run" in bench.run("why", key).stdout
    assert bench.run("hold", "--name", name).stdout == f"{key}.2-3 on hold\n"
    assert bench.run("release", "--name", name).stdout == f"{key}.2-3 released\n"
    assert bench.run("cancel", "--name", name, "-s", "waiting").stdout == f"{key}.2-3 [2-3%1] cancelled 2\n"
    assert bench.run("cancel", "--now", key).returncode == 0
    bench.until(key)
    again = bench.run("cancel", key)
    assert again.returncode == 4
    assert f"nothing was done to any of the 3 parts of {key}: job {key}.1 has ended already" in again.stderr


def test_a_signal_gives_128_and_its_number(bench: Bench) -> None:
    """With a sentence."""
    done = bench.run("submit", "--wait", "-q", "root.low", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137
    assert "SIGKILL" in done.stderr


def test_the_time_limit_gives_124(bench: Bench) -> None:
    """With a sentence."""
    done = bench.run("submit", "--wait", "-q", "root.low", "--time-limit", "500ms", "--grace", "1", "--", "sleep", "30")
    assert done.returncode == 124
    assert "time limit" in done.stderr


def test_a_submitted_work_is_listed_shown_and_read(bench: Bench, tmp_path: Path) -> None:
    """With the documented keys, in its own directory, with its own environment."""
    key = bench.submit(
        "-q",
        "root.low",
        "--name",
        "probe",
        "-p",
        "3",
        "-e",
        "COLOUR=red",
        "--cwd",
        str(tmp_path),
        "--",
        "sh",
        "-c",
        "pwd; echo $COLOUR",
    )
    job = bench.until(key)
    assert (job["state"], job["exit_code"]) == ("succeeded", 0)
    [row] = [r for r in bench.json("ls") if r["key"] == key]
    keys = {"key", "name", "queue", "user", "priority", "state", "node", "exit_code", "reason"}
    assert keys <= row.keys()
    assert (row["name"], row["queue"], row["priority"], row["exit_code"]) == ("probe", "root.low", 3, 0)
    assert bench.run("logs", key).stdout == f"{tmp_path.resolve()}\nred\n"
    assert bench.run("logs", "-f", key).stdout == f"{tmp_path.resolve()}\nred\n"
    assert "probe" in bench.run("show", key).stdout


def test_work_that_cannot_fit_says_why_and_is_cancelled(bench: Bench) -> None:
    """It waits, with numbers; taking it back is at once."""
    key = bench.submit("-q", "root.low", "-c", "64", "--", "true")
    answer = bench.json("why", key)
    assert answer["reason"]["code"] == "too-big-for-every-node"
    assert "64" in bench.run("why", key).stdout
    assert bench.run("priority", key, "-4").stdout == f"{key} priority -4\n"
    assert bench.run("cancel", key).stdout == f"{key} cancelled\n"
    assert bench.run("cancel", key).returncode == 4


def test_running_work_is_cancelled_with_its_children(bench: Bench) -> None:
    """SIGTERM, and it is gone."""
    key = bench.submit("-q", "root.low", "--grace", "2", "--", "sh", "-c", "sleep 97531 & sleep 97531")
    bench.until(key, "running")
    time.sleep(0.2)
    assert bench.run("cancel", key).returncode == 0
    assert bench.until(key)["state"] == "cancelled"
    assert b"97531" not in b"".join(command_lines())


def command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue


def test_a_file_is_submitted_as_a_whole_or_not_at_all(bench: Bench, tmp_path: Path) -> None:
    """The place of the mistake is the place in the file."""
    file = tmp_path / "jobs.jsonl"
    file.write_text('{"command": ["true"], "queue": "root.low"}\n{"command": ["true"], "queue": "root.nowhere"}\n')
    before = len(bench.json("ls"))
    done = bench.run("submit", "--file", str(file))
    assert done.returncode == 4
    assert f"{file}:2: queue: " in done.stderr
    assert len(bench.json("ls")) == before
    file.write_text('{"command": ["true"], "queue": "root.low"}\n' * 3)
    keys = bench.submit("--file", str(file)).split()
    assert len(keys) == 3
    assert all(bench.until(key)["exit_code"] == 0 for key in keys)


def test_queues_and_nodes_are_shown(bench: Bench) -> None:
    """With what was declared."""
    [root] = bench.json("queues")
    assert {child["path"] for child in root["children"]} == {"root.high", "root.low"}
    [node] = bench.json("nodes")
    assert (node["capacity"]["cpu"], node["capacity"]["memory"]) == (2, 4 * 2**30)
    assert bench.run("drain", node["id"]).returncode == 0
    assert bench.json("nodes")[0]["schedulable"] is False
    assert bench.run("undrain", node["id"]).returncode == 0


def test_the_configuration_is_shown_and_a_bad_one_refused(bench: Bench, tmp_path: Path) -> None:
    """With line and column in the file that was given."""
    assert bench.run("config", "show").stdout == QUEUES
    bad = tmp_path / "bad.yaml"
    bad.write_text(QUEUES.replace("submitacl", "sumbitacl"))
    done = bench.run("config", "apply", str(bad))
    assert done.returncode == 1
    assert f"{bad}:8:9: " in done.stderr


@pytest.mark.thorough
def test_waiting_survives_a_service_that_is_killed(bench: Bench) -> None:
    """Work goes on, its output arrives once, its exit status is right."""
    script = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done; exit 5"
    with subprocess.Popen(
        [*FAIRLEAD, "submit", "--wait", "-q", "root.low", "--", "sh", "-c", script],
        env=bench.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "1\n"
        bench.stop(signal.SIGKILL)
        bench.start()
        out, err = waiting.communicate(timeout=50)
    assert out.split() == ["2", "3", "4", "5", "6", "7", "8"]
    assert waiting.returncode == 5
    assert "Trying for" in err


@pytest.mark.thorough
def test_the_journal_is_verified_and_replayed_while_the_service_lives(bench: Bench) -> None:
    """All decisions are as recorded."""
    state = str(bench.directory / "state")
    assert bench.run("submit", "--wait", "-q", "root.low", "--", "true").returncode == 0
    assert bench.run("journal", "verify", state).returncode == 0
    done = bench.run("journal", "replay", state)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "are as recorded" in done.stdout
    assert "JobSubmitted" in bench.run("journal", "events", state).stdout


def test_doctor_finds_the_service(bench: Bench) -> None:
    """And says what is enforced here."""
    findings = {f["what"]: f for f in bench.json("doctor")}
    assert findings["service"]["level"] == "ok"
    assert findings["fairlead"]["sentence"].startswith(f"{version_and_build()}, at ")
    assert "memory limit" in findings


@pytest.mark.thorough
def test_a_second_service_on_the_same_state_is_refused_in_a_sentence(bench: Bench) -> None:
    """Status 1."""
    done = bench.run(
        "up", "--state", str(bench.directory / "state"), "--no-tcp", "--socket", str(bench.directory / "t.sock")
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("fairlead: ")
    assert "Traceback" not in done.stderr


# --- the demo ------------------------------------------------------------------------------------------------------


@contextmanager
def started_demo(directory: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """A demo with its output in pipes; killed if it takes too long, or if the test fails."""
    with subprocess.Popen(
        [*FAIRLEAD, "demo", "--state", str(directory), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    ) as demo:
        guard = threading.Timer(40, demo.kill)
        guard.start()
        try:
            yield demo
        finally:
            guard.cancel()
            if demo.poll() is None:
                demo.send_signal(signal.SIGINT)
                demo.communicate(timeout=50)


def read_until(stream: Any, wanted: Callable[[str], bool]) -> None:
    lines = []
    for line in stream:
        lines.append(line)
        if wanted(line):
            return
    raise AssertionError("".join(lines))


def processes_of(directory: Path, *files: str) -> list[str]:
    """Processes with a path in there in one of these files of theirs: a service and supervisors in their command lines,
    jobs and what they start in their environment (the socket).
    """
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(str(directory).encode() in (path / file).read_bytes() for file in files or ("cmdline", "environ")):
                found.append(path.name)
    return found


def nothing_is_left_of(directory: Path) -> bool:
    """A supervisor ends a moment after its job."""
    deadline = time.monotonic() + 10
    while processes_of(directory):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.thorough
def test_the_demo_shows_real_work_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Not even when it is stopped in the middle; and it can be started again at once."""
    port = free_port()
    moments = ((signal.SIGINT, ("mail-digest", "waiting")), (signal.SIGTERM, ("nightly-report", "running")))
    for how, wanted in moments:
        with started_demo(tmp_path / "demo", port) as demo:
            read_until(demo.stdout, lambda line, wanted=wanted: all(word in line for word in wanted))
            # A job runs for the scheduler a moment before its process is there.
            end = time.monotonic() + 50
            while len(processes_of(tmp_path, "environ")) < 3:
                assert time.monotonic() < end
                time.sleep(0.05)
            for _ in range(3):  # As a terminal does that tells its whole group.
                demo.send_signal(how)
            _, said = demo.communicate(timeout=50)
        assert demo.returncode == 0, said
        assert "the demo is over" in said
        assert "Traceback" not in said
        assert nothing_is_left_of(tmp_path)


@pytest.mark.slow
def test_the_demo_plays_to_its_end(tmp_path: Path) -> None:
    """One waits, two make room, one fails, and it leaves by itself."""
    done = subprocess.run(
        [*FAIRLEAD, "demo", "--once", "--state", str(tmp_path / "demo"), "--port", str(free_port())],
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
        env=clean_environment(),
    )
    assert done.returncode == 0, done.stderr
    for part in (
        "mail-digest in root.batch (0): waiting: ",
        "nightly-report in root.batch (0): evicted",
        "thumbnails in root.batch (0): evicted",
        "notebook in root.interactive (50): succeeded",
        "too-large in root.batch (0): waiting: needs",
        "with exit status 3",
        "mail-digest in root.batch (0): succeeded",
    ):
        assert part in done.stdout, part


def test_what_matches_nothing_is_said(bench: Bench) -> None:
    """A queue that is not there is a mistake; a filter that finds nothing is not, but it is no silent table either."""
    wrong = bench.run("ls", "-q", "root.lwo")
    assert (wrong.returncode, wrong.stdout) == (4, "")
    assert wrong.stderr.startswith("fairlead: there is no queue root.lwo; did you mean root.low")
    nothing = bench.run("ls", "--name", "nobody-named-this")
    assert (nothing.returncode, nothing.stderr) == (0, "fairlead: no job is like that\n")
    done = bench.run("submit", "-q", "root.low", "--node-selector", "disk=ssd", "--", "true")
    assert done.returncode == 0
    assert "cannot start as things are: the only node does not suit it" in done.stderr
    stopped = bench.run("cancel", "-q", "root.low", "-s", "running", "-s", "waiting")
    assert f"{done.stdout.strip()} cancelled\n" in stopped.stdout


@pytest.mark.thorough
def test_an_administrator_or_bound_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Before anything is made."""

    def up(*words: str) -> tuple[int, str]:
        places = ("--no-tcp", "--state", str(tmp_path / "st"), "--socket", str(tmp_path / "s"))
        done = subprocess.run(
            [*FAIRLEAD, "up", *places, *words], capture_output=True, text=True, check=False, timeout=50
        )
        assert not (tmp_path / "st").exists()
        return done.returncode, done.stderr

    said = "fairlead: --admin: this machine has no user 'nosuchuser'; name one that it has\n"
    assert up("--admin", "nosuchuser") == (1, said)
    status, said = up("--per-user", "job=3")
    assert (status, "there is no bound 'job'; there are jobs, environment" in said) == (2, True)


def test_the_demo_says_when_its_port_is_taken(tmp_path: Path) -> None:
    """And starts nothing."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*FAIRLEAD, "demo", "--state", str(tmp_path / "demo"), "--port", port],
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
    assert done.returncode == 1
    assert f"cannot serve on 127.0.0.1:{port}" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "demo").exists()


@pytest.mark.thorough
def test_the_service_of_a_demo_that_is_killed_ends_too(tmp_path: Path) -> None:
    """The kernel tells it; what ran on is stopped by the next demo."""
    with started_demo(tmp_path / "demo", free_port()) as demo:
        read_until(demo.stdout, lambda line: "nightly-report" in line and "running" in line)
        demo.kill()
    deadline = time.monotonic() + 50
    while any(b"fairlead.cli.attached" in line and str(tmp_path).encode() in line for line in command_lines()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with started_demo(tmp_path / "demo", free_port()) as demo:
        read_until(demo.stdout, lambda line: "nightly-report" in line and "running" in line)
        demo.send_signal(signal.SIGINT)
        _, said = demo.communicate(timeout=50)
    assert "stopping 3 jobs from an earlier demo" in said
    assert nothing_is_left_of(tmp_path)
