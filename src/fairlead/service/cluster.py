"""Routes about queues, nodes, the service itself, and the stream of events.

Decides what everybody may see: totals of queues and nodes, nobody's single jobs. Never shows another user's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from starlette.responses import StreamingResponse

from fairlead.core.constraints import Taint
from fairlead.core.events import DrainNode, LabelNode, UndrainNode
from fairlead.core.specs import DEFAULT_PARTITION
from fairlead.runtime import Refusal, Turn
from fairlead.service import models, views
from fairlead.service.configuration import status_of
from fairlead.service.desk import CallerOf, Desk, DeskOf, plain
from fairlead.service.errors import documented
from fairlead.service.history_events import parse_id
from fairlead.service.history_stream import stream

router = APIRouter(prefix="/api/v1", tags=["cluster"])


@router.get("/queues", response_model=models.Queues, responses=documented())
async def list_queues(desk: DeskOf, caller: CallerOf) -> Response:
    """The queues with what each may use, uses, and waits for."""
    del caller
    return plain({"queues": await desk.read(lambda scheduler, _: views.queue_views(scheduler))})


@router.get("/nodes", response_model=models.Nodes, responses=documented())
async def list_nodes(desk: DeskOf, caller: CallerOf) -> Response:
    """The nodes with what each has and what is free."""
    del caller
    return plain({"nodes": await desk.read(lambda scheduler, _: views.node_views(scheduler))})


@router.post("/nodes/{node_id}/drain", response_model=models.NodeView, responses=documented(404))
async def drain_node(node_id: str, desk: DeskOf, caller: CallerOf, body: models.Nothing | None = None) -> Response:
    """Take no new work on a node; what runs there goes on (administrators)."""
    del body
    caller.require_admin("drain nodes")
    return await _turn_node(desk, node_id, DrainNode(node_id))


@router.post("/nodes/{node_id}/undrain", response_model=models.NodeView, responses=documented(404))
async def undrain_node(node_id: str, desk: DeskOf, caller: CallerOf, body: models.Nothing | None = None) -> Response:
    """Let a drained node take work again (administrators)."""
    del body
    caller.require_admin("undrain nodes")
    return await _turn_node(desk, node_id, UndrainNode(node_id))


@router.put("/nodes/{node_id}/labels", response_model=models.NodeView, responses=documented(404))
async def label_node(node_id: str, desk: DeskOf, caller: CallerOf, body: models.NodeLabels) -> Response:
    """Replace the attributes and taints of a node; work that must not run there any more is evicted (administrators).

    What does not tolerate a `NoExecute` taint has to go; everything else goes on.
    """
    caller.require_admin("label nodes")
    taints = tuple(Taint(t.key, t.value, t.effect) for t in body.taints)
    return await _turn_node(desk, node_id, LabelNode(node_id, body.attributes, taints))


async def _turn_node(desk: Desk, node_id: str, event: DrainNode | UndrainNode | LabelNode) -> Response:
    def act(turn: Turn) -> None:
        node = turn.scheduler.cluster.partitions[DEFAULT_PARTITION].nodes.nodes.get(node_id)
        if node is None:
            raise Refusal("not-found", f"there is no node {node_id!r}; `fairlead nodes` lists them")
        if isinstance(event, LabelNode) or node.schedulable == isinstance(event, DrainNode):
            turn.event(event)

    await desk.do(act)

    def shown(scheduler: Any, _: Any) -> dict[str, Any]:
        return views.node_view(scheduler.cluster.partitions[DEFAULT_PARTITION].nodes.nodes[node_id])

    return plain(await desk.read(shown))


@router.get("/info", response_model=models.ServiceView, responses=documented())
async def get_info(desk: DeskOf, caller: CallerOf) -> Response:
    """What this service is, what it can enforce, and whether all is well."""
    runtime, recovered = desk.runtime, desk.runtime.recovered
    total, last_seq = await desk.read(lambda s, _: (views.partition_total(s), runtime.journal.committed_seq))
    shown = {
        "version": desk.version,
        "pid": desk.pid,
        "user": caller.user,
        "is_admin": caller.is_admin,
        "serves": "everyone" if desk.gate.everybody else "own user",
        "runs_as": "the submitter" if desk.gate.everybody else desk.gate.own_name,
        "state_dir": str(desk.state_dir),
        "started_at_ms": desk.started_at_ms,
        "node": desk.place.node,
        "capabilities": {c.name: {"enforced": c.enforced, "how": c.how} for c in desk.capabilities},
        "journal": {"events": last_seq, "last_seq": last_seq, "size_bytes": _size(desk)},
        "recovery": {
            "from_snapshot": recovered.from_snapshot,
            "records": recovered.records,
            "milliseconds": round(recovered.milliseconds, 1),
            "notes": list(recovered.notes),
        },
        "partition_total": total,
        "config": await status_of(desk),
        "problems": problems(desk),
    }
    return plain(shown)


def _size(desk: Desk) -> int:
    path = desk.runtime.journal.path
    return sum(part.stat().st_size for part in (path, path.with_name(path.name + "-wal")) if part.exists())


def problems(desk: Desk) -> list[str]:
    """What is wrong at the moment, as sentences."""
    runtime = desk.runtime
    found = [runtime.sick, runtime.halted, f"the writer has ended: {runtime.failure}" if runtime.failure else ""]
    if desk.config_file is not None:
        found.append(desk.config_file.problem())
    if desk.place.strange:
        runs = ", ".join(desk.place.strange[:5])
        found.append(f"runs that the journal does not know were found at the start, and stopped: {runs}")
    if desk.place.jobs.memory_short is not None:
        found.append("the machine is short of memory: nothing new starts until some is free again")
    return [sentence for sentence in found if sentence]


STREAM: Mapping[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `id` SEQ.INDEX, `event` the type, `data` JSON with seq, at_ms, type, key.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    **documented(429),
}


@router.get("/events", response_class=StreamingResponse, responses=dict(STREAM))
async def stream_events(
    desk: DeskOf,
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
    pieces = stream(desk.hub, caller, after, lambda keys: asyncio.ensure_future(desk.owners(keys)))
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
