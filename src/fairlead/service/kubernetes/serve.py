"""`fairlead kubernetes run`: a controller and its HTTP service in one process, from the start to an orderly end.

Decides the order of start and stop, and with which status the process ends. Invariant: on SIGTERM and SIGINT nothing is
sent to the cluster any more before the lease is given back; whoever lost the lease ends with 1, to be started anew.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from fairlead.collector import collector_off
from fairlead.config import ConfigurationError
from fairlead.kubernetes.access import Access, AccessError, find_access
from fairlead.kubernetes.client import ApiError, NotFound, Unreachable
from fairlead.kubernetes.control_loop import Told
from fairlead.kubernetes.controller import Controller, ControllerOptions, LeaseLost, UnknownCaller
from fairlead.runtime.process import log_to_stderr, loop_factory, on_signals, search_seldom
from fairlead.service.http.sockets import ListenError, Tcp

log = logging.getLogger("fairlead.kubernetes")

LOOK_S = 0.05
BEGINS_S, FIRST_S = 5.0, 0.5
"""So long HTTP waits for the cluster to be read, and then for a first pod to be bound."""


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
        # Whoever asks waits here until there is an answer.
        sockets = [tcp.listen(options.port)] if options.port is not None else []
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_live(options, access, tcp, sockets))
    except ListenError as problem:
        return _failed(str(problem).replace("--port", "--listen"))
    except AccessError as problem:
        return _failed(str(problem))


def _failed(sentence: str) -> int:
    sys.stderr.write(f"fairlead: {sentence}\n")
    return 1


async def _live(options: ClusterServiceOptions, access: Access, tcp: Tcp, sockets: list[socket.socket]) -> int:
    controller, started_at_ms = Controller(access, options.controller), int(time.time() * 1000)
    early: list[Told] = []
    if sockets:
        controller.when_rebuilt = lambda control_loop: control_loop.listeners.append(early.append)
    log.info("%s schedules pods of %r at %s", controller.identity, options.controller.scheduler_name, access.server)
    told = asyncio.Event()
    on_signals(told.set)
    scheduling = asyncio.create_task(controller.run(), name="schedule")
    duties = [asyncio.create_task(_rebuild_quickly(controller))]

    async def serve() -> None:
        await _at_work(controller)
        from_there = await asyncio.to_thread(import_module, "fairlead.service.kubernetes.answers")
        await from_there.answer(controller, access, tcp, sockets, options, started_at_ms=started_at_ms, early=early)

    answering = [asyncio.create_task(serve(), name="answer")] if sockets else []
    waiting = asyncio.create_task(told.wait())
    try:
        await asyncio.wait({scheduling, waiting, *answering}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # The lease is given back before anything else ends.
        for tasks in ((scheduling, waiting), (*duties, *answering)):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    for task in answering:
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("a fault in the program", exc_info=fault)
            return _failed(f"what answers over HTTP had to stop on a fault: {type(fault).__name__}: {fault}")
    return _outcome(scheduling, options.controller)


async def _at_work(controller: Controller) -> None:
    """Wait until the first pod is bound, or until there is none, or until it takes long to begin at all."""
    loop = asyncio.get_running_loop()
    end = loop.time() + BEGINS_S
    while not controller.ready and loop.time() < end:
        await asyncio.sleep(LOOK_S)
    end = loop.time() + FIRST_S
    while (work := controller.control_loop) is not None and not work.timings.first_bound and loop.time() < end:
        await asyncio.sleep(LOOK_S)


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
