"""A course that was recorded: the scheduler as it was at any moment of a journal.

Decides how a moment is come to: on from where it is, or from the nearest state that is known, whichever is less to do.
Never writes, and never decides anything anew that it shows: what was decided is what was recorded. Invariant: the state
shown is that after the record it names.
"""

from __future__ import annotations

import contextlib
import time
import zlib
from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from fairlead.collector import collector_off
from fairlead.core.model.decisions import Released
from fairlead.core.model.events import AddApplication, AddAsks, Release
from fairlead.journal import codec
from fairlead.journal.format import NOTE, JournalError, Record
from fairlead.journal.reader import Reader
from fairlead.journal.replay import apply, scheduler_state
from fairlead.local.history_records import JobChanged, JobSubmitted
from fairlead.runtime.books import Entry
from fairlead.scheduler import Scheduler
from fairlead.service.history_events import HistoryEvent, of_record, tell
from fairlead.service.recorded.moment import key_of

SLICE = 100
"""Records between two looks at whether another moment is wanted meanwhile."""
KEEP_EACH_S = 0.4
"""A state is kept after so much work, so that no way back is much longer."""
KEPT_BYTES = 256 * 2**20
"""All states that are kept together, at most; then each second one goes."""


class Course:
    """A journal, and where in it one is. For one thread."""

    def __init__(self, path: Path) -> None:
        """At its begin. Raises `JournalError` if there is none, or nothing is in it."""
        self._reader = Reader(path)
        try:
            self._open(path)
        except BaseException:
            self._reader.close()
            raise

    def _open(self, path: Path) -> None:
        self.last_seq = self._reader.last_seq
        if self.last_seq < self._reader.first_seq:
            raise JournalError(f"nothing is recorded in {path}")
        self._kept: dict[int, bytes] = {}
        self._stored = self._good_snapshots()
        self._known = sorted({*self._stored, *((0,) if self._reader.first_seq == 1 else ())})
        """After which records a state is known, kept or stored."""
        if not self._known:
            raise JournalError(f"history begins with record {self._reader.first_seq}, and no good snapshot leads there")
        self.first_seq: int = max(self._known[0], self._reader.first_seq)
        self.begin_ms, self.end_ms = self.record(self.first_seq).at_ms, self.record(self.last_seq).at_ms
        self._of_service = next(iter(self._reader.records(self.first_seq, kinds=(NOTE,))), None) is not None
        """A service notes who submitted what; in a simulation that follows from what came."""
        self.names: dict[str, str] = {}
        """Of jobs of a service, and of its arrays, as far as one has come."""
        self._begin(self._known[0])

    def _good_snapshots(self) -> frozenset[int]:
        found = set()
        for seq in self._reader.snapshot_seqs():
            with contextlib.suppress(JournalError):
                self._reader.open_snapshot(seq)
                found.add(seq)
        return frozenset(found)

    def close(self) -> None:
        """Let go of the file."""
        self._reader.close()

    # -- what was recorded --------------------------------------------------------------------------------------------

    def record(self, seq: int) -> Record:
        """One record. Raises `JournalError`."""
        for record in self._reader.records(seq, seq):
            return record
        raise JournalError(f"there is no record {seq}")

    def entries(self, first: int, last: int) -> Iterator[Entry]:
        """What was recorded, from one record to another. Raises `JournalError`."""
        for record in self._reader.records(max(first, self.first_seq), min(last, self.last_seq)):
            try:
                yield of_record(record)
            except codec.CodecError as problem:
                raise JournalError(f"record {record.seq} cannot be read: {problem}") from problem

    def events(self, first: int, last: int) -> Iterator[HistoryEvent]:
        """The same as events, each with the key that its job goes by here. Raises `JournalError`."""
        for entry in self.entries(first, last):
            if not self._of_service:
                yield from _noted(entry)
            yield from tell(replace(entry, decisions=()))
            for decision in entry.decisions:
                for event in tell(replace(entry, what=None, decisions=(decision,))):
                    application, key = (getattr(decision, name, "") for name in ("application", "key"))
                    yield replace(event, key=key_of(application, key) if key else event.key)

    def seq_at(self, at_ms: int) -> int:
        """The last record not later than this, but at least the first one."""
        return max(self._reader.seq_at(at_ms), self.first_seq)

    def next_decided(self, seq: int, step: int) -> int:
        """The next record behind (`step` 1) or before (-1) this one with which something was decided; else the last
        or the first.
        """
        found = self._reader.decided_beside(seq, step)
        return max(found, self.first_seq) if found is not None else self.last_seq if step > 0 else self.first_seq

    # -- where one is -------------------------------------------------------------------------------------------------

    def move(self, seq: int) -> Iterator[None]:
        """Come to the state after this record; gives way after each slice. Raises `JournalError`."""
        nearest = self._known[bisect_right(self._known, seq) - 1]
        if self.seq > seq or nearest > self.seq:
            self._begin(nearest)
        while self.seq < seq:
            began = time.perf_counter()
            for record in self._reader.records(self.seq + 1, min(seq, self.seq + SLICE)):
                self._take(record)
            self._work_s += time.perf_counter() - began
            if self._work_s >= KEEP_EACH_S:
                self._keep()
            yield

    def _begin(self, seq: int) -> None:
        """The state after this record, which is known."""
        with collector_off():
            if seq in self._kept:
                self.scheduler = Scheduler.load(codec.decode_plain(zlib.decompress(self._kept[seq])))
            elif seq in self._stored:
                snapshot = self._reader.open_snapshot(seq)
                self.scheduler = Scheduler.load(dict(scheduler_state(snapshot)))
                self.names |= _names_in(snapshot.state)
            else:
                self.scheduler = Scheduler()
        self.seq, self._work_s = seq, 0.0
        self.at_ms = self.record(max(seq, self.first_seq)).at_ms

    def _take(self, record: Record) -> None:
        if record.kind == NOTE:
            try:
                noted = codec.decode(record.payload, object)
            except codec.CodecError as problem:
                raise JournalError(f"record {record.seq} cannot be read: {problem}") from problem
            if isinstance(noted, JobSubmitted):
                self.names[noted.job.key] = noted.job.name
            elif isinstance(noted, JobChanged):
                self.names[noted.key] = noted.name
        else:
            apply(record, self.scheduler)
        self.seq, self.at_ms = record.seq, record.at_ms

    def _keep(self) -> None:
        self._work_s = 0.0
        if self.seq in self._known:
            return
        with collector_off():
            self._kept[self.seq] = zlib.compress(codec.encode_plain(self.scheduler.dump()), 1)
        insort(self._known, self.seq)
        while sum(map(len, self._kept.values())) > KEPT_BYTES and len(self._kept) > 1:
            for seq in sorted(self._kept)[::2]:
                del self._kept[seq]
                self._known.remove(seq)


