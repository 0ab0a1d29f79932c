"""The application of the pages: the way in and out, and which page is where.

Decides the addresses. Never shows anything but the way in. Invariant: a page is opened for whoever the service says has
the session, asked anew each time; without one there is nothing but the way in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Form, Request, Response
from nicegui import app as nicegui_app
from nicegui import ui
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.staticfiles import StaticFiles

from fairlead.client.errors import ClientError, Refused
from fairlead.web import (
    happened_page,
    job_page,
    jobs_page,
    line_page,
    now_page,
    past_page,
    policy_page,
    queues_page,
    submit_page,
)
from fairlead.web.frame import PLACES, Page, not_there
from fairlead.web.guard import Guard, cookie_of, session_of
from fairlead.web.html import Html, a, code, div, element, h1, joined, p
from fairlead.web.live import SOMEBODY_WAITS, UNKNOWN, Live
from fairlead.web.viewer import Service, Viewer
from fairlead.wire.pages import GUEST

ALL_OF_IT = 1.0
"""A recorded course has nothing else to do than to be looked at."""
PATIENCE_S = 25.0
"""So long a page waits for what it shows."""
RECONNECT_S = 30.0
"""So long a page waits for its browser to come back. The browser is asked for a sign of life every 0.8 of that, and has
0.4 of it to answer. NiceGUI's own 3 s mean 2 to answer: a browser that was busy for longer lost its connection, loaded
the page anew, and what was typed in was gone.
"""
TOKEN_MAX = 16_384
"""Characters; the token of a cluster's account has more than a thousand."""
STATIC = Path(__file__).with_name("static")


