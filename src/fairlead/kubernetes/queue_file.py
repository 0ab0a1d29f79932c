"""The queue file in force: that of a ConfigMap or a file, with the queues that are objects of the API server.

Decides when another one is offered to the control loop, and what is said about it. Never interprets one. Invariant: a
wrong file changes nothing; a wrong object changes nothing but what its own status says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fairlead.config import ConfigurationError, check_text
from fairlead.config.load import file_text
from fairlead.core.model.decisions import ConfigurationRejected
from fairlead.core.model.specs import ClusterSpec
from fairlead.kubernetes import kinds
from fairlead.kubernetes.client import ApiError, Client, ServerFault, TooManyRequests, Unreachable
from fairlead.kubernetes.driver import Driver
from fairlead.kubernetes.objects import ConfigMap
from fairlead.kubernetes.reflector import Change, Changed, Deleted, Reflector
from fairlead.kubernetes.translate.queues import QueueObject, with_queues

if TYPE_CHECKING:
    from fairlead.kubernetes.control_loop import ControlLoop

log = logging.getLogger("fairlead.kubernetes")

DEFAULT_QUEUES = resources.files("fairlead.kubernetes").joinpath("queues.yaml").read_text("utf-8")
"""A queue for each namespace, made when it is first used; preemption by Kubernetes' rules."""
KEY = "queues.yaml"
"""The name of the queue file in a ConfigMap."""
FIRST_S = 1.0
"""Between two tries to read what to begin with."""
FILE_S = 5.0
"""How often a queue file is looked at."""
SERVED_S = 30.0
"""How often it is looked whether the server knows queues as objects by now."""
AGAIN_S = 60.0
"""What was refused because of what runs is offered again after this time."""
TOGETHER_S = 0.2
"""Changes of objects within this time are put in force as one."""


