"""The pace of a simulation: what an event costs early and late in it.

Decides how CPU time is set against events: in quarters of all events. Never slows a run down. Invariant: quarters hold
about equally many events each, so their costs are equal when the work for an event does not depend on what came before.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from itertools import pairwise
from typing import Any

SAMPLES_MIN = 16
QUARTERS = 4


class Pace:
    """Samples of events and CPU time, at most `SAMPLES_MAX` of them."""

    SAMPLES_MAX = 4096

    def __init__(self) -> None:
        self._events, self._cpu_s = array("q"), array("d")
        self._every = self._skipped = 0
        self.kept_most = 0
        """The most things that were kept in memory for what waits, runs, or is due later."""

    def sample(self, events: int, kept: int) -> None:
        """So many events are through by now, and so many things are kept."""
        self.kept_most = max(self.kept_most, kept)
        self._skipped += 1
        if self._skipped <= self._every:
            return
        self._skipped = 0
        if len(self._events) >= self.SAMPLES_MAX:
            self._events, self._cpu_s = self._events[::2], self._cpu_s[::2]
            self._every = 2 * self._every + 1
        self._events.append(events)
        self._cpu_s.append(time.process_time())

    def figures(self) -> dict[str, Any] | None:
        """`events`, `us_per_event` by quarter, and `kept_most`; None where the run was too short to tell."""
        events, cpu_s = self._events, self._cpu_s
        if len(events) < SAMPLES_MIN or events[-1] - events[0] < QUARTERS:
            return None
        step = (events[-1] - events[0]) / QUARTERS
        edges = [bisect_left(events, events[0] + round(step * n)) for n in range(QUARTERS)] + [len(events) - 1]
        costs = [
            round(1e6 * (cpu_s[b] - cpu_s[a]) / (events[b] - events[a]), 2) if events[b] > events[a] else 0.0
            for a, b in pairwise(edges)
        ]
        return {"events": events[-1], "us_per_event": costs, "kept_most": self.kept_most}
