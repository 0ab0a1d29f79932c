"""The pages, as the service sees them: a process of its own that is started when somebody first looks.

Decides where they are, and when their process is started. Never shows anything itself, and gives that process no right:
it asks as whoever looks. Invariant: the service is none the slower while nobody looks; the process ends with it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import socket
import subprocess
import sys
import tempfile
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
    option: str = "--pages-port"
    """What the command calls their port."""
    inside: list[socket.socket] = field(default_factory=list)
    """Where their process reaches the service: a Unix socket on which the kernel's word does not count."""
    _socket: socket.socket | None = None
    _way: str | int = ""
    """The path of that socket, or a descriptor that leads to it."""
    _tcp: Tcp = field(default_factory=Tcp)

    def listen(self, tcp: Tcp, port: int | None, beside: Path | None, stack: ExitStack) -> None:
        """Have an address (but for None), if they are installed, and a way to the service for their process alone: a
        socket beside the Unix socket of the service, or one without a name; `stack` gives both back. What is in the
        way is said, and does not keep the service from starting.
        """
        if port is None:
            return
        if importlib.util.find_spec("nicegui") is None:
            self.why_none = NOT_INSTALLED
            return
        try:
            inside, self._way = _way_in(beside, stack) if beside is not None else _nameless(stack)
            self._socket = tcp.listen(port)
        except (ListenError, OSError) as problem:
            self.why_none = f"the pages have no address: {str(problem).replace('--port', self.option)}"
            log.warning("%s", self.why_none)
            return
        stack.callback(self._socket.close)
        self.inside.append(inside)
        self._tcp, self.url = tcp, tcp.url(self._socket)

    async def keep(self) -> None:
        """Start their process when somebody comes, and again if it ends, until cancelled."""
        if not self.url:
            return
        while True:
            await self._somebody()
            process = await asyncio.to_thread(self._start)
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

    def _start(self) -> subprocess.Popen[bytes]:
        assert self._socket is not None
        fd, passed, where = self._socket.fileno(), [self._socket.fileno()], self._way
        if isinstance(where, int):
            passed.append(where)
            where = f"/proc/self/fd/{where}"
        command = [sys.executable, "-m", "fairlead.web", "--fd", str(fd), "--service", where]
        if (certificate := self._tcp.certificate) is not None:
            command += ["--tls-cert", str(certificate.cert), "--tls-key", str(certificate.key)]
        command += ["--guests"] if self.guests else []
        # It ends when its standard input does: with this process, however that ends.
        return subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=passed)


def _way_in(beside: Path, stack: ExitStack) -> tuple[socket.socket, str]:
    """A Unix socket that no other user may connect to, and its path. Raises `ListenError` or OSError."""
    path = Path(f"{beside.absolute()}{PAGES}")
    listening = on_unix(path)
    stack.callback(remove_socket, path, path.lstat().st_ino)
    stack.callback(listening.close)
    path.chmod(0o600)
    return listening, str(path)


def _nameless(stack: ExitStack) -> tuple[socket.socket, int]:
    """The same where there is no place for a path, and a descriptor that leads to it: its file is removed at once, so
    that nothing stays behind, however this process ends. Raises `ListenError` or OSError.
    """
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        path = Path(folder) / f"s{PAGES}"
        listening = on_unix(path)
        stack.callback(listening.close)
        path.chmod(0o600)
        leads = os.open(path, os.O_PATH | os.O_CLOEXEC)
        stack.callback(os.close, leads)
    return listening, leads
