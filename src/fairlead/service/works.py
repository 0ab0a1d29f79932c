"""Routes about work: submit, list, show, cancel, change priority, why.

Decides how requests become works and how works are listed. Never decides who may see what (`local.access` does), where
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
from fairlead.local.placing import SUBMIT_DENIED
from fairlead.local.records import WorkSpec, run_key
from fairlead.local.requests import RefusedWork, Submitted
from fairlead.local.whereabouts import where_of
from fairlead.local.work import ON_THE_MACHINE, State, Work
from fairlead.local.works import Works
from fairlead.runtime import Refusal, Turn
from fairlead.service import models, views
from fairlead.service.desk import CallerOf, Desk, DeskOf, plain
from fairlead.service.errors import documented

if TYPE_CHECKING:
    from fairlead.scheduler import Scheduler

router = APIRouter(prefix="/api/v1", tags=["works"])
LIST_AT_MOST = 1000
LIST_USUALLY = 100


@router.post("/works", status_code=201, response_model=models.WorkRows, responses=documented(409, 413, 429))
async def submit(
    body: models.Submission,
    desk: DeskOf,
    caller: CallerOf,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Submit works, all or none. With the header `Idempotency-Key` a repeated request gives the works of the first."""
    caller.require_submit(desk.gate.own_name)
    account = await run_in_threadpool(accounts.by_uid, caller.uid)
    specs = [spec_of(draft, caller, account) for draft in body.works]
    digest = hashlib.blake2b(body.model_dump_json().encode(), digest_size=16).hexdigest() if idempotency_key else ""

    def take_in(turn: Turn) -> Submitted:
        return requests.submit(desk.workplace.works, turn, caller, specs, request=idempotency_key or "", digest=digest)

    submitted = await desk.do(take_in)
    if submitted.refused:
        raise _refusal(submitted.refused)
    rows = await desk.read(lambda scheduler, works: [_row_of(works, scheduler, key) for key in submitted.keys])
    return plain({"works": rows}, 201)


def _refusal(refused: Sequence[RefusedWork]) -> Refusal:
    """What a submission is answered of which some works were refused by the queues: 403 where it is about access."""
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
    said = f"{first.sentence}{more}; nothing was taken in, the refusal is recorded as work {first.key}"
    return Refusal(code, said, field=_field(first), details=details)


_FIELDS = {
    "unknown-priority-class": "priority_class",
    "class-not-allowed": "priority_class",
    "priority-mismatch": "priority",
    "quota-exceeded": "resources",
}
"""What a refusal is about, where that is not the queue."""


def _field(refused: RefusedWork) -> str:
    field = _FIELDS.get(refused.code, "queue")
    return f"works[{refused.index}].{field}" if refused.index is not None else "works"


def spec_of(draft: models.WorkDraft, caller: Caller, account: accounts.Account) -> WorkSpec:
    """What a draft becomes when this caller submits it; the key comes when it is taken in."""
    return WorkSpec(
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


def _row_of(works: Works, scheduler: Scheduler, key: str) -> dict[str, Any]:
    work = works.get(key)
    if work is None:
        raise Refusal("not-found", f"work {key} has left the books; the journal has its story")
    return views.work_row(work, scheduler)


@router.get("/works", response_model=models.WorkPage, responses=documented())
async def list_works(
    desk: DeskOf,
    caller: CallerOf,
    state: Annotated[list[State] | None, Query(description="Only in one of these states.")] = None,
    queue: Annotated[str | None, Query(description="Only in this queue or below it.")] = None,
    user: Annotated[str | None, Query(description="Only of this user.")] = None,
    name: Annotated[str | None, Query(description="Only with this name.")] = None,
    limit: Annotated[int, Query(ge=1, le=LIST_AT_MOST)] = LIST_USUALLY,
    after: Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$", description="Only after this key.")] = None,
) -> Response:
    """The works that the caller may see, in the order of submission, page by page.

    They are his own, those in queues that he administers, and all of them for administrators of the service.
    """
    wanted = frozenset(state or ())

    def passes(work: Work, rights: Rights) -> bool:
        return (
            rights.may_act(work)
            and (not wanted or work.state in wanted)
            and (user is None or work.spec.user == user)
            and (name is None or work.spec.name == name)
            and (queue is None or work.queue == queue or work.queue.startswith(f"{queue}."))
        )

    def ask(scheduler: Scheduler, works: Works) -> dict[str, Any]:
        source = works.live() if wanted and wanted <= {State.WAITING, *ON_THE_MACHINE} else works
        rights = Rights(caller, scheduler)
        found = [work for work in source if passes(work, rights)]
        start = int(after) if after is not None else 0
        page = [work for work in found if int(work.key) > start][: limit + 1]
        more = len(page) > limit
        rows = [views.work_row(work, scheduler) for work in page[:limit]]
        return {"works": rows, "next": rows[-1]["key"] if more else None, "total": len(found)}

    return plain(await desk.read(ask))


@router.get("/works/{key}", response_model=models.WorkFull, responses=documented(404))
async def show(key: str, desk: DeskOf, caller: CallerOf) -> Response:
    """Everything about a piece of work."""
    return plain(await full(desk, caller, key))


async def full(desk: Desk, caller: Caller, key: str) -> dict[str, Any]:
    """Everything about a piece of work, with what the machine knows."""
    shown = await desk.read(lambda s, works: views.work_full(requests.visible(works, Rights(caller, s), key), s))
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


@router.post("/works/{key}/cancel", response_model=models.WorkRow, responses=documented(404, 409))
async def cancel(key: str, desk: DeskOf, caller: CallerOf, body: models.Cancellation | None = None) -> Response:
    """Let a work end: at once while it waits; otherwise it is told to stop, and killed after its grace."""
    state = body.state if body is not None else None
    await desk.do(lambda turn: requests.cancel(desk.workplace.works, turn, caller, key, state))
    return plain(await desk.read(lambda scheduler, works: _row_of(works, scheduler, key)))


@router.post("/works/{key}/checkpoint", response_model=models.Done, responses=documented(404, 409))
async def checkpoint(key: str, desk: DeskOf, caller: CallerOf, body: models.Checkpoint | None = None) -> Response:
    """Say that a running work has saved what it did: what it did before would not be lost if it were stopped now."""
    attempt = body.attempt if body is not None else None
    await desk.do(lambda turn: requests.checkpoint(desk.workplace.works, turn, caller, key, attempt))
    return plain({"ok": True})


@router.post("/works/{key}/reserve", response_model=models.WorkRow, responses=documented(404, 409))
async def reserve(key: str, body: models.ReservationOrder, desk: DeskOf, caller: CallerOf) -> Response:
    """Keep the next room for a work that waits, or no longer: those behind it wait meanwhile. For administrators."""

    def act(turn: Turn) -> None:
        requests.reserve(desk.workplace.works, turn, caller, key, on=body.on, why=body.why)

    await desk.do(act)
    return plain(await desk.read(lambda scheduler, works: _row_of(works, scheduler, key)))


@router.patch("/works/{key}", response_model=models.WorkRow, responses=documented(404, 409))
async def change(key: str, body: models.WorkChange, desk: DeskOf, caller: CallerOf) -> Response:
    """Change the priority of a work that waits, or put a work that waits or runs into another queue, or both."""

    def act(turn: Turn) -> str:
        works, why = desk.workplace.works, body.why
        return requests.change(works, turn, caller, key, priority=body.priority, queue=body.queue, why=why)

    if refused := await desk.do(act):
        raise Refusal("conflict", refused, field="queue")
    return plain(await desk.read(lambda scheduler, works: _row_of(works, scheduler, key)))
