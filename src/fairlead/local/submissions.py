"""Submissions by the name that their user gave them, so that a repeated one is known.

Decides nothing. Invariant: a name is known as long as one of its jobs is in the book, with all jobs that it ever had.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class _Submission:
    digest: str
    keys: dict[str, None] = field(default_factory=dict)
    there: int = 0
    """So many of its jobs are in the book."""


class Submissions:
    """The digest and the keys of each submission that has a name; names are each user's own."""

    def __init__(self) -> None:
        self._named: dict[tuple[int, str], _Submission] = {}

    def add(self, uid: int, name: str, digest: str, key: str) -> None:
        """One more job came with it."""
        found = self._named.setdefault((uid, name), _Submission(digest))
        found.keys[key] = None
        found.there += 1

    def find(self, uid: int, name: str) -> tuple[str, tuple[str, ...]] | None:
        """Its digest and keys, also of what has left the book; or None."""
        found = self._named.get((uid, name))
        return (found.digest, tuple(found.keys)) if found else None

    def remove(self, uid: int, name: str) -> None:
        """One of its jobs has left the book."""
        found = self._named[uid, name]
        found.there -= 1
        if not found.there:
            del self._named[uid, name]

    def dump(self) -> list[list[Any]]:
        """As plain values."""
        return [[uid, name, found.digest, list(found.keys)] for (uid, name), found in self._named.items()]

    @classmethod
    def load(cls, state: Iterable[tuple[int, str, str, list[str]]], book: Container[str]) -> Submissions:
        """What `dump` described."""
        made = cls()
        for uid, name, digest, keys in state:
            made._named[uid, name] = _Submission(digest, dict.fromkeys(keys), sum(key in book for key in keys))
        return made
