"""Routes for questions: why, what if, when.

Decides who may ask what, and brings each question to a copy of the state. Never keeps the writer waiting: but for the
plain verdict, answers are worked out in processes of their own. Invariant: no question changes anything, and no answer
names work that the asker may not see.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from fairlead.config import ConfigurationError
from fairlead.core.specs import DEFAULT_PARTITION, ClusterSpec
from fairlead.insight import answers, whatif
from fairlead.insight.apart import Asked, NoAnswer, ask_apart
from fairlead.insight.explain import WAYS_BEGIN, Effort, explain
from fairlead.insight.parts import What
from fairlead.insight.trial import Name
from fairlead.insight.whatif import Supposition, suppose
from fairlead.local import accounts, placing, requests
from fairlead.local.access import Rights
from fairlead.local.history_records import JobSpec
from fairlead.local.job import Job, State
from fairlead.runtime import Refusal
from fairlead.service import models, views
from fairlead.service.desk import CallerOf, DeskOf, plain
from fairlead.service.errors import documented
from fairlead.service.forecaster import SPEND_S, ask_forecast, kinds, learned, spending
from fairlead.service.jobs import spec_of
from fairlead.service.queue_texts import usable
from fairlead.service.suppositions import Otherwise, Score, Seconds, Supposed, When

if TYPE_CHECKING:
    from fairlead.core.applications import Application
    from fairlead.local.callers import Caller
    from fairlead.local.jobs import Jobs
    from fairlead.scheduler import Scheduler

T = TypeVar("T")
router = APIRouter(prefix="/api/v1", tags=["questions"])
NEW = "new"
"""What supposed work is called."""
ON_THE_MACHINE = (State.WAITING, State.RUNNING, State.STOPPING)
PATIENCE_S = 60.0
ABOUT_JOB = (What.CANCEL, What.TURN)
"""Changes that are made to other work: they name it."""
CHANGES_S = 10.0
"""Changes are tried for so long."""


@router.get("/jobs/{key}/why", response_model=models.Why, responses=documented(404))
async def explain_job(
    key: str,
    desk: DeskOf,
    caller: CallerOf,
    changes: Annotated[
        bool, Query(description="Also find the smallest changes that would start it; takes up to some seconds.")
    ] = False,
) -> Response:
    """Why a job waits, runs or stopped, with the numbers; what holds what it needs; and what would start it."""

    def ask(scheduler: Scheduler, jobs: Jobs) -> tuple[dict[str, Any], Asked | None]:
        rights = Rights(caller, scheduler)
        job = requests.visible(jobs, rights, key)
        shown = views.job_why(job, scheduler)
        if not _has_verdict(scheduler, job):
            return shown | {"verdict": None}, None
        sees = _sees_application(rights, jobs)

        def question(effort: Effort | None = None) -> dict[str, Any]:
            found = explain(scheduler, key, job.ask_key, changes=effort, visible=sees, fork=True)
            return _without_others(found.as_dict(), rights, jobs)

        if not changes or job.state is not State.WAITING:
            return shown | {"verdict": question()}, None
        until = time.monotonic() + CHANGES_S
        return shown, ask_apart(lambda: question(Effort(is_over=lambda: time.monotonic() > until)), PATIENCE_S)

    async with desk.questions:
        shown, asked = await desk.read(ask)
        if asked is not None:
            shown["verdict"] = await _answer(asked)
    return plain(shown)


def _has_verdict(scheduler: Scheduler, job: Job) -> bool:
    """Whether the scheduler knows it now: it waits, it waits for its back-off to be over, or it runs."""
    partition = scheduler.cluster.partitions.get(DEFAULT_PARTITION)
    app = partition.applications.get(job.key) if partition is not None else None
    ask = app.asks.get(job.ask_key) if app is not None else None
    if partition is not None and partition.retries.get(job.key, job.ask_key) is not None:
        return True
    return job.state in ON_THE_MACHINE and ask is not None and (ask.pending or ask.node is not None)


def _sees_application(rights: Rights, jobs: Jobs) -> Callable[[Application], bool]:
    def sees(app: Application) -> bool:
        job = jobs.get(app.id)
        return job is not None and rights.may_act(job)

    return sees


def _sees(rights: Rights, jobs: Jobs) -> Callable[[Name], bool]:
    def sees(name: Name) -> bool:
        job = jobs.get(name[1])
        return name[1] == NEW or (job is not None and rights.may_act(job))

    return sees


def _without_others(verdict: dict[str, Any], rights: Rights, jobs: Jobs) -> dict[str, Any]:
    """The verdict without changes that name work which the asker may not see."""
    sees = _sees(rights, jobs)
    kept = []
    for change in verdict.get("changes") or ():
        named = [(DEFAULT_PARTITION, each["application"], each["key"]) for each in change["evicts"]]
        named += [
            (DEFAULT_PARTITION, *part["subject"].split("/", 1)) for part in change["parts"] if part["what"] in ABOUT_JOB
        ]
        if all(sees(name) for name in named):
            kept.append(change)
        elif all(part["what"] not in ABOUT_JOB for part in change["parts"]):
            text = change["sentence"].partition("; that would stop")[0]
            stopped = f"{text}; that would stop {len(change['evicts'])} others"
            kept.append(change | {"evicts": [], "sentence": stopped})
    hidden = verdict.get("changes") is not None and kept != verdict["changes"]
    if not hidden:
        return verdict
    details = [line for line in verdict["details"] if not line.startswith(WAYS_BEGIN)]
    if kept:
        details.append(f"It {'; or it '.join(change['sentence'] for change in kept)}.")
    head = verdict["paragraph"].partition(verdict["details"][0])[0] if verdict["details"] else verdict["paragraph"]
    return verdict | {"changes": kept, "details": details, "paragraph": head + " ".join(details)}


@router.post("/whatif", response_model=Otherwise, responses=documented(404, 413))
async def what_if(body: Supposed, desk: DeskOf, caller: CallerOf) -> Response:
    """What would be otherwise if one thing were done now: who starts, who stops, whose start moves, which shares."""
    spec = await run_in_threadpool(_file, body.config) if body.config is not None else None
    draft = None
    if body.submit is not None:
        caller.require_submit(desk.gate.own_name)
        account = await run_in_threadpool(accounts.by_uid, caller.uid)
        draft = spec_of(body.submit, caller, account)

    def ask(scheduler: Scheduler, jobs: Jobs) -> tuple[str, Asked]:
        rights = Rights(caller, scheduler)
        supposed = _supposition(body, scheduler, jobs, caller, draft, spec)
        sees = _sees(rights, jobs)

        def question() -> dict[str, Any]:
            found = suppose(
                scheduler,
                supposed,
                runtimes=learned(jobs) if body.forecast else None,
                kind=kinds(jobs),
                fork=True,
                spending=lambda: spending(body.seconds / 2),
            )
            return answers.difference(found, sees)

        return supposed.sentence, ask_apart(question, PATIENCE_S)

    async with desk.questions:
        sentence, asked = await desk.read(ask)
        return plain({"supposed": sentence} | await _answer(asked))


def _file(text: str) -> ClusterSpec:
    try:
        return usable(text)
    except ConfigurationError as error:
        first = error.errors[0]
        raise Refusal("invalid", f"line {first.line}: {first.path}: {first.message}", field="config") from error


def _supposition(
    body: Supposed,
    scheduler: Scheduler,
    jobs: Jobs,
    caller: Caller,
    draft: JobSpec | None,
    spec: ClusterSpec | None,
) -> Supposition:
    """The change as events. Raises `Refusal` for what the caller may not ask."""
    rights = Rights(caller, scheduler)
    if draft is not None:
        return _submission(scheduler, draft)
    if body.cancel is not None:
        found = [_live(requests.visible(jobs, rights, key)) for key in body.cancel]
        return whatif.cancelled([(DEFAULT_PARTITION, job.key, job.ask_key) for job in found])
    if body.priority is not None:
        job = _live(requests.visible(jobs, rights, body.priority.key))
        name = (DEFAULT_PARTITION, job.key, job.ask_key)
        return whatif.prioritised(name, body.priority.priority, caller.user)
    if body.move is not None:
        job = _live(requests.visible(jobs, rights, body.move.key))
        return _move(scheduler, rights, job, body.move.queue)
    caller.require_admin("ask what a change of the nodes or the queue file would do to everybody's work")
    if spec is not None:
        return whatif.configured(spec)
    known = scheduler.cluster.partitions[DEFAULT_PARTITION].nodes.nodes
    asked_for = body.drain if body.drain is not None else [body.add_nodes.like] if body.add_nodes is not None else []
    for node in asked_for:
        if node not in known:
            raise Refusal("not-found", f"there is no node {node!r}; `fairlead nodes` lists them")
    if body.add_nodes is not None:
        return whatif.nodes_added(scheduler, body.add_nodes.like, body.add_nodes.count)
    return whatif.drained(asked_for)


def _live(job: Job) -> Job:
    if job.ended:
        raise Refusal("conflict", f"job {job.key} has ended already ({job.state}); nothing follows from it now")
    return job


def _submission(scheduler: Scheduler, draft: JobSpec) -> Supposition:
    keyed = JobSpec(**{name: getattr(draft, name) for name in draft.__dataclass_fields__} | {"key": NEW})
    placed = placing.plan(scheduler, [keyed])[0]
    if placed.denial is not None:
        raise Refusal("forbidden" if placed.denial.code == placing.SUBMIT_DENIED else "invalid", placed.denial.sentence)
    return whatif.submitted(placing.application_of(placed.spec), [requests.ask_of(placed.spec)])


def _move(scheduler: Scheduler, rights: Rights, job: Job, queue: str) -> Supposition:
    partition = scheduler.cluster.partitions[DEFAULT_PARTITION]
    path = placing.full_path(partition, queue)
    target = partition.root.find(path)
    if target is None:
        raise Refusal("not-found", f"there is no queue {queue}{placing.suggestions(partition, path)}", field="move")
    if not rights.may_move_to(job, target):
        raise Refusal("forbidden", f"{job.spec.user} may not submit to {target.path}", field="move")
    return whatif.moved((DEFAULT_PARTITION, job.key, job.ask_key), target.path, rights.caller.user)


@router.get("/jobs/{key}/forecast", response_model=When, responses=documented(404, 409))
async def forecast_job(key: str, desk: DeskOf, caller: CallerOf, seconds: Seconds = SPEND_S) -> Response:
    """When a job that waits is expected to start: an interval, and what it rests on.

    Where it takes long to find out, the answer is after which time.
    """

    def ask(scheduler: Scheduler, jobs: Jobs) -> tuple[Name, Asked]:
        job = requests.visible(jobs, Rights(caller, scheduler), key)
        if job.state is not State.WAITING or not _has_verdict(scheduler, job):
            raise Refusal("conflict", f"job {key} is {job.state} and not in line; only what is in line has a forecast")
        name = (DEFAULT_PARTITION, job.key, job.ask_key)
        return name, ask_forecast(scheduler, jobs, [name], seconds)

    async with desk.questions:
        name, asked = await desk.read(ask)
        told = await _answer(asked)
    desk.forecaster.score()
    card = desk.forecaster.card
    expected = card.calibrated(told.made_ms, told.expected(name))
    shown = expected.as_dict() | {"key": key, "made_ms": told.made_ms, "draws": told.draws}
    del shown["partition"], shown["application"]
    return plain(shown | {"assumptions": list(told.assumptions), "score": card.as_dict()})


@router.get("/forecasts/score", response_model=Score, responses=documented())
async def get_forecast_score(desk: DeskOf, caller: CallerOf) -> Response:
    """How often the service's own forecasts came true so far, over restarts."""
    del caller
    desk.forecaster.score()
    return plain(desk.forecaster.card.as_dict())


async def _answer(asked: Asked) -> Any:
    try:
        return await asyncio.to_thread(asked.answer)
    except NoAnswer as problem:
        raise Refusal("unavailable", f"the question could not be answered: {problem}; try again") from problem
