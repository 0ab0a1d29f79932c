"""What the books say of several parts of an array together, in the shapes of the wire.

Decides which part stands for all where they differ, and what is counted. Never changes anything. Invariant: what is
asked for, by whom and where is the same for all parts, unless one of them was changed; then it is that of the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local.arrays import Array, state_of
from fairlead.local.holding import conditions_now
from fairlead.local.job import Job
from fairlead.local.job_states import ON_THE_MACHINE, State
from fairlead.local.jobs import Jobs
from fairlead.service import views
from fairlead.wire import jobs as wire
from fairlead.wire.arrays import Parts, in_short, in_words
from fairlead.wire.statuses import exit_status
from fairlead.wire.verdicts import PartsWhy, Why

if TYPE_CHECKING:
    from fairlead.scheduler import Scheduler

Meant = Sequence[Job]
"""Parts of one array, in order; or one job."""


def row(jobs: Jobs, scheduler: Scheduler, key: str, meant: Meant) -> wire.Job:
    """A job, or what is meant of an array, as a row of a list."""
    array = jobs.arrays.get(meant[0].application)
    if array is None or (len(meant) == 1 and meant[0].key == key):
        return views.job_row(meant[0], scheduler)
    state = state_of(meant)
    typical = next(job for job in meant if job.state is state)
    began = [job.started_at_ms for job in meant if job.started_at_ms is not None]
    is_over = all(job.ended for job in meant)
    return replace(
        views.job_row(typical, scheduler),
        key=key,
        exit_code=None,
        signal=None,
        started_at_ms=min(began, default=None),
        ended_at_ms=max(job.ended_at_ms or 0 for job in meant) if is_over else None,
        suspended_at_ms=None,
        suspended_ms=0,
        cpu_ms=sum(job.cpu_ms for job in meant),
        peak_memory_bytes=max(job.peak_memory_bytes for job in meant),
        parts=counts(scheduler, array, meant),
    )


def counts(scheduler: Scheduler, array: Array, meant: Meant) -> Parts:
    """How many of the parts are how."""
    there = Counter(job.state for job in meant)
    partition = scheduler.cluster.partitions[DEFAULT_PARTITION]
    app = partition.applications.get(array.key)
    held = 0
    if partition.held_asks.has(array.key):
        waiting = (job for job in meant if job.state is State.WAITING)
        held = sum(bool(conditions_now(scheduler, job).held_by) for job in waiting)
    done, cancelled = there[State.SUCCEEDED], there[State.CANCELLED]
    running = sum(there[state] for state in ON_THE_MACHINE)
    return Parts(
        indices=in_short(job.spec.index for job in meant if job.spec.index is not None),
        at_once=app.spec.at_once if app is not None and array.live else 0,
        count=len(meant),
        waiting=there[State.WAITING] - held,
        held=held,
        running=running,
        suspended=there[State.SUSPENDED],
        stopping=there[State.STOPPING],
        done=done,
        cancelled=cancelled,
        failed=len(meant) - there[State.WAITING] - running - done - cancelled,
        exit_status=max((_status(job) for job in meant if job.ended), default=0),
    )


def _status(job: Job) -> int:
    started = job.started_at_ms is not None
    return exit_status(job.state.value, started=started, exit_code=job.exit_code, signal=job.signal)


def full(jobs: Jobs, scheduler: Scheduler, key: str, meant: Meant) -> wire.JobDetails:
    """Everything that there is to say of the parts together."""
    shown = row(jobs, scheduler, key, meant)
    waiting = [job for job in meant if job.state is State.WAITING]
    about = views.job_full((waiting or meant)[0], scheduler)
    together = {name: getattr(shown, name) for name in wire.Job.__struct_fields__}
    return replace(
        about,
        **together,
        held_by=next((by for job in waiting if (by := conditions_now(scheduler, job).held_by)), ""),
        retry_due_ms=None,
        checkpoint_at_ms=None,
        past=[],
        pid=None,
        attempts=0,
        error="",
        gpus=sorted({gpu for job in meant if job.state in ON_THE_MACHINE for gpu in job.gpus}),
        history=[],
    )


def why(jobs: Jobs, scheduler: Scheduler, key: str, meant: Meant) -> Why:
    """Why the parts are how they are, those together of which the same is to be said."""
    shown = row(jobs, scheduler, key, meant)
    reason_of = _reasons(scheduler)
    alike: dict[tuple[str, str], list[tuple[Job, wire.Reason | None]]] = {}
    for job in meant:
        reason = reason_of(job)
        sentence = reason.sentence if reason is not None else views.plain_sentence(job)
        alike.setdefault((job.state.value, sentence), []).append((job, reason))
    parts = [
        PartsWhy(
            indices=in_short(job.spec.index for job, _ in found if job.spec.index is not None),
            count=len(found),
            state=found[0][0].state.value,
            reason=found[0][1],
            sentence=sentence,
        )
        for (_, sentence), found in alike.items()
    ]
    said = f"{len(meant)} parts, {in_words(shown.parts)}" if shown.parts is not None else ""
    return Why(
        key=key,
        state=shown.state,
        reason=shown.reason,
        sentence=said,
        queue_position=None,
        expected_start_ms=None,
        parts=parts,
    )


def _reasons(scheduler: Scheduler) -> Callable[[Job], wire.Reason | None]:
    """Why a job is how it is; what waits in line with others that ask for the same is asked once for all of them."""
    known: dict[int, wire.Reason | None] = {}
    partition = scheduler.cluster.partitions[DEFAULT_PARTITION]

    def reason_of(job: Job) -> wire.Reason | None:
        app = partition.applications.get(job.application)
        ask = app.asks.get(job.ask_key) if app is not None else None
        if ask is None or ask.batch is None or job.state is not State.WAITING:
            return views.job_reason(job, scheduler)
        if id(ask.batch) not in known:
            known[id(ask.batch)] = views.job_reason(job, scheduler)
        return known[id(ask.batch)]

    return reason_of
