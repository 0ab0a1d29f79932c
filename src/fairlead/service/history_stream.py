"""Live events for many readers.

Decides what a reader is told, also when it is cut off. Never blocks the writer. Invariant: a reader
gets every event that it may see, in order and once, or a notice that says from where to go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool

from fairlead.journal.codec import CodecError
from fairlead.journal.reader import Reader as JournalReader
from fairlead.local.callers import Whose
from fairlead.runtime import Entry
from fairlead.service.history_events import HistoryEvent, of_record, tell
from fairlead.service.readers import Reader, Readers
from fairlead.wire.cluster import Event

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead.local.callers import Caller

BEHIND = 10_000
"""Events that wait for one reader, at most."""
HEARTBEAT_S = 15.0
PAGE = 500
"""Records of history read at once."""

Owner = Callable[[str], Whose | None]
"""Whose business a job is; None: nobody knows any longer (then only administrators may see it)."""


Told = tuple[HistoryEvent, Whose | None]
"""An event and its owner."""


class Hub:
    """Passes durable entries on to all readers, as events."""

    def __init__(self, journal: Path, owner: Owner) -> None:
        """`owner` is called by the writer, while the books stand still."""
        self.journal, self._owner = journal, owner
        self.readers: Readers[Told] = Readers()

    def offer(self, entries: Sequence[Entry]) -> None:
        """Tell the readers; called by the writer."""
        if self.readers:
            events = (event for entry in entries for event in tell(entry))
            self.readers.offer([(event, self._owner(event.key) if event.key else None) for event in events])


AskOwners = Callable[[Sequence[str]], "asyncio.Future[dict[str, Whose]]"]
"""Asks the writer whose business some jobs are."""


async def stream(
    hub: Hub, caller: Caller, after: tuple[int, int] | None, ask_owners: AskOwners
) -> AsyncGenerator[bytes, None]:
    """Server-sent events for one caller: what came after `after` (None: only what is new), then what happens."""
    reader = hub.readers.join(BEHIND)
    try:
        yield b"retry: 1000\n\n"
        last = after if after is not None else (0, 0)
        if after is not None:
            async for event, owner in _history(hub.journal, after, ask_owners):
                last = (event.seq, event.index)
                if event.type == "gap" or _visible(event, owner, caller):
                    yield frame(event)
        async for piece in live(reader, lambda event, owner: _visible(event, owner, caller), last):
            yield piece
    finally:
        hub.readers.leave(reader)


async def live(
    reader: Reader[Told], sees: Callable[[HistoryEvent, Whose | None], bool], last: tuple[int, int] = (0, 0)
) -> AsyncIterator[bytes]:
    """Server-sent events of what happens after `last`, as far as `sees` lets; heartbeats meanwhile."""
    silent_since = time.monotonic()
    while not reader.closed:
        for event, owner in await reader.next(HEARTBEAT_S):
            if (event.seq, event.index) <= last:
                continue
            last = (event.seq, event.index)
            if sees(event, owner):
                silent_since = time.monotonic()
                yield frame(event)
        if reader.overflowed:
            yield _notice("cut-off", last, f"this reader was more than {BEHIND} events behind; go on from the last id")
            return
        if time.monotonic() - silent_since >= HEARTBEAT_S - 0.1:
            silent_since = time.monotonic()
            yield b": nothing new\n\n"


async def _history(
    journal: Path, after: tuple[int, int], ask_owners: AskOwners
) -> AsyncIterator[tuple[HistoryEvent, Whose | None]]:
    seq, index = after
    first, last = await run_in_threadpool(_bounds, journal)
    if seq < first - 1 or seq > last:
        why = "older history was pruned" if seq < first else "the journal does not reach so far; it was replaced"
        yield HistoryEvent(min(first - 1, last), 0, 0, "gap", "", {"asked_for": seq, "first": first, "why": why}), None
        seq, index = (first - 1, 10**9) if seq < first else (last, 10**9)
    while True:
        page = await run_in_threadpool(_page, journal, seq)
        told = [event for entry in page for event in tell(entry) if (event.seq, event.index) > (seq, index)]
        keys = sorted({event.key for event in told if event.key})
        owners = await ask_owners(keys) if keys else {}
        for event in told:
            yield event, owners.get(event.key)
        if len(page) < PAGE:
            return
        seq, index = page[-1].seq, 10**9


def _bounds(journal: Path) -> tuple[int, int]:
    with JournalReader(journal) as reading:
        return reading.first_seq, reading.last_seq


def _page(journal: Path, seq: int) -> list[Entry]:
    """The entries from `seq` on (it may be told in part only)."""
    found = []
    with JournalReader(journal) as reading:
        start = max(seq, reading.first_seq)
        for record in reading.records(start, start + PAGE - 1):
            try:
                found.append(of_record(record))
            except CodecError:
                found.append(Entry(record.seq, record.at_ms, "unknown", None))
    return found


def _visible(event: HistoryEvent, owner: Whose | None, caller: Caller) -> bool:
    return not event.key or caller.is_admin or (owner is not None and owner.is_for(caller))


def frame(event: HistoryEvent) -> bytes:
    """One event as it is sent."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        event.id.encode(),
        event.type.encode(),
        msgspec.json.encode(event.shown()),
    )


def _notice(kind: str, last: tuple[int, int], why: str) -> bytes:
    content = msgspec.json.encode(Event(seq=last[0], at_ms=time.time_ns() // 1_000_000, type=kind, values={"why": why}))
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), content)
