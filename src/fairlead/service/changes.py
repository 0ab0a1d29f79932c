"""Whether something happened: a number that grows, for those who look again when it does.

Decides what can wait: notes of what jobs wait for are told later, many at once; after a big submission they go on for
minutes, and nothing but the stories of those jobs shows them. So is it with applications that ended long before. Says
nothing of what happened. Never blocks the writer: however much it tells, those who wait are woken once a turn of their
loop. Invariant: whoever waits for more than a number that is passed already is answered at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from fairlead.core.model.decisions import ApplicationChanged
from fairlead.journal.format import SCHEDULE
from fairlead.local.history_records import JobWaits
from fairlead.runtime import Entry

NOTES_S = 60.0
"""So long notes of what jobs wait for may not be told."""


class Changes:
    """How far the records have come."""

    def __init__(self) -> None:
        self.seq = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = self._closed = False
        self._next: asyncio.Future[None] | None = None
        self._noted = 0
        """How far it has come with notes that nobody was told of."""
        self._notes: asyncio.TimerHandle | None = None

    def offer(self, entries: Sequence[Entry]) -> None:
        """More was recorded; called by the writer."""
        if not entries:
            return
        seq = max(self.seq + 1, entries[-1].seq)
        if all(map(_can_wait, entries)):
            self._noted = seq
            self._soon(self._tell_notes_later)
        else:
            self.advance(seq)

    def advance(self, seq: int) -> None:
        """It has come so far; may be called from any thread."""
        self.seq = seq
        if self._loop is not None and not self._told:
            self._told = True  # Before: the loop may be quicker than this thread.
            self._soon(self._wake)

    def _soon(self, act: Callable[[], None]) -> None:
        """Have it done on the loop, if there is one."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(act)
            except RuntimeError:  # The loop has ended.
                self._loop = None

    def _tell_notes_later(self) -> None:
        if self._notes is None and self._loop is not None:
            self._notes = self._loop.call_later(NOTES_S, self._tell_notes)

    def _tell_notes(self) -> None:
        self._notes = None
        if self._noted > self.seq:
            self.advance(self._noted)

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


def _can_wait(entry: Entry) -> bool:
    """Whether nobody looks for this: a note, or scheduling that decided nothing but what becomes of applications."""
    if entry.kind == SCHEDULE:
        return all(isinstance(decision, ApplicationChanged) for decision in entry.decisions)
    return isinstance(entry.what, JobWaits)