class _Named(msgspec.Struct):
    key: str
    name: str = ""


class _Job(msgspec.Struct):
    spec: _Named


class _Book(msgspec.Struct):
    jobs: list[_Job] = []


class _State(msgspec.Struct):
    """What is read of a snapshot for the names of a service's jobs."""

    place: _Book = msgspec.field(default_factory=_Book)


def _names_in(state: bytes) -> dict[str, str]:
    """Those of the jobs that a service knew then; none in a simulation."""
    return {job.spec.key: job.spec.name for job in msgspec.json.decode(state, type=_State).place.jobs}


def _noted(entry: Entry) -> Iterator[HistoryEvent]:
    """What a service would have noted of a record: whose an application is, what came, and what left when it was told
    to (of what leaves by itself the scheduler says so).
    """

    def event(what: str, key: str, index: int = 0, **said: Any) -> HistoryEvent:
        return HistoryEvent(entry.seq, index, entry.at_ms, what, key, said)

    match entry.what:
        case AddApplication(application):
            yield event("application.submitted", application.id, user=application.user)
        case AddAsks(asks):
            for index, ask in enumerate(asks):
                resources = ask.resources.as_dict()
                key = key_of(ask.application, ask.key)
                yield event("job.submitted", key, index, application=ask.application, resources=resources)
        case Release(application, key, cause) if not any(isinstance(each, Released) for each in entry.decisions):
            yield event("job.released", key_of(application, key), cause=str(cause))
        case _:
            pass
