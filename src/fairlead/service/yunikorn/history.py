"""History as /ws/v1 tells it: event records by number, endless streams of them, a day of samples, and counts.

Decides which records are still there, how many streams there may be and how far behind one of them, and for how long
samples are kept. Never blocks the writer, which calls it between two turns; a fault in it is logged, and telling ends.
Invariant: numbers begin at 0 and grow by one with every record; a stream gets what was there and what comes as one
sequence without gaps or doubles, or a last line that says that it ended.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from fairlead.core.model.decisions import (
    ApplicationAccepted,
    ApplicationChanged,
    ApplicationRejected,
    AskRejected,
    Decision,
)
from fairlead.core.model.events import AddApplication
from fairlead.core.model.lifecycle import LIVE
from fairlead.insight.history_records import Change, Detail, Record, as_json
from fairlead.insight.history_writer import HistoryWriter
from fairlead.journal.format import EVENT, NOTE
from fairlead.runtime import Refusal
from fairlead.service.readers import Reader

if TYPE_CHECKING:
    from fairlead.runtime import Entry
    from fairlead.scheduler import Scheduler

log = logging.getLogger("fairlead.service")

CAPACITY = 100_000
SAMPLES = 1440
EVERY_S = 60.0
MOST_STREAMS = 100
MOST_PER_HOST = 15
BEHIND = 1000
"""Records that wait for one reader, at most."""
WRITE_S = 5.0
CLOSED = "Event stream was closed by the producer"

Listener = Callable[[Sequence[Record]], None]
Filter = Callable[[Sequence[Record]], Awaitable[list[Record]]]
"""Leaves out what the reader may not see."""


# -- records ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """Some records in order. `lowest` and `highest` are the numbers that are there, 0 and 0 while there are none."""

    lowest: int
    highest: int
    records: list[Record] | None
    """None: the first one asked for is not there."""


class Ring:
    """The newest records; one thread adds to them and many read."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.told = 0
        """How many records there were, ever."""
        self._kept: deque[Record] = deque(maxlen=capacity)
        self._lock = threading.Lock()
        self._listeners: tuple[Listener, ...] = ()

    @property
    def kept(self) -> int:
        """How many are there."""
        return len(self._kept)

    def add(self, records: Sequence[Record]) -> None:
        """Newer records; the oldest make room. Listeners get them too, and must return at once."""
        with self._lock:
            self._kept.extend(records)
            self.told += len(records)
            for listener in self._listeners:
                listener(records)

    def page(self, start: int, count: int) -> Page:
        """Up to `count` records from number `start` on."""
        with self._lock:
            if not self._kept:
                return Page(0, 0, None)
            lowest, highest = self.told - len(self._kept), self.told - 1
            first = start - lowest
            there = lowest <= start <= highest
            return Page(lowest, highest, list(islice(self._kept, first, first + count)) if there else None)

    def listen(self, listener: Listener, past: int) -> list[Record]:
        """The newest `past` records; `listener` gets all that come after them, none twice."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
            return list(islice(self._kept, max(len(self._kept) - past, 0), None))

    def forget(self, listener: Listener) -> None:
        """It listens no longer."""
        with self._lock:
            self._listeners = tuple(one for one in self._listeners if one != listener)


class HistoryRecords:
    """What happened since the service started."""

    def __init__(self, books: Callable[[], Scheduler], ring: Ring | None = None) -> None:
        """`books` gives the scheduler as it is; it is asked by the writer only, and once now."""
        self.instance = str(uuid.uuid4())
        """Names this run of the service: numbers of records begin anew with each."""
        self.ring = ring or Ring()
        self.counts: Counter[str] = Counter()
        """How often since the start: `submitted`, `accepted`, `rejected`, `ask-rejected`."""
        self.by_queue: Counter[tuple[str, str]] = Counter()
        """How often since the start, by path: `completed`, `failed` applications, `allocated`, `released` ones."""
        self.failure = ""
        self._books = books
        self._writer = HistoryWriter(books())

    def offer(self, entries: Sequence[Entry]) -> None:
        """Tell what became durable; called by the writer."""
        if self.failure:
            return
        try:
            self._tell(entries)
        except Exception as fault:
            self.failure = f"event records ended on a fault in the program: {fault}"
            log.error("%s", self.failure, exc_info=fault)

    def _tell(self, entries: Sequence[Entry]) -> None:
        books, writer = self._books(), self._writer
        records: list[Record] = []
        for entry in entries:
            if entry.kind == NOTE:
                continue
            event = entry.what if entry.kind == EVENT else None
            self._count_event(event, entry.decisions)
            records += writer.write(entry.at_ms, event, entry.decisions, books)
        if entries:
            records += writer.look_at_new(entries[-1].at_ms, books)
        if records:
            self._count_allocations(records)
            self.ring.add(records)

    def _count_event(self, event: object, decisions: Sequence[Decision]) -> None:
        self.counts["submitted"] += isinstance(event, AddApplication)
        for decision in decisions:
            what = _COUNTED.get(type(decision))
            if what is not None:
                self.counts[what] += 1
            elif type(decision) is ApplicationChanged and decision.state in ("Completed", "Failed"):
                app = self._writer.apps.get((decision.partition, decision.id))
                if app is not None:
                    self.by_queue[app.queue, decision.state.lower()] += 1

    def _count_allocations(self, records: Sequence[Record]) -> None:
        """The use of users is told with the queue, once for each allocation that begins or ends."""
        for record in records:
            if record.detail == Detail.UG_USER_RESOURCE:
                self.by_queue[record.reference, "allocated" if record.change == Change.ADD else "released"] += 1


_COUNTED = {
    ApplicationAccepted: "accepted",
    ApplicationRejected: "rejected",
    AskRejected: "ask-rejected",
}


# -- streams of records -------------------------------------------------------------------------------------------


class Stream(Reader[Record]):
    """One open stream."""

    def __init__(self, name: str, opened_ns: int) -> None:
        super().__init__(BEHIND)
        self.name, self.opened_ns = name, opened_ns


@dataclass(slots=True)
class Streams:
    """All open streams of a service."""

    open: list[Stream] = field(default_factory=list)
    closed: bool = False

    def enter(self, host: str, opened_ns: int) -> Stream:
        """One more stream for a host. Raises `Refusal` when there are too many."""
        per_host = Counter(stream.name for stream in self.open)
        if self.closed or len(self.open) >= MOST_STREAMS or per_host[host] >= MOST_PER_HOST:
            raise Refusal("unavailable", "Too many streaming connections")
        stream = Stream(host, opened_ns)
        self.open.append(stream)
        return stream

    def leave(self, stream: Stream) -> None:
        """It is over."""
        if stream in self.open:
            self.open.remove(stream)

    def close(self) -> None:
        """End all of them, and take no new ones."""
        self.closed = True
        for stream in self.open:
            stream.close()


async def lines(
    history_records: HistoryRecords, streams: Streams, stream: Stream, past: int, visible: Filter
) -> AsyncGenerator[bytes, None]:
    """The lines of one stream: who tells, `past` records, then what comes."""
    history = history_records.ring.listen(stream.offer, past)
    try:
        yield _line({"InstanceUUID": history_records.instance})
        for at in range(0, len(history), BEHIND):
            yield b"".join([_line(as_json(record)) for record in await visible(history[at : at + BEHIND])])
        history.clear()
        while records := await stream.next():
            shown = await visible(records)
            if shown:
                yield b"".join([_line(as_json(record)) for record in shown])
        if not streams.closed:
            yield _line({"status_code": 200, "message": CLOSED, "description": CLOSED})
    finally:
        history_records.ring.forget(stream.offer)
        streams.leave(stream)


def _line(content: dict[str, Any]) -> bytes:
    return msgspec.json.encode(content, order="sorted") + b"\n"


class Timed(StreamingResponse):
    """A stream that gives up on a reader who takes nothing for a while."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], ended: Callable[[], None], headers: dict[str, str]) -> None:
        """`ended` is called at the end, also where nobody was there any more to be told the first piece."""
        super().__init__(pieces, headers=headers)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until it ends, or its reader has gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()

    async def stream_response(self, send: Send) -> None:
        """Send everything, each piece within `WRITE_S`."""

        async def timely(message: Any) -> None:
            await asyncio.wait_for(send(message), WRITE_S)

        try:
            await super().stream_response(timely)
        except TimeoutError:
            return


# -- samples ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sample:
    """One minute."""

    at_ns: int
    applications: int
    containers: int


@dataclass(slots=True)
class HistorySamples:
    """The samples."""

    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=SAMPLES))

    def applications(self) -> list[dict[str, Any]]:
        """Running applications."""
        return [{"timestamp": s.at_ns, "totalApplications": str(s.applications)} for s in self.samples]

    def containers(self) -> list[dict[str, Any]]:
        """Allocations."""
        return [{"timestamp": s.at_ns, "totalContainers": str(s.containers)} for s in self.samples]


def count(scheduler: Scheduler, at_ns: int) -> Sample:
    """The sample of this moment."""
    partitions = list(scheduler.cluster.partitions.values())
    running = sum(1 for part in partitions for app in part.applications.values() if app.state in LIVE)
    containers = sum(len(node.allocations) for part in partitions for node in part.nodes.nodes.values())
    return Sample(at_ns, running, containers)


async def keep(history: HistorySamples, take: Callable[[], Awaitable[Sample]], every_s: float = EVERY_S) -> None:
    """Take a sample now and then one every minute, until cancelled."""
    while True:
        history.samples.append(await take())
        await asyncio.sleep(every_s)
