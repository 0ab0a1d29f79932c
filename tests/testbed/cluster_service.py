"""A controller on a fake API server with its HTTP service on a real port, all in the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import aiohttp
import uvicorn
from testbed import fake_server
from testbed.fake_server import FakeServer

from fairlead.kubernetes.access import Access
from fairlead.kubernetes.client import Client
from fairlead.kubernetes.controller import Controller, ControllerOptions
from fairlead.local.callers import Caller
from fairlead.service.http.sockets import Tcp
from fairlead.service.kubernetes.answers import make_cluster_app
from fairlead.service.kubernetes.gate import Judge
from fairlead.service.kubernetes.place import ClusterPlace
from fairlead.tls.server import TlsServer


def _stamp(_: float) -> str:
    """The time of day, since begins are compared with it here; the fake server's own time has no date."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Nobody:
    """Knows no token; on this host none is needed."""

    async def caller(self, token: str, method: str, path: str) -> Caller:
        raise AssertionError("asked for a token")


class ClusterService:
    """What a test sees."""

    def __init__(self, server: FakeServer, controller: Controller, place: ClusterPlace, url: str) -> None:
        self.server, self.controller, self.place, self.url = server, controller, place, url

    def pod(self, name: str, cpu: str = "1", **spec: Any) -> None:
        """Somebody creates a pod; `labels` and `namespace` go to its metadata."""
        meta = {
            "name": name,
            "namespace": spec.pop("namespace", "default"),
            "uid": str(uuid.uuid4()),
            "labels": spec.pop("labels", {}),
        }
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        body = {"schedulerName": "fairlead", "restartPolicy": "Never", "containers": [container], **spec}
        self.server.put("pods", {"metadata": meta, "spec": body, "status": {"phase": "Pending"}})

    async def ends(self, name: str, phase: str = "Succeeded") -> None:
        """A pod that runs ends by itself."""
        await self.until(lambda: self._phase(name) == "Running", f"{name} runs")
        there = self.server.one("pods", name)
        assert there is not None
        self.server.put("pods", {**there, "status": {**there["status"], "phase": phase}})

    def _phase(self, name: str) -> str:
        return str(((self.server.one("pods", name) or {}).get("status") or {}).get("phase"))

    def node_of(self, name: str) -> str:
        """Where the API server has a pod."""
        return str(((self.server.one("pods", name) or {}).get("spec") or {}).get("nodeName") or "")

    async def until(self, done: Callable[[], Any], what: str) -> Any:
        """Wait until `done()` gives something."""
        end = time.monotonic() + 50
        while not (found := done()):
            assert time.monotonic() < end, f"{what} did not happen"
            await asyncio.sleep(0.02)
        return found

    async def until_get(self, path: str, done: Callable[[Any], bool]) -> Any:
        """The first answer of a path that is as it should be."""
        end = time.monotonic() + 50
        while not done(found := await self.get(path)):
            assert time.monotonic() < end, found
            await asyncio.sleep(0.02)
        return found

    async def get(self, path: str, status: int = 200, **headers: str) -> Any:
        """The answer of a path as JSON, or as text."""
        async with aiohttp.ClientSession() as session, session.get(self.url + path, headers=headers) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return json.loads(text) if "json" in answer.content_type else text

    async def cli(self, *words: str, status: int = 0) -> str:
        """What the command line says."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fairlead.cli.main", *words,
            env={**os.environ, "FAIRLEAD_URL": self.url, "NO_COLOR": "1", "COLUMNS": "200"},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said, _ = await process.communicate()
        assert process.returncode == status, said.decode()
        return said.decode()


@contextlib.asynccontextmanager
async def serving(
    nodes: int = 1,
    cpu: str = "4",
    server: FakeServer | None = None,
    *,
    judge: Judge | None = None,
    pages: bool = False,
    tcp: Tcp | None = None,
) -> AsyncIterator[ClusterService]:
    """A controller that schedules, until the end of the block. `judge`: who knows tokens; `pages`: serve them too;
    `tcp`: how it is reached.
    """
    server = server or FakeServer()
    for number in range(nodes):
        room = {"cpu": cpu, "pods": "110"}
        server.put("nodes", {"metadata": {"name": f"n{number}"}, "spec": {}, "status": {"allocatable": room}})
    if server.one("namespaces", "default", "") is None:
        server.put("namespaces", {"metadata": {"name": "default"}})
    controller = Controller(Access("http://127.0.0.1:1"), ControllerOptions())
    place = ClusterPlace(controller=controller, version="test", started_at_ms=int(time.time() * 1000))
    tcp = tcp or Tcp()
    socket = tcp.listen(0)
    stack = contextlib.ExitStack()
    place.pages.listen(tcp, 0 if pages else None, None, stack)
    config = uvicorn.Config(make_cluster_app(place, judge or Nobody()), ws="none", lifespan="off", log_config=None)
    serving = TlsServer(config, tcp.certificate)
    control_loop = asyncio.create_task(controller._control_loop(Client(server)))
    serve = asyncio.create_task(serving.serve(sockets=[socket, *place.pages.inside]))
    showing = asyncio.create_task(place.pages.keep())
    service = ClusterService(server, controller, place, tcp.url(socket))
    try:
        with patch.object(fake_server, "_stamp", _stamp):
            await service.until(lambda: controller.ready and serving.started, "the start")
            yield service
    finally:
        control_loop.cancel()
        showing.cancel()
        place.end_streams()
        serving.should_exit = True
        await asyncio.gather(control_loop, serve, showing, return_exceptions=True)
        stack.close()
