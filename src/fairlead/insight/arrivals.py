"""Arrivals: which work will come, after what came before.

Decides which past hour a future hour is like (the same hour of a day of the same kind, else the same hour of any day,
else any hour) and lets what came then come again: how much, how large, to which queue, in which bursts. Never says what
becomes of it. Invariant: the same history and the same chance give the same arrivals; less than two hours of history
give none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random  # noqa: TID251 - drawn from a seed that the caller gives
from typing import TYPE_CHECKING

from fairlead.core.model.events import AddApplication, AddAsks

if TYPE_CHECKING:
    from fairlead.core.model.events import Event
    from fairlead.core.model.specs import ApplicationSpec, AskSpec

HOUR_MS = 3_600_000
DAY_HOURS = 24
KEPT = 20_000
"""Arrivals that are remembered, the newest."""
LEAST_HOURS = 2
COMES_HOURS = 24
"""For so long work comes in a future: what is farther away costs much to play and tells little."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Asks that came together, in an application of their own."""

    at_ms: int
    application: ApplicationSpec
    asks: tuple[AskSpec, ...]

    def again(self, name: str) -> list[Event]:
        """The same once more in its partition, under another name."""
        asks = tuple(replace(ask, application=name, key=f"{name}-{n}") for n, ask in enumerate(self.asks))
        return [AddApplication(replace(self.application, id=name)), AddAsks(asks, self.application.partition)]


class Arrivals:
    """What came so far."""

    __slots__ = ("_came", "_since_ms")

    def __init__(self) -> None:
        self._came: deque[Arrival] = deque(maxlen=KEPT)
        self._since_ms: int | None = None

    def learn(self, arrival: Arrival) -> None:
        """This came; in order of time."""
        if self._since_ms is None:
            self._since_ms = arrival.at_ms
        self._came.append(arrival)
        if len(self._came) == KEPT:
            self._since_ms = self._came[0].at_ms

    def __len__(self) -> int:
        return len(self._came)

    def hours(self, now_ms: int) -> int:
        """Whole hours of which is known what came."""
        return (now_ms - self._since_ms) // HOUR_MS if self._since_ms is not None else 0

    def future(self, now_ms: int, chance: Random) -> Iterator[tuple[int, Arrival]]:
        """What comes from now on and when, for `COMES_HOURS`; nothing where too little is known."""
        known = self.hours(now_ms)
        if known < LEAST_HOURS or self._since_ms is None:
            return
        came = list(self._came)
        times = [arrival.at_ms for arrival in came]
        at_ms = now_ms
        while at_ms < now_ms + COMES_HOURS * HOUR_MS:
            begin_ms = now_ms - chance.choice(_alike(at_ms, now_ms, known)) * HOUR_MS
            first, last = bisect_left(times, begin_ms), bisect_left(times, begin_ms + HOUR_MS)
            for arrival in came[first:last]:
                yield at_ms + arrival.at_ms - begin_ms, arrival
            at_ms += HOUR_MS


def _alike(at_ms: int, now_ms: int, known: int) -> list[int]:
    """How many hours before now those hours begin that the hour from `at_ms` may be like."""
    ahead = (at_ms - now_ms) // HOUR_MS
    same_hour = [ago for ago in range(1, known + 1) if (ahead + ago) % DAY_HOURS == 0]
    rest = _is_rest(at_ms)
    same_day = [ago for ago in same_hour if _is_rest(now_ms - ago * HOUR_MS) is rest]
    return same_day or same_hour or list(range(1, known + 1))


def _is_rest(at_ms: int) -> bool:
    """Whether it is a Saturday or a Sunday, UTC; 1970 began with a Thursday."""
    return (at_ms // (DAY_HOURS * HOUR_MS) + 3) % 7 >= 5
