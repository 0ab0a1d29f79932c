"""Routes for questions about jobs: list, show, why, what if, when.

Decides how a question becomes one about the books, and what it asks a copy of them. Never keeps the writer waiting: but
for lists and the plain verdict, answers are worked out in processes of their own. Invariant: no question changes
anything, and no answer names a job that the asker may not see.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query
from msgspec.structs import asdict, replace
from starlette.concurrency import run_in_threadpool

from fairlead.core.model.conditions import NeverRuns, OnHold
from fairlead.core.model.specs import ClusterSpec
from fairlead.insight import suppositions
from fairlead.insight.advice import Asker
from fairlead.insight.by_job import by_job
from fairlead.insight.explain import explain
from fairlead.insight.forecast import Forecast, kind_of, unknown
from fairlead.insight.search import Effort
from fairlead.insight.suppositions import Supposition
from fairlead.insight.trial import Name
from fairlead.insight.whatif import NAMED, suppose
from fairlead.local.callers import Rights
from fairlead.runtime import Refusal
from fairlead.service.configfile import taken
from fairlead.service.forecaster import played, spending
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import Pages, api, pages
from fairlead.service.place import CallerOf, JobFilter, Moment, Place, PlaceOf
from fairlead.wire import questions as wire
from fairlead.wire import verdicts
from fairlead.wire.jobs import JobDetails, JobPage, JobState

router = api("jobs")
CHANGES_S = 10.0
"""Changes are tried for so long."""
Seconds = Annotated[
    float, Query(gt=0, le=wire.SPEND_MAX_S, description="Play futures for so long; what is not seen is told as later.")
]
MOST_VALUES = 100
"""Of a filter of jobs: each is compared with each job."""


@router.get("/jobs", responses=documented(404))
async def list_jobs(
    place: PlaceOf,
    caller: CallerOf,
    page: Annotated[Pages, pages(100)],
    state: Annotated[
        list[JobState] | None, Query(max_length=MOST_VALUES, description="Only in one of these states.")
    ] = None,
    queue: Annotated[
        list[str] | None, Query(max_length=MOST_VALUES, description="Only in this queue or below it.")
    ] = None,
    user: Annotated[list[str] | None, Query(max_length=MOST_VALUES, description="Only of this user.")] = None,
    name: Annotated[
        list[str] | None,
        Query(max_length=MOST_VALUES, description="Only with this name; on a cluster, of this application."),
    ] = None,
    tag: Annotated[
        list[str] | None, Query(max_length=MOST_VALUES, description="Only with this tag: NAME=VALUE, or NAME.")
    ] = None,
    namespace: Annotated[str | None, Query(description="On a cluster: only pods of this namespace.")] = None,
    array: Annotated[str | None, Query(description="Only parts of an array: `12`, or `12.5-9`.")] = None,
    parts: Annotated[bool, Query(description="The parts of arrays in their place.")] = False,
    newest: Annotated[bool, Query(description="What was submitted last comes first.")] = False,
) -> JobPage | bytes:
    """The jobs that the caller may see, in the order of submission, page by page; an array as one; on a cluster the
    pods.

    They are the caller's own, those in queues that the caller administers, and all of them for administrators. A
    filter may be given several times: then one of them is enough, but of tags with other names each has to be there.
    In all but the state `*` stands for any text, and `?` for any character.
    """
    queues, users, names, tags = (tuple(each or ()) for each in (queue, user, name, tag))
    wanted = JobFilter(frozenset(state or ()), queues, users, names, tags, namespace, array, parts)

    def ask(moment: Moment) -> JobPage:
        return page.of(JobPage, moment.found(wanted), moment.order, moment.row, backwards=newest)

    return await place.shown(ask, caller)


@router.get("/jobs/{key}", responses=documented(404))
async def get_job(key: str, place: PlaceOf, caller: CallerOf) -> JobDetails:
    """Everything about a job."""
    return await place.details(key, caller)


# -- why ------------------------------------------------------------------------------------------------------------


@router.get("/jobs/{key}/why", responses=documented(404))
async def explain_job(
    key: str,
    place: PlaceOf,
    caller: CallerOf,
    changes: Annotated[bool, Query(description="Also find what would start it, and what to do.")] = False,
    seconds: Annotated[
        float, Query(gt=0, le=wire.SPEND_MAX_S, description="With `changes`: look for so long.")
    ] = CHANGES_S,
) -> verdicts.Why | bytes:
    """Why a job waits, runs or stopped, with the numbers; what holds what it needs; and what would start it."""

    def question(moment: Moment) -> verdicts.Why:
        shown = moment.why(key)
        if not moment.knows(key):
            return shown
        partition, application, ask_key = moment.name(key)
        until = time.monotonic() + seconds
        effort = Effort(is_over=lambda: time.monotonic() > until) if changes else None
        found = explain(
            moment.scheduler,
            application,
            ask_key,
            partition,
            changes=effort,
            asker=_asker(moment, key, place),
            sees=moment.sees,
            fork=True,
        )
        return replace(shown, verdict=by_job(found))

    if changes:
        return await place.apart(lambda moment: lambda: question(moment), caller)
    return await place.shown(question, caller)


def _asker(moment: Moment, key: str, place: Place) -> Asker:
    """What the caller may do about this job."""

    def may_move(queue: str) -> bool:
        try:
            moment.target(key, queue)
        except Refusal:
            return False
        return True

    rights = Rights(moment.caller, moment.scheduler)
    of_place = place.nodes_may_join, place.has_pods
    return Asker(moment.sees, may_move, rights.administers, moment.caller.is_admin, *of_place)


# -- what if --------------------------------------------------------------------------------------------------------


@router.post("/whatif", responses=documented(404, 413))
async def what_if(body: wire.Supposed, place: PlaceOf, caller: CallerOf) -> wire.Otherwise:
    """What would be otherwise if one thing were done now: who starts, who stops, whose start moves, which shares."""
    spec = await run_in_threadpool(taken, body.config, "config") if body.config is not None else None

    def ask(moment: Moment) -> Callable[[], tuple[wire.Otherwise, tuple[Name, ...], Forecast | None]]:
        supposed, scheduler = _supposition(body, moment, spec), moment.scheduler
        begins = body.submit is not None and body.forecast
        seconds = body.seconds / (3 if begins else 2)

        def question() -> tuple[wire.Otherwise, tuple[Name, ...], Forecast | None]:
            runtimes, kind = moment.future() if body.forecast else (None, kind_of)
            answer = suppose(
                scheduler,
                supposed,
                sees=lambda app: app == wire.DRAFT or moment.sees(app),
                runtimes=runtimes,
                kind=kind,
                fork=True,
                spending=lambda: spending(seconds),
            )
            started = {job.key for job in answer.starts.jobs}
            new = tuple(name for name in supposed.subjects if name[2] not in started)
            if not begins or answer.refused or not new:
                return answer, (), None
            future, arrivals = moment.future(), moment.arrivals()
            told = played(scheduler, future, moment.partition, new, seconds, arrivals, supposed.events)
            return answer, new[:NAMED], told

        return question

    answer, new, told = await place.apart(ask, caller)
    answer = by_job(answer)
    if told is None:
        return answer
    begins = [wire.Begin(**interval(place, told, name), key=by_job(name[2]), draws=told.draws) for name in new]
    return replace(answer, begins=begins)


def interval(place: Place, told: Forecast, name: Name) -> dict[str, Any]:
    """When it is expected to start, as `wire.Interval` has it: put right by what came true so far."""
    plain = told.expected(name)
    is_known = told.ends or place.card().scored or plain.median_ms is None
    expected = place.expect(told.made_ms, plain) if is_known else unknown(told, name)
    return {field: value for field, value in asdict(expected).items() if field in wire.Interval.__struct_fields__}


def _supposition(body: wire.Supposed, moment: Moment, spec: ClusterSpec | None) -> Supposition:
    """The change as events. Raises `Refusal` for what the caller may not ask."""
    if body.submit is not None:
        return moment.submission(body.submit)
    kind, said = suppositions.kind_of(body)
    if kind.for_administrators:
        moment.caller.require_admin("ask what a change of the nodes or the queue file would do to everybody's work")
    return kind.supposed(said, _here(moment, spec))


def _here(moment: Moment, spec: ClusterSpec | None) -> suppositions.Place:
    """What the words of a question mean at this moment to one caller; `spec`: its queue file, read already."""

    def node(name: str) -> str:
        if name not in moment.scheduler.cluster.partitions[moment.partition].nodes.nodes:
            raise Refusal("not-found", f"there is no node {name!r}; `fairlead nodes` lists them")
        return moment.partition

    def file(_: str) -> ClusterSpec:
        assert spec is not None
        return spec

    def queue(name: Name, queue: str) -> str:
        return moment.target(name[1], queue)

    return suppositions.Place(moment.scheduler, moment.name, node, file, queue, moment.caller.user)


# -- when -----------------------------------------------------------------------------------------------------------


@router.get("/jobs/{key}/forecast", responses=documented(404, 409))
async def forecast_job(key: str, place: PlaceOf, caller: CallerOf, seconds: Seconds = wire.SPEND_S) -> wire.When:
    """When a job that waits is expected to start: an interval, and what it rests on.

    Where it takes long to find out, the answer is after which time.
    """

    def ask(moment: Moment) -> Callable[[], tuple[str, Name, Forecast]]:
        one = moment.last_waiting(key)
        shown = moment.why(one)
        if shown.state != "waiting" or not moment.knows(one):
            said = f"job {shown.key} is {shown.state} and not in line; only what is in line has a forecast"
            raise Refusal("conflict", said)
        if shown.reason is not None and shown.reason.code in (OnHold.code, NeverRuns.code):
            raise Refusal("conflict", f"nobody can say when job {shown.key} starts: it {shown.reason.sentence}")
        name, scheduler = moment.name(one), moment.scheduler

        def question() -> tuple[str, Name, Forecast]:
            arrivals = moment.arrivals()
            return shown.key, name, played(scheduler, moment.future(), moment.partition, [name], seconds, arrivals)

        return question

    shown_key, name, told = await place.apart(ask, caller)
    return wire.When(
        **interval(place, told, name),
        key=shown_key,
        made_ms=told.made_ms,
        draws=told.draws,
        assumptions=list(told.assumptions),
        score=place.card().score(),
    )


@router.get("/forecasts/score")
async def get_forecast_score(place: PlaceOf) -> wire.Score:
    """How often the service's own forecasts came true so far."""
    return place.card().score()
