"""uvicorn, as a service here runs it.

Decides the settings. Never handles a signal (the process does), and never listens by itself. Invariant: a stop ends
after a bounded time, endless streams first.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Generator
from functools import partial

import uvicorn
from fastapi import FastAPI

from fairlead.service.http import errors
from fairlead.service.http.connections import Connections, Guarded
from fairlead.tls.certificate import Certificate
from fairlead.tls.server import PLAIN, TlsServer

STOP_WITHIN_S = 5


class Server(TlsServer):
    """uvicorn, stopped by us."""

    def __init__(
        self,
        app: FastAPI,
        before_end: Callable[[], None],
        connections: Connections,
        certificate: Certificate | None = None,
    ) -> None:
        """`before_end` ends the endless streams, or nobody would ever be done."""
        super().__init__(
            uvicorn.Config(
                app,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                log_level="warning",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=STOP_WITHIN_S,
                http=partial(Guarded, connections),  # type: ignore[arg-type]
            ),
            certificate,
            errors.written(errors.answer("malformed", PLAIN, headers={"Connection": "close"})),
        )
        self._before_end = before_end

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the process's business."""
        yield

    def stop(self) -> None:
        """Stop in order."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the endless streams first."""
        self._before_end()
        await super().shutdown(sockets)
