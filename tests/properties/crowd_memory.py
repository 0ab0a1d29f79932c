"""What is remembered changes no decision: a crowd (`crowd`) in the books of two schedulers.

The one remembers what it looked at in vain, the other forgets all of that before each call, and is read back from what
it would write down before some; both decide the same, and what starts is within every maximum and limit.

    python tests/properties/crowd_memory.py FIRST LAST

takes the courses FIRST to LAST - 1, prints what differs, and ends with the count; the status is 1 if something did.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from invariants.bounds import check_bounds
from properties.course_numbers import asked_for
from properties.crowd_wide import crowd_of

from fairlead.core.books.partition import Partition
from fairlead.core.model.decisions import Decision, Evict
from fairlead.core.model.events import Event, Release
from fairlead.scheduler import Scheduler

STEPS = 60
READ_BACK = 4
"""Before one call in so many the forgetting one is read back."""


class TwoMemories:
    """One course. Use `take`."""

    def __init__(self, number: int) -> None:
        self.crowd = crowd_of(number, lambda: self.part)
        self.remembering, self.forgetting = Scheduler(self.crowd.spec, 0), Scheduler(self.crowd.spec, 0)
        self.calls = 0
        self.differs = ""

    @property
    def part(self) -> Partition:
        return self.remembering.cluster.partitions["default"]

    def take(self) -> str:
        """What the two decided differently first; empty: nothing."""
        crowd = self.crowd
        for event in crowd.begins():
            self.handle(event)
        self.schedule()
        for _ in range(STEPS):
            crowd.now_ms += crowd.chance.choice([1, 100, 1_000, 5_000])
            for event in crowd.happens():
                self.handle(event)
            self.schedule()
            if self.differs:
                break
        return self.differs

    def handle(self, event: Event) -> None:
        self._compare(event, [s.handle(event, self.crowd.now_ms) for s in (self.remembering, self.forgetting)])

    def schedule(self) -> None:
        self.calls += 1
        if not self.calls % READ_BACK:
            self.forgetting = Scheduler.load(self.forgetting.dump())
        self.forgetting.forget()
        now_ms = self.crowd.now_ms
        decided = [self.remembering.schedule(now_ms), step_by_step(self.forgetting, now_ms)]
        self._compare("schedule", decided)
        check_bounds(self.part, decided[0])
        for decision in decided[0]:
            if isinstance(decision, Evict) and self.crowd.chance.random() < 0.8:
                self.handle(Release(decision.application, decision.key, decision.cause))

    def _compare(self, what: object, decided: list[list[Decision]]) -> None:
        one, other = decided
        if one != other and not self.differs:
            first = next(n for n in range(len(one) + 1) if one[n : n + 1] != other[n : n + 1])
            said, anew = one[first : first + 1], other[first : first + 1]
            self.differs = f"at {self.crowd.now_ms} ms, {what}: {said} with what is remembered, {anew} without"
        self.crowd.take_note(one)


def step_by_step(scheduler: Scheduler, now_ms: int) -> list[Decision]:
    """What a call without a limit decides, each run that places nothing a call of its own."""
    decisions: list[Decision] = []
    partitions = scheduler.cluster.partitions.values()
    while True:
        decisions += scheduler.schedule(now_ms, stop_when_empty=True)
        if all(each.rested_at == (each.news, each.books_version) for each in partitions):
            return decisions


def main(texts: Sequence[str] | None = None) -> int:
    """The command line; returns the status."""
    given = asked_for(texts, "Hold decisions with what is remembered against those without.", "crowds")
    differ = 0
    for number in range(given.first, given.last):
        if said := TwoMemories(number).take():
            differ += 1
            print(f"course {number} {said}", flush=True)
    print(f"{given.last - given.first} courses ({given.first} to {given.last - 1}), {differ} differ")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
