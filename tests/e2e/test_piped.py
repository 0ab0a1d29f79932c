"""What is piped into `fairlead run` is what the job reads, over a restart of the service too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.nursery import Nursery, Started
from testbed.unix_socket import ask, wait_until_served

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
FAIRLEAD = [sys.executable, "-m", "fairlead.cli.main"]
MUCH = bytes(range(256)) * 4096


class Desk:
    """A service on a directory, and commands that ask it."""

    def __init__(self, nursery: Nursery, directory: Path) -> None:
        self.nursery, self.directory = nursery, directory
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
        self.environment = kept | {"FAIRLEAD_SOCKET": str(directory / "s"), "TMPDIR": str(directory)}
        self.process = self.start()

    def start(self) -> Started:
        words = ("up", "--state", "state", "--socket", "s", "--no-tcp", "--resource", "cpu=4")
        process = self.nursery.start(*words, log=self.directory / "log", cwd=self.directory)
        wait_until_served(self.directory / "s", lambda: None if process.poll() is None else "it has ended")
        return process

    def run(self, *words: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen([*FAIRLEAD, *words], env=self.environment, stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.fixture(scope="module")
def desk(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(nursery, tmp_path_factory.mktemp("p"))
    yield made
    made.process.send_signal(signal.SIGTERM)
    made.process.wait(50)


def test_every_byte_arrives_and_then_the_end(desk: Desk) -> None:
    """However many; the exit status is that of the job; nothing is left behind."""
    process = desk.run("run", "--", "cat")
    out, said = process.communicate(MUCH, timeout=60)
    assert (process.returncode, len(out), out == MUCH, said) == (0, len(MUCH), True, b"")
    assert list(desk.directory.glob("fairlead-input-*")) == []


def test_a_job_that_reads_no_more_ends_it(desk: Desk) -> None:
    """As `head` does, though more comes for ever."""
    with desk.run("run", "--", "head", "-c", "3") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"one two")
        process.stdin.flush()
        assert process.wait(60) == 0
        assert process.stdout.read() == b"one"


def test_what_is_tried_again_reads_nothing(desk: Desk) -> None:
    """What was read once is gone. It is said: the job ends well, and may have been meant to read it."""
    process = desk.run("run", "--retry", "1", "--", "wc", "-c")
    written, said = process.communicate(b"lost", timeout=60)
    assert written.strip() == b"0"
    assert b"does not read what is piped in" in said


QUEUES = """
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", properties: {job.retry.default: "2"}, queues: [{name: default}]}
"""


def test_what_is_begun_once_reads_it(desk: Desk) -> None:
    """And what reads it is begun once, whatever its queue lets come back: it could not be read a second time."""
    process = desk.run("run", "--retry", "0", "--", "cat")
    assert process.communicate(b"all of it", timeout=60) == (b"all of it", b"")
    (desk.directory / "q.yaml").write_text(QUEUES)
    assert desk.run("config", "apply", "--yes", str(desk.directory / "q.yaml")).communicate(timeout=60)
    assert desk.run("run", "--name", "reads", "--", "cat").communicate(b"x", timeout=60) == (b"x", b"")
    assert desk.run("submit", "--name", "does-not", "--", "true").communicate(timeout=60)
    retries = {}
    for row in ask(desk.directory / "s", "/api/v1/jobs?name=reads&name=does-not")["jobs"]:
        retries[row["name"]] = ask(desk.directory / "s", f"/api/v1/jobs/{row['key']}")["retry"]
    assert {name: retry["limit"] for name, retry in retries.items()} == {"reads": 0, "does-not": 2}


def test_a_file_that_is_not_read_is_said(desk: Desk) -> None:
    """As what is piped in."""
    file = desk.directory / "file"
    file.write_text("lost")
    words = [*FAIRLEAD, "run", "--retry", "1", "--", "wc", "-c"]
    with file.open() as opened:
        done = subprocess.run(words, env=desk.environment, stdin=opened, capture_output=True, timeout=60, check=True)
    assert (done.stdout.strip(), b"does not read what is piped in" in done.stderr) == (b"0", True)


def test_input_goes_on_while_the_service_is_away(desk: Desk) -> None:
    """It does not go through it."""
    process = desk.run("run", "--", "sh", "-c", "read first; echo $first; read second; echo $second")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"before\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"before\n"
    desk.process.kill()
    desk.process.wait(50)
    process.stdin.write(b"meanwhile\n")
    process.stdin.flush()
    time.sleep(0.2)
    desk.process = desk.start()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"meanwhile\n")
    assert ask(desk.directory / "s", "/api/v1/jobs?limit=10&state=failed")["jobs"] == []


def test_it_is_not_read_a_second_time(desk: Desk) -> None:
    """The rest of it would be taken for all of it, or nothing would ever come."""
    process = desk.run("run", "--name", "once", "--", "sh", "-c", "read first; echo $first; cat")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"first\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"first\n"
    [job] = ask(desk.directory / "s", "/api/v1/jobs?name=once")["jobs"]
    _, said = desk.run("requeue", job["key"]).communicate(timeout=60)
    assert b"which cannot be read a second time; `fairlead cancel" in said
    assert process.communicate(b"rest\n", timeout=60) == (b"rest\n", b"")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_job_whose_input_is_gone_before_it_begins_says_so(desk: Desk, number: int) -> None:
    """The connection to the terminal broke, say. It had its room for ever, and waited for somebody to write."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("what this was started by ignores the signal (nohup), and so does all that it starts")
    with desk.run("run", "--hold", "--name", f"late-{number}", "--", "cat") as process:
        while not (found := ask(desk.directory / "s", f"/api/v1/jobs?name=late-{number}")["jobs"]):
            time.sleep(0.1)
        process.send_signal(number)
        assert process.wait(60) != 0
    assert list(desk.directory.glob("fairlead-input-*")) == []
    key = found[0]["key"]
    for words in (("release", key), ("wait", key)):
        desk.run(*words).communicate(timeout=60)
    assert "stdin" in ask(desk.directory / "s", f"/api/v1/jobs/{key}")["error"]
