"""Who is calling: on the Unix socket the kernel knows, over TCP a token says it.

Decides which user a request comes from, what that user may do in general, and who a token stands for. Never decides
about single jobs, and never keeps a token's text: the file has its SHA-256, so whoever reads it cannot use it.
Invariant: a caller on the Unix socket is who the kernel says, whatever the request claims; over TCP, and on the socket
of the pages, nobody is anybody without a token or session; the file of tokens is there whole or not at all, and a token
that was revoked is not accepted once `revoke` has returned.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.local import accounts
from fairlead.local.callers import Caller
from fairlead.runtime import Refusal
from fairlead.service.scopes import covers, is_within_queues, needed
from fairlead.service.sessions import SESSION, TICKET, TOKEN, Pass, Sessions
from fairlead.service.whole_files import read_whole, write_whole
from fairlead.wire.declarations import TokenScope
from fairlead.wire.pages import GUEST

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

PREFIX = "fl_"
MOST_TOKENS = 10_000
SHOWN_MS = 30 * 86_400_000
"""So long a token stays in the list after its time; whoever shows it is told that it is over."""
CONFIG = "/api/v1/config"
"""Its text has comments, and its history who changed it and where it lies; `/ws/v1/config` has none of that."""


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A token as it is stored. `user` is the name that the account `uid` had when it was made."""

    id: str
    name: str
    user: str
    uid: int
    sha256: str
    created_at_ms: int
    scope: TokenScope = "administer"
    expires_at_ms: int | None = None
    queue: str = ""
    """The queue that it is for, with those below it; empty: all."""

    def is_over(self, since_ms: int = 0) -> bool:
        """Whether its time is, and has been for so long."""
        return self.expires_at_ms is not None and time.time_ns() // 1_000_000 >= self.expires_at_ms + since_ms


class _File(msgspec.Struct, forbid_unknown_fields=True):
    next_id: int = 1
    tokens: list[Token] = []


class TokensError(Exception):
    """The file of tokens cannot be used; the text says why and what to do."""


class Tokens:
    """All tokens of one service. May be called from any thread."""

    def __init__(self, path: Path) -> None:
        """Read the file if it is there. Raises `TokensError` if it cannot be read."""
        self._path = path
        self._lock = threading.Lock()
        self._used_ms: dict[str, int] = {}
        self._by_digest: dict[str, Token] = {}
        try:
            file = msgspec.json.decode(read_whole(path), type=_File)
        except FileNotFoundError:
            file = _File()
        except (OSError, ValueError) as error:
            raise TokensError(f"{path} cannot be read ({error}); move it away, then make new tokens") from error
        self._take(file)

    def create(
        self,
        *,
        name: str,
        user: str,
        uid: int,
        scope: TokenScope = "administer",
        lifetime_ms: int | None = None,
        queue: str = "",
    ) -> tuple[str, Token]:
        """A new token for this user: its text, which nobody can show again, and what is stored. Raises OSError."""
        text, now_ms = PREFIX + secrets.token_urlsafe(32), time.time_ns() // 1_000_000
        until_ms = None if lifetime_ms is None else now_ms + lifetime_ms
        with self._lock:
            kept = [each for each in self._file.tokens if not each.is_over(SHOWN_MS)]
            if len(kept) >= MOST_TOKENS:
                raise TokensError(f"there are {MOST_TOKENS} tokens already; revoke some")
            token = Token(str(self._file.next_id), name, user, uid, _digest(text), now_ms, scope, until_ms, queue)
            self._store(_File(self._file.next_id + 1, [*kept, token]))
        return text, token

    def revoke(self, identifier: str) -> bool:
        """No longer accept this token; False if there is none of this id. Raises OSError."""
        with self._lock:
            left = [token for token in self._file.tokens if token.id != identifier]
            if len(left) == len(self._file.tokens):
                return False
            self._store(_File(self._file.next_id, left))
            return True

    def find(self, identifier: str) -> Token | None:
        """The token of this id, or None."""
        return next((token for token in self._file.tokens if token.id == identifier), None)

    def all(self) -> list[Token]:
        """Every token, oldest first."""
        return list(self._file.tokens)

    def used_ms(self, token: Token) -> int | None:
        """When it was last shown to this process, or None."""
        return self._used_ms.get(token.id)

    def recognise(self, text: str) -> Token | None:
        """The token that this text is, or None. By its digest: how long that takes says nothing of the text itself."""
        found = self._by_digest.get(_digest(text))
        if found is not None:
            self._used_ms[found.id] = time.time_ns() // 1_000_000
        return found

    def user_of(self, text: str) -> int | None:
        """The number of the user whose token this text is, found at once; None: of nobody. Accepts nothing."""
        token = self._by_digest.get(_digest(text))
        return token.uid if token is not None and not token.is_over() else None

    def _store(self, file: _File) -> None:
        write_whole(self._path, msgspec.json.encode(file))
        self._take(file)

    def _take(self, file: _File) -> None:
        self._file, self._by_digest = file, {token.sha256: token for token in file.tokens}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# -- who is at the other end ---------------------------------------------------------------------------------------

CONNECTION = "fairlead.connection"
"""The key of a request's scope that holds what it came over; its `token` is noted there, and ends it."""
PEER = "fairlead.peer"
"""The key of a request's scope that holds its `Peer` (absent: not from the Unix socket)."""

