"""Routes about tokens.

Decides who may make and revoke them. Never decides what a token lets somebody do. Invariant: the text of a token is in
the answer that made it and nowhere else.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated, Any

from fastapi import Query
from starlette.concurrency import run_in_threadpool

from fairlead.core.model.specs import DEFAULT_PARTITION
from fairlead.local import accounts
from fairlead.local.placing import full_path
from fairlead.runtime import Refusal
from fairlead.scheduler import Scheduler
from fairlead.service.http.errors import documented
from fairlead.service.http.pages import TokenOf
from fairlead.service.http.shaped import PagesOf, api
from fairlead.service.identity import Token, TokensError
from fairlead.service.machine import MachineOf, MachinePlace
from fairlead.service.place import CallerOf
from fairlead.times import duration_exactly
from fairlead.wire import declarations as wire
from fairlead.wire.jobs import Done

router = api("tokens")
_SHOWN = ("id", "name", "user", "created_at_ms", "scope", "queue", "expires_at_ms")


def _shown(place: MachinePlace, token: Token) -> dict[str, Any]:
    named = {name: getattr(token, name) for name in _SHOWN}
    return named | {"used_at_ms": place.tokens.used_ms(token)}


@router.post("/tokens", status_code=201, responses=documented(404, 429))
async def create_token(body: wire.TokenRequest, place: MachineOf, caller: CallerOf, shown: TokenOf) -> wire.NewToken:
    """Make a token for access over TCP. Its text is in this answer and nowhere else. None lives longer than the one
    that it was made with.
    """
    _require_no_longer(body.lifetime_ms, place.tokens.find(shown))
    user, uid = caller.user, caller.uid
    if body.user and body.user != caller.user:
        caller.require_admin("make tokens for others")
        account = await run_in_threadpool(accounts.by_name, body.user)
        if account is None:
            raise Refusal("not-found", f"this machine knows no user {body.user!r}", field="user")
        if not place.gate.everybody and account.uid != place.gate.own_uid:
            raise Refusal("forbidden", f"this service serves {place.gate.own_name} alone", field="user")
        user, uid = account.name, account.uid
    queue = await place.look(lambda scheduler, _: _queue(scheduler, body.queue)) if body.queue else ""
    place.users.tokens(caller, sum(each.uid == uid and not each.is_over() for each in place.tokens.all()))
    try:
        create = partial(place.tokens.create, scope=body.scope, lifetime_ms=body.lifetime_ms, queue=queue)
        text, token = await run_in_threadpool(create, name=body.name, user=user, uid=uid)
    except (OSError, TokensError) as error:
        raise Refusal("unavailable", f"the token could not be stored: {error}") from error
    return wire.NewToken(token=text, **_shown(place, token))


def _require_no_longer(lifetime_ms: int | None, shown: Token | None) -> None:
    """Raises `Refusal` for a token that would be accepted when the one that was shown for it is over."""
    if shown is None or shown.expires_at_ms is None:
        return
    left_ms = shown.expires_at_ms - time.time_ns() // 1_000_000
    if lifetime_ms is None or lifetime_ms > left_ms:
        left = duration_exactly(max(left_ms // 1000, 1) * 1000)
        raise Refusal(
            "forbidden",
            f"the token that you show is accepted for {left} more, and what is made with it for no longer: "
            "say how long (--expires), or make it over the Unix socket",
            field="lifetime_ms",
        )


def _queue(scheduler: Scheduler, name: str) -> str:
    """The whole path of a queue. Raises `Refusal`."""
    partition = scheduler.cluster.partitions[DEFAULT_PARTITION]
    found = partition.root.find(full_path(partition, name))
    if found is None:
        raise Refusal("not-found", f"there is no queue {name!r}; `fairlead queues` lists them", field="queue")
    return found.path


@router.get("/tokens")
async def list_tokens(
    place: MachineOf,
    caller: CallerOf,
    page: PagesOf,
    user: Annotated[str | None, Query(max_length=256, description="Only of this user.")] = None,
) -> wire.TokenPage:
    """The caller's tokens, oldest first; those of everybody, for administrators."""
    seen = [t for t in place.tokens.all() if (caller.is_admin or t.uid == caller.uid) and user in (None, t.user)]
    return page.of(wire.TokenPage, seen, lambda each: int(each.id), lambda each: wire.Token(**_shown(place, each)))


@router.delete("/tokens/{token_id}", responses=documented(404))
async def revoke_token(token_id: str, place: MachineOf, caller: CallerOf) -> Done:
    """Revoke a token; it stops working at once."""
    token = place.tokens.find(token_id)
    if token is None or not (caller.is_admin or token.uid == caller.uid):
        raise Refusal("not-found", f"there is no token {token_id!r}; `fairlead token list` shows yours")
    try:
        await run_in_threadpool(place.tokens.revoke, token_id)
    except OSError as error:
        raise Refusal("unavailable", f"the change could not be stored: {error}") from error
    return Done(ok=True)
