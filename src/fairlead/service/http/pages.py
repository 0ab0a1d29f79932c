"""Routes about the pages: tickets and sessions, whether something changed, and the way to them.

Decides who gets a ticket or a session (whoever is known already), and where `/` leads. Never shows anything but how to
get them. Invariant: the text of a ticket or session is in the answer that made it and nowhere else.
"""

from __future__ import annotations

from html import escape
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse

from fairlead.runtime import Refusal
from fairlead.service.http.errors import documented
from fairlead.service.http.shaped import api
from fairlead.service.place import CallerOf, PlaceOf
from fairlead.service.sessions import SESSION, TOKEN
from fairlead.wire import pages as wire
from fairlead.wire.jobs import Done

WAIT_MAX_S = 30.0

router = api("pages")
front = APIRouter(include_in_schema=False)


async def _token(caller: CallerOf, request: Request) -> str:
    """As it was noted when the caller was recognised."""
    del caller
    return str(request.scope.get(TOKEN, ""))


async def _url(place: PlaceOf, request: Request) -> str:
    """Where the pages are for whoever asks: over TCP under the name that the service has there; empty: nowhere."""
    url = place.pages.url
    if not url or request.client is None:
        return url
    host = request.url.hostname or ""
    scheme = url.partition("://")[0]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{url.rpartition(':')[2]}"


TokenOf = Annotated[str, Depends(_token)]
UrlOf = Annotated[str, Depends(_url)]


@router.post("/tickets", status_code=201)
async def create_ticket(place: PlaceOf, caller: CallerOf, token: TokenOf, url: UrlOf) -> wire.Ticket:
    """Make a ticket: whoever shows it first, within a minute, is taken for the caller, once."""
    text, made = place.pages.sessions.ticket(caller.user, caller.uid, token)
    return wire.Ticket(ticket=text, expires_at_ms=made.expires_at_ms, url=url, why_none=place.pages.why_none)


@router.post("/sessions", status_code=201, responses=documented(503))
async def create_session(place: PlaceOf, caller: CallerOf, token: TokenOf) -> wire.Session:
    """Begin a session of the caller: what a browser shows from now on, instead of the ticket or the token."""
    try:
        text, made = await run_in_threadpool(place.pages.sessions.session, caller.user, caller.uid, token)
    except OSError as error:
        raise Refusal("unavailable", f"the session could not be stored: {error}") from error
    return wire.Session(session=text, user=made.user, expires_at_ms=made.expires_at_ms)


@router.delete("/sessions", responses=documented(404))
async def end_session(place: PlaceOf, authorization: Annotated[str | None, Header()] = None) -> Done:
    """End the session that this request shows."""
    text = (authorization or "").partition(" ")[2].strip()
    if not text.startswith(SESSION):
        raise Refusal("not-found", "this request shows no session; there is nothing to end")
    try:
        await run_in_threadpool(place.pages.sessions.end, text)
    except OSError as error:
        raise Refusal("unavailable", f"the change could not be stored: {error}") from error
    return Done(ok=True)


@router.get("/changes")
async def get_changes(
    place: PlaceOf,
    caller: CallerOf,
    after: Annotated[int, Query(ge=0, description="Answer once there is more than this.")] = 0,
    wait: Annotated[float, Query(ge=0, le=WAIT_MAX_S, description="Seconds to wait for it.")] = 0.0,
) -> wire.Changed:
    """How far the records have come: whoever shows something looks again when this grows."""
    del caller  # Whoever is known may ask.
    return wire.Changed(seq=await place.pages.changes.after(after, wait))


@front.get("/")
async def get_front(place: PlaceOf, url: UrlOf) -> Response:
    """Where the pages are, or how to get them."""
    if not url:
        said = escape(place.pages.why_none[:1].upper() + place.pages.why_none[1:])
        return HTMLResponse(
            f"<!doctype html><html lang=en><title>Fairlead</title><h1>Fairlead</h1><p>{said}.</p>"
            f"<p>The service itself is up: <code>fairlead ls</code>, <code>fairlead top</code>, "
            f"and <code>/api/v1</code>.</p>",
            404,
        )
    return RedirectResponse(f"{url}/", 307, {"Cache-Control": "no-store"})
