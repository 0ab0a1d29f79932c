"""What waits, in a line for each user.

Decides what is next: the first of each line in turn, so a user who brings much keeps others waiting for one thing of
it. Never knows what waits, nor a lock. Invariant: within a line things keep their order; a line that was next is the
last to be next again.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

SERVICE = None
"""Who waits for nobody in particular: the service itself."""


class Lines(Generic[T]):
    """The lines of all users for whom something waits. Who that is only has to be told from others: a user's number."""

    def __init__(self) -> None:
        self._lines: dict[int | None, deque[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, user: int | None, thing: T) -> None:
        """One more, at the end of the user's line."""
        self._lines.setdefault(user, deque()).append(thing)

    def next(self) -> T | None:
        """What is next, which waits no more; None: nothing waits."""
        if not self._lines:
            return None
        user = next(iter(self._lines))
        line = self._lines.pop(user)
        thing = line.popleft()
        if line:
            self._lines[user] = line
        return thing
