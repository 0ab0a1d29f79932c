"""The newest event records by number, in a ring.

Decides which records are still there and what a request for some of them gets. Never waits, and never makes JSON.
Invariant: numbers begin at 0 and grow by one with every record; a record that is there has the number it was given.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlead.insight.history_records import Record

CAPACITY = 100_000


@dataclass(frozen=True, slots=True)
class Page:
    """Some records in order. `lowest` and `highest` are the numbers that are there, 0 and 0 while there are none."""

    lowest: int
    highest: int
    records: list[Record] | None
    """None: the first one asked for is not there."""


class Ring:
    """A ring that one thread fills and many read."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._slots: list[Record] = []
        self._next = 0
        self._lock = threading.Lock()
        self._listeners: tuple[Callable[[Sequence[Record]], None], ...] = ()

    @property
    def told(self) -> int:
        """How many records there were, ever."""
        return self._next

    @property
    def kept(self) -> int:
        """How many are there."""
        return len(self._slots)

    def add(self, records: Sequence[Record]) -> None:
        """Newer records; the oldest make room. Listeners get them too, and must return at once."""
        with self._lock:
            room = self._capacity - len(self._slots)
            if room > 0:
                self._slots += records[:room]
            at = (self._next + min(max(room, 0), len(records))) % self._capacity
            for record in records[max(room, 0) :]:
                self._slots[at] = record
                at = at + 1 if at + 1 < self._capacity else 0
            self._next += len(records)
            for listener in self._listeners:
                listener(records)

    def page(self, start: int, count: int) -> Page:
        """Up to `count` records from number `start` on."""
        with self._lock:
            if not self._slots:
                return Page(0, 0, None)
            lowest, highest = self._next - len(self._slots), self._next - 1
            if not lowest <= start <= highest:
                return Page(lowest, highest, None)
            return Page(lowest, highest, self._between(start, min(start + count, self._next)))

    def listen(self, listener: Callable[[Sequence[Record]], None], past: int) -> list[Record]:
        """The newest `past` records; `listener` gets all that come after them, none twice."""
        with self._lock:
            first = self._next - min(past, len(self._slots))
            self._listeners = (*self._listeners, listener)
            return self._between(first, self._next)

    def forget(self, listener: Callable[[Sequence[Record]], None]) -> None:
        """It listens no longer."""
        with self._lock:
            self._listeners = tuple(one for one in self._listeners if one != listener)

    def _between(self, start: int, end: int) -> list[Record]:
        first, last = start % self._capacity, end % self._capacity
        if start == end:
            return []
        if len(self._slots) < self._capacity:
            return self._slots[start:end]
        return self._slots[first:last] if first < last else self._slots[first:] + self._slots[:last]
