"""Scorecard: forecasts held against what then happened, and what follows from that for the next ones.

Decides how far the next intervals reach and where their middle is. There are several ways to say when an ask starts
(`WAYS`); each is put right by how wrong it was lately for asks that are alike, and they are mixed by how well each did
lately in the queue. Never forecasts by itself. Invariant: every answer that is given out is scored, and nothing but
what happened before it changes it.

An answer counts as late as soon as its interval is over, not only when the ask starts at last. The part that is left
out on each side follows from how often intervals were missed lately, so that whatever is wrong with the forecasts they
are missed about as often as they may (adaptive conformal inference: Gibbs and Candès 2021).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from math import exp, log
from statistics import NormalDist

from msgspec import Struct
from msgspec.structs import replace

from fairlead.insight.experience import WAIT_LEAST_MS, WAIT_MAX_MS, WAYS, Experience, Levels, Outcome, log_wait, loss
from fairlead.insight.forecast import About, Expected
from fairlead.insight.trial import Name
from fairlead.wire.questions import Score

COVERAGE = 0.8
WINDOW = 1_500
"""Outcomes that the next answers rest on."""
LATELY = 2_000
"""Outcomes by which it is told how often intervals were missed lately."""
CORRECTION = 0.005
"""How strongly one miss more or less than there may be changes the part that is left out on each side."""
LEFT_OUT = (0.1, 1.5)
"""The part that is left out on a side, at least and at most, in units of what it may be."""
UNIT_LEAST = 0.25
"""Futures that agree are taken to be this far apart to each side at least (a factor of 1.28): no news comes in them."""
OPEN_MAX = 20_000
"""Answers that wait for their outcome at most; beyond that the oldest are dropped unscored."""
RECENT = 50
"""Waits of a queue that the way `recent` looks at."""
AGAIN = 0.5
"""An ask is forecast again when it has waited longer by this part."""
AGAIN_LEAST_MS = 60_000


class Promise(Struct):
    """One answer that has yet to come true."""

    name: Name
    made_ms: int
    about: About
    points: tuple[float | None, ...]
    """Of each way the logarithm of the wait that it says."""
    below: float
    above: float
    """How far the futures are apart, to each side of their middle."""
    ways: tuple[Levels | None, ...]
    """Of each way what it said, put right: low, middle, high."""
    low: float
    high: float
    """What was told."""
    known_late: bool = False
    """Its interval is over, and that was learned from already."""


@dataclass(slots=True)
class State:
    """Everything that a scorecard knows, as plain values."""

    coverage: float = COVERAGE
    scored: int = 0
    inside: int = 0
    early: int = 0
    late: int = 0
    dropped: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    """The newest, oldest first."""
    missed: list[bool] = field(default_factory=list)
    """Of the newest: whether they were outside their interval, to whichever side."""
    waits: dict[str, list[int]] = field(default_factory=dict)
    """Of each queue its last waits, whole, in milliseconds."""
    open: list[Promise] = field(default_factory=list)


class Scorecard:
    """Answers that are open, and what the outcomes of others say about the next."""

    def __init__(self, coverage: float = COVERAGE, *, learns: bool = True) -> None:
        """Intervals are to hold the part `coverage` of starts; one that does not `learn` counts them and no more."""
        self.coverage, self.learns = coverage, learns
        self.scored = self.inside = self.early = self.late = self.dropped = 0
        self._outcomes: deque[Outcome] = deque(maxlen=WINDOW)
        self._missed: deque[bool] = deque(maxlen=LATELY)
        self._waits: dict[str, deque[int]] = {}
        self._open: dict[Name, list[Promise]] = {}
        self._count = 0
        self._experience: tuple[int, Experience] | None = None
        """Worked out for a moment, while nothing is learned: a moment has many answers."""

    # -- making and keeping ---------------------------------------------------------------------------------------

    def promise(self, made_ms: int, plain: Expected) -> Expected:
        """A forecast is given out, put right by what was learned; returns that. None that was broken off is scored."""
        if plain.median_ms is None or plain.broken_off:
            return plain
        told, promise = self._answer(made_ms, plain)
        while self._count >= OPEN_MAX:
            self.drop(next(iter(self._open)))
        self._open.setdefault(plain.name, []).append(promise)
        self._count += 1
        return told

    def calibrated(self, made_ms: int, plain: Expected) -> Expected:
        """The forecast put right by what was learned, without being scored."""
        return plain if plain.median_ms is None or plain.broken_off else self._answer(made_ms, plain)[0]

    def is_due(self, name: Name, now_ms: int) -> bool:
        """Whether an ask that waits should be forecast (again): what it is told changes as it waits."""
        open_ = self._open.get(name)
        if not open_:
            return True
        last = open_[-1]
        return now_ms - last.made_ms >= max(AGAIN * (last.about.waited_ms + now_ms - last.made_ms), AGAIN_LEAST_MS)

    def is_promised(self, name: Name) -> bool:
        """Whether an answer for this ask waits for its outcome."""
        return name in self._open

    def promised(self) -> list[Name]:
        """Those whose answers wait for their outcome, oldest first."""
        return list(self._open)

    def started(self, name: Name, at_ms: int) -> None:
        """An ask started: its answers are scored."""
        promises = self._taken(name)
        for promise in promises:
            self._score(promise, log_wait(promise.made_ms, at_ms))
        if promises:
            about = promises[0].about
            waits = self._waits.setdefault(about.queue, deque(maxlen=RECENT))
            waits.append(at_ms - promises[0].made_ms + about.waited_ms)

    def drop(self, name: Name) -> None:
        """An ask is gone without having started, or was changed: nothing can be said of its answers."""
        self.dropped += len(self._taken(name))

    def keep_only(self, names: Collection[Name]) -> None:
        """Drop what does not wait any longer (and did not start)."""
        for name in [name for name in self._open if name not in names]:
            self.drop(name)

    def _taken(self, name: Name) -> list[Promise]:
        found = self._open.pop(name, [])
        self._count -= len(found)
        if found:
            self._experience = None
        return found

    def _score(self, promise: Promise, wait: float) -> None:
        early, late = wait < promise.low, wait > promise.high
        self.scored += 1
        self.early += early
        self.late += late
        self.inside += not early and not late
        losses = tuple(None if way is None else loss(way, wait) for way in promise.ways)
        self._outcomes.append(Outcome(promise.about, promise.points, promise.below, promise.above, wait, losses))
        if not promise.known_late:
            self._missed.append(early or late)

    # -- putting right --------------------------------------------------------------------------------------------

    def _answer(self, made_ms: int, plain: Expected) -> tuple[Expected, Promise]:
        learned = self._learned(made_ms)
        points = self._points(made_ms, plain)
        below, above = _units(made_ms, plain)
        low, middle, high = (log_wait(made_ms, ms) for ms in (plain.earliest_ms, plain.median_ms, plain.latest_ms))
        ways: tuple[Levels | None, ...] = (*[None] * (len(WAYS) - 1), (low, middle, high))
        told = plain
        if self.learns and (self._outcomes or self._missed):
            part = _left_out(1 - self.coverage, self._missed)
            near = learned.nearness(plain.about)
            right = (
                None if point is None else learned.put_right(way, point, (below, above), near, part)
                for way, point in enumerate(points[:-1])
            )
            reach = _reach(part, 1 - self.coverage)
            ways = (*right, (middle - reach * (middle - low), middle, middle + reach * (high - middle)))
            soonest = log_wait(made_ms, plain.begin_ms)
            low, middle, high = (max(value, soonest) for value in learned.mixed(ways, plain.about))
            ends = (max(_at(made_ms, value), plain.begin_ms) for value in (low, middle, high))
            told = replace(plain, **dict(zip(("earliest_ms", "median_ms", "latest_ms"), ends, strict=True)))
        return told, Promise(plain.name, made_ms, plain.about, points, below, above, ways, low, high)

    def _points(self, made_ms: int, plain: Expected) -> tuple[float | None, ...]:
        middle = log_wait(made_ms, plain.median_ms)
        limits = log_wait(made_ms, plain.declared_ms) if plain.declared_ms is not None else None
        waited_ms = plain.about.waited_ms
        left = sorted(wait - waited_ms for wait in self._waits.get(plain.about.queue, ()) if wait > waited_ms)
        recent = log(left[len(left) // 2] + WAIT_LEAST_MS) if left else None
        return middle, middle, limits, limits, recent, middle

    def _learned(self, now_ms: int) -> Experience:
        if self._experience is None or self._experience[0] != now_ms:
            overdue = []
            for promise in (promise for promises in self._open.values() for promise in promises):
                wait = log_wait(promise.made_ms, now_ms)
                if wait > promise.high and not promise.known_late:
                    promise.known_late = True
                    self._missed.append(True)
                if promise.known_late:
                    # It will be at least so late.
                    nothing = (None,) * len(WAYS)
                    overdue.append(Outcome(promise.about, promise.points, promise.below, promise.above, wait, nothing))
            self._experience = now_ms, Experience([*self._outcomes, *overdue[-WINDOW:]])
        return self._experience[1]

    # -- as values ------------------------------------------------------------------------------------------------

    def weights(self, queue: str) -> dict[str, float]:
        """How much each way counts in the answers of a queue; together 1."""
        learned = Experience(list(self._outcomes))
        trust = learned.trust(About(queue))
        return dict(zip((way.name for way in WAYS), trust / trust.sum(), strict=True))

    def score(self) -> Score:
        """What is shown of it."""
        return Score(
            promised=self.coverage,
            observed=self.inside / self.scored if self.scored else None,
            scored=self.scored,
            inside=self.inside,
            early=self.early,
            late=self.late,
            open=self._count,
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
            {queue: list(waits) for queue, waits in self._waits.items()},
            [replace(promise) for promises in self._open.values() for promise in promises],
        )

    @classmethod
    def restored(cls, state: State) -> Scorecard:
        """The scorecard of this state. Raises ValueError where it does not make sense."""
        counts = (state.inside, state.early, state.late, state.dropped)
        if not 0 < state.coverage < 1 or min(counts) < 0 or state.scored != sum(counts[:3]):
            raise ValueError("its counts do not add up")
        points = [*(each.points for each in state.outcomes), *(each.points for each in state.open)]
        if any(len(each) != len(WAYS) for each in points):
            raise ValueError("it has other ways to forecast")
        card = cls(state.coverage)
        card.scored, card.inside, card.early, card.late, card.dropped = state.scored, *counts
        card._outcomes.extend(state.outcomes)
        card._missed.extend(state.missed)
        card._waits = {queue: deque(waits, RECENT) for queue, waits in state.waits.items()}
        for promise in state.open:
            card._open.setdefault(promise.name, []).append(promise)
        card._count = len(state.open)
        return card


def _left_out(may: float, missed: Collection[bool]) -> float:
    """The part to leave out on each side: less than half of what may be missed where too much was lately, else more."""
    least, most = (may / 2 * part for part in LEFT_OUT)
    return min(max(may / 2 + CORRECTION * (may * len(missed) - sum(missed)), least), most)


def _reach(part: float, may: float) -> float:
    """How far an interval reaches that leaves out `part` on each side, beside one that leaves out half of `may`."""
    return NormalDist().inv_cdf(part) / NormalDist().inv_cdf(may / 2)


def _units(made_ms: int, plain: Expected) -> tuple[float, float]:
    """How far the futures are apart, below and above their middle, in logarithms of waits."""
    low, middle, high = (log_wait(made_ms, ms) for ms in (plain.earliest_ms, plain.median_ms, plain.latest_ms))
    return max(middle - low, UNIT_LEAST), max(high - middle, UNIT_LEAST)


def _at(made_ms: int, wait: float) -> int:
    least, most = log(WAIT_LEAST_MS), log(WAIT_MAX_MS)
    return made_ms + round(exp(min(max(wait, least), most))) - WAIT_LEAST_MS
