"""Snapshots of the books: when one is due, and writing it.

Decides that by what was recorded since, how large they are, and the time. Never reads a clock for it, and never fails:
without one the next start only takes longer. Invariant: one is of all that was recorded by some moment, and of nothing
more; while a copy of the process writes one down, the books go on.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from fairlead.apart import Asked, NoAnswer, ask_apart
from fairlead.journal.format import FAILURES, Snapshot
from fairlead.journal.store import Journal, packed
from fairlead.runtime.books import Books
from fairlead.runtime.measures import Latency

log = logging.getLogger("fairlead.runtime")

RECORDS = 20_000
"""After so many there is one, however large it is."""
FEWER_RECORDS = 4_000
"""After so many there is one if it is `SMALL`: it is written in a moment, and a start has less to do again."""
SMALL = 4 * 2**20
EVERY_MS = 300_000
LOOK_MS = 50
"""Between two looks whether a copy is done."""
PATIENCE_S = 900.0
"""That a copy has. It stands back behind all work on the machine: where that wants every processor, a second of its own
takes ten and more, and without any snapshot each start would take longer than the one before.
"""


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """One that a copy of the process writes down: of which moment."""

    asked: Asked
    seq: int
    at_ms: int
    stood_s: float


class Snapshots:
    """Those of one journal."""

    def __init__(self, journal: Journal, books: Books, took: Latency, *, by_copies: bool) -> None:
        """`took` is told how long the books stood still for each. `by_copies`: those that are due while work goes on
        are written down by a copy of this process; a large one takes most of a second.
        """
        self._journal, self._books, self._took, self._by_copies = journal, books, took, by_copies
        self._seq = self._bytes = 0
        self._last_ms: int | None = None
        self._not_before_ms = 0
        self._under_way: _UnderWay | None = None

    def found(self, newest: Snapshot | None) -> None:
        """The one that the books were brought back from."""
        self._seq, self._bytes = (newest.seq, len(newest.state)) if newest else (0, 0)

    @property
    def wait_ms(self) -> int:
        """After how long somebody should look again, though nothing comes."""
        return LOOK_MS if self._under_way is not None else EVERY_MS

    def look(self, now_ms: int) -> None:
        """Take what a copy has done, or begin with one that is due."""
        if self._under_way is None:
            if self._is_due(now_ms):
                self._begin(now_ms)
        elif self._under_way.asked.has_come():
            self._end(now_ms, self._under_way)

    def _is_due(self, now_ms: int) -> bool:
        written, small = self._journal.last_seq - self._seq, self._bytes < SMALL
        if self._last_ms is None:
            self._last_ms = now_ms
        is_late = now_ms - self._last_ms >= EVERY_MS
        enough = FEWER_RECORDS if small else RECORDS
        return now_ms >= self._not_before_ms and (written >= enough or (written > 0 and is_late))

    def _begin(self, now_ms: int) -> None:
        if not self._by_copies:
            self.write(now_ms)
            return
        self._last_ms, began = now_ms, time.perf_counter()
        try:
            asked = ask_apart(self._written_down, PATIENCE_S)
        except OSError as failure:
            self._failed(now_ms, failure)
        else:
            self._under_way = _UnderWay(asked, self._journal.last_seq, self._books.last_ms, time.perf_counter() - began)

    def _written_down(self) -> tuple[int, bytes]:
        state = self._books.dump()
        return len(state), packed(state)

    def _end(self, now_ms: int, one: _UnderWay) -> None:
        self._under_way, began = None, time.perf_counter()
        try:
            self._keep(one.seq, one.at_ms, *one.asked.answer())
        except Exception as failure:
            self._failed(now_ms, failure)
        else:
            self._took.add(one.stood_s + time.perf_counter() - began)

    def write(self, now_ms: int) -> None:
        """One of the books as they are, at once."""
        self.give_up()
        self._last_ms, began = now_ms, time.perf_counter()
        try:
            self._keep(self._journal.last_seq, self._books.last_ms, *self._written_down())
        except Exception as failure:
            self._failed(now_ms, failure)
        else:
            self._took.add(time.perf_counter() - began)

    def give_up(self) -> None:
        """What a copy is at work on is not wanted any more."""
        if self._under_way is not None:
            self._under_way.asked.give_up()
            self._under_way = None

    def _keep(self, seq: int, at_ms: int, size: int, state: bytes) -> None:
        self._journal.save_packed(seq, at_ms, state)
        self._seq, self._bytes = seq, size
        self._journal.checkpoint()

    def _failed(self, now_ms: int, failure: Exception) -> None:
        is_ours = not isinstance(failure, (*FAILURES, NoAnswer))
        log.error("no snapshot could be written: %s", failure, exc_info=failure if is_ours else None)
        self._not_before_ms = now_ms + EVERY_MS // 5
