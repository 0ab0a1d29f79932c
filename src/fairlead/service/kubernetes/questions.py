"""Routes for questions about pods: why, what if, and when.

Decides how a question about a pod becomes one about the scheduler's books. Never answers in the event loop what takes
long: a copy of everything does. Invariant: no question changes anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from fairlead.config import ConfigurationError
from fairlead.core.resources import Resources
from fairlead.core.specs import ApplicationSpec, AskSpec, ClusterSpec
from fairlead.insight import answers, whatif
from fairlead.insight.explain import Effort, explain
from fairlead.insight.forecast import shifts
from fairlead.insight.trial import Name
from fairlead.insight.whatif import Supposition, suppose
from fairlead.kubernetes.pod_store import KnownPod
from fairlead.kubernetes.translate.amounts import PODS
from fairlead.local.whereabouts import where_of
from fairlead.runtime import Refusal
from fairlead.service import models
from fairlead.service.errors import documented
from fairlead.service.fields import Line, Priority
from fairlead.service.forecaster import SPEND_S, spending
from fairlead.service.kubernetes import futures, pods
from fairlead.service.kubernetes.desk import ClusterDesk, ClusterDeskOf, ReaderOf
from fairlead.service.models import JobDraft, Strict
from fairlead.service.queue_texts import usable
from fairlead.service.suppositions import Otherwise, Score, Seconds, Supposed, When

router = APIRouter(prefix="/api/v1", tags=["questions"])
CHANGES_S = 10.0
"""Changes are tried for so long."""
NEW = "new"
PodKey = Annotated[str, Field(max_length=400)]


class PodPriority(Strict):
    """A waiting pod gets another priority."""

    key: PodKey
    priority: Priority


class PodQueue(Strict):
    """A pod's application goes to another queue."""

    key: PodKey
    queue: Line


class SupposedOfPods(Supposed):
    """One change to suppose; pods go by `NAMESPACE/NAME`."""

    cancel: Annotated[list[PodKey], Field(min_length=1, max_length=1000)] | None = None
    priority: PodPriority | None = None  # type: ignore[assignment]
    move: PodQueue | None = None  # type: ignore[assignment]


@router.get("/jobs/{namespace}/{name}/why", response_model=models.Why, responses=documented(404))
async def explain_job(
    namespace: str,
    name: str,
    desk: ClusterDeskOf,
    reader: ReaderOf,
    changes: Annotated[
        bool, Query(description="Also find the smallest changes that would start it; takes up to some seconds.")
    ] = False,
) -> Response:
    """Why a pod waits or runs, with the numbers; what holds what it needs; and what would start it."""
    del reader
    scheduler, informer = desk.scheduler, desk.informer
    known = pods.pod_of(informer, f"{namespace}/{name}")

    def question() -> dict[str, Any]:
        shown = pods.why(scheduler, informer, known)
        _, ask = pods.entry_of(scheduler, informer, known)
        if ask is None or not (ask.pending or ask.node is not None):
            return shown | {"verdict": None}
        until = time.monotonic() + CHANGES_S
        effort = Effort(is_over=lambda: time.monotonic() > until) if changes and ask.pending else None
        found = explain(scheduler, known.application, known.name.uid, informer.partition, changes=effort, fork=True)
        return shown | {"verdict": found.as_dict()}

    return desk.answer(await desk.apart(question))


