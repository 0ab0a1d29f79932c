"""What may reach the pages at all, and what a browser may do with them.

Decides that nothing but the way in and what every page is made of is served without a session, that what changes
something or keeps a connection open comes from these pages, and what a page may load. Never looks into a session.
Invariant: no other site shows these pages in a frame, sends anything in the name of a viewer, or gets a connection; a
page asks no other host for anything.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead.web.viewer import COOKIE, SESSION_BEGINS

OPEN = frozenset({"/sign-in", "/enter", "/look", "/favicon.ico", "/healthz"})
STATIC = "/static/"
ASSETS = "/_nicegui/"
"""Program text of NiceGUI, which everybody can download; its connection (`/_nicegui_ws/`) is not among it."""
# NiceGUI makes its components in the browser, from text that it sends: that is what 'unsafe-eval' is for.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def cookie_of(scope: Scope) -> str:
    """The name of the cookie: with the port, as the browser has it; it sends one service's to those of other ports."""
    port = Headers(scope=scope).get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isascii() and port.isdecimal() else COOKIE


def session_of(scope: Scope) -> str:
    """The session that a browser shows, or empty."""
    # Not `http.cookies`: that reads nothing behind an odd one, and other programs of this host set any.
    text = cookie_parser(Headers(scope=scope).get("cookie", "")).get(cookie_of(scope), "")
    return text if text.startswith(SESSION_BEGINS) else ""


def is_own(scope: Scope) -> bool:
    """Whether a request comes from a page of this host and port, as the browser says."""
    headers = Headers(scope=scope)
    origin, host = headers.get("origin", ""), headers.get("host", "")
    return bool(host) and origin.partition("://")[2].lower() == host.lower()


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith((STATIC, ASSETS))


class Guard:
    """Before everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request or connection."""
        if scope["type"] == "websocket":
            if is_own(scope) and session_of(scope):
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if not scope["path"].startswith((STATIC, ASSETS)):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        if scope["method"] not in ("GET", "HEAD") and not is_own(scope):
            refusal = PlainTextResponse("this request does not come from these pages", 403)
            await refusal(scope, receive, guarded)
        elif not session_of(scope) and not _is_open(scope["path"]):
            way_in = RedirectResponse("/sign-in", 303)
            if scope["path"].startswith("/_nicegui"):
                await PlainTextResponse("sign in first", 401)(scope, receive, guarded)
            else:
                await way_in(scope, receive, guarded)
        else:
            await self._app(scope, receive, guarded)
