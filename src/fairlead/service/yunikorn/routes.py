"""Routes of /ws/v1: clusters, partitions, queues, nodes, applications of a partition.

Decides statuses, error texts and headers as Apache YuniKorn's REST interface does. Never changes anything. Over TCP it
wants a token like everything else, unless the service was told to let everybody read.

Users see no one else's work through it: who is no administrator gets his own applications, and nodes without the works
of others.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response

from fairlead.core.lifecycle import State
from fairlead.core.partition import Partition
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.scheduler import Scheduler
from fairlead.service.desk import Desk, DeskOf, reader_of
from fairlead.service.errors import ErrorAnswer
from fairlead.service.yunikorn import shapes

HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, OPTIONS",
    "Access-Control-Allow-Headers": "X-Requested-With,Content-Type,Accept,Origin",
}
CONTENT_TYPE = "application/json; charset=UTF-8"
GZIP_FROM = 1400
ACTIVE = (State.NEW, State.ACCEPTED, State.STARTING, State.RUNNING, State.COMPLETING, State.FAILING, State.RESUMING)

ERROR_SCHEMA = {
    "type": "object",
    "properties": {
        "status_code": {"type": "integer"},
        "message": {"type": "string"},
        "description": {"type": "string"},
    },
    "required": ["status_code", "message", "description"],
}


def _described(what: str, many: bool = True) -> dict[int | str, dict[str, Any]]:
    shape: dict[str, Any] = {"type": "object"}
    error = {"content": {"application/json": {"schema": ERROR_SCHEMA}}}
    body = {"type": "array", "items": shape} if many else shape
    return {
        200: {"description": what, "content": {"application/json": {"schema": body}}},
        400: {"description": "A parameter has no meaning.", **error},
        401: {"description": "Over TCP a token is needed.", **error},
        403: {"description": "This service is not for the caller.", **error},
        404: {"description": "There is no such partition.", **error},
        422: {"description": "A parameter has no meaning here.", "model": ErrorAnswer},
        503: {"description": "The service is stopping.", **error},
    }


class _Plainly(Exception):
    """An error in YuniKorn's shape."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def reader(request: Request) -> Caller | None:
    """Who reads; None: everybody may."""
    return reader_of(request)


router = APIRouter(prefix="/ws/v1", tags=["yunikorn"])
Reader = Annotated["Caller | None", Depends(reader)]


def _answer(request: Request, status: int, content: Any) -> Response:
    body = msgspec.json.encode(content, order="sorted") + b"\n"
    headers = dict(HEADERS)
    if len(body) >= GZIP_FROM and _wants_gzip(request.headers.get("accept-encoding", "")):
        body = gzip.compress(body, 5)
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    headers["Content-Type"] = CONTENT_TYPE
    return Response(body, status, headers)


def _wants_gzip(accepted: str) -> bool:
    for part in accepted.split(","):
        name, _, quality = part.strip().partition(";")
        if name.strip().lower() == "gzip":
            return quality.replace(" ", "") != "q=0"
    return False


async def _ask(desk: Desk, request: Request, ask: Callable[[Scheduler], Any]) -> Response:
    try:
        return _answer(request, 200, await desk.read(lambda scheduler, _: ask(scheduler)))
    except _Plainly as error:
        status, message = error.status, error.message
    except Refusal as refusal:
        status, message = 503, refusal.message
    return _answer(request, status, {"status_code": status, "message": message, "description": message})


def _partition(scheduler: Scheduler, name: str) -> Partition:
    found = scheduler.cluster.partitions.get(name)
    if found is None:
        raise _Plainly(404, "Partition not found")
    return found


def _sees(desk: Desk, who: Caller | None) -> Callable[[str], bool]:
    """Whether the reader may see the application of this id."""
    if who is None or who.is_admin:
        return lambda _: True

    def may_see(key: str) -> bool:
        work = desk.workplace.works.get(key)
        return work is not None and who.may_see(work)

    return may_see


def _without_others(node: dict[str, Any], may_see: Callable[[str], bool]) -> dict[str, Any]:
    """A node without the works that the reader may not see."""
    running = [each for each in node.pop("allocations", ()) if may_see(each["applicationId"])]
    reserved = [key for key in node.pop("reservations", ()) if may_see(key)]
    return node | ({"allocations": running} if running else {}) | ({"reservations": reserved} if reserved else {})


@router.get("/clusters", response_class=Response, responses=_described("One entry a partition."))
async def clusters(request: Request, desk: DeskOf, who: Reader) -> Response:
    """The clusters."""
    del who
    build = {"buildVersion": desk.version, "buildDate": "", "isPluginVersion": "false"}

    def ask(scheduler: Scheduler) -> list[dict[str, Any]]:
        return [shapes.cluster(p, desk.started_at_ms, build) for p in scheduler.cluster.partitions.values()]

    return await _ask(desk, request, ask)


@router.get("/partitions", response_class=Response, responses=_described("All partitions."))
async def partitions(request: Request, desk: DeskOf, who: Reader) -> Response:
    """The partitions with their totals."""
    del who

    def ask(scheduler: Scheduler) -> list[dict[str, Any]]:
        return [shapes.partition(p, desk.started_at_ms) for p in scheduler.cluster.partitions.values()]

    return await _ask(desk, request, ask)


@router.get("/partition/{partition}/queues", response_class=Response, responses=_described("The whole tree.", False))
async def queues(partition: str, request: Request, desk: DeskOf, who: Reader) -> Response:
    """The queue tree of a partition."""
    del who

    def ask(scheduler: Scheduler) -> dict[str, Any]:
        part = _partition(scheduler, partition)
        return shapes.queue(part.root, subtree=True, partition_name=part.name)

    return await _ask(desk, request, ask)


@router.get("/partition/{partition}/nodes", response_class=Response, responses=_described("Its nodes."))
async def nodes(partition: str, request: Request, desk: DeskOf, who: Reader) -> Response:
    """The nodes of a partition with what runs on them."""
    may_see = _sees(desk, who)

    def ask(scheduler: Scheduler) -> list[dict[str, Any]]:
        part = _partition(scheduler, partition)
        shown = [shapes.node(node, part.name) for node in part.nodes.nodes.values()]
        return [_without_others(node, may_see) for node in shown]

    return await _ask(desk, request, ask)


@router.get(
    "/partition/{partition}/applications/{state}", response_class=Response, responses=_described("Its applications.")
)
async def applications(
    partition: str,
    state: str,
    request: Request,
    desk: DeskOf,
    who: Reader,
    status: Annotated[str | None, Query(description="Only active ones in this state.")] = None,
) -> Response:
    """The applications of a partition: active (all, or of one status), rejected, completed."""
    may_see = _sees(desk, who)

    def ask(scheduler: Scheduler) -> list[dict[str, Any]]:
        part = _partition(scheduler, partition)
        kept = {"active": part.applications, "rejected": part.rejected, "completed": part.ended}.get(state.lower())
        if kept is None:
            raise _Plainly(400, "Only following application states are allowed: active, rejected, completed")
        wanted = _status(status) if state.lower() == "active" and status is not None else None
        found = [a for a in kept.values() if may_see(a.id) and (wanted is None or a.state.value.lower() == wanted)]
        return shapes.applications(found, part.name)

    return await _ask(desk, request, ask)


def _status(status: str) -> str:
    known = [state.value.lower() for state in ACTIVE]
    if status.lower() not in known:
        raise _Plainly(400, f"Only following active statuses are allowed: {', '.join(known)}")
    return status.lower()
