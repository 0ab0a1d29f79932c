"""What happened, made of events: who ran where and when, who waited how long, who was stopped for whom.

Decides how events become runs. Never asks for any: it is told them in their order. Invariant: a run is told once, from
its start to its end, or without one if it goes on. Of an array each part is a course of its own, and it is none itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairlead.wire.jobs import Job
from fairlead.wire.occupancy import Occupant


@dataclass(slots=True)
class Run:
    """One attempt of a job on a node."""

    key: str
    node: str
    begin_ms: int
    end_ms: int | None = None
    how: str = "running"
    stopped_for: str = ""
    rule: str = ""


@dataclass(slots=True)
class Course:
    """One job."""

    key: str
    user: str = ""
    name: str = ""
    queue: str = ""
    resources: Mapping[str, Any] = field(default_factory=dict)
    submitted_ms: int | None = None
    waits_since_ms: int | None = None
    waits_until_ms: int | None = None
    """When it ended while it waited."""
    runs: list[Run] = field(default_factory=list)
    waited_ms: int = 0
    is_over: bool = False
    """It has ended for good: that its room is free is told after that."""

    @property
    def open_run(self) -> Run | None:
        """The one that goes on."""
        return self.runs[-1] if self.runs and self.runs[-1].end_ms is None else None

    def submitted_after_all(self, at_ms: int) -> None:
        """When it was submitted, of which no event was seen: until it first ran it waited."""
        self.submitted_ms = at_ms
        if self.runs:
            self.waited_ms += max(0, self.runs[0].begin_ms - at_ms)


Told = tuple[int, str, str, Mapping[str, Any]]
"""An event: its moment in milliseconds, its type, the job's key and what it says."""


def courses(events: Iterable[Told]) -> dict[str, Course]:
    """The jobs of events."""
    found: dict[str, Course] = {}
    arrays: dict[str, Course] = {}
    for at_ms, what, key, values in (told for told in events if told[2]):
        course = arrays.get(key) or found.get(key)
        if course is None:
            course = found[key] = _part(key, arrays.get(key.rpartition(".")[0]))
        match what:
            case "application.submitted":
                course.user = str(values.get("user", ""))
            case "job.submitted":
                _submit(course, found.get(str(values.get("application", "")), Course("")), at_ms, values)
                if values.get("parts"):
                    arrays[key] = course
                    found.pop(key, None)
            case "job.placed" | "job.moved":
                _put(course, found, values)
            case "job.changed":
                _change(course, values)
            case "job.allocated":
                _begin(course, str(values.get("node", "")), at_ms)
            case "job.evicting":
                _evict(course, values)
            case "job.released" | "job.attempt-ended" | "job.ended":
                _end(course, at_ms, what, values)
            case "job.cancelled" | "job.rejected" | "job.refused":
                _give_up(course, at_ms)
            case _:
                pass
    return found


def began_before(jobs: Iterable[Job | Occupant], since_ms: int) -> list[Told]:
    """Of what began before the events that are looked at, and ran on: that it did."""
    told: list[Told] = [
        (each.started_at_ms, "job.allocated", each.key, {"node": each.node})
        for each in jobs
        if each.started_at_ms is not None and each.started_at_ms < since_ms
    ]
    return sorted(told, key=lambda each: each[:3])


def _part(key: str, array: Course | None) -> Course:
    """A job of which nothing was told; a part of an array was submitted with it."""
    return replace(array, key=key, runs=[], waits_until_ms=None, is_over=False) if array is not None else Course(key)


def _submit(course: Course, whole: Course, at_ms: int, values: Mapping[str, Any]) -> None:
    """`whole`: the application that it belongs to, in a simulation."""
    course.user, course.name = str(values.get("user", whole.user)), str(values.get("name", ""))
    course.queue, course.resources = str(values.get("queue", whole.queue)), values.get("resources") or {}
    course.submitted_ms = at_ms if course.submitted_ms is None else course.submitted_ms
    course.waits_since_ms = at_ms


def _put(course: Course, found: Mapping[str, Course], values: Mapping[str, Any]) -> None:
    """It is in a queue, an array with those of its parts that are not over."""
    course.queue = str(values.get("new", values.get("queue", course.queue)))
    if course.key not in found:
        for key, part in found.items():
            if key.startswith(f"{course.key}.") and not part.is_over:
                part.queue = course.queue


def _change(course: Course, values: Mapping[str, Any]) -> None:
    course.resources = values.get("resources") or course.resources
    course.name = str(values.get("name") or course.name)


def _begin(course: Course, node: str, at_ms: int) -> None:
    if course.open_run is None:
        course.waits_until_ms, course.is_over = None, False
        course.runs.append(Run(course.key, node, at_ms))
        if course.waits_since_ms is not None:
            course.waited_ms += at_ms - course.waits_since_ms
            course.waits_since_ms = None


def _evict(course: Course, values: Mapping[str, Any]) -> None:
    if (run := course.open_run) is not None:
        run.stopped_for = str(values.get("on_behalf_of", "")).rpartition("/")[2].partition("#")[0]
        run.rule = str(values.get("rule", ""))


def _give_up(course: Course, at_ms: int) -> None:
    """Of what waited nothing else tells the end; what runs has still to stop."""
    if course.open_run is None:
        course.waits_until_ms, course.is_over = at_ms, True


def _end(course: Course, at_ms: int, what: str, values: Mapping[str, Any]) -> None:
    run = course.open_run
    if run is not None:
        # It may be told late: what ended while the service was down is told when that is there again.
        at_ms = max(run.begin_ms, min(at_ms, values.get("ended_at_ms") or at_ms))
        run.end_ms = at_ms
        run.how = "evicted" if run.stopped_for or run.rule else "ended"
    ended = course.runs[-1] if course.runs else None
    if ended is not None and values.get("state"):
        ended.how = str(values["state"])
    course.is_over = what == "job.ended" or (course.is_over and what == "job.released")
    was_stopped = what == "job.released" and ended is not None and ended.how == "evicted" and not course.is_over
    course.waits_since_ms = at_ms if was_stopped or what == "job.attempt-ended" else None


def at_moment(found: Iterable[Course], at_ms: int) -> tuple[list[tuple[Course, Run]], list[Course]]:
    """What ran and what waited then."""
    ran, waited = [], []
    for course in found:
        run = next((r for r in course.runs if r.begin_ms <= at_ms and (r.end_ms is None or at_ms < r.end_ms)), None)
        if run is not None:
            ran.append((course, run))
        elif _waited(course, at_ms):
            waited.append(course)
    return ran, waited


def _waited(course: Course, at_ms: int) -> bool:
    if course.submitted_ms is None or at_ms < course.submitted_ms:
        return False
    if any(run.begin_ms > at_ms for run in course.runs):
        return True
    since_ms, until_ms = course.waits_since_ms, course.waits_until_ms
    return since_ms is not None and since_ms <= at_ms and (until_ms is None or at_ms < until_ms)
