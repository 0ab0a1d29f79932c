"""Turns of users at the event loop: a few requests of one user at a time are worked on, the others wait in its line.

Decides when work on a request begins, before anything is done for it but to read its head. Never knows what is asked,
nor what the user may do. Invariant: whatever one user asks, another one's request meets a few of it at work, not all;
nothing that waits for something else keeps the user's own others waiting for longer than a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.runtime import Refusal
from fairlead.service.http import errors
from fairlead.service.identity import CONNECTION
from fairlead.service.passes import STRANGERS

AT_ONCE = 2
"""Requests of one user: while one of them waits for the writer or a thread, there is work on the other."""
MOMENT_S = 0.05
"""What takes longer waits for something (a disk, a process, news, its own body), or is worked on beside the loop in
turns of their own."""


class Turns:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, user_of: Callable[[Scope], int | None]) -> None:
        """`user_of`: the number of whoever asks, found at once; None: this request waits in no line."""
        self._app, self._user_of = app, user_of
        self._of: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        user = self._user_of(scope) if scope["type"] == "http" else None
        if user is None:
            await self._app(scope, receive, send)
            return
        try:
            self._note(scope, user)
        except Refusal as no:
            await errors.from_refusal(no, scope["path"])(scope, receive, send)
            return
        turns = self._of.setdefault(user, asyncio.Semaphore(AT_ONCE))
        await turns.acquire()
        turn = [turns]

        def give() -> None:
            if turn:
                turn.pop().release()

        moment = asyncio.get_running_loop().call_later(MOMENT_S, give)
        try:
            await self._app(scope, receive, send)
        finally:
            moment.cancel()
            give()

    @staticmethod
    def _note(scope: Scope, user: int) -> None:
        """While it waits the connection is its user's: others who come from the same address have theirs."""
        if user != STRANGERS and (connection := scope.get(CONNECTION)) is not None:
            connection.known_as(user)
