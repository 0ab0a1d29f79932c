"""Routes about the queue file and about tokens.

Decides who may change them. Never decides whether a queue file is good (`fairlead.config` does). Invariant: a file with
an error, or with something that would be ignored, changes nothing.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from fairlead.config import ConfigurationError, Problem, check_text, load_text
from fairlead.config.unsupported import not_yet
from fairlead.core.decisions import ConfigurationRejected
from fairlead.core.events import Configure
from fairlead.core.specs import DEFAULT_PARTITION, ClusterSpec
from fairlead.local import accounts
from fairlead.runtime import Refusal, Turn
from fairlead.service import models
from fairlead.service.desk import CallerOf, Desk, DeskOf, plain
from fairlead.service.errors import documented
from fairlead.service.tokens import Token, TokensError

router = APIRouter(prefix="/api/v1")


def usable(text: str, source: str = "<text>") -> ClusterSpec:
    """The configuration of a text. Raises `ConfigurationError` also for what would be ignored, or has no place here."""
    spec = load_text(text, source)
    if missing := not_yet(spec, source):
        raise ConfigurationError(missing)
    if all(partition.name != DEFAULT_PARTITION for partition in spec.partitions):
        message = f"this machine belongs to the partition {DEFAULT_PARTITION}, and the file has none of that name"
        raise ConfigurationError([Problem(source=source, line=1, column=1, path="partitions", message=message)])
    return spec


def _found(text: str) -> list[Problem]:
    found = check_text(text)
    if any(problem.severity == "error" for problem in found):
        return found
    try:
        usable(text)
    except ConfigurationError as error:
        return [*found, *error.problems]
    return found


def _shown(problem: Problem) -> dict[str, Any]:
    names = ("line", "column", "path", "value", "message", "severity")
    return {name: getattr(problem, name) for name in names}


@router.get("/config", tags=["config"], response_model=models.ConfigAnswer, responses=documented())
async def config(desk: DeskOf, caller: CallerOf) -> Response:
    """The queue file in force."""
    del caller
    return plain(await desk.read(lambda s, _: {"text": s.cluster.text, "checksum": s.cluster.checksum}))


@router.post("/config/check", tags=["config"], response_model=models.ConfigVerdict, responses=documented(413))
async def check(body: models.ConfigText, caller: CallerOf) -> Response:
    """Whether a queue file could be used, with everything that is wrong with it."""
    del caller
    found = await run_in_threadpool(_found, body.text)
    errors = [_shown(problem) for problem in found if problem.severity == "error"]
    warnings = [_shown(problem) for problem in found if problem.severity != "error"]
    return plain({"ok": not errors, "errors": errors, "warnings": warnings})


@router.put("/config", tags=["config"], response_model=models.ConfigAnswer, responses=documented(413))
async def apply(body: models.ConfigText, desk: DeskOf, caller: CallerOf) -> Response:
    """Put a queue file in force, as one step (administrators)."""
    caller.require_admin("change the queues")
    try:
        spec = await run_in_threadpool(usable, body.text)
    except ConfigurationError as error:
        details = [_shown(problem) for problem in error.problems]
        first = error.errors[0]
        message = f"line {first.line}: {first.path}: {first.message}"
        more = f" (and {len(error.errors) - 1} more)" if len(error.errors) > 1 else ""
        raise Refusal("invalid", message + more, field="text", details=details) from error
    refused = await desk.do(lambda turn: configure(turn, spec, caller.user))
    if refused:
        raise Refusal("invalid", refused, field="text")
    return plain({"text": spec.text, "checksum": spec.checksum})


def configure(turn: Turn, spec: ClusterSpec, who: str) -> str:
    """Enter a configuration unless it is in force already; why the scheduler refused it, or nothing."""
    if turn.scheduler.cluster.checksum == spec.checksum and turn.scheduler.cluster.text == spec.text:
        return ""
    for decision in turn.event(Configure(spec, who)):
        if isinstance(decision, ConfigurationRejected):
            return decision.reason.sentence()
    return ""


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
