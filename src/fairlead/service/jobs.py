"""Routes about jobs: submit, list, show, cancel, change priority, why.

Decides how requests become jobs and how jobs are listed. Never decides who may see what (`local.access` does), where
work is placed, nor who runs. Invariant: an answer to a submission is given once it is durable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from starlette.concurrency import run_in_threadpool

from fairlead.core.resources import Resources
from fairlead.core.specs import RetrySpec
from fairlead.local import accounts, requests
from fairlead.local.access import Rights
from fairlead.local.callers import Caller
from fairlead.local.history_records import JobSpec, run_key
from fairlead.local.job import ON_THE_MACHINE, Job, State
from fairlead.local.jobs import Jobs
from fairlead.local.placing import SUBMIT_DENIED
from fairlead.local.requests import RefusedJob, Submitted
from fairlead.local.whereabouts import where_of
from fairlead.runtime import Refusal, Turn
from fairlead.service import models, views
from fairlead.service.desk import CallerOf, Desk, DeskOf, plain
from fairlead.service.errors import documented

if TYPE_CHECKING:
    from fairlead.scheduler import Scheduler

router = APIRouter(prefix="/api/v1", tags=["jobs"])
LIST_AT_MOST = 1000
LIST_USUALLY = 100


@router.post("/jobs", status_code=201, response_model=models.JobRows, responses=documented(409, 413, 429))
async def submit_jobs(
    body: models.Submission,
    desk: DeskOf,
    caller: CallerOf,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Submit jobs, all or none. With the header `Idempotency-Key` a repeated request gives the jobs of the first."""
    caller.require_submit(desk.gate.own_name)
    account = await run_in_threadpool(accounts.by_uid, caller.uid)
    specs = [spec_of(draft, caller, account) for draft in body.jobs]
    digest = hashlib.blake2b(body.model_dump_json().encode(), digest_size=16).hexdigest() if idempotency_key else ""

    def take_in(turn: Turn) -> Submitted:
        return requests.submit(desk.place.jobs, turn, caller, specs, request=idempotency_key or "", digest=digest)

    submitted = await desk.do(take_in)
    if submitted.refused:
        raise _refusal(submitted.refused)
    rows = await desk.read(lambda scheduler, jobs: [_row_of(jobs, scheduler, key) for key in submitted.keys])
    return plain({"jobs": rows}, 201)


def _refusal(refused: Sequence[RefusedJob]) -> Refusal:
    """What a submission is answered of which some jobs were refused by the queues: 403 where it is about access."""
    details = [
        {
            "field": _field(each),
            "code": each.code,
            "message": each.sentence,
            "queue": each.queue or None,
            "key": each.key,
        }
        for each in refused
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
}
"""What a refusal is about, where that is not the queue."""


def _field(refused: RefusedJob) -> str:
    field = _FIELDS.get(refused.code, "queue")
    return f"jobs[{refused.index}].{field}" if refused.index is not None else "jobs"


def spec_of(draft: models.JobDraft, caller: Caller, account: accounts.Account) -> JobSpec:
    """What a draft becomes when this caller submits it; the key comes when it is taken in."""
    return JobSpec(
        key="",
        user=caller.user,
        uid=caller.uid,
        groups=account.groups,
        command=tuple(draft.command),
        queue=draft.queue,
        resources=Resources(draft.resources),
        priority=draft.priority,
        env=draft.env,
        cwd=draft.cwd if draft.cwd is not None else account.home,
        grace_ms=draft.grace_ms,
        time_limit_ms=draft.time_limit_ms,
        name=draft.name,
        tags=draft.tags,
        labels=draft.labels,
        where=where_of(draft.node_selector, draft.ports, draft.beside, draft.apart_from),
        retry=_retry(draft.retry),
        idle=draft.idle,
        priority_class=draft.priority_class,
    )


def _retry(draft: models.RetryDraft | None) -> RetrySpec | None:
    if draft is None:
        return None
    return RetrySpec(limit=draft.limit, backoff_ms=draft.backoff_ms, never_on=tuple(sorted(set(draft.never_on))))


def _row_of(jobs: Jobs, scheduler: Scheduler, key: str) -> dict[str, Any]:
    job = jobs.get(key)
    if job is None:
        raise Refusal("not-found", f"job {key} has left the books; the journal has its story")
    return views.job_row(job, scheduler)


