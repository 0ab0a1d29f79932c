"""Forecasts held against what happened, side by side with what is simpler.

Decides what is compared: the service's answers (as they are put right by experience), the futures alone, and (a) the
last waits of the queue, (b) one run with the declared limits, (c) that times its recent errors, (d) one run that knows
all run times. Each method knows what had happened by then. Never simulates. Invariant: the loss is a mean over the same
answers for all methods; the coverage over all answers that came true.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from math import exp, log

from fairlead.insight.experience import WAIT_LEAST_MS
from fairlead.insight.forecast import Expected
from fairlead.insight.scorecard import Scorecard
from fairlead.insight.trial import Name
from fairlead.sim.forecasting import Answer, Record, Started

LEVELS = (0.1, 0.5, 0.9)
METHODS = ("service", "futures", "queue", "limits", "limits-errors", "known")
RECENT, ERRORS = 50, 200
LEAST = 10
"""So many waits or errors have to be known before these methods say anything."""
QUARTERS = 4
Values = tuple[float, float, float]
"""Waits in milliseconds: a tenth, the middle, nine tenths."""


@dataclass(slots=True)
class Group:
    """Answers that have something in common."""

    answers: int = 0
    inside: int = 0

    def add(self, is_inside: bool) -> None:
        """One more."""
        self.answers += 1
        self.inside += is_inside


@dataclass(slots=True)
class Scores:
    """What came of a record."""

    answers: int = 0
    open: int = 0
    compared: int = 0
    loss_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(METHODS, 0.0))
    """Of each method the sum of its pinball losses over the answers that are compared."""
    inside: dict[str, int] = field(default_factory=lambda: dict.fromkeys(METHODS, 0))
    groups: dict[str, Group] = field(default_factory=dict)
    """Coverage of the service's answers: `all`, `queue NAME`, `size NAME`, `quarter N`, `at submission`, `later`."""
    widths: list[float] = field(default_factory=list)
    weights: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of each queue how much each way counts in the end."""


@dataclass(slots=True)
class _Open:
    """An answer that waits for its outcome."""

    number: int
    answer: Answer
    said: dict[str, Values | None]


class Judge:
    """Goes through a record in its order."""

    def __init__(self) -> None:
        self.card = Scorecard()
        self.scores = Scores()
        self._waits: dict[str, deque[int]] = {}
        self._errors: deque[float] = deque(maxlen=ERRORS)
        self._open: dict[Name, list[_Open]] = {}
        self._numbers = count()

    def of(self, record: Record) -> Scores:
        """The scores of a whole record."""
        self.scores.answers = sum(isinstance(each, Answer) for each in record)
        for each in record:
            if isinstance(each, Answer):
                self._answer(each)
            else:
                self._started(each)
        self.scores.open = sum(map(len, self._open.values()))
        queues = sorted({each.plain.about.queue for each in record if isinstance(each, Answer)})
        self.scores.weights = {queue: self.card.weights(queue) for queue in queues}
        return self.scores

    def _answer(self, answer: Answer) -> None:
        made_ms, plain = answer.made_ms, answer.plain
        told = self.card.promise(made_ms, plain)
        said = {
            "service": _waits_of(made_ms, told),
            "futures": _waits_of(made_ms, plain),
            "queue": self._recent(plain),
            "limits": _point(made_ms, plain.declared_ms),
            "limits-errors": self._with_errors(made_ms, plain.declared_ms),
            "known": _point(made_ms, answer.known_ms),
        }
        self._open.setdefault(plain.name, []).append(_Open(next(self._numbers), answer, said))

    def _recent(self, plain: Expected) -> Values | None:
        waited_ms = plain.about.waited_ms
        longer = sorted(wait - waited_ms for wait in self._waits.get(plain.about.queue, ()) if wait > waited_ms)
        return _quantiles(longer) if longer else None

    def _with_errors(self, made_ms: int, declared_ms: int | None) -> Values | None:
        if declared_ms is None or len(self._errors) < LEAST:
            return None
        wait = declared_ms - made_ms + WAIT_LEAST_MS
        low, middle, high = (wait * exp(error) - WAIT_LEAST_MS for error in _quantiles(sorted(self._errors)))
        return low, middle, high

    def _started(self, started: Started) -> None:
        self._waits.setdefault(started.queue, deque(maxlen=RECENT)).append(started.wait_ms)
        self.card.started(started.name, started.at_ms)
        for each in self._open.pop(started.name, ()):
            self._score(each, started.at_ms)

    def _score(self, each: _Open, at_ms: int) -> None:
        made_ms, about = each.answer.made_ms, each.answer.plain.about
        came = at_ms - made_ms
        declared_ms = each.answer.plain.declared_ms
        if declared_ms is not None:
            self._errors.append(log((came + WAIT_LEAST_MS) / (max(declared_ms - made_ms, 0) + WAIT_LEAST_MS)))
        told = each.said["service"]
        assert told is not None
        quarter = 1 + QUARTERS * each.number // max(self.scores.answers, 1)
        is_inside = told[0] <= came <= told[2]
        when = "at submission" if about.waited_ms == 0 else "later"
        for group in ("all", f"queue {about.queue}", f"size {about.size}", f"quarter {quarter}", when):
            self.scores.groups.setdefault(group, Group()).add(is_inside)
        self.scores.widths.append((told[2] - told[0]) / max(came, 60_000))
        if any(values is None for values in each.said.values()):
            return
        self.scores.compared += 1
        for method, values in each.said.items():
            assert values is not None
            self.scores.loss_s[method] += pinball(values, came) / 1000
            self.scores.inside[method] += values[0] <= came <= values[2]


def pinball(values: Values, came: float) -> float:
    """The mean pinball loss of three quantiles."""
    offs = ((came - value, level) for value, level in zip(values, LEVELS, strict=True))
    return sum(max(level * off, (level - 1) * off) for off, level in offs) / len(LEVELS)


def _quantiles(ordered: Sequence[float]) -> Values:
    low, middle, high = (ordered[min(int(level * len(ordered)), len(ordered) - 1)] for level in LEVELS)
    return low, middle, high


def _waits_of(made_ms: int, expected: Expected) -> Values | None:
    ends = (expected.earliest_ms, expected.median_ms, expected.latest_ms)
    if any(ms is None for ms in ends):
        return None
    low, middle, high = (float(max(ms - made_ms, 0)) for ms in ends if ms is not None)
    return low, middle, high


def _point(made_ms: int, at_ms: int | None) -> Values | None:
    if at_ms is None:
        return None
    wait = float(max(at_ms - made_ms, 0))
    return wait, wait, wait
