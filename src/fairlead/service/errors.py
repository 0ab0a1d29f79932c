"""How a refusal looks over HTTP.

Decides the status and the one shape of every error. Never decides what is refused. Invariant: whatever goes wrong, the
answer is `{"error": {"code", "message", "field", "details"}}`, and the message says what to do.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from fairlead.runtime import Refusal

log = logging.getLogger("fairlead.service")

STATUS: Mapping[str, int] = {
    "invalid": 422,
    "malformed": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    "conflict": 409,
    "too-large": 413,
    "too-many": 429,
    "internal": 500,
    "unavailable": 503,
}
DETAILS_SHOWN = 50


class ErrorBody(BaseModel):
    """What was wrong."""

    code: str = Field(description="A fixed word for programs.")
    message: str = Field(description="One sentence that says what to do.")
    field: str | None = Field(description="The path of the offending value in the request, or null.")
    details: list[dict[str, Any]] = Field(description="Every problem, when there are several.")


class ErrorAnswer(BaseModel):
    """The body of every answer with a status of 400 or more."""

    error: ErrorBody


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that can answer with these errors, beside those that every route can."""
    texts = {
        400: "The request cannot be read.",
        401: "Over TCP a token is needed.",
        403: "The caller may not do this.",
        404: "There is no such thing, or it is not the caller's.",
        409: "It does not fit the state that things are in.",
        413: "The body is too large.",
        422: "A value in the request is wrong; `field` says which.",
        429: "Too many at once.",
        500: "A fault in the service; nothing was done.",
        503: "Nothing can be recorded at the moment, or the service is stopping; nothing was done.",
    }
    return {
        status: {"model": ErrorAnswer, "description": texts[status]}
        for status in sorted({400, 401, 403, 422, 500, 503, *statuses})
    }


def answer(
    status: int,
    code: str,
    message: str,
    field: str | None = None,
    details: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error as a response."""
    body = {"error": {"code": code, "message": message, "field": field, "details": list(details)[:DETAILS_SHOWN]}}
    return Response(msgspec.json.encode(body), status, dict(headers or {}), "application/json")


def from_refusal(refusal: Refusal, path: str = "") -> Response:
    """The response to a refused request; below /ws/ and /debug/ in the shape of Apache YuniKorn."""
    headers = {"WWW-Authenticate": 'Bearer realm="fairlead"'} if refusal.code == "unauthorized" else {}
    if refusal.code in ("unavailable", "too-many"):
        headers["Retry-After"] = "1"
    status = STATUS.get(refusal.code, 400)
    if path.startswith(("/ws/", "/debug/")):
        return as_yunikorn(status, refusal.message, headers)
    return answer(status, refusal.code, refusal.message, refusal.field, refusal.details, headers)


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
    if error.status_code == 404:
        return answer(404, "not-found", f"there is nothing at {path}; /api/v1/openapi.json lists what there is")
    if error.status_code == 405:
        message = f"{request.method} is not possible at {path}; /api/v1/openapi.json lists what is"
        return answer(405, "method-not-allowed", message, headers=headers)
    code = "malformed" if error.status_code == 400 else "too-large" if error.status_code == 413 else "refused"
    return answer(error.status_code, code, str(error.detail), headers=headers)


def from_problems(problems: Sequence[Any]) -> Response:
    """The response to a request whose values are wrong: the first problem as a sentence, all of them as details."""
    found = [_problem(p) for p in problems]
    first = found[0]
    if first["type"] == "json_invalid":
        return answer(400, "malformed", f"the body is not valid JSON: {first['message']}", None, found)
    place = f"{first['field']}: " if first["field"] else ""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return answer(422, "invalid", f"{place}{first['message']}{more}", first["field"] or None, found)


def _problem(problem: Mapping[str, Any]) -> dict[str, Any]:
    location = [part for part in problem["loc"] if part not in ("body", "query", "path", "header")]
    kind = str(problem["type"])
    field = "" if kind == "json_invalid" else _path(location)
    return {"field": field, "message": _sentence(kind, problem), "type": kind}


def _path(location: Sequence[str | int]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path


_WANTED = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "string_unicode": "must be valid Unicode",
}


def _sentence(kind: str, problem: Mapping[str, Any]) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return "there is no such field; look for a spelling mistake, or see /api/v1/openapi.json"
    if kind == "json_invalid":
        return str((problem.get("ctx") or {}).get("error", problem["msg"]))
    if kind in _WANTED:
        return f"{_WANTED[kind]}, not {_shown(problem.get('input'))}"
    text = str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    text = text.removeprefix("List ").removeprefix("Dictionary ")
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
