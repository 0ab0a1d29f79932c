"""Tokens: what a caller over TCP shows instead of a user id.

Decides who a token stands for. Never keeps a token's text: the file has its SHA-256, so whoever reads it cannot use
it. Invariant: the file is there whole or not at all, and a token that was revoked is not accepted once `revoke` has
returned.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from pathlib import Path

import msgspec

from fairlead.service.whole_files import write_whole

PREFIX = "fl_"
MOST_TOKENS = 10_000


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token as it is stored."""

    id: str
    name: str
    user: str
    uid: int
    sha256: str
    created_at_ms: int


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
        try:
            self._file = msgspec.json.decode(path.read_bytes(), type=_File)
        except FileNotFoundError:
            self._file = _File()
        except (OSError, msgspec.DecodeError) as error:
            raise TokensError(f"{path} cannot be read ({error}); move it away, then make new tokens") from error

    def create(self, *, name: str, user: str, uid: int) -> tuple[str, Token]:
        """A new token for this user: its text, which nobody can show again, and what is stored. Raises OSError."""
        text = PREFIX + secrets.token_urlsafe(32)
        with self._lock:
            if len(self._file.tokens) >= MOST_TOKENS:
                raise TokensError(f"there are {MOST_TOKENS} tokens already; revoke some")
            token = Token(str(self._file.next_id), name, user, uid, _digest(text), time.time_ns() // 1_000_000)
            self._store(_File(self._file.next_id + 1, [*self._file.tokens, token]))
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
        """The token that this text is, or None. Every stored digest is compared, in constant time each."""
        shown, found = _digest(text), None
        for token in self._file.tokens:
            if hmac.compare_digest(token.sha256, shown):
                found = token
        if found is not None:
            self._used_ms[found.id] = time.time_ns() // 1_000_000
        return found

    def _store(self, file: _File) -> None:
        write_whole(self._path, msgspec.json.encode(file))
        self._file = file


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
