"""What every route needs on a cluster: the ship, and who is asking.

Decides nothing. Everything happens in the event loop in which the ship sails, so that between two of its turns the
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
from fairlead.kubernetes.picture import Picture
from fairlead.kubernetes.ship import Ship
from fairlead.kubernetes.voyage import Told, Voyage
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.runtime.books import Entry
from fairlead.scheduler import Scheduler
from fairlead.service.bridge.gate import ShipGate
from fairlead.service.bridge.logbook import Logbook
from fairlead.service.yunikorn.chronicle import Chronicle
from fairlead.service.yunikorn.history import History
from fairlead.service.yunikorn.tail import Streams
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
class ShipDesk:
    """One ship, as far as routes look at it. Those of /ws/v1 use it in the place of the machine's desk."""

    ship: Ship
    gate: ShipGate
    version: str
    started_at_ms: int
    open_reads: bool = False
    streams: Streams = field(default_factory=Streams)
    history: History = field(default_factory=History)
    questions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(QUESTIONS_AT_ONCE))
    logbook: Logbook = field(default_factory=lambda: Logbook(now_ms()))
    looks: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOOKS_AT_ONCE))
    """Passes for views of much, which are quicker than questions and do not wait for them."""
    _chronicle: Chronicle | None = None

    def __post_init__(self) -> None:
        """Note what happens from the beginning of each voyage on."""
        self.ship.when_rebuilt = self._begin

    @property
    def voyage(self) -> Voyage:
        """The voyage under way. Raises `Refusal` when there is none."""
        voyage = self.ship.voyage
        if voyage is None or not voyage.ready:
            raise Refusal("unavailable", self.standing())
        return voyage

    def standing(self) -> str:
        """Why there is nothing to see here yet, as a sentence."""
        election = self.ship.election
        if self.ship.voyage is None and election is not None:
            whom = f"{election.leader} leads; ask there" if election.leader else "nobody leads at the moment; try again"
            return f"this process stands by for the lease: {whom}"
        return "the cluster is being read; try again in some seconds"

    @property
    def picture(self) -> Picture:
        """What is known of the cluster. Raises `Refusal`."""
        return self.voyage.pilot.picture

    @property
    def scheduler(self) -> Scheduler:
        """To look at. Raises `Refusal`."""
        return self.voyage.pilot.scheduler

    @property
    def chronicle(self) -> Chronicle:
        """Event records of this voyage. Raises `Refusal`."""
        if self._chronicle is None:
            raise Refusal("unavailable", self.standing())
        return self._chronicle

    def _begin(self, voyage: Voyage) -> None:
        pilot = voyage.pilot
        chronicle = self._chronicle = Chronicle(lambda: pilot.scheduler)
        self.logbook.begin_with(pilot)

        def note(told: Told) -> None:
            if told.decisions:
                chronicle.offer([Entry(0, told.at_ms, SCHEDULE, {}, told.decisions)])
            self.logbook.note(told, pilot)

        voyage.listeners.append(note)

    def problems(self) -> list[str]:
        """What is wrong at the moment, as sentences."""
        found = []
        if self.ship.queues_error:
            found.append(f"the newest queue file is not in force: {self.ship.queues_error}")
        voyage = self.ship.voyage
        if voyage is not None and (idle := voyage.idle_s()) > STUCK_S:
            found.append(f"the scheduler has not had a turn for {idle:.0f} s")
        return found

    async def read(self, ask: Callable[[Scheduler, None], T]) -> T:
        """`ask(scheduler, None)`: nothing else happens meanwhile, so it must be quick. Raises `Refusal`."""
        return ask(self.scheduler, None)

    async def shown(self, ask: Callable[[], Any]) -> Response:
        """`ask()` as an answer; where there is much, from a copy of everything, while the ship sails on.

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
        """Whether going over everything would keep the ship from sailing on for a while."""
        picture = self.picture
        return len(picture.around.nodes) + len(picture.roster.by_uid) > LARGE

    async def apart(self, question: Callable[[], T], passes: asyncio.Semaphore | None = None) -> T:
        """`question()` on a copy of everything, while the ship sails on. Raises `Refusal`."""
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
        pods = self.picture.roster.by_uid

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


def ship_desk_of(request: Request) -> ShipDesk:
    """The ship that this request came to."""
    return cast(ShipDesk, request.app.state.desk)


def reader_of_ship(request: Request) -> Caller | None:
    """Who reads; None where everybody may. Raises `Refusal`."""
    desk = ship_desk_of(request)
    return None if desk.open_reads else desk.gate.caller(request.scope, request.headers.get("authorization"))


ShipDeskOf = Annotated[ShipDesk, Depends(ship_desk_of)]
ReaderOf = Annotated["Caller | None", Depends(reader_of_ship)]
