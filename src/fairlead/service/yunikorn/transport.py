"""How /ws/v1 speaks HTTP: which path a request means, values in paths and queries, and the form of its JSON.

Decides what Apache YuniKorn's router decides before any handler, as far as its web page and scripts depend on it.
Starlette's middleware does the rest (other origins, compression). Never looks at the books.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import msgspec
from fastapi import Response
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.runtime import Refusal

JSON = "application/json; charset=UTF-8"
YAML = "application/x-yaml; charset=UTF-8"
TEXT = "text/plain; charset=utf-8"
GZIP_FROM = 1400
PREFIXES = ("/ws/", "/debug/")
VALIDATE = "/ws/v1/validate-conf"
"""The one path with POST."""


# -- answers ------------------------------------------------------------------------------------------------------


def answer(content: Any, *, pretty: bool = False) -> Response:
    """An answer as JSON: names sorted, a newline at the end."""
    body = content if isinstance(content, bytes) else as_text(content, pretty=pretty)
    return Response(body, headers={"Content-Type": JSON})


def as_text(content: Any, *, pretty: bool = False) -> bytes:
    """Values as JSON as it is answered."""
    body = msgspec.json.encode(content, order="sorted")
    return (msgspec.json.format(body, indent=2) if pretty else body) + b"\n"


def wrong(message: str) -> Refusal:
    """A value that has no meaning."""
    return Refusal("malformed", message)


def missing(message: str) -> Refusal:
    """Something that is not there."""
    return Refusal("not-found", message)


# -- values in paths ----------------------------------------------------------------------------------------------


def unescaped(text: str) -> str:
    """A value of a path with its second layer of escapes taken off, as in a query. Raises `Refusal`."""
    broken = re.search(r"%(?![0-9A-Fa-f]{2}).{0,2}", text)
    if broken is not None:
        raise wrong(f'invalid URL escape "{broken.group()}"')
    return unquote(text.replace("+", " "), errors="replace")


def whole(text: str) -> str:
    """A value of a path as it was meant: the front keeps its slashes escaped."""
    return text.replace("%2F", "/")


def number(name: str, text: str | None, default: int) -> int:
    """A number of a query, 0 or more. Raises `Refusal`."""
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise wrong(f"{name}: {text[:80]!r} is no whole number from 0 to {10**20 - 1}")
    return int(text)


# -- the front ----------------------------------------------------------------------------------------------------


class Front:
    """Stands before the application for everything below /ws/ and /debug/: which path is meant.

    A path with another case, or a slash too many, is answered by a redirection to the one that there is. A slash that
    is written `%2F` belongs to the value.
    """

    def __init__(self, app: ASGIApp, known: Iterable[str]) -> None:
        """`known`: the templates of the routes, such as `/ws/v1/partition/{partition}/queues`."""
        self._app = app
        packed = GZipMiddleware(app, minimum_size=GZIP_FROM, compresslevel=5)
        self._below = CORSMiddleware(packed, allow_origins=["*"], allow_methods=["GET", "POST", "OPTIONS"])
        self._known = [template.split("/") for template in known]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or not str(scope["path"]).lower().startswith(PREFIXES):
            await self._app(scope, receive, send)
            return
        raw = bytes(scope.get("raw_path") or str(scope["path"]).encode()).split(b"?")[0].decode("latin-1")
        known = next((path for parts in self._known if (path := mended(parts, raw)) is not None), None)
        target = known or raw
        if target != raw:
            query = bytes(scope["query_string"]).decode("latin-1")
            reply = moved(target + (f"?{query}" if query else ""), 301 if scope["method"] == "GET" else 308)
            await CORSMiddleware(reply, allow_origins=["*"])(scope, receive, send)
            return
        if known and scope["method"] == "OPTIONS" and "access-control-request-method" not in Headers(scope=scope):
            # Not what a browser asks before it asks: that the CORS middleware answers.
            possible = "OPTIONS, POST" if known == VALIDATE else "GET, OPTIONS"
            reply = Response(headers={"Allow": possible})
            await CORSMiddleware(reply, allow_origins=["*"])(scope, receive, send)
            return
        path = "/".join(unquote(segment, errors="replace").replace("/", "%2F") for segment in raw.split("/"))
        await self._below(dict(scope) | {"path": path}, receive, send)


def mended(parts: list[str], raw: str) -> str | None:
    """The path of a route that was meant, whatever its case and slashes; None when it is another route."""
    given = ["", *(segment for segment in raw.split("/") if segment)]
    if len(given) != len(parts):
        return None
    pairs = list(zip(parts, given, strict=True))
    if not all(part.startswith("{") or part.lower() == segment.lower() for part, segment in pairs):
        return None
    return "/".join(segment if part.startswith("{") else part for part, segment in pairs)


def moved(target: str, status: int = 301) -> Response:
    """A redirection."""
    return Response(status_code=status, headers={"Location": target})
