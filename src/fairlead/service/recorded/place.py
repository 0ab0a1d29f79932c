"""A recorded course as a place: every question is about the moment of it that one has gone to.

Decides that there is one moment for all who look, and that it stands still while anybody is answered. Never changes
anything but the moment. Invariant: whoever has no session of its pages sees nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from prometheus_client.core import Metric

from fairlead.insight.forecast import Expected
from fairlead.insight.scorecard import Scorecard
from fairlead.journal.format import JournalError
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.runtime.measures import Measures
from fairlead.service import views
from fairlead.service.history_events import HistoryEvent, parse_id
from fairlead.service.http import pages
from fairlead.service.http.shaped import MOST, api
from fairlead.service.place import Place, place_of
from fairlead.service.recorded.course import Course
from fairlead.service.recorded.moment import VIEWER, CourseMoment
from fairlead.service.yunikorn.history import HistoryRecords
from fairlead.wire import course as wire
from fairlead.wire.cluster import EventPage, Service
from fairlead.wire.jobs import JobDetails

log = logging.getLogger("fairlead.service")

T = TypeVar("T")
TICK_S = 0.2
"""While it goes on by itself, between two moments."""


@dataclass(slots=True, kw_only=True)
class RecordedPlace(Place):
    """One course."""

    nodes_may_join: ClassVar[bool] = False
    course: Course
    name: str
    user: str
    at_ms: int = 0
    speed: float = 0.0
    _records: HistoryRecords = field(init=False)
    _still: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while somebody is answered, or while one goes elsewhere."""
    _wanted: int = 0
    _goers: int = 0
    """Who has said where to go and is not there yet: meanwhile it does not go on by itself."""

    def __post_init__(self) -> None:
        """At its begin."""
        self._records = HistoryRecords(lambda: self.course.scheduler)

    # -- where one is -------------------------------------------------------------------------------------------------

    async def go(self, to: wire.Go) -> wire.Course:
        """Go there; of several wishes at a time the last one counts. Raises `Refusal`."""
        if sum(each is not None for each in (to.at_ms, to.seq, to.step)) > 1:
            raise Refusal("invalid", "at_ms, seq and step say three ways to one moment; give one of them")
        self._goers += 1
        try:
            with _readable():
                return await self._go(to)
        finally:
            self._goers -= 1

    async def _go(self, to: wire.Go) -> wire.Course:
        self.speed = self.speed if to.speed is None else to.speed
        async with self._still:
            course = self.course
            if to.at_ms is not None:
                at_ms = min(max(to.at_ms, course.begin_ms), course.end_ms)
                seq = course.seq_at(at_ms)
            else:
                seq = course.seq if to.seq is None else min(max(to.seq, course.first_seq), course.last_seq)
                seq = course.next_decided(course.seq, to.step) if to.step else seq
                at_ms = self.at_ms if seq == course.seq else course.record(seq).at_ms
        await self._move(seq, at_ms)
        return self.where()

    async def _move(self, seq: int, at_ms: int) -> None:
        self._wanted = seq
        async with self._still:
            if self._wanted == seq:
                try:
                    await asyncio.to_thread(self._move_on, seq)
                except JournalError:
                    # It is where it came to, behind the last record that could be read.
                    at_ms = self.course.at_ms
                    raise
                finally:
                    self.at_ms = at_ms
        self.pages.changes.advance(self.pages.changes.seq + 1)

    def _move_on(self, seq: int) -> None:
        for _ in self.course.move(seq):
            if self._wanted != seq:
                return

    async def keep_going(self) -> None:
        """Go on by itself while it has a speed, until cancelled."""
        before = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            if self.speed and not self._goers:
                at_ms = self.at_ms + round((now - before) * 1000 * self.speed)
                self.speed = self.speed if at_ms < self.course.end_ms else 0.0
                try:
                    await self._go(wire.Go(at_ms=at_ms))
                except JournalError as error:
                    self.speed = 0.0
                    log.warning("the course goes on no further by itself: %s", error)
            before = now

    def where(self) -> wire.Course:
        """Where one is."""
        course = self.course
        own = {name: getattr(course, name) for name in ("begin_ms", "end_ms", "first_seq", "last_seq", "seq")}
        return wire.Course(name=self.name, at_ms=self.at_ms, speed=self.speed, **own)

    # -- the protocol -------------------------------------------------------------------------------------------------

    def routers(self) -> list[APIRouter]:
        """Where one is, and the way to the pages."""
        return [router, pages.router, pages.front]

    def caller(self, request: Request) -> Caller:
        """Whoever has a session of the pages."""
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or self.pages.sessions.recognise(shown.strip()) is None:
            raise Refusal(
                "unauthorized", "this session is over, or the ticket was used; start `fairlead sim view` again"
            )
        return replace(VIEWER, user=self.user)

    async def read(self, ask: Callable[[Any], T], caller: Caller | None = None) -> T:
        """At the moment."""
        del caller
        async with self._still:
            return ask(CourseMoment(self.course.scheduler, self.course.names))

    @property
    def history_records(self) -> HistoryRecords:
        """None: nothing happens here."""
        return self._records

    def problems(self) -> list[str]:
        """What is over has none."""
        return []

    def failing(self) -> bool:
        """Never."""
        return False

    def faults(self) -> int:
        """None."""
        return 0

    async def info(self, caller: Caller) -> Service:
        """With where one is."""
        return Service(
            version=self.version,
            user=caller.user,
            is_admin=False,
            started_at_ms=self.started_at_ms,
            partition_total=await self.read(lambda moment: views.partition_total(moment.scheduler)),
            problems=[],
            course=self.where(),
        )

    async def details(self, key: str, caller: Caller) -> JobDetails:
        """As the books had it."""
        return await self.read(lambda moment: moment.details(key), caller)

    async def events(self, caller: Caller, after: tuple[int, int] | None) -> AsyncGenerator[bytes, None]:
        """None: nothing happens here."""
        del caller, after
        raise Refusal("not-found", "nothing happens in a recorded course; /api/v1/course/events has what did")
        yield b""  # type: ignore[unreachable]  # what makes it a generator

    def card(self) -> Scorecard:
        """Empty: no forecast of what is over comes true."""
        return Scorecard()

    def expect(self, made_ms: int, plain: Expected) -> Expected:
        """As it is."""
        del made_ms
        return plain

    def figures(self, moment: Any) -> tuple[list[Metric], Measures]:
        """None of its own."""
        del moment
        return [], Measures()


