"""Routes about queues, nodes, the service itself, and the stream of events, on a machine and on a cluster.

Decides what everybody may see: totals of queues and nodes, nobody's single jobs. Never shows another user's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Header, Query
from starlette.responses import StreamingResponse

from fairlead.runtime import Refusal
from fairlead.service import views
from fairlead.service.history_events import parse_id
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import PagesOf, api
from fairlead.service.place import CallerOf, Moment, PlaceOf
from fairlead.wire import cluster as wire

router = api("cluster")


@router.get("/queues")
async def list_queues(
    place: PlaceOf,
    page: PagesOf,
    queue: Annotated[str | None, Query(max_length=1024, description="Only this queue and those below it.")] = None,
) -> wire.QueuePage | bytes:
    """The queues with what each may use, uses, and waits for: one tree a partition, by its name."""

    def ask(moment: Moment) -> wire.QueuePage:
        trees = views.queue_views(moment.scheduler)
        found = trees if queue is None else [each for tree in trees if (each := _below(tree, queue)) is not None]
        return page.of(wire.QueuePage, found, lambda tree: (tree.partition, tree.path))

    return await place.shown(ask)


def _below(tree: wire.Queue, path: str) -> wire.Queue | None:
    """The queue of a path in a tree."""
    if tree.path == path:
        return tree
    return next((found for child in tree.children if (found := _below(child, path)) is not None), None)


@router.get("/nodes")
async def list_nodes(
    place: PlaceOf,
    page: PagesOf,
    schedulable: Annotated[bool | None, Query(description="Only those that take new work, or that do not.")] = None,
) -> wire.NodePage | bytes:
    """The nodes with what each has and what is free, by their names."""

    def ask(moment: Moment) -> wire.NodePage:
        found = (node for node in views.nodes(moment.scheduler) if schedulable in (None, node.schedulable))
        return page.of(wire.NodePage, found, lambda node: node.id, views.node_view)

    return await place.shown(ask)


@router.get("/info")
async def get_info(place: PlaceOf, caller: CallerOf) -> wire.Service:
    """What this service is, and whether all is well."""
    return await place.info(caller)


STREAM: Mapping[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `id` SEQ.INDEX, `event` the type, `data` JSON with seq, at_ms, type, key.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    **documented(429),
}


@router.get("/events", response_class=StreamingResponse, responses=dict(STREAM))
async def stream_events(
    place: PlaceOf,
    caller: CallerOf,
    from_seq: Annotated[
        int | None, Query(alias="from", ge=0, le=2**60, description="Begin with this journal record.")
    ] = None,
    last_event_id: Annotated[str | None, Header(max_length=64, description="Go on after this event.")] = None,
) -> StreamingResponse:
    """What happens, as it happens; first what happened since, when asked. Others' jobs are left out."""
    after = None
    if last_event_id:
        after = parse_id(last_event_id)
        if after is None:
            raise Refusal("invalid", f"{last_event_id!r} is no id of an event, such as 17.0", field="Last-Event-ID")
    elif from_seq is not None:
        after = (max(from_seq - 1, 0), 10**9)
    pieces = place.events(caller, after)
    first = await anext(pieces)

    async def all_pieces() -> Any:
        try:
            yield first
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(all_pieces(), media_type="text/event-stream", headers=headers)
