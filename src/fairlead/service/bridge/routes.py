"""Routes about pods, queues, nodes and the scheduler itself, as `fairlead ls`, `show`, `top` and `queues` ask for them.

Decides pages and filters. Never changes anything: on a cluster that is `kubectl`'s business.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from fairlead.kubernetes.roster import KnownPod
from fairlead.service import models, views
from fairlead.service.bridge import pods
from fairlead.service.bridge.desk import ReaderOf, ShipDesk, ShipDeskOf
from fairlead.service.errors import documented

router = APIRouter(prefix="/api/v1", tags=["cluster"])
LIST_AT_MOST = 1000
LIST_USUALLY = 100
QUICK = 30
"""For so many waiting pods the reasons are looked up at once; for more in a process of its own."""


@router.get("/works", response_model=models.WorkPage, responses=documented())
async def list_pods(
    desk: ShipDeskOf,
    reader: ReaderOf,
    state: Annotated[list[str] | None, Query(description="Only in one of these states.")] = None,
    queue: Annotated[str | None, Query(description="Only in this queue or below it.")] = None,
    user: Annotated[str | None, Query(description="Only of this user.")] = None,
    name: Annotated[str | None, Query(description="Only of this application.")] = None,
    limit: Annotated[int, Query(ge=1, le=LIST_AT_MOST)] = LIST_USUALLY,
    after: Annotated[str | None, Query(max_length=400, description="Only after this pod.")] = None,
) -> Response:
    """The pods of this scheduler that wait or run, page by page."""
    del reader
    picture, scheduler, wanted = desk.picture, desk.scheduler, frozenset(state or ())
    found = [
        known
        for known in pods.our_pods(picture)
        if (not wanted or pods.state_of(known) in wanted)
        and (name is None or known.application == name)
        and _passes(desk, known, queue, user)
    ]
    start = 0
    if after is not None:
        start = 1 + next((i for i, known in enumerate(found) if str(known.name) == after), -1)
    page = list(islice(found, start, start + limit))
    more = start + limit < len(found)

    def rows() -> list[dict[str, Any]]:
        return [pods.row(scheduler, picture, known) for known in page]

    slow = sum(known.name.uid in picture.waiting for known in page) > QUICK
    shown = await desk.apart(rows) if slow else rows()
    return desk.answer({"works": shown, "next": shown[-1]["key"] if more else None, "total": len(found)})


def _passes(desk: ShipDesk, known: KnownPod, queue: str | None, user: str | None) -> bool:
    if queue is None and user is None:
        return True
    app, _ = pods.entry_of(desk.scheduler, desk.picture, known)
    if app is None or (user is not None and app.user != user):
        return False
    return queue is None or app.queue.path == queue or app.queue.path.startswith(f"{queue}.")


@router.get("/queues", response_model=models.Queues, responses=documented())
async def queues(desk: ShipDeskOf, reader: ReaderOf) -> Response:
    """The queues with what each may use, uses, and waits for."""
    del reader
    return desk.answer({"queues": views.queue_views(desk.scheduler)})


@router.get("/nodes", response_model=models.Nodes, responses=documented())
async def nodes(desk: ShipDeskOf, reader: ReaderOf) -> Response:
    """The nodes with what each has and what is free."""
    del reader
    return desk.answer({"nodes": views.node_views(desk.scheduler)})


@router.get("/info", responses=documented())
async def about(desk: ShipDeskOf, reader: ReaderOf) -> Response:
    """What this scheduler is, how its start went, and whether all is well."""
    voyage, ship = desk.voyage, desk.ship
    shown = {
        "version": desk.version,
        "user": reader.user if reader is not None else "",
        "scheduler_name": ship.options.scheduler_name,
        "identity": ship.identity,
        "cluster": ship.access.server,
        "leads": ship.election is None or ship.election.leads,
        "started_at_ms": desk.started_at_ms,
        "start_ms": {
            "listed": dict(voyage.timings.listed),
            "rebuilt": voyage.timings.rebuilt,
            "first_bound": voyage.timings.first_bound or None,
        },
        "pods": sum(1 for _ in pods.our_pods(desk.picture)),
        "nodes": len(desk.picture.around.nodes),
        "partition_total": views.partition_total(desk.scheduler),
        "problems": desk.problems(),
    }
    return desk.answer(shown)


@router.get("/works/{namespace}/{name}", responses=documented(404))
async def show(namespace: str, name: str, desk: ShipDeskOf, reader: ReaderOf) -> Response:
    """Everything about a pod that the scheduler knows."""
    del reader
    known = pods.pod_of(desk.picture, f"{namespace}/{name}")
    return desk.answer(pods.full(desk.scheduler, desk.picture, known))
