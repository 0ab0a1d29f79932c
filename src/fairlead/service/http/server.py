"""uvicorn, as a service here runs it: told when to stop, endless streams ended first.

Decides the settings. Never handles a signal: the process does. Invariant: a stop ends after a bounded time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Generator
from typing import Any

import uvicorn
from fastapi import FastAPI

STOP_WITHIN_S = 5


class Server(uvicorn.Server):
    """uvicorn, stopped by us."""

    def __init__(self, app: FastAPI, before_end: Callable[[], None], **settings: Any) -> None:
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
                **settings,
            )
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


def on_signals(stop: Callable[[], None]) -> None:
    """The first SIGTERM or SIGINT stops in order, the second at once: what runs goes on in any case."""
    loop, told = asyncio.get_running_loop(), False

    def act(number: int) -> None:
        nonlocal told
        if told:
            os._exit(128 + number)
        told = True
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, act, number)
