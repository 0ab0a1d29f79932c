"""Timers: what is due when, in one total order.

Decides which timer is next: by time, then by the order in which they were set. Never acts; who set a timer also decides
whether it still counts (the epoch of its application).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple


class Timer(NamedTuple):
    """One thing that is due at `due_ms`. `kind` tells who handles it."""

    due_ms: int
    seq: int
    partition: str
    subject: str
    epoch: int
    kind: str


class Timers:
    """A queue of timers for the whole cluster."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self.last_seq = 0
        """The number of the timer that was set last: it decides between two that are due at the same time."""

    def set(self, due_ms: int, partition: str, subject: str, epoch: int, kind: str = "application") -> None:
        """Something is due at `due_ms`."""
        self.last_seq += 1
        heappush(self._heap, Timer(due_ms, self.last_seq, partition, subject, epoch, kind))

    def next_due_ms(self) -> int | None:
        """When the next timer is due."""
        return self._heap[0].due_ms if self._heap else None

    def pop_due(self, now_ms: int) -> Timer | None:
        """Take out the next timer that is due by `now_ms`."""
        if self._heap and self._heap[0].due_ms <= now_ms:
            return heappop(self._heap)
        return None

    def __len__(self) -> int:
        return len(self._heap)

    def drop(self, partition: str) -> None:
        """Forget every timer of a partition."""
        self._heap = sorted(t for t in self._heap if t.partition != partition)

    def pending(self) -> list[Timer]:
        """All timers in order."""
        return sorted(self._heap)

    def restore(self, timers: list[Timer], last_seq: int = 0) -> None:
        """Take over timers as they were (after a restart)."""
        self._heap = sorted(timers)
        self.last_seq = max(last_seq, *(t.seq for t in timers), 0)
