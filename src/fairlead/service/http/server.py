"""uvicorn, as a service here runs it.

Decides the settings, and when a Unix socket is made anew. Never handles a signal (the process does). Invariant: a stop
ends after a bounded time, endless streams first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from fairlead.service.http import errors
from fairlead.service.http.connections import Connections, Guarded
from fairlead.service.http.sockets import ListenError, on_unix, remove_socket
from fairlead.tls.certificate import Certificate
from fairlead.tls.server import PLAIN, TlsServer

log = logging.getLogger("fairlead.service")

STOP_WITHIN_S = 5
LOOK_S = 2.0
"""So often it is looked whether the files of Unix sockets are still there."""


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

    async def keep_reachable(self, sockets: Sequence[socket.socket], every_s: float = LOOK_S) -> None:
        """Make Unix sockets anew whose files somebody removed, until cancelled: with a user's last log-out all of
        `$XDG_RUNTIME_DIR` goes, and what goes on here would be reached by nobody, nor could another take its place.
        """
        paths = [Path(each.getsockname()) for each in sockets if each.family == socket.AF_UNIX]
        # One without a file from the beginning is reached otherwise.
        modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in paths if os.path.lexists(path)}
        with ExitStack() as made:
            while True:
                await asyncio.sleep(every_s)
                for path, mode in modes.items():
                    # While its directory is away, it cannot be made; others may have put something else there.
                    if not os.path.lexists(path) and path.parent.is_dir():
                        with contextlib.suppress(ListenError, OSError):
                            await self._listen_anew(path, mode, made)

    async def _listen_anew(self, path: Path, mode: int, made: ExitStack) -> None:
        fresh = on_unix(path)
        made.callback(remove_socket, path, path.lstat().st_ino)
        made.callback(fresh.close)
        path.chmod(mode)
        self.servers.append(await asyncio.get_running_loop().create_server(self._protocol, sock=fresh))
        log.warning("the socket %s was removed; it is made anew", path)
