"""Connections to a real API server over HTTP/1.1.

Decides how bytes are carried: kept connections, TLS, tokens, a proxy, time limits. Never looks into them, and finds no
credentials (`access` does). Every failure to get an answer is `Unreachable` with the address and the cause.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import urlencode

import aiohttp

from fairlead.kubernetes.access import Access, AccessError, CredentialProgram
from fairlead.kubernetes.client import Answer, Request, Unreachable, refusal
from fairlead.kubernetes.reflector import lines_of

UNAUTHORIZED = 401
CONNECT_S = 10.0
AGENT = "fairlead"
"""How the server's audit log names us."""
LEFT_S = 60.0
"""What is under way with an old certificate has so long to end."""
AT_ONCE = 64
"""Requests in flight; watches have connections of their own."""
KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""After 30 s without a word the other host is asked whether it is there, every 5 s, and three times."""


class Connection:
    """The transport to one server."""

    def __init__(self, access: Access, at_once: int = AT_ONCE) -> None:
        """Must be made inside a running event loop."""
        self._access = access
        self._at_once = at_once
        self._tls = access.tls if access.tls is not None else False
        self._begin()
        self._leaving: set[asyncio.Task[None]] = set()
        self._watching = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls, force_close=True, socket_factory=_socket),
            read_bufsize=2**20,
            proxy=access.proxy or None,
        )

    def _begin(self) -> None:
        """Connections from now on, and the certificate that they show."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._at_once, ssl=self._tls, keepalive_timeout=60, socket_factory=_socket
            ),
            auto_decompress=True,
            proxy=self._access.proxy or None,
        )
        token = self._access.token
        self._shown = token.pair if isinstance(token, CredentialProgram) else None

    async def send(self, request: Request, timeout_s: float) -> Answer:
        """One request and its whole answer."""
        limits = aiohttp.ClientTimeout(total=timeout_s, connect=CONNECT_S)
        try:
            token = await self._token()
            async with self._session.request(
                request.method,
                self._url(request),
                data=request.body or None,
                headers=self._headers(request, token),
                timeout=limits,
                server_hostname=self._access.tls_name or None,
            ) as response:
                self._look(response.status, token)
                headers = {name.lower(): value for name, value in response.headers.items()}
                return Answer(response.status, headers, await response.read())
        except (aiohttp.ClientError, AccessError, TimeoutError, OSError) as e:
            raise self._unreachable(request, e) from e

    @asynccontextmanager
    async def stream(self, request: Request, idle_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=idle_s)
        try:
            token = await self._token()
            async with self._watching.request(
                request.method,
                self._url(request),
                headers=self._headers(request, token),
                timeout=limits,
                server_hostname=self._access.tls_name or None,
            ) as response:
                self._look(response.status, token)
                if response.status >= 300:
                    headers = {name.lower(): value for name, value in response.headers.items()}
                    raise refusal(response.status, await response.read(), headers)
                async with aclosing(lines_of(response.content.iter_any())) as lines:
                    yield lines
        except (aiohttp.ClientError, AccessError, TimeoutError, OSError) as e:
            raise self._unreachable(request, e) from e

    async def close(self) -> None:
        """Close all connections."""
        for leaving in self._leaving:
            leaving.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        await self._session.close()
        await self._watching.close()
        # TLS connections close behind the scenes; the loop must turn once more for that.
        await asyncio.sleep(0)

    def _url(self, request: Request) -> str:
        query = f"?{urlencode(request.query)}" if request.query else ""
        return f"{self._access.server}{request.path}{query}"

    async def _token(self) -> str:
        token = self._access.token
        if not isinstance(token, CredentialProgram):
            return token()
        text = await token.fresh()
        if token.pair is not self._shown:
            # What is kept open was begun with the certificate before, which ends.
            leaving = asyncio.create_task(_left(self._session), name="connections of an old certificate")
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            self._begin()
        return text

    def _look(self, status: int, token: str) -> None:
        """A token that the server does not know is not sent for ever."""
        if status == UNAUTHORIZED and isinstance(self._access.token, CredentialProgram):
            self._access.token.unknown(token)

    def _headers(self, request: Request, token: str) -> list[tuple[str, str]]:
        headers = [("Accept", "application/json"), ("User-Agent", AGENT), *self._access.impersonated]
        if request.body:
            headers.append(("Content-Type", request.content_type))
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        return headers

    def _unreachable(self, request: Request, cause: BaseException) -> Unreachable:
        return Unreachable(f"no answer from {self._access.server} to {request.method} {request.path}: {_said(cause)}")


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """One that notices when the host at the other end is no more: it says no word then, and a watch only listens."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


async def _left(session: aiohttp.ClientSession) -> None:
    """Close it once what is under way has had its time."""
    try:
        await asyncio.sleep(LEFT_S)
    finally:
        await session.close()


def _said(cause: BaseException) -> str:
    """What went wrong, in the system's words and without what is said of the server anyway."""
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {cause.certificate_error}"
    if isinstance(cause, aiohttp.ClientConnectorError):
        number = cause.os_error.errno
        if number and number > 0 and not isinstance(cause.os_error, socket.gaierror):
            return os.strerror(number)
        return cause.os_error.strerror or str(cause.os_error)
    return str(cause) or type(cause).__name__
