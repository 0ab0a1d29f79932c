"""The course of a workload: what happens in which order, and what was decided after each of it.

Decides how decisions are compared: per happening, who got which node in the order in which it was decided, and who was
stopped. Which of several victims is gone first is no decision, and placeholders of one gang are all alike; so these are
compared without their order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from places.workload import JobWords, Workload

PLACEHOLDER = "~"
"""Ends the name of a placeholder in what is compared: `GANG~`."""


@dataclass(frozen=True, slots=True)
class Happening:
    """Jobs come together, or one task ends by itself."""

    submit: tuple[JobWords, ...] = ()
    end: str = ""

    def __str__(self) -> str:
        return f"{self.end} ends" if self.end else f"{', '.join(job.name for job in self.submit)} come"


@dataclass(slots=True)
class Decided:
    """What followed from one happening."""

    placed: list[str] = field(default_factory=list)
    """`NAME -> NODE`, as it was decided."""
    stopped: list[str] = field(default_factory=list)
    loose: set[str] = field(default_factory=set)
    """Whose turn cannot be seen from outside: they are compared without their order."""
    late: set[str] = field(default_factory=set)
    """Placed after somebody was told to stop: who waits for his room gets it when he is gone, in whatever order."""

    def place(self, name: str, node: str) -> None:
        """A task or placeholder has a node."""
        self.placed.append(f"{name} -> {node}")
        if self.stopped:
            self.late.add(name)

    def stop(self, name: str) -> None:
        """A task was stopped to make room."""
        self.stopped.append(name)

    def __len__(self) -> int:
        return len(self.placed) + len(self.stopped)

    def lines(self, loose: Collection[str] = ()) -> list[str]:
        """The form in which they are compared, those of `loose` at the end and sorted."""
        apart = sorted(text for text in self.placed if text.split(" -> ")[0] in loose)
        rest = [text for text in self.placed if text.split(" -> ")[0] not in loose]
        return [f"{name} is stopped" for name in sorted(self.stopped)] + list(_alike(rest)) + apart


def _alike(placed: Sequence[str]) -> Iterator[str]:
    """Neighbouring placeholders in the order of their text."""
    run: list[str] = []
    for text in placed:
        if f"{PLACEHOLDER} -> " in text:
            run.append(text)
            continue
        yield from sorted(run)
        run.clear()
        yield text
    yield from sorted(run)


Course = list[tuple[Happening, Decided]]


def lines(course: Course) -> list[str]:
    """A course as text, for an assertion that shows where two differ."""
    return _text(course, [set()] * len(course))


def side_by_side(seen: Course, course: Course) -> tuple[list[str], list[str]]:
    """A course that was seen from outside, and the one that it has to be, both in as much order as can be seen."""
    loose = [ours.loose | theirs.late for (_, ours), (_, theirs) in zip(seen, course, strict=False)]
    loose += [set()] * (len(course) - len(loose))
    return _text(seen, loose), _text(course, loose)


def _text(course: Course, loose: Sequence[Collection[str]]) -> list[str]:
    return [
        line
        for (happening, decided), unordered in zip(course, loose, strict=False)
        for line in (f"{happening}:", *(f"  {text}" for text in decided.lines(unordered)))
    ]


def happenings(workload: Workload, ends: Sequence[tuple[int, str]]) -> list[tuple[int, Happening]]:
    """Everything that happens with its time (ms), in order; `ends` are those that the simulation found."""
    times: dict[int, list[JobWords]] = {}
    for job in workload.jobs:
        times.setdefault(job.at * 1000, []).append(job)
    found = [(at, Happening(submit=tuple(jobs))) for at, jobs in times.items()]
    found += [(at, Happening(end=name)) for at, name in ends]
    found.sort(key=lambda each: each[0])
    clash = [b for (a, _), (b, _) in pairwise(found) if a == b]
    assert not clash, f"at {clash[0]} ms two things happen: no real place can do that; change a time of the workload"
    return found


def task_of(key: str) -> str:
    """The task of a key: a further attempt is the same task."""
    return re.sub(r"#\d+$", "", key)
