"""What the writer counts about itself: turns, commits, scheduling, failures.

Decides nothing; it only adds up. Changed by the writer alone; readers see plain numbers that may be a turn old.
"""

from __future__ import annotations

from bisect import bisect_left
from copy import deepcopy
from dataclasses import dataclass, field

BOUNDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Upper bounds of the latency buckets, in seconds; one more bucket holds the rest."""


@dataclass(slots=True)
class Latency:
    """How long something took, as a histogram."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total_seconds: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        """One more measurement."""
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.total_seconds += seconds
        self.count += 1


@dataclass(slots=True)
class Measures:
    """Everything the writer counts since it started."""

    turns: Latency = field(default_factory=Latency)
    scheduling: Latency = field(default_factory=Latency)
    commits: Latency = field(default_factory=Latency)
    snapshots: Latency = field(default_factory=Latency)
    records: int = 0
    allocations: int = 0
    evictions: int = 0
    refused: int = 0
    faults: int = 0
    journal_failures: int = 0

    def scheduled(self, seconds: float, allocations: int, evictions: int) -> None:
        """A run of scheduling."""
        self.scheduling.add(seconds)
        self.allocations += allocations
        self.evictions += evictions

    def copy(self) -> Measures:
        """The same numbers, no longer changed by anybody."""
        return deepcopy(self)
