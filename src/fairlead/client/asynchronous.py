"""The client for programs with an event loop: the calls of `Client`, to be awaited.

Decides nothing that `Client` does not. Never keeps a connection between calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from fairlead.client import http
from fairlead.client.errors import Unreachable
from fairlead.client.http import Answer, Call, EventReader, ServerEvent
from fairlead.client.paging import page_of, things_of
from fairlead.client.routes import Routes, Stream
from fairlead.client.sync import LIVE, PAUSES_S, broken, out_of_reach
from fairlead.client.trust import trusting, untrusted

if TYPE_CHECKING:
    from fairlead.client.terminals import AsyncTerminal
    from fairlead.wire.jobs import JobDetails

T = TypeVar("T")
_LOOK_S = 0.2
_CHUNK = 65_536


class AsyncClient(Routes):
    """Calls on one service. Without an address: that of the environment, the configuration, or the usual place."""

    # -- what takes time ---------------------------------------------------------------------------------------------

    async def log(
        self,
        key: str,
        stream: Stream = "stdout",
        *,
        offset: int = 0,
        limit: int | None = None,
        attempt: int | None = None,
    ) -> bytes:
        """What a job wrote so far from byte `offset` on (below 0: counted from the end), at most `limit`.

        It is that of its newest attempt, or of another one.
        """
        call = self._log(key, stream, offset, limit, attempt, follow=False)
        return b"".join([piece async for piece in self._pieces(call, self.timeout_s)])

    def follow(
        self, key: str, stream: Stream = "stdout", *, offset: int = 0, attempt: int | None = None
    ) -> AsyncIterator[bytes]:
        """What a job writes, from byte `offset` on (below 0: from the end), until it (or that attempt) has ended."""
        return self._pieces(self._log(key, stream, offset, None, attempt, follow=True), None)

    async def events(
        self,
        *,
        after: str = "",
        since: int | None = None,
        timeout_s: float | None = None,
        opened: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[ServerEvent]:
        """What happens from now on, after the event `after`, or since record `since`; ends when the service closes.

        `timeout_s`: the longest silence (heartbeats count) before the stream is taken for dead. `opened` is called
        once, when the stream has begun: whatever happens after that is told.
        """
        reader, is_open = EventReader(), False
        async for piece in self._pieces(self._events(after, since), timeout_s):
            if not is_open:
                is_open = True
                opened()
            for event in reader.feed(piece):
                yield event

    async def wait(self, key: str, *, timeout_s: float | None = None) -> JobDetails:
        """The job once it has ended. Raises `TimeoutError` if it has not by then."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while (job := await self.job(key)).state in LIVE:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{key} is {job.state} after {timeout_s:g} s")
            await asyncio.sleep(_LOOK_S)
        return job

    @asynccontextmanager
    async def terminal(self, key: str) -> AsyncIterator[AsyncTerminal]:
        """Sit at the terminal of a job that runs, until the block ends; the terminal and the job go on."""
        from fairlead.client.terminals import AsyncTerminal

        async with self._connected() as (reader, writer):
            terminal = AsyncTerminal(reader, writer, self.address, key)
            try:
                yield terminal
            finally:
                terminal.close()

    # -- transport ---------------------------------------------------------------------------------------------------

    async def send(self, call: Call[T], shape: Any) -> T:
        """The answer to a call. Sent again when the connection broke, if that can do no harm."""
        started = False
        for pause in (*PAUSES_S, None):
            try:
                content = b"".join([piece async for piece in self._pieces(call, self.timeout_s + call.takes_s)])
                answer: T = http.decoded(content, shape, self.address)
                return answer
            except Unreachable as error:
                # That nothing answers any more does not take back what an earlier attempt may have brought there.
                started = error.started = started or error.started
                if pause is None or not (call.repeat and started):
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def things(self, call: Call[T], shape: Any) -> AsyncIterator[T]:
        """All things of a list, page by page."""
        left, after = call.most, None
        while left is None or left > 0:
            page: Any = await self.send(page_of(call, after, left), shape)
            for thing in things_of(page):
                yield thing
            left, after = None if left is None else left - len(things_of(page)), page.next
            if after is None:
                return

    async def _pieces(self, call: Call[Any], timeout_s: float | None) -> AsyncIterator[bytes]:
        """The content of an answer as it arrives."""
        answer = Answer()
        async with self._connected() as (reader, writer):
            try:
                writer.write(http.request(call, self.address))
                with contextlib.suppress(ConnectionError):  # What the service said before it stopped reading.
                    await writer.drain()
                while not answer.complete:
                    async with asyncio.timeout(timeout_s):
                        received = await reader.read(_CHUNK)
                    if piece := answer.feed(received):
                        yield piece
            except TimeoutError:
                told = f"the service at {self.address} did not answer in {timeout_s:g} s"
                raise Unreachable(told, True) from None
            except (OSError, http.CutShort) as error:
                raise broken(error, self.address) from None
        answer.check(self.address)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        address = self.address
        try:
            async with asyncio.timeout(self.timeout_s):
                if address.socket:
                    reader, writer = await asyncio.open_unix_connection(address.socket)
                else:
                    secure = trusting(address) if address.scheme == "https" else None
                    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=secure)
        except ssl.SSLError as error:
            raise untrusted(error, address) from None
        except OSError as error:
            raise out_of_reach(error, address) from None
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