PAGES = ".pages"
"""Ends the path of a Unix socket on which the kernel's word does not count: who asks there asks for others."""

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
        if connection.family != socket.AF_UNIX or str(connection.getsockname()).endswith(PAGES):
            return None
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return Peer(*_CREDENTIALS.unpack(raw))


class Gate:
    """Turns a request into a `Caller`, or refuses it."""

    def __init__(
        self,
        tokens: Tokens,
        *,
        admins: Collection[str] = (),
        own_uid: int,
        everybody: bool,
        guests: bool = False,
        sessions: Sessions | None = None,
        account_of: Callable[[int], accounts.Account] = accounts.by_uid,
    ) -> None:
        """`everybody`: serve all users of the machine (needs root's rights); otherwise only `own_uid`. `guests`:
        strangers may look.
        """
        self._tokens, self._sessions, self._admins = tokens, sessions, frozenset(admins)
        self._account_of = account_of
        self.own_uid, self.everybody, self._guests = own_uid, everybody, guests
        self.own_name = accounts.by_uid(own_uid).name

    def caller(self, scope: MutableMapping[str, Any], authorization: str | None) -> Caller:
        """Who this is. Raises `Refusal`: nobody knows (401), or just now (503); or this is not for that user (403)."""
        try:
            return self._recognised(scope, authorization)
        except OSError as problem:
            raise Refusal(
                "unavailable", f"who you are cannot be looked up: {problem.strerror or problem}; try again"
            ) from problem

    def _recognised(self, scope: MutableMapping[str, Any], authorization: str | None) -> Caller:
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
        if self._sessions is not None and text.strip().startswith((TICKET, SESSION)):
            session = self._sessions.recognise(text.strip())
            return self._guest(scope) if session is not None and not session.user else self._of_session(session, scope)
        if text.strip() == GUEST:
            return self._guest(scope)
        return self._of_token(self._tokens.recognise(text.strip()), scope)

    def user_of(self, scope: Mapping[str, Any]) -> int | None:
        """The number of the user whose request this is, if what it shows is still good; None: of nobody.

        Found at once, for the order in which requests have their turns: no account is looked up and nothing used up.
        """
        peer: Peer | None = scope.get(PEER)
        if peer is not None:
            return peer.uid
        shown = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        text = shown.decode("latin-1").partition(" ")[2].strip()
        if text.startswith((TICKET, SESSION)):
            found = self._sessions.look(text) if self._sessions is not None else None
            token = self._tokens.find(found.token) if found is not None else None
            is_good = found is not None and (not found.token or (token is not None and not token.is_over()))
            return found.uid if found is not None and is_good else None
        return self._tokens.user_of(text) if text else None

    def _guest(self, scope: Mapping[str, Any]) -> Caller:
        """Nobody in particular, who may look at what everybody may see, and begin and end a session for that."""
        if not self._guests:
            raise Refusal("unauthorized", "strangers see nothing here (`fairlead up --open-reads`); sign in")
        if scope["method"] not in ("GET", "HEAD") and scope["path"] != "/api/v1/sessions":
            raise Refusal("forbidden", "a guest may look and change nothing; sign in")
        if scope["path"].startswith(CONFIG):
            raise Refusal("forbidden", "the queue file, and who changed it, are for those who are known here; sign in")
        return Caller("", -1, may_submit=False)

    def _of_session(self, session: Pass | None, scope: MutableMapping[str, Any]) -> Caller:
        account = self._account_of(session.uid) if session is not None else None
        if session is None or account is None or account.name != session.user:
            raise Refusal("unauthorized", "this session is over, or the ticket was used; run `fairlead web` again")
        if session.token:
            token = self._tokens.find(session.token)
            if (no := self.objection(token)) or token is None:
                raise Refusal("unauthorized", f"this session is over: {no}; sign in again")
            _note(token, scope)
        return self._admit(session.user, session.uid, account.groups)

    def _of_token(self, token: Token | None, scope: MutableMapping[str, Any]) -> Caller:
        if (no := self.objection(token)) or token is None:
            raise Refusal("unauthorized", f"{no}: `fairlead token create` makes one")
        method, path = scope["method"], scope["path"]
        if not covers(token.scope, method, path):
            wanted = needed(method, path)
            raise Refusal("forbidden", f"this token is to {token.scope}, and {method} {path} needs one to {wanted}")
        if token.queue and not is_within_queues(method, path):
            raise Refusal("forbidden", f"this token is for {token.queue} alone, and {method} {path} is about more")
        _note(token, scope)
        caller = self._admit(token.user, token.uid, self._account_of(token.uid).groups)
        owner_only = token.scope == "submit"
        is_admin = caller.is_admin and not owner_only
        caller = replace(caller, is_admin=is_admin and not token.queue, owner_only=owner_only)
        return replace(caller, within=token.queue, heads_it=is_admin) if token.queue else caller

    def objection(self, token: Token | None) -> str:
        """Why this token is not accepted now, as a sentence; empty: it is. Raises OSError: nobody can say."""
        if token is None or self._tokens.find(token.id) is None:
            return "this token is not known; it may have been revoked"
        if token.is_over():
            return "the time of this token is over"
        if (name := self._account_of(token.uid).name) != token.user:
            return f"this token was made for {token.user}, whose account is gone; its number is that of {name} now"
        return ""

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


def _note(token: Token, scope: MutableMapping[str, Any]) -> None:
    """That this request lives by this token: a session that it begins does, and what it came over."""
    scope[TOKEN] = token.id
    if (connection := scope.get(CONNECTION)) is not None:
        connection.token = token
