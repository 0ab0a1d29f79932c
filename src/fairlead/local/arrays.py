"""Arrays: which jobs are parts of one, and what that is as a whole.

Decides the state of an array, and when it is over. Never keeps anything that its parts do not say. Invariant: a part is
a job with a life of its own; an array leaves the book as a whole, when all of it has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from fairlead.local.history_records import JobSpec, JobSubmitted
from fairlead.local.job import Job
from fairlead.local.job_states import State
from fairlead.wire.arrays import SAME_INDEX, count, in_short, parse_indices

_BY_WEIGHT = (
    State.RUNNING,
    State.STOPPING,
    State.SUSPENDED,
    State.WAITING,
    State.FAILED,
    State.TIMED_OUT,
    State.LOST,
    State.EVICTED,
    State.CANCELLED,
    State.REJECTED,
    State.SUCCEEDED,
)
"""Several jobs together are in the first of these states that one of them is in."""


class Array:
    """The parts of one array, by index."""

    __slots__ = ("begun", "broken_off", "ended_at_ms", "has_run", "key", "live", "parts")

    def __init__(self, key: str) -> None:
        self.key = key
        self.parts: dict[int, Job] = {}
        self.live = 0
        """How many have not ended."""
        self.ended_at_ms = 0
        """When the last of those that have ended did."""
        self.begun = False
        """One of them has started."""
        self.has_run = False
        """The same, also where a start was heard of at its end alone."""
        self.broken_off = False
        """No more of it come, though not all did."""

    @property
    def first(self) -> Job:
        """That of the lowest index."""
        return next(iter(self.parts.values()))

    @property
    def queue(self) -> str:
        """Where all of it is."""
        return self.first.queue

    @property
    def is_whole(self) -> bool:
        """Whether all of it has come in."""
        spec = self.first.spec.array
        return self.broken_off or spec is None or len(self.parts) >= count(spec.indices)

    @property
    def is_over(self) -> bool:
        """Whether all of it has come in, and has ended."""
        return not self.live and self.is_whole


def _over_at_ms(job: Job) -> int:
    """From when on an ended job is kept. Its end is by the machine's clock, which may have been set back by months."""
    return max(job.ended_at_ms or 0, job.allocated_at_ms or job.submitted_at_ms)


