"""How a refusal looks over HTTP, and what is wrong with the body of a request, in words.

Decides the status and the one shape of every error: `Problem`, as problem+json (RFC 9457), and the sentences about what
is wrong, with the place and what to write. Never decides what is refused, and never reads a body that is right.
Invariant: whatever goes wrong, the answer has this shape, its type stands in docs/api.md, and its detail says what to
do; a place is a path from the top of the body, such as `jobs[3].resources`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from inspect import isclass
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from fairlead.local.supervisor.claims import BROKEN_DISK, PASSING
from fairlead.runtime import Refusal
from fairlead.wire.cluster import Problem
from fairlead.wire.fields import Shape, Wrong, shortened

log = logging.getLogger("fairlead.service")

NO_THREAD = "can't start new thread"
"""Python's words, in a RuntimeError, where the kernel refuses one."""


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
    "too-slow": Kind(408, "The request did not come in time."),
    "conflict": Kind(409, "It does not fit the state that things are in."),
    "too-large": Kind(413, "The body is too large."),
    "unsupported-media-type": Kind(415, "The body is of a type that is not read here."),
    "too-many": Kind(429, "Too many at once."),
    "headers-too-large": Kind(431, "The headers are too large."),
    "internal": Kind(500, "A fault in the service; nothing was done."),
    "unavailable": Kind(503, "Nothing can be recorded at the moment, or the service is stopping; nothing was done."),
    "disk-full": Kind(507, "The disk of the state directory is full; what runs can be cancelled all the same."),
}
"""By code, which is also the end of `type`."""
TYPE = "urn:fairlead:problem:"
PROBLEM = "application/problem+json"
ALWAYS = frozenset({400, 401, 403, 408, 413, 422, 429, 431, 500, 503})
"""What every route can answer: by what is asked, or by how it is sent and how many connections there are."""
AGAIN = frozenset({"unavailable", "too-many"})
"""Who is answered so is told when to try again."""
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
    kind, headers = KINDS.get(code, KINDS["malformed"]), dict(headers or {})
    if code in AGAIN:
        headers.setdefault("Retry-After", "1")
    problem = Problem(
        type=f"{TYPE}{code}",
        title=kind.title,
        status=kind.status,
        detail=shortened(message),
        code=code,
        field=field,
        details=[_detail(each) for each in details[:DETAILS_SHOWN]],
    )
    return Response(msgspec.json.encode(problem), kind.status, headers, PROBLEM)


def _detail(said: Mapping[str, Any]) -> dict[str, Any]:
    return {**said, "message": shortened(str(said["message"]))} if "message" in said else dict(said)


def written(said: Response) -> bytes:
    """A whole answer as it goes over a connection that ends with it."""
    status = HTTPStatus(said.status_code)
    head = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    head += [name + b": " + value for name, value in said.raw_headers]
    return b"\r\n".join([*head, b"", b""]) + bytes(said.body)


def from_refusal(refusal: Refusal, path: str = "") -> Response:
    """The response to a refused request; below /ws/ and /debug/ in the shape of Apache YuniKorn."""
    headers = {"WWW-Authenticate": 'Bearer realm="fairlead"'} if refusal.code == "unauthorized" else {}
    if refusal.code in AGAIN:
        headers["Retry-After"] = str(refusal.after_s)
    if path.startswith(("/ws/", "/debug/")):
        return as_yunikorn(status_of(refusal), refusal.message, headers)
    return answer(refusal.code, refusal.message, refusal.field, refusal.details, headers)


def status_of(refusal: Refusal) -> int:
    """The HTTP status of a refusal."""
    return KINDS.get(refusal.code, KINDS["malformed"]).status


