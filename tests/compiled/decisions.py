"""Everything that is decided on a way through the scheduler, a line for each call: `python decisions.py WAY ...`.

Run as a program by a plain and by a compiled Fairlead, which have to print the same bytes. Decides nothing: the ways
are the recorded scenarios, the courses of the property tests, and journals. The last line of each is the whole state.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from invariants.books import check_books
from properties.mixed import Mixed

from fairlead.core.model.decisions import Decision
from fairlead.core.model.events import Configure, Event
from fairlead.core.model.specs import ClusterSpec
from fairlead.journal.codec import encode, encode_all, encode_plain
from fairlead.journal.format import EVENT, SCHEDULE
from fairlead.journal.store import Journal
from fairlead.scheduler import Scheduler
from fairlead.sim.scenario import ConfigurationRefused, Course
from fairlead.sim.steps import read_scenarios
from fairlead.version import build

SNAPSHOT_EVERY = 40
"""Records of a journal."""


def say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")


class Aloud:
    """Says what a course in virtual time decides (a `fairlead.virtual_time.Recorder`)."""

    def event(self, now_ms: int, event: Event, decisions: Sequence[Decision]) -> None:
        say(encode_all(decisions))

    def run(self, now_ms: int, limit: int | None, decisions: Sequence[Decision]) -> None:
        say(encode_all(decisions))


def scenarios(*paths: str) -> None:
    """Each scenario of these files to its end."""
    for path in paths:
        for scenario in read_scenarios(iter(Path(path).read_bytes().splitlines(keepends=True)), path):
            say(scenario.name.encode())
            try:
                course = Course(scenario.config)
                course.recorder = Aloud()
                for step in scenario.steps:
                    course.advance(step)
            except ConfigurationRefused as refusal:
                say(str(refusal).encode())
                continue
            check_books(course.scheduler)
            say(encode_plain(course.scheduler.dump()))


class Told(Mixed):
    """A course in which every policy is at work; what is done and decided is kept."""

    def __init__(self, number: int) -> None:
        self.files: list[ClusterSpec] = []
        self.done: list[tuple[int, Event | None, int | None]] = []
        super().__init__(number)

    def _file(self, spec: ClusterSpec) -> ClusterSpec:
        self.files.append(super()._file(spec))
        return self.files[-1]

    def decide(self, event: Event | None, limit: int | None = None) -> list[Decision]:
        self.done.append((self.now_ms, event, limit))
        decided = super().decide(event, limit)
        say(encode_all(decided))
        return decided


def courses(first: str, count: str, steps: str) -> None:
    """So many courses from a number on."""
    for number in range(int(first), int(first) + int(count)):
        course = Told(number)
        course.run(int(steps))
        check_books(course.scheduler)
        say(encode_plain(course.scheduler.dump()))


def journal(path: str, number: str, steps: str) -> None:
    """What is done in a course, once more by a scheduler that begins with nothing; its journal, with snapshots."""
    course = Told(int(number))
    course.run(int(steps))
    scheduler = Scheduler()
    begin = (0, Configure(course.files[0]), None)
    with Journal(path) as written:
        for n, (now_ms, event, limit) in enumerate([begin, *course.done], 1):
            if event is None:
                kind, payload, decided = SCHEDULE, encode_plain({"limit": limit}), scheduler.schedule(now_ms, limit)
            else:
                kind, payload, decided = EVENT, encode(event), scheduler.handle(event, now_ms)
            written.append(now_ms, kind, payload, encode_all(decided))
            if n % SNAPSHOT_EVERY == 0:
                written.commit()
                written.save_snapshot(
                    written.last_seq, now_ms, encode_plain({"scheduler": scheduler.dump(), "place": {}})
                )
        written.commit()
    say(encode_plain(scheduler.dump()))


if __name__ == "__main__":
    print(build(), file=sys.stderr)
    {"scenarios": scenarios, "courses": courses, "journal": journal}[sys.argv[1]](*sys.argv[2:])
