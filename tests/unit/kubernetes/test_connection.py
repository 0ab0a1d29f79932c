"""Connections to the API server: what is carried over real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fairlead.kubernetes.access import Access
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.connection import Connection
from fairlead.kubernetes.kinds import PODS

KEEPALIVE = "02"
"""The timer of a socket that asks the other host whether it is there, in the kernel's table."""


def timers(port: int) -> list[str]:
    """Of each connection to this port of this host, the timer that runs."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[5].partition(":")[0] for row in rows if row[2] == f"0100007F:{port:04X}" and row[3] == "01"]


def test_a_watch_notices_that_the_host_of_its_server_is_gone() -> None:
    """It only listens, so nothing would tell it for ten minutes, while other connections reach another server."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n")
        await writer.drain()
        await reader.read()
        writer.close()

    async def watch() -> list[str]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = Connection(Access(f"http://127.0.0.1:{port}"))
        async with Client(connection).watch(PODS, "", {}, 60.0) as lines:
            async for _ in lines:
                found = timers(port)
                break
        await connection.close()
        server.close()
        return found

    assert asyncio.run(watch()) == [KEEPALIVE]
