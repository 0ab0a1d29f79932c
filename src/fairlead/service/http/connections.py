"""Connections: how many there may be, and how long each may keep the service waiting.

Decides which are kept and which end, by whose they are and how long they have kept the service waiting. Never looks at
what is asked. Invariant: whatever is opened over TCP and left open, the Unix socket has room of its own, and root
always has; a caller that sends its request at once is not cut off for those that do not; no user has all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairlead.runtime import Refusal
from fairlead.service.http import errors
from fairlead.service.identity import CONNECTION, PEER, Peer, Token, peer_of

log = logging.getLogger("fairlead.service")

MOST = 1_000
"""Connections over TCP, and over the Unix socket, where there are descriptors for so many."""
KEPT = 256
"""Descriptors for everything that is no connection: files, pipes, processes."""
DESCRIPTORS = 65_536
"""As many as this the service takes where the machine allows it."""
ENDLESS = re.compile(r"/api/v1/jobs/[^/]+/terminal")
"""What is typed at a terminal is passed on as it comes, and never held."""
HEAD_BYTES = 64 * 1024
Owner: TypeAlias = tuple[bool, int | str]
"""Whose a connection is: whether over the Unix socket, and the user's number; the address until it is known."""
TOKENS_S = 1.0
"""Between two looks at tokens: no stream outlives its token for longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds that the service waits for the other end of a connection."""

    head: float = 10.0
    """From its opening, or the first byte of a further request, until all headers are there."""
    body: float = 60.0
    """From there until all of its body is."""
    reading: float = 60.0
    """While nothing of the answer is read."""


def raise_descriptors() -> int:
    """Have as many descriptors as this process may; how many that are. Jobs get what it began with (`local.launch`)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


class Connections:
    """All connections of one service, by the socket that they came over."""

    def __init__(self, descriptors: int, *, of_user: int, own_uid: int = 0, patience: Patience | None = None) -> None:
        """`descriptors`: those of the process. `of_user`: connections that one user may have over the Unix socket, and
        as many over TCP, and as many one address for which nobody has shown yet who that is.
        """
        self.most = max(1, min(MOST, (descriptors - KEPT) // 2))
        self.patience = patience or Patience()
        self._of_user, self._unbound = of_user, frozenset((0, own_uid))
        self._waiting: dict[bool, dict[Guarded, None]] = {False: {}, True: {}}
        """Over TCP (False) and Unix: those whose other end has to do something, the longest first."""
        self._open: set[Guarded] = set()
        self._count: Counter[bool] = Counter()
        self._owned: Counter[Owner] = Counter()

    def opened(self, one: Guarded, peer: Peer | None) -> tuple[str, str] | None:
        """A further one; None, or the code and the sentence with which it is refused."""
        is_unix, owner = peer is not None, one.owner
        self._open.add(one)
        self._count[is_unix] += 1
        self._owned[owner] += 1
        is_over = self._owned[owner] > self._of_user
        if peer is not None:
            if peer.uid in self._unbound:
                return None
            if is_over:
                return "too-many", self._too_many("the Unix socket")
        elif is_over and owner[1]:
            return self._make_room(is_unix, owner, f"{self._of_user} connections of {owner[1]}")
        if self._count[is_unix] > self.most:
            return self._make_room(is_unix, None, f"{self.most} connections")
        return None

    def _make_room(self, is_unix: bool, owner: Owner | None, said: str) -> tuple[str, str] | None:
        """Cut off what was idle for the longest time, of this owner or of all; else the answer to the one that came."""
        idle = next((each for each in self._waiting[is_unix] if owner in (None, each.owner)), None)
        if idle is None:
            return "unavailable", f"there are {said}, all of them at work; try again in a moment"
        idle.cut_off("others wait for a connection, and this one was idle for the longest time")
        return None

    def _too_many(self, over: str) -> str:
        return f"you have {self._of_user} connections open over {over}, as many as a user may; close some"

    def known(self, one: Guarded, uid: int) -> None:
        """Over TCP this one is that user's from now on. Raises `Refusal` where the user has enough: then it is not."""
        owner: Owner = (False, uid)
        if one.owner == owner:
            return
        if self._owned[owner] >= self._of_user and uid not in self._unbound:
            raise Refusal("too-many", self._too_many("TCP"))
        self._disown(one)
        one.owner = owner
        self._owned[owner] += 1

    def _disown(self, one: Guarded) -> None:
        self._owned[one.owner] -= 1
        if not self._owned[one.owner]:
            del self._owned[one.owner]

    def closed(self, one: Guarded, peer: Peer | None) -> None:
        """It is gone."""
        is_unix = peer is not None
        self._open.discard(one)
        self._count[is_unix] -= 1
        self._waiting[is_unix].pop(one, None)
        self._disown(one)

    def waits(self, one: Guarded, peer: Peer | None, *, for_the_other_end: bool) -> None:
        """Whether its other end has to do something now: those that have, and have had for long, go first."""
        waiting = self._waiting[peer is not None]
        waiting.pop(one, None)
        if for_the_other_end and (peer is None or peer.uid not in self._unbound):
            waiting[one] = None

    async def end_with_tokens(self, objection: Callable[[Token], str]) -> None:
        """End each connection whose token is no longer accepted, also one that is a stream; until it is cancelled."""
        while True:
            await asyncio.sleep(TOKENS_S)
            tokens = {one.token.id: one.token for one in self._open if one.token is not None}
            gone: set[str] = set()
            for each in tokens.values():
                with contextlib.suppress(OSError):  # Its user cannot be looked up now: next time.
                    gone |= {each.id} if objection(each) else set()
            for one in [one for one in self._open if one.token is not None and one.token.id in gone]:
                one.transport.abort()

    def __len__(self) -> int:
        return self._count.total()


