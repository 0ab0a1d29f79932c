"""The process of the pages: `python -m fairlead.web --fd N --service WHERE`, started by the service.

Decides nothing. Invariant: it ends when its standard input does, so it never outlives the service.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
from pathlib import Path

import uvicorn

from fairlead.tls.certificate import Certificate
from fairlead.tls.server import TlsServer
from fairlead.web.app import make_app


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m fairlead.web")
    parser.add_argument("--fd", type=int, required=True, help="A socket that listens.")
    parser.add_argument("--service", required=True, help="The Unix socket of the service, or its URL.")
    parser.add_argument("--tls-cert", type=Path, help="The certificate of the socket, if it speaks TLS.")
    parser.add_argument("--tls-key", type=Path, help="Its key.")
    parser.add_argument("--guests", action="store_true", help="Strangers may look: offer it.")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s", stream=sys.stderr)
    listening = socket.socket(fileno=given.fd)
    server = TlsServer(
        uvicorn.Config(
            make_app(given.service, guests=given.guests),
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        ),
        Certificate(given.tls_cert, given.tls_key) if given.tls_cert is not None else None,
    )
    asyncio.run(_serve(server, listening))


async def _serve(server: uvicorn.Server, listening: socket.socket) -> None:
    def ended() -> None:
        if not os.read(0, 1024):
            asyncio.get_running_loop().remove_reader(0)
            server.should_exit = True

    asyncio.get_running_loop().add_reader(0, ended)
    await server.serve(sockets=[listening])


if __name__ == "__main__":
    main()