class QueueFile:
    """Where one controller has its queues from."""

    def __init__(self, client: Client, config_map: str = "", path: Path | None = None) -> None:
        """`config_map` is `NAMESPACE/NAME`; with neither the built-in queues count."""
        self._client = client
        self._map_namespace, _, self._map_name = config_map.partition("/")
        self._path = path
        self.source = "the built-in queues"
        if config_map or path is not None:
            self.source = f"configmap {config_map}" if config_map else str(path)
        self._text = self._newest = DEFAULT_QUEUES
        """The file in force, and the newest one, which may be wrong."""
        self._unread = ""
        """Why the newest cannot be read at all."""
        self.error = ""
        """What is wrong with the newest queue file; the one before counts on."""
        self.objects: dict[str, QueueObject] = {}
        self.flaws: Mapping[str, str] = {}
        """Objects that are left out, and why."""
        self._reflectors: list[Reflector] = []
        self._checksum = ""
        self._taken = DEFAULT_QUEUES, dict[str, QueueObject]()
        """The file and the objects that the scheduler took last."""
        self._due: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None
        """When objects that the scheduler refused are offered once more."""

    async def first(self) -> ClusterSpec:
        """What to begin with; a server that fails, or has too much to do, is asked again. Objects that were left out
        are offered once it is known what runs, which may be what keeps them out.

        Raises `ConfigurationError` for a file that cannot be used, and what else `Client` raises.
        """
        while True:
            try:
                await self._read()
            except (ServerFault, TooManyRequests, Unreachable) as problem:
                log.warning("%s is not known yet: %s", self.source, problem)
                after = None if isinstance(problem, Unreachable) else problem.retry_after_s
                await asyncio.sleep(max(FIRST_S, after or 0.0))
            else:
                break
        begin = {name: each for name, each in self.objects.items() if not each.was_left_out}
        spec, flaws = with_queues(self._text, self.source, begin.values())
        out = [name for name in self.objects if name not in begin]
        self.flaws = {**flaws, **dict.fromkeys(out, "it was left out before, and is tried again")}
        self._newest, self._checksum, self._taken = self._text, spec.checksum, (self._text, begin)
        self._say_what_is_odd(self._text)
        return spec

    def _say_what_is_odd(self, text: str) -> None:
        for problem in check_text(text, self.source):
            log.warning("%s", problem)

    async def _read(self) -> None:
        """The file, and the queues that are objects."""
        if self._map_name:
            self._text = _text_of(await self._client.get(kinds.CONFIG_MAPS, self._map_name, self._map_namespace))
        elif self._path is not None:
            self._text = file_text(self._path)
        self.objects.clear()
        if not await self._has_objects():
            return
        query: dict[str, str] = {"limit": "500"}
        while True:
            page = await self._client.page(kinds.QUEUES, "", query)
            for raw in page.items or ():
                queue = msgspec.json.decode(raw, type=QueueObject)
                self.objects[queue.metadata.name] = queue
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    async def watch(self, control_loop: ControlLoop) -> None:
        """Offer every change to the control loop until cancelled, or until something fails that is not foreseen."""
        if self.flaws:
            self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._settle, control_loop)
        try:
            async with asyncio.TaskGroup() as watching:
                watching.create_task(self._watch_text(control_loop))
                watching.create_task(self._watch_objects(control_loop))
        except ExceptionGroup as faults:
            fault = faults.exceptions[0]
            self.error = f"{self.source} cannot be taken: {type(fault).__name__}: {fault}"
            raise fault from None

    async def _watch_text(self, control_loop: ControlLoop) -> None:
        def take(change: Change) -> None:
            if isinstance(change, Changed):
                self._offer(control_loop, _text_of(change.object))

        if self._map_name:
            fields = f"metadata.name={self._map_name}"
            reflector = Reflector(self._client, kinds.CONFIG_MAPS, take, namespace=self._map_namespace, fields=fields)
            await self._follow(reflector)
        elif self._path is not None:
            seen = _mark(self._path)
            while True:
                await asyncio.sleep(FILE_S)
                mark = _mark(self._path)
                if mark != seen and mark is not None:
                    seen = mark
                    self._offer_file(control_loop, self._path)

    def _offer_file(self, control_loop: ControlLoop, path: Path) -> None:
        try:
            self._newest, self._unread = file_text(path), ""
        except ConfigurationError as e:
            self._unread = str(e)
        self._settle(control_loop)

    async def _has_objects(self) -> bool:
        return kinds.QUEUES.group_version in await self._client.served()

    async def _until_there_are_objects(self) -> None:
        """Wait until the server knows queues as objects; one that does not answer is asked again."""
        while True:
            try:
                if await self._has_objects():
                    return
            except (ApiError, Unreachable) as problem:
                log.warning("whether the server has queues as objects is not known yet: %s", problem)
            await asyncio.sleep(SERVED_S)

    async def _watch_objects(self, control_loop: ControlLoop) -> None:
        there: dict[str, None] = {}

        def take(change: Change) -> None:
            if isinstance(change, Changed):
                there[change.object.metadata.name] = None
                known = self.objects.get(change.object.metadata.name)
                self.objects[change.object.metadata.name] = change.object
                if known is not None and known.spec == change.object.spec:
                    return
            elif isinstance(change, Deleted):
                there.pop(change.name, None)
                self.objects.pop(change.name, None)
            elif gone := [name for name in self.objects if name not in there]:
                # They went while nobody watched: before the first list, or after a fault.
                for name in gone:
                    del self.objects[name]
            else:
                return
            if self._due is None:
                loop = asyncio.get_running_loop()
                self._due = loop.call_later(TOGETHER_S, self._settle, control_loop)

        await self._until_there_are_objects()
        await self._follow(Reflector(self._client, kinds.QUEUES, take))

    async def _follow(self, reflector: Reflector) -> None:
        self._reflectors.append(reflector)
        try:
            await reflector.run()
        finally:
            self._reflectors.remove(reflector)

    def problems(self) -> list[str]:
        """What of it cannot be taken or watched, as sentences."""
        found = [f"the newest queue file is not in force: {self.error}"] if self.error else []
        return found + [stuck for reflector in self._reflectors if (stuck := reflector.stuck())]

    def _offer(self, control_loop: ControlLoop, text: str) -> None:
        """There is another file. A wrong one changes nothing but what is said about it."""
        self._newest = text
        self._settle(control_loop)

    def _settle(self, control_loop: ControlLoop) -> None:
        """Put the newest file in force with the objects that there are; or, if it is wrong, these with the one before.

        What is wrong with a file is said until there is a right one. Nothing is offered before it is known what runs.
        """
        for timer in filter(None, (self._due, self._again)):
            timer.cancel()
        self._due = self._again = None
        if not control_loop.ready:
            self._due = asyncio.get_running_loop().call_later(TOGETHER_S, self._settle, control_loop)
            return
        flaw = self._unread
        try:
            spec, flaws = with_queues(self._newest, self.source, self.objects.values())
            if self._text != self._newest:
                self._say_what_is_odd(self._newest)
            self._text = self._newest
        except ConfigurationError as e:
            flaw = flaw or str(e)
            spec, flaws = with_queues(self._text, self.source, self.objects.values())
        if flaw:
            log.error("%s is not taken, the queues stay as they are: %s", self.source, flaw)
        if spec.checksum == self._checksum:
            self.error = flaw
            self._leave_out(flaws)
            return
        self._checksum = spec.checksum
        control_loop.order(self._put_in_force(spec, flaws, flaw, control_loop))

    def _leave_out(self, flaws: Mapping[str, str]) -> None:
        for name in [name for name, why in flaws.items() if self.flaws.get(name) != why]:
            log.warning("queue %s is left out: %s", name, flaws[name])
        self.flaws = flaws

    def _put_in_force(
        self, spec: ClusterSpec, flaws: Mapping[str, str], flaw: str, control_loop: ControlLoop
    ) -> Callable[[Driver, int], None]:
        """`flaws`: what is wrong with objects that are not in it; `flaw`: with a newer file."""
        text, objects = self._text, dict(self.objects)

        def act(driver: Driver, now_ms: int) -> None:
            def refused(wanted: ClusterSpec) -> str:
                decisions = driver.configure(wanted, now_ms, source=self.source)
                return next((d.reason.sentence() for d in decisions if isinstance(d, ConfigurationRejected)), "")

            if refused(spec):
                self._checksum = ""  # it is not what counts
                self.error = self._take_what_can_be(refused, text, objects) or flaw
                self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._settle, control_loop)
            else:
                self.error, self._taken = flaw, (text, objects)
                self._leave_out(flaws)
            if self.error:
                log.error("%s is not taken, the queues stay as they are: %s", self.source, self.error)
            else:
                log.info("%s is in force", self.source)

        return act

    def _take_what_can_be(
        self, refused: Callable[[ClusterSpec], str], text: str, objects: dict[str, QueueObject]
    ) -> str:
        """What runs keeps something from being taken: what of the objects is new is offered in halves, so that
        none keeps another out, nor the file. Gives back why the file is refused; then that before counts.
        """
        before, known = self._taken
        kept = {name: each for name, each in objects.items() if name in known and known[name].spec == each.spec}
        why = refused(with_queues(text, self.source, kept.values())[0])
        if why:
            text = before
            refused(with_queues(text, self.source, kept.values())[0])
        left_out: dict[str, str] = {}
        new = [each for name, each in objects.items() if name not in kept]
        left = [sorted(new, key=lambda q: (q.path.count("."), q.path))]
        while left:
            some = left.pop()
            spec, flaws = with_queues(text, self.source, [*kept.values(), *some])
            if not (said := refused(spec)):
                kept |= {each.metadata.name: each for each in some if each.metadata.name not in flaws}
            elif len(some) > 1:
                left += [some[len(some) // 2 :], some[: len(some) // 2]]
            else:
                left_out[some[0].metadata.name] = said
        others = [each for name, each in objects.items() if name not in left_out]
        self._taken = text, kept
        self._leave_out({**with_queues(text, self.source, others)[1], **left_out})
        return why


def _text_of(found: ConfigMap) -> str:
    """The queue file in a ConfigMap; one without it is no queue file, and says so where it is read."""
    return (found.data or {}).get(KEY) or f"# the ConfigMap has no {KEY}\n[]"


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
