"""Routes whose bodies and answers are shapes of `fairlead.wire`, and lists of them, page by page.

Decides how a shape is read from a request, how one is answered, how both stand in the OpenAPI document, and where a
page begins. Never knows a resource. Invariant: what is answered is what the route declares, by its return type; while
things come and go, each thing that stays is on one page, also when the thing that served as cursor is gone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from heapq import nlargest, nsmallest
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from fairlead.runtime import Refusal
from fairlead.service.http.errors import documented, read_otherwise
from fairlead.service.place import caller_of
from fairlead.wire.fields import Page, Shape

T = TypeVar("T")
P = TypeVar("P", bound=Page)
REF = "#/components/schemas/{name}"
LARGE = 64 * 1024
"""A body of more bytes is read beside the loop."""
Order = int | str | tuple[int | str, ...]
"""What a thing is sorted by; no two things of a list have the same."""
MOST = 1000


class ShapedRoute(APIRoute):
    """A route that reads the shape in its signature and answers the one that it returns."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        signature = inspect.signature(endpoint, eval_str=True)
        answered = _shape_in(signature.return_annotation)
        if answered is not None:
            # What msgspec keeps of the types is filled now, by one thread: two at once would crash the process.
            msgspec.json.Decoder(answered)
            body = next((p for p in signature.parameters.values() if _shape_in(p.annotation) is not None), None)
            status = options.get("status_code") or 200
            options["responses"] = {status: content(answered)} | (options.get("responses") or {})
            options |= {"response_model": None, "response_class": Response}
            if body is not None:
                required = body.default is body.empty
                taken = content(_shape_in(body.annotation)) | {"required": required}
                options["openapi_extra"] = {"requestBody": taken} | (options.get("openapi_extra") or {})
                options["responses"] |= {415: documented(415)[415]}
            endpoint = _answering(endpoint, signature, body, status)
        super().__init__(path, endpoint, **options)


def _shape_in(annotation: Any) -> type[Shape] | None:
    """The shape that a parameter is to have, may it be absent or not."""
    offered = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return next((each for each in offered if inspect.isclass(each) and issubclass(each, Shape)), None)


def content(shape: Any, description: str = "") -> dict[str, Any]:
    """A shape as the content of a request or an answer in the OpenAPI document."""
    schema = {"$ref": REF.format(name=shape.__name__)}
    said = description or (shape.__doc__ or "").partition("\n")[0]
    return {"description": said, "content": {"application/json": {"schema": schema}}}


def _answering(
    endpoint: Callable[..., Any], signature: inspect.Signature, body: inspect.Parameter | None, status: int
) -> Callable[..., Any]:
    async def answering(_request: Request, **given: Any) -> Response:
        return shown(await endpoint(**given), status, _request.app.state.place.encode)

    found, shapes = list(signature.parameters.values()), [_shape_in(signature.return_annotation)]
    found.append(inspect.Parameter("_request", inspect.Parameter.KEYWORD_ONLY, annotation=Request))
    if body is not None:
        # Last: who may not ask at all learns that first.
        found.remove(body)
        shape = _shape_in(body.annotation)
        assert shape is not None
        shapes.append(shape)
        reading = Annotated[Any, Depends(_reader(shape, body.default is body.empty))]
        found.append(body.replace(annotation=reading, default=body.empty))
    found = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in found]
    answering.__name__, answering.__doc__ = endpoint.__name__, endpoint.__doc__
    answering.__signature__ = signature.replace(parameters=found, return_annotation=Response)  # type: ignore[attr-defined]
    answering.shapes = shapes  # type: ignore[attr-defined]
    return answering


def shown(content: Any, status: int = 200, encode: Callable[[Any], bytes] = msgspec.json.encode) -> Response:
    """A shape as an answer; a response, and what is encoded already, as they are."""
    if isinstance(content, Response):
        return content
    return Response(content if isinstance(content, bytes) else encode(content), status, media_type="application/json")


