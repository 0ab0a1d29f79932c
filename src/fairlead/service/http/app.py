"""The application of a place: all routes, one shape of errors, a bound on what is read.

Decides which routes there are. Never decides anything behind them. Invariant: no request body larger than the bound is
ever held in memory, and no page of this service asks another host for anything.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead.runtime import Refusal
from fairlead.service.http import cluster, errors, line, questions
from fairlead.service.http.connections import ENDLESS
from fairlead.service.http.shaped import ShapedRoute, content, describe, shown
from fairlead.service.http.turns import Turns
from fairlead.service.metrics import CONTENT_TYPE, scrape
from fairlead.service.place import Place, PlaceOf, ReaderOf
from fairlead.service.yunikorn import watch_routes as yunikorn
from fairlead.service.yunikorn.transport import Front
from fairlead.wire.cluster import Health, Problem

MOST_BYTES = 8 * 2**20
TOO_LARGE = f"the body is larger than {MOST_BYTES} bytes; send the jobs in several requests"

outside = APIRouter(tags=["service"], route_class=ShapedRoute)


@outside.get("/healthz", responses={503: content(Health, "Something is wrong; `problems` says what.")})
async def get_health(place: PlaceOf) -> Health | Response:
    """Whether it is worth keeping. Asks for no token, and says nothing about anybody."""
    failing = place.failing()
    health = Health(status="failing" if failing else "ok", problems=place.problems() if failing else [])
    return shown(health, 503 if failing else 200)


@outside.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "The text format.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **errors.documented(),
    },
)
async def get_metrics(place: PlaceOf, reader: ReaderOf) -> Response:
    """Figures for Prometheus: the service's own, and the same under the names of Apache YuniKorn."""
    del reader
    return Response(await scrape(place), media_type=CONTENT_TYPE)


MAY_REPEAT = {"/api/v1/jobs": frozenset({"state", "queue", "user", "name", "tag"})}
"""Parameters of a query of which several values make sense, by path."""


async def given_once(request: Request) -> None:
    """Refuse a parameter that is given twice: only one of the two would count, and nobody knows which."""
    given, may_repeat = request.query_params, MAY_REPEAT.get(request.scope["path"], frozenset())
    for name in given:
        if name not in may_repeat and len(given.getlist(name)) > 1:
            raise Refusal("invalid", f"{name} is given more than once; give one value", field=name)


def operation_id(route: APIRoute) -> str:
    """What a generated client calls this operation: the function's name, `getJob`; in /ws/v1 `yunikornQueues`."""
    name = f"yunikorn_{route.name}" if "yunikorn" in route.tags else str(route.name)
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


SHARED = (questions.router, cluster.router, cluster.usage, line.router, outside)
"""Routes of every place."""


def make_app(place: Place) -> FastAPI:
    """The application of one place."""
    app = FastAPI(
        title="Fairlead",
        version=place.version,
        summary="Priority-aware scheduling of jobs.",
        description=(
            "Over the Unix socket of a machine the kernel says who calls. Over TCP send `Authorization: Bearer TOKEN`; "
            "on a cluster one that the cluster knows. Errors are application/problem+json (RFC 9457)."
        ),
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        generate_unique_id_function=operation_id,
    )
    app.state.place = place
    errors.install(app)
    routers = [*SHARED, *place.routers()]
    app.state.routes = [each for router in routers for each in router.routes]
    for router in routers:
        app.include_router(router, dependencies=[Depends(given_once)])
    for router in yunikorn.ROUTERS:
        app.include_router(router)
    app.add_middleware(Bounded)
    app.add_middleware(Front, known=tuple(yunikorn.known()))
    app.add_middleware(Turns, user_of=place.user_of)
    app.add_middleware(Heads)
    _describe(app, routers)
    return app


def _describe(app: FastAPI, routers: list[APIRouter]) -> None:
    make = app.openapi

    def described() -> dict[str, Any]:
        schema = make()
        describe(schema, routers, also=(Problem,))
        schemes = schema["components"].setdefault("securitySchemes", {})
        schemes["token"] = {"type": "http", "scheme": "bearer", "description": "Over TCP; not on the Unix socket."}
        schema["security"] = [{"token": []}]
        schema["paths"].get("/healthz", {}).get("get", {})["security"] = []
        return schema

    app.openapi = described  # type: ignore[method-assign]


async def _drain(receive: Receive) -> None:
    """Read on and throw away, up to a second bound: a client that is cut off while it sends never reads why.

    For how long that may go on is bounded, too (`connections.Patience`).
    """
    left = 128 * MOST_BYTES
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return


class Heads:
    """Has HEAD answered as GET is, whose content uvicorn leaves out; but not where that has no end, nor as YuniKorn."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["method"] == "HEAD" and not _has_only_get(scope):
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


def _has_only_get(scope: Scope) -> bool:
    path = scope["path"]
    is_endless = path == "/api/v1/events" or ENDLESS.fullmatch(path) or b"follow=" in scope["query_string"]
    return bool(is_endless) or path.startswith(("/ws/", "/debug/"))


class Bounded:
    """Refuses bodies that are too large, whether they say so at the start or not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or ENDLESS.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > MOST_BYTES:
            await _drain(receive)
            refusal = errors.answer("too-large", TOO_LARGE, headers={"Connection": "close"})
            await refusal(scope, receive, send)
            return
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MOST_BYTES:
                await _drain(receive)
                raise HTTPException(413, TOO_LARGE, {"Connection": "close"})
            return message

        await self._app(scope, bounded, send)
