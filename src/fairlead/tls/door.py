"""The way in over TLS: a connection shakes hands before anything behind it hears of it.

Decides which connections come in: those whose handshake was good and in time. Never reads what is said afterwards.
Invariant: however many connections are opened and left without a handshake, there are `MOST` of them at a time, and
the oldest goes first, so that whoever shakes hands at once gets in; who speaks without TLS is told so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

from fairlead.tls.certificate import Certificate

log = logging.getLogger("fairlead.service")

MOST = 128
"""Handshakes that may be under way."""
HANDSHAKE_S = 10.0
GOODBYE_S = 0.5
"""For the other end to say that it has heard of the end."""
AGAIN_S = 0.5
"""Before the next try, where there was no descriptor or no memory for a connection."""
_HANDSHAKE = b"\x16"
"""The first byte of whoever speaks TLS."""
_PIECE = 65_536


class Door:
    """Lets in connections from one listening socket."""

    def __init__(
        self, listening: socket.socket, certificate: Certificate, protocol: Callable[[], asyncio.Protocol], told: bytes
    ) -> None:
        """`protocol`: makes what stands behind it; `told`: what is answered to who does not speak TLS."""
        self._listening, self._certificate, self._protocol, self._told = listening, certificate, protocol, told
        listening.setblocking(False)
        self._under_way: dict[asyncio.Task[None], None] = {}
        """The oldest first."""

    async def keep(self) -> None:
        """Let in whoever comes, until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, _ = await loop.sock_accept(self._listening)
                except OSError as error:
                    log.warning("no connection can be accepted: %s", error.strerror)
                    await asyncio.sleep(AGAIN_S)
                    continue
                if len(self._under_way) >= MOST:
                    oldest = next(iter(self._under_way))
                    oldest.cancel()
                    self._under_way.pop(oldest)
                task = loop.create_task(self._let_in(connection))
                self._under_way[task] = None
                task.add_done_callback(lambda done: self._under_way.pop(done, None))
        finally:
            for task in self._under_way:
                task.cancel()

    async def _let_in(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:  # That it went away is its own business.
            stack.callback(connection.close)
            async with asyncio.timeout(HANDSHAKE_S):
                first = await _first_byte(connection)
                if first and first != _HANDSHAKE:
                    await _tell(connection, self._told)
                if first != _HANDSHAKE:
                    return
                stack.pop_all()  # From now on it is the transport that closes it.
                await loop.connect_accepted_socket(
                    self._protocol,
                    connection,
                    ssl=self._certificate.context,
                    ssl_handshake_timeout=HANDSHAKE_S,
                    ssl_shutdown_timeout=GOODBYE_S,
                )


async def _first_byte(connection: socket.socket) -> bytes:
    """The byte that it begins with, which stays unread; empty: it is over."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)


async def _tell(connection: socket.socket, said: bytes) -> None:
    """Say it, and read what comes until the other end is done: who is cut off while it sends never reads why."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, said)
    connection.shutdown(socket.SHUT_WR)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GOODBYE_S):
            while await loop.sock_recv(connection, _PIECE):
                pass
