"""When pages look again: at once when something changed, and never more than the scheduler can spare.

Decides when the next look is, and which: of those that are earned (`budget`) the one that costs least, one at a time,
since the service answers one at a time; beside it at most one large one. Never decides what is looked at. Invariant:
pages of the same viewer that ask the same share one answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from typing import Any, Literal, TypeVar, TypeVarTuple, Unpack, cast

from fairlead.client.asynchronous import AsyncClient
from fairlead.client.errors import ClientError, Refused
from fairlead.web.budget import SMALL_S, Budget, Costs

T = TypeVar("T")
As = TypeVarTuple("As")
LOOK_AGAIN_S = 1.0
POLL_S = 25.0
UNKNOWN = 401
NEWS_S = 0.2
"""After news, until it is asked whether there are more."""
QUIET_S = 1.0
"""News after so long without any are shown at once, whatever was shown before."""
LOST_AGAIN_S = 1.0
FRESH_S = 0.2
"""An answer that is no older is given to whoever opens a page, too."""
MOST_SHARED = 500
SOMEBODY_WAITS: ContextVar[Literal["", "opening", "acting"]] = ContextVar("somebody waits", default="")
"""What is asked now is waited for: a page is being opened (it looks again as soon as it is there), or somebody did
something (and has to see what came of it).
"""
OPENING_S = 2.0
"""An answer that is no older, or under way, is good enough to open a page with."""
SETTLE_S = 0.03
"""What happens together is looked at once."""


class Look:
    """A question that was asked, or will be as soon as that is earned, and its answer."""

    __slots__ = ("answer", "ask", "begun", "is_asked", "is_first", "key", "seq", "task")

    def __init__(self, key: tuple[Any, ...], ask: Callable[[], Awaitable[Any]], *, is_first: bool = False) -> None:
        self.key, self.ask = key, ask
        self.is_first = is_first
        """It is about the first news after a quiet time."""
        self.is_asked = False
        self.seq, self.begun = 0, 0.0
        """How far the service had come when it was asked, and when that was."""
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None


class Live:
    """How far the service has come, for all open pages."""

    def __init__(self) -> None:
        self.seq = 0
        self.lost = ""
        """Why the service does not answer; empty: it does."""
        self.budget = Budget()
        self._costs = Costs()
        self._clients: dict[object, AsyncClient] = {}
        self._polling: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._told_at, self._is_first = time.monotonic(), False
        """When there were news, and whether they were the first for a while."""
        self.notes: dict[str, object] = {}
        """What pages keep for each other, by name."""
        self._shared: dict[tuple[Any, ...], Look] = {}
        self._derived: dict[Hashable, tuple[tuple[object, ...], asyncio.Task[Any]]] = {}
        self._due: dict[Look, None] = {}
        """Looks that nobody waits for, until they are earned."""
        self._looking: asyncio.Task[None] | None = None
        self._large: Look | None = None
        """A look that costs much, and is under way."""
        self._more = asyncio.Event()
        """There may be something to ask."""

    def join(self, page: object, client: AsyncClient) -> None:
        """A page is open: as long as one is, the service is asked for news."""
        self._clients[page] = client
        if self._polling is None or self._polling.done():
            self._polling = asyncio.create_task(self._poll())

    def leave(self, page: object) -> None:
        """It is closed."""
        self._clients.pop(page, None)

    async def after(self, seq: int, wait_s: float) -> int:
        """How far it has come, once that is more, or after so long."""
        if self.seq <= seq:
            try:
                await asyncio.wait_for(self._news.wait(), wait_s)
            except TimeoutError:
                return self.seq
            await asyncio.sleep(SETTLE_S)
        return self.seq

    def look_again(self) -> None:
        """There is something to show though nothing changed at the service."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _poll(self) -> None:
        while self._clients:
            page, client = next(reversed(self._clients.items()))
            try:
                told = await client.changes(after=self.seq, wait=0.0 if self.lost else POLL_S)
            except ClientError as error:
                if isinstance(error, Refused) and error.status == UNKNOWN:
                    self.leave(page)  # Its session is over; it finds out by itself.
                    continue
                self._tell(self.seq + 1, error.message)
                await asyncio.sleep(LOST_AGAIN_S)
            else:
                if told.seq != self.seq or self.lost:
                    self._tell(told.seq, "")
                await asyncio.sleep(NEWS_S)

    def _tell(self, seq: int, lost: str) -> None:
        now = time.monotonic()
        self._is_first, self._told_at = now - self._told_at >= QUIET_S, now
        self.seq, self.lost = seq, lost
        self.look_again()

    async def shared(self, key: tuple[Any, ...], ask: Callable[[], Awaitable[T]]) -> T:
        """The answer to a question about the present, asked once for all pages with the same key: the question's name
        first, then whoever asks, where that matters.
        """
        known = self._shared.get(key)
        if known is None or not self._is_of_now(known):
            known = self._shared[key] = Look(key, ask, is_first=self._is_first)
            self._due[known] = None
            if len(self._shared) > MOST_SHARED:
                self._shared = dict(list(self._shared.items())[-MOST_SHARED // 2 :])
        if known in self._due:
            if SOMEBODY_WAITS.get():  # A page that opens would else wait until it is earned.
                self._begin(known)
            else:
                self._see_to_it()
        try:
            return cast(T, await asyncio.shield(known.answer))
        except Refused as no:
            if known.ask is ask or no.status != UNKNOWN:
                raise
            # The session of whoever asked may be over; this one's may not.
            return await ask()

    async def derived(self, key: Hashable, work_out: Callable[[Unpack[As]], T], *answers: *As) -> T:
        """What follows from answers that pages share, worked out once for all of them, beside what else goes on."""
        known = self._derived.pop(key, None)
        given: tuple[Any, ...] = answers
        if known is None or any(old is not new for old, new in zip(known[0], given, strict=True)):
            known = (given, asyncio.create_task(asyncio.to_thread(work_out, *answers)))
        self._derived[key] = known
        if len(self._derived) > MOST_SHARED:
            del self._derived[next(iter(self._derived))]
        return cast(T, await asyncio.shield(known[1]))

    def _is_of_now(self, look: Look) -> bool:
        """Whether nothing can have changed since this was asked, as far as pages are told."""
        answer = look.answer
        if answer.done() and (answer.cancelled() or answer.exception() is not None):
            return False
        if not look.is_asked:
            return True  # It will be of the moment at which it is asked.
        if SOMEBODY_WAITS.get() == "opening":
            return not answer.done() or time.monotonic() - look.begun < OPENING_S
        hears_of_changes = self._polling is not None and not self._polling.done() and not SOMEBODY_WAITS.get()
        return look.seq == self.seq and (hears_of_changes or time.monotonic() - look.begun < FRESH_S)

    # -- one after the other ------------------------------------------------------------------------------------------

    def _see_to_it(self) -> None:
        """What is due is asked once it is earned."""
        self._more.set()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while self._due:
            self._more.clear()
            look, wait_s = self._next()
            if look is None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._more.wait(), min(LOOK_AGAIN_S, wait_s + 0.01))
            elif self._cost(look) <= SMALL_S:
                self._begin(look)
                await asyncio.wait((look.answer,))
            else:
                self._begin(look)
                self._large = look
                look.answer.add_done_callback(lambda _: self._more.set())

    def _next(self) -> tuple[Look | None, float]:
        """Of what is earned that which costs least, or how long there is none."""
        has_large = self._large is not None and not self._large.answer.done()
        wait_s = LOOK_AGAIN_S
        for look in sorted(self._due, key=self._cost):
            cost_s = self._cost(look)
            if cost_s > SMALL_S and has_large:
                break
            due_s = self.budget.due_s(look.key)
            if not due_s or (look.is_first and self.budget.lends(cost_s)):
                return look, 0.0
            wait_s = min(wait_s, due_s)
        return None, wait_s

    def _cost(self, look: Look) -> float:
        return self._costs.of(look.key[0])

    def _begin(self, look: Look) -> None:
        """Ask it now."""
        del self._due[look]
        lent = not SOMEBODY_WAITS.get() and self.budget.due_s(look.key) > 0
        look.task = asyncio.create_task(self._ask(look, lent=lent))

    async def _ask(self, look: Look, *, lent: bool) -> None:
        look.is_asked, look.seq, look.begun = True, self.seq, time.monotonic()
        try:
            look.answer.set_result(await look.ask())
        except Exception as why:
            look.answer.set_exception(why)
        finally:
            look.answer.cancel()  # If it has none: this was cancelled.
            cost_s = self._costs.took(look.key[0], time.monotonic() - look.begun)
            self.budget.spent(look.key, cost_s, lent=lent)
