"""Scheduler and place as one set of books, changed by journal entries alone, live and when recovering.

Decides how an entry changes the books, so that what happened live and what is replayed after a crash go through the
same lines. Never commits, waits or acts. Invariant: the books are a function of the entries; a replayed entry that
gives other decisions than were recorded stops the recovery, because those decisions were acted upon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fairlead.collector import collector_off
from fairlead.core.model.decisions import Configured, Decision
from fairlead.core.model.events import Configure, Event
from fairlead.journal import codec
from fairlead.journal.format import EVENT, NOTE, SCHEDULE
from fairlead.journal.store import Journal
from fairlead.runtime.configurations import Configurations
from fairlead.scheduler import Scheduler


class RecoveryError(Exception):
    """The journal cannot be brought back to a state: where, and what to do."""


def unreadable(what: str, fault: Exception) -> RecoveryError:
    """What stops the start where a checksum holds and the content makes no sense: it is not damaged."""
    return RecoveryError(
        f"{what} cannot be read ({fault}): another version of fairlead wrote it. Run that version on it, or "
        "let it run until its jobs have ended and then start with another state directory (--state)"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStarted:
    """A service took the journal over."""

    version: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStopped:
    """It gave the journal up in an orderly way; work goes on."""

    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalResumed:
    """The journal could be written again after it could not."""

    pid: int


OWN_NOTES = (ServiceStarted, ServiceStopped, JournalResumed)
for _record in OWN_NOTES:
    codec.register(_record)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the journal as it happened: `what` is an event, `{"limit": n}`, or a record of the place."""

    seq: int
    at_ms: int
    kind: str
    what: Any
    decisions: Sequence[Decision] = ()


class Place(Protocol):
    """What the runtime drives: a book of its own, and acts."""

    def load(self, state: Mapping[str, Any] | None) -> None:
        """Become what `dump` described; None: empty. Acts ordered so far stay ordered. A list of objects in it can be
        read once, row by row.
        """

    def dump(self) -> Mapping[str, Any]:
        """The place's book as plain values, JSON-ready."""

    def apply(self, record: Any, at_ms: int) -> None:
        """Enter a record of its own into its book."""

    def follow(self, decisions: Sequence[Decision], at_ms: int) -> None:
        """Enter the scheduler's decisions into its book."""

    def settle(self, turn: Turn) -> None:
        """Enter what the entries of this turn mean for others. Called before and after scheduling."""

    def act(self, entries: Sequence[Entry]) -> None:
        """Carry out what follows from entries that are durable now. Returns at once."""

    def close(self) -> None:
        """Stop watching; what runs goes on."""


class Books:
    """The scheduler's books and the place's, kept together."""

    def __init__(self, place: Place) -> None:
        self.scheduler = Scheduler()
        self.place = place
        self.configurations = Configurations()
        self.last_ms = 0

    def handle(self, event: Event, at_ms: int) -> list[Decision]:
        """One event."""
        decisions = self.scheduler.handle(event, at_ms)
        if isinstance(event, Configure) and any(isinstance(d, Configured) for d in decisions):
            self.configurations.add(event, at_ms)
        return self._follow(decisions, at_ms)

    def schedule(self, limit: int | None, at_ms: int) -> list[Decision]:
        """One run of scheduling."""
        return self._follow(self.scheduler.schedule(at_ms, limit), at_ms)

    def note(self, record: Any, at_ms: int) -> None:
        """One record that is not the scheduler's."""
        self.last_ms = max(self.last_ms, at_ms)
        if not isinstance(record, OWN_NOTES):
            self.place.apply(record, at_ms)

    def _follow(self, decisions: list[Decision], at_ms: int) -> list[Decision]:
        self.last_ms = max(self.last_ms, at_ms)
        self.place.follow(decisions, at_ms)
        return decisions

    def dump(self) -> bytes:
        """Everything, as the bytes of a snapshot: canonical JSON whose `scheduler` is what `Scheduler.dump` gave."""
        with collector_off():
            state = {
                "scheduler": self.scheduler.dump(),
                "place": self.place.dump(),
                "configurations": self.configurations.dump(),
                "at_ms": self.last_ms,
            }
            return codec.encode_plain(state)

    def load(self, snapshot: bytes | None) -> None:
        """Become what a snapshot describes; None: empty books."""
        # What is made here stays: to search it for garbage while it is made takes longer than to make it.
        with collector_off():
            state = codec.decode_members(snapshot) if snapshot else {}
            read = codec.decode_plain
            self.scheduler = Scheduler.load(read(state["scheduler"])) if state else Scheduler()
            self.place.load(codec.decode_by_rows(state["place"]) if state else None)
            self.configurations = Configurations.load(read(state["configurations"])) if state else Configurations()
            self.last_ms = read(state["at_ms"]) if state else 0

    def replay(self, seq: int, at_ms: int, kind: str, payload: bytes, outcome: bytes) -> None:
        """Enter one record of the journal again.

        Raises `CodecError` if it cannot be read, `RecoveryError` if it gives other decisions than then.
        """
        if not self._same(at_ms, kind, payload, outcome):
            raise RecoveryError(
                f"journal record {seq} gives other decisions now than it gave when it was written; start the version "
                f"of fairlead that wrote it once more and stop it in an orderly way, or see `fairlead journal replay`"
            )

    def _same(self, at_ms: int, kind: str, payload: bytes, outcome: bytes) -> bool:
        if kind == NOTE:
            self.note(codec.decode(payload, object), at_ms)
            return True
        if kind == SCHEDULE:
            return codec.same_decisions(outcome, self.schedule(codec.decode_limit(payload), at_ms))
        return codec.same_decisions(outcome, self.handle(codec.decode_event(payload), at_ms))


@dataclass(slots=True)
class Turn:
    """What a command may do while it has the books: look, and enter events and records at one moment."""

    books: Books
    journal: Journal
    now_ms: int
    entries: list[Entry] = field(default_factory=list)

    @property
    def scheduler(self) -> Scheduler:
        """To look at; it changes through `event` alone."""
        return self.books.scheduler

    def event(self, event: Event) -> list[Decision]:
        """Tell the scheduler; what it decided."""
        # Before the books change: what cannot be written must not be in them either.
        payload = codec.encode(event)
        decisions = self.books.handle(event, self.now_ms)
        self._enter(EVENT, event, payload, decisions)
        return decisions

    def note(self, record: Any) -> None:
        """Enter a record of the place's own (or of the service)."""
        payload = codec.encode(record)
        self.books.note(record, self.now_ms)
        self._enter(NOTE, record, payload, ())

    def schedule(self, limit: int) -> list[Decision]:
        """Let the scheduler place up to `limit` asks. A run that places nothing is an entry too: timers may act."""
        decisions = self.books.schedule(limit, self.now_ms)
        what = {"limit": limit}
        self._enter(SCHEDULE, what, codec.encode_plain(what), decisions)
        return decisions

    def _enter(self, kind: str, what: Any, payload: bytes, decisions: Sequence[Decision]) -> None:
        outcome = codec.encode_all(decisions) if kind != NOTE else b""
        seq = self.journal.append(self.now_ms, kind, payload, outcome)
        self.entries.append(Entry(seq, self.now_ms, kind, what, decisions))
