"""When pages look again: at once when something changed, and never more than the scheduler can spare.

Decides when the next look is. Never decides what is looked at. Invariant: all open pages together take no more than
`SHARE` of the time of the service, however much changes, however many are open: what one may not yet ask, it asks a
little later; pages of the same viewer that ask the same share one answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from typing import Any, Literal, TypeVar, TypeVarTuple, Unpack, cast

from fairlead.client.asynchronous import AsyncClient
from fairlead.client.errors import ClientError, Refused

T = TypeVar("T")
As = TypeVarTuple("As")
SHARE = 0.04
"""Part of the time that the service may spend on looks of open pages."""
BURST_S = 0.05
"""So much may be owed for a question that is asked again."""
LOOK_AGAIN_S = 1.0
POLL_S = 25.0
UNKNOWN = 401
NEWS_S = 0.2
"""After news, until it is asked whether there are more."""
LOST_AGAIN_S = 1.0
REMEMBERED = 5
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


class Budget:
    """Time of the service that looks may take: the part `share` of it, which what is owed for each question is paid
    from. All that is owed is paid off at the same pace, so that a question that costs little is soon free again,
    however much others cost.
    """

    def __init__(self) -> None:
        self.share = SHARE
        self._owed_s: dict[Hashable, float] = {}
        self._at = time.monotonic()

    def _settle(self) -> None:
        now = time.monotonic()
        left, self._at = (now - self._at) * self.share, now
        owed = sorted(self._owed_s.items(), key=lambda each: each[1])
        self._owed_s = {}
        for at, (question, seconds) in enumerate(owed):
            paid = min(seconds, left / (len(owed) - at))
            left -= paid
            if seconds > paid:
                self._owed_s[question] = seconds - paid

    async def allowed(self, question: Hashable) -> None:
        """Wait until this may be asked again."""
        while True:
            self._settle()
            over = self._owed_s.get(question, 0.0) - BURST_S
            if over <= 0:
                return
            # At this pace; sooner if others are paid off meanwhile.
            await asyncio.sleep(min(LOOK_AGAIN_S, over * len(self._owed_s) / self.share + 0.01))

    def spent(self, question: Hashable, seconds: float) -> None:
        """So much was. What was asked since somebody came or did something is owed once, however often: what many who
        come cost is no reason to show those who are there less.
        """
        self._settle()
        self._owed_s[question] = min(self._owed_s.get(question, 0.0) + seconds, seconds + BURST_S)


class Meter:
    """What questions cost that are asked beside each other: the service answers one at a time, so a second in which it
    has several counts once, in equal parts for each of them.
    """

    def __init__(self) -> None:
        self._spent_s = 0.0
        """What each question would have cost that was there all the time."""
        self._asked = 0
        self._at = time.monotonic()

    def begin(self) -> float:
        """One more is asked; what to give to `end`."""
        self._settle()
        self._asked += 1
        return self._spent_s

    def end(self, begun: float) -> float:
        """It is answered; its cost in seconds."""
        self._settle()
        self._asked -= 1
        return self._spent_s - begun

    def _settle(self) -> None:
        now = time.monotonic()
        if self._asked:
            self._spent_s += (now - self._at) / self._asked
        self._at = now


class Look:
    """A question that was asked, or will be as soon as that is earned, and its answer."""

    __slots__ = ("ask", "begun", "is_asked", "is_waited_for", "key", "seq", "task")

    def __init__(self, key: tuple[Any, ...], ask: Callable[[], Awaitable[Any]]) -> None:
        self.key, self.ask = key, ask
        self.is_waited_for = asyncio.Event()
        """Somebody waits for the answer: it is asked at once."""
        self.is_asked = False
        self.seq, self.begun = 0, 0.0
        """How far the service had come when it was asked, and when that was."""
        self.task: asyncio.Task[Any] | None = None


class Live:
    """How far the service has come, for all open pages."""

    def __init__(self) -> None:
        self.seq = 0
        self.lost = ""
        """Why the service does not answer; empty: it does."""
        self.budget = Budget()
        self._meter = Meter()
        self._clients: dict[object, AsyncClient] = {}
        self._polling: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self.notes: dict[str, object] = {}
        """What pages keep for each other, by name."""
        self._took: dict[Any, deque[float]] = {}
        """Of each question how long its last answers took: the shortest is what it costs, the rest is what else the
        machine had to do.
        """
        self._shared: dict[tuple[Any, ...], Look] = {}
        self._derived: dict[Hashable, tuple[tuple[object, ...], asyncio.Task[Any]]] = {}

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
                told = await client.changes(after=self.seq, wait=POLL_S)
            except Refused:
                self.leave(page)  # Its session is over; it finds out by itself.
            except ClientError as error:
                self._tell(self.seq + 1, error.message)
                await asyncio.sleep(LOST_AGAIN_S)
            else:
                if told.seq != self.seq or self.lost:
                    self._tell(told.seq, "")
                await asyncio.sleep(NEWS_S)

    def _tell(self, seq: int, lost: str) -> None:
        self.seq, self.lost = seq, lost
        self.look_again()

    async def shared(self, key: tuple[Any, ...], ask: Callable[[], Awaitable[T]]) -> T:
        """The answer to a question about the present, asked once for all pages with the same key: the question's name
        first, then whoever asks, where that matters.
        """
        known = self._shared.get(key)
        if known is None or not self._is_of_now(known):
            known = self._shared[key] = Look(key, ask)
            known.task = asyncio.create_task(self._asked(known))
            if len(self._shared) > MOST_SHARED:
                self._shared = dict(list(self._shared.items())[-MOST_SHARED // 2 :])
        if SOMEBODY_WAITS.get():
            known.is_waited_for.set()
        assert known.task is not None
        try:
            return cast(T, await asyncio.shield(known.task))
        except Refused as no:
            if known.ask is ask or no.status != UNKNOWN:
                raise
            # The session of whoever asked may be over; this one's may not.
            return cast(T, await self._asked(Look(key, ask)))

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
        task = look.task
        assert task is not None
        if task.done() and (task.cancelled() or task.exception() is not None):
            return False
        if not look.is_asked:
            return True  # It will be of the moment at which it is asked.
        if SOMEBODY_WAITS.get() == "opening":
            return not task.done() or time.monotonic() - look.begun < OPENING_S
        hears_of_changes = self._polling is not None and not self._polling.done() and not SOMEBODY_WAITS.get()
        return look.seq == self.seq and (hears_of_changes or time.monotonic() - look.begun < FRESH_S)

    async def _asked(self, look: Look) -> Any:
        if not SOMEBODY_WAITS.get():
            await self._earn(look.key, look.is_waited_for)
        look.is_asked, look.seq, look.begun = True, self.seq, time.monotonic()
        begun = self._meter.begin()
        try:
            return await look.ask()
        finally:
            took = self._took.setdefault(look.key[0], deque(maxlen=REMEMBERED))
            took.append(self._meter.end(begun))
            self.budget.spent(look.key, min(took))

    async def _earn(self, key: tuple[Any, ...], is_waited_for: asyncio.Event) -> None:
        """Wait until this may be asked again, or somebody waits for it: a page that opens would else wait with it."""

        async def earn() -> None:
            # What costs little goes first: what it would wait for else takes longer than itself.
            await asyncio.sleep(min(self._took.get(key[0], (0.0,))))
            await self.budget.allowed(key)

        either = asyncio.create_task(earn()), asyncio.create_task(is_waited_for.wait())
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in either:
                each.cancel()
