"""Routes about tokens.

Decides who may make and revoke them. Never decides what a token lets somebody do. Invariant: the text of a token is in
the answer that made it and nowhere else.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from fairlead.local import accounts
from fairlead.runtime import Refusal
from fairlead.service import models
from fairlead.service.desk import CallerOf, Desk, DeskOf, plain
from fairlead.service.errors import documented
from fairlead.service.tokens import Token, TokensError

router = APIRouter(prefix="/api/v1")


def _view(desk: Desk, token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "user": token.user,
        "created_at_ms": token.created_at_ms,
        "used_at_ms": desk.tokens.used_ms(token),
    }


@router.post("/tokens", tags=["tokens"], status_code=201, response_model=models.NewToken, responses=documented(404))
async def create_token(body: models.TokenRequest, desk: DeskOf, caller: CallerOf) -> Response:
    """Make a token for access over TCP. Its text is in this answer and nowhere else."""
    user, uid = caller.user, caller.uid
    if body.user and body.user != caller.user:
        caller.require_admin("make tokens for others")
        account = await run_in_threadpool(accounts.by_name, body.user)
        if account is None:
            raise Refusal("not-found", f"this machine knows no user {body.user!r}", field="user")
        if not desk.gate.everybody and account.uid != desk.gate.own_uid:
            raise Refusal("forbidden", f"this service serves {desk.gate.own_name} alone", field="user")
        user, uid = account.name, account.uid
    try:
        text, token = await run_in_threadpool(desk.tokens.create, name=body.name, user=user, uid=uid)
    except (OSError, TokensError) as error:
        raise Refusal("unavailable", f"the token could not be stored: {error}") from error
    return plain(_view(desk, token) | {"token": text}, 201)


@router.get("/tokens", tags=["tokens"], response_model=models.Tokens, responses=documented())
async def list_tokens(desk: DeskOf, caller: CallerOf) -> Response:
    """The caller's tokens; those of everybody, for administrators."""
    found = [t for t in desk.tokens.all() if caller.is_admin or t.uid == caller.uid]
    return plain({"tokens": [_view(desk, token) for token in found]})


@router.delete("/tokens/{token_id}", tags=["tokens"], response_model=models.Done, responses=documented(404))
async def revoke_token(token_id: str, desk: DeskOf, caller: CallerOf) -> Response:
    """Revoke a token; it stops working at once."""
    token = desk.tokens.find(token_id)
    if token is None or not (caller.is_admin or token.uid == caller.uid):
        raise Refusal("not-found", f"there is no token {token_id!r}; `fairlead token list` shows yours")
    try:
        await run_in_threadpool(desk.tokens.revoke, token_id)
    except OSError as error:
        raise Refusal("unavailable", f"the change could not be stored: {error}") from error
    return plain({"ok": True})
