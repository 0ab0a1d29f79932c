"""The endless stream of event records, one JSON object a line.

Decides how many streams there may be, and how far behind one of them. Never blocks the writer. Invariant: a reader
gets what was there and what comes as one sequence without gaps or doubles, or a last line that says that it ended.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Send

from fairlead.insight.history_records import Record, as_json
from fairlead.runtime import Refusal
from fairlead.service.readers import Reader

if TYPE_CHECKING:
    from fairlead.service.yunikorn.history_records import HistoryRecords

MOST_STREAMS = 100
MOST_PER_HOST = 15
BEHIND = 1000
"""Records that wait for one reader, at most."""
WRITE_S = 5.0
CLOSED = "Event stream was closed by the producer"

Filter = Callable[[Sequence[Record]], Awaitable[list[Record]]]
"""Leaves out what the reader may not see."""


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

    async def stream_response(self, send: Send) -> None:
        """Send everything, each piece within `WRITE_S`."""

        async def timely(message: Any) -> None:
            await asyncio.wait_for(send(message), WRITE_S)

        try:
            await super().stream_response(timely)
        except TimeoutError:
            return
