"""Who may ask the scheduler of a cluster.

Decides by the cluster's own rules: the API server is asked whose token it is (TokenReview), and whether that user may
read this path (SubjectAccessReview, a non-resource URL such as `/fairlead/api/v1/jobs`). Whoever is on this very host,
which `kubectl port-forward` is too, needs no token. A session of the pages stands for the token that began it, and is
judged by that, request by request. Never lets anybody change anything. Invariant: what the API server could not be
asked about is refused.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.kubernetes.client import ApiError, Client, Unreachable
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.service.http import errors
from fairlead.service.sessions import SESSION, TICKET, TOKEN, Sessions
from fairlead.wire.pages import GUEST

log = logging.getLogger("fairlead.service")

CALLER = "fairlead.caller"
OPEN = frozenset({"/healthz", "/livez", "/readyz"})
FIGURES = "/metrics"
_POD = re.compile(r"^(/api/v1/jobs/[^/]+)/([^/]+)")
_OF_NAME = re.compile(r"/api/v1/jobs/[^/]+/(forecast|logs|why)")
"""Something about a pod that goes by its name alone, unless that is one part: `NAMESPACE%2Fwhy`."""
HERE = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1"})
"""The last one is the first, as a socket shows it that listens on IPv6 and takes both."""
BEGINNING = frozenset({"/api/v1/tickets", "/api/v1/sessions"})
INFO = "/api/v1/info"
"""Whoever may read this may have a session: it gives no right that its token does not give."""
NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REMEMBERED_S = {True: 60.0, False: 5.0}
"""An answer of the API server counts for so long, by whether it was yes."""
MOST = 1_000


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    allowed: bool = False
    user: _User = _User()


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


@dataclass(frozen=True, slots=True)
class _Remembered:
    until: float
    user: _User | None
    why: str = ""


class Judge(Protocol):
    """Who knows tokens and rights."""

    async def caller(self, token: str, method: str, path: str) -> Caller:
        """Who this is. Raises `Refusal`."""


class ApiJudge:
    """Asks the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._remembered: dict[bytes, _Remembered] = {}

    async def caller(self, token: str, method: str, path: str) -> Caller:
        """Who this is. Raises `Refusal`: nobody knows (401), or the cluster does not let that user read this (403)."""
        key = hashlib.sha256(f"{method} {path}\0{token}".encode()).digest()
        known = self._remembered.get(key)
        if known is None or known.until <= time.monotonic():
            try:
                user, why = await self._ask(token, method, path)
            except (ApiError, Unreachable, msgspec.MsgspecError) as problem:
                log.warning("the API server could not be asked about a token: %s", problem)
                raise Refusal("unavailable", "the API server could not be asked who you are; try again") from problem
            known = _Remembered(time.monotonic() + REMEMBERED_S[not why], user, why)
            if len(self._remembered) >= MOST:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[key] = known
        if known.user is None:
            raise Refusal("unauthorized", known.why)
        if known.why:
            raise Refusal("forbidden", known.why)
        return Caller(known.user.username, -1, True, may_submit=False, groups=known.user.groups)

    async def _ask(self, token: str, method: str, path: str) -> tuple[_User | None, str]:
        told = await self._review(TOKEN_REVIEWS, "authentication", "TokenReview", {"token": token})
        if not told.authenticated:
            return None, "the API server does not know this token; `kubectl create token NAME` makes one"
        user, verb, path = told.user, method.lower(), right_to(path)
        spec = {
            "user": user.username,
            "groups": list(user.groups),
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        may = await self._review(ACCESS_REVIEWS, "authorization", "SubjectAccessReview", spec)
        if may.allowed:
            return user, ""
        return user, f"{user.username} may not {verb} {path}; a ClusterRole with nonResourceURLs can allow it"

    async def _review(self, path: str, group: str, kind: str, spec: Mapping[str, Any]) -> _Status:
        body = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
        return msgspec.json.decode(await self._client.send("POST", path, body=body), type=_Review).status


def right_to(path: str) -> str:
    """The non-resource URL that the right to read a path goes by: under a name of our own, save for the figures.

    Every cluster lets all who are known to it read `/api/*` (system:discovery), which means the API server's own.
    """
    return path if path == FIGURES else f"/fairlead{path}"


LOCALHOST = Caller("localhost", -1, True, may_submit=False)
"""Who asks on this host, or through `kubectl port-forward`."""


class ClusterGate:
    """Says who a request comes from, once `Entrance` has found out."""

    def caller(self, scope: Mapping[str, Any]) -> Caller:
        """Who this is. Raises `Refusal`."""
        found = scope.get(CALLER)
        if isinstance(found, Refusal):
            raise found
        if not isinstance(found, Caller):
            raise Refusal("unauthorized", "send `Authorization: Bearer TOKEN`, or ask through `kubectl port-forward`")
        return found


class Entrance:
    """Stands before the application: finds out who asks, and makes `NAMESPACE/NAME` in a path one key."""

    def __init__(self, app: ASGIApp, judge: Judge, sessions: Sessions) -> None:
        self._app, self._judge, self._sessions = app, judge, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["path"] not in OPEN:
            try:
                scope[CALLER] = await self._caller(scope)
            except Refusal as refusal:
                # Whether that matters is the route's decision: some may be read by everybody.
                scope[CALLER] = refusal
                if refusal.code == "unavailable":
                    await errors.from_refusal(refusal, scope["path"])(scope, receive, send)
                    return
            scope = dict(scope) | {"path": _with_one_key(scope)}
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller | None:
        headers = dict(scope["headers"])
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return await self._bearer(scope, token.strip())
        host, origin = (headers.get(name, b"").decode("latin-1") for name in (b"host", b"origin"))
        return LOCALHOST if is_here(scope, host, origin) else None

    async def _bearer(self, scope: Scope, token: str) -> Caller:
        if token.startswith((TICKET, SESSION)):
            found = self._sessions.recognise(token)
            if found is None:
                raise Refusal("unauthorized", "this session is over, or the ticket was used; run `fairlead web` again")
            if not found.token and found.user == LOCALHOST.user:
                return LOCALHOST
            token = found.token or GUEST
        if token == GUEST:
            raise Refusal("unauthorized", "strangers see nothing here (--open-reads); send a token of the cluster")
        scope[TOKEN] = token
        asked = ("GET", INFO) if scope["path"] in BEGINNING else (scope["method"], scope["path"])
        return await self._judge.caller(token, *asked)


def _with_one_key(scope: Scope) -> str:
    """The path, with `NAMESPACE/NAME` as one part of it, as clients send it; by hand it may be written as two."""
    path: str = scope["path"]
    is_sent_as_one = b"%2f" in scope.get("raw_path", b"").lower()
    return path if _OF_NAME.fullmatch(path) and not is_sent_as_one else _POD.sub(r"\1%2F\2", path)


def is_here(scope: Scope, host: str, origin: str = "") -> bool:
    """Whether somebody on this host asks, and asks for this host: a page in a browser could ask for another name.

    A page may also ask for this name, and /ws/v1 may be read by pages of other origins. A browser says whose page it
    is; one of another host has no more rights than who sent it.
    """
    client = scope.get("client")
    is_of_here = not origin or _name(origin.rpartition("://")[2]) in NAMES
    return client is not None and client[0] in HERE and _name(host) in NAMES and is_of_here


def _name(host: str) -> str:
    """Without its port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host
