"""A scheduler that was read back from a dump, beside the one that wrote it: for ever the same, over random courses.

Two ways to look. One that was read back goes on beside the original with the same calls: every decision and the whole
state have to be equal. And whenever the original has nothing to do any more, one that is read back then, and knows
nothing of what was looked at before, must find nothing to do and nothing to note: no rest, no timer, no reservation.
The courses are those of `mixed`, in which every policy is at work.
"""

from __future__ import annotations

import json
import random

import pytest
from properties.mixed import Mixed

from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import Event
from fairlead.scheduler import Scheduler

STEPS = 45
TWINS = 2
"""So many go on beside the original: the oldest ones give way."""
FOUND = (9, 22, 283, 489)
"""Courses that showed a difference once, each another one."""


def read_back(scheduler: Scheduler) -> Scheduler:
    """What a restart makes of it."""
    written = json.dumps(scheduler.dump())
    again = Scheduler.load(json.loads(written))
    assert json.dumps(again.dump()) == written, "what was written down is not what was read"
    return again


class Restarted(Mixed):
    """One course, with those who were read back on the way."""

    def __init__(self, number: int) -> None:
        self.twins: list[Scheduler] = []
        self.aside = random.Random(number)
        """Not the course's own chance."""
        super().__init__(number)

    def take(self, steps: int) -> None:
        for step in range(steps):
            self.run(1)
            if self.aside.random() < 0.2:
                self.twins = [*self.twins[1 - TWINS :], read_back(self.scheduler)]
            if self.aside.random() < 0.3:
                self.rests()
            state = self.scheduler.dump() if self.twins else None
            assert all(twin.dump() == state for twin in self.twins), f"course {self.number}, step {step}: other states"

    def decide(self, event: Event | None, limit: int | None = None) -> list[Decision]:
        decided = super().decide(event, limit)
        for twin in self.twins:
            other = twin.handle(event, self.now_ms) if event is not None else twin.schedule(self.now_ms, limit)
            assert other == decided, f"course {self.number}: other decisions after {event}"
        return decided

    def rests(self) -> None:
        """With nothing to do any more, as far as it knows: one that knows nothing agrees."""
        for _ in range(20):
            decided = [*self.decide(None), *self.decide(None)]
            self.note(decided)
            if not decided:
                break
        due_ms = self.scheduler.next_wakeup_ms()
        assert due_ms is None or due_ms > self.now_ms, f"course {self.number}: it wants to be called again at once"
        fresh = read_back(self.scheduler)
        found = fresh.schedule(self.now_ms)
        assert not found, f"course {self.number}: somebody was not looked at: {found}"
        assert fresh.dump() == self.scheduler.dump(), f"course {self.number}: one look more leaves another state"


@pytest.mark.timeout(7200)
def test_a_restart_changes_nothing(steps: int) -> None:
    """On some random courses, and on those that showed a difference once."""
    for number in dict.fromkeys([*FOUND, *range(steps // 10_000)]):
        course = Restarted(number)
        course.take(STEPS)
