"""Whether something happened: a number that grows, for those who look again when it does.

Decides nothing, and says nothing of what happened. Never blocks the writer: however much it tells, those who wait are
woken once a turn of their loop. Invariant: whoever waits for more than a number that is passed already is answered at
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fairlead.runtime import Entry


class Changes:
    """How far the records have come."""

    def __init__(self) -> None:
        self.seq = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = self._closed = False
        self._next: asyncio.Future[None] | None = None

    def offer(self, entries: Sequence[Entry]) -> None:
        """More was recorded; called by the writer."""
        if entries:
            self.advance(max(self.seq + 1, entries[-1].seq))

    def advance(self, seq: int) -> None:
        """It has come so far; may be called from any thread."""
        self.seq = seq
        if self._loop is not None and not self._told:
            self._told = True
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # The loop has ended.
                self._loop = None

    def close(self) -> None:
        """Answer whoever waits, now and from now on: the service is stopping."""
        self._closed = True
        self.advance(self.seq)

    def _wake(self) -> None:
        self._told = False
        if self._next is not None and not self._next.done():
            self._next.set_result(None)
        self._next = None

    async def after(self, seq: int, wait_s: float) -> int:
        """The number once it is above `seq`, or after so long."""
        self._loop = asyncio.get_running_loop()
        if self.seq <= seq and not self._closed:
            if self._next is None:
                self._next = self._loop.create_future()
            await asyncio.wait((self._next,), timeout=wait_s)
        return self.seq
