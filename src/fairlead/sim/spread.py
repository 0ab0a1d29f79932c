"""Several draws of one comparison: whether a queue file is surely better, or another draw turns it around.

Decides by the differences within each draw (the same work and the same faults under both files) how large they are in
the mean, between which values that mean lies (nine of ten resamplings of the draws, the bootstrap, wider where they are
few), and in how many of them each file was better. Never simulates. Invariant: the same outcomes give the same
sentences; where the interval holds 0 neither is called better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random
from statistics import NormalDist
from typing import Any

from fairlead.sim.verdicts import alike, counted
from fairlead.times import span

RESAMPLED = 2_000
PART = 0.9
FEWEST = 5
"""With fewer draws an interval means little, and that is said."""
Outcome = dict[str, Any]


def compared(draws: Sequence[Sequence[Outcome]]) -> list[dict[str, Any]]:
    """Of each queue file but the first how it differs from the first; `draws` has the outcomes of all, draw by draw."""
    return [_against(draws, number) for number in range(1, len(draws[0]))]


def _against(draws: Sequence[Sequence[Outcome]], number: int) -> dict[str, Any]:
    queues = sorted({queue for draw in draws for outcome in draw for queue in _waits(outcome)})
    return {
        "name": draws[0][number]["name"],
        "than": draws[0][0]["name"],
        "draws": len(draws),
        "started": [sum(_started(draw[at]) for draw in draws) for at in (number, 0)],
        "wait": difference([(_wait(draw[number]), _wait(draw[0])) for draw in draws]),
        "by_queue": {
            queue: difference([(_waits(draw[number]).get(queue), _waits(draw[0]).get(queue)) for draw in draws])
            for queue in queues
        },
        "lost_run": difference([(_lost(draw[number]), _lost(draw[0])) for draw in draws]),
    }


def difference(pairs: Sequence[tuple[float | None, float | None]]) -> dict[str, Any] | None:
    """Other minus first, in seconds; None where no draw has both."""
    found = [other - first for other, first in pairs if other is not None and first is not None]
    if not found:
        return None
    chance = Random(len(found))
    means = sorted(sum(chance.choices(found, k=len(found))) / len(found) for _ in range(RESAMPLED))
    tail = int((1 - PART) / 2 * RESAMPLED)
    mean, wider = sum(found) / len(found), _wider(len(found))
    return {
        "mean_s": mean,
        "low_s": mean + wider * (means[tail] - mean),
        "high_s": mean + wider * (means[-tail - 1] - mean),
        "less": sum(each < 0 for each in found),
        "more": sum(each > 0 for each in found),
        "of": len(found),
    }


def _wider(count: int) -> float:
    """How much farther than resamplings the mean of so few reaches: they vary less than what they are taken from.

    Of five each fourth difference that is none would be called sure. By Student's t, and because the spread of a
    resampling is that of `count`, not of `count - 1`.
    """
    free = count - 1
    return _student(free) / NormalDist().inv_cdf((1 + PART) / 2) * math.sqrt(count / free) if free else 1.0


def _student(free: int, among: int = 1) -> float:
    """How far from the middle the part `PART` of all means reaches, and that of each of `among` of them together
    (Student's t by the expansion of Cornish and Fisher).
    """
    z = NormalDist().inv_cdf(1 - (1 - PART) / 2 / among)
    return z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)


def _wait(outcome: Outcome) -> float | None:
    started = outcome["figures"]["waits"]["started"]
    return None if started is None else float(started["mean"])


def _started(outcome: Outcome) -> int:
    started = outcome["figures"]["waits"]["started"]
    return 0 if started is None else int(started["count"])


def _waits(outcome: Outcome) -> dict[str, float]:
    groups = outcome["figures"]["waits_by"]["queue"]
    return {name: float(each["started"]["mean"]) for name, each in groups.items() if each["started"] is not None}


def _lost(outcome: Outcome) -> float:
    return float(outcome["figures"]["stops"]["lost_run_s"])


def in_words(comparison: dict[str, Any], noun: str = "draw") -> Iterator[str]:
    """Sentences for each: whether it is better, which queues gain and pay, what it costs in lost work, and whether it
    starts clearly more or fewer tasks. `noun` is what was compared: a draw, a week, a day.
    """
    name, than, wait = comparison["name"], comparison["than"], comparison["wait"]
    new, old = comparison["started"]
    starts = "" if alike(new, old) else f"{name} starts {counted(new, 'task')} in all, {than} {old:,}."
    if wait is None:
        yield f"{name} and {than} cannot be compared: {starts or 'nothing has started.'}"
        return
    sure = is_sure(wait)
    hint = f": --seeds {2 * FEWEST}" if noun == "draw" else ""
    few = (
        "" if wait["of"] >= FEWEST else f" ({counted(wait['of'], noun)} {'is' if wait['of'] == 1 else 'are'} few{hint})"
    )
    if sure:
        times = wait["less"] if wait["mean_s"] < 0 else wait["more"]
        better = "beats" if wait["mean_s"] < 0 else "loses to"
        of = counted(wait["of"], noun)
        yield f"{name} {better} {than} in {times} of {of}: mean wait {said_with_bounds(wait)}{few}."
    else:
        yield (
            f"Between {name} and {than} there is no sure difference: mean wait {said_with_bounds(wait)}, less in "
            f"{wait['less']} of {counted(wait['of'], noun)}{few}."
        )
    queues = comparison["by_queue"]
    least = min(FEWEST, wait["of"])  # A queue that hardly ever has work has an interval that means as little.
    changed = {
        queue: each
        for queue, each in queues.items()
        if each is not None and each["of"] >= least and is_sure(each, len(queues))
    }
    gain = min(changed, key=lambda queue: changed[queue]["mean_s"], default=None)
    pays = max(changed, key=lambda queue: changed[queue]["mean_s"], default=None)
    told = []
    if gain is not None and changed[gain]["mean_s"] < 0:
        told.append(f"{gain} gains most ({said_with_bounds(changed[gain])})")
    if pays is not None and changed[pays]["mean_s"] > 0:
        told.append(f"{pays} pays most ({said_with_bounds(changed[pays])})")
    yield f"With {name}, {' and '.join(told)}." if told else f"With {name}, no queue surely gains or pays."
    lost = comparison["lost_run"]
    if lost is not None and lost["mean_s"]:
        surely = "" if is_sure(lost) else ", not surely"
        yield f"Run time that came to nothing: {said_with_bounds(lost)} in each {noun}{surely}."
    if starts:
        yield starts


def is_sure(difference: dict[str, Any], among: int = 1) -> bool:
    """Whether the interval leaves 0 out; one difference by itself has none.

    `among`: it is one of so many that are looked at together. Then the interval is made wider: of twenty that are none
    two would be sure.
    """
    free = difference["of"] - 1
    if not free:
        return False
    mean, wider = difference["mean_s"], _student(free, among) / _student(free)
    low, high = (mean + wider * (difference[end] - mean) for end in ("low_s", "high_s"))
    return bool(low > 0 or high < 0)


def said_with_bounds(difference: dict[str, Any]) -> str:
    """`12 min (8 min to 17 min) less`."""
    mean, low, high = difference["mean_s"], difference["low_s"], difference["high_s"]
    if not mean:
        return "0 s"
    if mean < 0:
        return f"{span(-mean)} ({_signed(-high)} to {_signed(-low)}) less"
    return f"{span(mean)} ({_signed(low)} to {_signed(high)}) more"


def _signed(seconds: float) -> str:
    return span(seconds) if seconds >= 0 else f"-{span(-seconds)}"
