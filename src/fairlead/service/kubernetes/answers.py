"""The HTTP half of `fairlead kubernetes run`: probes, figures and questions.

Decides what is served on which sockets. Never schedules. Invariant: it is imported only once the scheduler is at work,
for its imports take as long as all that comes before the first pod is bound.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from fastapi import FastAPI

from fairlead.kubernetes.access import Access
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.connection import Connection
from fairlead.kubernetes.control_loop import Told
from fairlead.kubernetes.controller import Controller
from fairlead.service.duties import again
from fairlead.service.http.app import make_app
from fairlead.service.http.connections import MOST, Connections, raise_descriptors
from fairlead.service.http.server import Server
from fairlead.service.http.sockets import Tcp
from fairlead.service.kubernetes.gate import ApiJudge, Entrance, Judge
from fairlead.service.kubernetes.place import ClusterPlace
from fairlead.service.pages import Pages
from fairlead.version import version

if TYPE_CHECKING:
    from fairlead.service.kubernetes.serve import ClusterServiceOptions

log = logging.getLogger("fairlead.kubernetes")


def make_cluster_app(place: ClusterPlace, judge: Judge) -> FastAPI:
    """The application of one scheduler on a cluster, with the door before it."""
    app = make_app(place)
    app.add_middleware(Entrance, judge=judge, sessions=place.pages.sessions)
    return app


async def answer(
    controller: Controller,
    access: Access,
    tcp: Tcp,
    sockets: Sequence[socket.socket],
    options: ClusterServiceOptions,
    *,
    started_at_ms: int,
    early: Sequence[Told],
) -> None:
    """Serve until cancelled; `early` is what happened before."""
    pages = Pages(guests=options.open_reads)
    place = ClusterPlace(
        version=version(),
        started_at_ms=started_at_ms,
        open_reads=options.open_reads,
        controller=controller,
        pages=pages,
    )
    place.catch_up(early)
    asking = Client(Connection(access, 4))
    connections = Connections(raise_descriptors(), of_user=MOST)
    server = Server(make_cluster_app(place, ApiJudge(asking)), place.end_streams, connections, tcp.certificate)
    with ExitStack() as stack:
        pages.listen(tcp, options.pages_port, None, stack)
        serving = asyncio.create_task(server.serve(sockets=[*sockets, *pages.inside]), name="serve")
        samples, keeping = again("samples", lambda: _sample(place)), again("pages", pages.keep)
        duties = [asyncio.create_task(samples), asyncio.create_task(keeping)]
        also = f"; pages at {pages.url} (`fairlead web` opens them)" if pages.url else ""
        log.info("probes, figures and questions on %s%s", tcp.url(sockets[0]), also)
        try:
            # It ends by itself only on a fault, which ends the process.
            await asyncio.shield(serving)
        finally:
            for duty in duties:
                duty.cancel()
            server.should_exit = True
            await asyncio.gather(serving, *duties, return_exceptions=True)
            await asking.transport.close()


async def _sample(place: ClusterPlace) -> None:
    """A sample each minute, as long as there is something to count."""
    while place.controller.control_loop is None or not place.controller.control_loop.ready:
        await asyncio.sleep(1.0)
    await place.keep_samples()
