"""What every route needs on a cluster: the controller, and who is asking.

Decides nothing. Everything happens in the event loop in which the controller runs, so that between two of its turns the
books stand still. Invariant: routes only read; whatever takes long is answered in a process of its own.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar, cast

import msgspec
from fastapi import Depends, Request, Response

from fairlead.insight.apart import NoAnswer, ask_apart
from fairlead.journal.format import SCHEDULE
from fairlead.kubernetes.control_loop import ControlLoop, Told
from fairlead.kubernetes.controller import Controller
from fairlead.kubernetes.informer import Informer
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.runtime.books import Entry
from fairlead.scheduler import Scheduler
from fairlead.service.kubernetes.gate import ClusterGate
from fairlead.service.kubernetes.history_pods import PodHistory
from fairlead.service.yunikorn.history_records import HistoryRecords
from fairlead.service.yunikorn.history_samples import HistorySamples
from fairlead.service.yunikorn.history_stream import Streams
from fairlead.service.yunikorn.transport import Plainly

T = TypeVar("T")
log = logging.getLogger("fairlead.service")
QUESTIONS_AT_ONCE = 2
LOOKS_AT_ONCE = 2
LARGE = 1_000
"""With more nodes and pods together than this, views of everything are made on a copy."""
PATIENCE_S = 60.0
STUCK_S = 60.0
"""A scheduler that has not had a turn for so long does not live any more."""
_NAMED = re.compile(
    rb"(?:([A-Za-z0-9][A-Za-z0-9._-]*)/)?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)


@dataclass(slots=True)
class ClusterDesk:
    """One controller, as far as routes look at it. Those of /ws/v1 use it in the place of the machine's desk."""

    controller: Controller
    gate: ClusterGate
    version: str
    started_at_ms: int
    open_reads: bool = False
    streams: Streams = field(default_factory=Streams)
    history_samples: HistorySamples = field(default_factory=HistorySamples)
    questions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(QUESTIONS_AT_ONCE))
    pod_history: PodHistory = field(default_factory=lambda: PodHistory(now_ms()))
    looks: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOOKS_AT_ONCE))
    """Passes for views of much, which are quicker than questions and do not wait for them."""
    _history_records: HistoryRecords | None = None

    def __post_init__(self) -> None:
        """Note what happens from the beginning of each control loop on."""
        self.controller.when_rebuilt = self._begin

    @property
    def control_loop(self) -> ControlLoop:
        """The control loop under way. Raises `Refusal` when there is none."""
        control_loop = self.controller.control_loop
        if control_loop is None or not control_loop.ready:
            raise Refusal("unavailable", self.standing())
        return control_loop

    def standing(self) -> str:
        """Why there is nothing to see here yet, as a sentence."""
        election = self.controller.election
        if self.controller.control_loop is None and election is not None:
            whom = f"{election.leader} leads; ask there" if election.leader else "nobody leads at the moment; try again"
            return f"this process stands by for the lease: {whom}"
        return "the cluster is being read; try again in some seconds"

    @property
    def informer(self) -> Informer:
        """What is known of the cluster. Raises `Refusal`."""
        return self.control_loop.driver.informer

    @property
    def scheduler(self) -> Scheduler:
        """To look at. Raises `Refusal`."""
        return self.control_loop.driver.scheduler

    @property
    def history_records(self) -> HistoryRecords:
        """Event records of this control loop. Raises `Refusal`."""
        if self._history_records is None:
            raise Refusal("unavailable", self.standing())
        return self._history_records

    def _begin(self, control_loop: ControlLoop) -> None:
        driver = control_loop.driver
        history_records = self._history_records = HistoryRecords(lambda: driver.scheduler)
        self.pod_history.begin_with(driver)

        def note(told: Told) -> None:
            if told.decisions:
                history_records.offer([Entry(0, told.at_ms, SCHEDULE, {}, told.decisions)])
            self.pod_history.note(told, driver)

        control_loop.listeners.append(note)

    def problems(self) -> list[str]:
        """What is wrong at the moment, as sentences."""
        found = []
        if self.controller.queues_error:
            found.append(f"the newest queue file is not in force: {self.controller.queues_error}")
        control_loop = self.controller.control_loop
        if control_loop is not None and (idle := control_loop.idle_s()) > STUCK_S:
            found.append(f"the scheduler has not had a turn for {idle:.0f} s")
        return found

    async def read(self, ask: Callable[[Scheduler, None], T]) -> T:
        """`ask(scheduler, None)`: nothing else happens meanwhile, so it must be quick. Raises `Refusal`."""
        return ask(self.scheduler, None)

    async def shown(self, ask: Callable[[], Any]) -> Response:
        """`ask()` as an answer; where there is much, from a copy of everything, while the controller goes on.

        Raises `Refusal` when there is nothing to see yet.
        """
        if not self.is_large:
            return self.answer(ask())
        body = await self.apart(lambda: self._encoded(ask()), self.looks)
        return Response(body, media_type="application/json")

    async def told(self, ask: Callable[[Scheduler], Any]) -> Any:
        """What `ask` says of the books, as values or as JSON that is ready. Raises `Plainly` and `Refusal`."""
        scheduler = self.scheduler
        if not self.is_large:
            return ask(scheduler)

        def body() -> bytes | tuple[int, str]:
            try:
                return msgspec.json.encode(ask(scheduler), order="sorted")
            except Plainly as refusal:
                return refusal.status, refusal.message

        found = await self.apart(body, self.looks)
        if isinstance(found, tuple):
            raise Plainly(*found)
        return msgspec.Raw(found)

    @property
    def is_large(self) -> bool:
        """Whether going over everything would keep the controller from going on for a while."""
        informer = self.informer
        return len(informer.around.nodes) + len(informer.pod_store.by_uid) > LARGE

    async def apart(self, question: Callable[[], T], passes: asyncio.Semaphore | None = None) -> T:
        """`question()` on a copy of everything, while the controller goes on. Raises `Refusal`."""
        async with passes or self.questions:
            asked = ask_apart(question, PATIENCE_S)
            try:
                return cast(T, await asyncio.to_thread(asked.answer))
            except NoAnswer as problem:
                raise Refusal("unavailable", f"the question could not be answered: {problem}; try again") from problem

    def answer(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        """An answer as JSON in which pods go by namespace and name instead of by their identity."""
        return Response(self._encoded(content), status, dict(headers or {}), "application/json")

    def _encoded(self, content: Any) -> bytes:
        pods = self.informer.pod_store.by_uid

        def name(found: re.Match[bytes]) -> bytes:
            known = pods.get(found[2].decode())
            if known is None:
                return found[0]
            before = b"" if not found[1] or found[1].decode() == known.application else found[1] + b"/"
            return before + str(known.name).encode()

        return _NAMED.sub(name, msgspec.json.encode(content))


def now_ms() -> int:
    """The wall clock in milliseconds, for what people are shown."""
    return time.time_ns() // 1_000_000


def cluster_desk_of(request: Request) -> ClusterDesk:
    """The controller that this request came to."""
    return cast(ClusterDesk, request.app.state.desk)


def reader_of_cluster(request: Request) -> Caller | None:
    """Who reads; None where everybody may. Raises `Refusal`."""
    desk = cluster_desk_of(request)
    return None if desk.open_reads else desk.gate.caller(request.scope, request.headers.get("authorization"))


ClusterDeskOf = Annotated[ClusterDesk, Depends(cluster_desk_of)]
ReaderOf = Annotated["Caller | None", Depends(reader_of_cluster)]
