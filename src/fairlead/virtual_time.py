"""Virtual time: one scheduler, and what happens to it when. Simulations, scenarios and forecasts are built on it.

Decides the order of things: the earlier first, and of one moment what was said first; what follows from a decision
comes before anything else. Never decides who runs, and never waits for real time. Invariant: time never goes back, and
every order to stop is followed once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from fairlead.core.model.decisions import Decision, Evict
from fairlead.core.model.events import Event, Release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.scheduler import Scheduler

Happens = Callable[[], object]


class Recorder(Protocol):
    """Takes down what the scheduler was told and what it decided, in that order."""

    def event(self, now_ms: int, event: Event, decisions: Sequence[Decision]) -> None:
        """It was told of an event."""

    def run(self, now_ms: int, limit: int | None, decisions: Sequence[Decision]) -> None:
        """It ran."""


class Due:
    """Something that happens later, unless it is called off."""

    __slots__ = ("happens",)

    def __init__(self, happens: Happens) -> None:
        self.happens: Happens | None = happens

    def call_off(self) -> None:
        """It does not happen."""
        self.happens = None


class VirtualTime:
    """A scheduler whose time moves from one thing that happens to the next.

    What differs is overridden: `take` (what is noted of decisions) and `stop` (how what is told to stop does so).
    """

    def __init__(self, scheduler: Scheduler, now_ms: int) -> None:
        self.scheduler, self.now_ms = scheduler, now_ms
        self.has_changed = False
        """Something followed since the scheduler ran, so that it should run again."""
        self.events = 0
        """How many the scheduler was told of."""
        self.recorder: Recorder | None = None
        self._moments: list[int] = []
        """A heap of the moments at which something is to happen."""
        self._due: dict[int, list[Due]] = {}
        """By moment what happens then, in the order in which it was said."""
        self._follow_ups: list[Happens] = []

    # -- what happens later -----------------------------------------------------------------------------------------

    def later(self, at_ms: int, happens: Happens) -> Due:
        """Let it happen at that time, after what was said before for the same moment."""
        due = Due(happens)
        at_once = self._due.get(at_ms)
        if at_once is None:
            self._due[at_ms] = [due]
            heappush(self._moments, at_ms)
        else:
            at_once.append(due)
        return due

    @property
    def due_ms(self) -> int | None:
        """When the next of these happens; the scheduler's own timers are not among them. None: nothing is to come."""
        moments = self._moments
        while moments:
            at_ms = moments[0]
            for due in self._due[at_ms]:
                if due.happens is not None:
                    return at_ms
            del self._due[heappop(moments)]
        return None

    @property
    def still_due(self) -> int:
        """How many of them are to come, those that were called off included."""
        return sum(map(len, self._due.values()))

    def happen(self, until_ms: int) -> None:
        """Let everything happen that is due by then, each at its own time, with what follows from it."""
        moments = self._moments
        while moments and moments[0] <= until_ms:
            at_ms = heappop(moments)
            for due in self._due.pop(at_ms):
                if due.happens is not None:
                    self.now_ms = max(at_ms, self.now_ms)
                    due.happens()
                    if self._follow_ups:
                        self.follow()

    # -- the scheduler ----------------------------------------------------------------------------------------------

    def handle(self, event: Event) -> list[Decision]:
        """Tell the scheduler of an event now; what follows is noted, and waits for `follow`."""
        self.events += 1
        decisions = self.scheduler.handle(event, self.now_ms)
        if self.recorder is not None:
            self.recorder.event(self.now_ms, event, decisions)
        if decisions:
            self.take(decisions)
        return decisions

    def schedule(self, limit: int | None = None) -> None:
        """Let the scheduler run once, and place at most so many; what follows waits for `follow`."""
        decisions = self.scheduler.schedule(self.now_ms, limit)
        if self.recorder is not None:
            self.recorder.run(self.now_ms, limit, decisions)
        self.take(decisions)

    def settle(self) -> None:
        """Let the scheduler run, again and again until nothing it decided has changed anything."""
        self.has_changed = True
        while self.has_changed:
            self.has_changed = False
            self.schedule()
            self.follow()

    def then(self, happens: Happens) -> None:
        """Let it follow from what was just decided."""
        self._follow_ups.append(happens)

    def follow(self) -> bool:
        """Let everything happen that follows, and what follows from that; whether there was anything."""
        if not self._follow_ups:
            return False
        while self._follow_ups:
            self.has_changed = True
            happening, self._follow_ups = self._follow_ups, []
            for happens in happening:
                happens()
        return True

    # -- what differs -----------------------------------------------------------------------------------------------

    def take(self, decisions: list[Decision]) -> None:
        """Note what was decided; what was told to stop does so next."""
        for decision in decisions:
            if isinstance(decision, Evict):
                self.then(partial(self.stop, decision))

    def stop(self, order: Evict) -> None:
        """What was told to stop stops, and that is confirmed."""
        self.confirm(order)

    def confirm(self, order: Evict) -> None:
        """Tell the scheduler that it has stopped."""
        self.handle(Release(order.application, order.key, order.cause, order.partition))
