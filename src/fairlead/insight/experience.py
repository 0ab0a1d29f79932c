"""Experience: what the outcomes of earlier answers say about one that is to be given.

Decides how much each outcome counts for it, and by how much each way to forecast is to be moved. Never keeps anything.
Invariant: without outcomes every way says what it says by itself, as wide as `PRIOR`, and the futures count most.

There are several ways to say when an ask starts (`WAYS`); each is put right by how wrong it was lately for asks that
are alike (one of them by all), and they are mixed by how well each did lately in the queue. Waits are compared as
logarithms. Outcomes count the more the more the ask is like the one that is asked about: its queue, size and priority,
how long it has waited, how long it was expected to wait still, and how long ago that was. So much experience with the
like makes an answer of its own, and little of it leans on all (a weighted quantile of errors; conformal prediction with
weights: Tibshirani et al. 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np
from msgspec import Struct

from fairlead.insight.forecast import About
from fairlead.insight.futures import HORIZON_MS

WAIT_LEAST_MS = 1_000
"""Added to waits before they are compared as ratios: below this nobody minds."""
WAIT_MAX_MS = 12 * HORIZON_MS
WAITED_LEAST_MS = 60_000
"""Added to times waited so far before they are compared."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to say when an ask starts."""

    name: str
    at_first: float
    """What it is taken to lose before anything is known, in losses of the futures as they are."""
    by_all: bool = False
    """It is put right by all outcomes, however unlike: few that are alike say little about how wide it has to be."""


WAYS = (
    Way("futures", 1.0),
    Way("middle", 1.25),
    Way("limits", 2.0),
    Way("limits by all", 1.5, by_all=True),
    Way("recent", 2.0),
    Way("plain", 1.0),
)
"""The futures with how far they are apart; their middle alone; the one in which everything takes what it declares, put
right in two ways; the middle of the last waits of the queue; and the futures as they are, which is the only one that is
not put right."""
PRIOR = np.array((-1.0, -0.5, 0.0, 0.5, 1.0))
"""What errors are before any is known: the futures are as wide as they are, the others within a factor of e."""
PRIOR_WEIGHT = 0.6
"""Of each of those, against 1 for an outcome that is alike in all."""
AGE = 700.0
"""After so many outcomes one counts for a third."""
OTHER = (0.1, 0.4, 0.5)
"""What an outcome of another queue, another size, another priority counts."""
FAR = 1.2
"""So far apart in logarithm of time waited, or expected, an outcome counts for a third."""
TRUST = 4.0
"""How strongly the better way is preferred: one that loses a quarter more counts for a third."""
AT_FIRST = np.array([way.at_first for way in WAYS])
AT_FIRST_WEIGHT = 10.0
"""Of what a way loses at first, against 1 for an outcome of the queue: those of one time go together, so that few of
them tell little."""

Levels = tuple[float, float, float]


class Outcome(Struct):
    """One answer and what became of it."""

    about: About
    points: tuple[float | None, ...]
    below: float
    above: float
    wait: float
    """The logarithm of the wait that came."""
    losses: tuple[float | None, ...]
    """Of each way how wrong it was: the pinball loss of its three values, in seconds."""


