"""The cluster: all partitions, and what they share: time, timers, classes and quotas, the order of arrival.

Decides which number comes next. Never schedules, and changes no partition (`core.acts` does). Invariant: time never
goes back, and all partitions have the same.
"""

from __future__ import annotations

from fairlead.core.books.admission import Admission
from fairlead.core.books.partition import Partition
from fairlead.core.books.timers import Timers
from fairlead.core.model.decisions import Decision


class Cluster:
    """The books of everything."""

    def __init__(self) -> None:
        self.partitions: dict[str, Partition] = {}
        self.timers = Timers()
        self.admission = Admission(self.partitions.values())
        self.out: list[Decision] = []
        self.now_ms = 0
        self.started_ms = 0
        self.checksum = ""
        self.text = ""
        self.keeps_history = True
        """Whether partitions keep applications that have ended for a while."""
        self.last_seq = 0
        """The last number given out."""

    def next_seq(self) -> int:
        """The next number in the order of arrival."""
        self.last_seq += 1
        return self.last_seq

    def set_time(self, now_ms: int) -> None:
        """Bring the time forward; it never goes back."""
        if now_ms < self.now_ms:
            raise ValueError(f"time goes back from {self.now_ms} ms to {now_ms} ms")
        self.now_ms = now_ms
        for partition in self.partitions.values():
            partition.now_ms = now_ms

    def drain_out(self) -> list[Decision]:
        """What was decided since the last call."""
        decided = list(self.out)
        self.out.clear()
        return decided
