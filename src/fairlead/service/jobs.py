"""Routes about jobs: submit, cancel, change priority or queue.

Decides how requests become jobs. Never decides who may see what (`local.callers` does), where work is placed, nor who
runs. Invariant: an answer to a submission is given once it is durable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated

import msgspec
from fastapi import Header
from starlette.concurrency import run_in_threadpool

from fairlead.core.model.conditions import Awaited, Dependency
from fairlead.core.model.resources import Resources
from fairlead.core.model.specs import RetrySpec
from fairlead.insight.never import never
from fairlead.local import accounts, holding, requests, selection, signals
from fairlead.local.array_changes import change_whole
from fairlead.local.callers import Caller, Rights
from fairlead.local.changes import Change, change, suspend
from fairlead.local.history_records import ArraySpec, JobSpec, where_of
from fairlead.local.job_bounds import UNSTATED
from fairlead.local.job_states import State
from fairlead.local.jobs import Jobs
from fairlead.local.notices import Notice
from fairlead.local.placing import SUBMIT_DENIED
from fairlead.local.requests import RefusedJob
from fairlead.local.streams import NONE, Streams
from fairlead.runtime import Refusal, Turn
from fairlead.scheduler import Scheduler
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import api
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.orders import A_TURN, order_each, row_of, submit_some_a_turn
from fairlead.service.place import CallerOf
from fairlead.wire import arrays, orders
from fairlead.wire import jobs as wire
from fairlead.wire.fields import with_vcore
from fairlead.wire.notices import kind_of

router = api("jobs")
MOST_AWAITED = 1000
"""Other jobs that one may wait for."""
MOST_AWAITED_IN_ALL = 100_000
"""By all jobs of one request: a short text names many parts of an array."""


@router.post("/jobs", status_code=201, responses=documented(409, 413, 429, 507))
async def submit_jobs(
    body: wire.Submission,
    place: MachineOf,
    caller: CallerOf,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> wire.JobList | bytes:
    """Submit jobs, all or none. With the header `Idempotency-Key` a repeated request gives the jobs of the first."""
    place.require_room(caller)

    def prepare() -> requests.Intake:
        _require_kinds(place, [[each.to for each in draft.notify] for draft in body.jobs])
        home = accounts.by_uid(caller.uid).home
        specs, awaited = [], 0
        for index, draft in enumerate(body.jobs):
            try:
                specs.append(spec_of(draft, caller, home))
            except Refusal as refused:
                refused.field = f"jobs[{index}].{refused.field}"
                raise
            awaited += len(specs[-1].after)
            if awaited > MOST_AWAITED_IN_ALL:
                said = f"the jobs of one request wait for at most {MOST_AWAITED_IN_ALL} others; send several requests"
                raise Refusal("invalid", said, field="jobs")
        digest = hashlib.blake2b(msgspec.json.encode(body), digest_size=16).hexdigest() if idempotency_key else ""
        body.jobs.clear()  # Or the loop would clear thousands of them away in one piece.
        return requests.Intake(caller, specs, idempotency_key or "", digest, place.users)

    if len(keys := await _taken_in(place, await run_in_threadpool(prepare))) <= A_TURN:
        return wire.JobList(jobs=await _submitted_jobs(place, keys))
    # Some at a time, as they were entered: others have their turns meanwhile.
    turns = [keys[begin : begin + A_TURN] for begin in range(0, len(keys), A_TURN)]
    parts = [msgspec.json.encode(await _submitted_jobs(place, turn))[1:-1] for turn in turns]
    return b'{"jobs":[' + b",".join(parts) + b"]}"


def _require_kinds(place: MachinePlace, targets: Sequence[Sequence[str]]) -> None:
    """Raises `Refusal` for a message of a kind that the administrator has turned off; `targets`: those of each job."""
    for index, mine in enumerate(targets):
        for number, to in enumerate(mine):
            if (kind := kind_of(to)) not in place.notify:
                left = f"there are {', '.join(sorted(place.notify))}" if place.notify else "there are none"
                said = f"the administrator of this machine has turned off messages by {kind}; {left}"
                raise Refusal("forbidden", said, field=f"jobs[{index}].notify[{number}].to")


async def _taken_in(place: MachinePlace, intake: requests.Intake) -> Sequence[str]:
    """Enter a submission, some jobs a turn; the keys of its jobs."""
    submitted = await submit_some_a_turn(place, intake)
    if submitted.refused:
        raise _refusal(submitted.refused)
    return submitted.keys


async def _submitted_jobs(place: MachinePlace, keys: Sequence[str]) -> list[wire.SubmittedJob]:
    """What is told of these jobs."""
    found: list[wire.SubmittedJob] = await place.look(
        lambda scheduler, jobs: [_submitted(jobs, scheduler, key) for key in keys]
    )
    return found


def _submitted(jobs: Jobs, scheduler: Scheduler, key: str) -> wire.SubmittedJob:
    """A job as it is told to whom submitted or changed it; of an array the first part that waits says if it can run."""
    row = row_of(jobs, scheduler, key)
    first = next((job for job in jobs.of(key) if job.state is State.WAITING), None)
    why = never(scheduler, first.application, first.ask_key) if first is not None else None
    return wire.SubmittedJob(**msgspec.structs.asdict(row), never=why)


def _refusal(refused: Sequence[RefusedJob]) -> Refusal:
    """What a submission is answered of which some jobs were refused by the queues: 403 where it is about access."""
    details = [
        {"field": _field(e), "code": e.code, "message": e.sentence, "queue": e.queue or None, "key": e.key}
        for e in refused
    ]
    first = refused[0]
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    code = "forbidden" if first.code == SUBMIT_DENIED else "invalid"
    said = f"{first.sentence}{more}; nothing was taken in, the refusal is recorded as job {first.key}"
    return Refusal(code, said, field=_field(first), details=details)


_FIELDS = {
    "unknown-priority-class": "priority_class",
    "class-not-allowed": "priority_class",
    "priority-mismatch": "priority",
    "quota-exceeded": "resources",
    "class-of-the-system": "priority_class",
    "time-limit-above-max": "time_limit_ms",
    "memory-above-max": "resources.memory",
    "priority-above-max": "priority",
    "grace-above-max": "grace_ms",
    "retries-above-max": "retry.limit",
}
"""What a refusal is about, where that is not the queue."""


def _field(refused: RefusedJob) -> str:
    field = _FIELDS.get(refused.code, "queue")
    return f"jobs[{refused.index}].{field}" if refused.index is not None else "jobs"


def spec_of(draft: wire.JobDraft, caller: Caller, home: str) -> JobSpec:
    """What a draft becomes when this caller submits it; the key comes when it is taken in."""
    known = JobSpec.__dataclass_fields__
    as_they_are = {name: getattr(draft, name) for name in draft.__struct_fields__ if name in known}
    return JobSpec(
        **as_they_are
        | {
            "key": "",
            "user": caller.user,
            "uid": caller.uid,
            "groups": caller.groups,
            "command": tuple(draft.command),
            "resources": Resources({"vcore": UNSTATED, **with_vcore(draft.resources or {})}),
            "cwd": draft.cwd if draft.cwd is not None else home,
            "where": where_of(draft.node_selector, draft.ports, draft.beside, draft.apart_from),
            "retry": _retry(draft.retry),
            "begin_ms": draft.begin_at_ms,
            "after": dependencies_of(draft.after),
            "cancel_never": draft.on_never == "cancel",
            "array": _array(draft.array),
            "streams": _streams(draft),
            "notify": tuple(Notice(to=each.to, on=tuple(dict.fromkeys(each.on))) for each in draft.notify),
            "is_script": bool(draft.script),
        }
    )


def _array(text: str) -> ArraySpec | None:
    if not text:
        return None
    return ArraySpec(indices=text.partition("%")[0].strip(), at_once=arrays.at_once(text))


def _streams(draft: wire.JobDraft) -> Streams | None:
    append, umask = draft.open_mode == "append", int(draft.umask, 8)
    found = Streams(stdin=draft.stdin, stdout=draft.stdout, stderr=draft.stderr, append=append, umask=umask)
    return found if found != NONE else None


def dependencies_of(drafts: Sequence[wire.Dependency]) -> tuple[Dependency, ...]:
    """What is waited for of others, each thing once; several parts of an array are so many things. Raises `Refusal`."""
    found: list[Dependency] = []
    for each in drafts:
        keys = _single(each.key)
        if len(found) + len(keys) > MOST_AWAITED:
            many = f"a job waits for at most {MOST_AWAITED} others, not {len(found) + len(keys)}"
            raise Refusal("invalid", f"{many}; wait for a whole array", field="after")
        found += [Dependency(application=key, awaited=Awaited(each.awaited)) for key in keys]
    return tuple(dict.fromkeys(found))


def _single(key: str) -> list[str]:
    """The key of each part that this one names; another key is itself."""
    name, indices = arrays.split(key)
    if not indices or indices == arrays.SAME_INDEX:
        return [key]
    try:
        return [f"{name}.{index}" for index in arrays.parse_indices(indices)]
    except ValueError as problem:
        raise Refusal("invalid", f"{key}: {problem}", field="after") from None


def _retry(draft: wire.RetryDraft | None) -> RetrySpec | None:
    if draft is None:
        return None
    return RetrySpec(limit=draft.limit, backoff_ms=draft.backoff_ms, never_on=tuple(sorted(set(draft.never_on))))


@router.post("/jobs/{key}/cancel", responses=documented(404, 409))
async def cancel_job(key: str, place: MachineOf, caller: CallerOf, body: orders.Cancellation | None = None) -> wire.Job:
    """Let a job end: at once while it waits; otherwise it is told to stop, and killed after its grace, or `now`."""
    what = body or orders.Cancellation()

    def act(turn: Turn, one: str) -> None:
        requests.cancel(place.local.jobs, turn, caller, one, what.states, now=what.now)

    return await order_each(place, caller, key, act, last_first=True)


@router.get("/jobs/{key}/script", responses=documented(404, 409))
async def get_job_script(key: str, place: MachineOf, caller: CallerOf) -> wire.ScriptText:
    """The script of a job, as it was submitted; it is kept as long as the job lives."""

    def found(scheduler: Scheduler, jobs: Jobs) -> wire.ScriptText:
        job = selection.meant(jobs, Rights(caller, scheduler), key)[0]
        if not job.spec.is_script:
            raise Refusal("conflict", f"job {key} runs a command, no script; `fairlead show {key}` has it")
        if not job.spec.script:
            raise Refusal("conflict", f"the script of job {key} was forgotten when it ended")
        return wire.ScriptText(script=job.spec.script)

    return await place.look(found)


@router.post("/jobs/{key}/checkpoint", responses=documented(404, 409))
async def checkpoint_job(
    key: str, place: MachineOf, caller: CallerOf, body: orders.Checkpoint | None = None
) -> wire.Done:
    """Say that a running job has saved what it did: what it did before would not be lost if it were stopped now."""
    attempt = body.attempt if body is not None else None
    await place.do(lambda turn: requests.checkpoint(place.local.jobs, turn, caller, key, attempt))
    return wire.Done(ok=True)


@router.post("/jobs/{key}/suspend", responses=documented(404, 409))
async def suspend_job(key: str, place: MachineOf, caller: CallerOf, body: orders.HoldOrder | None = None) -> wire.Job:
    """Let a job that runs stand still until it is resumed. It keeps its room; its time limit stands still too."""
    return await _switch(place, caller, key, body, on=True)


@router.post("/jobs/{key}/resume", responses=documented(404, 409))
async def resume_job(key: str, place: MachineOf, caller: CallerOf, body: orders.HoldOrder | None = None) -> wire.Job:
    """Let a job that is suspended go on. Who suspended it may, its owner, and an administrator of its queue."""
    return await _switch(place, caller, key, body, on=False)


async def _switch(
    place: MachinePlace, caller: Caller, key: str, body: orders.HoldOrder | None, *, on: bool
) -> wire.Job:
    why = body.why if body is not None else ""

    def act(turn: Turn, one: str) -> None:
        suspend(place.local.jobs, turn, caller, one, on=on, why=why)

    return await order_each(place, caller, key, act)


@router.post("/jobs/{key}/signal", responses=documented(404, 409))
async def signal_job(key: str, place: MachineOf, caller: CallerOf, body: orders.SignalOrder) -> wire.Job:
    """Send the processes of a job that runs a signal. What becomes of it then is up to them."""
    runs: dict[str, None] = {}

    def act(turn: Turn, one: str) -> None:
        runs[signals.signal(place.local.jobs, turn, caller, one, body.number, first=body.first)] = None

    shown = await order_each(place, caller, key, act)
    for run in runs:
        await run_in_threadpool(place.machine.signal, run, body.number, first=body.first)
    return shown


@router.post("/jobs/{key}/requeue", responses=documented(404, 409))
async def requeue_job(
    key: str, place: MachineOf, caller: CallerOf, body: orders.RequeueOrder | None = None
) -> wire.Job:
    """Stop a job that runs, and let it wait again, at once or on hold; that counts for no retry."""
    order = body or orders.RequeueOrder()

    def act(turn: Turn, one: str) -> None:
        part = place.local.jobs.get(one) if one != key else None
        if order.hold and part is not None and part.state is State.WAITING:  # All that is meant waits on hold then.
            holding.hold(place.local.jobs, turn, caller, one, order.why)
            return
        requests.requeue(place.local.jobs, turn, caller, one, hold=order.hold, why=order.why)

    return await order_each(place, caller, key, act, last_first=True)


@router.post("/jobs/{key}/rerun", status_code=201, responses=documented(404, 409, 429, 507))
async def rerun_job(
    key: str, place: MachineOf, caller: CallerOf, body: orders.Rerun | None = None
) -> wire.SubmittedJob:
    """Submit a job that has ended once more, as a new one that waits for nothing but room."""
    place.require_room(caller)
    given = body or orders.Rerun()

    def prepare(turn: Turn) -> requests.Intake:
        jobs = place.local.jobs
        again = requests.rerun(
            jobs, turn, caller, key, given.env, script=given.script, failed=given.failed, hold=given.hold
        )
        again.limits = place.users
        _require_kinds(place, [[each.to for each in spec.notify] for spec in again.specs])
        return again

    intake = await place.do(prepare)
    keys = await _taken_in(place, intake)
    return (await _submitted_jobs(place, keys[:1]))[0]


@router.post("/jobs/{key}/hold", responses=documented(404, 409))
async def hold_job(key: str, place: MachineOf, caller: CallerOf, body: orders.HoldOrder | None = None) -> wire.Job:
    """Keep a job that waits from starting until it is released; it gives up what was kept for it."""
    why = body.why if body is not None else ""

    def act(turn: Turn, one: str) -> None:
        holding.hold(place.local.jobs, turn, caller, one, why)

    return await order_each(place, caller, key, act, last_first=True)


@router.post("/jobs/{key}/release", responses=documented(404, 409))
async def release_job(key: str, place: MachineOf, caller: CallerOf, body: orders.HoldOrder | None = None) -> wire.Job:
    """Let a job that is on hold start as soon as it can. Who put it there may, and an administrator of its queue."""
    why = body.why if body is not None else ""

    def act(turn: Turn, one: str) -> None:
        holding.release(place.local.jobs, turn, caller, one, why)

    return await order_each(place, caller, key, act)


@router.post("/jobs/{key}/reserve", responses=documented(404, 409))
async def reserve_for_job(key: str, body: orders.ReservationOrder, place: MachineOf, caller: CallerOf) -> wire.Job:
    """Keep the next room for a job that waits, or no longer: those behind it wait meanwhile. For administrators."""

    def act(turn: Turn, one: str) -> None:
        requests.reserve(place.local.jobs, turn, caller, one, on=body.on, why=body.why)

    return await order_each(place, caller, key, act)


@router.patch("/jobs/{key}", responses=documented(404, 409, 429))
async def change_job(key: str, body: orders.JobChange, place: MachineOf, caller: CallerOf) -> wire.SubmittedJob:
    """Change a job: all of it while it waits; name, queue and time limit also while it runs."""
    wanted = Change(
        priority=body.priority,
        queue=body.queue,
        name=body.name,
        resources=None if body.resources is None else with_vcore(body.resources),
        time_limit_ms=body.time_limit_ms,
        begin_ms=body.begin_at_ms,
        after=None if body.after is None else dependencies_of(body.after),
        cancel_never=None if body.on_never is None else body.on_never == "cancel",
        command=None if body.command is None else tuple(body.command),
        cwd=body.cwd,
        env=body.env,
        unset_env=tuple(body.unset_env or ()),
        tags=body.tags,
        at_once=body.at_once,
    )
    left, refused = await place.do(lambda turn: change_whole(place.local.jobs, turn, caller, key, wanted, body.why))
    if refused:
        raise Refusal("conflict", refused, field="queue")
    if left == Change():
        return (await _submitted_jobs(place, [key]))[0]
    more = sum(len(name) + len(value) for name, value in (left.env or {}).items())

    def act(turn: Turn, one: str) -> str:
        jobs = place.local.jobs
        place.users.environment(caller, jobs.taken(caller.uid), more)
        return change(jobs, turn, caller, one, left, body.why)

    await order_each(place, caller, key, act)
    return (await _submitted_jobs(place, [key]))[0]
