"""Tickets and sessions: how a browser comes to be somebody.

A ticket is good for one request within a minute; a session, for which it is exchanged, for half a day. Decides whom
each stands for and how long. Never decides what they may do, and keeps no text of either: only its SHA-256. Invariant:
a ticket is accepted once; what has expired or was ended is not accepted; where they have a file, sessions outlive a
restart of the service.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec

from fairlead.service.whole_files import read_whole, write_whole

TICKET, SESSION = "flt_", "fls_"
TOKEN = "fairlead.token"
"""The key of a request's scope that holds what a session that it begins is judged by (`Pass.token`), if anything."""
TICKET_S = 60
SESSION_S = 12 * 3600
MOST = 1000
"""Tickets, and sessions, of all users; with one more the oldest one of whoever has the most ends."""


class Pass(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whom a ticket or session stands for, and until when."""

    user: str
    uid: int
    expires_at_ms: int
    token: str = ""
    """What each request is judged by beside its user: on a machine the id of the token with which it began, on a
    cluster that token itself (in no file, since sessions there have none). Empty: it began without one.
    """


class Sessions:
    """All tickets and sessions of one service. May be called from any thread."""

    def __init__(self, path: Path | None) -> None:
        """Read the file if it is there; one that cannot be read means that everybody signs in anew. None: no file."""
        self._path = path
        self._lock = threading.Lock()
        self._tickets: dict[str, Pass] = {}
        self._sessions: dict[str, Pass] = {}
        if path is None:
            return
        with contextlib.suppress(OSError, ValueError):  # `Damaged` and what msgspec raises are ValueErrors.
            self._sessions = msgspec.json.decode(read_whole(path), type=dict[str, Pass])

    def ticket(self, user: str, uid: int, token: str = "") -> tuple[str, Pass]:
        """A new ticket for this user: its text, which nobody can show again, and what it is good for."""
        text, made = TICKET + secrets.token_urlsafe(32), Pass(user, uid, _now_ms() + TICKET_S * 1000, token)
        with self._lock:
            self._tickets = _bounded(_lasting(self._tickets) | {_digest(text): made})
        return text, made

    def session(self, user: str, uid: int, token: str = "") -> tuple[str, Pass]:
        """A new session for this user. Raises OSError if it could not be stored."""
        text, made = SESSION + secrets.token_urlsafe(32), Pass(user, uid, _now_ms() + SESSION_S * 1000, token)
        with self._lock:
            self._store(_bounded(_lasting(self._sessions) | {_digest(text): made}))
        return text, made

    def end(self, text: str) -> None:
        """No longer accept this session. Raises OSError."""
        with self._lock:
            self._store({digest: each for digest, each in self._sessions.items() if digest != _digest(text)})

    def recognise(self, text: str) -> Pass | None:
        """Whom this text stands for; a ticket is used up by it."""
        digest, now_ms = _digest(text), _now_ms()
        if text.startswith(TICKET):
            with self._lock:
                found = self._tickets.pop(digest, None)
        else:
            found = self._sessions.get(digest)
        return found if found is not None and found.expires_at_ms > now_ms else None

    def look(self, text: str) -> Pass | None:
        """Whom this text stands for, as `recognise` says it; nothing is used up by it."""
        digest = _digest(text)
        found = self._tickets.get(digest) or self._sessions.get(digest)
        return found if found is not None and found.expires_at_ms > _now_ms() else None

    def _store(self, sessions: dict[str, Pass]) -> None:
        if self._path is not None:
            write_whole(self._path, msgspec.json.encode(sessions))
        self._sessions = sessions


def _lasting(passes: dict[str, Pass]) -> dict[str, Pass]:
    now_ms = _now_ms()
    return {digest: each for digest, each in passes.items() if each.expires_at_ms > now_ms}


def _bounded(passes: dict[str, Pass]) -> dict[str, Pass]:
    """Not too many: no user can have so many that those of others end."""
    while len(passes) > MOST:
        [(most, _)] = Counter((each.user, each.uid) for each in passes.values()).most_common(1)
        oldest = next(digest for digest, each in passes.items() if (each.user, each.uid) == most)
        passes = {digest: each for digest, each in passes.items() if digest != oldest}
    return passes


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
