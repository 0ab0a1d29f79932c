"""The event queue: what people are to read of a pod, on its way to the server beside what is done.

Decides when an event is sent: few at a time, the oldest first, so that pods that are to be bound are not held up by
what is told of others. Never decides what is said. Invariant: no more than `MOST` wait; what comes then is counted and
let go.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from fairlead.kubernetes.acts import Record

log = logging.getLogger("fairlead.kubernetes")

AT_ONCE = 4
MOST = 10_000
SAID_AGAIN_S = 60.0
"""That some are let go is said this often at most."""


class EventQueue:
    """The events of one process."""

    def __init__(self, send: Callable[[Record, str], Awaitable[None]]) -> None:
        """`send(event, stamp)` sends one, and gives up by itself."""
        self.let_go = 0
        """So many were not sent, because too many waited."""
        self._send = send
        self._waiting: deque[tuple[Record, str]] = deque()
        self._senders: set[asyncio.Task[None]] = set()
        self._said_s = -SAID_AGAIN_S

    def put(self, event: Record, stamp: str) -> None:
        """Have it sent; `stamp` is when it happened."""
        if len(self._waiting) >= MOST:
            self._let_go()
            return
        self._waiting.append((event, stamp))
        if len(self._senders) < AT_ONCE:
            sender = asyncio.create_task(self._work(), name="events")
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)

    def _let_go(self) -> None:
        self.let_go += 1
        now = asyncio.get_running_loop().time()
        if now - self._said_s >= SAID_AGAIN_S:
            self._said_s = now
            log.warning("%d events were not sent so far: the server takes them too slowly", self.let_go)

    async def _work(self) -> None:
        while self._waiting:
            await self._send(*self._waiting.popleft())

    async def settle(self) -> None:
        """Wait until all are sent."""
        while self._senders:
            await asyncio.gather(*self._senders, return_exceptions=True)

    async def stop(self) -> None:
        """Send nothing any more; what waits is given up."""
        self._waiting.clear()
        senders = list(self._senders)
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
