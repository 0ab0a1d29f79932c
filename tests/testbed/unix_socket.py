"""HTTP over the Unix socket of a service: cheap to ask again and again, unlike a command."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Unix(http.client.HTTPConnection):
    """A connection to the service on this socket."""

    def __init__(self, path: Path, timeout: float = 10) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(path: Path, what: str) -> Any:
    """What `GET` of this address gives; an answer that is no success is an error."""
    connection = Unix(path)
    try:
        connection.request("GET", what)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    assert answer.status < 300, (what, answer.status, content)
    return json.loads(content) if "json" in (answer.getheader("content-type") or "") else content.decode()


def wait_until_served(path: Path, why_not: Callable[[], str | None], seconds: float = 30) -> None:
    """Until the service answers; `why_not` says why it never will."""
    end = time.monotonic() + seconds
    while True:
        try:
            ask(path, "/healthz")
            return
        except (OSError, http.client.HTTPException):
            reason = why_not()
            assert reason is None, reason
            assert time.monotonic() < end, "it does not serve"
            time.sleep(0.02)
