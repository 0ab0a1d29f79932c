"""How /ws/v1 speaks HTTP: headers, compression, errors, and which path a request means.

Decides what Apache YuniKorn's router decides before any handler: an unknown method, a trailing slash or a wrong case,
an unknown path. Never looks at the books. Invariant: every answer below /ws/ and /debug/ carries the headers that let a
page of another origin read it.
"""

from __future__ import annotations

import gzip
import html
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import msgspec
from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead.runtime import Refusal
from fairlead.service.errors import STATUS

JSON = "application/json; charset=UTF-8"
YAML = "application/x-yaml; charset=UTF-8"
TEXT = "text/plain; charset=utf-8"
GZIP_FROM = 1400
PREFIXES = ("/ws/", "/debug/")


class Plainly(Exception):
    """An error in YuniKorn's shape."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


# -- answers ------------------------------------------------------------------------------------------------------


def answer(request: Request, content: Any, status: int = 200, *, pretty: bool = False) -> Response:
    """An answer as JSON: names sorted, a newline at the end, compressed when that was asked for and pays."""
    return packed(request, as_text(content, pretty=pretty), JSON, status)


def as_text(content: Any, *, pretty: bool = False) -> bytes:
    """Values as JSON as it is answered."""
    body = msgspec.json.encode(content, order="sorted")
    return (msgspec.json.format(body, indent=2) if pretty else body) + b"\n"


def packed(request: Request, body: bytes, content_type: str, status: int = 200) -> Response:
    """An answer of any type."""
    headers = {"Content-Type": content_type}
    if len(body) >= GZIP_FROM and wants_gzip(request.headers.get("accept-encoding", "")):
        body = gzip.compress(body, 5)
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(body, status, headers)


def wants_gzip(accepted: str) -> bool:
    """Whether `Accept-Encoding` names gzip, and not with `q=0`."""
    for part in accepted.split(","):
        name, _, quality = part.strip().partition(";")
        if name.strip().lower() == "gzip":
            return quality.replace(" ", "") != "q=0"
    return False


def failed(request: Request, status: int, message: str) -> Response:
    """An error."""
    return answer(request, {"status_code": status, "message": message, "description": message}, status)


async def answered(request: Request, question: Awaitable[Any], *, pretty: bool = False) -> Response:
    """What `question` gives, or the error that it raises, as an answer."""
    try:
        content = await question
        # What is long is written and packed beside the loop.
        return await run_in_threadpool(answer, request, content, pretty=pretty)
    except Plainly as error:
        return failed(request, error.status, error.message)
    except Refusal as refusal:
        return failed(request, STATUS.get(refusal.code, 400), refusal.message)


# -- values in paths ----------------------------------------------------------------------------------------------


def unescaped(text: str) -> str:
    """A value of a path with its second layer of escapes taken off, as in a query. Raises `Plainly`."""
    broken = re.search(r"%(?![0-9A-Fa-f]{2}).{0,2}", text)
    if broken is not None:
        raise Plainly(400, f'invalid URL escape "{broken.group()}"')
    return unquote(text.replace("+", " "), errors="replace")


def whole(text: str) -> str:
    """A value of a path as it was meant: the front keeps its slashes escaped."""
    return text.replace("%2F", "/")


def number(name: str, text: str | None, default: int) -> int:
    """A number of a query, 0 or more. Raises `Plainly` in the words of Go's parser."""
    del name
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()):
        raise Plainly(400, f'strconv.ParseUint: parsing "{text[:80]}": invalid syntax')
    if len(text.lstrip("0")) > 20 or int(text) >= 2**64:
        raise Plainly(400, f'strconv.ParseUint: parsing "{text[:80]}": value out of range')
    return int(text)


# -- the front ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """One path with its method."""

    method: str
    parts: tuple[str, ...]
    """Its segments; None of them stands for a value but those in braces."""

    @classmethod
    def of(cls, method: str, template: str) -> Known:
        """From a template such as `/ws/v1/partition/{partition}/queues`."""
        return cls(method, tuple(template.split("/")))

    def matches(self, segments: list[str]) -> bool:
        """Whether this very path is meant."""
        return len(segments) == len(self.parts) and all(
            bool(given) if part.startswith("{") else given == part
            for part, given in zip(self.parts, segments, strict=True)
        )

    def mended(self, segments: list[str]) -> str | None:
        """The path that was meant but for case, double and trailing slashes; None when it is another one."""
        given = ["", *(s for s in segments if s)]
        if len(given) != len(self.parts):
            return None
        if not all(p.startswith("{") or p.lower() == g.lower() for p, g in zip(self.parts, given, strict=True)):
            return None
        return "/".join(g if p.startswith("{") else p for p, g in zip(self.parts, given, strict=True))


class Front:
    """Stands before the application for everything below /ws/ and /debug/."""

    def __init__(self, app: ASGIApp, known: Iterable[tuple[str, str]]) -> None:
        """`known`: method and template of each route."""
        self._app = app
        self._known = [Known.of(method, template) for method, template in known]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or not str(scope["path"]).lower().startswith(PREFIXES):
            await self._app(scope, receive, send)
            return
        raw = scope.get("raw_path") or str(scope["path"]).encode()
        segments = bytes(raw).split(b"?")[0].decode("latin-1").split("/")
        methods = sorted({one.method for one in self._known if one.matches(segments)})
        if scope["method"] in methods:
            path = "/".join(unquote(segment, errors="replace").replace("/", "%2F") for segment in segments)
            await self._app(dict(scope) | {"path": path}, receive, _with_headers(send, methods))
            return
        reply = self._without_handler(scope, segments, methods)
        await reply(scope, receive, _with_headers(send, methods or ["GET"]))

    def _without_handler(self, scope: Scope, segments: list[str], methods: list[str]) -> Response:
        mended = (one.mended(segments) for one in self._known if one.method == scope["method"])
        target = next((path for path in mended if path is not None), None)
        if target is not None:
            query = bytes(scope["query_string"]).decode("latin-1")
            return moved(target + (f"?{query}" if query else ""), 301 if scope["method"] == "GET" else 308)
        if methods:
            allow = {"Allow": ", ".join(sorted([*methods, "OPTIONS"]))}
            if scope["method"] == "OPTIONS":
                return Response(b"", 200, allow)
            return Response("Method Not Allowed\n", 405, allow, TEXT)
        return Response("404 page not found\n", 404, {"X-Content-Type-Options": "nosniff"}, TEXT)


def moved(target: str, status: int = 301) -> Response:
    """A redirection, with a link for people."""
    what = "Moved Permanently" if status == 301 else "Permanent Redirect"
    body = f'<a href="{html.escape(target)}">{what}</a>.\n\n' if status == 301 else ""
    return Response(body, status, {"Location": target}, "text/html; charset=utf-8")


def _with_headers(send: Send, methods: list[str]) -> Callable[[Message], Awaitable[None]]:
    headers: Mapping[bytes, bytes] = {
        b"access-control-allow-origin": b"*",
        b"access-control-allow-methods": ", ".join(sorted([*methods, "OPTIONS"])).encode(),
        b"access-control-allow-headers": b"X-Requested-With,Content-Type,Accept,Origin",
    }

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = dict(message) | {"headers": [*message.get("headers", ()), *headers.items()]}
        await send(message)

    return sending
