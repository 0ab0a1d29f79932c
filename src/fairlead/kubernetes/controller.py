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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from fairlead.config import ConfigurationError, load_text
from fairlead.config.load import homeless
from fairlead.core.model.decisions import ConfigurationRejected
from fairlead.core.model.specs import ClusterSpec
from fairlead.kubernetes import bodies, kinds
from fairlead.kubernetes.access import Access
from fairlead.kubernetes.binder import Binder
from fairlead.kubernetes.client import ApiError, Client, ServerFault, Unreachable
from fairlead.kubernetes.connection import Connection
from fairlead.kubernetes.control_loop import ControlLoop
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.lease import Election
from fairlead.kubernetes.objects import ConfigMap
from fairlead.kubernetes.reflector import Change, Changed, Reflector
from fairlead.runtime.process import Clock

log = logging.getLogger("fairlead.kubernetes")

DEFAULT_QUEUES = resources.files("fairlead.kubernetes").joinpath("queues.yaml").read_text("utf-8")
"""A queue for each namespace, made when it is first used; preemption by Kubernetes' rules."""
FILE_S = 5.0
"""How often a queue file is looked at."""
ROLE = "fairlead.io/role"
"""A label of the pods of this scheduler: which of them schedules."""
LEADER, STANDBY = "leader", "standby"
KEY = "queues.yaml"
"""The name of the queue file in a ConfigMap."""


MEET_S = 2.0
"""Between two tries to reach the API server at the start."""
SAY_EACH = 15
"""It is said again that it cannot be reached after so many tries."""
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
        self.when_rebuilt: Callable[[ControlLoop], None] = lambda _: None
        """Called once by each control loop, when all that was there is in the books."""
        self.election: Election | None = None
        self.queues_error = ""
        """What is wrong with the newest queue file; the one before counts on."""
        self._clock = Clock()
        self._checksum = ""

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
        try:
            await self._meet(client)
            # A process that lost the lease begins anew in the same pod.
            await self._show_role(client, STANDBY)
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

    async def _show_role(self, client: Client, role: str) -> None:
        """Label the own pod, so that questions reach the process that schedules; without that it works all the same."""
        namespace, _, name = self.options.pod.partition("/")
        if not name:
            return
        try:
            # By its status: that is the part of pods that the scheduler may write.
            await client.patch(kinds.PODS, name, {"metadata": {"labels": {ROLE: role}}}, namespace, sub="status")
        except (ApiError, Unreachable) as problem:
            log.warning("pod %s is not labelled as %s, so the Service may not find it: %s", name, role, problem)

    async def _control_loop(self, client: Client) -> None:
        await self._show_role(client, LEADER)
        spec = await self._first_queues(client)
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
            client, binder, spec, now_ms=self._clock.now, scheduler_name=self.options.scheduler_name
        )
        control_loop.when_rebuilt = self.when_rebuilt
        self.control_loop = control_loop
        watching = asyncio.create_task(self._watch_queues(client, control_loop))
        try:
            await control_loop.run()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    # -- the queue file -------------------------------------------------------------------------------------------

    async def _first_queues(self, client: Client) -> ClusterSpec:
        """The queue file to begin with; one that cannot be used ends the start with its errors."""
        if self.options.config_map:
            namespace, _, name = self.options.config_map.partition("/")
            found: ConfigMap = await client.get(kinds.CONFIG_MAPS, name, namespace)
            return _queues_of(_text_of(found), f"configmap {self.options.config_map}")
        if self.options.queues is not None:
            return _queues_of(self.options.queues.read_text(), str(self.options.queues))
        return _queues_of(DEFAULT_QUEUES, "the built-in queues")

    async def _watch_queues(self, client: Client, control_loop: ControlLoop) -> None:
        if self.options.config_map:
            namespace, _, name = self.options.config_map.partition("/")

            def take(change: Change) -> None:
                if isinstance(change, Changed):
                    self._offer(control_loop, _text_of(change.object), f"configmap {self.options.config_map}")

            fields = f"metadata.name={name}"
            await Reflector(client, kinds.CONFIG_MAPS, take, namespace=namespace, fields=fields).run()
        elif self.options.queues is not None:
            path, seen = self.options.queues, _mark(self.options.queues)
            while True:
                await asyncio.sleep(FILE_S)
                mark = _mark(path)
                if mark != seen and mark is not None:
                    seen = mark
                    self._offer(control_loop, path.read_text(), str(path))

    def _offer(self, control_loop: ControlLoop, text: str, source: str) -> None:
        """Put a queue file in force; a wrong one changes nothing but what is said about it."""
        try:
            spec = _queues_of(text, source)
        except ConfigurationError as e:
            self.queues_error = str(e)
            log.error("%s is not taken, the queues stay as they are: %s", source, e)
            return
        if spec.checksum and spec.checksum == control_loop.driver.scheduler.cluster.checksum:
            self.queues_error = ""
            return
        control_loop.order(self._put_in_force(spec, source))

    def _put_in_force(self, spec: ClusterSpec, source: str) -> Callable[[Driver, int], None]:
        def act(driver: Driver, now_ms: int) -> None:
            refused = [d for d in driver.configure(spec, now_ms, source=source) if isinstance(d, ConfigurationRejected)]
            self.queues_error = refused[0].reason.sentence() if refused else ""
            if refused:
                log.error("%s is not taken, the queues stay as they are: %s", source, self.queues_error)
            else:
                log.info("%s is in force", source)

        return act


def _queues_of(text: str, source: str) -> ClusterSpec:
    """The queue file of a text. Raises `ConfigurationError` also for one without the partition of the cluster."""
    spec = load_text(text, source=source)
    if missing := homeless(spec, source):
        raise ConfigurationError(missing)
    return spec


def _text_of(found: ConfigMap) -> str:
    """The queue file in a ConfigMap; one without it is no queue file, and says so where it is read."""
    return (found.data or {}).get(KEY) or f"# the ConfigMap has no {KEY}\n[]"


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