class Experience:
    """Outcomes as columns."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        count = len(outcomes)
        self.queues = np.array([each.about.queue for each in outcomes], dtype=object)
        self.sizes = np.array([each.about.size for each in outcomes], dtype=object)
        self.priorities = np.array([each.about.priority for each in outcomes], dtype=float)
        self.waited = np.array([log_time(each.about.waited_ms) for each in outcomes])
        self.age = np.exp(-np.arange(count - 1, -1, -1) / AGE)
        points = [[np.nan if point is None else point for point in each.points] for each in outcomes]
        self.points = np.array(points, dtype=float).reshape(count, len(WAYS))
        self.errors = np.array([each.wait for each in outcomes]).reshape(count, 1) - self.points
        below, above = (np.array([getattr(each, name) for each in outcomes]) for name in ("below", "above"))
        first = self.errors[:, 0]
        self.errors[:, 0] = np.where(first >= 0, first / above, first / below) if count else first
        losses = [[np.nan if loss is None else loss for loss in each.losses] for each in outcomes]
        self.losses = np.array(losses, dtype=float).reshape(count, len(WAYS))

    def nearness(self, about: About) -> Any:
        """How much each outcome counts for one that is about this, but for what it expects."""
        near = self.age * np.where(self.queues == about.queue, 1.0, OTHER[0])
        near = near * np.where(self.sizes == about.size, 1.0, OTHER[1])
        near = near * np.where(self.priorities == about.priority, 1.0, OTHER[2])
        return near * np.exp(-np.abs(self.waited - log_time(about.waited_ms)) / FAR)

    def put_right(self, way: int, point: float, units: tuple[float, float], near: Any, part: float) -> Levels:
        """What one way says, moved by its errors."""
        like = self.age if WAYS[way].by_all else near * np.exp(-np.abs(self.points[:, way] - point) / FAR)
        known = ~np.isnan(self.points[:, way])
        errors = np.concatenate([PRIOR, self.errors[known, way]])
        weights = np.concatenate([np.full(len(PRIOR), PRIOR_WEIGHT), like[known]])
        order = np.argsort(errors, kind="stable")
        errors, weights = errors[order], weights[order]
        places = (np.cumsum(weights) - weights / 2) / weights.sum()
        found = np.interp((part, 0.5, 1 - part), places, errors)
        if way == 0:
            found = np.where(found >= 0, found * units[1], found * units[0])
        low, middle, high = (float(value) for value in point + found)
        return low, middle, high

    def trust(self, about: About) -> Any:
        """How much each way counts here, by what it lost lately."""
        near = self.age * np.where(self.queues == about.queue, 1.0, OTHER[0])
        known = ~np.isnan(self.losses)
        weights = np.where(known, near.reshape(-1, 1), 0.0)
        total = weights.sum(axis=0)
        lost = (np.nan_to_num(self.losses) * weights).sum(axis=0)
        plain = max(float(lost[-1] / total[-1]), 1.0) if total[-1] > 0 else 1.0
        mean = (lost + AT_FIRST_WEIGHT * plain * AT_FIRST) / (total + AT_FIRST_WEIGHT)
        return np.exp(-TRUST * (mean / mean.min() - 1))

    def mixed(self, ways: Sequence[Levels | None], about: About) -> Levels:
        """What all ways say together."""
        trust = self.trust(about)
        rows = [(trust[number], way) for number, way in enumerate(ways) if way is not None]
        whole = sum(weight for weight, _ in rows) or 1.0
        sums = [sum(weight * way[level] for weight, way in rows) / whole for level in range(3)]
        low, middle, high = sorted(float(value) for value in sums)
        return low, middle, high


def loss(way: Levels, wait: float) -> float:
    """The mean pinball loss at a tenth, the middle and nine tenths, in seconds."""
    came = _seconds(wait)
    total = 0.0
    for value, level in zip(way, (0.1, 0.5, 0.9), strict=True):
        off = came - _seconds(value)
        total += max(level * off, (level - 1) * off)
    return total / 3


def _seconds(wait: float) -> float:
    return exp(min(wait, log(WAIT_MAX_MS))) / 1000


def log_wait(made_ms: int, at_ms: int | None) -> float:
    """The logarithm of a wait from one moment to another; None: as long as is looked at."""
    wait_ms = WAIT_MAX_MS if at_ms is None else max(at_ms - made_ms, 0)
    return log(wait_ms + WAIT_LEAST_MS)


def log_time(ms: int) -> float:
    """The logarithm of a time that was waited so far."""
    return log(max(ms, 0) + WAITED_LEAST_MS)
