"""The pages, as the service sees them: a process of its own that is started when somebody first looks.

Decides where they are, and when their process is started. Never shows anything itself, and gives that process no right:
it asks as whoever looks. Invariant: the service is none the slower while nobody looks; the process ends with it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from fairlead.service.changes import Changes
from fairlead.service.http.sockets import ListenError, Tcp, on_unix, remove_socket
from fairlead.service.identity import PAGES
from fairlead.service.sessions import Sessions

log = logging.getLogger("fairlead.service")
HOW_TO_GET = "pip install 'fairlead[web]'"
NOT_INSTALLED = f"the pages are not installed; run {HOW_TO_GET} where the service runs, then start it again"
TURNED_OFF = "the pages are turned off (`--no-pages`)"
NO_WAY_IN = "over TLS the pages need the Unix socket of the service (`fairlead up --socket PATH`)"
AGAIN_S = 2.0
"""Before pages that ended are started again."""


@dataclass(slots=True)
class Pages:
    """The pages of one service."""

    sessions: Sessions = field(default_factory=lambda: Sessions(None))
    changes: Changes = field(default_factory=Changes)
    guests: bool = False
    """Strangers may look: whoever is nobody is offered that."""
    url: str = ""
    """Where they are; empty: nowhere."""
    why_none: str = TURNED_OFF
    inside: list[socket.socket] = field(default_factory=list)
    """Where their process reaches the service, if it has a Unix socket; the kernel's word does not count there."""
    _socket: socket.socket | None = None
    _tcp: Tcp = field(default_factory=Tcp)

    def listen(self, tcp: Tcp, port: int | None, beside: Path | None, stack: ExitStack) -> None:
        """Have an address (but for None), if they are installed, and a way to the service beside its Unix socket, for
        their process alone; `stack` gives both back. An address in use is said, and does not keep the service from
        starting.
        """
        if port is None:
            return
        if importlib.util.find_spec("nicegui") is None:
            self.why_none = NOT_INSTALLED
            return
        if beside is None and tcp.certificate is not None:
            self.why_none = NO_WAY_IN
            return
        try:
            self._socket = tcp.listen(port)
        except ListenError as problem:
            self.why_none = f"the pages have no address: {str(problem).replace('--port', '--pages-port')}"
            log.warning("%s", self.why_none)
            return
        stack.callback(self._socket.close)
        self._tcp, self.url = tcp, tcp.url(self._socket)
        if beside is not None:
            path = Path(f"{beside.absolute()}{PAGES}")
            unix = on_unix(path)
            path.chmod(0o600)
            stack.callback(remove_socket, path, path.lstat().st_ino)
            stack.callback(unix.close)
            self.inside.append(unix)

    async def keep(self, service: socket.socket) -> None:
        """Start their process when somebody comes, and again if it ends, until cancelled. `service`: where the service
        listens, if it has no Unix socket.
        """
        if self._socket is None:
            return
        where = self.inside[0].getsockname() if self.inside else self._tcp.url(service)
        while True:
            await self._somebody()
            process = await asyncio.to_thread(self._start, where)
            try:
                status = await asyncio.to_thread(process.wait)
            finally:
                process.terminate()
                if process.stdin is not None:
                    process.stdin.close()
            log.warning("the process of the pages ended with status %d; it starts again when somebody looks", status)
            await asyncio.sleep(AGAIN_S)

    async def _somebody(self) -> None:
        """Wait until somebody connects to the address."""
        assert self._socket is not None
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._socket, came.set)
        try:
            await came.wait()
        finally:
            loop.remove_reader(self._socket)

    def _start(self, where: str) -> subprocess.Popen[bytes]:
        assert self._socket is not None
        fd = self._socket.fileno()
        command = [sys.executable, "-m", "fairlead.web", "--fd", str(fd), "--service", where]
        if (certificate := self._tcp.certificate) is not None:
            command += ["--tls-cert", str(certificate.cert), "--tls-key", str(certificate.key)]
        command += ["--guests"] if self.guests else []
        # It ends when its standard input does: with this process, however that ends.
        return subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(fd,))
