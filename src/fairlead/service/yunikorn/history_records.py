"""History as records: every durable entry as event records, with counts for the metrics.

Decides nothing; it has the history writer make them and keeps the result in a ring. It is called between two turns, so
it must be quick and never fail. Invariant: a fault in it never stops the writer; it is logged, and telling ends there.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.decisions import (
    ApplicationAccepted,
    ApplicationChanged,
    ApplicationRejected,
    AskRejected,
    Decision,
)
from fairlead.core.model.events import AddApplication
from fairlead.insight.history_records import Change, Detail, Record
from fairlead.insight.history_writer import HistoryWriter
from fairlead.journal.format import EVENT, NOTE
from fairlead.service.yunikorn.history_ring import Ring

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.runtime import Entry
    from fairlead.scheduler import Scheduler

log = logging.getLogger("fairlead.service")


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
