"""The application of a scheduler on a cluster: probes, figures, the questions of the command line, and /ws/v1.

Decides which routes there are. Invariant: none of them changes anything in the cluster or in the books.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.concurrency import run_in_threadpool

from fairlead.core.specs import DEFAULT_PARTITION
from fairlead.runtime import Refusal
from fairlead.service import errors, metrics, views
from fairlead.service.app import Bounded, given_once, operation_id
from fairlead.service.desk import plain
from fairlead.service.kubernetes import pods, questions, routes
from fairlead.service.kubernetes.desk import ClusterDesk, ClusterDeskOf, ReaderOf
from fairlead.service.kubernetes.gate import Entrance, Judge
from fairlead.service.scrape import CONTENT_TYPE
from fairlead.service.yunikorn import figures, table, transport
from fairlead.service.yunikorn.health import health
from fairlead.service.yunikorn.transport import Front
from fairlead.service.yunikorn.watch_routes import dump

if TYPE_CHECKING:
    from fairlead.service.desk import Desk

outside = APIRouter(tags=["service"])
instead = APIRouter(prefix="/ws/v1", include_in_schema=False)
"""Routes of /ws/v1 that look at the place itself. They are described where the machine has them."""
debug = APIRouter(prefix="/debug", include_in_schema=False)
last = APIRouter(prefix="/api/v1")
"""What is asked of a machine and cannot be asked of a cluster."""
_dumping = asyncio.Lock()
NOT_HERE = "a cluster is changed through its API server, not here: kubectl delete, cordon, patch or apply does it"


@outside.get("/livez", operation_id="getLiveness")
@outside.get("/healthz")
async def get_health(desk: ClusterDeskOf) -> Response:
    """Whether it is worth keeping: the scheduler has its turns."""
    found = desk.problems()
    stuck = [problem for problem in found if "turn" in problem]
    return plain({"status": "failing" if stuck else "ok", "problems": found}, 503 if stuck else 200)


@outside.get("/readyz")
async def get_readiness(desk: ClusterDeskOf) -> Response:
    """Whether everything of the cluster is known, or another process leads and this one stands by."""
    ready = desk.controller.ready
    return plain({"status": "ok" if ready else "starting", "problems": desk.problems()}, 200 if ready else 503)


@outside.get("/metrics", response_class=Response)
async def get_metrics(desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """Figures for Prometheus: the scheduler's own, and the same under the names of Apache YuniKorn."""
    del reader
    return Response(await scrape(desk), media_type=CONTENT_TYPE)


@instead.get("/metrics", response_class=Response)
async def get_metrics_there(request: Request, desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """The same where YuniKorn has it."""
    del reader
    return await run_in_threadpool(transport.packed, request, await scrape(desk), CONTENT_TYPE)


@instead.get("/scheduler/healthcheck", response_class=Response)
async def get_healthcheck(request: Request, desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """Whether the books are in order; 200 even when they are not."""
    del reader
    question = desk.told(lambda scheduler: health(scheduler, faults=0, problems=desk.problems()))
    return await transport.answered(request, question)


@debug.get("/fullstatedump", response_class=Response)
async def get_full_state_dump(request: Request, desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """All that the other routes show, in one answer. One at a time, and never in the scheduler's own process."""
    del reader
    scheduler = desk.scheduler

    def text() -> bytes:
        # As everywhere in /ws/v1 the cluster's desk stands in for the machine's.
        return transport.as_text(dump(cast("Desk", desk), scheduler), pretty=True)

    async with _dumping:
        return await run_in_threadpool(transport.packed, request, await desk.apart(text), transport.JSON)


@last.api_route("/{what:path}", methods=["POST", "PUT", "PATCH", "DELETE"], include_in_schema=False)
async def not_here(what: str) -> Response:
    """Whatever would change something."""
    del what
    raise Refusal("method-not-allowed", NOT_HERE)


@last.get("/jobs/{namespace}/{name}/logs", include_in_schema=False)
async def get_job_logs(namespace: str, name: str) -> Response:
    """What a pod wrote."""
    where = "" if namespace == "default" else f" -n {namespace}"
    raise Refusal("not-found", f"a cluster keeps what its pods write: `kubectl logs {name}{where}` shows it")


async def scrape(desk: ClusterDesk) -> bytes:
    """The text of one scrape; of a process that stands by only that it does."""
    control_loop = desk.controller.control_loop
    if control_loop is None or not control_loop.ready:
        return metrics.exposed(list(_own(desk)))
    scheduler, measures = control_loop.driver.scheduler, control_loop.measures.copy()

    def text() -> bytes:
        books = {"queues": views.queue_views(scheduler), "nodes": views.node_views(scheduler)}
        mine = metrics.exposed([*metrics.of_books(books), *metrics.of_scheduling(measures), *_own(desk)])
        return mine + figures.render(figures.gather(scheduler, desk.history_records), measures)

    return await desk.apart(text, desk.looks) if desk.is_large else text()


def _own(desk: ClusterDesk) -> Iterator[Metric]:
    controller, control_loop = desk.controller, desk.controller.control_loop
    leads = controller.election is None or controller.election.leads
    yield GaugeMetricFamily("fairlead_healthy", "1 if all is well.", value=int(not desk.problems()))
    yield GaugeMetricFamily("fairlead_kubernetes_leads", "1 if this process schedules.", value=int(leads))
    if control_loop is None or not control_loop.ready:
        return
    states = GaugeMetricFamily("fairlead_kubernetes_pods", "Pods of this scheduler by state.", labels=("state",))
    counts = Counter(pods.state_of(known) for known in pods.our_pods(control_loop.driver.informer))
    for state in ("waiting", "running", "stopping"):
        states.add_metric((state,), counts[state])
    yield states
    waits = len(control_loop.driver.scheduler.cluster.partitions[DEFAULT_PARTITION].applications)
    yield GaugeMetricFamily("fairlead_kubernetes_applications", "Applications in the books.", value=waits)
    yield CounterMetricFamily("fairlead_kubernetes_bound", "Pods bound.", value=control_loop.bound)
    yield CounterMetricFamily(
        "fairlead_kubernetes_refused", "Placements that were refused.", value=control_loop.refused
    )
    yield CounterMetricFamily("fairlead_kubernetes_turns", "Turns of the scheduler.", value=control_loop.turns)
    start = GaugeMetricFamily(
        "fairlead_kubernetes_start_seconds", "How long the parts of the start took.", labels=("part",)
    )
    for part, took_ms in (
        *((f"list {kind}", took) for kind, took in control_loop.timings.listed.items()),
        ("rebuilt", control_loop.timings.rebuilt),
        ("first decision", control_loop.timings.first_decided),
        ("first bind", control_loop.timings.first_bound),
    ):
        start.add_metric((part,), took_ms / 1000)
    yield start


def make_cluster_app(desk: ClusterDesk, judge: Judge) -> FastAPI:
    """The application of one scheduler on a cluster."""
    app = FastAPI(
        title="Fairlead",
        version=desk.version,
        summary="Priority-aware scheduling of a Kubernetes cluster.",
        description="Send `Authorization: Bearer TOKEN` with a token that the cluster knows. Everything is read only.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        generate_unique_id_function=operation_id,
    )
    app.state.desk = desk
    errors.install(app)
    for router in (questions.router, routes.router, outside, last):
        app.include_router(router, dependencies=[Depends(given_once)])
    for router in (instead, debug, *table.ROUTERS):
        app.include_router(router)
    app.add_middleware(Bounded)
    app.add_middleware(Front, known=tuple(table.known()))
    app.add_middleware(Entrance, judge=judge)
    return app
