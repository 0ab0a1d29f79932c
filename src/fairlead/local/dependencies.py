"""Dependencies: what the start and the end of a job mean for the jobs that wait for it.

Decides how the end of a job is called (well or not), and enters what follows for those that wait for it, in the same
turn. Never decides when conditions are met (`core.model.conditions` does). Invariant: after each turn no job waits for
what has come about, or can never come about, in a job of the book.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.model import events
from fairlead.core.model.conditions import Conditions, Dependency, Outcome
from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local.history_records import JobCancelRequested, JobSpec
from fairlead.local.job_names import job_of
from fairlead.local.job_states import State
from fairlead.local.selection import part_of_slurm
from fairlead.policy.events.held import following
from fairlead.runtime import Refusal
from fairlead.wire.arrays import SAME_INDEX, parse_indices, split

if TYPE_CHECKING:
    from fairlead.core.books.held_asks import HeldAsks
    from fairlead.local.callers import Rights
    from fairlead.local.jobs import Jobs
    from fairlead.runtime import Turn
    from fairlead.scheduler import Scheduler

BY_ITSELF = "the service"
"""Who cancels what can never run."""
NO_ARRAY = "names the part of the same index, and this is no array; name one part"


def held_asks(scheduler: Scheduler) -> HeldAsks:
    """What is not in line yet on this machine."""
    return scheduler.cluster.partitions[DEFAULT_PARTITION].held_asks


def outcome_of(jobs: Jobs, key: str) -> Outcome | None:
    """What others that wait for this job, or for all parts of this array, are told; None: nothing yet."""
    array = jobs.arrays.get(key)
    if array is not None and not array.is_over:
        # It is asked at the end of each part, so it must not look at all of them.
        return Outcome.STARTED if array.has_run else None
    found = jobs.of(key)
    if found and all(job.ended for job in found):
        return Outcome.OK if all(job.state is State.SUCCEEDED for job in found) else Outcome.NOT_OK
    return Outcome.STARTED if any(map(jobs.arrays.ran, found)) else None


def how_it_ended(jobs: Jobs, key: str) -> str:
    """As part of a sentence that begins with the job: `failed`, `was cancelled`."""
    array = jobs.arrays.get(key)
    if array is not None:
        bad = sum(job.state is not State.SUCCEEDED for job in array.parts.values())
        return f"has {bad} of {len(array.parts)} parts that did not" if bad else "ended well"
    job = jobs.get(key)
    state = job.state if job is not None else None
    return {
        State.SUCCEEDED: "ended well",
        State.FAILED: "failed",
        State.LOST: "was lost",
        State.TIMED_OUT: "ran into its time limit",
    }.get(state or State.LOST, f"was {state}")


def conditions_of(jobs: Jobs, spec: JobSpec) -> Conditions | None:
    """The conditions under which a job is entered: those that are met already are left out; None: there are none."""
    return after_all(jobs, Conditions(held_by=spec.user if spec.hold else "", begin_ms=spec.begin_ms, after=spec.after))


def after_all(jobs: Jobs, conditions: Conditions) -> Conditions | None:
    """What is left of conditions when what the book knows already is counted; None: nothing."""
    names = dict.fromkeys(each.application for each in conditions.after)
    known = {key: became for key in names if (became := _became_of(jobs, key)) is not None}
    if known:
        after = conditions.after
        left = [each.after(*known[each.application]) if each.application in known else each for each in after]
        conditions = replace(conditions, after=tuple(each for each in left if each is not None))
    return conditions if conditions != Conditions() else None


def _became_of(jobs: Jobs, key: str) -> tuple[Outcome, str] | None:
    """What the book knows already of a job that others wait for; None: nothing that matters to them."""
    if key not in jobs:
        return Outcome.NOT_OK, "has left the books since"
    outcome = outcome_of(jobs, key)
    return None if outcome is None else (outcome, how_it_ended(jobs, key))


class WrongAfter(NamedTuple):
    """What a job cannot wait for, and why."""

    what: Dependency
    why: str
    """A sentence."""

    def refusal(self, field: str) -> Refusal:
        """What the caller is told; `field`: where in the request the job says for what it waits."""
        about = {"field": field, "key": self.what.application, "awaited": self.what.awaited.value}
        return Refusal("invalid", self.why, field=field, details=[about | {"message": self.why}])


def wrong_after(jobs: Jobs, rights: Rights, specs: Sequence[JobSpec], index: int) -> WrongAfter | None:
    """What one of these jobs cannot wait for; None: it can wait for all that it names."""
    spec = specs[index]
    if not spec.after:
        return None
    within = replace(spec, after=tuple(each for each in spec.after if not each.application.startswith("#")))
    return unknown(jobs, rights, within) or unlike(specs, index)


def unknown(jobs: Jobs, rights: Rights, spec: JobSpec) -> WrongAfter | None:
    """What a job is to wait for and is there no more, or not for the caller; None: all is."""
    for each in spec.after:
        name, of_same_index, _ = each.application.partition(SAME_INDEX)
        if of_same_index and spec.array is None:
            return WrongAfter(each, f"{each.application} {NO_ARRAY}")
        keys = [each.application]
        if of_same_index:
            indices = parse_indices(spec.array.indices) if spec.index is None and spec.array else (spec.index,)
            keys = [f"{name}{index}" for index in indices]
        for key in keys:
            found = jobs.of(key)
            if not found or not rights.may_act(found[0]):
                why = f"there is no job {key!r} to wait for{part_of_slurm(key)}; `fairlead ls --all` shows yours"
                return WrongAfter(each, why)
    return None


def unlike(specs: Sequence[JobSpec], number: int) -> WrongAfter | None:
    """What this job cannot wait for of those that come in with it (`#0`, `#0.2`, `#0.%a`); None: there is nothing."""
    mine = specs[number]
    for each in mine.after:
        if not each.application.startswith("#"):
            continue
        name, part = split(each.application)
        at = int(name[1:]) if name[1:].isdecimal() else number
        if at >= number:
            return WrongAfter(each, f"{name} names no job that comes before this one in the same request")
        has = parse_indices(array.indices) if (array := specs[at].array) else ()
        if part == SAME_INDEX and mine.array is None:
            return WrongAfter(each, f"{each.application} {NO_ARRAY}")
        wants = parse_indices(mine.array.indices if mine.array and part == SAME_INDEX else part) if part else ()
        if not set(wants) <= set(has):
            return WrongAfter(each, f"{each.application} names a part that {name} does not have")
    return None


def with_keys(spec: JobSpec, keys: Sequence[str]) -> JobSpec:
    """The same job, with the keys of those that came in with it."""
    if not any(each.application.startswith("#") for each in spec.after):
        return spec
    after = []
    for each in spec.after:
        name, dot, part = each.application.partition(".")
        known = keys[int(name[1:])] if name.startswith("#") else name
        after.append(replace(each, application=f"{known}{dot}{part}"))
    return replace(spec, after=tuple(after))


def settle(jobs: Jobs, turn: Turn) -> None:
    """Enter what the starts and ends of this turn mean for others; what is cancelled by that counts, too."""
    while jobs.news:
        key = jobs.news.pop(0)
        if (job := jobs.get(key)) is None:
            continue
        for name in dict.fromkeys((key, job.application)):
            _tell(jobs, turn, name)


def _tell(jobs: Jobs, turn: Turn, name: str) -> None:
    partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
    if not partition.held_asks.awaiting(name) or (outcome := outcome_of(jobs, name)) is None:
        return
    for event in following(partition, name, outcome, how_it_ended(jobs, name)):
        turn.event(event)
        cancel_if_never(jobs, turn, job_of(event.key))


def cancel_if_never(jobs: Jobs, turn: Turn, key: str) -> None:
    """Take a job back that can never run, if it was submitted so."""
    job = jobs.get(key)
    if job is None or not job.spec.cancel_never or job.state is not State.WAITING:
        return
    held = held_asks(turn.scheduler).get(job.application, job.ask_key)
    if held is None or not any(each.never for each in held.conditions.after):
        return
    why = held.conditions.reason().sentence()
    turn.note(JobCancelRequested(key=key, who=BY_ITSELF, why=why, waited=True))
    turn.event(events.Release(application=job.application, key=job.ask_key, cause=events.Cause.STOPPED_BY_RM))


def circle(jobs: Jobs, scheduler: Scheduler, key: str, after: Iterable[Dependency]) -> list[str]:
    """The way from `key` over jobs that wait for each other back to it, or to the array that it is a part of, if it
    waited for these; else nothing.
    """
    held = held_asks(scheduler)
    array = split(key)[0]
    waits_for_it: dict[str, str] = {}
    todo = [(each.application, key) for each in after]
    while todo:
        found, by = todo.pop()
        if found in (key, array):
            way = [by]
            while way[-1] != key:
                way.append(waits_for_it[way[-1]])
            return [*reversed(way), found]
        if found not in waits_for_it:
            waits_for_it[found] = by
            job = jobs.get(found)
            # Of a part that part alone is looked at: each part of an array may wait for one of another array.
            waiting = held.of(found) if job is None else [held.get(job.application, job.ask_key)]
            todo += [(each.application, found) for one in waiting if one is not None for each in one.conditions.after]
    return []
