"""Scorecard: forecasts held against what then happened, and how wide an interval has to be to be right often enough.

Decides how the next intervals are stretched: by what the newest forecasts got wrong, as ratios between the wait that
was expected (the median of the futures) and the wait that was. Work that has yet to come makes everybody wait longer
than the futures show; this is where that is learned. Never forecasts. Invariant: a forecast is scored at most once.

Each tail is moved by its own misses (adaptive conformal inference, Gibbs and Candès 2021): a miss above moves the upper
level up by much, every hit moves it down a little, so that in the long run each side misses as often as it may.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from math import exp, log
from typing import Any

from fairlead.insight.forecast import WAIT_LEAST_MS, Expected
from fairlead.insight.trial import Name

COVERAGE = 0.8
WINDOW = 400
"""Newest errors that count."""
ENOUGH = 20
STEP = 0.01
LEVEL_MIN, LEVEL_MAX = 0.005, 0.995
OPEN_MAX = 20_000
"""Forecasts that wait for their outcome at most; beyond that the oldest are dropped unscored."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One forecast that has yet to come true."""

    made_ms: int
    expected: Expected


class Scorecard:
    """What became of forecasts."""

    def __init__(self, coverage: float = COVERAGE) -> None:
        self.coverage = coverage
        self.scored = self.inside = self.early = self.late = self.dropped = 0
        self._tails = [(1 - coverage) / 2, (1 + coverage) / 2]
        self._errors: deque[float] = deque()
        self._ordered: list[float] = []
        self._open: dict[Name, Promise] = {}

    # -- making and keeping ---------------------------------------------------------------------------------------

    def promise(self, made_ms: int, expected: Expected) -> None:
        """A forecast was given out. Only the first one for each ask counts."""
        if expected.median_ms is None or expected.name in self._open:
            return
        if len(self._open) >= OPEN_MAX:
            self.drop(next(iter(self._open)))
        self._open[expected.name] = Promise(made_ms, expected)

    def is_promised(self, name: Name) -> bool:
        """Whether a forecast for this ask waits for its outcome."""
        return name in self._open

    def started(self, name: Name, at_ms: int) -> None:
        """An ask started: its forecast is scored, if there is one."""
        promise = self._open.pop(name, None)
        if promise is None:
            return
        expected = promise.expected
        assert expected.median_ms is not None
        early = expected.earliest_ms is not None and at_ms < expected.earliest_ms
        late = expected.latest_ms is not None and at_ms > expected.latest_ms
        self.scored += 1
        self.early += early
        self.late += late
        self.inside += not early and not late
        self._learn(_error(promise, at_ms))
        tail = (1 - self.coverage) / 2
        self._tails[0] -= STEP * (early - tail)
        self._tails[1] += STEP * (late - tail)
        self._tails = [min(max(level, LEVEL_MIN), LEVEL_MAX) for level in self._tails]

    def drop(self, name: Name) -> None:
        """An ask is gone without having started, or was changed: nothing can be said of its forecast."""
        if self._open.pop(name, None) is not None:
            self.dropped += 1

    def keep_only(self, names: Collection[Name]) -> None:
        """Drop what does not wait any longer (and did not start)."""
        for name in [name for name in self._open if name not in names]:
            self.drop(name)

    def _learn(self, error: float) -> None:
        self._errors.append(error)
        insort(self._ordered, error)
        if len(self._errors) > WINDOW:
            self._ordered.remove(self._errors.popleft())

    # -- stretching -----------------------------------------------------------------------------------------------

    def stretch(self, now_ms: int) -> tuple[float, float] | None:
        """Factors of the expected wait between which the true one lies as often as promised; None: too little known.

        Forecasts that are overdue count as being off by what they are off by now, at least.
        """
        overdue = [_error(promise, now_ms) for promise in self._open.values()]
        errors = sorted([*self._ordered, *(error for error in overdue if error > 0)])
        if len(errors) < ENOUGH:
            return None
        low, high = (errors[min(int(level * len(errors)), len(errors) - 1)] for level in self._tails)
        return exp(min(low, high)), exp(max(low, high))

    @property
    def observed(self) -> float | None:
        """The part of scored forecasts that came true inside their interval; None: none was scored yet."""
        return self.inside / self.scored if self.scored else None

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "promised": self.coverage,
            "observed": self.observed,
            "scored": self.scored,
            "inside": self.inside,
            "early": self.early,
            "late": self.late,
            "open": len(self._open),
            "dropped": self.dropped,
        }


def _error(promise: Promise, at_ms: int) -> float:
    """How much longer than expected it took, as the logarithm of a ratio."""
    median_ms = promise.expected.median_ms
    assert median_ms is not None
    expected, real = median_ms - promise.made_ms, at_ms - promise.made_ms
    return log((max(real, 0) + WAIT_LEAST_MS) / (max(expected, 0) + WAIT_LEAST_MS))
