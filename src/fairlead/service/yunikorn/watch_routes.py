"""Routes of /ws/v1 and /debug that watch: event records, health, utilisation, metrics, dumps.

Decides limits of these reads and their errors as Apache YuniKorn's REST interface does. Never changes anything. What
shows everything at once is for administrators (`reads`).
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from fairlead.config.show import as_tree
from fairlead.insight.history_records import as_json
from fairlead.service.metrics import CONTENT_TYPE, scrape
from fairlead.service.place import Moment, Place, PlaceOf, ReaderOf
from fairlead.service.yunikorn import app_shapes, history, routes, shapes, transport
from fairlead.service.yunikorn.health import health
from fairlead.service.yunikorn.reads import Administrator, described, read, reads, text, visible
from fairlead.service.yunikorn.routes import clusters, declared, partitions, spec_in_force
from fairlead.service.yunikorn.transport import number

router = APIRouter(prefix="/ws/v1", tags=["yunikorn"])
debug = APIRouter(prefix="/debug", tags=["yunikorn"])

MOST_IN_A_BATCH = 10_000
NO_RM = {"empty": "Resource Manager did not register callback"}
_dumping = asyncio.Lock()


# -- event records ------------------------------------------------------------------------------------------------


@router.get("/events/batch", response_class=Response, responses=described("Event records with their numbers.", False))
async def batch(
    place: PlaceOf,
    who: ReaderOf,
    count: Annotated[str | None, Query(description="How many at most.")] = None,
    start: Annotated[str | None, Query(description="The number of the first.")] = None,
) -> Response:
    """Some event records. Others' applications are left out; numbers count them all the same."""
    most = number("count", count, MOST_IN_A_BATCH)
    if most == 0:
        raise transport.wrong('0 is not a valid value for "count"')
    records = place.history_records
    page = records.ring.page(number("start", start, 0), min(most, MOST_IN_A_BATCH))
    seen = None if page.records is None else await visible(place, who)(page.records)

    def told() -> Response:
        shown = None if seen is None else [as_json(record) for record in seen]
        numbers = {"InstanceUUID": records.instance, "LowestID": page.lowest, "HighestID": page.highest}
        return transport.answer(numbers | {"EventRecords": shown})

    return await run_in_threadpool(told)


@router.get(
    "/events/stream",
    response_class=Response,
    responses=text("One JSON object a line, without end.", "application/json"),
)
async def stream(
    request: Request,
    place: PlaceOf,
    who: ReaderOf,
    count: Annotated[str | None, Query(description="Past records to begin with.")] = None,
) -> Response:
    """Event records as they come, after the newest `count` past ones."""
    past = number("count", count, 0)
    with ExitStack() as entered:
        entered.enter_context(place.one_stream(who))
        one = place.streams.enter(request.headers.get("host", ""), time.time_ns())
        entered.callback(place.streams.leave, one)
        ended = entered.pop_all().close
    pieces = history.lines(place.history_records, place.streams, one, past, visible(place, who))
    # An encoding of its own keeps the middleware from compressing, which would hold lines back.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Content-Encoding": "identity"}
    headers["Content-Type"] = transport.JSON
    return history.Timed(pieces, ended, headers)


# -- figures ------------------------------------------------------------------------------------------------------


@router.get("/metrics", response_class=Response, responses=text("The text format of Prometheus."))
async def metrics(place: PlaceOf, who: ReaderOf) -> Response:
    """Figures for Prometheus: the service's own, and the same under YuniKorn's names."""
    del who
    return Response(await scrape(place), media_type=CONTENT_TYPE)


@reads(router, "/scheduler/healthcheck", "All checks.", many=False)
def healthcheck(moment: Moment, place: PlaceOf) -> dict[str, Any]:
    """Whether the books are in order; 200 even when they are not."""
    return health(moment.scheduler, faults=place.faults(), problems=place.problems())


@reads(router, "/scheduler/node-utilizations", "One entry a partition.")
def node_utilizations(moment: Moment) -> list[dict[str, Any]] | None:
    """How many nodes use how much of each resource."""
    return [app_shapes.utilizations(part) for part in moment.scheduler.cluster.partitions.values()] or None


# -- everything at once -------------------------------------------------------------------------------------------


@debug.get("/fullstatedump", response_class=Response, responses=described("Everything.", False))
async def full_state_dump(place: PlaceOf, who: Administrator) -> Response:
    """All that the other routes show, in one answer (administrators). One at a time."""
    async with _dumping:
        return await read(place, who, lambda moment: dump(place, moment), pretty=True)


def dump(place: Place, moment: Moment) -> dict[str, Any]:
    """All of it at once, where the books stand still for as long as that takes."""
    parts = list(moment.scheduler.cluster.partitions.values())
    kept = [(part, each) for part in parts for each in (part.applications, part.ended, part.rejected)]
    shown = {
        "timestamp": time.time_ns(),
        "partitions": partitions(moment, place),
        "applications": [app for part, each in kept for app in app_shapes.applications(each.values(), part)],
        "appHistory": place.history_samples.applications(),
        "nodes": [
            {"partitionName": p.name, "nodesInfo": [app_shapes.node(n, p.name) for n in p.nodes.nodes.values()]}
            for p in parts
        ],
        "clusterInfo": clusters(moment, place),
        "containerHistory": place.history_samples.containers(),
        "queues": [shapes.queue(p, p.root, subtree=True, partition_name=p.name) for p in parts],
        "rmDiagnostics": NO_RM,
        "logLevel": logging.getLevelName(logging.getLogger("fairlead").getEffectiveLevel()).lower(),
        "placementRules": [{"partition": p.name, "rules": shapes.rules(p.spec.placement_rules)} for p in parts],
        "eventStreams": [{"Name": one.name, "CreatedAt": one.opened_ns} for one in place.streams.open],
        "config": as_tree(spec_in_force(declared(moment))),
    }
    return shapes.filled(shown)


@debug.get("/stack", response_class=Response, responses=text("The stacks."))
async def stack(who: Administrator) -> Response:
    """Where each thread is (administrators)."""
    del who
    names = {one.ident: one.name for one in threading.enumerate()}
    pieces = []
    for ident, frame in sys._current_frames().items():
        pieces.append(f"{names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}\n")
    return Response("".join(pieces), media_type=transport.TEXT)


@router.get("/stack", response_class=Response, include_in_schema=False)
async def old_stack() -> Response:
    """The older path."""
    return transport.moved("/debug/stack")


@router.get("/fullstatedump", response_class=Response, include_in_schema=False)
async def old_dump() -> Response:
    """The older path."""
    return transport.moved("/debug/fullstatedump")


ROUTERS = (routes.router, router, debug)
"""All of /ws/v1 and /debug."""


def known() -> Iterator[str]:
    """The path of each route; the front needs them."""
    for each in ROUTERS:
        yield from (route.path for route in each.routes if isinstance(route, APIRoute))