def make_app(where: str, *, guests: bool = False) -> FastAPI:
    """The pages of the service that is there; `guests`: strangers are offered to look."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.service, app.state.live, app.state.guests = Service(where), Live(), guests
    app.mount("/static", StaticFiles(directory=STATIC))
    app.add_api_route("/sign-in", sign_in, methods=["GET"], response_class=Response)
    app.add_api_route("/sign-in", sign_in_with, methods=["POST"], response_class=Response)
    app.add_api_route("/look", look, methods=["POST"], response_class=Response)
    app.add_api_route("/enter", enter, methods=["GET"], response_class=Response)
    app.add_api_route("/enter", enter_with, methods=["POST"], response_class=Response)
    app.add_api_route("/sign-out", sign_out, methods=["POST"], response_class=Response)
    app.add_api_route("/healthz", healthz, methods=["GET"], response_class=Response)
    app.add_api_route("/", lambda: RedirectResponse("/line", 303), methods=["GET"], response_class=Response)
    for path, show in PAGES.items():
        _page(app, path, show)
    nicegui_app.config.quasar_config["loadingBar"]["skipHijack"] = True
    nicegui_app.config.socket_io_js_transports = ["websocket"]
    ui.run_with(
        app,
        title="Fairlead",
        favicon=STATIC / "fairlead.svg",
        dark=None,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        show_welcome_message=False,
        message_history_length=50,
        reconnect_timeout=RECONNECT_S,
    )
    nicegui_app.add_exception_handler(404, no_such_page)
    app.add_middleware(Guard)
    return app


PAGES: dict[str, Callable[..., Awaitable[None]]] = {
    "/line": line_page.show,
    "/now": now_page.show,
    "/jobs": jobs_page.show,
    "/queues": queues_page.show,
    "/submit": submit_page.show,
    "/past": past_page.show,
    "/policy": policy_page.show,
    "/happened": happened_page.show,
    "/job/{key:path}": job_page.show,
}


def _page(app: FastAPI, path: str, show: Callable[..., Awaitable[None]]) -> None:
    """Serve one page."""

    async def opened(request: Request) -> Any:
        # All of it is asked for by somebody who waits, not as a look now and then that has to be earned.
        SOMEBODY_WAITS.set("opening")
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await _open(app, path, show, request)
        except TimeoutError:
            return HTMLResponse(_alone("The service takes long to answer", *_takes_long(request)), 503)

    ui.page(path, response_timeout=PATIENCE_S + 5)(opened)


async def _open(app: FastAPI, path: str, show: Callable[..., Awaitable[None]], request: Request) -> Any:
    service: Service = app.state.service
    try:
        viewer = await service.viewer(session_of(request.scope))
    except ClientError as error:
        if isinstance(error, Refused) and error.status == UNKNOWN:
            return _without_session(request)
        return HTMLResponse(_alone("The service does not answer", p(error.message), _again(request)), 503)
    if viewer.of == "course":
        app.state.live.budget.share = ALL_OF_IT
    ui.add_head_html(HEAD)
    why_not = not_there(viewer).get(path)
    await (show(viewer, app.state.live, request) if why_not is None else _only_say(viewer, app, path, why_not))
    return None


def _takes_long(request: Request) -> tuple[Html, Html]:
    said = f"What this page shows was not known within {PATIENCE_S:.0f} seconds: the service has much to do."
    return p(said), _again(request)


def _again(request: Request) -> Html:
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return p(a("Try again", href=here))


async def _only_say(viewer: Viewer, app: FastAPI, path: str, why_not: str) -> None:
    page = Page(viewer, app.state.live, path, dict(PLACES)[path])

    async def say() -> Html:
        return p(why_not, class_="empty")

    page.panel("not-there", "", say, kind="wide", live=False)
    await page.open()


HEAD = joined(
    element("link", rel="stylesheet", href="/static/fairlead.css"),
    element("script", "", src="/static/pages.js"),
    element("script", "", src="/static/heat.js"),
)


async def no_such_page(request: Request, error: Exception) -> Response:
    """What an address leads to that no page has."""
    del request, error
    title = "There is no such page"
    return HTMLResponse(_alone(title, p("The address may be mistyped. ", a("To the line", href="/line"))), 404)


# -- the way in and out -------------------------------------------------------------------------------------------


def _alone(title: str, *content: Any) -> str:
    """A page of its own, without anything that lives."""
    head = (
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} · Fairlead"),
        HEAD,
    )
    body = element("main", div("Fairlead", class_="brand"), h1(title), content, class_="alone")
    return "<!doctype html>" + element("html", element("head", head), element("body", body), lang="en")


async def sign_in(request: Request, problem: str = "") -> Response:
    """How to get in."""
    field = element("input", id="token", name="token", type="password", autocomplete="off", required=True)
    return HTMLResponse(
        _alone(
            "Who are you?",
            p("Run ", code("fairlead web"), " in a terminal on this machine: it opens these pages as you."),
            element(
                "form",
                element(
                    "label",
                    "Or give a token, as ",
                    code("fairlead token create"),
                    " prints it, for a cluster ",
                    code("kubectl create token"),
                    for_="token",
                ),
                field,
                element("button", "Sign in", type="submit", class_="main"),
                method="post",
                action="/sign-in",
            ),
            _look_around() if request.app.state.guests else None,
            p(problem, class_="failed", role="alert") if problem else None,
        ),
        401 if problem else 200,
    )


def _look_around() -> Html:
    button = element("button", "Look around as a guest", type="submit")
    return element("form", p("You may also look without saying who you are."), button, method="post", action="/look")


async def look(request: Request) -> Response:
    """Without a name, where the service lets strangers look."""
    return await _begin(request, GUEST)


async def sign_in_with(request: Request, token: str = Form(default="")) -> Response:
    """With a token that was typed in."""
    if len(token) > TOKEN_MAX:
        return await sign_in(request, f"That is no token: it has more than {TOKEN_MAX:,} characters.")
    return await _begin(request, token.strip())


async def enter(request: Request, ticket: str = "") -> Response:
    """With the ticket that `fairlead web` printed; where another page leads here, it is asked whether that is meant."""
    # Whoever made that page may have made the ticket too: what is done here then would be done as that user.
    if request.headers.get("sec-fetch-site", "none") not in ("cross-site", "same-site"):
        return await _begin(request, ticket)
    kept = element("input", type="hidden", name="ticket", value=ticket)
    go_on = element("button", "Sign in", type="submit", class_="main")
    about = p("Another page led you here. Go on only if you ran ", code("fairlead web"), " yourself just now.")
    return HTMLResponse(_alone("Is this yours?", about, element("form", kept, go_on, method="post", action="/enter")))


async def enter_with(request: Request, ticket: str = Form(default="")) -> Response:
    """With a ticket that another page led to, and that is meant."""
    return await _begin(request, ticket)


async def _begin(request: Request, credential: str) -> Response:
    service: Service = request.app.state.service
    try:
        session, expires_at_ms = await service.sign_in(credential)
    except (ClientError, ValueError) as error:
        return await sign_in(request, getattr(error, "message", "") or "Give a token.")
    # A page that goes on by itself: a browser sends a strict cookie only along with what begins on this site.
    onward = element("meta", http_equiv="refresh", content="0;url=/line")
    answer = HTMLResponse(
        "<!doctype html>" + element("html", element("head", onward, element("title", "Fairlead")), lang="en")
    )
    lasts_s = max(0, expires_at_ms // 1000 - int(time.time()))
    is_secure = request.url.scheme == "https"
    name = cookie_of(request.scope)
    answer.set_cookie(name, session, max_age=lasts_s, httponly=True, samesite="strict", secure=is_secure)
    return answer


async def sign_out(request: Request) -> Response:
    """End the session here and at the service."""
    service: Service = request.app.state.service
    if session := session_of(request.scope):
        try:
            await service.client(session).end_session()
        except ClientError as error:
            if not isinstance(error, Refused) or error.status != UNKNOWN:  # Else it was over before.
                return HTMLResponse(_alone("You are still signed in", p(error.message)), 503)
    return _without_session(request)


def _without_session(request: Request) -> Response:
    """To the way in; the browser forgets its session."""
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(cookie_of(request.scope), httponly=True, samesite="strict")
    return answer


async def healthz() -> Response:
    """Whether this process answers."""
    return Response("ok", media_type="text/plain")
