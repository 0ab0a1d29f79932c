"""How a refusal looks over HTTP.

Decides the status and the one shape of every error: `Problem`, as problem+json (RFC 9457). Never decides what
is refused. Invariant: whatever goes wrong, the answer has this shape, its type stands in docs/api.md, and
its detail says what to do.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from fairlead.runtime import Refusal
from fairlead.service.http.wrong_values import shown
from fairlead.wire.cluster import Problem

log = logging.getLogger("fairlead.service")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem."""

    status: int
    title: str


KINDS: Mapping[str, Kind] = {
    "invalid": Kind(422, "A value in the request is wrong; `field` says which."),
    "malformed": Kind(400, "The request cannot be read."),
    "unauthorized": Kind(401, "Over TCP a token is needed."),
    "forbidden": Kind(403, "The caller may not do this."),
    "not-found": Kind(404, "There is no such thing, or it is not the caller's."),
    "method-not-allowed": Kind(405, "This path has another method."),
    "conflict": Kind(409, "It does not fit the state that things are in."),
    "too-large": Kind(413, "The body is too large."),
    "unsupported-media-type": Kind(415, "The body is of a type that is not read here."),
    "too-many": Kind(429, "Too many at once."),
    "internal": Kind(500, "A fault in the service; nothing was done."),
    "unavailable": Kind(503, "Nothing can be recorded at the moment, or the service is stopping; nothing was done."),
}
"""By code, which is also the end of `type`."""
TYPE = "urn:fairlead:problem:"
PROBLEM = "application/problem+json"
ALWAYS = frozenset({400, 401, 403, 422, 500, 503})
"""What every route can answer."""
DETAILS_SHOWN = 50


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that can answer with these errors, beside those that every route can."""
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        kind.status: {"description": kind.title, "content": {PROBLEM: schema}}
        for kind in KINDS.values()
        if kind.status in ALWAYS or kind.status in statuses
    }


def answer(
    code: str,
    message: str,
    field: str | None = None,
    details: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error as a response."""
    kind = KINDS.get(code, KINDS["malformed"])
    problem = Problem(
        type=f"{TYPE}{code}",
        title=kind.title,
        status=kind.status,
        detail=message,
        code=code,
        field=field,
        details=[dict(each) for each in details[:DETAILS_SHOWN]],
    )
    return Response(msgspec.json.encode(problem), kind.status, dict(headers or {}), PROBLEM)


def from_refusal(refusal: Refusal, path: str = "") -> Response:
    """The response to a refused request; below /ws/ and /debug/ in the shape of Apache YuniKorn."""
    headers = {"WWW-Authenticate": 'Bearer realm="fairlead"'} if refusal.code == "unauthorized" else {}
    if refusal.code in ("unavailable", "too-many"):
        headers["Retry-After"] = "1"
    if path.startswith(("/ws/", "/debug/")):
        return as_yunikorn(status_of(refusal), refusal.message, headers)
    return answer(refusal.code, refusal.message, refusal.field, refusal.details, headers)


def status_of(refusal: Refusal) -> int:
    """The HTTP status of a refusal."""
    return KINDS.get(refusal.code, KINDS["malformed"]).status


def as_yunikorn(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as Apache YuniKorn shows it."""
    body = {"status_code": status, "message": message, "description": message}
    return Response(msgspec.json.encode(body) + b"\n", status, dict(headers or {}), "application/json; charset=UTF-8")


def install(app: FastAPI) -> None:
    """Make every error of the application have this shape."""

    @app.exception_handler(Refusal)
    async def refused(request: Request, refusal: Refusal) -> Response:
        return from_refusal(refusal, request.url.path)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return from_problems(error.errors())

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return _from_http(request, error)

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        log.error("a fault while answering %s %s", request.method, request.url.path, exc_info=error)
        message = f"a fault in the service: {type(error).__name__}; its log says more"
        return from_refusal(Refusal("internal", message), request.url.path)


def _from_http(request: Request, error: HTTPException) -> Response:
    path, headers = request.url.path, error.headers or {}
    if path.startswith(("/ws/", "/debug/")):
        return as_yunikorn(error.status_code, str(error.detail), headers)
    if error.status_code == 404:
        return answer("not-found", f"there is nothing at {path}; /api/v1/openapi.json lists what there is")
    if error.status_code == 405:
        message = f"{request.method} is not possible at {path}; /api/v1/openapi.json lists what is"
        return answer("method-not-allowed", message, headers=headers)
    return answer("too-large" if error.status_code == 413 else "malformed", str(error.detail), headers=headers)


def from_problems(problems: Sequence[Any]) -> Response:
    """The response to a request whose parameters are wrong: the first as a sentence, all of them as details."""
    found = [{"field": str(p["loc"][1]), "message": _sentence(p)} for p in problems]
    first, more = found[0], f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return answer("invalid", f"{first['field']}: {first['message']}{more}", first["field"], found)


_WANTED = {
    "int_parsing": "must be a whole number",
    "bool_parsing": "must be true or false",
    "float_parsing": "must be a number",
}


def _sentence(problem: Mapping[str, Any]) -> str:
    kind = str(problem["type"])
    if kind == "missing":
        return "is required"
    if kind in _WANTED:
        return f"{_WANTED[kind]}, not {shown(problem.get('input'))}"
    text = str(problem["msg"]).removeprefix("Input ").removeprefix("String ")
    return text if text[:2].isupper() else text[:1].lower() + text[1:]
