"""Ended jobs by the time of their end: which of them leave the book.

Decides the order in which they go: the one that ended first goes first. Never decides how many may stay. Invariant: no
job is in it twice, and it is sorted after every change.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable

from fairlead.wire.arrays import order


class EndedJobs:
    """The keys of ended jobs."""

    def __init__(self) -> None:
        self._by_end: list[tuple[int, tuple[int, int, str]]] = []
        """When it, or the last part of its array, ended, and the order of its key."""

    def __len__(self) -> int:
        return len(self._by_end)

    def add(self, ended_at_ms: int, key: str) -> None:
        """One more has ended."""
        insort(self._by_end, (ended_at_ms, order(key)))

    def before(self, at_ms: int, meant: Callable[[str], bool]) -> list[str]:
        """Those that had ended before this time, and are meant; the oldest end first."""
        found = self._by_end[: bisect_left(self._by_end, (at_ms, (0, -1, "")))]
        return [key for _, (_, _, key) in found if meant(key)]

    def beyond(self, most: int) -> list[str]:
        """Those that are too many; the oldest end first. An array, which goes as a whole, stays with its last part.

        So it does not go because it is large: that would be its end, before anybody has seen what came of it.
        """
        end = max(0, len(self._by_end) - most)
        if 0 < end < len(self._by_end):
            at_ms, (number, _, _) = self._by_end[end]
            end = min(end, bisect_left(self._by_end, (at_ms, (number, -1, ""))))
        return [key for _, (_, _, key) in self._by_end[:end]]

    def remove(self, keys: list[str]) -> None:
        """They have left the book."""
        gone = set(keys)
        self._by_end = [each for each in self._by_end if each[1][2] not in gone]
