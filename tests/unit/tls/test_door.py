"""The way in over TLS: who shakes hands gets in, whatever others leave open; who speaks without TLS is told."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import uvloop
from testbed.certificates import Made, make_certificate

from fairlead.tls import door
from fairlead.tls.certificate import Certificate
from fairlead.tls.door import Door

TOLD = b"this port speaks TLS alone"


class Echo(asyncio.Protocol):
    """Says what it hears."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Opened:
    """A door, and the ways to it."""

    def __init__(self, made: Made) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = self.listening.getsockname()
        self.door = Door(self.listening, Certificate(made.cert, made.key), Echo, TOLD)
        self.keeping = asyncio.create_task(self.door.keep())
        self.trusting = ssl.create_default_context(cafile=made.cert)

    async def ask(self) -> bytes:
        """What comes back over TLS."""
        reader, writer = await asyncio.open_connection(*self.address, ssl=self.trusting, server_hostname="localhost")
        writer.write(b"hello")
        said = await reader.readexactly(5)
        writer.close()
        await writer.wait_closed()
        return said


Run: TypeAlias = Callable[[Callable[[Opened], Awaitable[None]]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Run what is awaited with a door, on both loops that a service may have."""
    made = make_certificate(tmp_path, "a", "localhost")

    def go(course: Callable[[Opened], Awaitable[None]]) -> None:
        async def with_a_door() -> None:
            opened = Opened(made)
            try:
                await course(opened)
            finally:
                opened.keeping.cancel()
                await asyncio.gather(opened.keeping, return_exceptions=True)
                opened.listening.close()

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(with_a_door())

    return go


def test_who_shakes_hands_gets_in(run: Run) -> None:
    """And is heard."""

    async def course(opened: Opened) -> None:
        assert await opened.ask() == b"hello"

    run(course)


def test_who_speaks_without_tls_is_told(run: Run) -> None:
    """However much it says; then it is over."""

    async def course(opened: Opened) -> None:
        reader, writer = await asyncio.open_connection(*opened.address)
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n" + b"x" * 1_000_000)
        assert await reader.read() == TOLD
        writer.close()

    run(course)


def test_whatever_stays_open_who_comes_is_let_in(run: Run) -> None:
    """Three times as many as there may be, that say nothing or half a handshake: the oldest go first."""

    async def course(opened: Opened) -> None:
        left = []
        for number in range(3 * door.MOST):
            reader, writer = await asyncio.open_connection(*opened.address)
            writer.write(b"\x16\x03\x01"[: number % 4])
            left.append((reader, writer))
            if number % 64 == 0:
                assert await opened.ask() == b"hello"
        assert await opened.ask() == b"hello"
        assert len(opened.door._under_way) <= door.MOST
        for reader, _ in left[: door.MOST]:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        for _, writer in left:
            writer.close()

    run(course)


def test_a_handshake_comes_in_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says nothing, and one that stops in the middle, are closed."""
    monkeypatch.setattr(door, "HANDSHAKE_S", 0.3)

    async def course(opened: Opened) -> None:
        for begun in (b"", b"\x16\x03\x01\x02\x00\x01"):
            reader, writer = await asyncio.open_connection(*opened.address)
            writer.write(begun)
            async with asyncio.timeout(60):
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
            writer.close()

    run(course)


def test_what_is_no_handshake_after_all_is_closed(run: Run) -> None:
    """Others are let in all the same."""

    async def course(opened: Opened) -> None:
        reader, writer = await asyncio.open_connection(*opened.address)
        writer.write(b"\x16" + b"nonsense" * 100)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        assert await opened.ask() == b"hello"

    run(course)
