"""How many times as much twice the input takes, where the processor is not always equally fast; for `linear`.

Decides from seconds of processor time alone, which it is given. Others on the same machine take caches and half a core
for seconds at a time: the same work then takes up to twice the processor time. So the least of some tries of one size
must not be held against that of another, measured later: the quick moments may have been those of one alone. Both are
measured in rounds, one right after the other and each first in its turn, and what counts is the middle of the rounds'
ratios, in which no round is left out. Invariant: what takes four times as much in each round is said to.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

ROUNDS, MORE_ROUNDS = 5, 10
"""So many, and so many more where the middle of those is in doubt: of an odd number there is one in the middle."""
DOUBTFUL = 2.0
NEXT_TO_NOTHING_S = 0.01
"""What takes less counts as this: its ratio would be of what is there in any case."""
Measure = Callable[[], float]
"""Does the work once; its seconds."""


@dataclass(frozen=True)
class Growth:
    """The middle of each, of all rounds."""

    seconds: float
    twice: float
    times: float


def growth(once: Measure, twice: Measure, least: Measure = lambda: 0.0) -> Growth:
    """How many times as much `twice` takes as `once`, without what is there in any case: `least`.

    What that takes hides no growth; it is measured in each round, too.
    """
    rounds = list[tuple[float, float, float]]()
    gc.collect()
    gc.disable()
    try:
        while len(rounds) < ROUNDS or (len(rounds) < ROUNDS + MORE_ROUNDS and _of(rounds).times > DOUBTFUL):
            if len(rounds) % 2:
                more, some = twice(), once()
            else:
                some, more = once(), twice()
            rounds.append((some, more, least()))
    finally:
        gc.enable()
    return _of(rounds)


def _of(rounds: list[tuple[float, float, float]]) -> Growth:
    ratios = [max(more - least, 0.0) / max(some - least, NEXT_TO_NOTHING_S) for some, more, least in rounds]
    return Growth(median(some for some, _, _ in rounds), median(more for _, more, _ in rounds), median(ratios))
