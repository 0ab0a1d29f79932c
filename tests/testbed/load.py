"""Much work on a control plane: many nodes and pods made quickly, and a watcher that notes when each pod is bound.

Decides how objects are made in great numbers and how their binding is seen from outside. Knows no scheduler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from testbed.cluster import pod
from testbed.control_plane import ControlPlane, node_manifest

from fairlead.kubernetes.access import find_access
from fairlead.kubernetes.client import ApiError, Client, Gone, Request, Unreachable
from fairlead.kubernetes.connection import Connection
from fairlead.kubernetes.kinds import NODES, PODS

AT_ONCE = 48
NAMESPACE = "default"
RUNS = {
    "phase": "Running",
    "conditions": [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "Ready")],
    "containerStatuses": [
        {
            "name": "sleep",
            "image": "busybox:stable",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
    ],
}
"""What a node says of a pod that it runs."""


def client_of(plane: ControlPlane, connections: int = 4) -> Client:
    """Someone who may do everything."""
    return Client(Connection(find_access(str(plane.kubeconfig)), connections))


def fill(
    plane: ControlPlane, nodes: int, pods: int, scheduler: str, prefix: str = "p", on: int = 0, cpu: str = "100m"
) -> None:
    """Nodes of 32 cores, and small pods; with `on` these run already, spread over so many nodes."""
    asyncio.run(_fill(plane, nodes, pods, scheduler, prefix, on, cpu))


async def _fill(plane: ControlPlane, nodes: int, pods: int, scheduler: str, prefix: str, on: int, cpu: str) -> None:
    client = client_of(plane, AT_ONCE + 16)

    async def make(number: int) -> None:
        name = f"{prefix}{number}"
        where = {"nodeName": f"n{number % on}"} if on else {}
        await client.create(PODS, pod(name, cpu, schedulerName=scheduler, **where), NAMESPACE)
        if on:
            await client.patch(PODS, name, {"status": RUNS}, NAMESPACE, sub="status")

    try:
        await _each(range(nodes), lambda n: client.create(NODES, node_manifest(f"n{n}", "32", "256Gi")))
        await _each(range(pods), make)
    finally:
        await client.transport.close()


async def _each(numbers: Iterable[int], act: Callable[[int], Awaitable[Any]]) -> None:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with free:
            await act(number)

    await asyncio.gather(*(one(number) for number in numbers))


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's own name


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    code: int = 0


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    object: _Object = _Object()


class _Lean(Connection):
    """Asks for metadata only: the less the server has to write, the less the watching disturbs."""

    def _headers(self, request: Request) -> list[tuple[str, str]]:
        kind = "PartialObjectMetadata" + ("" if "watch" in request.query else "List")
        others = [header for header in super()._headers(request) if header[0] != "Accept"]
        return [*others, ("Accept", f"application/json;as={kind};g=meta.k8s.io;v=v1")]


class BindWatcher:
    """When each pod whose name begins with `prefix` was first seen with a node.

    A server ends a watch whose reader (or whose own writing) is too slow. It is resumed where it stood.
    """

    FIELDS = "spec.nodeName!=,status.phase=Pending"

    def __init__(self, plane: ControlPlane, prefix: str) -> None:
        self.seen: dict[str, float] = {}
        self.ended = 0
        """How often the server ended a watch."""
        self._client = Client(_Lean(find_access(str(plane.kubeconfig)), 2))
        self._prefix = prefix
        self._line = msgspec.json.Decoder(_Line)
        self._version = ""
        self._listed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; everything that is bound from now on is seen."""
        self._following = asyncio.create_task(self._follow())
        listed = asyncio.create_task(self._listed.wait())
        await asyncio.wait({listed, self._following}, return_when=asyncio.FIRST_COMPLETED)
        listed.cancel()
        self.check()

    def check(self) -> None:
        """Raise what went wrong with it, if anything did."""
        if self._following is not None and self._following.done():
            self._following.result()

    async def stop(self) -> None:
        """End."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._client.transport.close()

    def _note(self, name: str) -> None:
        if name.startswith(self._prefix):
            self.seen.setdefault(name, time.monotonic())

    async def _follow(self) -> None:
        while True:
            if not self._version:
                await self._list()
            query = {"fieldSelector": self.FIELDS, "resourceVersion": self._version, "timeoutSeconds": "3600"}
            try:
                async with self._client.watch(PODS, NAMESPACE, query, 3600.0) as lines:
                    async for line in lines:
                        self._take(line)
                self.ended += 1
            except Gone:
                self._version = ""
            except (ApiError, Unreachable):
                await asyncio.sleep(0.2)

    async def _list(self) -> None:
        query = {"fieldSelector": self.FIELDS, "limit": "500"}
        while True:
            page = await self._client.page(PODS, NAMESPACE, query)
            for raw in page.items or ():
                self._note(msgspec.json.decode(raw, type=_Object).metadata.name)
            self._version = page.metadata.resource_version or ""
            if not page.metadata.continue_:
                break
            query = {**query, "continue": page.metadata.continue_}
        self._listed.set()

    def _take(self, line: bytes) -> None:
        said = self._line.decode(line)
        if said.type == "ERROR":
            raise Gone(said.object.code, "watch", "the watch ended")
        if said.type in ("ADDED", "MODIFIED"):
            self._note(said.object.metadata.name)
        self._version = said.object.metadata.resourceVersion or self._version
