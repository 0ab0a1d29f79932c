"""Scorecard: forecasts held against what then happened, and how wide an interval has to be to be right often enough.

Decides how far the next intervals are widened, to each side of the middle of the futures. Work that has yet to come
makes everybody wait longer than the futures show; this is where that is learned. Never forecasts. Invariant: a forecast
is scored at most once.

Waits are compared as logarithms, in units of how far the futures of the ask itself are apart: an ask whose futures
agree gets a narrower interval than one whose futures do not. Each side has one number of such units, moved by its
own misses (quantile tracking, a form of adaptive conformal inference: Gibbs and Candès 2021, Angelopoulos, Candès and
Tibshirani 2023): a miss moves it out by much, every hit moves it in by little, so that in the long run each side misses
as often as it may, whatever is wrong with the futures. The steps are large at first. A forecast is counted as late as
soon as its interval is over, not only when the ask starts at last.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import exp, log, sqrt
from typing import Any

from fairlead.insight.forecast import HORIZON_MS, Expected
from fairlead.insight.trial import Name

COVERAGE = 0.8
FIRST_MARGIN = 1.5
"""Units to each side before anything is known."""
STEP, FIRST_STEP = 0.05, 2.0
"""By how many units a miss moves a side in the end, and at first: that one over the root of how many came."""
UNIT_LEAST = 0.5
"""Futures that agree are taken to be this far apart to each side at least (a factor of 1.65): no news comes in them."""
MARGIN_MAX = 40.0
WAIT_LEAST_MS = 1_000
"""Added to waits before they are compared as ratios: below this nobody minds."""
WAIT_MAX_MS = 12 * HORIZON_MS
OPEN_MAX = 20_000
"""Forecasts that wait for their outcome at most; beyond that the oldest are dropped unscored."""


@dataclass(slots=True)
class Promise:
    """One forecast that has yet to come true."""

    made_ms: int
    expected: Expected
    known_late: bool = False
    """Its interval is over, and that was learned from already."""


class Scorecard:
    """What became of forecasts."""

    def __init__(self, coverage: float = COVERAGE) -> None:
        self.coverage = coverage
        self.scored = self.inside = self.early = self.late = self.dropped = 0
        self._margins = [FIRST_MARGIN, FIRST_MARGIN]
        """Units below and above the middle."""
        self._has_learned = False
        self._open: dict[Name, Promise] = {}
        self._due: list[tuple[int, Name]] = []
        """When the intervals of open forecasts are over."""

    # -- making and keeping ---------------------------------------------------------------------------------------

    def promise(self, made_ms: int, expected: Expected) -> None:
        """A forecast was given out. Only the first one for each ask counts."""
        if expected.median_ms is None or expected.name in self._open:
            return
        if len(self._open) >= OPEN_MAX:
            self.drop(next(iter(self._open)))
        self._open[expected.name] = Promise(made_ms, expected)
        if expected.latest_ms is not None:
            heappush(self._due, (expected.latest_ms, expected.name))

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
        self._move(0, early)
        if not promise.known_late:
            self._move(1, late)

    def drop(self, name: Name) -> None:
        """An ask is gone without having started, or was changed: nothing can be said of its forecast."""
        if self._open.pop(name, None) is not None:
            self.dropped += 1

    def keep_only(self, names: Collection[Name]) -> None:
        """Drop what does not wait any longer (and did not start)."""
        for name in [name for name in self._open if name not in names]:
            self.drop(name)

    # -- widening -------------------------------------------------------------------------------------------------

    def calibrated(self, made_ms: int, expected: Expected) -> Expected:
        """The forecast of the futures alone, with its interval as wide as was learned; as it is before anything was."""
        self._count_overdue(made_ms)
        if expected.median_ms is None or not self._has_learned:
            return expected
        low, middle, high = (
            _log_wait(made_ms, ms) for ms in (expected.earliest_ms, expected.median_ms, expected.latest_ms)
        )
        low = middle - self._margins[0] * max(middle - low, UNIT_LEAST)
        high = max(middle + self._margins[1] * max(high - middle, UNIT_LEAST), low)
        return replace(expected, earliest_ms=_at(made_ms, low), latest_ms=_at(made_ms, high))

    def _count_overdue(self, now_ms: int) -> None:
        while self._due and self._due[0][0] < now_ms:
            latest_ms, name = heappop(self._due)
            promise = self._open.get(name)
            if promise is not None and promise.expected.latest_ms == latest_ms and not promise.known_late:
                promise.known_late = True
                self._move(1, True)

    def _move(self, side: int, missed: bool) -> None:
        self._has_learned = True
        step = max(STEP, FIRST_STEP / sqrt(1 + self.scored))
        margin = self._margins[side] + step * (missed - (1 - self.coverage) / 2)
        self._margins[side] = min(max(margin, -MARGIN_MAX), MARGIN_MAX)

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


def _log_wait(made_ms: int, at_ms: int | None) -> float:
    wait_ms = WAIT_MAX_MS if at_ms is None else max(at_ms - made_ms, 0)
    return log(wait_ms + WAIT_LEAST_MS)


def _at(made_ms: int, log_wait: float) -> int:
    least, most = log(WAIT_LEAST_MS), log(WAIT_MAX_MS)
    return made_ms + round(exp(min(max(log_wait, least), most))) - WAIT_LEAST_MS
