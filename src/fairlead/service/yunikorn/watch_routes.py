"""Routes of /ws/v1 and /debug that watch: event records, health, utilisation, metrics, dumps.

Decides limits of these reads and their errors as Apache YuniKorn's REST interface does. Never changes anything. What
shows everything at once is for administrators (`readers`).
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from fairlead.config.show import as_tree
from fairlead.insight.history_records import as_json
from fairlead.scheduler import Scheduler
from fairlead.service.cluster import problems
from fairlead.service.desk import Desk, DeskOf
from fairlead.service.scrape import CONTENT_TYPE, scrape
from fairlead.service.yunikorn import app_shapes, history_stream, node_shapes, shapes, transport
from fairlead.service.yunikorn.describe import described, text
from fairlead.service.yunikorn.health import health
from fairlead.service.yunikorn.readers import Administrator, Reader, read, visible
from fairlead.service.yunikorn.routes import cluster_list, declared, partition_list, spec_in_force
from fairlead.service.yunikorn.transport import Plainly, number

router = APIRouter(prefix="/ws/v1", tags=["yunikorn"])
debug = APIRouter(prefix="/debug", tags=["yunikorn"])

MOST_IN_A_BATCH = 10_000
NO_RM = {"empty": "Resource Manager did not register callback"}
_dumping = asyncio.Lock()


# -- event records ------------------------------------------------------------------------------------------------


@router.get("/events/batch", response_class=Response, responses=described("Event records with their numbers.", False))
async def batch(
    request: Request,
    desk: DeskOf,
    who: Reader,
    count: Annotated[str | None, Query(description="How many at most.")] = None,
    start: Annotated[str | None, Query(description="The number of the first.")] = None,
) -> Response:
    """Some event records. Others' applications are left out; numbers count them all the same."""

    async def ask() -> dict[str, Any]:
        most = number("count", count, MOST_IN_A_BATCH)
        if most == 0:
            raise Plainly(400, '0 is not a valid value for "count"')
        page = desk.history_records.ring.page(number("start", start, 0), min(most, MOST_IN_A_BATCH))
        shown = None if page.records is None else [as_json(r) for r in await visible(desk, who)(page.records)]
        return {
            "InstanceUUID": desk.history_records.instance,
            "LowestID": page.lowest,
            "HighestID": page.highest,
            "EventRecords": shown,
        }

    return await transport.answered(request, ask())


@router.get(
    "/events/stream",
    response_class=Response,
    responses=text("One JSON object a line, without end.", "application/json"),
)
async def stream(
    request: Request,
    desk: DeskOf,
    who: Reader,
    count: Annotated[str | None, Query(description="Past records to begin with.")] = None,
) -> Response:
    """Event records as they come, after the newest `count` past ones."""
    try:
        past = number("count", count, 0)
        one = desk.streams.enter(request.headers.get("host", ""), time.time_ns())
    except Plainly as error:
        return transport.failed(request, error.status, error.message)
    pieces = history_stream.lines(desk.history_records, desk.streams, one, past, visible(desk, who))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Content-Type": transport.JSON}
    return history_stream.Timed(pieces, headers=headers)


# -- figures ------------------------------------------------------------------------------------------------------


@router.get("/metrics", response_class=Response, responses=text("The text format of Prometheus."))
async def metrics(request: Request, desk: DeskOf, who: Reader) -> Response:
    """Figures for Prometheus: the service's own, and the same under YuniKorn's names."""
    del who
    return transport.packed(request, await scrape(desk), CONTENT_TYPE)


@router.get("/scheduler/healthcheck", response_class=Response, responses=described("All checks.", False))
async def healthcheck(request: Request, desk: DeskOf, who: Reader) -> Response:
    """Whether the books are in order; 200 even when they are not."""
    del who
    return await read(request, desk, lambda s: health(s, faults=desk.runtime.measures.faults, problems=problems(desk)))


@router.get("/scheduler/node-utilizations", response_class=Response, responses=described("One entry a partition."))
async def node_utilizations(request: Request, desk: DeskOf, who: Reader) -> Response:
    """How many nodes use how much of each resource."""
    del who
    return await read(request, desk, _utilizations)


def _utilizations(scheduler: Scheduler) -> list[dict[str, Any]] | None:
    return [node_shapes.utilizations(part) for part in scheduler.cluster.partitions.values()] or None


# -- everything at once -------------------------------------------------------------------------------------------


@debug.get("/fullstatedump", response_class=Response, responses=described("Everything.", False))
async def full_state_dump(request: Request, desk: DeskOf, who: Administrator) -> Response:
    """All that the other routes show, in one answer (administrators). One at a time."""
    del who
    async with _dumping:
        dumped, given = await desk.read(lambda s, _: (_dump(desk, s), declared(s)))
        dumped["config"] = as_tree(await run_in_threadpool(spec_in_force, given))
        return await run_in_threadpool(transport.answer, request, shapes.filled(dumped), pretty=True)


def dump(desk: Desk, scheduler: Scheduler) -> dict[str, Any]:
    """All of it at once, where the books stand still for as long as that takes."""
    return shapes.filled(_dump(desk, scheduler) | {"config": as_tree(spec_in_force(declared(scheduler)))})


def _dump(desk: Desk, scheduler: Scheduler) -> dict[str, Any]:
    parts = list(scheduler.cluster.partitions.values())
    applications = [a for p in parts for kept in (p.applications, p.ended, p.rejected) for a in _apps(p, kept)]
    return {
        "timestamp": time.time_ns(),
        "partitions": partition_list(desk, scheduler),
        "applications": applications,
        "appHistory": desk.history_samples.applications(),
        "nodes": [
            {"partitionName": p.name, "nodesInfo": [node_shapes.node(n, p.name) for n in p.nodes.nodes.values()]}
            for p in parts
        ],
        "clusterInfo": cluster_list(desk, scheduler),
        "containerHistory": desk.history_samples.containers(),
        "queues": [shapes.queue(p.root, subtree=True, partition_name=p.name) for p in parts],
        "rmDiagnostics": NO_RM,
        "logLevel": logging.getLevelName(logging.getLogger("fairlead").getEffectiveLevel()).lower(),
        "placementRules": [{"partition": p.name, "rules": shapes.rules(p.spec.placement_rules)} for p in parts],
        "eventStreams": [{"Name": one.name, "CreatedAt": one.opened_ns} for one in desk.streams.open],
    }


def _apps(part: Any, kept: Any) -> list[dict[str, Any]]:
    return app_shapes.applications(kept.values(), part)


@debug.get("/stack", response_class=Response, responses=text("The stacks."))
async def stack(request: Request, who: Administrator) -> Response:
    """Where each thread is (administrators)."""
    del who
    names = {one.ident: one.name for one in threading.enumerate()}
    pieces = []
    for ident, frame in sys._current_frames().items():
        pieces.append(f"{names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}\n")
    return transport.packed(request, "".join(pieces).encode(), transport.TEXT)


@router.get("/stack", response_class=Response, include_in_schema=False)
async def old_stack() -> Response:
    """The older path."""
    return transport.moved("/debug/stack")


@router.get("/fullstatedump", response_class=Response, include_in_schema=False)
async def old_dump() -> Response:
    """The older path."""
    return transport.moved("/debug/fullstatedump")
