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

import uvicorn

from fairlead.web.app import make_app


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m fairlead.web")
    parser.add_argument("--fd", type=int, required=True, help="A socket that listens.")
    parser.add_argument("--service", required=True, help="The Unix socket of the service, or its URL.")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s", stream=sys.stderr)
    listening = socket.socket(fileno=given.fd)
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(given.service),
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
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
