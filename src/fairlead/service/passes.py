"""For whom the service works, and passes for work of which little goes on at a time.

Decides whose turn it is to have a pass: users have their turns, as they have with the writer. Never knows what the pass
is for. Invariant: whatever waits on behalf of a request waits in its caller's line; what nobody asked for, in the
service's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from fairlead.runtime.lines import SERVICE, Lines

STRANGERS = -1
"""All who may read without saying who they are are one user."""
asking: ContextVar[int | None] = ContextVar("asking", default=SERVICE)
"""The number of the user whose request this task answers."""


class Passes:
    """So many at a time; who waits for one has it in turns by user. For one event loop."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._waiting: Lines[asyncio.Future[None]] = Lines()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """One of them, for as long as it lasts, for who is `asking`."""
        if self._left:
            self._left -= 1
        else:
            mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(asking.get(), mine)
            try:
                await mine
            except asyncio.CancelledError:
                if mine.done() and not mine.cancelled():
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while (waiting := self._waiting.next()) is not None:
            if not waiting.done():
                waiting.set_result(None)
                return
        self._left += 1