class Guarded(HttpToolsProtocol):
    """uvicorn's HTTP protocol within those bounds, which also tells the application who is at the other end."""

    def __init__(self, connections: Connections, **settings: Any) -> None:
        super().__init__(**settings)
        self._all, self._patience = connections, connections.patience
        self.token: Token | None = None
        """The one that was shown last."""
        self.owner: Owner = (False, "")
        self._peer: Peer | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._head_bytes, self._in_head, self._begun = 0, True, False
        self._is_refused, self._is_endless, self._answers = False, False, 0

    # -- its life -----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note who connected; refuse it where there are too many."""
        super().connection_made(transport)
        self._peer = peer_of(transport)
        if self._peer is not None:
            self.owner = True, self._peer.uid
        elif self.client is not None:
            self.owner = False, self.client[0]
        refused = self._all.opened(self, self._peer)
        if refused is not None:
            self._refuse(*refused)
            return
        self._all.waits(self, self._peer, for_the_other_end=True)
        self._wait(self._patience.head, "headers", "all headers of a request")

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing of it is left."""
        self._stop_waiting()
        if self._unread is not None:
            self._unread.cancel()
        self._all.closed(self, self._peer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Of one that was refused nothing is read."""
        if self._is_refused:
            return
        super().data_received(data)
        if self._in_head and self._begun and not self._is_refused:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(
                    "headers-too-large", f"the headers of this request are more than {HEAD_BYTES} bytes; send fewer"
                )

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's own words
        """What uvicorn cannot read is refused as everything else is."""
        if self._begun and len(self.url) >= HEAD_BYTES:
            said = "the address of this request is too long; name fewer parts of an array, or all of it"
            self._refuse("headers-too-large", said)
            return
        self._refuse("malformed", "what was sent is no HTTP request; look at its first line and its headers")

    def known_as(self, uid: int) -> None:
        """This user has shown who asks: it is one of that user's connections. Raises `Refusal`."""
        if self._peer is None:
            self._all.known(self, uid)

    # -- a request ----------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Its first byte is here: from now on its headers are waited for. Its scope says who asks."""
        super().on_message_begin()
        self._head_bytes, self._in_head, self._begun = 0, True, True
        if self._timer is None:
            self._wait(self._patience.head, "headers", "all headers of a request")
        self.scope[CONNECTION] = self  # type: ignore[literal-required]
        if self._peer is not None:
            self.scope[PEER] = self._peer  # type: ignore[literal-required]

    def on_headers_complete(self) -> None:
        """From now on its body is waited for."""
        self._stop_waiting()
        super().on_headers_complete()
        self._in_head = False
        self._answers += 1
        self._is_endless = ENDLESS.fullmatch(self.scope["path"]) is not None
        if not self._is_endless:
            self._wait(self._patience.body, "body", "the whole body of the request")
        else:
            self._all.waits(self, self._peer, for_the_other_end=False)

    def on_message_complete(self) -> None:
        """It is all here: now it is the service that is waited for."""
        self._stop_waiting()
        self._begun = False
        self._all.waits(self, self._peer, for_the_other_end=self.cycle.response_complete)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It is answered."""
        super().on_response_complete()
        if self.parser is not None:
            self._all.waits(self, self._peer, for_the_other_end=True)

    # -- an answer that is not read -----------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """What was answered is not read."""
        super().pause_writing()
        if self._unread is None and not self._is_endless:
            self._unread = self.loop.call_later(self._patience.reading, self.transport.abort)

    def resume_writing(self) -> None:
        """It is read again."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    # -- the end of patience ------------------------------------------------------------------------------------------

    def cut_off(self, why: str) -> None:
        """End it for the sake of others."""
        self._refuse("unavailable", f"{why}; connect again")

    def _wait(self, seconds: float, what: str, sentence: str) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._over, seconds, what, sentence)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self, seconds: float, what: str, sentence: str) -> None:
        self._timer = None
        if what == "headers" and not self._begun:
            # It has asked for nothing, so it is told nothing.
            self.transport.close()
            return
        self._refuse("too-slow", f"{sentence} did not come within {seconds:g} s; send it at once")

    def _refuse(self, code: str, sentence: str) -> None:
        """Say why, where nothing was answered yet, and close."""
        self._is_refused = True
        self._stop_waiting()
        self._all.waits(self, self._peer, for_the_other_end=False)
        if self._may_answer():
            self.transport.write(errors.written(errors.answer(code, sentence, headers={"Connection": "close"})))
        self.transport.close()

    def _may_answer(self) -> bool:
        """Whether nothing of another answer is on its way, and one is waited for."""
        if self.pipeline:
            return False
        if self._in_head:
            return self._answers == 0 or bool(self.cycle.response_complete)
        return not self.cycle.response_started
