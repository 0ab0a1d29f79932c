"""Latencies: how long pods took from when they were seen to their binding, and how many were stopped for one.

Decides what is counted and in which steps, which are kube-scheduler's. Never decides anything by it. Invariant: a pod
is counted once, when it is bound; only pods that wait are remembered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from fairlead.core.model.decisions import Decision, Evict

SCHEDULING_S = tuple(0.01 * 2**step for step in range(20))
PLACEHOLDER = "placeholder"
"""The rule by which a placeholder makes room for its member."""
VICTIMS = tuple(float(2**step) for step in range(7))


@dataclass(slots=True)
class Histogram:
    """How often something was how large."""

    bounds: tuple[float, ...]
    """Upper bounds of the steps; one more step holds the rest."""
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        """Nothing was counted yet."""
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """One more."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(slots=True)
class Latencies:
    """Everything that one control loop counts of this kind."""

    scheduling: Histogram = field(default_factory=lambda: Histogram(SCHEDULING_S))
    """Seconds from when a pod was seen to its binding."""
    victims: Histogram = field(default_factory=lambda: Histogram(VICTIMS))
    """How many were told to stop for one, each time that happened."""
    _seen: dict[str, int] = field(default_factory=dict)

    def came(self, uid: str, now_ms: int) -> None:
        """A pod that waits is there."""
        self._seen.setdefault(uid, now_ms)

    def bound(self, uid: str, now_ms: int) -> None:
        """The API server has bound it."""
        seen_ms = self._seen.pop(uid, None)
        if seen_ms is not None:
            self.scheduling.add((now_ms - seen_ms) / 1000)

    def left(self, uid: str) -> None:
        """It is gone."""
        self._seen.pop(uid, None)

    def stopped(self, decisions: Iterable[Decision]) -> None:
        """What was decided in one run."""
        evicted = (each for each in decisions if isinstance(each, Evict) and each.rule != PLACEHOLDER)
        by = Counter(each.on_behalf_of for each in evicted if each.on_behalf_of)
        for count in by.values():
            self.victims.add(count)
