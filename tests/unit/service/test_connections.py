"""Callers that open connections and say nothing, or not enough: others are served, and each is told what was wrong."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fairlead.runtime import Refusal
from fairlead.service.http.connections import HEAD_BYTES, KEPT, Connections, Patience, raise_descriptors
from fairlead.service.http.server import Server
from fairlead.service.http.sockets import on_tcp, on_unix
from fairlead.service.identity import CONNECTION

MOST, OF_USER = 20, 5
PATIENCE = Patience(head=1.0, body=1.5, reading=1.0)
BIG = b"x" * 50_000_000


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answers how long the body was; much, where much is asked for. `/as/7` is asked by user 7."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    status, content = 200, BIG if scope["path"] == "/big" else str(size).encode()
    if scope["path"].startswith("/as/"):
        try:
            scope[CONNECTION].known_as(int(scope["path"].removeprefix("/as/")))
        except Refusal as refused:
            status, content = 429, str(refused).encode()
    headers = [(b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


class Served:
    def __init__(self, directory: Path, own_uid: int) -> None:
        self.path, self.tcp = directory / "s", on_tcp("127.0.0.1", 0)
        self.connections = Connections(2 * MOST + KEPT, of_user=OF_USER, own_uid=own_uid, patience=PATIENCE)
        self.server = Server(application, lambda: None, self.connections)  # type: ignore[arg-type]
        sockets = [on_unix(self.path), self.tcp]
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(sockets=sockets)), daemon=True)
        self.address = self.tcp.getsockname()
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def open(self, *, unix: bool = False, address: str = "") -> socket.socket:
        made = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        made.settimeout(50)
        if address:
            made.bind((address, 0))
        made.connect(str(self.path) if unix else self.address)
        return made

    def ask(self, *, unix: bool = False) -> bytes:
        with self.open(unix=unix) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return read(one)

    def keep(self, uid: int, address: str = "") -> tuple[socket.socket, bytes]:
        """A connection over TCP that this user has open, and what was answered."""
        one = self.open(address=address)
        return one, asked(one, f"/as/{uid}")

    def until(self, count: int) -> None:
        end = time.monotonic() + 50
        while len(self.connections) != count:
            assert time.monotonic() < end, f"{len(self.connections)} connections"
            time.sleep(0.01)


def asked(one: socket.socket, path: str = "/") -> bytes:
    """The answer to a request over a connection that stays."""
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    said = b""
    while not said.partition(b"\r\n\r\n")[2]:
        said += one.recv(2**16)
    return said


def read(one: socket.socket) -> bytes:
    """Everything until it is closed."""
    pieces = []
    while piece := one.recv(2**16):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.fixture
def served() -> Iterator[Served]:
    directory = Path(tempfile.mkdtemp(prefix="fl-", dir="/tmp"))
    directory.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory)
        running = Served(directory, os.geteuid())
        yield running
        running.server.stop()
        running.thread.join(10)


def test_whoever_asks_is_served_whatever_stays_open(served: Served) -> None:
    """Ten times as many connections as there may be, that say nothing or half of something: each caller is answered."""
    idle = []
    for number in range(10 * MOST):
        one = served.open()
        one.sendall(b"GET / HTTP/1.1\r\nHost:"[: number % 20])
        idle.append(one)
        if number % 10 == 0:
            assert served.ask().startswith(b"HTTP/1.1 200"), number
            assert served.ask(unix=True).startswith(b"HTTP/1.1 200"), number
    assert len(served.connections) <= MOST
    for one in idle:
        one.close()
    served.until(0)


@pytest.mark.parametrize("addresses", [1, MOST], ids=["of one address", "of many"])
def test_what_was_cut_off_is_told_why(served: Served, addresses: int) -> None:
    """The one that has been idle for the longest time goes, where one address has as many as a user may, or all have
    as many as there may be.
    """
    most = OF_USER if addresses == 1 else MOST
    idle = [served.open(address=f"127.0.1.{1 + number % addresses}") for number in range(most)]
    served.until(most)
    with served.open(address="127.0.1.1"):
        said = read(idle[0])
        assert said.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"others wait for a connection" in said
        idle[1].sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert read(idle[1]).startswith(b"HTTP/1.1 200")
    for one in idle:
        one.close()


def test_headers_come_in_time(served: Served) -> None:
    """One that says nothing is closed without a word; one that says something is told, also when it says more."""
    with served.open() as silent, served.open() as slow:
        began = time.monotonic()
        slow.sendall(b"GET / HTTP/1.1\r\n")
        time.sleep(0.6)
        slow.sendall(b"Host: a\r\n")
        said = read(slow)
        assert said.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"all headers of a request did not come within 1 s; send it at once" in said
        assert b"application/problem+json" in said
        assert read(silent) == b""
        assert time.monotonic() - began > 0.9


def test_a_body_comes_in_time(served: Served) -> None:
    """However often a byte of it comes."""
    with served.open() as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        said, end = b"", time.monotonic() + 50
        slow.settimeout(0.1)
        while not said and time.monotonic() < end:
            try:
                slow.sendall(b"x")
                said = slow.recv(2**16)
            except TimeoutError:
                continue
        assert said.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"the whole body of the request did not come within 1.5 s" in said


def test_a_further_request_has_its_own_time(served: Served) -> None:
    """On a connection that is used again."""
    with served.open() as one:
        for _ in range(3):
            one.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
            said = b""
            while not said.endswith(b"\r\n3"):
                said += one.recv(2**16)
            time.sleep(0.6)
        one.sendall(b"GET / HT")
        assert read(one).startswith(b"HTTP/1.1 408")


def test_headers_are_bounded(served: Served) -> None:
    """They are held in memory until all are there."""
    with served.open() as one:
        one.sendall(b"GET / HTTP/1.1\r\n" + (b"X: " + b"x" * 995 + b"\r\n") * (HEAD_BYTES // 1000 + 2))
        assert read(one).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


def test_an_address_is_bounded(served: Served) -> None:
    """A list of very many parts of an array, say."""
    with served.open() as one:
        one.sendall(b"GET /" + b"x" * HEAD_BYTES + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        said = read(one)
    assert said.startswith(b"HTTP/1.1 431 ")
    assert b"the address of this request is too long" in said


@pytest.mark.parametrize("sent", [b"FOO / HTTP/1.1\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"\x16\x03\x01"])
def test_what_is_no_request_is_told_so_as_any_other_problem(served: Served, sent: bytes) -> None:
    """Whatever goes wrong has one form."""
    with served.open() as one:
        one.sendall(sent)
        said = read(one)
    assert said.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"content-type: application/problem+json" in said
    assert b'"code":"malformed"' in said


def test_an_answer_that_is_not_read_ends(served: Served) -> None:
    """It holds memory as long as it waits."""
    with served.open() as one:
        one.sendall(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
        served.until(0)


def test_one_user_has_so_many_over_the_unix_socket(served: Served) -> None:
    """Root and the service's own user any number."""
    mine = [served.open(unix=True) for _ in range(MOST + OF_USER)]
    assert served.ask(unix=True).startswith(b"HTTP/1.1 200")
    for one in mine:
        one.close()
    served.until(0)
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setuid(65_534)
            held = [served.open(unix=True) for _ in range(OF_USER)]
            said = read(served.open(unix=True))
            held.pop().close()
            time.sleep(0.3)
            wanted = b"you have 5 connections open over the Unix socket, as many as a user may; close some"
            status = 0 if wanted in said and b"429" in said and b"200" in served.ask(unix=True)[:20] else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_one_user_has_so_many_over_tcp(served: Served) -> None:
    """From wherever they come, and others of that address have theirs. The service's own user has any number."""
    mine = [served.keep(7, f"127.0.1.{number + 1}")[0] for number in range(OF_USER)]
    one, said = served.keep(7, "127.0.1.99")
    assert b"429" in said
    assert b"you have 5 connections open over TCP, as many as a user may; close some" in said
    others = [served.keep(8) for _ in range(OF_USER)] + [served.keep(os.geteuid()) for _ in range(OF_USER + 1)]
    assert all(b"HTTP/1.1 200" in said for _, said in others)
    mine.pop().close()
    served.until(2 * OF_USER + OF_USER + 1)
    again, said = served.keep(7)
    assert b"HTTP/1.1 200" in said
    for each in (*mine, one, again, *(other for other, _ in others)):
        each.close()
    served.until(0)


def test_one_address_keeps_no_other_from_anything(served: Served) -> None:
    """Those of whom nobody knows who they are end each other, not the one that has been open for the longest time."""
    calm = served.keep(7, "127.0.1.2")[0]
    idle = []
    for number in range(3 * MOST):
        idle.append(served.open(address="127.0.1.1"))
        if number % 10 == 9:
            assert asked(calm).startswith(b"HTTP/1.1 200")
    for one in (calm, *idle):
        one.close()
    served.until(0)


def test_there_are_as_many_descriptors_as_there_may_be() -> None:
    """What the machine allows, up to a bound."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, before[0]), before[1]))
        found = raise_descriptors()
        assert found == resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 1024 or before[1] <= 1024
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
