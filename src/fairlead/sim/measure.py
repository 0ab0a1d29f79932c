"""Figures that are kept while time passes: use of resources over time, and how long things waited.

Decides how they are computed: use is weighted by time, percentiles are by nearest rank (a value that really occurred).
Never looks at a scheduler. Invariant: memory is bounded for use over time, one integer for each wait.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence

from fairlead.core.resources import Items

_BUCKETS = 64
_BARS = " ▁▂▃▄▅▆▇█"


def percentile(ordered: Sequence[int], percent: float) -> int:
    """The nearest-rank percentile of values in ascending order: the smallest that `percent` of them do not exceed."""
    if not ordered:
        raise ValueError("a percentile needs at least one value")
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


class Waits:
    """How long each one waited, in milliseconds."""

    def __init__(self) -> None:
        self._ms = array("q")

    def add(self, wait_ms: int) -> None:
        """One more wait, in milliseconds."""
        self._ms.append(wait_ms)

    def __len__(self) -> int:
        return len(self._ms)

    def figures(self) -> dict[str, float] | None:
        """`count`, and `mean`, `p50`, `p95`, `p99`, `max` in seconds; None when nothing waited or started."""
        if not self._ms:
            return None
        ordered = sorted(self._ms)
        found: dict[str, float] = {"count": len(ordered), "mean": round(sum(ordered) / len(ordered) / 1000, 3)}
        found |= {f"p{p}": percentile(ordered, p) / 1000 for p in (50, 95, 99)}
        return found | {"max": ordered[-1] / 1000}


class UseOverTime:
    """How much of a fixed capacity is in use, resource by resource, from `start_ms` on.

    The course is kept in 64 stretches of equal length; when time outgrows them, two become one.
    """

    def __init__(self, capacity: Mapping[str, int], start_ms: int) -> None:
        self.capacity = {name: v for name, v in sorted(capacity.items()) if v > 0}
        self.start_ms = self.now_ms = start_ms
        self.used = dict.fromkeys(self.capacity, 0)
        self.peak = dict.fromkeys(self.capacity, 0)
        self._width_ms = 1000
        self._course = {name: [0] * _BUCKETS for name in self.capacity}

    def advance(self, now_ms: int) -> None:
        """Time passes with the use that there is."""
        while (now_ms - self.start_ms) > self._width_ms * _BUCKETS:
            self._halve()
        while self.now_ms < now_ms:
            bucket = (self.now_ms - self.start_ms) // self._width_ms
            end_ms = min(now_ms, self.start_ms + (bucket + 1) * self._width_ms)
            for name, amount in self.used.items():
                self._course[name][bucket] += amount * (end_ms - self.now_ms)
            self.now_ms = end_ms

    def _halve(self) -> None:
        for name, course in self._course.items():
            pairs = [course[i] + course[i + 1] for i in range(0, _BUCKETS, 2)]
            self._course[name] = pairs + [0] * (_BUCKETS // 2)
        self._width_ms *= 2

    def change(self, items: Items, sign: int) -> None:
        """From now on that much more (`sign` 1) or less (-1) is in use; resources without capacity are left out."""
        for name, amount in items:
            if name in self.used:
                self.used[name] += sign * amount
                self.peak[name] = max(self.peak[name], self.used[name])

    def figures(self) -> dict[str, dict[str, float]]:
        """For each resource its `capacity`, the `mean` share in use weighted by time, and the `peak` share (0 to 1)."""
        span = self.now_ms - self.start_ms
        return {
            name: {
                "capacity": capacity,
                "mean": round(sum(self._course[name]) / (capacity * span), 6) if span else 0.0,
                "peak": round(self.peak[name] / capacity, 6),
            }
            for name, capacity in self.capacity.items()
        }

    def course(self, name: str) -> list[float]:
        """The share in use in each stretch of time so far."""
        full_ms = self.now_ms - self.start_ms
        shares: list[float] = []
        for bucket, amount in enumerate(self._course[name]):
            lasted = min(self._width_ms, full_ms - bucket * self._width_ms)
            if lasted <= 0:
                break
            shares.append(amount / (lasted * self.capacity[name]))
        return shares

    def bars(self, name: str) -> str:
        """The course as one line of bars, empty to full."""
        top = len(_BARS) - 1
        return "".join(_BARS[min(math.ceil(share * top), top)] for share in self.course(name))
