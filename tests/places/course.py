"""The course of a workload: what happens in which order, and what was decided after each of it.

Decides how decisions are compared: per happening, who got which node in the order in which it was decided, and who was
stopped. Which of several victims is gone first is no decision, and placeholders of one gang are all alike; so these are
compared without their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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

    def place(self, name: str, node: str) -> None:
        """A task or placeholder has a node."""
        self.placed.append(f"{name} -> {node}")

    def stop(self, name: str) -> None:
        """A task was stopped to make room."""
        self.stopped.append(name)

    def __len__(self) -> int:
        return len(self.placed) + len(self.stopped)

    def lines(self) -> list[str]:
        """The form in which they are compared."""
        return [f"{name} is stopped" for name in sorted(self.stopped)] + list(_alike(self.placed))


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
    return [line for happening, decided in course for line in (f"{happening}:", *(f"  {x}" for x in decided.lines()))]


def happenings(workload: Workload, ends: Sequence[tuple[int, str]]) -> list[tuple[int, Happening]]:
    """Everything that happens with its time (ms), in order; `ends` are those that the simulation found."""
    times: dict[int, list[JobWords]] = {}
    for job in workload.jobs:
        times.setdefault(job.at * 1000, []).append(job)
    found = [(at, Happening(submit=tuple(jobs))) for at, jobs in times.items()]
    found += [(at, Happening(end=name)) for at, name in ends]
    found.sort(key=lambda each: each[0])
    clash = [b for (a, _), (b, _) in zip(found, found[1:], strict=False) if a == b]
    assert not clash, f"at {clash[0]} ms two things happen: no real place can do that; change a time of the workload"
    return found


def task_of(key: str) -> str:
    """The task of a key: a further attempt is the same task."""
    return re.sub(r"#\d+$", "", key)
