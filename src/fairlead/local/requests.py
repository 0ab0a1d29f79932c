"""What people ask of the book of works: take work in, end it, change its priority or its queue.

Decides what each request enters into the books, and what is refused beforehand. Never starts or stops anything, and
never decides who runs. Invariant: a request that is refused has entered nothing, save the rejected works of a
submission.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairlead.core.decisions import ApplicationRejected, Decision, MoveRejected
from fairlead.core.events import (
    AddApplication,
    AddAsks,
    Cause,
    Checkpoint,
    MoveApplication,
    Release,
    ReserveAsk,
    SetPriority,
)
from fairlead.core.specs import DEFAULT_PARTITION, AskSpec
from fairlead.local import placing
from fairlead.local.access import Rights
from fairlead.local.callers import Caller
from fairlead.local.placing import Placing
from fairlead.local.records import WorkCancelRequested, WorkCheckpointed, WorkRefused, WorkSpec, WorkSubmitted
from fairlead.local.work import ON_THE_MACHINE, State, Work
from fairlead.local.works import Works
from fairlead.runtime import Refusal, Turn

MOST_LIVE = 200_000
"""Works that wait or run, at most."""


@dataclass(frozen=True, slots=True)
class RefusedWork:
    """A work that was not taken in, and is in the book as rejected. `index`: its place in the submission, if known."""

    key: str
    code: str
    sentence: str
    queue: str
    index: int | None


@dataclass(frozen=True, slots=True)
class Submitted:
    """What came of a submission: all works, or those for which none of it was taken in."""

    keys: tuple[str, ...]
    refused: tuple[RefusedWork, ...] = ()


def submit(
    works: Works, turn: Turn, caller: Caller, specs: Sequence[WorkSpec], *, request: str = "", digest: str = ""
) -> Submitted:
    """Take works in, all or none. `specs` come without keys. A repeated `request` gives the same answer.

    If the queues do not take some of them, these are entered as rejected, with the reason, and nothing else is.
    """
    if request and (known := works.request(caller.uid, request)) is not None:
        if known[0] != digest:
            raise Refusal("conflict", f"the idempotency key {request!r} was used for another submission; use a new one")
        return _repeated(works, known[1])
    if works.live_count + len(specs) > MOST_LIVE:
        raise Refusal("too-many", f"more than {MOST_LIVE} works would wait; wait until some have run")
    placings = placing.plan(turn.scheduler, specs)
    denied = [i for i, each in enumerate(placings) if each.denial is not None]
    keys, refused = [], []
    for index in denied or range(len(placings)):
        keyed = replace(placings[index].spec, key=str(works.next_number))
        keys.append(keyed.key)
        record = WorkSubmitted(work=keyed, request=request, digest=digest, rule=placings[index].rule)
        _enter_submission(turn, record, placings[index])
        if (denial := placings[index].denial) is not None:
            refused.append(RefusedWork(keyed.key, denial.code, denial.sentence, denial.queue, index))
    return Submitted(tuple(keys), tuple(refused))


def _repeated(works: Works, keys: Sequence[str]) -> Submitted:
    """What was answered the first time."""
    found = [work for key in keys if (work := works.get(key)) is not None]
    refused = [
        RefusedWork(work.key, work.refusal_code, work.error, "", None)
        for work in found
        if work.state is State.REJECTED and work.refusal_code
    ]
    return Submitted(tuple(keys), tuple(refused))


def _enter_submission(turn: Turn, record: WorkSubmitted, placed: Placing) -> None:
    spec, denial = record.work, placed.denial
    turn.note(record)
    decided: list[Decision] = []
    if denial is None or denial.by_scheduler:
        decided = turn.event(AddApplication(placing.application_of(spec)))
    if denial is not None:
        turn.note(WorkRefused(key=spec.key, code=denial.code, sentence=denial.sentence, queue=denial.queue))
    if denial is not None or any(isinstance(each, ApplicationRejected) for each in decided):
        return
    turn.event(AddAsks((ask_of(spec),)))


def ask_of(spec: WorkSpec) -> AskSpec:
    """The ask that a work is to the scheduler."""
    return AskSpec(
        application=spec.key,
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
    )


def visible(works: Works, rights: Rights, key: str) -> Work:
    """The work, if it exists for the caller; otherwise a `Refusal`. Who may see it may act on it."""
    work = works.get(key)
    if work is None or not rights.may_act(work):
        raise Refusal("not-found", f"there is no work {key!r}; `fairlead ls --all` shows yours")
    return work


def cancel(works: Works, turn: Turn, caller: Caller, key: str, state: str | None = None) -> None:
    """Let a work end: at once while it waits, otherwise it is told to stop. `state`: only while it is in this one."""
    work = visible(works, Rights(caller, turn.scheduler), key)
    if work.ended:
        raise Refusal("conflict", f"work {key} has ended already ({work.state}); there is nothing to cancel")
    if state is not None and work.state != state:
        raise Refusal("conflict", f"work {key} is {work.state} by now, not {state}; it was left alone", field="state")
    if work.cancelled_by:
        return
    waited = work.state is State.WAITING
    turn.note(WorkCancelRequested(key=key, who=caller.user))
    if waited:
        turn.event(Release(application=key, key=work.ask_key, cause=Cause.STOPPED_BY_RM))


def checkpoint(works: Works, turn: Turn, caller: Caller, key: str, attempt: int | None = None) -> None:
    """A running work has saved what it did; `attempt` says which one of its attempts that was, if it knows."""
    work = visible(works, Rights(caller, turn.scheduler), key)
    if not caller.may_see(work):
        raise Refusal("forbidden", f"only {work.spec.user} and what runs as {work.spec.user} can say so of work {key}")
    if work.state not in ON_THE_MACHINE:
        raise Refusal("conflict", f"work {key} is {work.state}; only running work has something to save")
    if attempt is not None and attempt != work.attempt:
        raise Refusal("conflict", f"attempt {attempt} of work {key} is over; attempt {work.attempt} runs")
    turn.note(WorkCheckpointed(key=key, attempt=work.attempt))
    turn.event(Checkpoint(application=key, key=work.ask_key))


def reserve(works: Works, turn: Turn, caller: Caller, key: str, *, on: bool, why: str = "") -> None:
    """Have room kept for a work that waits, so that those behind it wait, or no longer; for administrators."""
    rights = Rights(caller, turn.scheduler)
    work = visible(works, rights, key)
    if not rights.administers(work.queue):
        raise Refusal(
            "forbidden",
            f"a reservation holds others back: only administrators of {work.queue} switch it; ask one of them",
        )
    partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
    app = partition.applications.get(key)
    ask = app.asks.get(work.ask_key) if app is not None else None
    if work.state is not State.WAITING or ask is None or not ask.pending:
        held = work.state is State.WAITING
        is_ = "not in line yet, its back-off is not over" if held else str(work.state)
        raise Refusal("conflict", f"work {key} is {is_}; only work that waits in line can have a reservation")
    if work.spec.idle:
        raise Refusal(
            "conflict", f"work {key} is idle work, which runs on what others leave over; nothing is kept for it"
        )
    if on == (partition.reserving.get(ask) is not None):
        raise Refusal("conflict", f"work {key} has {'a reservation already' if on else 'no reservation'}")
    turn.event(ReserveAsk(application=key, key=work.ask_key, on=on, who=caller.user, why=why))


def change(
    works: Works,
    turn: Turn,
    caller: Caller,
    key: str,
    *,
    priority: int | None = None,
    queue: str | None = None,
    why: str = "",
) -> str:
    """Change the priority of a work that waits, its queue, or both; why it cannot be moved, or nothing.

    The queue first: where that is refused, the priority stays as it is.
    """
    rights = Rights(caller, turn.scheduler)
    work = visible(works, rights, key)
    if priority is not None and work.state is not State.WAITING:
        raise Refusal("conflict", f"work {key} is {work.state}; only the priority of waiting work can be changed")
    if queue is not None and (refused := _move(turn, rights, work, queue)):
        return refused
    if priority is not None and work.priority != priority:
        turn.event(SetPriority(application=key, key=work.ask_key, priority=priority, who=caller.user, why=why))
    return ""


def _move(turn: Turn, rights: Rights, work: Work, queue: str) -> str:
    """Put a work into another queue; why the scheduler leaves it where it is, or nothing."""
    if work.state not in (State.WAITING, State.RUNNING):
        raise Refusal("conflict", f"work {work.key} is {work.state}; only waiting and running work can be moved")
    partition = turn.scheduler.cluster.partitions[DEFAULT_PARTITION]
    path = placing.full_path(partition, queue)
    target = partition.root.find(path)
    if target is None:
        said = f"there is no queue {queue}{placing.suggestions(partition, path)}"
        raise Refusal("invalid", said, field="queue")
    if target.path == work.queue:
        return ""
    if not rights.may_move_to(work, target):
        raise Refusal(
            "forbidden",
            f"{work.spec.user} may not submit to {target.path}, and {rights.caller.user} does not administer it; "
            f"ask an administrator of that queue to move work {work.key}",
            field="queue",
        )
    for decision in turn.event(MoveApplication(work.key, target.path, rights.caller.user)):
        if isinstance(decision, MoveRejected):
            return f"work {work.key} stays in {work.queue}: {decision.reason.sentence()}"
    return ""
