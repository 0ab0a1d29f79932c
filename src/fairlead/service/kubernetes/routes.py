"""Routes about pods, queues, nodes, the scheduler itself and events, as `fairlead ls`, `show`, `top` and `queues` ask.

Decides pages and filters. Never changes anything: on a cluster that is `kubectl`'s business.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from starlette.responses import StreamingResponse

from fairlead.kubernetes.pod_store import KnownPod
from fairlead.service import models, views
from fairlead.service.cluster import STREAM
from fairlead.service.errors import documented
from fairlead.service.history_events import HistoryEvent
from fairlead.service.history_stream import frame, live
from fairlead.service.kubernetes import pods
from fairlead.service.kubernetes.desk import ClusterDesk, ClusterDeskOf, ReaderOf, now_ms

router = APIRouter(prefix="/api/v1", tags=["cluster"])
LIST_AT_MOST = 1000
LIST_USUALLY = 100
GAP = "a scheduler on a cluster keeps no events; /ws/v1/events/batch has the newest records"


@router.get("/jobs", response_model=models.JobPage, responses=documented())
async def list_jobs(
    desk: ClusterDeskOf,
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
    desk.control_loop  # noqa: B018 - it is refused while there is none
    return await desk.shown(lambda: _page(desk, frozenset(state or ()), queue, user, name, limit, after))


def _page(
    desk: ClusterDesk,
    wanted: frozenset[str],
    queue: str | None,
    user: str | None,
    name: str | None,
    limit: int,
    after: str | None,
) -> dict[str, Any]:
    informer, scheduler = desk.informer, desk.scheduler
    found = [
        known
        for known in pods.our_pods(informer)
        if (not wanted or pods.state_of(known) in wanted)
        and (name is None or known.application == name)
        and _passes(desk, known, queue, user)
    ]
    start = 0
    if after is not None:
        start = 1 + next((i for i, known in enumerate(found) if str(known.name) == after), -1)
    page = list(islice(found, start, start + limit))
    more = start + limit < len(found)
    shown = [pods.row(scheduler, informer, known) for known in page]
    return {"jobs": shown, "next": shown[-1]["key"] if more else None, "total": len(found)}


def _passes(desk: ClusterDesk, known: KnownPod, queue: str | None, user: str | None) -> bool:
    if queue is None and user is None:
        return True
    app, _ = pods.entry_of(desk.scheduler, desk.informer, known)
    if app is None or (user is not None and app.user != user):
        return False
    return queue is None or app.queue.path == queue or app.queue.path.startswith(f"{queue}.")


@router.get("/queues", response_model=models.Queues, responses=documented())
async def list_queues(desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """The queues with what each may use, uses, and waits for."""
    del reader
    scheduler = desk.scheduler
    return await desk.shown(lambda: {"queues": views.queue_views(scheduler)})


@router.get("/nodes", response_model=models.Nodes, responses=documented())
async def list_nodes(desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """The nodes with what each has and what is free."""
    del reader
    scheduler = desk.scheduler
    return await desk.shown(lambda: {"nodes": views.node_views(scheduler)})


@router.get("/info", responses=documented())
async def get_info(desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """What this scheduler is, how its start went, and whether all is well."""
    control_loop, controller = desk.control_loop, desk.controller
    shown = {
        "version": desk.version,
        "user": reader.user if reader is not None else "",
        "scheduler_name": controller.options.scheduler_name,
        "identity": controller.identity,
        "cluster": controller.access.server,
        "leads": controller.election is None or controller.election.leads,
        "started_at_ms": desk.started_at_ms,
        "start_ms": {
            "listed": dict(control_loop.timings.listed),
            "rebuilt": control_loop.timings.rebuilt,
            "first_decided": control_loop.timings.first_decided or None,
            "first_bound": control_loop.timings.first_bound or None,
        },
        "pods": sum(1 for _ in pods.our_pods(desk.informer)),
        "nodes": len(desk.informer.around.nodes),
        "partition_total": views.partition_total(desk.scheduler),
        "problems": desk.problems(),
    }
    return desk.answer(shown)


@router.get("/jobs/{namespace}/{name}", responses=documented(404))
async def get_job(namespace: str, name: str, desk: ClusterDeskOf, reader: ReaderOf) -> Response:
    """Everything about a pod that the scheduler knows."""
    del reader
    key = f"{namespace}/{name}"
    ended = desk.pod_history.ended.get(key)
    if ended is not None and desk.informer.pod_store.named(namespace, name) is None:
        return desk.answer(ended)
    return desk.answer(pods.full(desk.scheduler, desk.informer, pods.pod_of(desk.informer, key)))


@router.get("/events", response_class=StreamingResponse, responses=dict(STREAM))
async def stream_events(
    desk: ClusterDeskOf,
    reader: ReaderOf,
    from_seq: Annotated[
        int | None, Query(alias="from", ge=0, le=2**60, description="Nothing is kept: answered by a gap.")
    ] = None,
    last_event_id: Annotated[str | None, Header(max_length=64, description="The same.")] = None,
) -> StreamingResponse:
    """What happens, as it happens. What happened before is not kept here."""
    del reader
    desk.control_loop  # noqa: B018 - it is refused while there is none
    book = desk.pod_history
    line = book.join()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            yield b"retry: 1000\n\n"
            if last_event_id or from_seq is not None:
                yield frame(HistoryEvent(book.seq, 10**9, now_ms(), "gap", "", {"why": GAP}))
            async for piece in live(line, lambda _event, _owner: True):
                yield piece
        finally:
            book.leave(line)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(pieces(), media_type="text/event-stream", headers=headers)
