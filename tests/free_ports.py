"""Ports of this machine for programs that are told which to listen on.

Decides which: none from where the system takes the ports of connections, so that nobody gets one by chance before the
program listens, and for each process of the tests others. Invariant: none is given out twice by one process.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

FIRST, LAST = 12_000, 32_000
"""Linux takes ports of connections from 32,768 on unless it is told otherwise."""
STRIDE = 7
"""A port beside a free one may be taken too, such as that of the pages behind the service's own."""


def _numbers() -> Iterator[int]:
    size = LAST - FIRST
    start = os.getpid() * 1_009 % size
    for step in range(size // STRIDE):
        yield FIRST + (start + step * STRIDE) % size


_NUMBERS = _numbers()


def free_port() -> int:
    """One on which nobody listens at the moment, nor on the one behind it."""
    for port in _NUMBERS:
        try:
            for each in (port, port + 1):
                socket.create_server(("127.0.0.1", each)).close()
        except OSError:
            continue
        return port
    raise RuntimeError(f"no port from {FIRST} to {LAST} is free")
