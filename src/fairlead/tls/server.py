"""uvicorn behind TLS.

Decides which of its sockets speak TLS: those over TCP, once there is a certificate. Never does anything else about
requests. Invariant: nothing that comes over TCP is read without TLS then; Unix sockets need none.
"""

from __future__ import annotations

import asyncio
import socket

import uvicorn

from fairlead.tls.certificate import Certificate
from fairlead.tls.door import Door

PLAIN = "this port speaks TLS alone; write https:// in front of its address"
_TOLD = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{PLAIN}\n".encode()


class TlsServer(uvicorn.Server):
    """uvicorn, with a certificate for what comes over TCP, or without."""

    def __init__(self, config: uvicorn.Config, certificate: Certificate | None, told: bytes = _TOLD) -> None:
        """`told`: what is answered to who does not speak TLS."""
        super().__init__(config)
        self._certificate, self._told = certificate, told
        self._doors: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        plain, secure = sockets or [], list[socket.socket]()
        if self._certificate is not None:
            plain, secure = [s for s in plain if not _is_tcp(s)], [s for s in plain if _is_tcp(s)]
        await super().startup(plain)
        for each in secure:
            assert self._certificate is not None
            door = Door(each, self._certificate, self._protocol, self._told)
            self._doors.append(asyncio.create_task(door.keep(), name="tls"))
        if self._doors and self._certificate is not None:
            self._doors.append(asyncio.create_task(self._certificate.watch(), name="certificate"))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Nobody comes in any more."""
        for door in self._doors:
            door.cancel()
        await asyncio.gather(*self._doors, return_exceptions=True)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made


def _is_tcp(listening: socket.socket) -> bool:
    return listening.family != socket.AF_UNIX
