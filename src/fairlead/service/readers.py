"""Those who read a stream, each with a line of what waits for it.

Decides how far a reader may fall behind, and how many there may be. Never blocks whoever offers. Invariant: a reader
gets everything that was offered since it came, in order and once, until it overflows or is closed; then nothing more.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

from fairlead.runtime import Refusal

T = TypeVar("T")
MOST_READERS = 200


class Reader(Generic[T]):
    """One reader's line."""

    def __init__(self, behind: int) -> None:
        """`behind`: so much waits for it at most. To be made in the event loop that it reads in."""
        self._loop, self._behind = asyncio.get_running_loop(), behind
        self._wake = asyncio.Event()
        self.waiting: deque[T] = deque()
        self.overflowed = False
        self.closed = False

    def offer(self, more: Sequence[T]) -> None:
        """More to read; may be called from any thread."""
        if self.overflowed or self.closed:
            return
        if len(self.waiting) + len(more) > self._behind:
            self.overflowed = True
        else:
            self.waiting.extend(more)
        self._nudge()

    def close(self) -> None:
        """Nothing more is coming; may be called from any thread."""
        self.closed = True
        self._nudge()

    def _nudge(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:
            self.closed = True

    async def next(self, timeout_s: float | None = None) -> list[T]:
        """What waits; empty after `timeout_s` without anything, and at the end."""
        while not (self.waiting or self.overflowed or self.closed):
            try:
                await asyncio.wait_for(self._wake.wait(), timeout_s)
            except TimeoutError:
                return []
            self._wake.clear()
        found = []
        while self.waiting:
            found.append(self.waiting.popleft())
        return found


class Readers(Generic[T]):
    """All who read the same. What is offered from one thread may be read in another."""

    def __init__(self) -> None:
        self._all: tuple[Reader[T], ...] = ()
        self._changing = threading.Lock()
        self._closed = False

    def __len__(self) -> int:
        return len(self._all)

    def offer(self, more: Sequence[T]) -> None:
        """Tell all of them."""
        for reader in self._all:
            reader.offer(more)

    def join(self, behind: int) -> Reader[T]:
        """A new reader, who gets everything from now on. Raises `Refusal` if there are too many."""
        reader: Reader[T] = Reader(behind)
        with self._changing:
            if self._closed:
                raise Refusal("unavailable", "the service is stopping; try again when it is back")
            if len(self._all) >= MOST_READERS:
                raise Refusal("too-many", f"{MOST_READERS} streams are open already; close some, or poll instead")
            self._all = (*self._all, reader)
        return reader

    def leave(self, reader: Reader[T]) -> None:
        """It reads no more."""
        with self._changing:
            self._all = tuple(each for each in self._all if each is not reader)

    def close(self) -> None:
        """End every stream."""
        with self._changing:
            self._closed = True
            for reader in self._all:
                reader.close()