router = api("course")
RecordedOf = Annotated[RecordedPlace, Depends(place_of)]
LOOK_BACK = 5_000
"""So many records are looked at for one page of events, at most."""


@router.get("/course")
async def get_course(place: RecordedOf) -> wire.Course:
    """How long the course is, and where in it one is."""
    return place.where()


@router.put("/course")
async def go_in_course(place: RecordedOf, body: wire.Go) -> wire.Course:
    """Go to another moment; all other answers are about that from then on."""
    return await place.go(body)


@router.get("/course/events")
async def list_course_events(
    place: RecordedOf,
    limit: Annotated[int, Query(ge=1, le=MOST, description="At most so many.")] = 100,
    key: Annotated[str | None, Query(max_length=400, description="Only about this job.")] = None,
    after: Annotated[str | None, Query(max_length=40, description="Go on after `next` of the page before.")] = None,
) -> EventPage:
    """What happened up to the moment, the newest first. A page without anything may have a next one."""
    before = parse_id(after) if after is not None else None
    if after is not None and before is None:
        raise Refusal("invalid", f"{after!r} is no cursor; give `next` of the page before", field="after")
    with _readable():
        return await place.read(lambda _moment: _events(place.course, limit, key, before))


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """A record that is damaged is said to whoever wanted it."""
    try:
        yield
    except JournalError as error:
        raise Refusal("conflict", f"the course is damaged there: {error}") from error


def _events(course: Course, limit: int, key: str | None, before: tuple[int, int] | None) -> EventPage:
    """`before`: a record, and the place of an event in it; None: the moment."""
    found: list[tuple[tuple[int, int], HistoryEvent]] = []
    last = course.seq if before is None else min(before[0], course.seq)
    least = max(course.first_seq, last - LOOK_BACK)
    while last >= least and len(found) <= limit:
        first = max(least, last - limit)
        told = [pair for pair in _placed(course.events(first, last)) if before is None or pair[0] < before]
        found += [pair for pair in reversed(told) if key in (None, pair[1].key)]
        last = first - 1
    if len(found) > limit:
        following: tuple[int, int] | None = found[limit - 1][0]
    else:
        following = (least, 0) if least > course.first_seq else None
    return EventPage(
        events=[event.shown() for _, event in found[:limit]],
        next=None if following is None else f"{following[0]}.{following[1]}",
        total=len(found),
    )


def _placed(events: Iterable[HistoryEvent]) -> Iterator[tuple[tuple[int, int], HistoryEvent]]:
    """Each with its record and its place in that."""
    seq, place = -1, 0
    for event in events:
        seq, place = event.seq, place + 1 if event.seq == seq else 0
        yield (seq, place), event