class Arrays(dict[str, Array]):
    """By key. What is no part of an array is passed over."""

    def add(self, job: Job) -> None:
        """One more part."""
        if (index := job.spec.index) is not None:
            array = self.get(job.application)
            if array is None:
                array = self[job.application] = Array(job.application)
            array.parts[index] = job
            array.begun |= self.ran(job)
            array.live += 1
            if job.ended:
                self.end(job)

    def read(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Add jobs that were written down, each by itself: parts of an array share again what is equal in them."""
        for job in jobs:
            if (array := self.get(job.application)) is not None:
                _share(job, array.first)
            self.add(job)
            yield job

    def start(self, job: Job) -> bool:
        """A job has started: whether all that it came with does so with it, as itself, or as the first of its array."""
        array = self.get(job.application)
        if array is None:
            return True
        begun, array.begun, array.has_run = array.begun, True, True
        return not begun

    def ran(self, job: Job) -> bool:
        """Note that a job has started, or an attempt of it, if so: its array is asked often, and has many parts."""
        has_run = job.started_at_ms is not None or any(over.started_at_ms is not None for over in job.past)
        if (array := self.get(job.application)) is not None:
            array.has_run |= has_run
        return has_run

    def end(self, job: Job) -> list[Job]:
        """A job has ended: what is over with it, itself or its whole array."""
        array = self.get(job.application)
        if array is None:
            return [job]
        array.live -= 1
        self.ran(job)
        array.ended_at_ms = max(array.ended_at_ms, _over_at_ms(job))
        return list(array.parts.values()) if array.is_over else []

    def break_off(self, key: str) -> list[Job]:
        """No more of an array come; what is over with that."""
        array = self[key]
        array.broken_off = True
        return list(array.parts.values()) if array.is_over else []

    def over_at_ms(self, job: Job) -> int | None:
        """When an ended job, or the last part of its array, ended; None: others of the array have not."""
        array = self.get(job.application)
        if array is None:
            return _over_at_ms(job)
        return array.ended_at_ms if array.is_over else None

    def whole(self, keys: Iterable[str]) -> list[str]:
        """These keys, with all other parts of arrays that are among them."""
        found: dict[str, None] = {}
        for key in keys:
            if key in found:
                continue
            array = self.get(key.partition(".")[0])
            found |= dict.fromkeys([key] if array is None else [part.key for part in array.parts.values()])
        return list(found)

    def is_last(self, job: Job) -> bool:
        """Whether nothing of what it came with would be left without it."""
        array = self.get(job.application)
        return array is None or len(array.parts) == 1

    def drop(self, job: Job) -> None:
        """A job leaves the book."""
        if (array := self.get(job.application)) is not None and job.spec.index is not None:
            array.parts.pop(job.spec.index, None)
            if not array.parts:
                del self[array.key]


_SHARED = ("queue", "node", "rule", "request", "waits_for", "streams", "submitted_at_ms")
"""What parts of an array often have in common, beside how they were described and what happened to them."""


def _share(job: Job, first: Job) -> None:
    """Keep what is equal in two parts once, as where both came in with one record: it is a third of what they take."""
    if (alike := replace(first.spec, key=job.spec.key)) == job.spec:
        job.spec = alike
    for name in _SHARED:
        if getattr(job, name) == (theirs := getattr(first, name)):
            setattr(job, name, theirs)
    for at, (mine, theirs) in enumerate(zip(job.history, first.history, strict=False)):
        if mine == theirs:
            job.history[at] = theirs


def ended_well(over: Sequence[Job]) -> bool | None:
    """Whether all that is over has ended well; None: nothing is over."""
    return all(job.state is State.SUCCEEDED for job in over) if over else None


def submitted(record: JobSubmitted, known: Array | None, at_ms: int) -> Iterator[Job]:
    """The jobs that come in with a record; `known`: the array to which they come."""
    spec = record.job
    for index in record.indices or (None,):
        own = spec if index is None else part_of(spec, f"{spec.key}.{index}")
        job = Job(spec=own, submitted_at_ms=at_ms, priority=spec.priority, queue=spec.queue)
        job.request, job.rule = record.request, record.rule
        again = f", as job {spec.rerun_of} was" if spec.rerun_of else ""
        job.remember(at_ms, "submitted", f"by {spec.user}{again}")
        if known is not None:
            job.placed(known.queue, at_ms)
        yield job


def part_of(spec: JobSpec, key: str) -> JobSpec:
    """The part of this key of an array; it waits for the parts of its own index."""
    index = key.rpartition(".")[2]
    if not any(SAME_INDEX in each.application for each in spec.after):
        return replace(spec, key=key)
    after = (replace(each, application=each.application.replace(SAME_INDEX, index)) for each in spec.after)
    return replace(spec, key=key, after=tuple(after))


def all_of(spec: JobSpec) -> list[JobSpec]:
    """All parts of what is submitted; what is no array is its only part."""
    if spec.array is None:
        return [spec]
    return [part_of(spec, f"{spec.key}.{index}") for index in parse_indices(spec.array.indices)]


def state_of(jobs: Iterable[Job]) -> State:
    """What several jobs are together: the most lively state of those that live, else the worst end."""
    there = Counter(job.state for job in jobs)
    return next((state for state in _BY_WEIGHT if there[state]), State.WAITING)


def unlike(parts: Sequence[Job]) -> str:
    """The indices of those parts that run otherwise than the first one, since some were changed; empty: none does."""
    same = ("command", "cwd", "env", "resources", "time_limit_ms")
    first = parts[0].spec
    found = (job.spec for job in parts if any(getattr(job.spec, name) != getattr(first, name) for name in same))
    return in_short(spec.index for spec in found if spec.index is not None)


def environment(job: Job) -> dict[str, str]:
    """What a part finds in its environment about its array; a part that is run again finds what it found before."""
    array, index = job.spec.array, job.spec.index
    if array is None or index is None:
        return {}
    indices = parse_indices(array.whole or array.indices)
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    said = {"KEY": job.application, "INDEX": index, "COUNT": len(indices)}
    said |= {"FIRST": indices[0], "LAST": indices[-1], "STEP": step}
    return {f"FAIRLEAD_ARRAY_{name}": str(value) for name, value in said.items()}
