"""Submissions by the name that their user gave them, so that a repeated one is known.

Decides nothing. Invariant: a name is known as long as one of its jobs is in the book.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Submissions:
    """The digest and the keys of each submission that has a name; names are each user's own."""

    def __init__(self) -> None:
        self._named: dict[tuple[int, str], tuple[str, dict[str, None]]] = {}

    def add(self, uid: int, name: str, digest: str, key: str) -> None:
        """One more job came with it."""
        self._named.setdefault((uid, name), (digest, {}))[1][key] = None

    def find(self, uid: int, name: str) -> tuple[str, tuple[str, ...]] | None:
        """Its digest and keys, or None."""
        found = self._named.get((uid, name))
        return (found[0], tuple(found[1])) if found else None

    def remove(self, uid: int, name: str, key: str) -> None:
        """This job has left the book."""
        keys = self._named[uid, name][1]
        del keys[key]
        if not keys:
            del self._named[uid, name]

    def dump(self) -> list[list[Any]]:
        """As plain values."""
        return [[uid, name, digest, list(keys)] for (uid, name), (digest, keys) in self._named.items()]

    @classmethod
    def load(cls, state: Iterable[tuple[int, str, str, list[str]]]) -> Submissions:
        """What `dump` described."""
        made = cls()
        made._named = {(uid, name): (digest, dict.fromkeys(keys)) for uid, name, digest, keys in state}
        return made
