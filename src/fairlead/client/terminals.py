"""The terminal of a job, from the side of a program: what is written comes in, what is typed goes out.

Decides how both ways go over one connection. Never touches a terminal of its own, and never reconnects: who sat there
may want to know. Invariant: what is sent arrives whole and in order, or the connection is broken.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import ssl
from collections.abc import AsyncIterator, Iterator

from fairlead.client import http
from fairlead.client.address import Address
from fairlead.client.calls import path_of
from fairlead.client.errors import Refused, Unreachable
from fairlead.client.http import Answer, Call
from fairlead.client.sync import broken
from fairlead.local.supervisor import frames
from fairlead.wire.cluster import Problem

ALIVE_EVERY_S = 30.0
"""A sign of life this often: a terminal gives up who says nothing for two minutes."""
_CHUNK = 65_536


def call(key: str) -> Call[None]:
    """The request that opens it."""
    return Call("POST", path_of("jobs", key, "terminal"), repeat=False)


def opening(request: Call[None], address: Address) -> bytes:
    """What is sent first; the body follows piece by piece."""
    head, end, _ = http.request(request, address).partition(b"\r\n\r\n")
    return head + b"\r\nTransfer-Encoding: chunked\r\nContent-Type: application/octet-stream" + end


def chunk(content: bytes) -> bytes:
    """A part of the body."""
    return b"%x\r\n%b\r\n" % (len(content), content)


class Arriving:
    """What arrives. `seen`: something was written; `over`: nothing more is, the job has closed its terminal."""

    def __init__(self, address: Address) -> None:
        self.over = self.seen = False
        self._address, self._answer, self._pieces = address, Answer(), frames.Pieces()

    def feed(self, data: bytes) -> bytes:
        """What was written, of what was received. Raises what an answer with an error says, and `CutShort`."""
        content = self._answer.feed(data)
        if self._answer.complete:
            self._answer.check(self._address)
        written = b""
        for letter, said in self._pieces.feed(content):
            if letter == frames.OUTPUT:
                written += said
                self.seen = True
            elif letter == frames.END:
                self.over = True
            elif letter == frames.REFUSED:
                raise Refused(_full(said.decode("utf-8", "replace")))
        if self._answer.complete and not self.over:
            raise http.CutShort
        return written


def _full(sentence: str) -> Problem:
    kind = "too-many"
    return Problem(type=f"urn:fairlead:problem:{kind}", title="Too many", status=429, detail=sentence, code=kind)


@contextlib.contextmanager
def _unbroken(address: Address) -> Iterator[None]:
    try:
        yield
    except (OSError, http.CutShort) as error:
        raise broken(error, address) from None


def _received(connection: ssl.SSLSocket) -> bytes | None:
    """What came; None: TLS had something to say of its own, which is no reason to wait for more."""
    if not connection.pending():
        select.select([connection], [], [])
    connection.setblocking(False)
    try:
        return connection.recv(_CHUNK)
    except ssl.SSLWantReadError:
        return None
    finally:
        connection.setblocking(True)


class Terminal:
    """One connection, for programs without an event loop; close it when done. `socket`: to wait for what comes."""

    def __init__(self, connection: socket.socket, address: Address, key: str) -> None:
        self.socket, self._address = connection, address
        self._arriving = Arriving(address)
        with _unbroken(address):
            connection.sendall(opening(call(key), address))

    @property
    def over(self) -> bool:
        """Whether the job has closed it."""
        return self._arriving.over

    @property
    def seen(self) -> bool:
        """Whether anything of what it wrote has come."""
        return self._arriving.seen

    def receive(self) -> bytes:
        """What the job has written now; empty where nothing has come. Raises `ClientError`."""
        with _unbroken(self._address):
            received = _received(self.socket) if isinstance(self.socket, ssl.SSLSocket) else self.socket.recv(_CHUNK)
            return b"" if received is None else self._arriving.feed(received)

    def type(self, content: bytes) -> None:
        """As if it were typed. Raises `Unreachable`."""
        self._send(frames.piece(frames.INPUT, content))

    def resize(self, rows: int, columns: int) -> None:
        """How large it is shown. Raises `Unreachable`."""
        self._send(frames.size(rows, columns))

    def alive(self) -> None:
        """A sign of life, every `ALIVE_EVERY_S`. Raises `Unreachable`."""
        self._send(frames.piece(frames.ALIVE))

    def _send(self, content: bytes) -> None:
        with _unbroken(self._address):
            self.socket.sendall(chunk(content))


class AsyncTerminal:
    """The same for programs with an event loop; it gives its signs of life by itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: Address, key: str) -> None:
        self._reader, self._writer, self._address = reader, writer, address
        self._arriving = Arriving(address)
        writer.write(opening(call(key), address))
        self._living = asyncio.ensure_future(self._live())

    async def written(self) -> AsyncIterator[bytes]:
        """What the job writes, until it closes its terminal. Raises `ClientError`."""
        while not self._arriving.over:
            with _unbroken(self._address):
                content = self._arriving.feed(await self._reader.read(_CHUNK))
            if content:
                yield content

    async def type(self, content: bytes) -> None:
        """As if it were typed. Raises `Unreachable`."""
        await self._send(frames.piece(frames.INPUT, content))

    async def resize(self, rows: int, columns: int) -> None:
        """How large it is shown. Raises `Unreachable`."""
        await self._send(frames.size(rows, columns))

    def close(self) -> None:
        """Leave; the terminal stays."""
        self._living.cancel()

    async def _live(self) -> None:
        with contextlib.suppress(Unreachable):
            while True:
                await asyncio.sleep(ALIVE_EVERY_S)
                await self._send(frames.piece(frames.ALIVE))

    async def _send(self, content: bytes) -> None:
        with _unbroken(self._address):
            self._writer.write(chunk(content))
            await self._writer.drain()