def as_yunikorn(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as Apache YuniKorn shows it."""
    message = shortened(message)
    body = {"status_code": status, "message": message, "description": message}
    return Response(msgspec.json.encode(body) + b"\n", status, dict(headers or {}), "application/json; charset=UTF-8")


def install(app: FastAPI) -> None:
    """Make every error of the application have this shape."""

    @app.exception_handler(Refusal)
    async def refused(request: Request, refusal: Refusal) -> Response:
        return from_refusal(refusal, request.scope["path"])

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return from_problems(error.errors())

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return _from_http(request, error)

    @app.exception_handler(ClientDisconnect)
    async def gone(_request: Request, _error: ClientDisconnect) -> Response:
        return answer("malformed", "the connection ended before the body did")  # Nobody is there to read it.

    @app.exception_handler(RuntimeError)
    async def without_thread(request: Request, error: RuntimeError) -> Response:
        if str(error) != NO_THREAD:
            raise error
        message = "this machine has no memory for a thread, or no more threads; nothing was done: ask again"
        return from_refusal(Refusal("unavailable", message), request.scope["path"])

    @app.exception_handler(OSError)
    async def not_now(request: Request, error: OSError) -> Response:
        if error.errno not in PASSING | BROKEN_DISK:
            raise error
        log.warning("%s %s cannot be answered now: %s", request.method, request.scope["path"], error)
        message = f"this machine cannot serve that now: {error.strerror}; nothing was done: ask again"
        return from_refusal(Refusal("unavailable", message), request.scope["path"])

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        log.error("a fault while answering %s %s", request.method, request.scope["path"], exc_info=error)
        message = f"a fault in the service: {type(error).__name__}; its log says more"
        return from_refusal(Refusal("internal", message), request.scope["path"])


def _from_http(request: Request, error: HTTPException) -> Response:
    # The path is not that of the URL, which has the name that the caller gave the service, or the path of its socket.
    path, headers = request.scope["path"], error.headers or {}
    if path.startswith(("/ws/", "/debug/")) and error.status_code != 413:
        return as_yunikorn(error.status_code, str(error.detail), headers)
    if error.status_code == 404:
        # The keys of pods alone have one, on a cluster.
        has_slash = b"%2f" in request.scope.get("raw_path", b"").lower() and not path.startswith("/api/v1/jobs/")
        why = ": nothing has a slash in its name" if has_slash else ": no path ends with a slash" * path.endswith("/")
        return answer("not-found", f"there is nothing at {path}{why}; /api/v1/openapi.json lists what there is")
    if error.status_code == 405:
        # The router knows the first route of the path alone.
        others = (each.methods for each in request.app.state.routes if each.path_regex.match(path))
        possible = ", ".join(sorted(set(headers.get("Allow", "").split(", ")).union(*others)))
        message = f"{request.method} is not possible at {path}, but {possible}; /api/v1/openapi.json lists what is"
        return answer("method-not-allowed", message, headers={"Allow": possible})
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


# -- what is wrong with a body -------------------------------------------------------------------------------------

_PLACE = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]")
Path: TypeAlias = tuple[str | int, ...]
"""A place in a body, step by step: names of entries may hold any sign, so it is made a text only to be shown."""
SOME_ENTRY = "..."
"""The step into an object of which msgspec does not say the name."""
_BOUND = re.compile(r"Expected `(?P<kind>\w+)` (?P<length>of length )?(?P<sign>[<>]=?) (?P<bound>.+)")
_TYPE = re.compile(r"Expected `(?P<wanted>.+)`, got `(?P<got>.+)`")
_FIELD = re.compile(r"Object (?P<which>contains unknown|missing required) field `(?P<name>.*)`", re.DOTALL)
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_UNITS = {"str": "characters", "array": "items", "object": "entries"}
_SIGNS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
UNKNOWN = "there is no such field; look for a spelling mistake, or see /api/v1/openapi.json"


def read_otherwise(raw: bytes, shape: type[Shape], error: msgspec.DecodeError | UnicodeDecodeError) -> Shape:
    """A body that msgspec could not read, if it is only unusual JSON. Raises `Refusal`, which names the place."""
    try:
        body = json.loads(raw, parse_constant=_no_number)
    except RecursionError:
        raise Refusal("malformed", "the body is nested too deeply") from None
    except ValueError as problem:
        raise Refusal("malformed", f"the body is not valid JSON: {problem}") from None
    if not isinstance(error, msgspec.ValidationError):
        # Python reads what msgspec does not, half of a surrogate pair for one; then the place can be told.
        try:
            return msgspec.convert(body, shape)
        except msgspec.ValidationError as found:
            error = found
        except RecursionError:
            raise Refusal("malformed", "the body is nested too deeply") from None
        except UnicodeEncodeError as half:
            said = f"the body has half of a character, {half.object[half.start]!a}; write it whole"
            raise Refusal("malformed", said) from None
    try:
        field, message = _told(body, shape, error)
    except (LookupError, AttributeError, TypeError, ValueError, StopIteration):
        # A name in the body that reads like the place in a message of msgspec.
        field, message = "", f"the body makes no sense: {shown(str(error))}"
    place = f"{field}: " if field else ""
    details = [{"field": field, "message": message}]
    raise Refusal("invalid", f"{place}{message}", field=field or None, details=details) from None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _told(body: Any, shape: type[Shape], error: msgspec.ValidationError) -> tuple[str, str]:
    split = _PLACE.fullmatch(str(error))
    assert split is not None
    what, path = split["what"], _path(split["path"] or "")
    if SOME_ENTRY in path or split["key"]:
        path = _with_name(body, shape, path)
    place = _text(path)
    if isinstance(error.__cause__, Wrong):
        return _joined(place, error.__cause__.field), error.__cause__.message
    if found := _FIELD.fullmatch(what):
        return _joined(place, found["name"]), UNKNOWN if found["which"] == "contains unknown" else "is required"
    if found := _BOUND.fullmatch(what):
        unit = f" {_UNITS[found['kind']]}" if found["length"] else ""
        return place, f"must {'have' if unit else 'be'} {_SIGNS[found['sign']]} {found['bound']}{unit}"
    there = shown(_at(body, path))
    if found := _TYPE.fullmatch(what):
        wanted = " or ".join(
            _KINDS.get(kind, kind) for kind in found["wanted"].replace("int | float", "float").split(" | ")
        )
        return place, f"must be {wanted}, not {there}"
    if what.startswith("Invalid enum value"):
        choices = ", ".join(str(choice) for offer in _offers(_type_at(shape, path)) for choice in get_args(offer))
        return place, f"must be one of {choices}, not {there}"
    return place, what[:1].lower() + what[1:]


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}".strip(".")


def _path(text: str) -> Path:
    """The place that msgspec names."""
    return tuple(
        step["name"] or (SOME_ENTRY if step["index"] == SOME_ENTRY else int(step["index"]))
        for step in _STEP.finditer(text)
    )


def _text(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _at(body: Any, path: Path) -> Any:
    for step in path:
        body = body[step]
    return body


def _with_name(body: Any, shape: type[Shape], path: Path) -> Path:
    """The path with the name of the first wrong entry of an object; msgspec says only which object it is in."""
    at = path.index(SOME_ENTRY) if SOME_ENTRY in path else len(path)
    begin, end = path[:at], path[at + 1 :]
    kinds = get_args(next(each for each in _offers(_type_at(shape, begin)) if get_origin(each) is dict))
    for name, value in _at(body, begin).items():
        try:
            msgspec.convert([name, value], tuple[kinds[0], kinds[1]])  # type: ignore[valid-type]
        except msgspec.ValidationError:
            return (*begin, name, *end)
    return begin


def _type_at(shape: Any, path: Path) -> Any:
    """What a place of a shape may hold."""
    for step in path:
        shape = next(inside for each in _offers(shape) if (inside := _inside(each, step)) is not None)
    return shape


def _inside(offer: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return get_args(offer)[0] if get_origin(offer) is list else None
    if isclass(offer) and issubclass(offer, msgspec.Struct):
        return get_type_hints(offer, include_extras=True).get(step)
    return get_args(offer)[1] if get_origin(offer) is dict else None


def _offers(kind: Any) -> Iterator[Any]:
    """The members of a union, without what is said about them."""
    if get_origin(kind) is Annotated:
        yield from _offers(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from _offers(each)
    else:
        yield kind


def shown(value: Any) -> str:
    """A value in a sentence."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
