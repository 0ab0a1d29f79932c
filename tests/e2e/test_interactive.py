"""`fairlead run` and `attach` at a real terminal: sizes, Ctrl-C, leaving and coming back, a service that is killed."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.nursery import Nursery, Started
from testbed.unix_socket import ask, wait_until_served

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
FAIRLEAD = [sys.executable, "-m", "fairlead.cli.main"]
SHELL = ("bash", "--norc", "--noprofile")


class Person:
    """`fairlead` at a terminal."""

    def __init__(self, directory: Path, *words: str) -> None:
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            environ = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLEAD_")}
            os.execve(FAIRLEAD[0], [*FAIRLEAD, *words], environ | {"FAIRLEAD_SOCKET": str(directory / "s")})

    def sees(self, text: bytes, seconds: float = 30.0) -> None:
        """Wait until this stands there, behind what was waited for before."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, (text, self.seen)
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 65_536)
                except OSError:
                    raise AssertionError((text, self.seen)) from None
        self.seen = self.seen.partition(text)[2]

    def types(self, text: bytes) -> None:
        os.write(self.fd, text)

    def interrupts(self) -> None:
        """Ctrl-C, not within the microseconds between what is shown and the wait for an answer."""
        time.sleep(0.2)
        self.types(b"\x03")

    def answers(self, line: bytes) -> None:
        """Type it and wait until it was read: Ctrl-C throws away what was not."""
        self.types(line)
        other_end = os.open(f"/proc/{self.pid}/fd/0", os.O_RDONLY | os.O_NOCTTY)
        end = time.monotonic() + 30
        while any(fcntl.ioctl(other_end, termios.FIONREAD, bytes(4))):
            assert time.monotonic() < end
            time.sleep(0.01)
        os.close(other_end)
        time.sleep(0.3)

    def leaves_with(self) -> int:
        """The exit status."""
        end = time.monotonic() + 50
        while True:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    os.read(self.fd, 65_536)
                except OSError:
                    break
            assert time.monotonic() < end
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def resizes(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Service:
    def __init__(self, nursery: Nursery, directory: Path) -> None:
        self.nursery, self.directory = nursery, directory
        self.process: Started | None = None

    def start(self) -> None:
        words = ("up", "--state", "state", "--socket", "s", "--no-tcp", "--resource", "vcore=4")
        self.process = process = self.nursery.start(*words, log=self.directory / "log", cwd=self.directory)
        wait_until_served(
            self.directory / "s", lambda: None if process.poll() is None else (self.directory / "log").read_text()
        )

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(50)

    def person(self, *words: str) -> Person:
        return Person(self.directory, *words)

    def jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = ask(self.directory / "s", "/api/v1/jobs")["jobs"]
        return found


@pytest.fixture
def service(nursery: Nursery, tmp_path: Path) -> Iterator[Service]:
    short = Path("/tmp") / f"fl-i{os.getpid()}-{tmp_path.name[-10:]}"
    short.mkdir()
    made = Service(nursery, short)
    made.start()
    yield made
    made.person("cancel", "--now", "--queue", "root").leaves_with()
    end = time.monotonic() + 50
    while any(job["state"] in ("waiting", "running", "stopping") for job in made.jobs()):
        assert time.monotonic() < end
        time.sleep(0.1)
    made.kill()


def test_a_shell(service: Service) -> None:
    """Its size follows; Ctrl-C is the shell's; who leaves comes back, also two at once; its status is passed on."""
    one = service.person("run", "--pty", "--", *SHELL)
    one.sees(b"job 1; ctrl-] leaves its terminal")
    one.types(b"stty size\n")
    one.resizes(40, 132)
    time.sleep(0.3)
    one.types(b"stty size\n")
    one.sees(b"40 132")
    one.types(b"sleep 60\n")
    time.sleep(0.5)
    one.types(b"\x03")
    one.types(b"echo status-$?\n")
    one.sees(b"status-130")
    one.types(b"\x1d")
    one.sees(b"1 goes on; `fairlead attach 1` comes back")
    assert one.leaves_with() == 0
    assert [job["state"] for job in service.jobs()] == ["running"]
    two, three = service.person("attach", "1"), service.person("attach", "--detach-keys", "ctrl-p,ctrl-q", "1")
    two.types(b"echo a-$((1+1))\n")
    two.sees(b"a-2")
    three.sees(b"a-2")
    three.types(b"\x10\x11")
    assert three.leaves_with() == 0
    two.types(b"exit 9\n")
    assert two.leaves_with() == 9


def test_who_sits_there_comes_to_the_terminal_of_the_next_attempt(service: Service) -> None:
    """Each attempt has one of its own; nobody sits before one that is closed while the job runs."""
    person = service.person("run", "--pty", "--", "sh", "-c", "echo at-$FAIRLEAD_ATTEMPT; read status; exit $status")
    person.sees(b"at-1")
    assert service.person("requeue", "1").leaves_with() == 0
    person.sees(b"at-2")
    person.types(b"9\n")
    assert person.leaves_with() == 9


def test_who_is_killed_there_leaves_the_terminal_as_it_was(service: Service) -> None:
    """It is that of a shell, which goes on."""
    person = service.person("run", "--pty", "--", "sh", "-c", "echo there; sleep 60")
    person.sees(b"there")
    other_end = os.open(f"/proc/{person.pid}/fd/0", os.O_RDONLY | os.O_NOCTTY)
    assert not termios.tcgetattr(other_end)[3] & termios.ICANON
    os.kill(person.pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(person.pid, 0)[1]) == 128 + signal.SIGTERM
    assert termios.tcgetattr(other_end)[3] & termios.ICANON
    os.close(other_end)


def test_it_survives_the_service(service: Service) -> None:
    """Killed at any moment: the shell is the same one, and who sits there goes on when there is a service again."""
    person = service.person("run", "--pty", "--", *SHELL)
    person.types(b"here=before-$((2+2))\n")
    person.types(b"echo $here\n")
    person.sees(b"before-4")
    service.kill()
    service.start()
    person.types(b"echo again-$here\n")
    person.sees(b"again-before-4")
    person.types(b"exit 3\n")
    assert person.leaves_with() == 3


def test_waiting_is_explained_and_interrupts_ask(service: Service) -> None:
    """Of `run` and of `submit --wait`: Enter waits on, l leaves it, a second Ctrl-C cancels it."""
    for number, words in enumerate((("run",), ("submit", "--wait")), 1):
        person = service.person(*words, "--hold", "--", "true")
        person.sees(f"{number} waits: was put on hold by".encode())
        person.interrupts()
        person.sees(b"c (or Ctrl-C) to cancel it: ")
        person.answers(b"\n")
        person.interrupts()
        person.sees(b"c (or Ctrl-C) to cancel it: ")
        person.interrupts()
        person.sees(f"{number} cancelled: cancelled by".encode())
        assert person.leaves_with() == 4
    person = service.person("run", "--", "sh", "-c", "echo begun; sleep 60")
    person.sees(b"begun")
    person.interrupts()
    person.sees(b"to cancel it: ")
    person.types(b"l\n")
    assert person.leaves_with() == 128 + signal.SIGINT
    assert service.jobs()[-1]["state"] == "running"


def test_output_of_an_array_is_interrupted_with_a_question_too(service: Service) -> None:
    """As that of one job: Enter waits on, a second Ctrl-C cancels all of it."""
    person = service.person("submit", "--array", "1-2", "--wait", "--", "sh", "-c", "echo begun; sleep 60")
    person.sees(b"begun")
    person.interrupts()
    person.sees(b"c (or Ctrl-C) to cancel it: ")
    person.answers(b"\n")
    person.interrupts()
    person.sees(b"c (or Ctrl-C) to cancel it: ")
    person.interrupts()
    person.leaves_with()
    assert {job["state"] for job in service.jobs()} <= {"stopping", "cancelled"}