@router.post("/whatif", response_model=Otherwise, responses=documented(404, 413))
async def what_if(body: SupposedOfPods, desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """What would be otherwise if one thing were done now: who starts, who stops, which shares change."""
    del reader
    spec = await run_in_threadpool(_file, body.config) if body.config is not None else None
    supposed = _supposition(body, desk, spec)
    shown = await desk.apart(_answering(desk, supposed, body))
    return desk.answer({"supposed": supposed.sentence} | shown)


def _answering(desk: ClusterDesk, supposed: Supposition, body: SupposedOfPods) -> Callable[[], dict[str, Any]]:
    scheduler, control_loop, learned = desk.scheduler, desk.control_loop, desk.pod_history.runtimes

    def question() -> dict[str, Any]:
        found = suppose(scheduler, supposed, fork=True)
        if body.forecast:
            future, time_of_one = futures.Future(control_loop.driver, learned), body.seconds / 2
            moved = shifts(
                scheduler,
                supposed.events,
                future,
                kind=future.kind_of,
                fork=True,
                spending=lambda: spending(time_of_one),
            )
            found = replace(found, expected=moved.found, unseen=moved.unseen)
        return answers.difference(found)

    return question


@router.get("/jobs/{namespace}/{name}/forecast", response_model=When, responses=documented(404, 409))
async def forecast_job(
    namespace: str, name: str, desk: ClusterDeskOf, reader: ReaderOf, seconds: Seconds = SPEND_S
) -> Response:
    """When a pod that waits is expected to start: an interval, and what it rests on.

    Where it takes long to find out, the answer is after which time.
    """
    del reader
    driver, book = desk.control_loop.driver, desk.pod_history
    known = pods.pod_of(driver.informer, f"{namespace}/{name}")
    _, ask = pods.entry_of(driver.scheduler, driver.informer, known)
    if ask is None or not ask.pending:
        where = pods.state_of(known)
        raise Refusal("conflict", f"pod {known.name} is {where} and not in line; only what is in line has a forecast")
    wanted = _name(known, driver.informer.partition)
    made_ms, expected, assumptions, draws = await desk.apart(
        lambda: futures.play(driver, book.runtimes, wanted, seconds)
    )
    expected = book.card.promise(made_ms, expected)
    shown = expected.as_dict() | {"key": str(known.name), "made_ms": made_ms, "draws": draws}
    del shown["partition"], shown["application"]
    return desk.answer(shown | {"assumptions": assumptions, "score": book.card.as_dict()})


@router.get("/forecasts/score", response_model=Score, responses=documented())
async def get_forecast_score(desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """How often the forecasts that were asked for came true since this process began."""
    del reader
    return desk.answer(desk.pod_history.card.as_dict())


def _file(text: str) -> ClusterSpec:
    try:
        return usable(text)
    except ConfigurationError as error:
        first = error.errors[0]
        raise Refusal("invalid", f"line {first.line}: {first.path}: {first.message}", field="config") from error


def _supposition(body: SupposedOfPods, desk: ClusterDesk, spec: ClusterSpec | None) -> Supposition:
    """The change as events. Raises `Refusal`."""
    informer, partition = desk.informer, desk.informer.partition

    def name_of(key: str) -> Name:
        return _name(pods.pod_of(informer, key), partition)

    if spec is not None:
        return whatif.configured(spec)
    if body.submit is not None:
        return _submission(body.submit, partition)
    if body.cancel is not None:
        return whatif.cancelled([name_of(key) for key in body.cancel])
    if body.priority is not None:
        return whatif.prioritised(name_of(body.priority.key), body.priority.priority)
    if body.move is not None:
        return whatif.moved(name_of(body.move.key), body.move.queue)
    nodes = body.drain or ([body.add_nodes.like] if body.add_nodes is not None else [])
    for node in nodes:
        if node not in informer.around.nodes:
            raise Refusal("not-found", f"there is no node {node!r}; `fairlead nodes` lists them")
    if body.add_nodes is not None:
        return whatif.nodes_added(desk.scheduler, body.add_nodes.like, body.add_nodes.count, partition)
    return whatif.drained(nodes, partition)


def _name(known: KnownPod, partition: str) -> Name:
    return partition, known.application, known.name.uid


def _submission(draft: JobDraft, partition: str) -> Supposition:
    """A pod like this draft; its command does not matter."""
    application = ApplicationSpec(id=NEW, queue=draft.queue, user="nobody", partition=partition)
    ask = AskSpec(
        application=NEW,
        key=NEW,
        resources=Resources({PODS: 1, **draft.resources}),
        priority=draft.priority,
        labels=draft.labels,
        where=where_of(draft.node_selector, draft.ports, draft.beside, draft.apart_from),
        priority_class=draft.priority_class,
        idle=draft.idle,
        time_limit_ms=draft.time_limit_ms,
    )
    return whatif.submitted(application, [ask])