@router.get("/jobs", response_model=models.JobPage, responses=documented())
async def list_jobs(
    desk: DeskOf,
    caller: CallerOf,
    state: Annotated[list[State] | None, Query(description="Only in one of these states.")] = None,
    queue: Annotated[str | None, Query(description="Only in this queue or below it.")] = None,
    user: Annotated[str | None, Query(description="Only of this user.")] = None,
    name: Annotated[str | None, Query(description="Only with this name.")] = None,
    limit: Annotated[int, Query(ge=1, le=LIST_AT_MOST)] = LIST_USUALLY,
    after: Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$", description="Only after this key.")] = None,
) -> Response:
    """The jobs that the caller may see, in the order of submission, page by page.

    They are his own, those in queues that he administers, and all of them for administrators of the service.
    """
    wanted = frozenset(state or ())

    def passes(job: Job, rights: Rights) -> bool:
        return (
            rights.may_act(job)
            and (not wanted or job.state in wanted)
            and (user is None or job.spec.user == user)
            and (name is None or job.spec.name == name)
            and (queue is None or job.queue == queue or job.queue.startswith(f"{queue}."))
        )

    def ask(scheduler: Scheduler, jobs: Jobs) -> dict[str, Any]:
        source = jobs.live() if wanted and wanted <= {State.WAITING, *ON_THE_MACHINE} else jobs
        rights = Rights(caller, scheduler)
        found = [job for job in source if passes(job, rights)]
        start = int(after) if after is not None else 0
        page = [job for job in found if int(job.key) > start][: limit + 1]
        more = len(page) > limit
        rows = [views.job_row(job, scheduler) for job in page[:limit]]
        return {"jobs": rows, "next": rows[-1]["key"] if more else None, "total": len(found)}

    return plain(await desk.read(ask))


@router.get("/jobs/{key}", response_model=models.JobFull, responses=documented(404))
async def get_job(key: str, desk: DeskOf, caller: CallerOf) -> Response:
    """Everything about a job."""
    return plain(await full(desk, caller, key))


async def full(desk: Desk, caller: Caller, key: str) -> dict[str, Any]:
    """Everything about a job, with what the machine knows."""
    shown = await desk.read(lambda s, jobs: views.job_full(requests.visible(jobs, Rights(caller, s), key), s))
    running = shown["state"] in {s.value for s in ON_THE_MACHINE}
    shown |= await run_in_threadpool(_of_the_machine, desk, key, shown["attempts"], running)
    return shown


def _of_the_machine(desk: Desk, key: str, attempt: int, running: bool) -> dict[str, Any]:
    """Where its output is, what is enforced, and what it uses now."""
    known: dict[str, Any] = {"stdout": None, "stderr": None}
    if attempt:
        run = run_key(key, attempt)
        known = {"stdout": str(desk.machine.stdout_path(run)), "stderr": str(desk.machine.stderr_path(run))}
        if running and (usage := desk.machine.usage(run)) is not None:
            known |= {"cpu_ms": usage.cpu_ms, "memory_bytes": usage.memory_bytes}
    known["enforcement"] = [{"name": c.name, "enforced": c.enforced, "how": c.how} for c in desk.capabilities]
    return known


@router.post("/jobs/{key}/cancel", response_model=models.JobRow, responses=documented(404, 409))
async def cancel_job(key: str, desk: DeskOf, caller: CallerOf, body: models.Cancellation | None = None) -> Response:
    """Let a job end: at once while it waits; otherwise it is told to stop, and killed after its grace."""
    state = body.state if body is not None else None
    await desk.do(lambda turn: requests.cancel(desk.place.jobs, turn, caller, key, state))
    return plain(await desk.read(lambda scheduler, jobs: _row_of(jobs, scheduler, key)))


@router.post("/jobs/{key}/checkpoint", response_model=models.Done, responses=documented(404, 409))
async def checkpoint_job(key: str, desk: DeskOf, caller: CallerOf, body: models.Checkpoint | None = None) -> Response:
    """Say that a running job has saved what it did: what it did before would not be lost if it were stopped now."""
    attempt = body.attempt if body is not None else None
    await desk.do(lambda turn: requests.checkpoint(desk.place.jobs, turn, caller, key, attempt))
    return plain({"ok": True})


@router.post("/jobs/{key}/reserve", response_model=models.JobRow, responses=documented(404, 409))
async def reserve_for_job(key: str, body: models.ReservationOrder, desk: DeskOf, caller: CallerOf) -> Response:
    """Keep the next room for a job that waits, or no longer: those behind it wait meanwhile. For administrators."""

    def act(turn: Turn) -> None:
        requests.reserve(desk.place.jobs, turn, caller, key, on=body.on, why=body.why)

    await desk.do(act)
    return plain(await desk.read(lambda scheduler, jobs: _row_of(jobs, scheduler, key)))


@router.patch("/jobs/{key}", response_model=models.JobRow, responses=documented(404, 409))
async def change_job(key: str, body: models.JobChange, desk: DeskOf, caller: CallerOf) -> Response:
    """Change the priority of a job that waits, or put a job that waits or runs into another queue, or both."""

    def act(turn: Turn) -> str:
        jobs, why = desk.place.jobs, body.why
        return requests.change(jobs, turn, caller, key, priority=body.priority, queue=body.queue, why=why)

    if refused := await desk.do(act):
        raise Refusal("conflict", refused, field="queue")
    return plain(await desk.read(lambda scheduler, jobs: _row_of(jobs, scheduler, key)))
