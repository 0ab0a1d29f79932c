"""What people ask of the book of jobs: take work in, end it, change its priority or its queue.

Decides what each request enters into the books, and what is refused beforehand. Never starts or stops anything, and
never decides who runs. Invariant: a request that is refused has entered nothing, save the rejected jobs of a
submission.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.model import events
from fairlead.core.model.conditions import Conditions
from fairlead.core.model.decisions import ApplicationRejected
from fairlead.core.model.specs import DEFAULT_PARTITION, AskSpec
from fairlead.local import dependencies, job_bounds, placing
from fairlead.local.arrays import unlike
from fairlead.local.callers import Caller, Rights
from fairlead.local.history_records import (
    JobCancelRequested,
    JobCheckpointed,
    JobRefused,
    JobRequeued,
    JobSpec,
    JobSubmitted,
)
from fairlead.local.job_states import NOT_TOLD_TO_STOP, ON_THE_MACHINE, State
from fairlead.local.jobs import Jobs
from fairlead.local.placing import Placing
from fairlead.local.selection import meant, visible
from fairlead.local.user_bounds import UserLimits
from fairlead.runtime import Refusal, Turn
from fairlead.wire.arrays import in_short, parse_indices
from fairlead.wire.streams import PIPED

if TYPE_CHECKING:
    from fairlead.core.books.partition import Partition

MOST_LIVE = 200_000
"""Jobs that wait or run, at most."""


@dataclass(frozen=True, slots=True)
class RefusedJob:
    """A job that was not taken in, and is in the book as rejected. `index`: its place in the submission, if known."""

    key: str
    code: str
    sentence: str
    queue: str
    index: int | None


@dataclass(frozen=True, slots=True)
class Submitted:
    """What came of a submission: all jobs, or those for which none of it was taken in."""

    keys: tuple[str, ...]
    refused: tuple[RefusedJob, ...] = ()


def submit(
    jobs: Jobs, turn: Turn, caller: Caller, specs: Sequence[JobSpec], *, request: str = "", digest: str = ""
) -> Submitted:
    """Take jobs in, all or none, in one turn. See `Intake`."""
    submitted = Intake(caller, specs, request, digest).step(jobs, turn, sum(each.count for each in specs))
    assert submitted is not None
    return submitted


class Intake:
    """A submission on its way into the book, some jobs a turn, so that others have their turns meanwhile.

    It is refused as a whole before the first job is entered: if the queues do not take some of the jobs, these are
    entered as rejected, with the reason, and nothing else is. Where quotas or numbers of jobs count, all jobs are
    entered in one turn. A repeated `request` gives the same answer; it completes what was broken off, and joins what is
    still on its way.
    """

    def __init__(
        self,
        caller: Caller,
        specs: Sequence[JobSpec],
        request: str = "",
        digest: str = "",
        limits: UserLimits | None = None,
    ) -> None:
        """`specs` come without keys."""
        self.limits = limits
        """How many jobs the caller may have; None: it does not matter."""
        self._caller, self._specs = caller, specs
        self._request, self._digest = request, digest
        self._placings: list[Placing] | None = None
        self._keys: list[str] = []
        """Of what was entered; a turn that was taken back may have left some that were not."""
        self._count = sum(each.count for each in specs)
        """Jobs and parts of arrays in all."""
        self._has_classes = any(each.priority_class for each in specs)
        self._counted = False
        """Whether its queues count their jobs; then all are entered at once."""

    @property
    def specs(self) -> Sequence[JobSpec]:
        """The jobs that it brings."""
        return self._specs

    @property
    def keys(self) -> tuple[str, ...]:
        """Of what is in the book, once a step is durable."""
        return tuple(self._keys)

    def step(self, jobs: Jobs, turn: Turn, most: int) -> Submitted | None:
        """Enter `most` more jobs; None: there are more to come. Raises `Refusal` when nothing was entered.

        It may be called again for a turn that was taken back, where another request met with a fault.
        """
        while self._keys and not jobs.numbers.was_given(int(self._keys[-1])):
            del self._keys[-1]
        known = jobs.submissions.find(self._caller.uid, self._request) if self._request else None
        if known is not None:
            if known[0] != self._digest:
                said = f"the idempotency key {self._request!r} was used for another submission; use a new one"
                raise Refusal("conflict", said)
            self._keys = list(known[1])
            found = _repeated(jobs, self._keys)
            if found.refused or (len(self._keys) >= len(self._specs) and self._is_whole(jobs)):
                return found
        if self._placings is None or not self._keys:
            if (refused := self._prepare(jobs, turn)) is not None:
                return refused
            assert self._placings is not None
        if self._counted or self._has_classes or turn.scheduler.cluster.admission.is_asked:
            most = self._count
        while most > 0 and not (len(self._keys) == len(self._specs) and self._is_whole(jobs)):
            most -= self._enter_more(jobs, turn, most)
        is_all = len(self._keys) == len(self._specs) and self._is_whole(jobs)
        return Submitted(tuple(self._keys)) if is_all else None

    def _is_whole(self, jobs: Jobs) -> bool:
        """Whether the last one that was begun is entered with all its parts, or was refused."""
        if not self._keys:
            return True
        array = jobs.arrays.get(self._keys[-1])
        return (
            array is None
            or len(array.parts) >= self._specs[len(self._keys) - 1].count
            or array.first.state is State.REJECTED
        )

    def _prepare(self, jobs: Jobs, turn: Turn) -> Submitted | None:
        """Look at all of it before the first is entered; what was refused of it."""
        left = self._specs[len(self._keys) :]
        if jobs.live_count + sum(each.count for each in left) > MOST_LIVE:
            raise Refusal("too-many", f"more than {MOST_LIVE} jobs would wait; wait until some have run")
        if self.limits is not None:
            self.limits.jobs(self._caller, jobs.taken(self._caller.uid), left)
        rights = Rights(self._caller, turn.scheduler)
        self._placings = placing.plan(turn.scheduler, self._specs, rights)
        for index in range(len(self._specs)):
            if wrong := dependencies.wrong_after(jobs, rights, self._specs, index):
                raise wrong.refusal(f"jobs[{index}].after")
        denied = [i for i, each in enumerate(self._placings) if each.denial is not None]
        if denied and not self._keys:
            return Submitted(*self._refuse(jobs, turn, denied))
        partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
        self._counted = require_count(jobs, partition, self._caller.uid, self._placings[len(self._keys) :])
        return None

    def _refuse(self, jobs: Jobs, turn: Turn, denied: list[int]) -> tuple[tuple[str, ...], tuple[RefusedJob, ...]]:
        keys, refused = [], []
        for index in denied:
            placed = (self._placings or [])[index]
            keys.append(_enter_refused(jobs, turn, placed, self._request, self._digest))
            if (denial := placed.denial) is not None:
                refused.append(RefusedJob(keys[-1], denial.code, denial.sentence, denial.queue, index))
        return tuple(keys), tuple(refused)

    def _enter_more(self, jobs: Jobs, turn: Turn, most: int) -> int:
        """Enter the next job, or so many more parts of an array; how many that was."""
        placings = self._placings or []
        if self._is_whole(jobs):
            placed = placings[len(self._keys)]
            if placed.denial is not None:
                self._keys.append(_enter_refused(jobs, turn, placed, self._request, self._digest))
                return 1
            self._keys.append(str(jobs.numbers.next))
        placed = placings[len(self._keys) - 1]
        spec = dependencies.with_keys(placed.job(self._keys[-1]), self._keys)
        indices: tuple[int, ...] = ()
        if spec.array is not None:
            known = jobs.arrays.get(spec.key)
            begin = len(known.parts) if known is not None else 0
            indices = parse_indices(spec.array.indices)[begin : begin + most]
        record = JobSubmitted(job=spec, request=self._request, digest=self._digest, rule=placed.rule, indices=indices)
        _enter_submission(jobs, turn, record)
        return max(len(indices), 1)


def require_count(jobs: Jobs, partition: Partition, uid: int, placings: Sequence[Placing]) -> bool:
    """Raises `Refusal` where a queue would have more jobs than it may; whether any of them counts its jobs."""
    more: Counter[job_bounds.CountBound] = Counter()
    to_come: Counter[str] = Counter()
    for placed in placings:
        to_come[placed.path] += placed.spec.count
    for path, count in to_come.items():
        for bound in job_bounds.count_bounds(partition, path):
            more[bound] += count
    there: Counter[job_bounds.CountBound] = Counter()
    if more:
        there.update(b for job in jobs.live() for b in more if b.counts(job.queue, job.spec.uid, uid))
    for bound, count in more.items():
        if there[bound] + count > bound.most:
            raise Refusal("too-many", bound.sentence(there[bound], count))
    return bool(more)


def _enter_refused(jobs: Jobs, turn: Turn, placed: Placing, request: str, digest: str) -> str:
    """Note a submission that is not taken in, an array as one; its key."""
    spec, denial = placed.job(str(jobs.numbers.next)), placed.denial
    assert denial is not None
    turn.note(JobSubmitted(job=spec, request=request, digest=digest, rule=placed.rule))
    if denial.by_scheduler:
        turn.event(events.AddApplication(placing.application_of(spec)))
    turn.note(JobRefused(key=spec.key, code=denial.code, sentence=denial.sentence, queue=denial.queue))
    return spec.key


def _repeated(jobs: Jobs, keys: Sequence[str]) -> Submitted:
    """What was answered the first time; where only the rest of it was refused, it was taken in."""
    found = [job for key in keys if (job := jobs.get(key)) is not None]
    refused = [
        RefusedJob(job.key, job.refusal_code, job.error, "", None)
        for job in found
        if job.state is State.REJECTED and job.refusal_code
    ]
    there = tuple(key for key in keys if key in jobs)
    return Submitted(there, tuple(refused) if len(refused) == len(found) else ())


def _enter_submission(jobs: Jobs, turn: Turn, record: JobSubmitted) -> None:
    turn.note(record)
    spec = record.job
    if spec.key not in turn.scheduler.cluster.partitions[DEFAULT_PARTITION].applications:
        decided = turn.event(events.AddApplication(placing.application_of(spec)))
        if any(isinstance(each, ApplicationRejected) for each in decided):
            return
    keys = [f"{spec.key}.{index}" for index in record.indices] or [spec.key]
    found = [job.spec for key in keys if (job := jobs.get(key)) is not None]
    turn.event(events.AddAsks(tuple(ask_of(each, dependencies.conditions_of(jobs, each)) for each in found)))
    for key in keys if spec.cancel_never else ():
        dependencies.cancel_if_never(jobs, turn, key)


def ask_of(spec: JobSpec, conditions: Conditions | None) -> AskSpec:
    """The ask that a job is to the scheduler, and what has to come about before it is in line."""
    return AskSpec(
        application=spec.application,
        key=spec.key,
        resources=spec.resources,
        priority=spec.priority,
        grace_ms=spec.grace_ms,
        time_limit_ms=spec.time_limit_ms,
        labels=spec.labels,
        where=spec.where,
        retry=spec.retry,
        idle=spec.idle,
        priority_class=spec.priority_class,
        conditions=conditions,
    )


def cancel(jobs: Jobs, turn: Turn, caller: Caller, key: str, states: Sequence[str] = (), *, now: bool = False) -> None:
    """Let a job end: at once while it waits, otherwise it is told to stop. `states`: only while it is in one of them.

    `now`: without its grace; also where it was told to stop before, with a grace that takes too long.
    """
    job = visible(jobs, Rights(caller, turn.scheduler), key)
    if job.ended:
        raise Refusal("conflict", f"job {key} has ended already ({job.state}); there is nothing to cancel")
    if states and job.state not in states:
        said = f"job {key} is {job.state} by now, not {' or '.join(dict.fromkeys(states))}; it was left alone"
        raise Refusal("conflict", said, field="states")
    if job.cancelled_by and (not now or job.stop_grace_ms == 0):
        return
    waited = job.state is State.WAITING
    turn.note(JobCancelRequested(key=key, who=caller.user, now=now, waited=waited))
    if waited:
        turn.event(events.Release(application=job.application, key=job.ask_key, cause=events.Cause.STOPPED_BY_RM))


def requeue(jobs: Jobs, turn: Turn, caller: Caller, key: str, *, hold: bool = False, why: str = "") -> None:
    """Stop a job that runs, and let it wait again, at once or on hold; that counts for no retry."""
    job = visible(jobs, Rights(caller, turn.scheduler), key)
    if job.state is State.WAITING:
        raise Refusal("conflict", f"job {key} waits already; `fairlead hold {key}` keeps it from starting")
    if job.ended:
        raise Refusal("conflict", f"job {key} has ended already ({job.state}); `fairlead rerun {key}` submits it again")
    if job.state not in NOT_TOLD_TO_STOP:
        raise Refusal("conflict", f"job {key} is {job.state} already; wait until it has ended, or waits again")
    if PIPED in job.streams.stdin:
        said = f"job {key} reads what is piped into `fairlead run`, which cannot be read a second time"
        raise Refusal("conflict", f"{said}; `fairlead cancel {key}` ends it")
    turn.note(JobRequeued(key=key, who=caller.user, hold=hold, why=why))


def rerun(
    jobs: Jobs,
    turn: Turn,
    caller: Caller,
    key: str,
    env: Mapping[str, str],
    *,
    script: str = "",
    failed: bool = False,
    hold: bool = False,
) -> Intake:
    """An ended job once more, as a new one: the same command and needs, waiting for nothing but room. What its
    environment variables held, and its script, were forgotten when it ended: `env` and `script` say them again. Parts
    of an array become a new array with the same indices; `failed`: of those that are meant only what ended otherwise
    than well.

    What comes of it is for `step` to say. Only its owner may: it would run as that user.
    """
    found = meant(jobs, Rights(caller, turn.scheduler), key)
    live = next((job for job in found if not job.ended), None)
    if live is not None:
        said = f"job {live.key} is {live.state}; only what has ended is submitted again"
        raise Refusal("conflict", f"{said} (`fairlead requeue` stops what runs)")
    chosen = [job for job in found if not failed or job.state is not State.SUCCEEDED]
    if not chosen:
        raise Refusal("conflict", f"all of {key} ended well; there is nothing to submit again")
    spec = chosen[0].spec
    if not caller.owns(spec):
        user = spec.user
        raise Refusal("forbidden", f"job {key} is {user}'s and would run as {user}; ask {user} to submit it again")
    if spec.streams is not None and PIPED in spec.streams.stdin:
        said = f"job {key} read what was piped into `fairlead run`, and nobody kept that; pipe it into a new one"
        raise Refusal("conflict", said)
    if apart := unlike(chosen):
        said = f"parts of {key} were changed, and they are not alike; submit these again by themselves"
        raise Refusal("conflict", f"{said}: {spec.application}.{apart}")
    if lost := [name for name in spec.env if name not in env]:
        options = " ".join(f"--env {name}" for name in lost)
        said = (
            f"the environment of job {key} was forgotten when it ended; give it again, with =VALUE what is not set "
            f"where you are: fairlead rerun {key} {options}"
        )
        raise Refusal("invalid", said, field="env")
    if spec.is_script and not script:
        said = f"the script of job {key} was forgotten when it ended; give it again: fairlead rerun {key} --script FILE"
        raise Refusal("invalid", said, field="script")
    if script and not spec.is_script:
        raise Refusal("invalid", f"job {key} ran a command, not a script; leave the script out", field="script")
    array = spec.array
    if array is not None and (indices := [job.spec.index for job in chosen if job.spec.index is not None]):
        array = replace(array, indices=in_short(indices), whole=array.whole or array.indices)
    of = key if len(found) == 1 else spec.application  # Each part keeps it, and some thousand may be named.
    again = replace(spec, key="", groups=caller.groups, rerun_of=of, env=dict(env), script=script, array=array)
    return Intake(caller, [replace(again, hold=hold, begin_ms=0, after=(), cancel_never=False)])


def checkpoint(jobs: Jobs, turn: Turn, caller: Caller, key: str, attempt: int | None = None) -> None:
    """A running job has saved what it did; `attempt` says which one of its attempts that was, if it knows."""
    job = visible(jobs, Rights(caller, turn.scheduler), key)
    if not caller.may_see(job):
        raise Refusal("forbidden", f"only {job.spec.user} and what runs as {job.spec.user} can say so of job {key}")
    if job.state not in ON_THE_MACHINE:
        raise Refusal("conflict", f"job {key} is {job.state}; only a running job has something to save")
    if attempt is not None and attempt != job.attempt:
        raise Refusal("conflict", f"attempt {attempt} of job {key} is over; attempt {job.attempt} runs")
    turn.note(JobCheckpointed(key=key, attempt=job.attempt))
    turn.event(events.Checkpoint(application=job.application, key=job.ask_key))


def reserve(jobs: Jobs, turn: Turn, caller: Caller, key: str, *, on: bool, why: str = "") -> None:
    """Have room kept for a job that waits, so that those behind it wait, or no longer; for administrators."""
    rights = Rights(caller, turn.scheduler)
    job = visible(jobs, rights, key)
    if not rights.administers(job.queue):
        raise Refusal(
            "forbidden",
            f"a reservation holds others back: only administrators of {job.queue} switch it; ask one of them",
        )
    partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
    app = partition.applications.get(job.application)
    ask = app.asks.get(job.ask_key) if app is not None else None
    if job.state is not State.WAITING or ask is None or not ask.pending:
        reason = turn.scheduler.why(job.application, job.ask_key) if job.state is State.WAITING else None
        is_ = f"not in line yet ({reason.sentence()})" if reason is not None else str(job.state)
        raise Refusal("conflict", f"job {key} is {is_}; only a job that waits in line can have a reservation")
    if job.spec.idle:
        raise Refusal(
            "conflict", f"job {key} is idle work, which runs on what others leave over; nothing is kept for it"
        )
    if on == (partition.reserving.get(ask) is not None):
        raise Refusal("conflict", f"job {key} has {'a reservation already' if on else 'no reservation'}")
    turn.event(events.ReserveAsk(application=job.application, key=job.ask_key, on=on, who=caller.user, why=why))
