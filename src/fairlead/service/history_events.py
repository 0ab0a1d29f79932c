"""What happens as events for people and programs: those of a journal's entry, and live ones for many readers.

Decides which entries are worth telling, their names and fields, whose business each is, and what a reader is told, also
when it is cut off. Never blocks the writer. Invariant: the same entry tells the same events, live and read back from
the journal, so that `(seq, index)` names an event for ever; a reader gets every event that it may see, in order and
once, or a notice that says from where to go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.concurrency import run_in_threadpool

from fairlead.core.model import decisions as d
from fairlead.core.model import events as e
from fairlead.insight.by_job import by_job
from fairlead.journal import codec
from fairlead.journal.codec import CodecError
from fairlead.journal.format import EVENT, NOTE, Record
from fairlead.journal.reader import Reader as JournalReader
from fairlead.local import history_records
from fairlead.local.callers import Whose
from fairlead.local.job import conditions_changed
from fairlead.local.job_names import job_of
from fairlead.runtime import Entry
from fairlead.runtime.books import JournalResumed, ServiceStarted, ServiceStopped
from fairlead.runtime.configurations import QueuesReconfigured
from fairlead.service.readers import Reader, Readers
from fairlead.wire.arrays import in_short
from fairlead.wire.cluster import Event
from fairlead.wire.fields import with_cpu

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead.local.callers import Caller

Told = tuple[str, str, dict[str, Any]]
"""Name of the event, the job it is about (or empty: everybody's business), its fields."""


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One event. `key` is the job whose owner may see it; empty: everybody may."""

    seq: int
    index: int
    at_ms: int
    type: str
    key: str
    fields: dict[str, Any]

    @property
    def id(self) -> str:
        """Names the event for ever; a reader who has seen it goes on after it."""
        return f"{self.seq}.{self.index}"

    def shown(self) -> Event:
        """For the outside."""
        return Event(seq=self.seq, at_ms=self.at_ms, type=self.type, key=self.key, values=with_cpu(self.fields))


def parse_id(text: str) -> tuple[int, int] | None:
    """`(seq, index)` of an event's id; a bare seq means all of that entry. None if it is no id."""
    seq, dot, index = text.strip().partition(".")
    if not (seq.isascii() and seq.isdecimal()) or (dot and not (index.isascii() and index.isdecimal())):
        return None
    return int(seq[:18]), int(index[:9]) if dot else 10**9


def of_record(record: Record) -> Entry:
    """An entry as it is read back from the journal. Raises `CodecError` if a newer version wrote it."""
    if record.kind == NOTE:
        return Entry(record.seq, record.at_ms, NOTE, codec.decode(record.payload, object))
    decided = codec.decode_decisions(record.outcome) if record.outcome else ()
    what: Any = codec.decode_event(record.payload) if record.kind == EVENT else None
    return Entry(record.seq, record.at_ms, record.kind, what, decided)


def tell(entry: Entry) -> list[HistoryEvent]:
    """The events in an entry, in their order."""
    said = ((each, _TOLD.get(type(each))) for each in (entry.what, *entry.decisions))
    told = [found for each, tell in said if tell is not None and (found := tell(each)) is not None]
    return [HistoryEvent(entry.seq, i, entry.at_ms, name, key, fields) for i, (name, key, fields) in enumerate(told)]


def _of(what: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(what, name) for name in names}


def _submitted(note: history_records.JobSubmitted) -> Told:
    job, named = note.job, ("user", "queue", "name", "priority")
    parts = {"parts": in_short(note.indices)} if note.indices else {}
    return "job.submitted", job.key, _of(job, *named) | {"resources": job.resources.as_dict()} | parts


def _reconfigured(note: QueuesReconfigured) -> Told:
    queues = sorted({each.queue for each in note.differences})
    return "config.changed", "", _of(note, "version", "who", "source") | {"queues": queues}


def _pressed(note: history_records.JobPressed) -> Told:
    told = {"rule": "memory-pressure", "cause": "INTERRUPTED", "sentence": note.sentence}
    return "job.evicting", note.key, told


def _cancelled(note: history_records.JobCancelRequested) -> Told:
    """What waited has no other end; of what runs `job.ended` tells that it has stopped."""
    over = {"state": "cancelled"} if note.waited else {}
    return "job.cancelled", note.key, _of(note, "who", "now", "why") | over


def _memory(note: history_records.MemoryShort) -> Told:
    told = {"node": note.closed_node, "sentence": note.sentence}
    return "machine.memory-short" if note.short else "machine.memory-enough", "", told


def _labelled(event: e.LabelNode) -> Told:
    taints = [f"{t.key}={t.value}:{t.effect}" for t in event.taints]
    return "node.labelled", "", {"node": event.id, "attributes": dict(event.attributes), "taints": taints}


def _given(event: e.Configure) -> Told | None:
    told = {"checksum": event.spec.checksum, "who": event.who, "source": event.source}
    return ("config.given", "", told) if event.who else None


def _evict(evict: d.Evict) -> Told:
    told = by_job(_of(evict, "node", "on_behalf_of", "rule")) | {"cause": str(evict.cause)}
    return "job.evicting", job_of(evict.key), told | ({"violates": list(evict.violates)} if evict.violates else {})


_END = ("attempt", "state", "exit_code", "signal", "error", "note", "cpu_ms", "ended_at_ms")

_TOLD: dict[type, Callable[[Any], Told | None]] = {
    history_records.JobSubmitted: _submitted,
    history_records.JobRefused: lambda x: ("job.refused", x.key, {"reason": _of(x, "code", "sentence", "queue")}),
    history_records.JobWaits: lambda x: ("job.waits", x.key, {"reason": _of(x, "code", "sentence")}),
    history_records.JobCancelRequested: _cancelled,
    history_records.JobChanged: lambda x: ("job.changed", x.key, _of(x, "name", "time_limit_ms", "who")),
    history_records.JobSignalled: lambda x: ("job.signalled", x.key, _of(x, "who", "number")),
    history_records.JobRequeued: lambda x: ("job.requeued", x.key, _of(x, "who", "hold", "why")),
    history_records.JobSuspended: lambda x: ("job.suspended" if x.on else "job.resumed", x.key, _of(x, "who", "why")),
    history_records.JobStarted: lambda x: ("job.started", x.key, _of(x, "pid", "attempt") | {"gpus": list(x.gpus)}),
    history_records.JobCheckpointed: lambda x: ("job.checkpoint", x.key, _of(x, "attempt")),
    history_records.JobPressed: _pressed,
    history_records.AttemptEnded: lambda x: ("job.attempt-ended", x.key, _of(x, *_END)),
    history_records.JobEnded: lambda x: ("job.ended", x.key, _of(x, *_END, "peak_memory_bytes")),
    history_records.MemoryShort: _memory,
    QueuesReconfigured: _reconfigured,
    ServiceStarted: lambda x: ("service.started", "", _of(x, "version", "pid")),
    ServiceStopped: lambda x: ("service.stopped", "", _of(x, "pid")),
    JournalResumed: lambda x: ("service.journal-resumed", "", _of(x, "pid")),
    e.UpdateNode: lambda x: ("node.changed", "", {"node": x.id, "capacity": x.capacity.as_dict()}),
    e.LabelNode: _labelled,
    e.DrainNode: lambda x: ("node.draining", "", {"node": x.id}),
    e.UndrainNode: lambda x: ("node.open", "", {"node": x.id}),
    e.RemoveNode: lambda x: ("node.removed", "", {"node": x.id}),
    e.Configure: _given,
    d.Allocated: lambda x: ("job.allocated", job_of(x.key), {"node": x.node}),
    d.Evict: _evict,
    d.Released: lambda x: ("job.released", job_of(x.key), {"node": x.node, "cause": str(x.cause)}),
    d.Retried: lambda x: (
        "job.retried",
        job_of(x.new_key),
        {"next": x.new_key, "attempt": x.attempt, "due_ms": x.due_ms},
    ),
    d.Reserved: lambda x: ("job.reserved", job_of(x.key), {"node": x.node}),
    d.Unreserved: lambda x: ("job.unreserved", job_of(x.key), {"node": x.node}),
    d.Overdue: lambda x: ("job.overdue", job_of(x.key), by_job(_of(x, "node", "on_behalf_of"))),
    d.LoopBroken: lambda x: ("job.loop-broken", job_of(x.key), by_job(_of(x, "node", "victim", "times"))),
    d.AskChanged: lambda x: (
        "job.changed",
        job_of(x.key),
        {"resources": x.resources.as_dict(), "time_limit_ms": x.time_limit_ms, "who": x.who},
    ),
    d.ConditionsChanged: lambda x: (
        "job.conditions",
        job_of(x.key),
        {"sentence": conditions_changed(x.old, x.new, x.who), "who": x.who},
    ),
    d.PriorityChanged: lambda x: ("job.priority", job_of(x.key), {"old": x.old, "new": x.new, "who": x.who}),
    d.AtOnceChanged: lambda x: ("array.at-once", x.application, _of(x, "old", "new", "who")),
    d.ApplicationAccepted: lambda x: ("job.placed", x.id, {"queue": x.queue}),
    d.ApplicationMoved: lambda x: ("job.moved", x.id, {"old": x.old, "new": x.new, "who": x.who}),
    d.QueueChanged: lambda x: (f"queue.{x.change}", "", {"queue": x.queue}),
    d.AskRejected: lambda x: ("job.rejected", job_of(x.key) or x.application, {"reason": x.reason.as_dict()}),
    d.ApplicationRejected: lambda x: ("job.rejected", x.id, {"reason": x.reason.as_dict()}),
    d.DeclarationChanged: lambda x: (f"declaration.{x.change}", "", _of(x, "kind", "name", "who")),
    d.DeclarationRejected: lambda x: (
        "declaration.refused",
        "",
        _of(x, "kind", "name") | {"reason": x.reason.as_dict()},
    ),
    d.WindowOpened: lambda x: ("window.opened", "", _of(x, "name", "ends_ms") | {"stays": list(x.stays)}),
    d.WindowClosed: lambda x: ("window.closed", "", _of(x, "name", "next_ms")),
    d.NodeAccepted: lambda x: ("node.added", "", {"node": x.id}),
    d.NodeRejected: lambda x: ("node.refused", "", {"node": x.id, "reason": x.reason.as_dict()}),
    d.Configured: lambda x: ("config.applied", "", {"checksum": x.checksum}),
    d.ConfigurationRejected: lambda x: ("config.refused", "", {"reason": x.reason.as_dict()}),
}
"""How each note, event and decision is told; what is not here is no news (the state of an application, for one)."""


# -- for many readers ---------------------------------------------------------------------------------------------


BEHIND = 10_000
"""Events that wait for one reader, at most."""
HEARTBEAT_S = 15.0
PAGE = 500
"""Records of history read at once."""

Owner = Callable[[str], Whose | None]
"""Whose business a job is; None: nobody knows any longer (then only administrators may see it)."""


Visible = tuple[HistoryEvent, Whose | None]
"""An event and its owner."""


class Hub:
    """Passes durable entries on to all readers, as events."""

    def __init__(self, journal: Path, owner: Owner) -> None:
        """`owner` is called by the writer, while the books stand still."""
        self.journal, self._owner = journal, owner
        self.readers: Readers[Visible] = Readers()

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
    """Server-sent events for one caller: what came after `after` (None: only what is new), that this was all, then
    what happens.
    """
    reader = hub.readers.join(BEHIND)
    try:
        yield b"retry: 1000\n\n"
        last = after if after is not None else (0, 0)
        if after is not None:
            async for event, owner in _history(hub.journal, after, ask_owners):
                last = (event.seq, event.index)
                if event.type == "gap" or _visible(event, owner, caller):
                    yield frame(event)
            yield notice("caught-up", last, "what follows happens from now on")
        async for piece in live(reader, lambda event, owner: _visible(event, owner, caller), last):
            yield piece
    finally:
        hub.readers.leave(reader)


async def live(
    reader: Reader[Visible], sees: Callable[[HistoryEvent, Whose | None], bool], last: tuple[int, int] = (0, 0)
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
            yield notice("cut-off", last, f"this reader was more than {BEHIND} events behind; go on from the last id")
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
        here = first - 1 if seq < first else last
        yield HistoryEvent(here, 0, 0, "gap", "", {"asked_for": seq, "first": first, "why": why}), None
        seq, index = here, 10**9
    while True:
        page = await run_in_threadpool(_page, journal, seq)
        if page and page[0].seq > seq + 1:
            # So slow a reader that history begins later now.
            fields = {"asked_for": seq, "first": page[0].seq, "why": "older history was pruned"}
            yield HistoryEvent(page[0].seq - 1, 0, 0, "gap", "", fields), None
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


_OF_THE_QUEUE_FILE = ("config.given", "config.changed")
"""They say who changed it, and where it lies."""


def _visible(event: HistoryEvent, owner: Whose | None, caller: Caller) -> bool:
    if caller.is_guest and event.type in _OF_THE_QUEUE_FILE:
        return False
    return not event.key or caller.is_admin or (owner is not None and owner.is_for(caller))


def frame(event: HistoryEvent) -> bytes:
    """One event as it is sent."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        event.id.encode(),
        event.type.encode(),
        msgspec.json.encode(event.shown()),
    )


def notice(kind: str, last: tuple[int, int], why: str) -> bytes:
    """What is said of the stream itself; it has no id to go on from."""
    content = msgspec.json.encode(Event(seq=last[0], at_ms=time.time_ns() // 1_000_000, type=kind, values={"why": why}))
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), content)
