"""Scorecard: forecasts held against what then happened, and how wide an interval has to be to be right often enough.

Decides how far the next intervals reach, to each side of the middle of the futures. Work that has yet to come makes
everybody wait longer than the futures show; this is where that is learned. Never forecasts. Invariant: a forecast is
scored at most once, and nothing but what happened before it widens it.

Waits are compared as logarithms, in units of how far the futures of the ask itself are apart: an ask whose futures
agree gets a narrower interval than one whose futures do not. What the newest outcomes were in such units says how far
the next interval reaches: as far as all but a tenth of them to each side (split conformal prediction over a moving
window). The part that is left out follows from how often intervals were missed lately, so that whatever is wrong with
the futures they are missed about as often as they may (adaptive conformal inference: Gibbs and Candès 2021); but for
too few misses not much is taken away, for those who wait in one backlog are right or wrong together. The misses of
both sides count as one: where a side lies follows from the outcomes, and a backlog that was missed on one side says
little of the next. A forecast counts as late as soon as its interval is over, not only when the ask starts at last.
Queues are not told apart: their own outcomes make narrower intervals that are right less often, for there are fewer.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from math import exp, log

from msgspec.structs import replace

from fairlead.insight.forecast import HORIZON_MS, Expected
from fairlead.insight.trial import Name
from fairlead.wire.questions import Score

COVERAGE = 0.8
WINDOW = 1_000
"""Outcomes that the next intervals rest on."""
PRIOR = (-2.0, -1.6, -1.2, -0.8, -0.4, 0.0, 0.4, 0.8, 1.2, 1.6, 2.0)
"""What is taken for outcomes before there are any, in units: they leave as real ones come."""
LATELY = 2_000
"""Outcomes by which it is told how often intervals were missed lately."""
CORRECTION = 0.00125
"""How strongly one miss more or less than there may be changes the part that is left out on each side."""
LEFT_OUT = (0.1, 1.3)
"""The part that is left out on a side, at least and at most, in units of what it may be. Not much more than that: a
long backlog that went well is one piece of luck, though hundreds started in it; an interval that pays that back by
being narrow misses the next backlog as a whole."""
UNIT_LEAST = 0.5
"""Futures that agree are taken to be this far apart to each side at least (a factor of 1.65): no news comes in them."""
WAIT_LEAST_MS = 1_000
"""Added to waits before they are compared as ratios: below this nobody minds."""
WAIT_MAX_MS = 12 * HORIZON_MS
OPEN_MAX = 20_000
"""Forecasts that wait for their outcome at most; beyond that the oldest are dropped unscored."""


@dataclass(slots=True)
class Promise:
    """One forecast that has yet to come true."""

    name: Name
    made_ms: int
    earliest_ms: int | None
    latest_ms: int | None
    middle: float
    below: float
    above: float
    """The middle of the futures as the logarithm of a wait, and a unit to each side of it."""
    known_late: bool = False
    """Its interval is over, and that was learned from already."""

    def units(self, at_ms: int) -> float:
        """Where a start then would be, in units from the middle."""
        off = _log_wait(self.made_ms, at_ms) - self.middle
        return off / (self.above if off >= 0 else self.below)


@dataclass(slots=True)
class State:
    """Everything that a scorecard knows, as plain values."""

    coverage: float = COVERAGE
    scored: int = 0
    inside: int = 0
    early: int = 0
    late: int = 0
    dropped: int = 0
    outcomes: list[float] = field(default_factory=list)
    """The newest, oldest first, in units from the middle."""
    missed: list[bool] = field(default_factory=list)
    """Of the newest: whether they were outside their interval, to whichever side."""
    open: list[Promise] = field(default_factory=list)


class Scorecard:
    """What became of forecasts."""

    def __init__(self, coverage: float = COVERAGE, *, learns: bool = True) -> None:
        """`learns` False: intervals stay as the futures have them."""
        self.coverage = coverage
        self.learns = learns
        self.scored = self.inside = self.early = self.late = self.dropped = 0
        self._outcomes: deque[float] = deque(maxlen=WINDOW)
        self._missed: deque[bool] = deque(maxlen=LATELY)
        self._reach: tuple[int, float, float] | None = None
        """Worked out for a moment, while nothing is learned: a moment has many forecasts."""
        self._open: dict[Name, Promise] = {}

    # -- making and keeping ---------------------------------------------------------------------------------------

    def promise(self, made_ms: int, plain: Expected) -> Expected:
        """A forecast is given out, with its interval as wide as was learned; returns that.

        Only the first one for each ask counts, and none that rests on futures that were broken off.
        """
        told = self.calibrated(made_ms, plain)
        if plain.median_ms is None or plain.broken_off or plain.name in self._open:
            return told
        if len(self._open) >= OPEN_MAX:
            self.drop(next(iter(self._open)))
        promise = Promise(plain.name, made_ms, told.earliest_ms, told.latest_ms, *_units(made_ms, plain))
        self._open[plain.name] = promise
        return told

    def is_promised(self, name: Name) -> bool:
        """Whether a forecast for this ask waits for its outcome."""
        return name in self._open

    def promised(self) -> list[Name]:
        """Those whose forecasts wait for their outcome, oldest first."""
        return list(self._open)

    def started(self, name: Name, at_ms: int) -> None:
        """An ask started: its forecast is scored, if there is one."""
        promise = self._open.pop(name, None)
        if promise is None:
            return
        early = promise.earliest_ms is not None and at_ms < promise.earliest_ms
        late = promise.latest_ms is not None and at_ms > promise.latest_ms
        self.scored += 1
        self.early += early
        self.late += late
        self.inside += not early and not late
        self._reach = None
        self._outcomes.append(promise.units(at_ms))
        if not promise.known_late:
            self._missed.append(early or late)

    def drop(self, name: Name) -> None:
        """An ask is gone without having started, or was changed: nothing can be said of its forecast."""
        if self._open.pop(name, None) is not None:
            self._reach = None
            self.dropped += 1

    def keep_only(self, names: Collection[Name]) -> None:
        """Drop what does not wait any longer (and did not start)."""
        for name in [name for name in self._open if name not in names]:
            self.drop(name)

    # -- widening -------------------------------------------------------------------------------------------------

    def calibrated(self, made_ms: int, plain: Expected) -> Expected:
        """The forecast of the futures alone, with its interval as wide as was learned; as it is before anything was."""
        if self._reach is None or self._reach[0] != made_ms:
            self._count_overdue(made_ms)
        if plain.median_ms is None or plain.broken_off or not self.learns or not (self._outcomes or self._missed):
            return plain
        middle, below, above = _units(made_ms, plain)
        low, high = (middle + reach * (above if reach >= 0 else below) for reach in self._reaches(made_ms))
        return replace(plain, earliest_ms=_at(made_ms, low), latest_ms=_at(made_ms, high))

    def _reaches(self, now_ms: int) -> tuple[float, float]:
        """From where to where an interval reaches, in units from the middle."""
        if self._reach is not None and self._reach[0] == now_ms:
            return self._reach[1:]
        # What is overdue will be at least so late.
        overdue = [promise.units(now_ms) for promise in self._open.values() if promise.known_late]
        ordered = sorted([*PRIOR[len(self._outcomes) :], *self._outcomes, *overdue])
        part = _left_out(1 - self.coverage, self._missed)
        low, high = _at_part(ordered, part), -_at_part([-units for units in reversed(ordered)], part)
        self._reach = (now_ms, min(low, high), max(low, high))
        return self._reach[1:]

    def _count_overdue(self, now_ms: int) -> None:
        for promise in self._open.values():
            if not promise.known_late and promise.latest_ms is not None and promise.latest_ms < now_ms:
                promise.known_late = True
                self._missed.append(True)

    # -- as values ------------------------------------------------------------------------------------------------

    def score(self) -> Score:
        """What is shown of it."""
        return Score(
            promised=self.coverage,
            observed=self.inside / self.scored if self.scored else None,
            scored=self.scored,
            inside=self.inside,
            early=self.early,
            late=self.late,
            open=len(self._open),
            dropped=self.dropped,
        )

    def state(self) -> State:
        """All of it, to go on from after a restart."""
        return State(
            self.coverage,
            self.scored,
            self.inside,
            self.early,
            self.late,
            self.dropped,
            list(self._outcomes),
            list(self._missed),
            [dataclasses.replace(promise) for promise in self._open.values()],
        )

    @classmethod
    def restored(cls, state: State) -> Scorecard:
        """The scorecard of this state. Raises ValueError where it does not make sense."""
        counts = (state.inside, state.early, state.late, state.dropped)
        if not 0 < state.coverage < 1 or min(counts) < 0 or state.scored != sum(counts[:3]):
            raise ValueError("its counts do not add up")
        card = cls(state.coverage)
        card.scored, card.inside, card.early, card.late, card.dropped = state.scored, *counts
        card._outcomes.extend(state.outcomes)
        card._missed.extend(state.missed)
        card._open = {promise.name: promise for promise in state.open}
        return card


def _left_out(may: float, missed: Collection[bool]) -> float:
    """The part to leave out on each side: less than half of what may be missed where too much was lately, else more."""
    least, most = (may / 2 * part for part in LEFT_OUT)
    return min(max(may / 2 + CORRECTION * (may * len(missed) - sum(missed)), least), most)


def _at_part(ordered: list[float], part: float) -> float:
    """The value below which this part lies, counted so that it also holds for the next one; between two values."""
    place = part * (len(ordered) + 1) - 1
    if place <= 0:
        return ordered[0]
    number = int(place)
    if number + 1 >= len(ordered):
        return ordered[-1]
    return ordered[number] + (place - number) * (ordered[number + 1] - ordered[number])


def _units(made_ms: int, plain: Expected) -> tuple[float, float, float]:
    """The middle of the futures as the logarithm of a wait, and the unit below and above it."""
    low, middle, high = (_log_wait(made_ms, ms) for ms in (plain.earliest_ms, plain.median_ms, plain.latest_ms))
    return middle, max(middle - low, UNIT_LEAST), max(high - middle, UNIT_LEAST)


def _log_wait(made_ms: int, at_ms: int | None) -> float:
    wait_ms = WAIT_MAX_MS if at_ms is None else max(at_ms - made_ms, 0)
    return log(wait_ms + WAIT_LEAST_MS)


def _at(made_ms: int, log_wait: float) -> int:
    least, most = log(WAIT_LEAST_MS), log(WAIT_MAX_MS)
    return made_ms + round(exp(min(max(log_wait, least), most))) - WAIT_LEAST_MS
