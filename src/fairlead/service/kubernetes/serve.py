"""`fairlead kubernetes run`: a controller and its HTTP service in one process, from the start to an orderly end.

Decides the order of start and stop, and with which status the process ends. Invariant: on SIGTERM and SIGINT nothing is
sent to the cluster any more before the lease is given back; whoever lost the lease ends with 1, to be started anew.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI

from fairlead.collector import collector_off
from fairlead.config import ConfigurationError
from fairlead.kubernetes.access import Access, AccessError, find_access
from fairlead.kubernetes.client import ApiError, Client, NotFound, Unreachable
from fairlead.kubernetes.connection import Connection
from fairlead.kubernetes.controller import Controller, ControllerOptions, LeaseLost, UnknownCaller
from fairlead.runtime.process import log_to_stderr, loop_factory, search_seldom
from fairlead.service.http.app import make_app
from fairlead.service.http.connections import MOST, Connections, raise_descriptors
from fairlead.service.http.server import ListenError, Server, Tcp, on_signals
from fairlead.service.kubernetes.gate import ApiJudge, Entrance, Judge
from fairlead.service.kubernetes.place import ClusterPlace
from fairlead.service.pages import Pages
from fairlead.service.place import now_ms
from fairlead.version import version

log = logging.getLogger("fairlead.kubernetes")

LOOK_S = 0.05


def make_cluster_app(place: ClusterPlace, judge: Judge) -> FastAPI:
    """The application of one scheduler on a cluster, with the door before it."""
    app = make_app(place)
    app.add_middleware(Entrance, judge=judge, sessions=place.pages.sessions)
    return app


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterServiceOptions:
    """How to serve."""

    controller: ControllerOptions
    kubeconfig: str | None = None
    context: str | None = None
    host: str = "127.0.0.1"
    port: int | None = 9080
    """None: no HTTP at all."""
    tls_cert: Path | None = None
    """The certificate (PEM), read anew when it changes; None: no TLS."""
    tls_key: Path | None = None
    """Its key; None: it is in the same file."""
    allow_plain_http: bool = False
    """Listen beyond loopback without TLS."""
    pages_port: int | None = None
    """TCP port of the pages, on the same address; 0: any free one; None: no pages."""
    open_reads: bool = False
    log_level: str = "info"


def serve_cluster(options: ClusterServiceOptions) -> int:
    """Schedule until SIGTERM or SIGINT; the exit status: 0 after an orderly stop, 1 if it could not start or go on."""
    log_to_stderr(options.log_level)
    try:
        access = find_access(options.kubeconfig, options.context)
        tcp = Tcp.of(options.host, options.tls_cert, options.tls_key, allow_plain=options.allow_plain_http)
        sockets = [tcp.listen(options.port)] if options.port is not None else []
        with ExitStack() as stack, asyncio.Runner(loop_factory=loop_factory()) as runner:
            pages = Pages(guests=options.open_reads)
            pages.listen(tcp, options.pages_port if sockets else None, None, stack)
            return runner.run(_live(options, access, tcp, sockets, pages))
    except (AccessError, ListenError) as problem:
        return _failed(str(problem))


def _failed(sentence: str) -> int:
    sys.stderr.write(f"fairlead: {sentence}\n")
    return 1


async def _live(
    options: ClusterServiceOptions, access: Access, tcp: Tcp, sockets: list[socket.socket], pages: Pages
) -> int:
    controller = Controller(access, options.controller)
    place = ClusterPlace(
        version=version(), started_at_ms=now_ms(), open_reads=options.open_reads, controller=controller, pages=pages
    )
    asking = Client(Connection(access, 4))
    log.info("%s schedules pods of %r at %s", controller.identity, options.controller.scheduler_name, access.server)
    told = asyncio.Event()
    on_signals(told.set)
    scheduling = asyncio.create_task(controller.run(), name="schedule")
    duties = [asyncio.create_task(_rebuild_quickly(controller)), asyncio.create_task(_sample(place))]
    server, serving = None, None
    if sockets:
        connections = Connections(raise_descriptors(), of_user=MOST)
        app = make_cluster_app(place, ApiJudge(asking))
        server = Server(app, place.end_streams, connections, tcp.certificate)
        serving = asyncio.create_task(server.serve(sockets=sockets), name="serve")
        duties.append(asyncio.create_task(pages.keep(sockets[0])))
        also = f"; pages at {pages.url} (`fairlead web` opens them)" if pages.url else ""
        log.info("probes, figures and questions on %s%s", tcp.url(sockets[0]), also)
    waiting = asyncio.create_task(told.wait())
    try:
        await asyncio.wait({scheduling, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (scheduling, waiting, *duties):
            task.cancel()
        await asyncio.gather(scheduling, waiting, *duties, return_exceptions=True)
        if server is not None and serving is not None:
            server.should_exit = True
            await asyncio.gather(serving, return_exceptions=True)
        await asking.transport.close()
    return _outcome(scheduling, options.controller)


def _outcome(scheduling: asyncio.Task[None], options: ControllerOptions) -> int:
    """What the end of the controller means for the process."""
    fault = None if scheduling.cancelled() else scheduling.exception()
    if fault is None:
        log.info("stopped; what runs goes on")
        return 0
    if isinstance(fault, LeaseLost | UnknownCaller | ConfigurationError | Unreachable):
        return _failed(str(fault))
    if isinstance(fault, NotFound) and options.config_map:
        return _failed(f"there is no configmap {options.config_map} to read the queues from; create it first")
    if isinstance(fault, ApiError):
        return _failed(f"the API server refuses what the scheduler needs: {fault}; look at its ClusterRole")
    if isinstance(fault, OSError) and options.queues is not None:
        return _failed(f"the queue file {options.queues} cannot be read: {fault.strerror}")
    log.error("a fault in the program", exc_info=fault)
    return _failed(f"the scheduler had to stop on a fault in the program: {type(fault).__name__}: {fault}")


async def _rebuild_quickly(controller: Controller) -> None:
    """No search for garbage while everything is read, and what is there then is never searched again.

    Else a cluster of ten thousand pods costs pauses of a third of a second, at the start and ever after.
    """
    while controller.control_loop is None:
        await asyncio.sleep(LOOK_S)
    with collector_off():
        while not controller.control_loop.ready:
            await asyncio.sleep(LOOK_S)
    await search_seldom()


async def _sample(place: ClusterPlace) -> None:
    """A sample each minute, as long as there is something to count."""
    while place.controller.control_loop is None or not place.controller.control_loop.ready:
        await asyncio.sleep(1.0)
    await place.keep_samples()
