"""Who is calling: on the Unix socket the kernel knows, over TCP a token says it.

Decides which user a request comes from and what that user may do in general. Never decides about single jobs.
Invariant: a caller on the Unix socket is who the kernel says, whatever the request claims; over TCP nobody is anybody
without a token.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairlead.local import accounts
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.service.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

PEER = "fairlead.peer"
"""The key of a request's scope that holds its `Peer` (absent: not from the Unix socket)."""

_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a Unix socket, as it was when it connected."""

    pid: int
    uid: int
    gid: int


def peer_of(transport: Any) -> Peer | None:
    """The process that opened this connection, or None if it did not come over a Unix socket."""
    shown = transport.get_extra_info("socket")
    if shown is None:
        return None
    with socket.socket(fileno=os.dup(shown.fileno())) as connection:
        if connection.family != socket.AF_UNIX:
            return None
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return Peer(*_CREDENTIALS.unpack(raw))


class PeerProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, which also tells the application who is at the other end."""

    _peer: Peer | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note who connected."""
        super().connection_made(transport)
        self._peer = peer_of(transport)

    def on_message_begin(self) -> None:
        """Put it into the scope of each request."""
        super().on_message_begin()
        if self._peer is not None:
            self.scope[PEER] = self._peer  # type: ignore[literal-required]


class Gate:
    """Turns a request into a `Caller`, or refuses it."""

    def __init__(self, tokens: Tokens, *, admins: Collection[str] = (), own_uid: int, everybody: bool) -> None:
        """`everybody`: serve all users of the machine (needs root's rights); otherwise only `own_uid`."""
        self._tokens, self._admins = tokens, frozenset(admins)
        self.own_uid, self.everybody = own_uid, everybody
        self.own_name = accounts.by_uid(own_uid).name

    def caller(self, scope: Mapping[str, Any], authorization: str | None) -> Caller:
        """Who this is. Raises `Refusal`: nobody knows (401), or this service is not for that user (403)."""
        peer: Peer | None = scope.get(PEER)
        if peer is not None:
            account = accounts.by_uid(peer.uid)
            return self._admit(account.name, peer.uid, account.groups)
        scheme, _, text = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise Refusal(
                "unauthorized",
                "over TCP a token is needed: make one with `fairlead token create` (over the Unix socket) and set "
                "FAIRLEAD_TOKEN, or send `Authorization: Bearer TOKEN`",
            )
        token = self._tokens.recognise(text.strip())
        if token is None:
            raise Refusal(
                "unauthorized", "this token is not known; it may have been revoked: `fairlead token create` makes one"
            )
        return self._admit(token.user, token.uid, accounts.by_uid(token.uid).groups)

    def _admit(self, user: str, uid: int, groups: tuple[str, ...]) -> Caller:
        is_admin = uid in (0, self.own_uid) or user in self._admins
        if self.everybody:
            return Caller(user, uid, is_admin, groups=groups)
        if uid == self.own_uid:
            return Caller(user, uid, True, groups=groups)
        if is_admin:
            return Caller(user, uid, True, may_submit=False, groups=groups)
        raise Refusal(
            "forbidden",
            f"this service serves {self.own_name} alone, and you are {user}; start one of your own with `fairlead up`, "
            f"or have it started by root for everybody",
        )
