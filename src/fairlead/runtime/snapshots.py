"""Snapshots of the books: when one is due, and writing it.

Decides that by what was recorded since, how large they are, and the time. Never reads a clock for it, and never fails:
without one the next start only takes longer. Invariant: one is of all that is recorded, and of nothing more.
"""

from __future__ import annotations

import logging
import time

from fairlead.journal.format import FAILURES, Snapshot
from fairlead.journal.store import Journal
from fairlead.runtime.books import Books
from fairlead.runtime.measures import Latency

log = logging.getLogger("fairlead.runtime")

RECORDS = 20_000
"""After so many there is one, however large it is."""
FEWER_RECORDS = 4_000
"""After so many there is one if it is `SMALL`: it is written in a moment, and a start has less to do again."""
SMALL = 4 * 2**20
EVERY_MS = 300_000


class Snapshots:
    """Those of one journal."""

    def __init__(self, journal: Journal, books: Books, took: Latency) -> None:
        """`took` is told how long each was written."""
        self._journal, self._books, self._took = journal, books, took
        self._seq = self._bytes = 0
        self._last_ms: int | None = None
        self._not_before_ms = 0

    def found(self, newest: Snapshot | None) -> None:
        """The one that the books were brought back from."""
        self._seq, self._bytes = (newest.seq, len(newest.state)) if newest else (0, 0)

    def is_due(self, now_ms: int, *, busy: bool) -> bool:
        """Whether there should be one now. `busy`: something waits for it to be written."""
        written, small = self._journal.last_seq - self._seq, self._bytes < SMALL
        if self._last_ms is None:
            self._last_ms = now_ms
        # It takes a while when much waits: better between two bursts than in one, as long as that does not last.
        if now_ms < self._not_before_ms or (busy and not small and written < 5 * RECORDS):
            return False
        is_late = now_ms - self._last_ms >= EVERY_MS
        return written >= (FEWER_RECORDS if small else RECORDS) or (written > 0 and is_late)

    def write(self, now_ms: int) -> None:
        """One of the books as they are."""
        began = time.perf_counter()
        self._last_ms = now_ms
        try:
            state = self._books.dump()
            self._bytes = len(state)
            self._journal.save_snapshot(self._journal.last_seq, self._books.last_ms, state)
            self._seq = self._journal.last_seq
            self._journal.checkpoint()
        except Exception as failure:
            is_ours = not isinstance(failure, FAILURES)
            log.error("no snapshot could be written: %s", failure, exc_info=failure if is_ours else None)
            self._not_before_ms = now_ms + EVERY_MS // 5
            return
        self._took.add(time.perf_counter() - began)
