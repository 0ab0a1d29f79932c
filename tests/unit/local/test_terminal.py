"""Runs at terminals of their own, and those who sit there."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from fairlead.local.supervisor import frames
from fairlead.local.supervisor.terminal import SEATS

if TYPE_CHECKING:
    from conftest import Bench

PROMPT = "while read line; do [ $line = size ] && stty size || echo got $line; done"


class Seat:
    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.pieces = connection, frames.Pieces()
        self.letters: list[bytes] = []
        self.seen = b""
        connection.settimeout(10)

    def type(self, text: bytes) -> None:
        self.connection.sendall(frames.piece(frames.INPUT, text))

    def until(self, done: Callable[[], bool]) -> None:
        while not done():
            said = self.connection.recv(65_536)
            assert said, (self.seen, self.letters)
            for letter, content in self.pieces.feed(said):
                self.letters.append(letter)
                self.seen += content

    def sees(self, text: bytes) -> None:
        self.until(lambda: text in self.seen)


@contextmanager
def seated(bench: Bench, name: str = "a") -> Iterator[Seat]:
    directory = bench.machine.stdout_path(bench.key(name)).parent
    inside = os.open(directory, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"/proc/self/fd/{inside}/terminal")
        os.close(inside)
        yield Seat(connection)


def test_it_is_a_terminal(bench: Bench) -> None:
    """Of its own session, with what is written in the log; its end is told."""
    bench.start("a", "/bin/sh", "-c", f"tty; ps -o tty= -p $$; {PROMPT}; exit 3", terminal=True)
    with seated(bench) as seat:
        seat.sees(b"/dev/pts/")
        seat.connection.sendall(frames.size(33, 111))
        seat.type(b"size\n")
        seat.sees(b"33 111\r\n")
        seat.type(b"\x04")
        seat.until(lambda: frames.END in seat.letters)
    assert bench.end("a").exit_code == 3
    assert "size\r\n33 111\r\n" in bench.output("a").replace("\n\n", "\n") or b"33 111" in seat.seen
    assert not bench.machine.stderr_path(bench.key("a")).exists()


def test_interrupts_reach_the_work(bench: Bench) -> None:
    """As at any terminal."""
    bench.start(
        "a", "/bin/sh", "-c", "trap 'echo caught; exit 0' INT; echo ready; while :; do sleep 0.1; done", terminal=True
    )
    with seated(bench) as seat:
        seat.sees(b"ready")
        seat.type(b"\x03")
        seat.sees(b"caught")
    assert bench.end("a").exit_code == 0


def test_users_come_and_go(bench: Bench) -> None:
    """Several at once; who comes is shown what was written last; the work goes on without anybody."""
    bench.start("a", "/bin/sh", "-c", PROMPT, terminal=True)
    with seated(bench) as first:
        first.type(b"one\n")
        first.sees(b"got one")
        with seated(bench) as second:
            second.sees(b"got one")
            second.type(b"two\n")
            first.sees(b"got two")
    with seated(bench) as third:
        third.type(b"three\n")
        third.sees(b"got three")
        third.type(b"\x04")
    assert bench.end("a").exit_code == 0


def test_there_are_so_many_seats(bench: Bench) -> None:
    """The next one is told so; when somebody leaves there is room again."""
    bench.start("a", "/bin/sh", "-c", PROMPT, terminal=True)
    there = [seated(bench) for _ in range(SEATS)]
    seats = [each.__enter__() for each in there]
    seats[-1].type(b"in\n")
    seats[-1].sees(b"got in")
    with seated(bench) as more:
        more.until(lambda: frames.REFUSED in more.letters)
        assert b"as many as can be" in more.seen
    for each in there:
        each.__exit__(None, None, None)

    def room() -> bool:
        with seated(bench) as again:
            again.type(b"again\n")
            again.until(lambda: b"got again" in again.seen or frames.REFUSED in again.letters)
            return frames.REFUSED not in again.letters

    bench.until(room)
    bench.machine.stop(bench.key("a"), 0)
    assert bench.end("a").stopped


def test_nobody_makes_it_wait(bench: Bench) -> None:
    """Who does not read loses the seat; the work ends in its time."""
    bench.start(
        "a", "/bin/sh", "-c", "sleep 0.3; head -c 4000000 /dev/zero | tr '\\0' x; echo; echo done", terminal=True
    )
    with seated(bench):
        begin = time.monotonic()
        assert bench.end("a").exit_code == 0
        assert time.monotonic() - begin < 15
    assert bench.output("a").endswith("done\n") or "done" in bench.output("a")[-20:]


@pytest.mark.parametrize("sent", [b"\xff" * 100, b"s\0\0\0\1x", b"i\xff\xff\xff\xff"])
def test_garbage_is_shown_the_door(bench: Bench, sent: bytes) -> None:
    """Only who sent it leaves."""
    bench.start("a", "/bin/sh", "-c", PROMPT, terminal=True)
    with seated(bench) as good, seated(bench) as bad:
        bad.connection.sendall(sent)
        assert bad.connection.recv(10) == b""
        good.type(b"fine\n")
        good.sees(b"got fine")
    bench.machine.stop(bench.key("a"), 0)
    bench.end("a")


def test_the_door_is_for_the_service_alone(bench: Bench) -> None:
    """Its socket may be used by its user only: nobody types into the work of others past the service."""
    bench.start("a", "/bin/sh", "-c", PROMPT, terminal=True)
    door = bench.machine.stdout_path(bench.key("a")).parent / "terminal"
    assert door.stat().st_mode & 0o077 == 0
    bench.machine.stop(bench.key("a"), 0)
    bench.end("a")


def test_it_outlives_the_service(bench: Bench) -> None:
    """Another one finds it again."""
    bench.start("a", "/bin/sh", "-c", PROMPT, terminal=True)
    bench.machine.close()
    assert [each.ended_at_ms for each in bench.open().adopt()] == [None]
    with seated(bench) as seat:
        seat.type(b"still\n")
        seat.sees(b"got still")
        seat.type(b"\x04")
    assert bench.end("a").exit_code == 0


def test_pieces_come_out_however_they_are_cut() -> None:
    """Byte by byte, or all at once."""
    sent = frames.piece(b"i", b"one") + frames.size(3, 70_000) + frames.piece(b"a")
    wanted = [(b"i", b"one"), (b"s", b"\0\3\xff\xff"), (b"a", b"")]
    pieces = frames.Pieces()
    assert frames.Pieces().feed(sent) == wanted
    assert [each for i in range(len(sent)) for each in pieces.feed(sent[i : i + 1])] == wanted
    assert frames.read_size(b"\0\3\xff\xff") == (3, 0xFFFF)


def test_a_shell_is_hung_up(bench: Bench) -> None:
    """It ignores SIGTERM where somebody types, and took the whole grace; what heeds SIGTERM has its grace still."""
    bench.start("a", "/bin/bash", "--norc", terminal=True, grace_ms=60_000)
    with seated(bench) as seat:
        seat.type(b"sh -c 'trap \"sleep 0.3; echo saved; exit\" TERM; echo re''ady; while :; do sleep 0.1; done'\n")
        seat.sees(b"ready")
        begun = time.monotonic()
        bench.machine.stop(bench.key("a"), 60_000)
        seat.sees(b"saved")
    assert bench.end("a").stopped
    assert time.monotonic() - begun < 20