def _reader(shape: type[Shape], required: bool) -> Callable[[Request], Any]:
    decoder: msgspec.json.Decoder[Shape] = msgspec.json.Decoder(shape)

    async def read(request: Request) -> Shape | None:
        raw = await request.body()
        if not raw and not required:
            return None
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise Refusal("unsupported-media-type", f"the body is {kind}; send application/json")
        return await run_in_threadpool(decoded, raw) if len(raw) > LARGE else decoded(raw)

    def decoded(raw: bytes) -> Shape:
        try:
            return decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return read_otherwise(raw, shape, error)

    return read


def describe(document: dict[str, Any], routers: Iterable[APIRouter], also: Iterable[type[Shape]]) -> None:
    """Put the shapes of all routes, and some more, into an OpenAPI document."""
    routes = (route for router in routers for route in router.routes if isinstance(route, ShapedRoute))
    shapes = {*also, *(shape for route in routes for shape in getattr(route.endpoint, "shapes", ()))}
    _, components = msgspec.json.schema_components(sorted(shapes, key=lambda each: each.__name__), ref_template=REF)
    document.setdefault("components", {}).setdefault("schemas", {}).update(components)


async def given_known(request: Request) -> None:
    """Refuse a parameter that there is not: a filter whose name is misspelt would let everything pass."""
    parameters = _parameters(request.scope["route"]) if request.query_params else ()
    for name in request.query_params:
        if name not in parameters:
            known = "; /api/v1/openapi.json has those that there are"
            raise Refusal("invalid", f"{name[:60]!r} is no parameter of this path{known}", field=name)


def _parameters(route: APIRoute) -> frozenset[str]:
    """The names of all that a query to this route may have."""
    needs = [route.dependant]
    for each in needs:
        needs += each.dependencies
    return frozenset(field.alias for each in needs for field in each.query_params)


def api(tag: str, prefix: str = "") -> APIRouter:
    """Routes below `/api/v1`: each asks first who calls, and with which parameters."""
    knows = [Depends(caller_of), Depends(given_known)]
    return APIRouter(
        prefix=f"/api/v1{prefix}", tags=[tag], route_class=ShapedRoute, dependencies=knows, responses=documented()
    )


# -- pages of a list ----------------------------------------------------------------------------------------------


class Pages(NamedTuple):
    """Which page of a list is asked for."""

    limit: int
    after: str | None

    def of(
        self,
        page: type[P],
        found: Iterable[T],
        order: Callable[[T], Any],
        show: Callable[[T], Any] = lambda each: each,
        *,
        backwards: bool = False,
    ) -> P:
        """The page of what was found, each thing as `show` has it. Raises `Refusal` for a cursor that is none."""
        rest = things = list(found)
        if self.after is not None:
            try:
                begin = msgspec.json.decode(self.after, type=Order)
                rest = [thing for thing in things if (order(thing) < begin if backwards else order(thing) > begin)]
            except (msgspec.DecodeError, TypeError):
                said = f"{self.after[:60]!r} is no cursor; give `next` of the page before"
                raise Refusal("invalid", said, field="after") from None
        kept = (nlargest if backwards else nsmallest)(self.limit, rest, key=order)
        following = msgspec.json.encode(order(kept[-1])).decode() if kept and len(rest) > self.limit else None
        name = next(name for name in page.__struct_fields__ if name not in Page.__struct_fields__)
        return page(**{name: [show(each) for each in kept]}, next=following, total=len(things))


def pages(usual: int) -> Any:
    """The dependency of a list that gives so many things unless it is told otherwise."""

    async def asked(
        limit: Annotated[int, Query(ge=1, le=MOST, description="At most so many.")] = usual,
        after: Annotated[
            str | None, Query(max_length=2000, description="Go on after this: `next` of the page before.")
        ] = None,
    ) -> Pages:
        return Pages(limit, after)

    return Depends(asked)


PagesOf = Annotated[Pages, pages(MOST)]
