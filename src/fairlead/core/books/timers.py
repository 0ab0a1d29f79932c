"""Timers: what is due when, in one total order; each of them can be replaced or cancelled.

Decides which timer is next: by time, then by the order in which they were set. Never acts. Invariant: there is at most
one timer for each partition, kind and subject, and only timers that still count are kept, counted and written down.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import NamedTuple

APPLICATION, PLACEHOLDERS, RESERVATION = "application", "placeholders", "reservation"
ATTEMPT, BACKOFF, HELD = "preempt", "backoff", "held"
OF_APPLICATIONS = (APPLICATION, PLACEHOLDERS, RESERVATION, ATTEMPT, BACKOFF, HELD)
"""All kinds whose subject is an application: they go with it."""


class Timer(NamedTuple):
    """One thing that is due at `due_ms`. `kind` tells which rule handles it."""

    due_ms: int
    seq: int
    partition: str
    subject: str
    kind: str


Name = tuple[str, str, str]
"""Partition, kind and subject of a timer."""


class Timers:
    """The timers of the whole cluster."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._live: dict[Name, Timer] = {}
        """By name the timer that counts; entries of the heap with other numbers are left over."""
        self._looks: dict[str, int] = {}
        """By partition when to look again at what waits. Nothing is due then, so that this is no part of the state."""
        self.last_seq = 0
        """The number of the timer that was set last: it decides between two that are due at the same time."""

    def set(self, due_ms: int, partition: str, subject: str, kind: str) -> None:
        """Something is due at `due_ms`, and no longer when it was due before."""
        self.last_seq += 1
        timer = Timer(due_ms, self.last_seq, partition, subject, kind)
        self._live[partition, kind, subject] = timer
        heappush(self._heap, timer)
        if len(self._heap) > 2 * len(self._live) + 64:
            self._heap = [timer for timer in self._heap if self._counts(timer)]
            heapify(self._heap)

    def set_earlier(self, due_ms: int, partition: str, subject: str, kind: str) -> None:
        """Something is due at `due_ms`, unless it is due earlier already."""
        known_ms = self.due_ms(partition, subject, kind)
        if known_ms is None or due_ms < known_ms:
            self.set(due_ms, partition, subject, kind)

    def cancel(self, partition: str, subject: str, kind: str) -> None:
        """It is due no longer."""
        self._live.pop((partition, kind, subject), None)

    def due_ms(self, partition: str, subject: str, kind: str) -> int | None:
        """When it is due; None: it is not."""
        timer = self._live.get((partition, kind, subject))
        return timer.due_ms if timer is not None else None

    def look(self, due_ms: int, partition: str) -> None:
        """At `due_ms` something may be found by looking again, though nothing happens then."""
        known = self._looks.get(partition)
        if known is None or due_ms < known:
            self._looks[partition] = due_ms

    def looks_due(self, now_ms: int) -> list[str]:
        """The partitions to look at again by now; they are forgotten."""
        due = [name for name, due_ms in self._looks.items() if due_ms <= now_ms]
        for name in due:
            del self._looks[name]
        return due

    def next_due_ms(self) -> int | None:
        """When the next timer is due."""
        heap = self._heap
        while heap and not self._counts(heap[0]):
            heappop(heap)
        return heap[0].due_ms if heap else None

    def may_be_due(self, now_ms: int) -> bool:
        """Whether something may be due, or is to be looked at again, by now. A timer that was cancelled may count."""
        for look_ms in self._looks.values():
            if look_ms <= now_ms:
                return True
        return bool(self._heap) and self._heap[0].due_ms <= now_ms

    def next_wakeup_ms(self) -> int | None:
        """When the next timer is due, or something may be found by looking again."""
        next_ms = self.next_due_ms()
        for look_ms in self._looks.values():
            if next_ms is None or look_ms < next_ms:
                next_ms = look_ms
        return next_ms

    def pop_due(self, now_ms: int) -> Timer | None:
        """Take out the next timer that is due by `now_ms`."""
        due_ms = self.next_due_ms()
        if due_ms is None or due_ms > now_ms:
            return None
        timer = heappop(self._heap)
        self.cancel(timer.partition, timer.subject, timer.kind)
        return timer

    def _counts(self, timer: Timer) -> bool:
        return self._live.get((timer.partition, timer.kind, timer.subject)) == timer

    def __len__(self) -> int:
        return len(self._live)

    def drop(self, partition: str) -> None:
        """Forget every timer of a partition."""
        self._looks.pop(partition, None)
        for name in [name for name in self._live if name[0] == partition]:
            del self._live[name]

    def pending(self) -> list[Timer]:
        """All timers in order."""
        return sorted(self._live.values())

    def restore(self, timers: list[Timer], last_seq: int) -> None:
        """Take over timers as they were (after a restart)."""
        self._heap = sorted(timers)
        self._live = {(t.partition, t.kind, t.subject): t for t in timers}
        self.last_seq = last_seq
