"""The controller: one process of the scheduler on a cluster, from its options to its end.

Decides what is started in which order: the connection, the election, the queue file, the control loop. Never decides
what runs. Invariant: a control loop only goes on while this process may act; a process that loses the lease sends
nothing any more and ends, so that it starts anew with nothing remembered.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fairlead.kubernetes import bodies, kinds
from fairlead.kubernetes.access import Access
from fairlead.kubernetes.binder import Binder
from fairlead.kubernetes.client import ApiError, Client, ServerFault, Unreachable
from fairlead.kubernetes.connection import Connection
from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.lease import Election
from fairlead.kubernetes.queue_file import QueueFile
from fairlead.kubernetes.queue_status import write_statuses
from fairlead.runtime.process import Clock

log = logging.getLogger("fairlead.kubernetes")

ROLE = "fairlead.io/role"
"""A label of the pods of this scheduler: which of them schedules."""
LEADER, STANDBY = "leader", "standby"
MEET_S = 2.0
"""Between two tries to reach the API server at the start."""
ROLE_S = 1.0
"""How often it is looked whether the own pod shows what this process does."""
SAY_EACH = 15
"""It is said again that it cannot be reached after so many tries."""
ANEW_S = 10.0
"""After a fault that was not foreseen, what looks after the queues begins anew."""
UNAUTHORIZED = 401


class UnknownCaller(Exception):
    """The API server does not know who we are; the text says what to do."""


class LeaseLost(Exception):
    """Somebody else may lead by now."""


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """What a process is started with."""

    queues: Path | None = None
    config_map: str = ""
    """`namespace/name`; with neither this nor a file the built-in queues count."""
    scheduler_name: str = "fairlead"
    leader_elect: bool = False
    lease: str = "fairlead"
    lease_namespace: str = ""
    pod: str = ""
    """`namespace/name` of the pod that this process runs in; it is labelled with its role, for the Service."""
    image: str = bodies.IMAGE
    at_once: int = 48
    image_locality: bool = False
    """Nodes that have the images of a pod are better for it."""


def stamp() -> str:
    """The time as the API writes it, with microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Controller:
    """One process of the scheduler."""

    def __init__(self, access: Access, options: ControllerOptions) -> None:
        """Does nothing yet; `run` does."""
        self.access = access
        self.options = options
        self.identity = f"{socket.gethostname()}_{os.getpid()}"
        self.control_loop: ControlLoop | None = None
        self.when_rebuilt: Callable[[ControlLoop], object] = lambda _: None
        """Called once by each control loop, when all that was there is in the books."""
        self.election: Election | None = None
        self.queue_file: QueueFile | None = None
        self._clock = Clock()
        # A process that lost the lease begins anew in the same pod.
        self._role = STANDBY

    @property
    def ready(self) -> bool:
        """Whether it schedules, or stands by for the lease."""
        if self.control_loop is not None:
            return self.control_loop.ready
        return self.election is not None

    async def run(self) -> None:
        """Run until cancelled.

        Raises `UnknownCaller` and `ConfigurationError` at the start, then `LeaseLost` and whatever ends a control loop.
        """
        client = Client(Connection(self.access, self.options.at_once + 8))
        showing = asyncio.create_task(self._show_role(client))
        try:
            await self._meet(client)
            if self.options.leader_elect:
                namespace = self.options.lease_namespace or self.access.namespace
                chance = random.Random()
                self.election = Election(
                    client, namespace, self.options.lease, self.identity, stamp=stamp, chance=chance
                )
                await self.election.run(lambda: self._control_loop(client))
                raise LeaseLost(f"the lease {namespace}/{self.options.lease} is lost")
            await self._control_loop(client)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            await client.transport.close()

    async def _meet(self, client: Client) -> None:
        """Wait until the API server answers. Raises `UnknownCaller` when it does not know us."""
        times = 0
        while True:
            try:
                await client.send("GET", "/version")
            except (Unreachable, ServerFault) as problem:
                if times % SAY_EACH == 0:
                    log.warning("%s; trying on until it answers", problem)
                times += 1
                await asyncio.sleep(MEET_S)
            except ApiError as refusal:
                if refusal.status != UNAUTHORIZED:
                    return
                raise UnknownCaller(
                    f"{self.access.server} does not know these credentials ({self.access.source}): "
                    f"the token or certificate is wrong or has ended; get a new one"
                ) from refusal
            else:
                return

    async def _show_role(self, client: Client) -> None:
        """Label the own pod, so that questions reach the process that schedules; without that it works all the same.

        What fails is tried again: whoever begins to lead often does so while the server has its troubles.
        """
        namespace, _, name = self.options.pod.partition("/")
        shown = said = ""
        while name:
            role = self._role
            try:
                if role != shown:
                    # By its status: that is the part of pods that the scheduler may write.
                    change = {"metadata": {"labels": {ROLE: role}}}
                    await client.patch(kinds.PODS, name, change, namespace, sub="status")
                    shown = role
            except (ApiError, Unreachable) as problem:
                if said != role:
                    text = "pod %s is not labelled as %s yet, so the Service may not find it: %s"
                    log.warning(text, name, role, problem)
                said = role
            await asyncio.sleep(ROLE_S)

    async def _control_loop(self, client: Client) -> None:
        self._role = LEADER
        queue_file = QueueFile(client, self.options.config_map, self.options.queues)
        spec = await queue_file.first()
        self.queue_file = queue_file
        binder = Binder(
            client,
            lambda report: control_loop.report(report),
            scheduler_name=self.options.scheduler_name,
            instance=self.identity[:128],
            image=self.options.image,
            stamp=stamp,
            at_once=self.options.at_once,
        )
        control_loop = ControlLoop(
            client,
            binder,
            spec,
            now_ms=self._clock.now,
            scheduler_name=self.options.scheduler_name,
            images=self.options.image_locality,
        )
        control_loop.when_rebuilt = self.when_rebuilt
        self.control_loop = control_loop
        watching = [
            asyncio.create_task(_keep_up("the queue file", lambda: queue_file.watch(control_loop))),
            asyncio.create_task(
                _keep_up("the status of queues", lambda: write_statuses(client, queue_file, control_loop, stamp))
            ),
        ]
        try:
            await control_loop.run()
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)


async def _keep_up(what: str, duty: Callable[[], Awaitable[None]]) -> None:
    """Do it until cancelled. A fault in it is said, and ends nothing else: pods are scheduled by the queues there are.

    Ending the process would not help: the next one would meet the same fault, and schedule nothing at all.
    """
    while True:
        try:
            await duty()
        except Exception:
            log.exception("%s: a fault in looking after it; it begins anew in %d s", what, ANEW_S)
        await asyncio.sleep(ANEW_S)
